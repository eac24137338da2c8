//! What a run needs on hosts with a disk of their own: its products, and a look by their doctors. `verbs::run` asks for it; the
//! agents there offer it. A namespace of this machine has this machine's products.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use weir_host::files::FileError;
use weir_host::{Host, HostError};
use weir_install::Installed;
use weir_lab::hosts::Hosts;
use weir_model::product::Product;
use weir_model::record::Finding;
use weir_vitals::doctor::Check;

use crate::exit::Failure;
use crate::verbs::doctor;
use crate::verbs::products::{self, There};

/// Checks that clients reach what is served already, before anything is started for it.
///
/// # Errors
/// The first that they do not reach, and why.
pub fn check_served(hosts: &Hosts, products: &BTreeMap<String, Product>) -> Result<(), Failure> {
    for (product, served) in products.values().filter_map(|product| Some((product, product.served()?))) {
        hosts.resolve(&served.address).map_err(|why| {
            let on = &hosts.client().facts().name;
            let found = format!("{}: {} is not reached from {on}: {why}", product.name, served.address);
            Failure::to_fix(found, "start it, or correct `address` of [served] in its product.toml")
        })?;
    }
    Ok(())
}

/// The products of a run on a host with a disk of its own. What is missing is installed there, after the same question as here.
///
/// # Errors
/// When the user says no, or the host is lost.
pub fn install(
    host: &Arc<dyn Host>,
    products: &[&Product],
    libraries: &[PathBuf],
    yes: bool,
) -> Result<There, Failure> {
    let products: Vec<&Product> = products.iter().copied().filter(|product| product.program().is_some()).collect();
    let names: Vec<&str> = products.iter().map(|product| product.name.as_str()).collect();
    let libraries = bring(host.as_ref(), &products, libraries).map_err(Failure::missing)?;
    let wanted = |names: &[&str]| json!({ "products": names, "libraries": libraries });
    let found: There = call(host, "find", wanted(&names), &mut |_| {})?;
    let (mut steps, mut possible, mut missing) = (Vec::new(), Vec::new(), BTreeMap::new());
    for name in found.missing.into_keys() {
        match host.call("plan", wanted(&[&name]), &mut |_| {}) {
            Ok(more) => {
                steps.extend(serde_json::from_value::<Vec<String>>(more).map_err(Failure::missing)?);
                possible.push(name);
            }
            Err(error) => drop(missing.insert(name, error.to_string())),
        }
    }
    if possible.is_empty() {
        return Ok(There { here: found.here, missing });
    }
    let on = &host.facts().name;
    remark!("Not all products are installed on {on} yet. weir will there:");
    products::confirm(&steps, yes)?;
    let possible: Vec<&str> = possible.iter().map(String::as_str).collect();
    let installed: There = call(host, "install", wanted(&possible), &mut |line| {
        remark!("    {on}: {}", line.as_str().unwrap_or_default());
    })?;
    let (mut here, more) = (found.here, installed.missing);
    here.extend(installed.here);
    missing.extend(more);
    Ok(There { here, missing })
}

/// The same products on a host that was reached again: found, or installed as they were before.
///
/// # Errors
/// When the host is lost.
pub fn again(host: &Arc<dyn Host>, products: &[Product], libraries: &[PathBuf]) -> Result<There, HostError> {
    let failed = |error: &dyn std::fmt::Display| HostError::Failed(format!("the host {}: {error}", host.facts().name));
    let products: Vec<&Product> = products.iter().collect();
    let names: Vec<&str> = products.iter().map(|product| product.name.as_str()).collect();
    let libraries = bring(host.as_ref(), &products, libraries).map_err(|error| failed(&error))?;
    let there = host.call("install", json!({ "products": names, "libraries": libraries }), &mut |_| {})?;
    serde_json::from_value(there).map_err(|error| failed(&error))
}

/// Has a host take a binary that is there for a product, as `weir products use` does here.
///
/// # Errors
/// When the host is lost.
pub fn use_binary(
    host: &Arc<dyn Host>,
    product: &Product,
    binary: &Path,
    libraries: &[PathBuf],
) -> Result<There, Failure> {
    let libraries = bring(host.as_ref(), &[product], libraries).map_err(Failure::missing)?;
    let wanted = json!({ "products": [product.name], "libraries": libraries, "binary": binary });
    call(host, "use", wanted, &mut |_| {})
}

/// Brings those products to a host that come from folders of the user's. Returns the folder there that is laid over what is built in.
fn bring(host: &dyn Host, products: &[&Product], libraries: &[PathBuf]) -> Result<Vec<PathBuf>, FileError> {
    let Some(work) = &host.facts().work else { return Ok(libraries.to_vec()) };
    let (there, mut brought) = (work.join("library"), false);
    for product in products {
        let file = |library: &PathBuf| library.join("products").join(&product.name).join("product.toml");
        let Some(file) = libraries.iter().rev().map(file).find(|file| file.is_file()) else { continue };
        let toml = std::fs::read(&file).map_err(FileError::at(&file))?;
        let templates = product.templates.iter().map(|(name, text)| (name.as_str(), text.as_bytes()));
        let files = product.files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        for (name, bytes) in templates.chain(files).chain([("product.toml", toml.as_slice())]) {
            let path = there.join("products").join(&product.name).join(name);
            host.create_dir(path.parent().unwrap_or(&there))?;
            host.write(&path, bytes, false)?;
        }
        brought = true;
    }
    Ok(if brought { vec![there] } else { Vec::new() })
}

/// Calls what an agent offers.
///
/// # Errors
/// What it says, or that the host is lost.
pub fn call<T: DeserializeOwned>(
    host: &Arc<dyn Host>,
    name: &str,
    argument: Value,
    progress: &mut dyn FnMut(Value),
) -> Result<T, Failure> {
    let failed = |error: HostError| Failure::missing(format!("the host {}: {error}", host.facts().name));
    serde_json::from_value(host.call(name, argument, progress).map_err(failed)?).map_err(Failure::missing)
}

/// What a host has, if it has all that was wanted.
///
/// # Errors
/// The first that it has not, and why.
pub fn all(has: There) -> Result<BTreeMap<String, Installed>, Failure> {
    match has.missing.into_iter().next() {
        None => Ok(has.here),
        Some((name, why)) => Err(Failure::missing(format!("{name}: {why}"))),
    }
}

/// What the doctors of other machines say, each finding with its host's name.
///
/// # Errors
/// When a host is lost.
pub fn findings(hosts: &Hosts) -> Result<Vec<Finding>, Failure> {
    let mut all = Vec::new();
    for host in hosts.each() {
        let Some(work) = &host.facts().work else { continue };
        let name = &host.facts().name;
        let checks: Vec<Check> = call(host, "doctor", json!(work), &mut |_| {})?;
        let of_host = |finding: Finding| Finding { message: format!("{name}: {}", finding.message), ..finding };
        all.extend(doctor::findings(&checks).into_iter().map(of_host));
    }
    Ok(all)
}
