//! Every kind of mistake in a file, with the exact message it gets: `bad/<name>.toml` and `bad/<name>.txt`.
//!
//! `WEIR_BLESS=1 cargo test -p weir-model --test it bad::` writes the messages again; read the difference before you
//! commit it, for these texts are what users see.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_model::coding::Coding;
use weir_model::product::Product;
use weir_model::suite::Suite;
use weir_model::{Catalogue, InputError, Topology};

/// Products by name with their profiles, none of which offers a content coding.
struct Known(BTreeMap<String, Vec<String>>);

impl Catalogue for Known {
    fn products(&self) -> Vec<String> {
        self.0.products()
    }

    fn profiles(&self, product: &str) -> Option<Vec<String>> {
        self.0.profiles(product)
    }

    fn origins(&self) -> Vec<String> {
        self.0.origins()
    }

    fn codings(&self, _product: &str, _profile: &str) -> Option<Vec<Coding>> {
        Some(Vec::new())
    }
}

fn catalogue() -> Known {
    let both = || vec!["stock".to_owned(), "tuned".to_owned()];
    let mut catalogue: BTreeMap<_, _> = ["direct", "haproxy", "nginx"].map(|name| (name.to_owned(), both())).into();
    catalogue.entry("nginx".to_owned()).or_default().push("origin".to_owned());
    Known(catalogue)
}

fn templates() -> BTreeMap<String, String> {
    ["stock.conf.j2", "tuned.conf.j2"].map(|name| (name.to_owned(), "listen {{ port }};".to_owned())).into()
}

/// What lies in the folders below the product's.
fn projects() -> BTreeMap<String, Vec<u8>> {
    ["program/Cargo.toml", "program/src/main.rs"].map(|path| (path.to_owned(), Vec::new())).into()
}

fn parse(name: &str, text: &str) -> Result<(), Vec<InputError>> {
    let source = format!("{name}.toml");
    if name.starts_with("hosts-") {
        Topology::parse(&source, text).map(drop)
    } else if name.starts_with("product-") {
        let projects = if name.contains("project") { projects() } else { BTreeMap::new() };
        Product::parse("nginx", &source, text, templates(), projects).map(drop)
    } else {
        Suite::parse(&source, text, &catalogue()).map(drop)
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("tests/bad is there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_mistake_gets_its_message() {
    let bless = std::env::var_os("WEIR_BLESS").is_some();
    let mut wrong = Vec::new();
    let files = files();
    assert!(files.len() > 30, "the folder of mistakes is nearly empty");
    for path in files {
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("readable");
        let message = match parse(&name, &text) {
            Ok(()) => "(no error)\n".to_owned(),
            Err(errors) => errors.iter().map(|error| format!("{error}\n")).collect(),
        };
        let golden = path.with_extension("txt");
        if bless {
            std::fs::write(&golden, &message).expect("writable");
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if message != expected {
            wrong.push(format!("{name}\n--- expected\n{expected}--- found\n{message}"));
        }
        assert!(message != "(no error)\n", "{name} is accepted");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_mistake_inside_a_file_has_a_line() {
    for path in files() {
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("readable");
        for error in parse(&name, &text).expect_err("a bad file") {
            // What is missing altogether, and what the folder has and the file does not name, stands on no line.
            let nowhere = error.found.starts_with("missing")
                || error.found.starts_with("the template")
                || error.found.starts_with("the folder")
                || error.found == "it has no host"
                || error.found.starts_with("the file's name");
            assert!(error.line.is_some() || nowhere, "{error}");
        }
    }
}

#[test]
fn a_products_folder_name_is_checked() {
    let text = "[product]\ntitle = \"x\"\nabout = \"x\"\nhome = \"https://x/\"\nspeaks = [\"http/1.1\"]\n\
                kind = \"direct\"\n[profile.stock]\nabout = \"x\"\n";
    assert!(Product::parse(&"x".repeat(60), "product.toml", text, BTreeMap::new(), BTreeMap::new()).is_ok());
    for name in ["Nginx", "a/b", "..", "", "-x", "a b", &"x".repeat(61)] {
        let errors = Product::parse(name, "product.toml", text, BTreeMap::new(), BTreeMap::new()).expect_err(name);
        assert_eq!(
            errors[0].to_string(),
            format!(
                "product.toml: a product's folder is named {name:?}\n  expected: a name of small letters, digits and -, \
                 beginning with a letter or digit, at most 60"
            )
        );
    }
}

#[test]
fn a_template_that_another_includes_is_used() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/product.toml"))
        .expect("the good product is there");
    let mut templates = templates();
    templates.insert("common.j2".to_owned(), "x".to_owned());
    let errors =
        Product::parse("nginx", "product.toml", &text, templates.clone(), BTreeMap::new()).expect_err("unused");
    assert_eq!(
        errors[0].to_string(),
        "product.toml: the template \"common.j2\" is used by no profile\n  expected: [profile.<name>] with \
         files = { \"<file>\" = \"<template>\" }, or no such template"
    );
    templates.insert("tuned.conf.j2".to_owned(), "{% include 'common.j2' %}".to_owned());
    assert!(Product::parse("nginx", "product.toml", &text, templates, BTreeMap::new()).is_ok());
}
