//! The life of one trial: place, start, ready, verify, measure, settle, stop, audit.
//!
//! Whatever goes wrong becomes an `error` row with stage, message, evidence and remedy; only a wish to stop and a
//! disk that takes no more end the run. Everything started here is ended here, on every path (drop does it).
//!
//! This module does not know which trials there are, nor what their numbers mean.

pub(crate) mod failure;
mod measure;
pub(crate) mod product;
mod scratch;
mod serving;
mod told;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_model::load::{DriverChoice, LoadResult, LoadSecond, LoadSpec, Shape, Target};
use weir_model::product::{Product, ProductKind, is_levelled};
use weir_model::record::{Finding, MEASUREMENT_SCHEMA, Measurement, TrialError};
use weir_model::suite::{Expect, Load, LoadKind, Protocol, Workload};

use crate::audit::{self, Evidence};
use crate::http::Http;
use crate::install::Installed;
use crate::journal::{JournalError, pretty};
use crate::placement::Placement;
use crate::plan::Planned;
use crate::ports;
use crate::stop::Stop;
use crate::tls::RunTls;
use crate::verify;

use failure::Failure;
use measure::Measured;
use product::Running;
use serving::Serving;

/// What all trials of a run share.
#[derive(Debug)]
pub struct Bench {
    /// weir's own binary: client, origin and keeper are it, started again.
    pub weir: PathBuf,
    /// CPUs of the roles.
    pub placement: Placement,
    /// I/O driver of client and origin.
    pub driver: DriverChoice,
    /// The run's certificate, and how TLS is spoken.
    pub tls: RunTls,
    /// Products of the run by name.
    pub products: BTreeMap<String, Product>,
    /// What is installed, by product name; none for `direct`.
    pub installed: BTreeMap<String, Installed>,
    /// The product that is the origin; `None` for weir's own.
    pub origin: Option<String>,
    /// Seed of the run.
    pub seed: u64,
}

/// One trial's order.
#[derive(Debug)]
pub struct Order<'a> {
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
}

/// Why there is no measurement at all, not even an error row.
#[derive(Debug, thiserror::Error)]
pub enum Abort {
    /// Somebody asked to stop.
    #[error("stopped on request")]
    Stopped,
    /// The disk.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// What a trial tells while it runs.
#[derive(Debug)]
pub enum Step<'a> {
    /// A stage begins: `starting`, `verifying`, `connecting`, `warming up`, `measuring`, `settling`.
    Stage(&'static str),
    /// A second of warm-up or window.
    Second(&'a LoadSecond),
}

/// Runs a trial.
///
/// # Errors
/// [`Abort`] only; a failed trial is a measurement with an error in it.
pub fn carry_out(
    bench: &Bench,
    order: &Order<'_>,
    stop: &Stop,
    tell: &mut dyn FnMut(Step<'_>),
) -> Result<Measurement, Abort> {
    let clock = Instant::now();
    let mut measurement = blank(bench, order);
    match attempt(bench, order, stop, tell) {
        Ok(yielded) => yielded.into_measurement(bench, order, &mut measurement),
        Err(Failure::Stopped) => return Err(Abort::Stopped),
        Err(Failure::Trial(error)) => measurement = failed(measurement, error),
        Err(Failure::Journal(error)) => return Err(error.into()),
    }
    measurement.took_s = clock.elapsed().as_secs_f64();
    Ok(measurement)
}

/// A measurement that says only that the trial was not tried, and why.
pub fn not_tried(bench: &Bench, order: &Order<'_>, error: TrialError) -> Measurement {
    failed(blank(bench, order), error)
}

fn failed(measurement: Measurement, error: TrialError) -> Measurement {
    Measurement { verdict: weir_model::record::Verdict::Error, error: Some(error), ..measurement }
}

fn blank(bench: &Bench, order: &Order<'_>) -> Measurement {
    let installed = bench.installed.get(&order.planned.case.product);
    Measurement {
        schema: MEASUREMENT_SCHEMA,
        trial: order.planned.trial,
        block: order.planned.block,
        case: order.planned.case.clone(),
        protocol: order.workload.protocol,
        started: jiff::Timestamp::now().to_string(),
        took_s: 0.0,
        verdict: weir_model::record::Verdict::Valid,
        error: None,
        product_version: installed.map(|i| i.version.clone()),
        product_sha256: installed.map(|i| i.sha256.clone()),
        cores: bench.placement.proxy.len() as u32,
        load: None,
        origin: None,
        usage: Vec::new(),
        findings: Vec::new(),
        points: Vec::new(),
        warmup: None,
        search: None,
    }
}

/// What an attempt that went through has to say.
struct Yielded {
    load: LoadResult,
    origin: Option<weir_model::books::Books>,
    measured: weir_vitals::Window,
    stopped: Vec<Finding>,
    proxied: bool,
    caches: bool,
}

impl Yielded {
    fn into_measurement(self, bench: &Bench, order: &Order<'_>, m: &mut Measurement) {
        m.findings = audit::audit(&Evidence {
            load: &self.load,
            origin: self.origin.as_ref(),
            usage: &self.measured.usage,
            series: &self.measured.series,
            placement: &bench.placement,
            connections: order.load.connections,
            proxied: self.proxied,
            caches: self.caches,
            protocol: order.workload.protocol,
            tls: bench.tls.asked(),
            levelled: is_levelled(&order.planned.case.profile),
        });
        m.findings.extend(self.stopped);
        m.verdict = audit::verdict(&m.findings);
        m.load = Some(self.load);
        m.origin = self.origin;
        m.usage = self.measured.usage;
    }
}

fn attempt(bench: &Bench, order: &Order<'_>, stop: &Stop, tell: &mut dyn FnMut(Step<'_>)) -> Result<Yielded, Failure> {
    let product = bench.products.get(&order.planned.case.product).ok_or_else(|| {
        Failure::at("start", format!("no product {}", order.planned.case.product), "", "run `weir products list`")
    })?;
    let [origin_addr, proxy_addr] = ports::free()
        .map_err(|e| Failure::at("start", e.to_string(), "", "end what holds the ports, or use another machine"))?;

    tell(Step::Stage("starting"));
    // Behind a product the origin is asked in plain HTTP/1.1, whatever the product is asked in.
    let at_origin = match &product.kind {
        ProductKind::Direct => order.workload.protocol,
        ProductKind::Proxy(_) => Protocol::Http11,
    };
    let mut origin = serving::start(bench, order, origin_addr, at_origin, stop)?;
    let mut running = product::start(bench, order, product, origin.addr, proxy_addr, stop)?;
    let target = running.as_ref().map_or(origin.addr, |r| r.addr);
    running_ready(&mut running, product, stop)?;

    tell(Step::Stage("verifying"));
    let expect = verified(bench, order, product, &origin.http, target, &mut running)?;
    let books_before = origin.books()?;

    let spec = load_spec(bench, order, target, expect)?;
    let measured = measure::measure(bench, order, &spec, &mut origin, &mut running, stop, tell)?;

    tell(Step::Stage("settling"));
    let books = match books_before {
        Some(before) => settled_books(&origin)?.map(|after| after.since(&before)),
        None => None,
    };
    let proxied = running.is_some();
    let mut stopped: Vec<Finding> = running.and_then(|r| r.stop(product)).into_iter().collect();
    stopped.extend(origin.stop());
    write_files(order.folder, &measured)?;
    Ok(Yielded {
        load: measured.load,
        origin: books,
        measured: measured.window,
        stopped,
        proxied,
        caches: product.caches,
    })
}

/// How long one request of the lab's own may take: as long as one of the load, and never less than 5 s, because the
/// first requests of a product are its slowest. What takes longer would be a timeout in the load, too.
fn patience(load: &Load) -> Duration {
    load.timeout.max(Duration::from_secs(5))
}

fn running_ready(running: &mut Option<Running>, product: &Product, stop: &Stop) -> Result<(), Failure> {
    match (running, &product.kind) {
        (Some(running), ProductKind::Proxy(program)) => running.wait_ready(program.process.ready_within, stop),
        _ => Ok(()),
    }
}

fn verified(
    bench: &Bench,
    order: &Order<'_>,
    product: &Product,
    to_origin: &Http,
    target: std::net::SocketAddr,
    running: &mut Option<Running>,
) -> Result<Expect, Failure> {
    let (expect, reference) = verify::reference(order.workload, to_origin)
        .map_err(|e| Failure::at("verify", e, "the origin's own answer", "correct the suite's `expect`"))?;
    if let Some(running) = running {
        running.verify_listener()?;
        let speech = product::spoken(bench, order.workload.protocol)?;
        let to_product = Http::speaking(target, patience(order.load), speech);
        verify::product(order.workload, &to_product, &reference).map_err(|e| {
            Failure::at(
                "verify",
                e,
                running.evidence(),
                format!("correct the templates of {}; they are in the trial's folder as rendered", product.title),
            )
        })?;
    }
    Ok(expect)
}

fn load_spec(
    bench: &Bench,
    order: &Order<'_>,
    target: std::net::SocketAddr,
    expect: Expect,
) -> Result<LoadSpec, Failure> {
    let protocol = order.workload.protocol;
    let authority = product::spoken(bench, protocol)?.authority(target);
    let shape = match (&order.load.kind, order.rate) {
        (LoadKind::Open { arrivals, .. }, Some(rate)) => Shape::Open { rate, arrivals: *arrivals },
        _ => Shape::Closed,
    };
    let http = match protocol.is_two() {
        true => weir_model::load::Http::Two { streams: order.load.streams },
        false => weir_model::load::Http::One { pipeline: 1 },
    };
    Ok(LoadSpec {
        shape,
        http,
        tls: protocol.is_tls().then(|| bench.tls.order()),
        connections: order.load.connections,
        threads: (bench.placement.client.len() as u32).min(order.load.connections),
        cpus: bench.placement.client.clone(),
        warmup_s: order.load.warmup.as_secs_f64(),
        duration_s: order.load.duration.as_secs_f64(),
        timeout_s: order.load.timeout.as_secs_f64(),
        // The same arrivals for every product of a block: what is compared is offered alike.
        seed: bench.seed ^ u64::from(order.planned.block),
        driver: bench.driver,
        ..LoadSpec::new(Target::tcp(target, authority), order.workload.request.clone(), expect)
    })
}

/// Reads the books when everything that reached the origin is answered, or after a second.
fn settled_books(origin: &Serving) -> Result<Option<weir_model::books::Books>, Failure> {
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        let books = origin.books()?;
        let settled = books.as_ref().is_none_or(|books| books.answered >= books.requests);
        if settled || Instant::now() >= deadline {
            return Ok(books);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn write_files(folder: &Path, measured: &Measured) -> Result<(), Failure> {
    let path = folder.join("resources.csv");
    let io = |error: std::io::Error| JournalError::Io { path: path.clone(), error };
    let mut writer = csv::Writer::from_path(&path).map_err(|e| io(e.into()))?;
    for row in &measured.window.series {
        writer.serialize(row).map_err(|e| io(e.into()))?;
    }
    writer.flush().map_err(io)?;
    let costs =
        serde_json::json!({ "vitals_cpu_us": measured.window.own_cpu_us, "window_s": measured.window.length_s });
    let path = folder.join("observer.json");
    std::fs::write(&path, pretty(&costs)?).map_err(|error| JournalError::Io { path, error })?;
    Ok(())
}
