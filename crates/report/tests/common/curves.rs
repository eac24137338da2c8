//! A run of everything that is not one window at one setting: a search, a fixed number of requests, and series over rates,
//! connections and rounds; one product under two profiles. Made of formulas, so that what a report says of it is known.

use std::collections::BTreeMap;
use std::path::Path;

use weir_model::condition::Condition;
use weir_model::counters::OriginCounters;
use weir_model::load::{SEARCH_SCHEMA, SearchEnd, SearchLimit, SearchOptions, SearchResult};
use weir_model::record::{Measurement, Point, Role, Warmup};
use weir_model::suite::{Load, LoadKind, Series};

use super::{Nature, environment, parse, write_json, write_trial};

/// Connections of the series over them.
pub const CONNECTIONS: [u32; 6] = [1, 4, 16, 64, 256, 1024];

const DIRECT: Nature = Nature { rate: 60_000.0, p50_us: 200.0, spread: 0.2, cpu_us: 0.0, rss_mib: 0.0 };
const ALDER: Nature = Nature { rate: 30_000.0, p50_us: 400.0, spread: 0.3, cpu_us: 30.0, rss_mib: 20.0 };
const ALDER_SHIPPED: Nature = Nature { rate: 10_000.0, p50_us: 900.0, spread: 0.4, cpu_us: 90.0, rss_mib: 24.0 };
const CEDAR: Nature = Nature { rate: 20_000.0, p50_us: 700.0, spread: 0.5, cpu_us: 45.0, rss_mib: 300.0 };

/// Writes the run.
pub fn write_curves(run: &Path) {
    let suite = parse(include_str!("curves.toml"));
    std::fs::create_dir_all(run.join("trials")).unwrap();
    std::fs::write(run.join("run.toml"), suite.to_toml()).unwrap();
    write_json(&run.join("environment.json"), &environment());
    let mut number = 0;
    for block in 1..=suite.blocks {
        for load in &suite.loads {
            for (entry, nature) in suite.entries.iter().zip([DIRECT, ALDER_SHIPPED, ALDER, CEDAR]) {
                number += 1;
                let workload = &suite.workloads[0];
                let mut measurement = write_trial(run, number, block, entry, workload, load, &nature);
                shape(&mut measurement, load, &nature, f64::from(block));
                let folder = run.join("trials").join(format!("{number}-{}", measurement.case.slug()));
                for point in 1..measurement.points.len() {
                    let own = folder.join(format!("point-{point}"));
                    std::fs::create_dir(&own).unwrap();
                    std::fs::copy(folder.join("resources.csv"), own.join("resources.csv")).unwrap();
                }
                write_json(&folder.join("measurement.json"), &measurement);
            }
        }
    }
}

fn shape(measurement: &mut Measurement, load: &Load, nature: &Nature, block: f64) {
    // Blocks differ by half a per cent, so that intervals have a length.
    let drift = 1.0 + (block - 2.0) * 0.005;
    let direct = measurement.case.product == "direct";
    if !direct {
        measurement.origin = Some(counters(&measurement.case.product));
    }
    if load.steady.is_some() && !direct {
        let steady = measurement.case.product != "cedar" || block < 2.0;
        measurement.warmup = Some(Warmup { seconds: if steady { 3.0 + block } else { 20.0 }, steady });
    }
    let offered = |share: f64| share * 25_000.0;
    let points: Vec<Point> = match &load.series {
        Series::Once => Vec::new(),
        Series::Rounds(rounds) => (1..=*rounds)
            .map(|round| {
                point(measurement, nature, None, 64, nature.rate * drift * (1.0 - 0.5 / f64::from(round * round)))
            })
            .collect(),
        Series::Shares(shares) => shares
            .iter()
            .map(|share| {
                point(measurement, nature, Some(offered(*share)), 64, offered(*share).min(nature.rate * drift))
            })
            .collect(),
        Series::Connections(counts) => counts
            .iter()
            .map(|n| point(measurement, nature, None, *n, nature.rate * drift * f64::from(*n) / (f64::from(*n) + 12.0)))
            .collect(),
    };
    if let Some(last) = points.last() {
        measurement.load = Some(last.load.clone());
        measurement.usage = last.usage.clone();
    }
    measurement.points = points.into_iter().zip(1..).map(|(point, n)| Point { point: n, ..point }).collect();
    let window_start_ms = measurement.load.as_ref().map_or(0, |load| load.window_start_ms);
    for point in &mut measurement.points {
        point.load.window_start_ms = window_start_ms + u64::from(point.point) * 10_000;
    }
    if let LoadKind::Search { objective } = &load.kind {
        measurement.search = Some(search(objective, nature.rate * drift * 0.9, block));
    }
    if let (LoadKind::Count { requests }, Some(load)) = (&load.kind, &mut measurement.load) {
        load.window_s = *requests as f64 / load.rate;
        load.window.successful_in_window = *requests;
    }
}

fn point(of: &Measurement, nature: &Nature, offered: Option<f64>, connections: u32, rate: f64) -> Point {
    let mut load = of.load.clone().unwrap();
    let busy = (offered.unwrap_or(rate) / nature.rate).min(2.0);
    // A queue: short until nearly all is used, then as long as the client waits.
    let wait = if busy < 0.99 { 1.0 / (1.0 - busy) } else { 2_000.0 * busy };
    load.latency.p50_us = nature.p50_us * (1.0 + 0.1 * wait);
    load.latency.p99_us = nature.p50_us * (2.0 + wait);
    load.latency.p999_us = nature.p50_us * (3.0 + 2.0 * wait);
    load.rate = rate;
    load.offered_rate = offered;
    load.most_open = connections;
    load.window.successful_in_window = (rate * load.window_s) as u64;
    let mut usage = of.usage.clone();
    for role in usage.iter_mut().filter(|usage| usage.role == Role::Proxy) {
        role.cpu_user_us = (load.window.successful_in_window as f64 * nature.cpu_us * 0.4) as u64;
        role.cpu_system_us = (load.window.successful_in_window as f64 * nature.cpu_us * 0.6) as u64;
        role.pss_max_bytes = Some(role.rss_max_bytes - 1_000_000);
    }
    Point { offered_rate: offered, connections, load, usage, ..Point::default() }
}

/// One product speaks HTTP/2 with the origin, the other HTTP/1.1.
fn counters(product: &str) -> OriginCounters {
    let version = if product == "cedar" { "HTTP/2" } else { "HTTP/1.1" };
    OriginCounters {
        requests: 10_000,
        versions: BTreeMap::from([(version.to_string(), 10_000)]),
        ..OriginCounters::default()
    }
}

fn search(conditions: &[Condition], rate: f64, block: f64) -> SearchResult {
    SearchResult {
        schema: SEARCH_SCHEMA,
        conditions: conditions.to_vec(),
        options: SearchOptions::default(),
        end: SearchEnd::Found,
        rate: Some(rate),
        confirmed: block < 3.0,
        met_up_to: Some(rate),
        failed_from: Some(rate * 1.02),
        limit: Some(SearchLimit::Target),
        probes: Vec::new(),
        seconds: 40.0,
        confirmation: None,
    }
}
