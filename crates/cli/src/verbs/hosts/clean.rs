//! `weir hosts clean`: removes what killed runs left on the hosts of a topology, and the copies of weir that runs brought there.
//! What belongs to a run that goes on stays: its host, network or pods are kept to it.

use serde_json::Value;
use std::collections::BTreeMap;
use weir_host::agent::clean::Cleaned;
use weir_host::kubernetes::{self, Cluster};
use weir_host::netns::{self, NetworkError};
use weir_host::transport::Binary;
use weir_model::Placement;
use weir_model::text::human_bytes;
use weir_model::topology::{Made, Topology};

use crate::exit::{Exit, Failure, VerbResult};
use crate::verbs::run::remote::call;
use crate::verbs::topology::{self, TopologyArgs};

/// What this verb calls itself where a host is kept to it.
const NAME: &str = "hosts-clean";

/// Runs it.
pub fn main(which: &TopologyArgs) -> VerbResult {
    let topology = &which.read()?;
    let weir = which.binary(topology)?;
    let (mut removed, mut unclean) = (networks()?, Vec::new());
    match topology.made() {
        Some(Made::Pods(pods)) => {
            let cluster = Cluster { context: pods.context.clone(), namespace: pods.namespace.clone() };
            let runs = kubernetes::remove_leftovers(&cluster).map_err(Failure::missing)?;
            removed.extend(runs.into_iter().map(|id| format!("pods and lease of run {id} in {}", cluster.namespace)));
        }
        Some(Made::Netns(_)) => on_hosts(&Topology::local(), weir, &mut removed, &mut unclean)?,
        None => on_hosts(topology, weir, &mut removed, &mut unclean)?,
    }
    for line in &removed {
        output!("removed {line}");
    }
    if removed.is_empty() && unclean.is_empty() {
        output!("nothing was left");
    }
    match unclean.is_empty() {
        true => Ok(Exit::Ok),
        false => Err(Failure::missing(unclean.join("\n"))),
    }
}

/// Networks of this machine whose owner is gone. Only root can have made any.
fn networks() -> Result<Vec<String>, Failure> {
    match netns::remove_leftovers() {
        Ok(names) => Ok(names.into_iter().map(|name| format!("namespace {name}")).collect()),
        Err(NetworkError::NotRoot) => Ok(Vec::new()),
        Err(error) => Err(Failure::missing(error)),
    }
}

/// What is on the hosts themselves. Those that are not reached, or in use, go to `unclean`.
fn on_hosts(
    topology: &Topology,
    weir: Binary,
    removed: &mut Vec<String>,
    unclean: &mut Vec<String>,
) -> Result<(), Failure> {
    let (_reached, results) = topology::reach_each(topology, weir, NAME, &Placement::default(), &BTreeMap::new())?;
    for result in &results {
        let cleaned = match result {
            Ok(host) => call::<Cleaned>(host, "clean", Value::Null, &mut |_| {}).map(|cleaned| (host, cleaned)),
            Err(error) => Err(Failure::missing(error)),
        };
        match cleaned {
            Ok((host, cleaned)) => {
                let name = &host.facts().name;
                removed.extend(lines(&cleaned).map(|line| format!("{line} on {name}")));
                let other = |other: &String| format!("the host {name} is in use by {other}; copies of weir stay there");
                unclean.extend(cleaned.in_use.iter().map(other));
            }
            Err(error) => unclean.push(error.to_string()),
        }
    }
    Ok(())
}

fn lines(cleaned: &Cleaned) -> impl Iterator<Item = String> {
    let folders = cleaned.folders.iter().map(|folder| folder.display().to_string());
    let copies =
        cleaned.copies.iter().map(|(path, bytes)| format!("{} ({})", path.display(), human_bytes(*bytes as f64)));
    folders.chain(copies)
}
