//! The rows of `suites/published/*.csv`, and how they are read. `README.md` beside them says what the columns mean.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

pub const SUITES: [&str; 5] = ["easegress", "juno", "loggly", "monolake", "spring-cloud-gateway"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    pub suite: String,
    pub document: String,
    pub title: String,
    pub address: String,
    pub lines: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    pub suite: String,
    pub case: String,
    pub product: String,
    pub variant: String,
    pub kind: String,
    pub metric: String,
    pub value: f64,
    pub unit: String,
    pub document: String,
    pub line: u32,
    pub also: String,
    pub quote: String,
    #[serde(rename = "remark")]
    _remark: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    pub suite: String,
    pub product: String,
    pub called: String,
    pub version: String,
    pub document: String,
    pub line: u32,
    #[serde(rename = "remark")]
    _remark: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    pub suite: String,
    pub picture: String,
    pub title: String,
    pub x_axis: String,
    pub x_unit: String,
    pub x_range: String,
    pub x_scale: String,
    pub y_axis: String,
    pub y_unit: String,
    pub y_range: String,
    pub y_scale: String,
    pub series: String,
    pub document: String,
    pub line: u32,
    pub known_from: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub suite: String,
    pub roles: String,
    pub variant: String,
    pub machine: String,
    pub cores: String,
    pub memory: String,
    pub network: String,
    pub system: String,
    pub vendor: String,
    pub document: String,
    pub line: u32,
    pub also: String,
    #[serde(rename = "remark")]
    _remark: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites/published")
}

pub fn read(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

pub fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Vec<T> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.unwrap_or_else(|e| panic!("{name}: {e}"))).collect()
}

pub fn documents() -> BTreeMap<String, Document> {
    let all: Vec<Document> = parse("documents.csv", &read("documents.csv"));
    all.into_iter().map(|d| (d.document.clone(), d)).collect()
}

pub fn figures(suite: &str) -> Vec<Figure> {
    let name = format!("{suite}.csv");
    parse(&name, &read(&name))
}
