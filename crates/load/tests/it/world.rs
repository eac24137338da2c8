//! Loads in a simulated world, whose links take half a millisecond each way: a response comes [`ROUND_TRIP`] after its request at the
//! earliest, and all times are exact. It does not know servers.

use std::time::Duration;

use weir_load::{
    Controller, LoadError, LoadTasks, Outputs, Progress, StopFlag, add_preload, check_preload, load_tasks, preload_spec,
};
use weir_model::At;
use weir_model::counters::OriginCounters;
use weir_model::load::{
    Counts, ErrorKind, ErrorReason, LoadResult, LoadSecond, LoadSpec, OfferedRate, Quantiles, Target,
};
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};
use weir_net::sim::{Link, NodeOptions, SimDriver, World};
use weir_net::{Driver, Next};
use weir_origin::{Options, OriginHandle, OriginTasks};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;
pub const ROUND_TRIP: u64 = MS;

pub fn world() -> World {
    let world = World::new(1);
    world.set_default_link(Link { latency: ROUND_TRIP / 2, ..Link::default() });
    world
}

/// A GET over four connections, with a timeout of two seconds.
pub fn order(addr: std::net::SocketAddr, kind: LoadKind<OfferedRate>) -> LoadSpec {
    let target = Target::tcp(addr, "localhost");
    LoadSpec { kind, connections: 4, timeout_s: 2.0, ..LoadSpec::new(target, Request::get("/"), Expect::default()) }
}

pub fn constant(rate: f64) -> LoadKind<OfferedRate> {
    LoadKind::open(rate, Arrivals::Constant)
}

pub fn counted(requests: u64) -> LoadKind<OfferedRate> {
    LoadKind::Count { requests }
}

/// Receives the reports of a load.
pub type See<'s> = &'s mut dyn FnMut(Progress);

/// Runs a load to its end, and sees that it balances.
pub fn load(world: &World, spec: &LoadSpec) -> Result<LoadResult, LoadError> {
    load_with(world, spec, &Outputs::default(), &StopFlag::new(), &mut |_| ())
}

/// The same as the caller of [`weir_load::run()`] has it.
pub fn load_with(
    world: &World,
    spec: &LoadSpec,
    outputs: &Outputs,
    stop: &StopFlag,
    progress: See<'_>,
) -> Result<LoadResult, LoadError> {
    let begun = world.now();
    let preload = preload(world, spec)?;
    let took = preload.is_some().then(|| Duration::from_nanos(world.now() - begun));
    let mut result = Client::new(world, spec, outputs, took)?.run(world, stop, progress)?;
    if let Some(preload) = preload {
        add_preload(&mut result, preload);
    }
    balanced(&result);
    let most = spec.max_connections.unwrap_or(spec.connections);
    assert!(result.series.iter().all(|row| row.connections_open <= Some(most)), "{:?}", result.series);
    Ok(result)
}

/// Writes the keys that a load begins with.
pub fn preload(world: &World, spec: &LoadSpec) -> Result<Option<LoadResult>, LoadError> {
    let Some(first) = preload_spec(spec) else { return Ok(None) };
    let keys = first.keyvalue.as_ref().and_then(|keyvalue| keyvalue.key_count).unwrap_or_default();
    let client = Client::new(world, &first, &Outputs::default(), None)?;
    let result = client.run(world, &StopFlag::new(), &mut |_| ())?;
    // Of several clients each has a share.
    check_preload(&result, if first.part.is_some() { result.total.due } else { keys }).map(|()| Some(result))
}

/// A load's controller, whose workers are tasks of the world.
pub struct Client {
    pub controller: Controller,
    tasks: Vec<usize>,
}

impl Client {
    /// A load that begins when its connections are up.
    pub fn new(world: &World, spec: &LoadSpec, out: &Outputs, preloaded: Option<Duration>) -> Result<Self, LoadError> {
        let now = world.now();
        Ok(Client::with(world, load_tasks(spec, out, false, preloaded, now, now)?))
    }

    pub fn with(world: &World, load: LoadTasks<SimDriver>) -> Client {
        let add = |make: weir_net::MakeTask<SimDriver>| {
            let driver = world.driver_with("client", roomy());
            let task = make(&driver);
            world.add_task(driver, task)
        };
        Client { controller: load.controller, tasks: load.workers.into_iter().map(add).collect() }
    }

    /// One turn. Returns when the next has to be; the load is over without one.
    pub fn turn(&mut self, world: &World, stop: &StopFlag, see: See<'_>) -> Result<Option<u64>, LoadError> {
        let now = At { mono_ns: world.now(), unix_ns: world.unix_now() };
        match self.controller.turn(now, stop, see) {
            Ok(Next::Poll(until)) => Ok(until),
            Ok(Next::Over) => Ok(None),
            Err(error) => {
                self.tasks.iter().for_each(|task| world.kill(*task));
                // Its connections are closed.
                world.run_to(world.now() + SECOND);
                Err(error)
            }
        }
    }

    pub fn run(mut self, world: &World, stop: &StopFlag, see: See<'_>) -> Result<LoadResult, LoadError> {
        while let Some(until) = self.turn(world, stop, see)? {
            world.run_to(until);
        }
        let result = self.controller.finish(see)?;
        // Its connections are closed.
        world.run_to(world.now() + SECOND);
        assert!(self.tasks.iter().all(|task| world.is_over(*task)), "a worker goes on");
        Ok(result)
    }
}

/// With room for the datagrams that a congestion window lets come at once.
fn roomy() -> NodeOptions {
    NodeOptions { receive_buffer: 8 << 20, ..NodeOptions::default() }
}

/// An origin in a world.
pub struct SimOrigin {
    pub addr: std::net::SocketAddr,
    handle: OriginHandle,
}

impl SimOrigin {
    pub fn start(world: &World, mut options: Options) -> SimOrigin {
        let listen = |addr: std::net::SocketAddr| world.listen(addr, 1_024, true).unwrap();
        // It is bound as long as its workers are not.
        let first = listen(options.listen);
        options.listen = first.address().tcp().unwrap();
        let addr = options.listen;
        let OriginTasks { handle, workers, http3_workers, .. } = OriginTasks::<SimDriver>::new(options).unwrap();
        for make in http3_workers {
            let mut driver = world.driver_with("origin", roomy());
            driver.listen(world.listen_datagrams(addr, true).unwrap()).unwrap();
            let task = make(&driver);
            world.add_task(driver, task);
        }
        for make in workers {
            let mut driver = world.driver("origin");
            driver.listen(listen(addr)).unwrap();
            let task = make(&driver);
            world.add_task(driver, task);
        }
        SimOrigin { addr, handle }
    }

    pub fn counters(&self) -> OriginCounters {
        self.handle.counters()
    }
}

/// What holds of every load, whatever happened to it.
pub fn balanced(result: &LoadResult) {
    for counts in [&result.window, &result.total] {
        assert_eq!(
            counts.due,
            counts.successful + counts.error_count() + counts.unsent,
            "a due request ends once: {counts:?}"
        );
    }
    // Each violation of the protocol and each refusal has its reason.
    use ErrorKind::{Busy, Protocol, Redirected, Refused, StreamReset};
    for kind in [Protocol, StreamReset, Busy, Refused, Redirected] {
        let of = |n: fn(&ErrorReason) -> u64| result.reasons.iter().filter(|r| r.kind == kind).map(n).sum::<u64>();
        let errors = |counts: &Counts| counts.errors.get(&kind).copied().unwrap_or(0);
        let all = [(of(|r| r.window), errors(&result.window)), (of(|r| r.total), errors(&result.total))];
        let known = result.reasons.len() < ErrorReason::MOST;
        assert!(!known || all.iter().all(|(reasons, errors)| reasons == errors), "{all:?} {:?}", result.reasons);
    }
    assert_eq!(result.latency.count, result.window.due, "nothing due is an absence");
    assert_eq!(result.lag.count, result.window.due);
    assert_eq!(result.service.count, result.window.sent);
    let by_status: u64 = result.by_status.values().map(|latency| latency.count).sum();
    assert!(by_status == result.latency.count || result.by_status.is_empty(), "{:?}", result.by_status);
    let sum = |f: fn(&LoadSecond) -> u64| result.series.iter().map(f).sum::<u64>();
    assert_eq!(sum(|row| row.due), result.window.due);
    assert_eq!(sum(|row| row.successful), result.window.successful_in_window);
    assert_eq!(sum(|row| row.bytes_in), result.window.bytes_in);
    assert!(result.tenths.iter().sum::<u64>() <= result.window.successful_in_window);
    let whole = (result.window_s * 10.0 + 1e-6).floor() as usize;
    // Of several clients, until the first was done.
    let part = result.window.due == 0 || !result.hosts.is_empty();
    assert!(result.tenths.len() == whole || part, "{} {}", result.tenths.len(), result.window_s);
    let length: f64 = result.series.iter().map(|row| row.length_s).sum();
    assert!((length - result.window_s).abs() < 1e-6, "{length} {}", result.window_s);
}

pub fn errors(counts: &Counts) -> Vec<(&'static str, u64)> {
    let name = |(kind, n): (&ErrorKind, &u64)| (kind.as_str(), *n);
    counts.errors.iter().map(name).collect()
}

/// The least and the largest of times that a histogram does not tell from this one, nanoseconds: microseconds as results have them.
fn same(nanos: u64) -> [f64; 2] {
    let step = 512_u64 << (64 - nanos.leading_zeros()).saturating_sub(20);
    let least = nanos - nanos % step;
    [least, least + step - 1].map(|nanos| nanos as f64 / 1e3)
}

/// The time of a percentile that is so many nanoseconds.
pub fn us(nanos: u64) -> f64 {
    same(nanos)[1]
}

/// Whether the least, the middle and the longest of these times are those, nanoseconds.
pub fn times(of: &Quantiles, least: u64, middle: u64, longest: u64) {
    assert_eq!([of.min_us, of.p50_us, of.max_us], [same(least)[0], us(middle), us(longest)], "{of:?}");
}
