//! `weir suites show`: prints what a suite measures, its trials and time at each scale, and what cannot run here.
//! Called by `verbs::suites`.

use std::time::Duration;

use serde::Serialize;
use weir_host::placement::allowed_cpus;
use weir_model::Placement;
use weir_model::record::Skipped;
use weir_model::suite::{Entry, Scale, Suite, Tls, Workload};
use weir_model::text::{count, wrapped};
use weir_product::catalogue::Catalogue;

use super::describe_load::describe;
use crate::agree;
use crate::args::Select;
use crate::exit::{Exit, Failure, VerbResult};
use crate::out::{self, WIDTH, columns};
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
    let matrix = cells(&suite, &skipped);
    if !json {
        print(&suite, &matrix, &scales, &skipped)?;
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
        matrix,
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

fn print(suite: &Suite, matrix: &[Cell], scales: &[Scaled], skipped: &[Skipped]) -> Result<(), Failure> {
    output!("{}", wrapped(&format!("{}: {}", suite.name, suite.title), WIDTH, 0));
    output!("{}\n", wrapped(&suite.question, WIDTH, 0));
    let products = suite.entries.iter().map(|entry| vec![entry.product.clone(), entry.profile.clone()]);
    section("products", "ll", products.collect())?;
    section("workloads", "ll", suite.workloads.iter().map(workload).collect())?;
    if suite.workloads.iter().any(|workload| workload.protocol.is_tls()) {
        output!("TLS\n  {}", tls(suite.tls));
    }
    // Loads are numbered, because their names are too long for the heads of columns.
    let numbers: Vec<String> = (1..=suite.loads.len()).map(|number| number.to_string()).collect();
    let loads = numbers.iter().zip(&suite.loads).map(|(n, load)| vec![n.clone(), load.name.clone(), describe(load)]);
    section("loads", "rll", loads.collect())?;
    let mut rows = vec![[vec![String::new()], numbers.clone()].concat()];
    for row in matrix.chunks(numbers.len().max(1)) {
        let count = |cell: &Cell| if cell.products.is_empty() { "-".into() } else { cell.products.len().to_string() };
        rows.push(row.iter().take(1).map(|cell| cell.workload.clone()).chain(row.iter().map(count)).collect());
    }
    section("products that each workload runs with, by load", &format!("l{}", "r".repeat(numbers.len())), rows)?;
    for scale in scales {
        let time = minutes(Duration::from_secs(scale.seconds));
        let heading = format!("--scale {:<8} {} trials, about {time}", scale.scale, count(scale.trials as u64));
        section(&heading, "l", scale.scaled.iter().map(|line| vec![line.clone()]).collect())?;
    }
    let sentences = Skipped::sentences(skipped);
    if !sentences.is_empty() {
        let sentences = sentences.iter().map(|line| vec![line.trim_start_matches("left out: ").to_owned()]);
        section("skipped here", "l", sentences.collect())?;
    }
    Ok(())
}

/// A heading, and rows in columns below it.
fn section(heading: &str, align: &str, rows: Vec<Vec<String>>) -> Result<(), Failure> {
    output!("{heading}");
    let rows: Vec<Vec<String>> = rows.into_iter().map(|row| [vec![String::new()], row].concat()).collect();
    if !rows.is_empty() {
        output!("{}", columns(&format!("l{align}"), WIDTH, &rows));
    }
    Ok(())
}

/// Its name, its request and its title.
fn workload(workload: &Workload) -> Vec<String> {
    let request = &workload.request;
    let body = match request.body.len() {
        0 => String::new(),
        size => format!(" with {} bytes", count(size as u64)),
    };
    let asks = match &workload.keyvalue {
        None => format!("{} {}{body}", request.method, request.path),
        Some(keyvalue) => format!("{}, values of {}", keyvalue.operations, keyvalue.value),
    };
    let words = format!("{} {asks}: {}", workload.protocol.as_str(), workload.title);
    vec![workload.name.clone(), words]
}

fn tls(Tls { key, versions: (oldest, newest), resumption, client_certificates }: Tls) -> String {
    let versions = if oldest == newest {
        newest.as_str().to_owned()
    } else {
        format!("{} to {}", oldest.as_str(), newest.as_str())
    };
    let clients = if client_certificates { ", with certificates of clients" } else { "" };
    format!("{versions}, key {}, {} resumption{clients}", key.as_str(), if resumption { "with" } else { "without" })
}
