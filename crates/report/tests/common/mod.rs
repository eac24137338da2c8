//! A run folder as the lab leaves it, made from the model's types: 6 products x 2 workloads x 2 loads x 3 blocks, with
//! one invalid, one failed and one suspect trial. The same bits every time.

// Each test binary uses a part of this.
#![allow(dead_code, unused_imports)]

mod curves;
mod golden;
mod hostile;
mod large;
mod random;
mod site;
mod trial;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use weir_model::record::{Environment, Finding, Measurement, Severity, TrialError, Verdict};
use weir_model::suite::Suite;

pub use curves::{CONNECTIONS, write_curves};
pub use golden::golden;
pub use hostile::write_hostile;
pub use large::{Size, write_large};
pub use site::{Copy, copy, write_base, write_several};
pub use trial::{Nature, write_trial};

/// Products with what they are like: requests a second at most, median latency, CPU a response.
pub const PRODUCTS: [(&str, &str, Nature); 6] = [
    ("direct", "Direct", Nature { rate: 61_000.0, p50_us: 410.0, spread: 0.25, cpu_us: 0.0, rss_mib: 0.0 }),
    ("alder", "Alder", Nature { rate: 31_400.0, p50_us: 800.0, spread: 0.35, cpu_us: 28.0, rss_mib: 14.0 }),
    ("birch", "Birch Proxy", Nature { rate: 30_900.0, p50_us: 830.0, spread: 0.30, cpu_us: 30.0, rss_mib: 61.0 }),
    ("cedar", "Cedar", Nature { rate: 22_100.0, p50_us: 1_150.0, spread: 0.55, cpu_us: 44.0, rss_mib: 95.0 }),
    ("dogwood", "Dogwood", Nature { rate: 17_300.0, p50_us: 1_420.0, spread: 0.75, cpu_us: 57.0, rss_mib: 180.0 }),
    ("elm", "Elm Gateway", Nature { rate: 6_200.0, p50_us: 4_050.0, spread: 0.9, cpu_us: 160.0, rss_mib: 410.0 }),
];

/// Blocks of the fixture.
pub const BLOCKS: u32 = 3;

/// Seconds of each window.
pub const WINDOW_S: u32 = 8;

/// Writes the whole run.
pub fn write_run(run: &Path) {
    write_blocks(run, BLOCKS, usize::MAX);
}

/// Writes the run as it is after `trials` trials.
pub fn write_blocks(run: &Path, blocks: u32, trials: usize) {
    let suite = suite();
    fs::create_dir_all(run.join("trials")).unwrap();
    fs::write(run.join("run.toml"), suite.to_toml()).unwrap();
    write_json(&run.join("environment.json"), &environment());
    let mut number = 0;
    for block in 1..=blocks {
        for workload in &suite.workloads {
            for load in &suite.loads {
                for (place, (product, _, nature)) in PRODUCTS.iter().enumerate() {
                    number += 1;
                    if number as usize > trials {
                        return;
                    }
                    let entry = &suite.entries[place];
                    assert_eq!(entry.product, *product);
                    let mut measurement = write_trial(run, number, block, entry, workload, load, nature);
                    spoil(&mut measurement);
                    let folder = run.join("trials").join(format!("{number}-{}", measurement.case.slug()));
                    write_json(&folder.join("measurement.json"), &measurement);
                }
            }
        }
    }
}

/// Makes every trial of a run fail.
pub fn fail_all(run: &Path) {
    for folder in fs::read_dir(run.join("trials")).unwrap() {
        let file = folder.unwrap().path().join("measurement.json");
        let mut measurement: Measurement = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        fail(&mut measurement);
        write_json(&file, &measurement);
    }
}

fn fail(measurement: &mut Measurement) {
    measurement.verdict = Verdict::Error;
    measurement.load = None;
    measurement.origin = None;
    measurement.usage.clear();
    measurement.error = Some(TrialError {
        stage: "ready".to_string(),
        message: "did not answer within 10 s".to_string(),
        evidence: "product/output.log:\n  bind: address already in use".to_string(),
        remedy: "see what else listens on that port".to_string(),
    });
}

/// The trials that did not go well.
fn spoil(measurement: &mut Measurement) {
    let case = &measurement.case;
    let at = (case.product.as_str(), case.workload.as_str(), case.load.as_str(), measurement.block);
    match at {
        ("birch", "plain", "max", 2) => {
            measurement.verdict = Verdict::Suspect;
            measurement.findings.push(Finding {
                check: "quiet-steal".to_string(),
                severity: Severity::Warning,
                message: "the hypervisor took 4.1 % of the CPU time of the window".to_string(),
                remedy: "repeat the run when the host is quieter".to_string(),
            });
        }
        ("elm", "plain", "max", 1..=3) => {
            measurement.verdict = Verdict::Invalid;
            measurement.findings.push(Finding {
                check: "conservation-requests".to_string(),
                severity: Severity::Fatal,
                message: "the client sent 52,310 requests and 49,877 reached the origin".to_string(),
                remedy: "switch off the product's cache, or compare it where caches are compared".to_string(),
            });
        }
        ("dogwood", "json", "max", 3) => fail(measurement),
        _ => {}
    }
}

fn environment() -> Environment {
    serde_json::from_str(include_str!("environment.json")).unwrap()
}

/// Writes a value as JSON.
pub fn write_json(file: &Path, value: &impl serde::Serialize) {
    fs::write(file, serde_json::to_vec_pretty(value).unwrap()).unwrap();
}

/// The suite's file read back: what the fixture's `run.toml` must survive.
pub fn parsed(run: &Path) -> Suite {
    parse(&fs::read_to_string(run.join("run.toml")).unwrap())
}

fn parse(suite: &str) -> Suite {
    let profiles = ["stock", "tuned", "as-published-trees"].map(str::to_string);
    let catalogue: BTreeMap<String, Vec<String>> =
        PRODUCTS.iter().map(|(name, ..)| ((*name).to_string(), profiles.to_vec())).collect();
    Suite::parse("run.toml", suite, &catalogue).unwrap()
}

/// Two workloads, a closed and an open load.
pub fn suite() -> Suite {
    parse(include_str!("suite.toml"))
}
