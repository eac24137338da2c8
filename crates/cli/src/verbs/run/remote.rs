//! Calls of other hosts before a run: whether they reach what is served already, and what their doctors say. The agents there offer it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use weir_host::{Host, HostError};
use weir_lab::hosts::Hosts;
use weir_model::product::Product;
use weir_model::record::Finding;
use weir_vitals::doctor::Check;

use crate::exit::Failure;
use crate::verbs::doctor;

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

/// Findings of the doctors on other machines, each with its host's name.
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
