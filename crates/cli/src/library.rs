//! The products and suites built into the binary, and the folders laid over them with `--library`. Used by `weir run`,
//! `weir suites` and `weir products`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use weir_install::agreed;
use weir_install::home::Home;
use weir_model::suite::Suite;
use weir_product::catalogue::{Catalogue, CatalogueError, ProductText, SuiteText};

use crate::exit::Failure;

static PRODUCTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/products");
static SUITES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/suites");

/// Reads the catalogue: built in, then each overlay.
///
/// # Errors
/// What is wrong in an overlay (what is built in was checked by the tests).
pub fn catalogue(overlays: &[PathBuf]) -> Result<Catalogue, Failure> {
    let catalogue = with_broken(overlays)?;
    catalogue.sound().map_err(Failure::input)?;
    Ok(catalogue)
}

/// The same, without the products whose files are wrong ([`Catalogue::broken`]).
///
/// # Errors
/// When a folder cannot be read.
pub fn with_broken(overlays: &[PathBuf]) -> Result<Catalogue, Failure> {
    let mut catalogue = built_in().map_err(Failure::input)?;
    for dir in overlays {
        if !dir.is_dir() {
            let found = format!("there is no folder {}", dir.display());
            let wanted = "a folder that contains products/<name>/product.toml or suites/<name>.toml";
            return Err(Failure::wrong("--library", found, wanted));
        }
        catalogue.overlay_with_broken(dir).map_err(Failure::input)?;
    }
    if !overlays.is_empty() {
        let agreed = Home::from_env().map(|home| agreed::libraries(&home)).unwrap_or_default();
        catalogue.agree(|library| agreed.contains(&library.sha256));
    }
    Ok(catalogue)
}

/// A suite by its name or the path of its file.
///
/// # Errors
/// What is wrong with the name or in the file.
pub fn suite(catalogue: &Catalogue, name: &str) -> Result<Suite, Failure> {
    let is_path = name.contains('/') || name.ends_with(".toml");
    if is_path && !Path::new(name).is_file() {
        let wanted = "the path of a suite's .toml file, or a name (see `weir suites list`)";
        return Err(Failure::wrong("suite", format!("there is no file {name}"), wanted));
    }
    catalogue.suite(name).map_err(Failure::input)
}

fn built_in() -> Result<Catalogue, CatalogueError> {
    let mut products = BTreeMap::new();
    for folder in PRODUCTS.dirs() {
        let name = folder.path().display().to_string();
        let mut files = BTreeMap::new();
        collect(folder, folder.path(), &mut files);
        let text = ProductText::sort(&format!("products/{name}"), files);
        if let Some(text) = text.map_err(|error| CatalogueError::Input(vec![error]))? {
            products.insert(name, text);
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

/// Every file of a folder and below, by its path relative to `root`.
fn collect(folder: &Dir<'_>, root: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for file in folder.files() {
        if let Ok(path) = file.path().strip_prefix(root) {
            files.insert(path.display().to_string(), file.contents().to_vec());
        }
    }
    for below in folder.dirs() {
        collect(below, root, files);
    }
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
