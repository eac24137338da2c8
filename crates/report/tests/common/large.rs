//! A run of very many trials: what is in them matters less than how many there are.

use std::fs;
use std::path::Path;

use weir_model::record::Measurement;
use weir_model::suite::{Entry, Suite, Workload};

use super::{Nature, environment, suite, write_json, write_trial};

/// How large.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Products, the direct path not counted.
    pub products: u32,
    /// Workloads.
    pub workloads: u32,
    /// Blocks.
    pub blocks: u32,
}

impl Size {
    /// Trials in all: each product and the direct path, under two loads.
    pub fn trials(self) -> u32 {
        (self.products + 1) * self.workloads * 2 * self.blocks
    }
}

/// A trial that was drawn, and its files by name.
type Pattern = (Measurement, Vec<(&'static str, Vec<u8>)>);

/// Writes it. Every trial has the files of one that was drawn, and figures of its own.
pub fn write_large(run: &Path, size: Size) {
    let suite = large_suite(size);
    fs::create_dir_all(run.join("trials")).unwrap();
    fs::write(run.join("run.toml"), suite.to_toml()).unwrap();
    write_json(&run.join("environment.json"), &environment());
    let drawn = tempfile::tempdir().unwrap();
    let nature = Nature { rate: 20_000.0, p50_us: 700.0, spread: 0.4, cpu_us: 40.0, rss_mib: 60.0 };
    let patterns: Vec<Pattern> = suite
        .loads
        .iter()
        .map(|load| {
            let measurement = write_trial(drawn.path(), 1, 1, &suite.entries[1], &suite.workloads[0], load, &nature);
            let folder = drawn.path().join(format!("trials/1-{}", measurement.case.slug()));
            let files = ["latency.hlog", "load.csv", "resources.csv"];
            (measurement, files.map(|name| (name, fs::read(folder.join(name)).unwrap())).into())
        })
        .collect();
    let mut number = 0;
    for block in 1..=size.blocks {
        for workload in &suite.workloads {
            for (load, (pattern, files)) in suite.loads.iter().zip(&patterns) {
                for (place, entry) in suite.entries.iter().enumerate() {
                    number += 1;
                    let mut measurement = pattern.clone();
                    measurement.trial = number;
                    measurement.block = block;
                    measurement.case.product = entry.product.clone();
                    measurement.case.profile = entry.profile.clone();
                    measurement.case.workload = workload.name.clone();
                    measurement.case.load = load.name.clone();
                    let figures = measurement.load.as_mut().unwrap();
                    let factor = 1.0 / (1.0 + place as f64 / 10.0) + f64::from(number % 7) / 500.0;
                    figures.rate *= factor;
                    figures.window.successful_in_window = (figures.rate * figures.window_s) as u64;
                    figures.latency.p50_us /= factor;
                    figures.latency.p99_us /= factor;
                    let folder = run.join("trials").join(format!("{number}-{}", measurement.case.slug()));
                    fs::create_dir(&folder).unwrap();
                    for (name, bytes) in files {
                        fs::write(folder.join(name), bytes).unwrap();
                    }
                    fs::write(folder.join("measurement.json"), serde_json::to_vec(&measurement).unwrap()).unwrap();
                }
            }
        }
    }
}

fn large_suite(size: Size) -> Suite {
    let small = suite();
    let direct = Entry { product: "direct".to_string(), profile: "stock".to_string() };
    let product = |n: u32| Entry { product: format!("product-{n}"), profile: "tuned".to_string() };
    let workload = |n: u32| Workload {
        name: format!("work-{n}"),
        title: format!("Kind {n} of response"),
        ..small.workloads[0].clone()
    };
    Suite {
        title: "Very many trials".to_string(),
        blocks: size.blocks,
        entries: std::iter::once(direct).chain((1..=size.products).map(product)).collect(),
        workloads: (1..=size.workloads).map(workload).collect(),
        ..small
    }
}
