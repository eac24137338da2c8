//! The points of a trial, measured one after another against the same product and the same origin.
//!
//! Each has a client of its own, its own difference of the origin's books, and its own audit.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use weir_model::books::Books;
use weir_model::product::{Product, is_levelled};
use weir_model::record::Point;
use weir_model::suite::{Expect, LoadKind, Series};

use super::failure::Failure;
use super::measure::{Measured, longest, measure, write_files};
use super::points::{PointOrder, meant, part, points};
use super::product::Running;
use super::serving::Serving;
use super::spec::load_spec;
use super::work::Work;
use super::{Bench, Order, Step};
use crate::audit::{self, Evidence};
use crate::role::ClientOrder;
use crate::stop::Stop;

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

/// Measures every point. Those that were measured before one failed are in `done`.
pub fn carry_out(
    scene: &mut Scene<'_>,
    stop: &Stop,
    tell: &mut dyn FnMut(Step<'_>),
    done: &mut Vec<Point>,
) -> Result<(), Failure> {
    for point in points(scene.order.load, scene.order.rate) {
        if let Some(part) = part(scene.order.load, &point) {
            tell(Step::Part(part));
        }
        done.push(scene.one(&point, stop, tell)?);
    }
    Ok(())
}

impl Scene<'_> {
    fn one(&mut self, point: &PointOrder, stop: &Stop, tell: &mut dyn FnMut(Step<'_>)) -> Result<Point, Failure> {
        let folder = point.folder(self.order.folder);
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::Journal(crate::journal::JournalError::Io { path: folder.clone(), error }))?;
        let spec = load_spec(self.bench, self.order, point, self.target, &self.expect)?;
        let most = longest(&spec);
        let before = self.origin.books()?;
        tell(Step::Stage("connecting"));
        let order = ClientOrder::from(spec);
        let work = Work::start(self.bench, &order, &folder, most, &mut self.origin, &mut self.running, stop)?;
        let measured = measure(work, tell)?;
        tell(Step::Stage("settling"));
        let after = if point.point == point.of { settled(&self.origin)? } else { quiet(&self.origin)? };
        let books = before.zip(after).map(|(before, after)| after.since(&before));
        write_files(&folder, &measured.window)?;
        Ok(self.audited(point, measured, books))
    }

    fn audited(&self, point: &PointOrder, measured: Measured, books: Option<Books>) -> Point {
        let Measured { load, window } = measured;
        let load_order = self.order.load;
        let findings = audit::audit(&Evidence {
            load: &load,
            origin: books.as_ref(),
            usage: &window.usage,
            series: &window.series,
            placement: &self.bench.placement,
            connections: point.connections,
            requests: match load_order.kind {
                LoadKind::Count { requests } => Some(requests),
                _ => None,
            },
            meant: meant(load_order),
            proxied: self.running.is_some(),
            caches: self.product.caches,
            protocol: self.order.workload.protocol,
            tls: self.bench.tls.asked(),
            levelled: is_levelled(&self.order.planned.case.profile),
        });
        Point {
            point: point.point,
            offered_rate: load.offered_rate,
            connections: point.connections,
            load,
            origin: books,
            usage: window.usage,
            findings,
        }
    }
}

/// The books when everything that reached the origin is answered, or after a second.
pub fn settled(origin: &Serving) -> Result<Option<Books>, Failure> {
    let deadline = Instant::now() + SETTLES_WITHIN;
    loop {
        let books = origin.books()?;
        let settled = books.as_ref().is_none_or(|books| books.answered >= books.requests);
        if settled || Instant::now() >= deadline {
            return Ok(books);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The books when, besides, nothing more comes: a product may still hold requests that the client has given up, and the
/// next point's books must not have them.
pub fn quiet(origin: &Serving) -> Result<Option<Books>, Failure> {
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

/// Whether the load is measured more than once.
pub fn is_series(series: &Series) -> bool {
    *series != Series::Once
}
