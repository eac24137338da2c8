//! `weir products list`: prints the products of the library and whether each is installed. Called by `verbs::products`.

use std::path::PathBuf;

use serde::Serialize;
use weir_install::home::Home;
use weir_install::{self as install, Found, FoundProgram};
use weir_model::product::{Product, ProductKind};
use weir_product::catalogue::Catalogue;

use crate::exit::{Exit, VerbResult};
use weir_model::text::columns;

pub const HELP: &str = "\
With --json, a list of objects with the keys name, title, about, speaks (protocols),
profiles (names), installed (the version, or null), from (such as \"apt nginx-light
1.22.1-9\", or null), binary (its path, or null) and missing (why each method
fails; empty when it is installed).

Examples:
  weir products list
  weir products list --json | jq -r '.[] | select(.installed == null) | .name'";

/// A product on this machine.
#[derive(Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub title: String,
    pub about: String,
    pub speaks: Vec<String>,
    pub profiles: Vec<String>,
    pub installed: Option<String>,
    pub from: Option<String>,
    pub binary: Option<PathBuf>,
    pub missing: Vec<String>,
}

impl Row {
    pub fn of(product: &Product, found: Found<FoundProgram>) -> Row {
        let (seen, missing) = match found {
            Found::Yes(seen) => (Some(seen), Vec::new()),
            Found::No { tried } => (None, tried),
        };
        Row {
            name: product.name.clone(),
            title: product.title.clone(),
            about: product.about.clone(),
            speaks: product.speaks.iter().map(|protocol| protocol.as_str().to_owned()).collect(),
            profiles: product.profiles.keys().cloned().collect(),
            installed: seen.as_ref().map(|seen| seen.version.clone()),
            from: seen.as_ref().map(|seen| seen.from.clone()),
            binary: seen.map(|seen| seen.binary),
            missing,
        }
    }
}

pub fn main(catalogue: &Catalogue, home: &Home, json: bool) -> VerbResult {
    show(&catalogue.products().values().collect::<Vec<_>>(), home, json)
}

/// Shows these.
pub fn show(products: &[&Product], home: &Home, json: bool) -> VerbResult {
    let rows = rows(products, home);
    if json {
        crate::verbs::print_json(&rows)?;
        return Ok(Exit::Ok);
    }
    let mut cells = Vec::new();
    for row in rows {
        let state = match (&row.installed, &row.from) {
            (Some(version), Some(from)) => format!("{version} ({from})"),
            _ if row.missing.is_empty() => "needs nothing".to_owned(),
            _ => "not installed".to_owned(),
        };
        cells.push(vec![row.name, state, row.about]);
    }
    for line in columns(&cells) {
        output!("{line}");
    }
    Ok(Exit::Ok)
}

/// Asks several binaries at once for their versions. An error of one product stays with that product.
fn rows(products: &[&Product], home: &Home) -> Vec<Row> {
    let proxies: Vec<&Product> = products.iter().copied().filter(|p| p.kind != ProductKind::Direct).collect();
    let mut found = install::quick_find_all(&proxies, home).into_iter();
    let row = |product: &&Product| {
        let found = match product.kind {
            ProductKind::Direct => None,
            ProductKind::Proxy(_) => found.next(),
        };
        let found = found.unwrap_or(Ok(Found::No { tried: Vec::new() }));
        Row::of(product, found.unwrap_or_else(|error| Found::No { tried: vec![error.to_string()] }))
    };
    products.iter().map(row).collect()
}
