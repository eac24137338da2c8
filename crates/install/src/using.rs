//! The user's choice instead of a product's own sources: a binary of theirs, or the newest version. [`crate::find`], plans and
//! `weir products use` call it.
//!
//! It is kept in `$WEIR_HOME/products/<name>/use.toml`. A choice that cannot be used is an error and is never ignored, because
//! then something else would be measured than the user asked for.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_model::product::{Install, Product};

use super::find::program_of;
use super::{FoundProgram, InstallError, Installed, lookup, place, version};
use crate::home::Home;

/// The file.
const FILE: &str = "use.toml";
const HEAD: &str = "# Which program weir takes for this product, instead of what the product's file says.\n\
                    # Written by `weir products use` and `weir products install --latest`.\n\n";

/// What the user chose for one product; `own` counts before `latest`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Using {
    /// `weir products use <name> --binary <path>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Own>,
    /// `weir products install <name> --latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Latest>,
}

/// A binary of the user's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Own {
    /// Where it is.
    pub binary: PathBuf,
    /// The version it said when it was chosen.
    pub version: String,
    /// SHA-256 of the file when it was chosen, lower-case hexadecimal.
    pub sha256: String,
}

/// The newest version there was, installed without a hash to check it against.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latest {
    /// `wheel`, `crate` or `go`.
    #[serde(rename = "way")]
    pub source: String,
    /// Name of the package.
    pub package: String,
    /// Its version, as the package's own world writes it.
    pub version: String,
    /// Name of the folder beside the file.
    pub folder: String,
}

impl Latest {
    /// The newest version of a package, as it turned out.
    pub(super) fn new(source: &str, package: &str, version: &str) -> Latest {
        let folder = format!("{source}-latest-{}", place::plain(version));
        Latest { source: source.to_owned(), package: package.to_owned(), version: version.to_owned(), folder }
    }

    /// The product's entry that it is the newest version of.
    fn entry<'p>(&self, installs: &'p [Install]) -> Option<&'p Install> {
        installs.iter().find(|install| install.method() == self.source && install.package() == Some(&self.package))
    }

    /// Where it is kept.
    pub(super) fn place(&self, product: &str, home: &Home) -> place::InstallFolder {
        let seal = format!("latest {} {} {}", self.source, self.package, self.version);
        place::InstallFolder { folder: home.product(product).join(&self.folder), seal }
    }
}

/// What the user chose for `product`.
///
/// # Errors
/// When the file cannot be read.
pub fn using(product: &str, home: &Home) -> Result<Using, InstallError> {
    let path = home.product(product).join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(Using::default());
        }
        Err(error) => return Err(InstallError::Io { path, error }),
    };
    toml::from_str(&text).map_err(|error| unreadable(&path, error.message()))
}

fn unreadable(path: &Path, why: &str) -> InstallError {
    let remedy = "that file removed; the product is then chosen by its own file again";
    InstallError::Message(format!("{}: {why}\n  expected: {remedy}", path.display()))
}

/// Takes the user's binary for `product` from now on; it must run and say an acceptable version.
///
/// # Errors
/// When it does not, or the choice cannot be written down.
pub fn use_binary(product: &Product, binary: &Path, home: &Home) -> Result<Installed, InstallError> {
    let installed = own_binary(product, binary)?;
    let Installed { binary, version, sha256, .. } = installed.clone();
    change(&product.name, home, |chosen| chosen.own = Some(Own { binary, version, sha256 }))?;
    Ok(installed)
}

/// The user's binary as `product`; it must run and say an acceptable version.
///
/// # Errors
/// When it does not.
pub fn own_binary(product: &Product, binary: &Path) -> Result<Installed, InstallError> {
    let program = program_of(product)?;
    let refuse = |why: String, wanted: &str| {
        let (path, name) = (binary.display(), &product.name);
        InstallError::Message(format!("{path}: cannot be used as {name}: {why}\n  expected: {wanted}"))
    };
    let binary = std::path::absolute(binary).map_err(InstallError::io(binary))?;
    if !binary.is_file() {
        let what = if binary.is_dir() { "is a folder" } else { "there is no such file" };
        return Err(refuse(what.to_owned(), "the path of the program itself"));
    }
    let runs_itself = program.version.command.first().is_some_and(|word| word.contains("binary"));
    if runs_itself && !lookup::is_executable(&binary) {
        return Err(refuse("it is not executable".to_owned(), &format!("chmod +x {}", binary.display())));
    }
    // Some of its profiles may take older versions than the others: those as published.
    let lowest = product.lowest_version();
    let version = version::read(product, lowest, &binary, version::LIMIT)?.map_err(|why| {
        let wanted = match lowest {
            Some(lowest) => format!("a binary of {} that says version {lowest} or later", product.title),
            None => format!("a binary of {} that says its version", product.title),
        };
        refuse(why, &wanted)
    })?;
    let sha256 = lookup::sha256(&binary).map_err(InstallError::io(&binary))?;
    let from = format!("own {}", binary.display());
    Ok(Installed { binary, version, sha256, from })
}

/// Takes the user's binary no longer; whether there was one.
///
/// # Errors
/// When the choice cannot be read or written.
pub fn use_no_binary(product: &str, home: &Home) -> Result<bool, InstallError> {
    change(product, home, |chosen| chosen.own.take().is_some())
}

/// Takes the pinned version again; whether it was another. What was installed stays on the disk.
///
/// # Errors
/// When the choice cannot be read or written.
pub fn use_pinned(product: &str, home: &Home) -> Result<bool, InstallError> {
    change(product, home, |chosen| chosen.latest.take().is_some())
}

pub(super) fn use_latest(product: &str, latest: Latest, home: &Home) -> Result<(), InstallError> {
    change(product, home, |chosen| chosen.latest = Some(latest))
}

fn change<T>(product: &str, home: &Home, change: impl FnOnce(&mut Using) -> T) -> Result<T, InstallError> {
    let mut chosen = using(product, home)?;
    let result = change(&mut chosen);
    write(product, &chosen, home)?;
    Ok(result)
}

/// By a rename, so that it is whole however this ends; an empty choice is no file.
fn write(product: &str, chosen: &Using, home: &Home) -> Result<(), InstallError> {
    let folder = home.product(product);
    let path = folder.join(FILE);
    if *chosen == Using::default() {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(InstallError::Io { path, error }),
            _ => Ok(()),
        };
    }
    let text = toml::to_string(chosen).map_err(|error| unreadable(&path, &error.to_string()))?;
    fs::create_dir_all(&folder).map_err(InstallError::io(&folder))?;
    let io = || InstallError::io(&path);
    let mut file = tempfile::NamedTempFile::new_in(&folder).map_err(io())?;
    file.write_all(format!("{HEAD}{text}").as_bytes()).map_err(io())?;
    file.persist(&path).map_err(|error| io()(error.error))?;
    Ok(())
}

/// The chosen program, if the user chose one; an error where it cannot be used.
pub(super) fn chosen_program(product: &Product, home: &Home) -> Result<Option<FoundProgram>, InstallError> {
    let name = &product.name;
    let program = program_of(product)?;
    let mut lowest = program.version.at_least.as_deref();
    let (found, from, what, remedy) = match using(name, home)? {
        Using { own: Some(own), .. } => {
            lowest = product.lowest_version();
            let path = own.binary.display().to_string();
            let found = own.binary.is_file().then_some(own.binary).ok_or_else(|| "there is no such file".to_owned());
            let remedy = format!("weir products use {name} --binary <path>, or weir products use {name} --none");
            (found, format!("own {path}"), format!("{path} by `weir products use`"), remedy)
        }
        Using { latest: Some(latest), .. } => {
            let found = match latest.entry(&program.installs).and_then(Install::binary_inside) {
                Some(pattern) => latest.place(name, home).binary(pattern),
                None => Err("the product's file no longer has that package".to_owned()),
            };
            let package = format!("{} {} {}", latest.source, latest.package, latest.version);
            let from = format!("{package} (latest: no pinned hash was checked)");
            let remedy = format!("weir products install {name} --latest, or weir products use {name} --pinned");
            (found, from, format!("{package} by `weir products install --latest`"), remedy)
        }
        Using { own: None, latest: None } => return Ok(None),
    };
    let read = |binary: PathBuf| {
        let version = version::read(product, lowest, &binary, version::LIMIT)?;
        Ok::<_, InstallError>(version.map(|version| FoundProgram { binary, version, from }))
    };
    let found = found.map_or_else(|why| Ok(Err(why)), read)?;
    found.map(Some).map_err(|why| InstallError::Chosen { product: name.clone(), what, why, remedy })
}

/// Whether the user's binary is another than when it was chosen; it is measured all the same, and the record says so.
pub(super) fn changed(product: &str, installed: &Installed, home: &Home) -> bool {
    using(product, home).is_ok_and(|chosen| {
        chosen.own.is_some_and(|own| own.binary == installed.binary && own.sha256 != installed.sha256)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_kept_whole_and_an_empty_one_is_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        assert_eq!(using("thing", &home).unwrap(), Using::default());
        assert!(!use_pinned("thing", &home).unwrap());
        let latest =
            Latest { source: "go".into(), package: "p".into(), version: "v1".into(), folder: "go-latest-v1".into() };
        use_latest("thing", latest.clone(), &home).unwrap();
        let text = fs::read_to_string(home.product("thing").join(FILE)).unwrap();
        assert!(text.starts_with("# Which program") && text.contains("[latest]\nway = \"go\""), "{text}");
        assert_eq!(using("thing", &home).unwrap(), Using { own: None, latest: Some(latest) });
        assert!(use_pinned("thing", &home).unwrap());
        assert_eq!(fs::read_dir(home.product("thing")).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_says_something_else_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        fs::create_dir_all(home.product("thing")).unwrap();
        for text in
            ["[own]\nbinary = 1", "[mine]\n", "=", "[own]\nbinary = \"/x\"\nversion = \"1\"\nsha256 = \"\"\nmore = 1"]
        {
            fs::write(home.product("thing").join(FILE), text).unwrap();
            let error = using("thing", &home).unwrap_err().to_string();
            assert!(error.contains("use.toml: ") && error.contains("expected: that file removed"), "{error}");
        }
    }
}
