//! Running a suite, from an empty folder or from where an earlier attempt stopped. `weir run` calls it.
//!
//! The run knows the order of the trials and when to stop. [`crate::trial`] runs one, [`crate::journal`] records it. The run
//! notifies an [`Observer`] of its progress and does not know how that is shown.

mod length;
mod resumed;
mod skip;

pub use crate::progress::{Observer, RunEvent};
pub use length::overhead;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use weir_host::Host;
use weir_host::files::pretty;
use weir_model::Placement;
use weir_model::load::{DriverChoice, LoadNumbers};
use weir_model::product::{Product, ProductKind};
use weir_model::record::{Environment, Finding, Measurement, ProductFacts, Skipped, TrialError, Verdict};
use weir_model::suite::{Entry, Load, LoadKind, RateSpec, Suite};

use crate::hosts::{Hosts, Reach};
use crate::journal::{Journal, JournalError, SetAside};
use crate::kept::{self, KeptProduct};
use crate::plan::{Planned, plan};
use crate::rates::{self, ChosenRate};
use crate::trial::{self, Abort, SharedStart, TrialContext, TrialSpec};
use weir_host::stop::Stop;
use weir_product::launch::{Installed, Launcher};
use weir_product::tls::RunTls;
use weir_vitals::Watched;

/// Everything that a run needs, already checked.
#[derive(Debug)]
pub struct Setup {
    /// The suite after scaling and filtering.
    pub suite: Suite,
    /// Descriptions of what was scaled.
    pub scaled: Vec<String>,
    /// The skipped cases, with reasons.
    pub skipped: Vec<Skipped>,
    /// The run's certificate and TLS settings.
    pub tls: RunTls,
    /// The products of the suite.
    pub products: BTreeMap<String, Product>,
    /// Their installed programs on the proxy's host, by product name.
    pub installed: BTreeMap<String, Installed>,
    /// The same on the origin's host.
    pub origin_installed: BTreeMap<String, Installed>,
    /// The hosts of the roles.
    pub hosts: Hosts,
    /// The topology, as a file that can be read again.
    pub topology: String,
    /// Reaches them again when they are lost.
    pub reach: Box<dyn Reach>,
    /// CPUs of the roles.
    pub placement: Placement,
    /// I/O driver of client and origin.
    pub driver: DriverChoice,
    /// SHA-256 of weir's own binary, which is client and origin, too.
    pub weir_sha256: String,
    /// weir's version, for the record.
    pub weir_version: String,
    /// Findings of `weir doctor`.
    pub doctor: Vec<Finding>,
}

impl Setup {
    /// The suite's seed, or a new one that is short enough to type.
    pub(crate) fn seed(&self) -> u64 {
        self.suite.seed.unwrap_or_else(|| self.hosts.proxy.random() >> 32)
    }
}

/// Name of the file with the run's topology, in its folder.
pub const TOPOLOGY: &str = "topology.toml";

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its folder.
    pub folder: PathBuf,
    /// Trials finished in all.
    pub finished: usize,
    /// Trials planned.
    pub planned: usize,
    /// Trials that ended in an error row.
    pub errors: usize,
    /// A stop was requested.
    pub stopped: bool,
}

/// A run that is ready to execute.
#[derive(Debug)]
pub struct Run {
    journal: Journal,
    context: TrialContext,
    /// Let go after the hosts themselves.
    reach: Box<dyn Reach>,
    suite: Suite,
    plan: Vec<Planned>,
    chosen: Vec<ChosenRate>,
    measured: Vec<Measurement>,
    kept_product: KeptProduct,
}

impl Run {
    /// A new run in a new folder.
    ///
    /// # Errors
    /// When the folder cannot be made or is not empty.
    pub fn create(dir: &Path, setup: Setup) -> Result<Run, JournalError> {
        let seed = setup.seed();
        let suite = Suite { seed: Some(seed), ..setup.suite.clone() };
        let plan = plan(&suite, seed, &setup.skipped);
        let environment = environment(&setup, seed);
        let journal = Journal::create(
            dir,
            &[
                ("environment.json", pretty(&environment)?),
                ("plan.json", pretty(&plan)?),
                (TOPOLOGY, setup.topology.clone().into_bytes()),
                // Last: a folder with this file is a run folder, and has the others.
                ("run.toml", suite.to_toml().into_bytes()),
            ],
            setup.hosts.storage(),
        )?;
        let (context, reach) = context(setup, seed);
        Ok(Run {
            journal,
            context,
            reach,
            suite,
            plan,
            chosen: Vec::new(),
            measured: Vec::new(),
            kept_product: KeptProduct::default(),
        })
    }

    /// An unfinished run in its folder. `setup` has its suite (parsed from its `run.toml`). CPUs and driver are those that the
    /// run began with, whatever `setup` says. Damaged trials, and with `retry_errors` those that failed, are set aside and run again.
    ///
    /// # Errors
    /// When the folder is not a run, is in use or cannot be read, or when the conditions have changed since the run began
    /// ([`JournalError::Changed`]).
    pub fn resume(dir: &Path, mut setup: Setup, retry_errors: bool) -> Result<Run, JournalError> {
        let journal = Journal::open(dir, retry_errors, setup.hosts.storage())?;
        let measured: Vec<Measurement> = journal.finished()?.into_values().collect();
        let plan = resumed::check(&journal, &mut setup, &measured)?;
        let seed = setup.suite.seed.unwrap_or_default();
        let mut chosen = Vec::new();
        for load in &setup.suite.loads {
            chosen.extend(journal.read_json::<Vec<ChosenRate>>(&rates_file(load))?.unwrap_or_default());
        }
        let suite = setup.suite.clone();
        let (context, reach) = context(setup, seed);
        for trial in &measured {
            context.add_speeds(trial);
            context.add_tests(trial);
        }
        Ok(Run { journal, context, reach, suite, plan, chosen, measured, kept_product: KeptProduct::default() })
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        self.journal.dir()
    }

    /// The finished trials that will be run again, and why.
    pub fn set_aside(&self) -> &[SetAside] {
        self.journal.was_set_aside()
    }

    /// Trials planned.
    pub fn planned(&self) -> usize {
        self.plan.len()
    }

    /// Whether every trial is finished.
    pub fn complete(&self) -> bool {
        self.plan.iter().all(|planned| self.has(planned))
    }

    fn has(&self, planned: &Planned) -> bool {
        self.measured.iter().any(|m| m.trial == planned.trial)
    }

    /// Runs every trial that is not finished.
    ///
    /// # Errors
    /// When something cannot be written; all finished trials are safe.
    pub fn execute(mut self, stop: &Stop, observer: &mut dyn Observer) -> Result<Outcome, JournalError> {
        observer.notify(RunEvent::Begin {
            trials: self.plan.len(),
            finished: &self.measured,
            folder: self.journal.dir(),
        });
        let mut stopped = false;
        for planned in self.plan.clone() {
            if self.has(&planned) {
                continue;
            }
            if stop.is_requested() {
                stopped = true;
                break;
            }
            match self.run_trial(&planned, stop, observer) {
                Ok(measurement) => self.measured.push(measurement),
                Err(Abort::Stopped) => {
                    stopped = true;
                    break;
                }
                Err(Abort::Journal(error)) => return Err(error),
            }
        }
        Ok(Outcome {
            folder: self.journal.dir().to_owned(),
            finished: self.measured.len(),
            planned: self.plan.len(),
            errors: self.measured.iter().filter(|m| m.verdict == Verdict::Error).count(),
            stopped,
        })
    }

    fn run_trial(&mut self, planned: &Planned, stop: &Stop, observer: &mut dyn Observer) -> Result<Measurement, Abort> {
        let (Some(workload), Some(load)) =
            (self.suite.workload(&planned.case.workload), self.suite.load(&planned.case.load))
        else {
            let path = self.journal.dir().join("plan.json");
            let why = format!("trial {} names a workload or load that run.toml does not have", planned.trial);
            return Err(JournalError::Broken { path, why }.into());
        };
        let (workload, load) = (workload.clone(), load.clone());
        self.choose_rates(&load, observer)?;
        let left = length::left(&self.suite, &self.plan, &self.measured, planned.trial);
        observer.notify(RunEvent::Trial { planned, left });
        let folder = self.journal.trial_folder(&planned.folder())?;
        let rate = rates::rate_for(&self.chosen, &load, &planned.case);
        let unreached = self.context.restore(self.reach.as_mut(), &planned.case.product).err();
        let (unfound, watched) = match self.watched(planned) {
            Ok(watched) => (None, watched),
            Err(error) => (Some(error), None),
        };
        let sharing = kept::sharing(&self.suite, &self.context.products, &self.plan, planned.trial);
        self.kept_product.begin(sharing);
        let chain = load.keep.then(|| self.chain(sharing, planned, &load));
        let (chain, watched_now) = (chain.as_ref(), watched.as_ref());
        let (workload, load) = (&workload, &load);
        let spec = TrialSpec { planned, workload, load, rate, folder: &folder, watched: watched_now, chain };
        let no_use = || skip::reason(&self.measured, &planned.case, load, rate).or_else(|| self.kept_product.broken());
        let result = match unreached.or(unfound).or_else(no_use) {
            Some(error) => Ok(trial::not_tried(&self.context, &spec, error)),
            None => {
                let result = trial::run(&self.context, &spec, &mut self.kept_product.started, stop, observer);
                if let (Ok(measured), Some(chain)) = (&result, chain) {
                    self.kept_product.after(measured, chain.workloads.len());
                }
                result
            }
        };
        let result = result.map(|measured| self.unless_changed(measured, planned, watched.as_ref()));
        let measurement = match result {
            Ok(measurement) => measurement,
            Err(abort) => {
                self.journal.forget(&folder);
                return Err(abort);
            }
        };
        self.journal.finish(&folder, &measurement)?;
        observer.notify(RunEvent::Finished(&measurement));
        Ok(measurement)
    }

    /// The cases that share a start, with the place of one of them.
    fn chain(&self, sharing: &[Planned], planned: &Planned, load: &Load) -> SharedStart {
        let rates = sharing.iter().filter_map(|one| rates::rate_for(&self.chosen, load, &one.case));
        SharedStart {
            most_rate: rates.reduce(f64::max),
            workloads: sharing.iter().filter_map(|one| self.suite.workload(&one.case.workload)).cloned().collect(),
            place: sharing.iter().position(|one| one.trial == planned.trial).map_or(1, |before| before as u32 + 1),
        }
    }

    /// What is watched of a trial's product, if it is served already.
    fn watched(&self, planned: &Planned) -> Result<Option<Watched>, TrialError> {
        let product = self.context.products.get(&planned.case.product).filter(|product| product.served().is_some());
        let watched = product.map(|product| self.reach.watched(product)).transpose().map_err(|error| {
            let message = format!("the pods of {} are not found", planned.case.product);
            let remedy = "correct `namespace` and `selector` of its [served], or leave both out";
            TrialError::new("host", message, error.to_string(), remedy)
        })?;
        Ok(watched.flatten())
    }

    /// A measurement, or its error when other pods served at its end than at its begin: then their CPU was not all counted.
    fn unless_changed(&self, measured: Measurement, planned: &Planned, before: Option<&Watched>) -> Measurement {
        if before.is_none() || measured.error.is_some() {
            return measured;
        }
        match self.watched(planned) {
            Ok(after) if after.as_ref() == before => measured,
            after => {
                let found =
                    after.map_or_else(|error| error.evidence, |after| format!("before {before:?}, after {after:?}"));
                let message = format!("the pods of {} changed in mid-trial", planned.case.product);
                let error = TrialError::new("host", message, found, "keep their number fixed while weir runs");
                Measurement { verdict: Verdict::Error, error: Some(error), ..measured }
            }
        }
    }

    /// Before the first trial of an open load: chooses its rates and records them.
    fn choose_rates(&mut self, load: &Load, observer: &mut dyn Observer) -> Result<(), JournalError> {
        let needed = matches!(&load.kind, LoadKind::Open { rate: RateSpec::Share { .. }, .. });
        if !needed || self.chosen.iter().any(|c| c.load == load.name) {
            return Ok(());
        }
        let products = &self.context.products;
        let is_direct = |name: &str| matches!(products.get(name).map(|p| &p.kind), Some(ProductKind::Direct));
        let chosen = rates::choose(&self.suite, load, &self.measured, &is_direct);
        for one in &chosen {
            observer.notify(RunEvent::Rate(one));
        }
        if !chosen.is_empty() {
            self.journal.write_once(&rates_file(load), &pretty(&chosen)?)?;
        }
        self.chosen.extend(chosen);
        Ok(())
    }
}

/// Name of the file with the rates chosen for an open load.
fn rates_file(load: &Load) -> String {
    format!("rates-{}.json", load.name)
}

pub(crate) fn context(setup: Setup, seed: u64) -> (TrialContext, Box<dyn Reach>) {
    let launcher =
        |host: &Arc<dyn Host>, installed| Launcher { host: Arc::clone(host), tls: setup.tls.clone(), installed };
    let response_key = [(); 2].map(|()| setup.hosts.proxy.random());
    let load_numbers = LoadNumbers::new(setup.hosts.proxy.random() as u16);
    let origin = |product: String| {
        let profile = setup.products.get(&product)?.origin_profile(&setup.suite.name);
        Some(Entry { product, profile })
    };
    let context = TrialContext {
        origin: setup.suite.origin.clone().and_then(origin),
        origin_launcher: launcher(setup.hosts.origin(), setup.origin_installed),
        launcher: launcher(&setup.hosts.proxy, setup.installed),
        hosts: setup.hosts,
        placement: setup.placement,
        driver: setup.driver,
        products: setup.products,
        seed,
        response_key,
        load_numbers,
        speeds: Mutex::default(),
        tests: Mutex::default(),
    };
    (context, setup.reach)
}

pub(crate) fn environment(setup: &Setup, seed: u64) -> Environment {
    let served = |product: &Product| {
        let served = product.served()?;
        Some(ProductFacts {
            name: product.name.clone(),
            title: product.title.clone(),
            version: "not known".to_owned(),
            binary: served.address.clone(),
            sha256: String::new(),
            from: "served already".to_owned(),
            age: None,
        })
    };
    let products = setup
        .installed
        .iter()
        .map(|(name, installed)| ProductFacts {
            name: name.clone(),
            title: setup.products.get(name).map(|p| p.title.clone()).unwrap_or_default(),
            version: installed.version.clone(),
            binary: installed.binary.display().to_string(),
            sha256: installed.sha256.clone(),
            from: installed.from.clone(),
            age: setup.products.get(name).and_then(|product| product.released.age(&installed.version)),
        })
        .chain(setup.products.values().filter_map(served))
        .collect();
    let promise = |entry: &Entry| {
        let promise = setup.products.get(&entry.product)?.profiles.get(&entry.profile)?.promise.clone()?;
        Some((format!("{}:{}", entry.product, entry.profile), promise))
    };
    Environment {
        promises: setup.suite.entries.iter().filter_map(promise).collect(),
        weir_version: setup.weir_version.clone(),
        weir_sha256: setup.weir_sha256.clone(),
        started: setup.hosts.clock().timestamp(),
        placement: setup.placement.clone(),
        products,
        seed,
        scaled: setup.scaled.clone(),
        skipped: setup.skipped.clone(),
        origin: setup.suite.origin.clone(),
        doctor: setup.doctor.clone(),
        hosts: setup.hosts.records(),
        ..setup.hosts.proxy.facts().environment.clone()
    }
}
