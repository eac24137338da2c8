//! Made-up runs of published suites: the same products, cases and loads, small.

use std::fs;
use std::path::Path;

use weir_model::counters::OriginCounters;
use weir_model::load::ErrorKind;
use weir_model::record::{Environment, Measurement, Point, ProductFacts};
use weir_model::suite::{Entry, Load, LoadKind, Series, Suite, Workload};

use crate::common::{Nature, suite, write_json, write_trial};

/// One product under one profile.
#[derive(Clone, Copy)]
pub struct Runner {
    pub product: &'static str,
    pub title: &'static str,
    pub profile: &'static str,
    /// Requests a second.
    pub rate: f64,
    /// Connections to the origin for each request.
    pub connections: f64,
}

/// A made-up run.
pub struct Made {
    pub suite: &'static str,
    pub load: &'static str,
    pub cases: &'static [&'static str],
    pub runners: &'static [Runner],
    /// 0: no series.
    pub rounds: u32,
    pub blocks: u32,
}

/// Writes its folder; `spoil` may change a measurement before it is written.
pub fn write(run: &Path, made: &Made, spoil: &dyn Fn(&mut Measurement)) {
    let suite = suite_of(made);
    fs::create_dir_all(run.join("trials")).unwrap();
    fs::write(run.join("run.toml"), suite.to_toml()).unwrap();
    write_json(&run.join("environment.json"), &environment(made));
    let mut number = 0;
    for block in 1..=made.blocks {
        for workload in &suite.workloads {
            for runner in made.runners {
                if runner.product == "direct" && !direct_is_asked(workload) {
                    continue;
                }
                number += 1;
                let entry = Entry { product: runner.product.to_string(), profile: runner.profile.to_string() };
                let load = &suite.loads[0];
                let mut measurement = write_trial(run, number, block, &entry, workload, load, &nature(runner));
                complete(&mut measurement, runner);
                let folder = run.join("trials").join(format!("{number}-{}", measurement.case.slug()));
                if made.rounds > 0 {
                    points(&mut measurement, &folder, made.rounds);
                }
                spoil(&mut measurement);
                write_json(&folder.join("measurement.json"), &measurement);
            }
        }
    }
}

fn direct_is_asked(workload: &Workload) -> bool {
    !workload.name.starts_with("scenario")
}

fn suite_of(made: &Made) -> Suite {
    let own = suite();
    let series = if made.rounds > 0 { Series::Rounds(made.rounds) } else { Series::Once };
    let load = Load { name: made.load.to_string(), title: "as published".to_string(), series, ..own.loads[0].clone() };
    assert_eq!(load.kind, LoadKind::Closed);
    let workload = |name: &&str| Workload {
        name: (*name).to_string(),
        title: format!("{name} of the document"),
        ..own.workloads[0].clone()
    };
    let entry = |r: &Runner| Entry { product: r.product.to_string(), profile: r.profile.to_string() };
    Suite {
        name: made.suite.to_string(),
        title: format!("The published benchmark {}", made.suite),
        blocks: made.blocks,
        entries: made.runners.iter().map(entry).collect(),
        workloads: made.cases.iter().map(workload).collect(),
        loads: vec![load],
        ..own
    }
}

fn nature(runner: &Runner) -> Nature {
    Nature {
        rate: runner.rate,
        p50_us: 100.0 / runner.rate * 1e6,
        spread: 0.2,
        cpu_us: if runner.product == "direct" { 0.0 } else { 900_000.0 / runner.rate },
        rss_mib: 20.0,
    }
}

fn complete(measurement: &mut Measurement, runner: &Runner) {
    let requests = (runner.rate * 8.0) as u64;
    let connections = (requests as f64 * runner.connections) as u64;
    measurement.origin = Some(OriginCounters {
        requests,
        answered: requests,
        connections_accepted: connections + 1,
        connections_used: connections,
        ..OriginCounters::default()
    });
    let load = measurement.load.as_mut().unwrap();
    load.window.bytes_in = requests * 380;
    load.window.plaintext_in = requests * 350;
    load.window.body_bytes = requests * 64;
}

/// Rounds that warm up: each the last one's numbers, times what it had reached.
fn points(measurement: &mut Measurement, folder: &Path, rounds: u32) {
    let load = measurement.load.clone().unwrap();
    for point in 1..=rounds {
        let warm = 1.0 - 0.5 / f64::from(point);
        let mut own = load.clone();
        own.rate *= warm;
        own.window.successful_in_window = (own.rate * own.window_s) as u64;
        if point == 1 {
            own.window.errors.insert(ErrorKind::Timeout, 7);
            own.window.statuses.insert(503, 5);
        }
        measurement.points.push(Point {
            point,
            offered_rate: None,
            connections: 200,
            load: own,
            origin: measurement.origin.clone(),
            usage: measurement.usage.clone(),
            owners: Vec::new(),
            findings: Vec::new(),
            access_log: None,
        });
        // The last point's files are the trial's own.
        if point < rounds {
            let own = folder.join(format!("point-{point}"));
            fs::create_dir_all(&own).unwrap();
            for file in ["latency.hlog", "resources.csv"] {
                fs::copy(folder.join(file), own.join(file)).unwrap();
            }
        }
    }
    measurement.load = measurement.points.last().map(|point| point.load.clone());
}

fn environment(made: &Made) -> Environment {
    let mut products: Vec<ProductFacts> = Vec::new();
    for runner in made.runners {
        if !products.iter().any(|known| known.name == runner.product) {
            products.push(ProductFacts {
                name: runner.product.to_string(),
                title: runner.title.to_string(),
                version: "1.2.3".to_string(),
                ..ProductFacts::default()
            });
        }
    }
    Environment {
        schema: 1,
        cpus: 2,
        memory_bytes: 8 << 30,
        products,
        scaled: vec!["windows of 8 s instead of 60 s".to_string(), "1 core instead of 4".to_string()],
        ..Environment::default()
    }
}
