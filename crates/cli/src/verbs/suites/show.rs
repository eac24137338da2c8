//! `weir suites show`: prints a suite as a file, its trials and time at each scale, and what cannot run here.
//! Called by `verbs::suites`.

use std::time::Duration;

use serde::Serialize;
use weir_host::placement::allowed_cpus;
use weir_model::Placement;
use weir_model::record::Skipped;
use weir_model::suite::{Entry, Scale, Suite};
use weir_model::text::count;
use weir_product::catalogue::Catalogue;

use crate::agree;
use crate::args::Select;
use crate::exit::{Exit, Failure, VerbResult};
use crate::out;
use crate::progress::minutes;
use crate::verbs::run::available::Availability;
use crate::verbs::run::resolve::{ResolvedSuite, SuiteRequest};

#[derive(Debug, Serialize)]
struct SuiteDetails<'a> {
    name: &'a str,
    title: &'a str,
    question: &'a str,
    blocks: u32,
    /// Of the scale `fit`.
    trials: usize,
    seconds: u64,
    matrix: Vec<Cell>,
    scales: Vec<Scaled>,
    skipped: Vec<Skipped>,
    toml: String,
}

/// The suite at a scale, on this machine.
#[derive(Debug, Serialize)]
struct Scaled {
    scale: &'static str,
    trials: usize,
    seconds: u64,
    /// Differences from the suite as written.
    scaled: Vec<String>,
}

/// The products that a workload runs with under a load.
#[derive(Debug, Serialize)]
struct Cell {
    workload: String,
    load: String,
    products: Vec<Entry>,
}

/// Prints it.
///
/// # Errors
/// What is wrong in the suite or a flag.
pub fn show(catalogue: &Catalogue, name: &str, select: &Select, budget: Option<Duration>, json: bool) -> VerbResult {
    let cores = Placement::automatic(&allowed_cpus()).proxy.len();
    let request = |scale| SuiteRequest {
        suite: Some(name.to_owned()),
        as_published: false,
        select: select.clone(),
        scale: Some(scale),
        blocks: None,
        seed: None,
        origin: None,
        objective: None,
        budget: budget.filter(|_| scale == Scale::Fit),
        strict: false,
    };
    // As written, narrowed by the flags.
    let suite = crate::library::suite(catalogue, name)?
        .select(select.products.as_deref(), select.profile.as_deref(), &select.only, catalogue)
        .map_err(Failure::input)?;
    agree::say_unagreed(catalogue, suite.entries.iter().map(|entry| &entry.product));
    let mut scales = Vec::new();
    let (mut skipped, mut available) = (Vec::<Skipped>::new(), Availability::new());
    for scale in [Scale::Smoke, Scale::Fit, Scale::Full] {
        let resolved = ResolvedSuite::resolve(&request(scale), Some(cores), catalogue, &mut available)?;
        scales.push(Scaled {
            scale: scale.as_str(),
            trials: resolved.suite.trials(&resolved.skipped),
            seconds: resolved.takes().as_secs_f64().round() as u64,
            scaled: resolved.scaled,
        });
        for one in resolved.skipped {
            if !skipped.contains(&one) {
                skipped.push(one);
            }
        }
    }
    if !json {
        print(&suite, &scales, &skipped)?;
        return Ok(Exit::Ok);
    }
    let fit = scales.iter().find(|one| one.scale == Scale::Fit.as_str());
    out::json(&SuiteDetails {
        name: &suite.name,
        title: &suite.title,
        question: &suite.question,
        blocks: suite.blocks,
        trials: fit.map_or(0, |fit| fit.trials),
        seconds: fit.map_or(0, |fit| fit.seconds),
        matrix: cells(&suite, &skipped),
        skipped,
        toml: suite.to_toml(),
        scales,
    })
}

/// Every workload under every load, also where no product runs it.
fn cells(suite: &Suite, skipped: &[Skipped]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for workload in &suite.workloads {
        for load in &suite.loads {
            let cases = suite.cases(load, skipped);
            let mine = cases.into_iter().filter(|(one, _)| one.name == workload.name);
            cells.push(Cell {
                workload: workload.name.clone(),
                load: load.name.clone(),
                products: mine.map(|(_, entry)| entry.clone()).collect(),
            });
        }
    }
    cells
}

/// A suite file, with the trials and times of this machine in comments.
fn print(suite: &Suite, scales: &[Scaled], skipped: &[Skipped]) -> Result<(), Failure> {
    output!("{}", suite.to_toml());
    for Scaled { scale, trials, seconds, scaled } in scales {
        let time = minutes(Duration::from_secs(*seconds));
        output!("# --scale {scale}: {} trials, about {time}", count(*trials as u64));
        for line in scaled {
            output!("#   {line}");
        }
    }
    for line in Skipped::sentences(skipped) {
        output!("# {line}");
    }
    Ok(())
}
