//! `weir run --dry-run`: lists the trials in order with the time each takes, and starts nothing. Called by
//! `verbs::run`.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use weir_lab::plan::{Planned, plan};
use weir_model::record::{CaseId, Skipped};
use weir_model::suite::{Entry, Load};

use super::document::Repeated;
use super::resolve::{ResolvedSuite, overheads};
use crate::exit::{Exit, Failure, VerbResult};
use crate::out;
use crate::progress::minutes_s;
use weir_model::text::counted;

#[derive(Debug, Serialize)]
struct DryRun<'a> {
    suite: &'a str,
    title: &'a str,
    seed: u64,
    seconds: f64,
    skipped: &'a [Skipped],
    trials: Vec<Trial>,
    /// With --as-published.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<&'a Repeated>,
}

#[derive(Debug, Serialize)]
struct Trial {
    #[serde(flatten)]
    planned: Planned,
    seconds: f64,
}

/// Prints what a run would do, or what is left of the run in `resume`, and the document that it repeats.
///
/// # Errors
/// When standard output cannot be written.
pub fn show(resolved: &ResolvedSuite, document: Option<&Repeated>, resume: Option<&Path>, json: bool) -> VerbResult {
    let ResolvedSuite { suite, scaled, skipped, .. } = resolved;
    let drawn = suite.seed.is_none();
    let seed = suite.seed.unwrap_or_else(random_seed);
    let finished = |planned: &Planned| {
        resume.is_some_and(|run| run.join("trials").join(planned.folder()).join("measurement.json").is_file())
    };
    let planned = plan(suite, seed, skipped);
    let trials: Vec<Trial> = planned
        .into_iter()
        .filter(|p| !finished(p))
        .map(|planned| Trial { seconds: length(resolved, &planned.case).as_secs_f64(), planned })
        .collect();
    let seconds = trials.iter().map(|t| t.seconds).sum();
    let dry = DryRun { suite: &suite.name, title: &suite.title, seed, seconds, skipped, trials, document };
    if json {
        return out::json(&dry);
    }
    print(&dry, scaled, drawn)?;
    Ok(Exit::Ok)
}

fn print(dry: &DryRun<'_>, scaled: &[String], drawn: bool) -> Result<(), Failure> {
    output!("{}: {}", dry.suite, dry.title);
    for line in scaled {
        output!("  {line}");
    }
    for line in Skipped::sentences(dry.skipped) {
        output!("  {line}");
    }
    let total = minutes_s(dry.seconds);
    output!("{}, about {total}; nothing was started", counted(dry.trials.len() as u64, "trial"));
    match drawn {
        true => output!("order: random in each run; --seed {} gives this one\n", dry.seed),
        false => output!("order: from seed {}\n", dry.seed),
    }
    let mut rows =
        vec![["trial", "block", "product", "profile", "workload", "load", "takes"].map(str::to_owned).to_vec()];
    for Trial { planned: Planned { trial, block, case }, seconds } in &dry.trials {
        let mut row = vec![trial.to_string(), block.to_string()];
        row.extend([&case.product, &case.profile, &case.workload, &case.load].map(String::clone));
        row.push(format!("{seconds:.1} s"));
        rows.push(row);
    }
    output!("{}", out::columns("rrllllr", usize::MAX, &rows));
    dry.document.map_or(Ok(()), Repeated::print)
}

/// What one trial is expected to take.
fn length(resolved: &ResolvedSuite, case: &CaseId) -> Duration {
    let entry = Entry { product: case.product.clone(), profile: case.profile.clone() };
    let load = resolved.suite.load(&case.load).map(Load::estimated).unwrap_or_default();
    load.saturating_add(overheads(&resolved.products)(&entry))
}

/// A seed to show; it is used only when the user passes it with --seed.
fn random_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos())
}
