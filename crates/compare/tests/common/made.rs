//! Runs made up in memory: a machine that drifts, a direct path and products that drift with it, and noise of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir_compare::ComparedRun;
use weir_model::load::{Counts, LoadResult, Quantiles};
use weir_model::record::{CaseId, Environment, MEASUREMENT_SCHEMA, Measurement, ProductFacts, Role, RoleUsage};
use weir_model::suite::{Protocol, Suite};
use weir_report::run::{Run, Trial};

use crate::random::Random;

/// How a machine and what runs on it vary. Standard deviations of logarithms.
#[derive(Clone, Copy)]
pub struct Noise {
    /// Between whole runs, shared by all.
    pub run: f64,
    /// Slow drift from trial to trial, shared by all.
    pub drift: f64,
    /// Of each trial alone.
    pub own: f64,
    /// Share of trials that something else took up to nine tenths of the machine from.
    pub wild: f64,
    /// Between whole runs, of each product and not of the direct path: no block shows it.
    pub apart: f64,
}

/// What was measured on virtual machines of two cores: runs of the same product some 7 % apart, and blocks as much.
pub const VIRTUAL: Noise = Noise { run: 0.07, drift: 0.05, own: 0.03, wild: 0.0, apart: 0.0 };

/// The same where others compile beside it.
pub const BUSY: Noise = Noise { own: 0.08, wild: 0.1, ..VIRTUAL };

/// A machine of one's own.
pub const QUIET: Noise = Noise { run: 0.02, drift: 0.01, own: 0.01, wild: 0.0, apart: 0.0 };

/// How much of its drift a machine keeps from one trial to the next.
const KEPT: f64 = 0.9;

/// A run to make.
pub struct Made<'a> {
    pub name: &'a str,
    pub products: &'a [&'a str],
    pub workloads: &'a [&'a str],
    pub blocks: u32,
    pub noise: Noise,
    /// Capacity of the first product, 1 being as it was; its CPU time a response goes with it.
    pub speed: f64,
    /// Without the direct path.
    pub no_direct: bool,
}

impl Default for Made<'_> {
    fn default() -> Self {
        let (products, workloads) = (["alder"].as_slice(), ["plain"].as_slice());
        Made { name: "run", products, workloads, blocks: 5, noise: VIRTUAL, speed: 1.0, no_direct: false }
    }
}

impl Made<'_> {
    /// The run of one seed.
    pub fn side(&self, seed: u64) -> ComparedRun {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9));
        let between = self.noise.run * random.normal();
        let mut of_runs = Random(!seed);
        let apart: BTreeMap<&str, f64> =
            self.products.iter().map(|product| (*product, self.noise.apart * of_runs.normal())).collect();
        let mut drift = self.noise.drift * random.normal();
        let mut trials = Vec::new();
        for block in 1..=self.blocks {
            let mut order: Vec<(&str, &str)> = Vec::new();
            for workload in self.workloads {
                order.extend(self.entries().iter().map(|product| (*product, *workload)));
            }
            // In random order, as in a real block.
            for i in (1..order.len()).rev() {
                order.swap(i, (random.share() * (i + 1) as f64) as usize);
            }
            for (product, workload) in order {
                drift = KEPT * drift + (1.0 - KEPT * KEPT).sqrt() * self.noise.drift * random.normal();
                let taken = if random.share() < self.noise.wild { (1.0 - 0.9 * random.share()).ln() } else { 0.0 };
                let apart = apart.get(product).copied().unwrap_or_default();
                let shared = (between + drift + taken + apart, self.noise.own);
                let speed = if self.products.first() == Some(&product) { self.speed } else { 1.0 };
                trials.push(trial(trials.len() as u32 + 1, block, product, workload, shared, speed, &mut random));
            }
        }
        ComparedRun { run: self.run(trials), suite: Some(self.suite()), cpu_of_others: BTreeMap::new() }
    }

    /// Writes the run of one seed as a folder, after `change` of its environment.
    #[allow(dead_code)]
    pub fn write(&self, seed: u64, folder: &Path, change: impl Fn(&mut Environment)) {
        let write = |file: PathBuf, text: String| {
            std::fs::create_dir_all(file.parent().expect("in a folder")).expect("made");
            std::fs::write(file, text).expect("written");
        };
        let side = self.side(seed);
        let mut environment = side.run.environment.expect("made with one");
        change(&mut environment);
        write(folder.join("environment.json"), serde_json::to_string(&environment).expect("JSON"));
        write(folder.join("run.toml"), self.suite().to_toml());
        for Trial { folder: own, measurement } in &side.run.trials {
            write(folder.join(own).join("measurement.json"), serde_json::to_string(measurement).expect("JSON"));
        }
    }

    fn suite(&self) -> Suite {
        let list = |names: &[&str]| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let mut text = format!(
            "[suite]\ntitle = \"t\"\nquestion = \"q\"\nblocks = {}\nproducts = [{}]\nprofile = \"tuned\"\n",
            self.blocks,
            list(&self.entries())
        );
        for workload in self.workloads {
            text += &format!("[[workload]]\nname = \"{workload}\"\ntitle = \"t\"\npath = \"/bytes/64\"\n");
        }
        text += "[[load]]\nname = \"capacity\"\ntitle = \"t\"\nkind = \"closed\"\nconnections = 64\nwarmup = \"1s\"\nduration = \"2s\"\n";
        let catalogue: BTreeMap<String, Vec<String>> =
            self.entries().iter().map(|name| ((*name).to_owned(), vec!["tuned".to_owned()])).collect();
        Suite::parse("trees.toml", &text, &catalogue).expect("a suite")
    }

    fn entries(&self) -> Vec<&str> {
        let direct = (!self.no_direct).then_some("direct");
        direct.into_iter().chain(self.products.iter().copied()).collect()
    }

    fn run(&self, trials: Vec<Trial>) -> Run {
        let facts = |product: &&str| ProductFacts {
            name: (*product).to_owned(),
            title: format!("{}{}", product[..1].to_uppercase(), &product[1..]),
            version: "2.4.1".to_owned(),
            ..ProductFacts::default()
        };
        let environment = Environment {
            schema: 1,
            kernel: "Linux 6.12.0".to_owned(),
            started: "2026-01-02T03:04:05Z".to_owned(),
            products: self.entries().iter().map(facts).collect(),
            ..Environment::default()
        };
        let name = self.name.to_owned();
        // A folder that is not there: no configurations are read.
        let folder = PathBuf::from("/nonexistent").join(&name);
        Run {
            folder,
            name,
            suite: self.suite(),
            part: String::new(),
            trials,
            broken: Vec::new(),
            environment: Some(environment),
        }
    }
}

fn trial(
    number: u32,
    block: u32,
    product: &str,
    workload: &str,
    (shared, own): (f64, f64),
    speed: f64,
    random: &mut Random,
) -> Trial {
    let direct = product == "direct";
    let mut about = |mean: f64, shared: f64, own: f64| mean * (shared + own * random.normal()).exp();
    let rate = about(if direct { 60_000.0 } else { 30_000.0 * speed }, shared, own);
    let (p50, p99) = (about(64e6 / rate, 0.0, own / 3.0), about(150e6 / rate, 0.0, own * 4.0));
    let cpu = about(if direct { 8.0 } else { 28.0 / speed }, -shared, own);
    let answers = 100_000.0;
    let usage = RoleUsage {
        role: if direct { Role::Origin } else { Role::Proxy },
        cpu_user_us: (cpu * answers * 0.4) as u64,
        cpu_system_us: (cpu * answers * 0.6) as u64,
        cores_busy: 1.0,
        rss_max_bytes: about(14.0 * 1_048_576.0, 0.0, 0.01) as u64,
        threads_max: Some(2),
        processes_max: Some(1),
        switches: Some((0, 0)),
        ..RoleUsage::default()
    };
    let window =
        Counts { due: 100_000, sent: 100_000, successful: 100_000, successful_in_window: 100_000, ..Counts::default() };
    let latency = Quantiles { p50_us: p50, p90_us: p99 / 1.5, p99_us: p99, p999_us: p99 * 2.0, ..Quantiles::default() };
    let case = CaseId {
        product: product.to_owned(),
        profile: "tuned".to_owned(),
        workload: workload.to_owned(),
        load: "capacity".to_owned(),
    };
    let measurement = Measurement {
        schema: MEASUREMENT_SCHEMA,
        trial: number,
        block,
        protocol: Protocol::Http11,
        took_s: 1.0,
        cores: 1,
        load: Some(LoadResult { rate, window, latency, window_s: 100_000.0 / rate, ..LoadResult::default() }),
        usage: vec![usage],
        case,
        ..Measurement::default()
    };
    Trial { folder: format!("trials/{number}"), measurement }
}
