//! The products and suites built into the binary, and the folders laid over them with `--library`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use include_dir::{Dir, include_dir};
use weir_lab::catalogue::{Catalogue, CatalogueError, ProductText, SuiteText};

use crate::exit::Failure;

static PRODUCTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../products");
static SUITES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../suites");

/// Reads the catalogue: built in, then each overlay.
///
/// # Errors
/// What is wrong in an overlay (what is built in was checked by the tests).
pub fn catalogue(overlays: &[PathBuf]) -> Result<Catalogue, Failure> {
    let mut catalogue = built_in().map_err(Failure::input)?;
    for dir in overlays {
        catalogue.overlay(dir).map_err(Failure::input)?;
    }
    Ok(catalogue)
}

fn built_in() -> Result<Catalogue, CatalogueError> {
    let mut products = BTreeMap::new();
    for folder in PRODUCTS.dirs() {
        let name = folder.path().display().to_string();
        let mut templates: BTreeMap<String, String> = folder
            .files()
            .filter_map(|file| Some((file.path().file_name()?.to_str()?.to_owned(), file.contents_utf8()?.to_owned())))
            .collect();
        if let Some(toml) = templates.remove("product.toml") {
            let source = format!("products/{name}/product.toml");
            products.insert(name, ProductText { source, toml, templates });
        }
    }
    let suites = SUITES
        .files()
        .filter(|file| file.path().extension().is_some_and(|e| e == "toml"))
        .filter_map(|file| {
            let name = file.path().file_stem()?.to_str()?.to_owned();
            let source = format!("suites/{name}.toml");
            Some((name, SuiteText { source, toml: file.contents_utf8()?.to_owned() }))
        })
        .collect();
    Catalogue::new(products, suites)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_built_in_is_valid() {
        let catalogue = built_in().unwrap_or_else(|e| panic!("{e}"));
        assert!(catalogue.products().contains_key("direct"));
        for name in catalogue.suites().keys() {
            catalogue.suite(name).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}
