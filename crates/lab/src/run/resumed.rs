//! Checks that a run can be resumed: the same suite, the same machine and the same programs. [`super::Run::resume`] calls it.
//!
//! If the second half of a run was measured under other conditions than the first, the tables would compare what cannot be
//! compared. So a change is refused, and the error says what changed.

use std::path::Path;

use weir_model::Placement;
use weir_model::record::{Environment, Measurement};

use super::Setup;
use crate::journal::{Journal, JournalError};
use crate::plan::{Planned, plan};

/// Checks everything, and sets in `setup` the CPUs, the driver and the skipped cases that the run began with.
pub fn check(journal: &Journal, setup: &mut Setup, measured: &[Measurement]) -> Result<Vec<Planned>, JournalError> {
    let dir = journal.dir();
    let environment: Environment = journal
        .read_json("environment.json")?
        .ok_or_else(|| JournalError::Broken { path: dir.join("environment.json"), why: "it is missing".to_owned() })?;
    setup.skipped.clone_from(&environment.skipped);
    let planned = same_suite(journal, setup)?;
    same_programs(dir, &environment, setup)?;
    setup.placement = recorded_placement(dir, &environment, setup)?;
    setup.driver = measured.iter().find_map(|m| m.load.as_ref()?.driver.parse().ok()).unwrap_or(setup.driver);
    Ok(planned)
}

fn changed(dir: &Path, why: impl Into<String>) -> JournalError {
    JournalError::Changed { folder: dir.to_owned(), why: why.into() }
}

fn same_suite(journal: &Journal, setup: &Setup) -> Result<Vec<Planned>, JournalError> {
    let dir = journal.dir();
    let planned: Vec<Planned> = journal
        .read_json("plan.json")?
        .ok_or_else(|| JournalError::Broken { path: dir.join("plan.json"), why: "it is missing".to_owned() })?;
    if planned == plan(&setup.suite, setup.suite.seed.unwrap_or_default(), &setup.skipped) {
        return Ok(planned);
    }
    Err(changed(
        dir,
        "its plan is not what this weir makes of run.toml\n  expected: the weir that began it, or a new run with \
         `weir run <folder>/run.toml`",
    ))
}

fn same_programs(dir: &Path, then: &Environment, now: &Setup) -> Result<(), JournalError> {
    for (name, installed) in &now.installed {
        let before = then.products.iter().find(|facts| &facts.name == name);
        if before.is_some_and(|facts| facts.sha256 != installed.sha256) {
            let version = before.map(|facts| facts.version.as_str()).unwrap_or_default();
            return Err(changed(
                dir,
                format!(
                    "it began with {name} {version}, and what is installed now is {} or another build\n  \
                     expected: that version again, or a new run",
                    installed.version
                ),
            ));
        }
    }
    if then.weir_sha256 != now.weir_sha256 {
        return Err(changed(
            dir,
            format!(
                "it began with weir {}, and this is weir {} or another build of it\n  \
                 expected: the same weir, which is client and origin, too; or a new run",
                then.weir_version, now.weir_version
            ),
        ));
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
                return Err(changed(
                    dir,
                    format!("its {role} used {before} CPUs, and now has {has}\n  expected: as many CPUs, or a new run"),
                ));
            }
            placement.set(role, has.to_vec());
            placement.machines.insert(role, host.facts().machine.clone());
            continue;
        }
        if let Some(cpu) = then.placement.of(role).iter().find(|cpu| !allowed.contains(cpu)) {
            return Err(changed(
                dir,
                format!(
                    "it used CPU {cpu}, and weir may now use only {allowed:?}\n  \
                     expected: the same CPUs (`taskset`), or a new run"
                ),
            ));
        }
    }
    Ok(placement)
}
