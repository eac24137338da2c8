//! `weir suites show`: prints what a suite measures, its trials and time at each scale, and what cannot run here.
//! Called by `verbs::suites`.

use std::time::Duration;

use serde::Serialize;
use weir_host::placement::allowed_cpus;
use weir_model::Placement;
use weir_model::record::Skipped;
use weir_model::suite::{Scale, Suite, Tls};
use weir_product::catalogue::Catalogue;

use super::describe_load::describe;
use super::matrix::{self, Cell};
use crate::exit::{Exit, Failure, VerbResult};
use crate::progress::minutes;
use crate::select::Select;
use crate::verbs::run::resolve::{ResolvedSuite, SuiteRequest};
use weir_model::text::{count, hanging, wrapped};

/// Width of what is printed.
const WIDTH: usize = 80;

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
    skipped: &'a [Skipped],
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

/// Prints it.
///
/// # Errors
/// What is wrong in the suite or a flag.
pub fn show(catalogue: &Catalogue, name: &str, select: &Select, budget: Option<Duration>, json: bool) -> VerbResult {
    let cores = u32::try_from(Placement::automatic(&allowed_cpus()).proxy.len()).unwrap_or(u32::MAX);
    let request = |scale| SuiteRequest {
        suite: name,
        select,
        scale,
        blocks: None,
        seed: None,
        origin: None,
        objective: None,
        budget: budget.filter(|_| scale == Scale::Fit),
        strict: false,
        cores,
    };
    let suite = selected(catalogue, name, select)?;
    let mut scales = Vec::new();
    let mut skipped: Vec<Skipped> = Vec::new();
    for scale in [Scale::Smoke, Scale::Fit, Scale::Full] {
        let resolved = ResolvedSuite::resolve(&request(scale), catalogue)?;
        for one in &resolved.skipped {
            if !skipped.contains(one) {
                skipped.push(one.clone());
            }
        }
        scales.push(Scaled {
            scale: scale.as_str(),
            trials: resolved.suite.trials(&resolved.skipped),
            seconds: resolved.takes().as_secs_f64().round() as u64,
            scaled: resolved.scaled,
        });
    }
    if json {
        let fit = scales.iter().find(|one| one.scale == Scale::Fit.as_str());
        crate::verbs::print_json(&SuiteDetails {
            name: &suite.name,
            title: &suite.title,
            question: &suite.question,
            blocks: suite.blocks,
            trials: fit.map_or(0, |fit| fit.trials),
            seconds: fit.map_or(0, |fit| fit.seconds),
            matrix: matrix::cells(&suite, &skipped),
            skipped: &skipped,
            toml: suite.to_toml(),
            scales,
        })?;
    } else {
        print(&suite, &scales, &skipped)?;
    }
    Ok(Exit::Ok)
}

/// The suite as written, narrowed by the flags.
fn selected(catalogue: &Catalogue, name: &str, select: &Select) -> Result<Suite, Failure> {
    let only = select.filters().map_err(Failure::input)?;
    crate::library::suite(catalogue, name)?
        .select(select.products.as_deref(), select.profile.as_deref(), &only, catalogue)
        .map_err(Failure::input)
}

fn print(suite: &Suite, scales: &[Scaled], skipped: &[Skipped]) -> Result<(), Failure> {
    output!("{}", wrapped(&format!("{}: {}", suite.name, suite.title), WIDTH, 0));
    output!("{}\n", wrapped(&suite.question, WIDTH, 0));
    output!("products");
    for entry in &suite.entries {
        output!("  {:<22} {}", entry.product, entry.profile);
    }
    output!("workloads");
    let name_width = suite.workloads.iter().map(|workload| workload.name.len()).max().unwrap_or(0);
    for workload in &suite.workloads {
        let request = format!("{} {} {}", workload.protocol.as_str(), workload.request.method, workload.request.path);
        let body = match workload.request.body.len() {
            0 => String::new(),
            size => format!(" with {} bytes", count(size as u64)),
        };
        aligned(&workload.name, name_width, &format!("{request}{body}: {}", workload.title))?;
    }
    if suite.workloads.iter().any(|workload| workload.protocol.is_tls()) {
        output!("TLS\n  {}", tls(suite.tls));
    }
    output!("loads");
    let name_width = suite.loads.iter().map(|load| load.name.len()).max().unwrap_or(0);
    for (number, load) in suite.loads.iter().enumerate() {
        aligned(&format!("{:>2} {:<name_width$}", number + 1, load.name), name_width + 3, &describe(load))?;
    }
    output!("products that each workload runs with, by load");
    for line in matrix::lines(suite, skipped) {
        output!("  {line}");
    }
    for scale in scales {
        let time = minutes(Duration::from_secs(scale.seconds));
        output!("--scale {:<8} {} trials, about {time}", scale.scale, count(scale.trials as u64));
        for line in &scale.scaled {
            output!("{}", hanging("    ", line, WIDTH));
        }
    }
    if !skipped.is_empty() {
        output!("skipped here");
        for sentence in Skipped::sentences(skipped) {
            output!("{}", hanging("  ", sentence.trim_start_matches("left out: "), WIDTH));
        }
    }
    Ok(())
}

/// A name, and text beside it that wraps below itself.
fn aligned(name: &str, name_width: usize, words: &str) -> Result<(), Failure> {
    output!("{}", hanging(&format!("  {name:<name_width$}  "), words, WIDTH));
    Ok(())
}

fn tls(Tls { key, versions: (oldest, newest), resumption }: Tls) -> String {
    let versions = if oldest == newest {
        newest.as_str().to_owned()
    } else {
        format!("{} to {}", oldest.as_str(), newest.as_str())
    };
    format!("{versions}, key {}, {} resumption", key.as_str(), if resumption { "with" } else { "without" })
}
