//! The points of a trial, measured one after another against the same product and the same origin.
//!
//! Each has a client of its own, its own difference of the origin's counters, and its own audit.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_model::Condition;
use weir_model::counters::OriginCounters;
use weir_model::load::SearchResult;
use weir_model::product::{Product, is_levelled};
use weir_model::record::{Point, Warmup};
use weir_model::suite::{Expect, Load, LoadKind, Series};

use super::measure::{Measured, longest, measure, write_files};
use super::points::{PointOrder, part, points, rate_intent};
use super::serving::Serving;
use super::spec::load_spec;
use super::work::Work;
use super::{Bench, Order, Step, connections, search, warm};
use weir_audit::{self as audit, Evidence};
use weir_host::files::FileError;
use weir_host::role::ClientSpec;
use weir_host::stop::Stop;
use weir_product::failure::Failure;
use weir_product::running::Running;

/// How long what reached the origin may take to be answered, once nobody waits for it any more.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// How long a product may go on with what an earlier point left to it, before the next one begins anyway.
const QUIET_WITHIN: Duration = Duration::from_secs(5);

/// No request reached the origin for so long: what was on its way has come.
const QUIET_FOR: Duration = Duration::from_millis(100);

/// Everything runs and was verified.
#[derive(Debug)]
pub struct Scene<'a> {
    /// What all trials share.
    pub bench: &'a Bench,
    /// The trial's order.
    pub order: &'a Order<'a>,
    /// The product of the case.
    pub product: &'a Product,
    /// The origin.
    pub origin: Serving,
    /// The product's process; `None` for `direct`.
    pub running: Option<Running>,
    /// Where the client goes.
    pub target: SocketAddr,
    /// What a right answer is.
    pub expect: Expect,
}

/// What was measured so far: what there is of it is kept when something fails.
#[derive(Debug, Default)]
pub struct TrialOutput {
    /// The points, in order.
    pub points: Vec<Point>,
    /// How the product was warmed up.
    pub warmup: Option<Warmup>,
    /// What a search did and found.
    pub search: Option<SearchResult>,
}

/// Measures every point.
pub fn carry_out(
    scene: &mut Scene<'_>,
    stop: &Stop,
    tell: &mut dyn FnMut(Step<'_>),
    output: &mut TrialOutput,
) -> Result<(), Failure> {
    if let Some(most) = scene.order.load.steady {
        output.warmup = Some(scene.warm_up(most, stop, tell)?);
    }
    for point in points(scene.order.load, scene.order.rate) {
        if let Some(part) = part(scene.order.load, &point) {
            tell(Step::Part(part));
        }
        let (mut measured, counters) = match &scene.order.load.kind {
            LoadKind::Search { objective } => scene.seek(&point, objective, stop, tell, output)?,
            _ => scene.one(&point, stop, tell)?,
        };
        connections::add(&mut measured.window.series, &measured.load);
        let folder = point.folder(scene.order.folder);
        write_files(&folder, &measured.window)?;
        let point = scene.audited(&point, measured, counters, output.search.as_ref());
        output.points.push(point);
    }
    Ok(())
}

impl Scene<'_> {
    /// Warms the product up with the load as it is without its series: at its rate, over all its connections.
    fn warm_up(&mut self, most: Duration, stop: &Stop, tell: &mut dyn FnMut(Step<'_>)) -> Result<Warmup, Failure> {
        let Order { load, rate, folder, .. } = *self.order;
        let folder = made(folder.join(warm::FOLDER))?;
        let plain = PointOrder { point: 1, of: 1, rate, connections: load.connections };
        let spec = warm::order(load_spec(self.bench, self.order, &plain, self.target, &self.expect)?, most);
        let longest = longest(&spec);
        tell(Step::Stage("warming up until steady"));
        let order = ClientSpec::from(spec);
        let work = Work::start(self.bench, &order, &folder, longest, &mut self.origin, &mut self.running, stop)?;
        let warmup = warm::up(work, tell)?;
        // What is left of it must not be in the counters of what is measured.
        quiet(&self.origin)?;
        Ok(warmup)
    }

    /// Measures a load.
    fn one(
        &mut self,
        point: &PointOrder,
        stop: &Stop,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<(Measured, Option<OriginCounters>), Failure> {
        let folder = made(point.folder(self.order.folder))?;
        let spec = load_spec(self.bench, self.order, point, self.target, &self.expect)?;
        let before = self.origin.counters()?;
        let most = longest(&spec);
        tell(Step::Stage("connecting"));
        let order = ClientSpec::from(spec);
        let work = Work::start(self.bench, &order, &folder, most, &mut self.origin, &mut self.running, stop)?;
        let measured = measure(work, tell)?;
        tell(Step::Stage("settling"));
        let after = if point.point == point.of { settled(&self.origin)? } else { quiet(&self.origin)? };
        Ok((measured, before.zip(after).map(|(before, after)| after.since(&before))))
    }

    /// Searches for a rate, and measures the trial that confirms it.
    fn seek(
        &mut self,
        point: &PointOrder,
        objective: &[Condition],
        stop: &Stop,
        tell: &mut dyn FnMut(Step<'_>),
        output: &mut TrialOutput,
    ) -> Result<(Measured, Option<OriginCounters>), Failure> {
        let folder = self.order.folder;
        let spec = load_spec(self.bench, self.order, point, self.target, &self.expect)?;
        let search = search::order(self.order.load, objective);
        let most = search::longest(&search, longest(&spec));
        let order = ClientSpec { spec, search: Some(search) };
        tell(Step::Stage("searching"));
        let work = Work::start(self.bench, &order, folder, most, &mut self.origin, &mut self.running, stop)?;
        let sought = search::seek(work, tell)?;
        output.search = Some(sought.result);
        sought.confirmed.map_err(Failure::Trial)
    }

    fn audited(
        &self,
        point: &PointOrder,
        measured: Measured,
        counters: Option<OriginCounters>,
        search: Option<&SearchResult>,
    ) -> Point {
        let Measured { load, window } = measured;
        let load_order = self.order.load;
        let findings = audit::audit(&Evidence {
            load: &load,
            origin: counters.as_ref(),
            usage: &window.usage,
            series: &window.series,
            placement: &self.bench.placement,
            connections: point.connections,
            requests: match load_order.kind {
                LoadKind::Count { requests } => Some(requests),
                _ => None,
            },
            rate_intent: rate_intent(load_order),
            coming_to_level: comes_to_level(load_order, point),
            search,
            proxied: self.running.is_some(),
            caches: self.product.caches,
            by_product: self.order.workload.by_product,
            protocol: self.order.workload.protocol,
            tls: self.bench.launcher.tls.asked(),
            levelled: is_levelled(&self.order.planned.case.profile),
        });
        Point {
            point: point.point,
            offered_rate: load.offered_rate,
            connections: point.connections,
            load,
            origin: counters,
            usage: window.usage,
            findings,
        }
    }
}

/// Whether a point is an earlier round of a product that was not warmed up.
fn comes_to_level(load: &Load, point: &PointOrder) -> bool {
    matches!(load.series, Series::Rounds(_)) && load.steady.is_none() && point.point < point.of
}

/// Makes a folder of the trial's.
fn made(folder: PathBuf) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(&folder).map_err(FileError::at(&folder))?;
    Ok(folder)
}

/// The counters when everything that reached the origin is answered, or after a second.
pub fn settled(origin: &Serving) -> Result<Option<OriginCounters>, Failure> {
    let deadline = Instant::now() + SETTLES_WITHIN;
    loop {
        let counters = origin.counters()?;
        let settled = counters.as_ref().is_none_or(|counters| counters.answered >= counters.requests);
        if settled || Instant::now() >= deadline {
            return Ok(counters);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The counters when, besides, nothing more comes: a product may still hold requests that the client has given up, and the
/// next point's counters must not have them.
pub fn quiet(origin: &Serving) -> Result<Option<OriginCounters>, Failure> {
    let deadline = Instant::now() + QUIET_WITHIN;
    let mut last = settled(origin)?;
    loop {
        let Some(before) = last else { return Ok(None) };
        std::thread::sleep(QUIET_FOR);
        last = settled(origin)?;
        let still = last.as_ref().is_some_and(|now| now.requests == before.requests);
        if still || Instant::now() >= deadline {
            return Ok(last);
        }
    }
}
