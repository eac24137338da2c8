//! The life of one trial: choose ports, start, wait until ready, verify, measure each point, settle, audit, stop.
//! [`crate::run`] calls it.
//!
//! Whatever goes wrong becomes an `error` row with stage, message, evidence and remedy. Only a requested stop and a file that
//! cannot be written (a full disk) end the run. Everything started here is ended here on every path, by drop.
//!
//! This module does not know which trials there are, nor what their numbers mean.

mod access_log;
mod case_tests;
mod changes;
mod clients;
mod connections;
mod faults;
mod measure;
mod origin;
mod points;
mod running_load;
mod search;
mod series;
mod served;
mod side;
mod spec;
mod stack;
mod warm;
mod windows;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_model::Placement;
use weir_model::case_tests::CaseTests;
use weir_model::load::{DriverChoice, LoadNumbers};
use weir_model::product::Product;
use weir_model::record::{CaseId, Finding, MEASUREMENT_SCHEMA, Measurement, Point, TrialError, Verdict};
use weir_model::speed::{self, BlockSpeeds};
use weir_model::suite::{Entry, Load, Series, Workload};

use crate::hosts::{Hosts, Reach, path_on_host};
use crate::journal::JournalError;
use crate::plan::Planned;
use crate::progress::{Observer, RunEvent};
use weir_audit as audit;
use weir_host::Host;
use weir_host::files::FileError;
use weir_host::stop::Stop;
use weir_product::failure::Failure;
use weir_product::launch::{Launcher, no_certificate};
use weir_product::requester::Requester;
use weir_product::tls::RunTls;
use weir_vitals::Watched;

pub use clients::report;
pub use points::Part;
use series::RunningTrial;
pub use side::{Side, Slice as SideSlice, measure_pair};
pub use stack::{SharedStart, Stack};

/// What all trials of a run share.
#[derive(Debug)]
pub struct TrialContext {
    /// Starts products, on the proxy's host.
    pub launcher: Launcher,
    /// Starts a product that is the origin, on the origin's host.
    pub origin_launcher: Launcher,
    /// The hosts of the roles.
    pub hosts: Hosts,
    /// CPUs of the roles.
    pub placement: Placement,
    /// I/O driver of client and origin.
    pub driver: DriverChoice,
    /// Products of the run by name.
    pub products: BTreeMap<String, Product>,
    /// The product that is the origin, and its profile; `None` for weir's own.
    pub origin: Option<Entry>,
    /// Seed of the run.
    pub seed: u64,
    /// The key with which origins tag their responses, which products do not know.
    pub response_key: [u64; 2],
    /// Numbers its loads.
    pub load_numbers: LoadNumbers,
    /// How fast the CPUs were, block after block.
    pub speeds: Mutex<BlockSpeeds>,
    /// The tests that were made so far, by case.
    pub tests: Mutex<BTreeMap<CaseId, CaseTests>>,
}

impl TrialContext {
    /// Reaches hosts again that were lost, before a trial of a product. Returns why it cannot be tried.
    pub fn restore(&mut self, reach: &mut dyn Reach, product: &str) -> Result<(), TrialError> {
        let moved = self.hosts.restore(reach, self.products.get(product)).map_err(|(name, error)| {
            let remedy = "see that it runs, and continue with `weir run --resume`";
            TrialError::new("host", format!("the host {name} cannot be reached"), error.to_string(), remedy)
        })?;
        if moved {
            self.placement = self.hosts.placement();
        }
        self.launcher.host = Arc::clone(&self.hosts.proxy);
        self.origin_launcher.host = Arc::clone(self.hosts.origin());
        Ok(())
    }

    /// Adds a trial's readings of how fast the CPUs were. Returns the largest change of its block.
    pub fn add_speeds(&self, measurement: &Measurement) -> Option<speed::Change> {
        let mut speeds = self.speeds.lock().unwrap_or_else(PoisonError::into_inner);
        speeds.add(measurement.block, &measurement.speed);
        speeds.change()
    }

    /// A product of the run, or a failure at this stage.
    fn product(&self, name: &str, stage: &str) -> Result<&Product, Failure> {
        let missing = || Failure::at(stage, format!("no product {name}"), "", "run `weir products list`");
        self.products.get(name).ok_or_else(missing)
    }
}

/// A trial to run.
#[derive(Debug)]
pub struct TrialSpec<'a> {
    /// Number, block, case.
    pub planned: &'a Planned,
    /// The workload of the case.
    pub workload: &'a Workload,
    /// The load of the case.
    pub load: &'a Load,
    /// Requests a second, for open loads.
    pub rate: Option<f64>,
    /// The trial's empty folder, absolute.
    pub folder: &'a Path,
    /// What is watched, on the proxy's host, of a product that is served already, where that is known.
    pub watched: Option<&'a Watched>,
    /// The cases that the product is kept for; `None`: this one alone.
    pub chain: Option<&'a SharedStart>,
}

impl TrialSpec<'_> {
    /// The workloads of all cases that the product is started for.
    fn workloads(&self) -> Vec<&Workload> {
        match self.chain {
            Some(chain) => chain.workloads.iter().collect(),
            None => vec![self.workload],
        }
    }

    /// The highest rate of those cases, requests a second.
    fn most_rate(&self) -> Option<f64> {
        self.chain.map_or(self.rate, |chain| chain.most_rate)
    }
}

/// A trial that is carried out.
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a> {
    /// The parts that all trials of the run share.
    pub context: &'a TrialContext,
    /// What it asks.
    pub spec: &'a TrialSpec<'a>,
    /// The product of its case.
    pub product: &'a Product,
    /// Ends it early.
    pub stop: &'a Stop,
}

impl Trial<'_> {
    /// The TLS that its workload asks for.
    fn tls(&self) -> Result<RunTls, Failure> {
        self.context.launcher.tls.of_workload(self.spec.workload.tls).map_err(no_certificate)
    }
}

/// Why a trial has no measurement, not even an error row.
#[derive(Debug, thiserror::Error)]
pub enum Abort {
    /// A stop was requested.
    #[error("stopped on request")]
    Stopped,
    /// A file could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Runs a trial, with the product that `kept` has, if it has one. What is to be kept for the next trial is in it afterwards: nothing,
/// unless others come after this one in its chain, and product and origin still run.
///
/// # Errors
/// [`Abort`] only; a failed trial is a measurement with an error in it.
pub fn run(
    context: &TrialContext,
    trial: &TrialSpec<'_>,
    kept: &mut Option<Stack>,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Measurement, Abort> {
    let clock = context.hosts.clock();
    let began = clock.now();
    let mut measurement = blank(context, trial);
    let before = context.hosts.read_clocks();
    let first = kept.as_ref().map_or(trial.folder, |started| &started.folder).to_owned();
    let attempted = attempt(context, trial, kept, stop, observer, &mut measurement);
    measurement.clocks = context.hosts.clocks_since(&before);
    // What was measured before a failure is kept.
    match attempted {
        Err(Failure::Stopped) => return Err(Abort::Stopped),
        _ if context.hosts.lost().is_some() => measurement = failed(measurement, lost(&context.hosts)),
        Ok(findings) => {
            conclude(&mut measurement, trial.load, findings, context.hosts.clients_of(trial.load).len());
            context.add_tests(&measurement);
        }
        Err(Failure::Trial(error)) => measurement = failed(measurement, error),
        Err(Failure::File(error)) => return Err(Abort::Journal(error.into())),
    }
    if let Err(error) = bring_back(&context.hosts, trial.folder, &first, kept.is_some()) {
        let remedy = "see that the host can be reached, and that its disk and the one here have room";
        let message = format!("what was written on a host cannot be brought back: {error}");
        measurement = failed(measurement, TrialError::new("host", message, "", remedy));
    }
    measurement.took_s = clock.since(began).as_secs_f64();
    Ok(measurement)
}

/// Brings back what hosts of their own have of a trial. What a product that is kept needs stays there until its last trial, which
/// brings back the folder of the first, too.
fn bring_back(hosts: &Hosts, trial: &Path, first: &Path, kept: bool) -> Result<(), FileError> {
    hosts.bring_back(trial, kept && trial == first)?;
    if kept || trial == first { Ok(()) } else { hosts.bring_back(first, false) }
}

/// The error of a trial in which a host was lost, whatever else failed by that.
fn lost(hosts: &Hosts) -> TrialError {
    let (name, why) = hosts.lost().unwrap_or_default();
    let remedy = "see that it runs and can be reached; the next trial tries it again";
    TrialError::new("host", format!("the host {name} was lost in mid-trial"), why, remedy)
}

/// Fills in the results of the points, which so many clients measured; `findings` are those of the trial as a whole.
fn conclude(m: &mut Measurement, load: &Load, findings: Vec<Finding>, clients: usize) {
    m.findings = points::merged_findings(&m.points);
    m.findings.extend(findings);
    let shortest = m.points.iter().map(|point| point.load.window_s).reduce(f64::min);
    m.findings.extend(shortest.and_then(|window_s| audit::clocks(&m.clocks, clients, window_s)));
    m.verdict = audit::verdict(&m.findings);
    let last = if load.series == Series::Once { m.points.pop() } else { m.points.last().cloned() };
    if let Some(Point { load, origin, usage, owners, access_log, .. }) = last {
        (m.load, m.origin, m.usage, m.owners, m.access_log) = (Some(load), origin, usage, owners, access_log);
    }
}

/// The error row of a trial that was not tried.
pub fn not_tried(context: &TrialContext, trial: &TrialSpec<'_>, error: TrialError) -> Measurement {
    failed(blank(context, trial), error)
}

/// CPUs of the product on all its hosts; 0 where others gave it its own.
fn cores(context: &TrialContext, product: &str) -> u32 {
    match context.products.get(product) {
        Some(product) if product.served().is_some() => 0,
        Some(product) => context.hosts.product_cpus(product, &context.placement) as u32,
        None => context.placement.proxy.len() as u32,
    }
}

fn failed(measurement: Measurement, error: TrialError) -> Measurement {
    Measurement { verdict: Verdict::Error, error: Some(error), ..measurement }
}

fn blank(context: &TrialContext, trial: &TrialSpec<'_>) -> Measurement {
    let installed = context.launcher.installed.get(&trial.planned.case.product);
    Measurement {
        schema: MEASUREMENT_SCHEMA,
        trial: trial.planned.trial,
        block: trial.planned.block,
        case: trial.planned.case.clone(),
        protocol: trial.workload.protocol,
        started: context.hosts.clock().timestamp(),
        product_version: installed.map(|i| i.version.clone()),
        product_sha256: installed.map(|i| i.sha256.clone()),
        cores: cores(context, &trial.planned.case.product),
        ..Measurement::default()
    }
}

/// Everything from the start to the end of product and origin, or what lies between where they are kept. Returns the findings that do
/// not belong to a point.
fn attempt(
    context: &TrialContext,
    trial: &TrialSpec<'_>,
    kept: &mut Option<Stack>,
    stop: &Stop,
    observer: &mut dyn Observer,
    measurement: &mut Measurement,
) -> Result<Vec<Finding>, Failure> {
    let product = context.product(&trial.planned.case.product, "start")?;
    let running = Trial { context, spec: trial, product, stop };
    let started = match kept.take() {
        Some(started) => started,
        None => {
            observer.notify(RunEvent::Stage("starting"));
            Stack::start(&running)?
        }
    };
    measurement.kept = trial.chain.filter(|chain| chain.workloads.len() > 1).map(|chain| started.kept(chain));
    let (mut started, measured) = measure_with(running, started, observer, measurement);
    let goes_on = trial.chain.is_some_and(SharedStart::goes_on) && !matches!(measured, Err(Failure::Stopped));
    if goes_on && started.still_runs(measured.as_ref().err().map(|_| context.hosts.clock())) {
        *kept = Some(started);
        measured?;
        return Ok(findings(context, trial, measurement));
    }
    measured?;
    let mut findings = findings(context, trial, measurement);
    findings.extend(started.stop(product));
    Ok(findings)
}

/// Verifies and measures. What was started comes back, whatever happens.
fn measure_with(
    trial: Trial<'_>,
    mut started: Stack,
    observer: &mut dyn Observer,
    measurement: &mut Measurement,
) -> (Stack, Result<(), Failure>) {
    let (target, expect) = match started.verify(&trial, observer) {
        Ok(verified) => verified,
        Err(failure) => return (started, Err(failure)),
    };
    let mut running_trial = RunningTrial { trial, started, target, expect };
    let measured = case_tests::measure_case(&mut running_trial, observer, measurement);
    (running_trial.started, measured)
}

/// Findings of a trial as a whole.
fn findings(context: &TrialContext, trial: &TrialSpec<'_>, measurement: &Measurement) -> Vec<Finding> {
    let steady = trial.load.steady.unwrap_or_default();
    let never_steady = audit::never_steady(measurement.warmup.as_ref(), steady);
    let change = context.add_speeds(measurement);
    let cpu_speed = change.and_then(|change| audit::cpu_speed(&change, context.hosts.each().len()));
    never_steady.into_iter().chain(cpu_speed).chain(case_tests::findings(trial, measurement)).collect()
}

/// Starts origin and product, and verifies them.
fn set_up<'a>(trial: Trial<'a>, observer: &mut dyn Observer) -> Result<RunningTrial<'a>, Failure> {
    observer.notify(RunEvent::Stage("starting"));
    let mut started = Stack::start(&trial)?;
    let (target, expect) = started.verify(&trial, observer)?;
    Ok(RunningTrial { trial, started, target, expect })
}

/// A process for weir's own requests from a host.
fn requester(host: &Arc<dyn Host>, trial: &Trial<'_>) -> Result<Requester, Failure> {
    let folder = trial.spec.folder;
    let log = path_on_host(host.as_ref(), folder, &folder.join("requester.log"));
    if let Some(folder) = log.parent() {
        host.create_dir(folder)?;
    }
    Requester::start(host, &trial.tls()?, &log)
}

/// The folder, on a client's host, with the certificate that clients show, where they need one.
fn client_folder(host: &dyn Host, trial: &TrialSpec<'_>) -> PathBuf {
    path_on_host(host, trial.folder, &trial.folder.join("client"))
}

/// How long one of weir's own requests may take: as long as a request of the load, but at least 5 s, because the first
/// requests of a product are its slowest. What takes longer would be a timeout in the load, too.
fn request_timeout(load: &Load) -> Duration {
    load.timeout.max(Duration::from_secs(5))
}
