//! Products and suites that weir knows: those built into the binary, overlaid by folders that the user names. `weir` calls it.
//!
//! This module reads text and parses it with `weir-model`. It knows no product by name, nor whether one is installed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_model::InputError;
use weir_model::product::{Library, Product, ProductKind};
use weir_model::regular;
use weir_model::seal::hash_of_files;
use weir_model::suite::Suite;
use weir_model::text::{one_of, suggestion};

/// Text of one product's folder.
#[derive(Debug, Clone)]
pub struct ProductText {
    /// Name of the file in messages.
    pub source: String,
    /// `product.toml`.
    pub toml: String,
    /// Every other file of the folder, by name.
    pub templates: BTreeMap<String, String>,
    /// Every file in the folders below it, by path relative to it.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Name of the file that makes a folder a product's.
const PRODUCT: &str = "product.toml";

/// Folders that builds leave in a project. They are not part of it.
const LEFTOVERS: [&str; 2] = ["target", "node_modules"];

/// Name of the `Cargo.toml` of a project that is built into weir: `cargo package` would leave out its folder under the other one.
const MANIFEST: &str = "Cargo.toml.in";

impl ProductText {
    /// Sorts the files of one product's folder, given by their paths relative to it (`/` between the parts). `folder` is its name
    /// in messages. `None` when there is no product in it.
    ///
    /// # Errors
    /// When a file beside `product.toml` is not text, and so not a template.
    pub fn sort(folder: &str, all: BTreeMap<String, Vec<u8>>) -> Result<Option<ProductText>, InputError> {
        if !all.contains_key(PRODUCT) {
            return Ok(None);
        }
        let (mut templates, mut files) = (BTreeMap::new(), BTreeMap::new());
        for (path, bytes) in all {
            let Some((folders, _)) = path.rsplit_once('/') else {
                let text = String::from_utf8(bytes).map_err(|_| not_text(folder, &path))?;
                templates.insert(path, text);
                continue;
            };
            if !folders.split('/').any(|part| LEFTOVERS.contains(&part)) {
                let is_manifest = Path::new(&path).ends_with(MANIFEST);
                files.insert(if is_manifest { path.trim_end_matches(".in").to_owned() } else { path }, bytes);
            }
        }
        let toml = templates.remove(PRODUCT).unwrap_or_default();
        Ok(Some(ProductText { source: format!("{folder}/{PRODUCT}"), toml, templates, files }))
    }
}

fn not_text(folder: &str, name: &str) -> InputError {
    let wanted = "text; what a build needs belongs into a folder of its own, as a project";
    InputError::of(format!("{folder}/{name}"), "it is not UTF-8, and so no template", wanted)
}

/// Text of one suite.
#[derive(Debug, Clone)]
pub struct SuiteText {
    /// How the file is named in messages.
    pub source: String,
    /// Its text.
    pub toml: String,
}

/// All products and suites.
#[derive(Debug, Default)]
pub struct Catalogue {
    products: BTreeMap<String, Product>,
    suites: BTreeMap<String, SuiteText>,
    /// Errors of the products whose files are wrong.
    broken: BTreeMap<String, Vec<InputError>>,
}

/// Why a catalogue could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// Files with errors.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Input(Vec<InputError>),
    /// A folder or file that cannot be read.
    #[error("{path}: {error}\n  expected: a folder with `products/<name>/product.toml` or `suites/<name>.toml` in it", path = .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
}

impl CatalogueError {
    fn at(path: &Path) -> impl FnOnce(std::io::Error) -> CatalogueError + use<> {
        let path = path.to_owned();
        move |error| CatalogueError::Io { path, error }
    }
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
        catalogue.add_products(products, None);
        catalogue.suites.extend(suites);
        catalogue.sound()?;
        Ok(catalogue)
    }

    /// Adds `<dir>/products` and `<dir>/suites`. They replace entries of the same name. What its products name may not be run before
    /// [`Catalogue::agree`].
    ///
    /// # Errors
    /// When a file cannot be read or has errors.
    pub fn overlay(&mut self, dir: &Path) -> Result<(), CatalogueError> {
        self.overlay_with_broken(dir)?;
        self.sound()
    }

    /// The same, without the products whose files are wrong: see [`Catalogue::broken`].
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn overlay_with_broken(&mut self, dir: &Path) -> Result<(), CatalogueError> {
        if !dir.join("products").is_dir() && !dir.join("suites").is_dir() {
            return Err(CatalogueError::at(dir)(std::io::ErrorKind::NotFound.into()));
        }
        let (products, sha256) = read_products(&dir.join("products"))?;
        self.add_products(products, Some(&Library { folder: dir.to_owned(), sha256 }));
        self.suites.extend(read_suites(&dir.join("suites"))?);
        Ok(())
    }

    /// Notes that the user agreed that weir runs what the products of these libraries name.
    pub fn agree(&mut self, to: impl Fn(&Library) -> bool) {
        for product in self.products.values_mut() {
            product.unagreed.take_if(|library| to(library));
        }
    }

    fn add_products(&mut self, texts: BTreeMap<String, ProductText>, library: Option<&Library>) {
        for (name, text) in texts {
            // What was there of that name is replaced, by an error if need be.
            self.products.remove(&name);
            self.broken.remove(&name);
            match Product::parse(&name, &text.source, &text.toml, text.templates, text.files) {
                Ok(mut product) => {
                    product.unagreed = library.filter(|_| product.program().is_some()).cloned();
                    self.products.insert(name, product);
                }
                Err(errors) => drop(self.broken.insert(name, errors)),
            }
        }
    }

    /// Products whose files are wrong, and what is wrong in each.
    pub fn broken(&self) -> &BTreeMap<String, Vec<InputError>> {
        &self.broken
    }

    /// Checks that no product's file is wrong.
    ///
    /// # Errors
    /// What is wrong in all of them.
    pub fn sound(&self) -> Result<(), CatalogueError> {
        self.sound_are(self.broken.keys())
    }

    /// Checks that the files of these products, of which some may be unknown, are not wrong.
    ///
    /// # Errors
    /// What is wrong in theirs.
    pub fn sound_are<'n>(&self, names: impl IntoIterator<Item = &'n String>) -> Result<(), CatalogueError> {
        let errors: Vec<InputError> =
            names.into_iter().filter_map(|name| self.broken.get(name)).flatten().cloned().collect();
        if errors.is_empty() { Ok(()) } else { Err(CatalogueError::Input(errors)) }
    }

    /// Products by name.
    pub fn products(&self) -> &BTreeMap<String, Product> {
        &self.products
    }

    /// One product.
    ///
    /// # Errors
    /// When there is none of that name. The error lists all products and suggests a similar name.
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
    /// An unknown name, an unreadable file, or all errors in it.
    pub fn suite(&self, name: &str) -> Result<Suite, CatalogueError> {
        let text = if name.ends_with(".toml") {
            let path = Path::new(name);
            let toml = regular::read_text(path).map_err(CatalogueError::at(path))?;
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

    fn is_direct(&self, product: &str) -> bool {
        self.products.get(product).is_some_and(|product| product.kind == ProductKind::Direct)
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
    InputError::of(source, format!("there is no {what} \"{name}\"{}", suggestion(name, &known)), one_of(&known))
}

/// The products of a folder, and the hash of all their files.
fn read_products(dir: &Path) -> Result<(BTreeMap<String, ProductText>, String), CatalogueError> {
    let (mut products, mut hashes) = (BTreeMap::new(), BTreeMap::new());
    for folder in entries(dir)?.into_iter().filter(|p| p.is_dir()) {
        let mut files = BTreeMap::new();
        read_folder(&folder, "", &mut files)?;
        let hash = hash_of_files(files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
        hashes.insert(file_name(&folder), hash);
        let text = ProductText::sort(&folder.display().to_string(), files);
        if let Some(text) = text.map_err(|error| CatalogueError::Input(vec![error]))? {
            products.insert(file_name(&folder), text);
        }
    }
    let hash = hash_of_files(hashes.iter().map(|(name, hash)| (name.as_str(), hash.as_bytes())));
    Ok((products, hash))
}

/// Every file in `folder` and below, by path with `prefix` before it.
fn read_folder(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<(), CatalogueError> {
    for path in entries(folder)? {
        let name = file_name(&path);
        if path.is_file() {
            let bytes = std::fs::read(&path).map_err(CatalogueError::at(&path))?;
            files.insert(format!("{prefix}{name}"), bytes);
        } else if path.is_dir() && !LEFTOVERS.contains(&name.as_str()) {
            read_folder(&path, &format!("{prefix}{name}/"), files)?;
        }
    }
    Ok(())
}

fn read_suites(dir: &Path) -> Result<BTreeMap<String, SuiteText>, CatalogueError> {
    let mut suites = BTreeMap::new();
    for file in entries(dir)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        let toml = regular::read_text(&file).map_err(CatalogueError::at(&file))?;
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
    let all = std::fs::read_dir(dir).and_then(|all| all.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = all.map_err(CatalogueError::at(dir))?;
    paths.sort();
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> BTreeMap<String, Vec<u8>> {
        files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec())).collect()
    }

    #[test]
    fn files_are_templates_and_folders_are_projects() {
        let all = folder(&[
            ("product.toml", b"x"),
            ("a.j2", b"y"),
            ("program/Cargo.toml.in", b"z"),
            ("program/src/main.rs", &[0xff]),
            ("program/target/release/program", b"built"),
            ("other/node_modules/a/package.json", b"got"),
        ]);
        let text = ProductText::sort("products/thing", all).expect("sorted").expect("a product");
        assert_eq!((text.source.as_str(), text.toml.as_str()), ("products/thing/product.toml", "x"));
        assert!(text.templates.keys().eq(["a.j2"]));
        assert!(text.files.keys().eq(["program/Cargo.toml", "program/src/main.rs"]));
    }

    #[test]
    fn a_folder_without_a_product_is_none_and_a_template_is_text() {
        assert!(ProductText::sort("x", folder(&[("README", b"y")])).expect("sorted").is_none());
        let error = ProductText::sort("x", folder(&[("product.toml", b""), ("a.j2", &[0xff])])).expect_err("no text");
        assert!(error.to_string().starts_with("x/a.j2: it is not UTF-8"), "{error}");
    }

    #[test]
    fn a_folder_of_the_user_is_read_with_its_subfolders() {
        let library = tempfile::tempdir().expect("a temporary folder");
        let product = library.path().join("products/thing");
        std::fs::create_dir_all(product.join("program/src")).expect("made");
        std::fs::create_dir_all(product.join("program/target")).expect("made");
        let toml = "[product]\ntitle = \"x\"\nabout = \"x\"\nhome = \"https://x/\"\nspeaks = [\"http/1.1\"]\n\
                    [[install]]\nmethod = \"crate\"\nproject = \"program\"\nbinary = \"target/release/x\"\n\
                    [version]\ncommand = [\"x\"]\npattern = '(x)'\n[process]\ncommand = [\"x\"]\n[profile.stock]\nabout = \"x\"\n";
        for (name, text) in [
            ("product.toml", toml),
            ("program/Cargo.toml", "a"),
            ("program/Cargo.lock", "b"),
            ("program/src/main.rs", "c"),
            ("program/target/junk", "d"),
        ] {
            std::fs::write(product.join(name), text).expect("written");
        }
        let mut catalogue = Catalogue::default();
        catalogue.overlay(library.path()).unwrap_or_else(|error| panic!("{error}"));
        let thing = &catalogue.products()["thing"];
        let files = &thing.files;
        assert!(files.keys().eq(["program/Cargo.lock", "program/Cargo.toml", "program/src/main.rs"]), "{files:?}");

        // It may be run once the user agreed to this library, of which every file but what builds leave is a part.
        let read = || {
            let mut catalogue = Catalogue::default();
            catalogue.overlay(library.path()).unwrap_or_else(|error| panic!("{error}"));
            let hash = catalogue.products()["thing"].unagreed.clone().expect("a library").sha256;
            (catalogue, hash)
        };
        let (mut catalogue, hash) = read();
        catalogue.agree(|library| library.sha256 != hash);
        assert!(catalogue.products()["thing"].unagreed.is_some());
        catalogue.agree(|library| library.sha256 == hash);
        assert_eq!(catalogue.products()["thing"].unagreed, None);
        std::fs::write(product.join("program/target/junk"), "e").expect("written");
        assert_eq!(read().1, hash);
        std::fs::write(product.join("program/src/main.rs"), "C").expect("written");
        assert_ne!(read().1, hash);
        std::fs::write(product.join("program/src/main.rs"), "c").expect("written");
        std::fs::rename(&product, library.path().join("products/other")).expect("renamed");
        let mut renamed = Catalogue::default();
        renamed.overlay(library.path()).unwrap_or_else(|error| panic!("{error}"));
        assert_ne!(renamed.products()["other"].unagreed.as_ref().expect("a library").sha256, hash);
    }
}
