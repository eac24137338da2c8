//! A binary of the user's instead of a product's own sources. [`crate::find`], plans and `weir products use` call it.
//!
//! It is kept in `$WEIR_HOME/products/<name>/use.toml`. A choice that cannot be used is an error and is never ignored, because
//! then something else would be measured than the user asked for.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_model::product::Product;

use super::find::program_of;
use super::{FoundProgram, InstallError, Installed, lookup, version};
use crate::home::Home;

/// The file.
const FILE: &str = "use.toml";
const HEAD: &str = "# Which program weir takes for this product, instead of what the product's file says.\n\
                    # Written by `weir products use`.\n\n";

/// The file's form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Using {
    /// `weir products use <name> --binary <path>`.
    own: Own,
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

/// The user's binary for `product`, if one is chosen.
///
/// # Errors
/// When the file cannot be read.
pub fn using(product: &str, home: &Home) -> Result<Option<Own>, InstallError> {
    let path = home.product(product).join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(InstallError::Io { path, error }),
    };
    let using: Using = toml::from_str(&text).map_err(|error| unreadable(&path, error.message()))?;
    Ok(Some(using.own))
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
    write(&product.name, Own { binary, version, sha256 }, home)?;
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
/// When the choice cannot be read or removed.
pub fn use_no_binary(product: &str, home: &Home) -> Result<bool, InstallError> {
    let is_chosen = using(product, home)?.is_some();
    if is_chosen {
        let path = home.product(product).join(FILE);
        fs::remove_file(&path).map_err(InstallError::io(&path))?;
    }
    Ok(is_chosen)
}

/// By a rename, so that it is whole however this ends.
fn write(product: &str, own: Own, home: &Home) -> Result<(), InstallError> {
    let folder = home.product(product);
    let path = folder.join(FILE);
    let text = toml::to_string(&Using { own }).map_err(|error| unreadable(&path, &error.to_string()))?;
    fs::create_dir_all(&folder).map_err(InstallError::io(&folder))?;
    let io = || InstallError::io(&path);
    let mut file = tempfile::NamedTempFile::new_in(&folder).map_err(io())?;
    file.write_all(format!("{HEAD}{text}").as_bytes()).map_err(io())?;
    file.persist(&path).map_err(|error| io()(error.error))?;
    Ok(())
}

/// The chosen program, if the user chose one; an error where it cannot be used.
pub(super) fn chosen_program(product: &Product, home: &Home) -> Result<Option<FoundProgram>, InstallError> {
    let Some(Own { binary, .. }) = using(&product.name, home)? else { return Ok(None) };
    let version = match binary.is_file() {
        true => version::read(product, product.lowest_version(), &binary, version::LIMIT)?,
        false => Err("there is no such file".to_owned()),
    };
    let from = format!("own {}", binary.display());
    match version {
        Ok(version) => Ok(Some(FoundProgram { binary, version, from })),
        Err(why) => Err(InstallError::Chosen { product: product.name.clone(), binary, why }),
    }
}

/// Whether the user's binary is another than when it was chosen; it is measured all the same, and the record says so.
pub(super) fn changed(product: &str, installed: &Installed, home: &Home) -> bool {
    let own = using(product, home).ok().flatten();
    own.is_some_and(|own| own.binary == installed.binary && own.sha256 != installed.sha256)
}

#[cfg(test)]
mod tests {
    use super::*;

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
