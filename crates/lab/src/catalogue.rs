//! Products and suites that weir knows: those built into the binary, overlaid by folders the user names.
//!
//! This module reads text and parses it through `weir-model`; it does not know any product by name, nor whether one
//! is installed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_model::InputError;
use weir_model::product::Product;
use weir_model::suite::Suite;

/// Text of one product's folder.
#[derive(Debug, Clone)]
pub struct ProductText {
    /// How the file is named in messages.
    pub source: String,
    /// `product.toml`.
    pub toml: String,
    /// Every other file of the folder, by name.
    pub templates: BTreeMap<String, String>,
}

/// Text of one suite.
#[derive(Debug, Clone)]
pub struct SuiteText {
    /// How the file is named in messages.
    pub source: String,
    /// Its text.
    pub toml: String,
}

/// What weir knows before it looks at the machine.
#[derive(Debug, Default)]
pub struct Catalogue {
    products: BTreeMap<String, Product>,
    suites: BTreeMap<String, SuiteText>,
}

/// Why a catalogue could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// Files that say something wrong.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Input(Vec<InputError>),
    /// A folder or file that cannot be read.
    #[error("{path}: {error}\n  would be right: a folder with `products/<name>/product.toml` or `suites/<name>.toml` in it", path = .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
}

impl Catalogue {
    /// Parses what is built in.
    ///
    /// # Errors
    /// Every input error of every product.
    pub fn new(
        products: BTreeMap<String, ProductText>,
        suites: BTreeMap<String, SuiteText>,
    ) -> Result<Catalogue, CatalogueError> {
        let mut catalogue = Catalogue::default();
        catalogue.add_products(products)?;
        catalogue.suites.extend(suites);
        Ok(catalogue)
    }

    /// Lays `<dir>/products` and `<dir>/suites` over what is known; same names replace.
    ///
    /// # Errors
    /// When a file cannot be read or says something wrong.
    pub fn overlay(&mut self, dir: &Path) -> Result<(), CatalogueError> {
        if !dir.join("products").is_dir() && !dir.join("suites").is_dir() {
            let error = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(CatalogueError::Io { path: dir.to_owned(), error });
        }
        self.add_products(read_products(&dir.join("products"))?)?;
        self.suites.extend(read_suites(&dir.join("suites"))?);
        Ok(())
    }

    fn add_products(&mut self, texts: BTreeMap<String, ProductText>) -> Result<(), CatalogueError> {
        let mut errors = Vec::new();
        for (name, text) in texts {
            match Product::parse(&name, &text.source, &text.toml, text.templates) {
                Ok(product) => {
                    self.products.insert(name, product);
                }
                Err(more) => errors.extend(more),
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(CatalogueError::Input(errors)) }
    }

    /// Products by name.
    pub fn products(&self) -> &BTreeMap<String, Product> {
        &self.products
    }

    /// One product.
    ///
    /// # Errors
    /// Says which products there are, and which name is near.
    pub fn product(&self, name: &str, asked_in: &str) -> Result<&Product, InputError> {
        self.products.get(name).ok_or_else(|| unknown(asked_in, "product", name, self.products.keys()))
    }

    /// Suites by name, unparsed.
    pub fn suites(&self) -> &BTreeMap<String, SuiteText> {
        &self.suites
    }

    /// A suite by name, or by path when `name` ends in `.toml`.
    ///
    /// # Errors
    /// Unknown name, unreadable file, or everything that is wrong in it.
    pub fn suite(&self, name: &str) -> Result<Suite, CatalogueError> {
        let text = if name.ends_with(".toml") {
            let path = Path::new(name);
            let toml =
                std::fs::read_to_string(path).map_err(|error| CatalogueError::Io { path: path.to_owned(), error })?;
            SuiteText { source: name.to_owned(), toml }
        } else {
            self.suites
                .get(name)
                .ok_or_else(|| CatalogueError::Input(vec![unknown("suite", "suite", name, self.suites.keys())]))?
                .clone()
        };
        let mut suite = Suite::parse(&text.source, &text.toml, self).map_err(CatalogueError::Input)?;
        suite.name = suite_name(name);
        Ok(suite)
    }
}

impl weir_model::file::Catalogue for Catalogue {
    fn products(&self) -> Vec<String> {
        self.products.keys().cloned().collect()
    }

    fn profiles(&self, product: &str) -> Option<Vec<String>> {
        Some(self.products.get(product)?.proxy_profiles().cloned().collect())
    }

    fn origins(&self) -> Vec<String> {
        self.products.values().filter(|product| product.can_be_origin()).map(|product| product.name.clone()).collect()
    }
}

fn suite_name(name: &str) -> String {
    let stem = Path::new(name).file_stem().and_then(|s| s.to_str()).unwrap_or("suite");
    stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '-' }).collect()
}

fn unknown<'a>(source: &str, what: &str, name: &str, known: impl Iterator<Item = &'a String>) -> InputError {
    let known: Vec<&str> = known.map(String::as_str).collect();
    InputError {
        source: source.to_owned(),
        line: None,
        key: None,
        found: format!("there is no {what} \"{name}\"{}", weir_model::file::suggestion(name, known.iter().copied())),
        wanted: format!("one of {}", known.join(", ")),
    }
}

fn read_products(dir: &Path) -> Result<BTreeMap<String, ProductText>, CatalogueError> {
    let mut products = BTreeMap::new();
    for folder in entries(dir)?.into_iter().filter(|p| p.is_dir()) {
        let mut templates = BTreeMap::new();
        for file in entries(&folder)?.into_iter().filter(|p| p.is_file()) {
            let text =
                std::fs::read_to_string(&file).map_err(|error| CatalogueError::Io { path: file.clone(), error })?;
            templates.insert(file_name(&file), text);
        }
        if let Some(toml) = templates.remove("product.toml") {
            let source = folder.join("product.toml").display().to_string();
            products.insert(file_name(&folder), ProductText { source, toml, templates });
        }
    }
    Ok(products)
}

fn read_suites(dir: &Path) -> Result<BTreeMap<String, SuiteText>, CatalogueError> {
    let mut suites = BTreeMap::new();
    for file in entries(dir)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        let toml = std::fs::read_to_string(&file).map_err(|error| CatalogueError::Io { path: file.clone(), error })?;
        let name = file.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
        suites.insert(name, SuiteText { source: file.display().to_string(), toml });
    }
    Ok(suites)
}

/// Entries of a folder, sorted; none when it does not exist.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, CatalogueError> {
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let failed = |error| CatalogueError::Io { path: dir.to_owned(), error };
    let mut paths = std::fs::read_dir(dir)
        .map_err(failed)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned()
}
