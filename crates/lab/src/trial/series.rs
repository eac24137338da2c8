//! The points of a trial, measured one after another against the same product and the same origin. [`super::run`] calls it.
//!
//! Each point has its own client, its own difference of the origin's counters, and its own audit.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_model::Condition;
use weir_model::counters::OriginCounters;
use weir_model::gateway::AccessLog;
use weir_model::load::{Cancellation, SearchResult};
use weir_model::product::{ProductKind, is_levelled};
use weir_model::record::{Finding, Measurement, Point, Warmup};
use weir_model::suite::{Expect, Load, LoadKind, Series};
use weir_model::units::Share;

use super::changes::Changes;
use super::faults::Faults;
use super::measure::{Measured, longest, measure, write_files};
use super::origin::RunningOrigin;
use super::points::{PointSpec, part, points, rate_intent};
use super::running_load::{Backend, RunningLoad, Schedule};
use super::spec::{intended_wait_s, load_spec};
use super::stack::{SharedStart, Stack};
use super::{Trial, TrialSpec, connections, cores, search, warm};
use crate::progress::{Observer, RunEvent};
use weir_audit::{self as audit, Evidence};
use weir_host::Clock;
use weir_host::files::FileError;
use weir_host::role::ClientSpec;
use weir_product::failure::Failure;

/// How long the origin may take to answer the last requests after the load has ended.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// How long a product may keep sending requests of an earlier point before the next one begins anyway.
const QUIET_WITHIN: Duration = Duration::from_secs(5);

/// When no request reached the origin for this long, none is left on its way.
const QUIET_FOR: Duration = Duration::from_millis(100);

/// A trial whose processes run and were verified.
#[derive(Debug)]
pub struct RunningTrial<'a> {
    /// The trial.
    pub trial: Trial<'a>,
    /// Origin and product.
    pub started: Stack,
    /// Where the client goes.
    pub target: SocketAddr,
    /// The expected response.
    pub expect: Expect,
}

/// A load that is ready to begin.
#[derive(Debug)]
pub struct Prepared {
    /// What its client does.
    pub client: ClientSpec,
    /// What the origin had counted before.
    pub counters: Option<OriginCounters>,
    /// What was in the product's access log before, if it has one.
    pub access_log: Option<AccessLog>,
    /// Where its files go.
    folder: PathBuf,
}

/// Measures every point. What was measured stays in `measurement` when the trial fails later.
pub fn measure_points(
    running_trial: &mut RunningTrial<'_>,
    observer: &mut dyn Observer,
    measurement: &mut Measurement,
) -> Result<(), Failure> {
    if let Some(most) = running_trial.trial.spec.load.steady {
        measurement.warmup = Some(running_trial.warm_up(most, observer)?);
    }
    running_trial.read_speed(measurement);
    for point in points(running_trial.trial.spec.load, running_trial.trial.spec.rate) {
        if let Some(part) = part(running_trial.trial.spec.load, &point) {
            observer.notify(RunEvent::Part(part));
        }
        if running_trial.trial.spec.load.restart && point.point > 1 {
            let stopped = running_trial.restart(&point, observer)?;
            if let Some(former) = measurement.points.last_mut() {
                former.findings.extend(stopped);
            }
        }
        let mut measured = match &running_trial.trial.spec.load.kind {
            LoadKind::Search { objective } => running_trial.search(&point, objective, observer, measurement)?,
            _ => {
                let folder = point.folder(running_trial.trial.spec.folder);
                running_trial.measure_load(&point, folder, observer)?
            }
        };
        running_trial.read_speed(measurement);
        connections::add(&mut measured.window.series, &measured.load);
        let folder = point.folder(running_trial.trial.spec.folder);
        write_files(&folder, &measured.window, running_trial.trial.context.hosts.storage().as_ref())?;
        measurement.faults = std::mem::take(&mut measured.faults);
        measurement.changes = measured.changes.clone();
        let point = running_trial.audited(&point, measured, measurement.search.as_ref());
        measurement.points.push(point);
    }
    Ok(())
}

impl RunningTrial<'_> {
    /// Reads how fast the CPUs are, between windows.
    fn read_speed(&self, measurement: &mut Measurement) {
        measurement.speed.push(self.trial.context.hosts.speeds(&self.trial.context.placement));
    }

    /// Starts product and origin anew for a point, in a folder of its own. Returns what there is to say of how the former ended.
    fn restart(&mut self, point: &PointSpec, observer: &mut dyn Observer) -> Result<Vec<Finding>, Failure> {
        let stopped = self.started.stop(self.trial.product);
        observer.notify(RunEvent::Stage("starting"));
        // The last point's folder is the trial's own, in which the first start is.
        let folder = self.trial.spec.folder.join(format!("start-{}", point.point));
        let spec = TrialSpec { folder: &folder, ..*self.trial.spec };
        let trial = Trial { spec: &spec, ..self.trial };
        self.started = Stack::start(&trial)?;
        (self.target, self.expect) = self.started.verify(&trial, observer)?;
        Ok(stopped)
    }

    /// Makes a folder of the trial.
    pub fn make_folder(&self, folder: PathBuf) -> Result<PathBuf, Failure> {
        self.trial.context.hosts.storage().create_dir(&folder).map_err(FileError::at(&folder))?;
        Ok(folder)
    }

    /// Makes a load ready, with its files in `folder`.
    pub fn prepare(&self, point: &PointSpec, folder: PathBuf) -> Result<Prepared, Failure> {
        let folder = self.make_folder(folder)?;
        let spec = load_spec(&self.trial, point, self.target, &self.expect)?;
        // The last response of the verification may still be on its way out.
        let counters = settled_counters(&self.started.origin, self.trial.context.hosts.clock().as_ref())?;
        Ok(Prepared { client: ClientSpec::from(spec), counters, access_log: self.access_log()?, folder })
    }

    /// Starts the client of a load that is ready. Nothing is watched yet.
    pub fn connect(&mut self, load: &Prepared) -> Result<RunningLoad<'_>, Failure> {
        let Prepared { client, folder, .. } = load;
        self.start_load(client, folder, longest(&client.spec), Schedule::measured(&client.spec))
    }

    /// What was measured, with what the origin counted and the product logged since `before`, when all is answered.
    pub fn settled(&self, point: &PointSpec, before: Prepared, mut measured: Measured) -> Result<Measured, Failure> {
        let last = point.point == point.of && !self.trial.spec.chain.is_some_and(SharedStart::goes_on);
        let (origin, clock) = (&self.started.origin, self.trial.context.hosts.clock());
        let counters = if last { settled_counters } else { quiet_counters };
        let after = counters(origin, clock.as_ref())?;
        let mut counters = before.counters.zip(after).map(|(before, after)| after.since(&before));
        let ended = counters.as_mut().map(|counters| std::mem::take(&mut counters.ended_early));
        if let Some(messages) = &mut measured.load.messages {
            let cancelled = std::mem::take(&mut messages.cancelled_at);
            let ended = ended.filter(|_| !cancelled.is_empty() && self.trial.context.hosts.one_clock());
            messages.cancellation = ended.map(|ended| Cancellation::of(&cancelled, &ended));
        }
        let access_log = match before.access_log {
            Some(before) => self.access_log_since(before, &measured.load)?,
            None => None,
        };
        Ok(Measured { counters, access_log, ..measured })
    }

    /// Starts a client in `folder`, which may take `most`. Nothing is watched yet.
    pub fn start_load(
        &mut self,
        spec: &ClientSpec,
        folder: &Path,
        most: Duration,
        schedule: Schedule,
    ) -> Result<RunningLoad<'_>, Failure> {
        let Stack { origin, running, requester, .. } = &mut self.started;
        let backend = Backend { origin, running, requester };
        RunningLoad::start(self.trial, spec, folder, most, schedule, backend)
    }

    /// Warms the product up with the load without its series: at its rate, over all its connections.
    fn warm_up(&mut self, most: Duration, observer: &mut dyn Observer) -> Result<Warmup, Failure> {
        let TrialSpec { load, rate, folder, .. } = *self.trial.spec;
        let folder = self.make_folder(folder.join(warm::FOLDER))?;
        let plain = PointSpec { point: 1, of: 1, rate, connections: load.connections };
        let spec = warm::warmup_spec(load_spec(&self.trial, &plain, self.target, &self.expect)?, most);
        let longest = longest(&spec);
        observer.notify(RunEvent::Stage("warming up until steady"));
        let client = ClientSpec::from(spec);
        let running_load = self.start_load(&client, &folder, longest, Schedule::Unmeasured)?.watch(&[])?;
        let warmup = warm::warm_up(running_load, observer)?;
        // Its last requests must not be in the counters of the measured load.
        quiet_counters(&self.started.origin, self.trial.context.hosts.clock().as_ref())?;
        Ok(warmup)
    }

    /// Measures a load, with its files in `folder`.
    pub fn measure_load(
        &mut self,
        point: &PointSpec,
        folder: PathBuf,
        observer: &mut dyn Observer,
    ) -> Result<Measured, Failure> {
        let prepared = self.prepare(point, folder)?;
        observer.notify(RunEvent::Stage("connecting"));
        let faults = Faults::new(&self.trial.spec.load.faults, self.trial.product)?;
        let changes = Changes::new(self.trial.spec.load);
        let running_load = self.connect(&prepared)?.watch(&[])?;
        let measured = measure(running_load.with(faults, changes), observer)?;
        observer.notify(RunEvent::Stage("settling"));
        self.settled(point, prepared, measured)
    }

    /// Searches for a rate, and measures the trial that confirms it.
    fn search(
        &mut self,
        point: &PointSpec,
        objective: &[Condition],
        observer: &mut dyn Observer,
        measurement: &mut Measurement,
    ) -> Result<Measured, Failure> {
        let folder = self.trial.spec.folder;
        let spec = load_spec(&self.trial, point, self.target, &self.expect)?;
        let search = search::search_spec(self.trial.spec.load, objective);
        let most = search::longest(&search, longest(&spec));
        let client = ClientSpec { search: Some(search), ..spec.into() };
        observer.notify(RunEvent::Stage("searching"));
        let running_load = self.start_load(&client, folder, most, Schedule::ByClient)?.watch(&[])?;
        let found = search::run_search(running_load, observer)?;
        measurement.search = Some(found.result);
        found.confirmed.map_err(Failure::Trial)
    }

    /// The point with what the audit found.
    pub fn audited(&self, point: &PointSpec, measured: Measured, search: Option<&SearchResult>) -> Point {
        let Measured { load, window, counters, access_log, changes, .. } = measured;
        let trial_load = self.trial.spec.load;
        let mut placement = self.trial.context.placement.clone();
        if self.trial.product.served().is_some() {
            // weir's CPUs there are not the product's.
            placement.proxy.clear();
        }
        let findings = audit::audit(&Evidence {
            load: &load,
            origin: counters.as_ref(),
            usage: &window.usage,
            series: &window.series,
            owners: &window.owners,
            hosts: &self.trial.context.hosts.records(),
            vitals_late_s: window.late_s,
            placement: &placement,
            product_cpus: cores(self.trial.context, &self.trial.product.name),
            connections: point.connections,
            close: trial_load.close,
            requests: match trial_load.kind {
                LoadKind::Count { requests } => Some(requests),
                _ => None,
            },
            rate_intent: rate_intent(trial_load),
            warming_round: is_warming_round(trial_load, point),
            search,
            proxied: self.trial.product.kind != ProductKind::Direct,
            caches: self.trial.product.caches,
            store: self.trial.product.store,
            replicates: self.trial.product.replicates,
            by_product: self.trial.spec.workload.by_product,
            gateway: &self.trial.spec.workload.gateway,
            protocol: self.trial.spec.workload.protocol,
            tls: self.trial.spec.workload.tls.unwrap_or(self.trial.context.launcher.tls.settings()),
            levelled: is_levelled(&self.trial.spec.planned.case.profile),
            errors_allowed: self.trial.spec.workload.expect.errors.unwrap_or(Share::THOUSANDTH),
            timeout_s: trial_load.timeout.as_secs_f64(),
            // Origins of others may wait as they like.
            waits_s: intended_wait_s(self.trial.spec).filter(|_| self.trial.context.origin.is_none()),
            faults: !trial_load.faults.is_empty(),
            changes: changes.as_ref(),
            // Lines of slow clients would stand in for missing ones.
            access_log: access_log.as_ref().filter(|_| load.slow_clients.is_empty()),
            idempotent: !matches!(self.trial.spec.workload.request.method.as_str(), "POST" | "PATCH"),
        });
        Point {
            point: point.point,
            offered_rate: load.offered_rate,
            connections: point.connections,
            load,
            origin: counters,
            usage: window.usage,
            owners: window.owners,
            access_log,
            findings,
        }
    }
}

/// Whether the point is not the last round of a product that was not warmed up.
fn is_warming_round(load: &Load, point: &PointSpec) -> bool {
    matches!(load.series, Series::Rounds(_)) && load.steady.is_none() && point.point < point.of
}

/// The counters once everything that reached the origin is answered, or after a second.
pub fn settled_counters(origin: &RunningOrigin, clock: &dyn Clock) -> Result<Option<OriginCounters>, Failure> {
    let deadline = clock.now().plus(SETTLES_WITHIN);
    loop {
        let counters = origin.counters()?;
        let settled = counters.as_ref().is_none_or(|counters| counters.answered >= counters.requests);
        if settled || clock.left(deadline).is_zero() {
            return Ok(counters);
        }
        clock.sleep(Duration::from_millis(20));
    }
}

/// The counters once no more requests reach the origin, either. A product may still hold requests that the client has given up,
/// and they must not be in the next point's counters.
pub fn quiet_counters(origin: &RunningOrigin, clock: &dyn Clock) -> Result<Option<OriginCounters>, Failure> {
    let deadline = clock.now().plus(QUIET_WITHIN);
    let mut last = settled_counters(origin, clock)?;
    loop {
        let Some(before) = last else { return Ok(None) };
        clock.sleep(QUIET_FOR);
        last = settled_counters(origin, clock)?;
        let still = last.as_ref().is_some_and(|now| now.requests == before.requests);
        if still || clock.left(deadline).is_zero() {
            return Ok(last);
        }
    }
}
