//! Products on another host: what an agent finds, plans and installs there when weir calls it. `verbs::agent` offers it.
//!
//! The argument names products of the library that is built in, or of folders on that host that are laid over it. Both sides
//! are the same program, so a name is the same product.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_host::LocalHost;
use weir_host::stop::Stop;
use weir_install::home::Home;
use weir_install::{self as install, InstallContext, InstallError, Installed, Progress};
use weir_model::product::Product;
use weir_product::catalogue::Catalogue;

use super::install::{one_line, usable};
use super::proxies;

/// Which products.
#[derive(Debug, Deserialize)]
struct Wanted {
    /// Their names.
    products: Vec<String>,
    /// Folders on the host, as `--library` has them.
    #[serde(default)]
    libraries: Vec<PathBuf>,
    /// The user's own binary, of `use`.
    #[serde(default)]
    binary: PathBuf,
}

/// What a host has of the products that were wanted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct There {
    /// What is installed, by product name.
    pub here: BTreeMap<String, Installed>,
    /// What is not, by name, each with the reason in one line.
    pub missing: BTreeMap<String, String>,
}

/// `list` says which versions are there, by product name, and looks no further. `find` says what is there. `plan` lists in words what has to be done for what is missing. `install` does it, tells what it does,
/// and says what is there. `use` takes a binary of the user's that is there.
pub fn offer(name: &str, argument: Value, progress: &mut dyn FnMut(Value)) -> Result<Value, String> {
    let wanted: Wanted = serde_json::from_value(argument).map_err(text)?;
    let mut catalogue = crate::library::catalogue(&wanted.libraries).map_err(text)?;
    // The weir that calls has asked its user.
    catalogue.agree(|_| true);
    let products = products(&catalogue, &wanted.products)?;
    let home = Home::from_env().map_err(text)?;
    match name {
        "list" => {
            let found = products.iter().zip(install::quick_find_all(&products, &home));
            let version = |found| match found {
                Ok(install::Found::Yes(install::FoundProgram { version, .. })) => Some(version),
                Ok(install::Found::No { .. }) | Err(_) => None,
            };
            let versions = found.filter_map(|(product, found)| Some((product.name.clone(), version(found)?)));
            done(versions.collect::<BTreeMap<_, _>>())
        }
        "find" => {
            done(there(&products, |product| install::find(product, &home).and_then(|found| usable(product, found))))
        }
        "plan" => {
            let missing = |product: &&Product| !matches!(install::find(product, &home), Ok(install::Found::Yes(_)));
            let missing: Vec<&Product> = products.into_iter().filter(missing).collect();
            let steps = install::plan(&missing, &home).map_err(text)?;
            done(steps.iter().map(ToString::to_string).collect::<Vec<_>>())
        }
        "use" => done(there(&products, |product| install::use_binary(product, &wanted.binary, &home))),
        _ => {
            let host = LocalHost::new(std::env::current_exe().map_err(text)?);
            done(there(&products, |product| install_one(product, &home, &host, progress)))
        }
    }
}

fn products<'c>(catalogue: &'c Catalogue, names: &[String]) -> Result<Vec<&'c Product>, String> {
    let product = |name: &String| catalogue.product(name, "weir agent").map_err(text);
    Ok(proxies(names.iter().map(product).collect::<Result<Vec<_>, _>>()?))
}

fn there(products: &[&Product], mut one: impl FnMut(&Product) -> Result<Installed, InstallError>) -> There {
    let mut there = There::default();
    for product in products {
        match one(product) {
            Ok(installed) => drop(there.here.insert(product.name.clone(), installed)),
            Err(error) => {
                there.missing.insert(product.name.clone(), one_line(&error));
            }
        }
    }
    there
}

fn install_one(
    product: &Product,
    home: &Home,
    host: &LocalHost,
    progress: &mut dyn FnMut(Value),
) -> Result<Installed, InstallError> {
    // An agent that is to stop ends as a process, and what a build started with it.
    let stop = Stop::new();
    for step in install::plan(&[product], home)? {
        progress(step.to_string().into());
        install::run_step(&step, InstallContext { home, host, stop: &stop }, &mut |news| {
            if let Progress::Action(line) = news {
                progress(line.into());
            }
        })?;
    }
    usable(product, install::find(product, home)?)
}

fn done(value: impl Serialize) -> Result<Value, String> {
    serde_json::to_value(value).map_err(text)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
