//! What a run needs on hosts with a disk of their own: its products, and a look by their doctors. `verbs::run` asks for it; the
//! agents there offer it. A namespace of this machine has this machine's products.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use weir_host::{Host, HostError};
use weir_install::Installed;
use weir_lab::hosts::Hosts;
use weir_model::product::Product;
use weir_model::record::Finding;
use weir_vitals::doctor::Check;

use crate::exit::Failure;
use crate::verbs::doctor;
use crate::verbs::products::{self, There};

/// The products of a run on a host with a disk of its own. What is missing is installed there, after the same question as here.
///
/// # Errors
/// When the user says no, or the host is lost.
pub fn install(host: &Arc<dyn Host>, products: &[&Product], yes: bool) -> Result<There, Failure> {
    let names: Vec<&str> = products.iter().map(|product| product.name.as_str()).collect();
    let found: There = call(host, "find", json!({ "products": names }), &mut |_| {})?;
    let (mut steps, mut possible, mut missing) = (Vec::new(), Vec::new(), BTreeMap::new());
    for name in found.missing.into_keys() {
        match host.call("plan", json!({ "products": [name] }), &mut |_| {}) {
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
    let installed: There = call(host, "install", json!({ "products": possible }), &mut |line| {
        remark!("    {on}: {}", line.as_str().unwrap_or_default());
    })?;
    let (mut here, more) = (found.here, installed.missing);
    here.extend(installed.here);
    missing.extend(more);
    Ok(There { here, missing })
}

fn call<T: DeserializeOwned>(
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
