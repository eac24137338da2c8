//! Checks that a run can be resumed: the same suite, the same machine and the same programs. [`super::Run::resume`] calls it.
//!
//! If the second half of a run was measured under other conditions than the first, the tables would compare what cannot be
//! compared. So a change is refused, and the error says what changed.

use std::path::Path;

use serde::de::DeserializeOwned;
use weir_model::Placement;
use weir_model::record::{Environment, Measurement};

use super::Setup;
use crate::journal::{Journal, JournalError};
use crate::plan::{Planned, plan};

/// Checks everything, and sets in `setup` the CPUs, the driver and the skipped cases that the run began with.
pub fn check(journal: &Journal, setup: &mut Setup, measured: &[Measurement]) -> Result<Vec<Planned>, JournalError> {
    let dir = journal.dir();
    let environment: Environment = read(journal, "environment.json")?;
    setup.skipped.clone_from(&environment.skipped);
    let planned = same_suite(journal, setup)?;
    same_programs(dir, &environment, setup)?;
    setup.placement = recorded_placement(dir, &environment, setup)?;
    setup.driver = measured.iter().find_map(|m| m.load.as_ref()?.driver.parse().ok()).unwrap_or(setup.driver);
    Ok(planned)
}

/// One of the run's files, which has to be there.
fn read<T: DeserializeOwned>(journal: &Journal, name: &str) -> Result<T, JournalError> {
    let missing = || JournalError::Broken { path: journal.dir().join(name), why: "it is missing".to_owned() };
    journal.read_json(name)?.ok_or_else(missing)
}

fn changed(dir: &Path, found: impl std::fmt::Display, expected: &str) -> JournalError {
    JournalError::Changed { folder: dir.to_owned(), why: format!("{found}\n  expected: {expected}") }
}

fn same_suite(journal: &Journal, setup: &Setup) -> Result<Vec<Planned>, JournalError> {
    let dir = journal.dir();
    let planned: Vec<Planned> = read(journal, "plan.json")?;
    if planned == plan(&setup.suite, setup.suite.seed.unwrap_or_default(), &setup.skipped) {
        return Ok(planned);
    }
    let remedy = "the weir that began it, or a new run with `weir run <folder>/run.toml`";
    Err(changed(dir, "its plan is not what this weir makes of run.toml", remedy))
}

fn same_programs(dir: &Path, then: &Environment, now: &Setup) -> Result<(), JournalError> {
    for (name, installed) in &now.installed {
        let before = then.products.iter().find(|facts| &facts.name == name);
        if before.is_some_and(|facts| facts.sha256 != installed.sha256) {
            let version = before.map(|facts| facts.version.as_str()).unwrap_or_default();
            let found = format!("it began with {name} {version}, and what is installed now is {}", installed.version);
            return Err(changed(dir, found + " or another build", "that version again, or a new run"));
        }
    }
    if then.weir_sha256 != now.weir_sha256 {
        let (before, now) = (&then.weir_version, &now.weir_version);
        let found = format!("it began with weir {before}, and this is weir {now} or another build of it");
        return Err(changed(dir, found, "the same weir, which is client and origin, too; or a new run"));
    }
    Ok(())
}

/// The CPUs that the run began with. A host with a disk of its own may be another pod now, with as many others.
fn recorded_placement(dir: &Path, then: &Environment, now: &Setup) -> Result<Placement, JournalError> {
    let mut placement = then.placement.clone();
    for (role, host) in now.hosts.first() {
        let allowed = &host.facts().cpus;
        if host.facts().work.is_some() {
            let (before, has) = (then.placement.of(role).len(), now.placement.of(role));
            if has.len() != before {
                let (role, has) = (role.as_str(), has.len());
                let found = format!("its {role} used {before} CPUs, and now has {has}");
                return Err(changed(dir, found, "as many CPUs, or a new run"));
            }
            placement.set(role, has.to_vec());
            placement.machines.insert(role, host.facts().machine.clone());
            continue;
        }
        if let Some(cpu) = then.placement.of(role).iter().find(|cpu| !allowed.contains(cpu)) {
            let found = format!("it used CPU {cpu}, and weir may now use only {allowed:?}");
            return Err(changed(dir, found, "the same CPUs (`taskset`), or a new run"));
        }
    }
    Ok(placement)
}
