use weir_model::At;
use weir_model::load::{Counts, OfferedRate, Quantiles, Target};
use weir_model::suite::{Expect, Request};
use weir_net::sim::{Link, SimDriver, World};

use super::*;
use script::{Do, Server};
use weir_load::{LoadTasks, load_tasks};

#[path = "../../load/tests/common/script.rs"]
mod script;

/// Runs a load to its end in a world.
fn drive(world: &World, load: LoadTasks<SimDriver>) -> Result<LoadResult, LoadError> {
    let LoadTasks { mut controller, workers } = load;
    for make in workers {
        let driver = world.driver("client");
        let task = make(&driver);
        world.add_task(driver, task);
    }
    loop {
        let now = At { mono_ns: world.now(), unix_ns: world.unix_now() };
        match controller.turn(now, &StopFlag::new(), &mut |_| ())? {
            weir_net::Next::Poll(until) => world.run_to(until.unwrap_or_default()),
            weir_net::Next::Over => return controller.finish(&mut |_| ()),
        }
    }
}

fn order() -> LoadSpec {
    let request = Request { method: "GET".into(), path: "/".into(), headers: vec![], body: vec![] };
    let mut spec = LoadSpec::new(Target::tcp("127.0.0.1:1".parse().unwrap(), "a"), request, Expect::default());
    spec.connections = 64;
    spec.warmup_s = 1.0;
    spec.duration_s = 10.0;
    spec.kind = LoadKind::open(1.0, Arrivals::Poisson);
    spec
}

/// What a target of 10,000/s answers to an order: 1 ms, up to its capacity; above it every request waits a second.
fn respond(spec: &LoadSpec, busy: f64) -> LoadResult {
    let rate = match spec.kind {
        LoadKind::Open { rate: OfferedRate::Constant(rate), .. } => rate,
        _ => 10_000.0,
    };
    let due = (rate * spec.duration_s) as u64;
    let p99_us = if rate > 10_000.0 { 1e6 } else { 1e3 };
    let times = |us: f64| Quantiles { count: due, mean_us: us / 4.0, p99_us: us, ..Quantiles::default() };
    let carried = rate.min(10_000.0);
    LoadResult {
        window_s: spec.duration_s,
        rate: carried,
        window: Counts {
            due,
            sent: due,
            successful: due,
            successful_in_window: (carried * spec.duration_s) as u64,
            ..Counts::default()
        },
        latency: times(p99_us),
        service: times(1e3),
        thread_busy: vec![busy],
        ..LoadResult::default()
    }
}

type Run<'a> = dyn FnMut(&LoadSpec, ProbeKind, &mut dyn FnMut(SearchProgress)) -> Result<LoadResult, LoadError> + 'a;

/// Runs what the test says, on a clock that only waiting moves.
struct Fake<'r, 'a> {
    run: &'r mut Run<'a>,
    now: u64,
}

impl SearchBench for Fake<'_, '_> {
    fn run(
        &mut self,
        spec: &LoadSpec,
        kind: ProbeKind,
        progress: &mut dyn FnMut(SearchProgress),
    ) -> Result<LoadResult, LoadError> {
        (self.run)(spec, kind, progress)
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn sleep(&mut self, time: Duration) {
        self.now += time.as_nanos() as u64;
    }
}

fn search(
    spec: &LoadSpec,
    options: &SearchOptions,
    run: &mut Run<'_>,
) -> (Result<SearchResult, LoadError>, Vec<SearchProgress>) {
    let conditions = Condition::list("p99<5ms, errors<0.1%").unwrap();
    let mut news = Vec::new();
    let stop = StopFlag::new();
    let bench = &mut Fake { run, now: 0 };
    let result = find_max_on(bench, spec, &conditions, options, &stop, &mut |one| news.push(one));
    (result, news)
}

#[test]
fn a_search_is_told_from_its_first_trial_to_its_last() {
    let spec = order();
    let mut orders: Vec<LoadSpec> = Vec::new();
    let (result, news) = search(&spec, &SearchOptions::default(), &mut |spec, _, _| {
        orders.push(spec.clone());
        Ok(respond(spec, 0.5))
    });
    let result = result.unwrap();
    assert_eq!((result.end, result.limit, result.confirmed), (SearchEnd::Found, Some(SearchLimit::Target), true));
    let rate = result.rate.unwrap();
    assert!((9_800.0..=10_000.0).contains(&rate), "{rate}");
    assert_eq!(result.met_up_to, Some(rate));
    assert!(result.failed_from.is_some_and(|failed| failed > 10_000.0 && failed < rate * 1.02));
    assert_eq!(result.sentence(), "above it the conditions are not met");

    // One trial, one order, one beginning and one end in what is told.
    assert_eq!(result.probes.len(), orders.len());
    let begins = news.iter().filter(|one| matches!(one, SearchProgress::Begins { .. })).count();
    let ends: Vec<&Probe> = news
        .iter()
        .filter_map(|one| match one {
            SearchProgress::Ends(probe) => Some(probe),
            _ => None,
        })
        .collect();
    assert_eq!(begins, orders.len());
    assert_eq!(ends, result.probes.iter().collect::<Vec<_>>());

    // The first is closed; all others are open, spaced as ordered, with arrivals of their own.
    assert_eq!((&orders[0].kind, result.probes[0].kind), (&LoadKind::Closed, ProbeKind::Guess));
    assert_eq!((result.probes[0].met, result.probes[0].offered), (None, None));
    for (order, probe) in orders.iter().zip(&result.probes).skip(1) {
        let LoadKind::Open { rate: OfferedRate::Constant(rate), arrivals: Arrivals::Poisson } = order.kind else {
            panic!("{:?}", order.kind)
        };
        assert_eq!(probe.offered, Some(rate));
        assert_eq!(probe.met, Some(rate <= 10_000.0));
        assert_eq!((order.warmup_s, order.connections), (1.0, 64));
    }
    let seeds: std::collections::BTreeSet<u64> = orders.iter().map(|order| order.seed).collect();
    assert_eq!(seeds.len(), orders.len());

    // The last is of full length, and its result is kept.
    let last = result.probes.last().unwrap();
    assert_eq!((last.kind, last.window_s, last.offered), (ProbeKind::Confirm, 10.0, Some(rate)));
    assert_eq!(result.confirmation.as_ref().map(|load| load.window_s), Some(10.0));
    let json = serde_json::to_string(&result).unwrap();
    let read: SearchResult = serde_json::from_str(&json).unwrap();
    assert_eq!((read.rate, read.conditions, read.end), (result.rate, result.conditions, result.end));
    assert_eq!(read.probes.len(), result.probes.len());
}

#[test]
fn a_client_that_is_full_is_named() {
    let (result, _) = search(&order(), &SearchOptions::default(), &mut |spec, _, _| Ok(respond(spec, 0.97)));
    let result = result.unwrap();
    assert_eq!(result.limit, Some(SearchLimit::Client));
    assert_eq!(result.sentence(), "the client was the limit, not the target");
}

#[test]
fn what_a_closed_load_cannot_have_is_skipped() {
    let mut spec = order();
    spec.max_connections = Some(128);
    spec.think = Some(weir_model::load::RandomDuration::Constant { s: 1.0 });
    let (result, _) = search(&spec, &SearchOptions::default(), &mut |spec, _, _| {
        assert_eq!(spec.max_connections, spec.kind.is_open().then_some(128));
        assert_eq!(spec.think, None);
        Ok(respond(spec, 0.5))
    });
    assert!(result.is_ok());
}

#[test]
fn a_stop_ends_it_with_what_was_found() {
    for cut in [true, false] {
        let mut left = 3;
        let (result, _) = search(&order(), &SearchOptions::default(), &mut |spec, _, _| {
            left -= 1;
            match (left, cut) {
                (0.., _) => Ok(respond(spec, 0.5)),
                (_, true) => Ok(LoadResult { cut_short: true, ..respond(spec, 0.5) }),
                (_, false) => Err(LoadError::Stopped),
            }
        });
        let result = result.unwrap();
        assert_eq!((result.end, result.probes.len()), (SearchEnd::CutShort, 3));
        assert!(result.rate.is_some() && !result.confirmed);
    }
}

#[test]
fn a_trial_that_cannot_be_run_is_an_error() {
    let (result, _) =
        search(&order(), &SearchOptions::default(), &mut |_, _, _| Err(LoadError::InvalidSpec("so".into())));
    assert!(matches!(result, Err(LoadError::InvalidSpec(_))));
}

#[test]
fn a_target_that_takes_no_connections_for_a_moment_is_tried_again_unless_it_never_did() {
    let refused = || LoadError::NoConnection {
        target: order().targets[0].address.clone(),
        kind: weir_model::load::ErrorKind::ConnectRefused,
        seconds: 2.0,
        attempts: 5,
        detail: "refused".into(),
    };
    for (refusals, at, successful) in [(1, 3, true), (2, 3, false), (1, 0, false)] {
        let mut runs = 0;
        let (result, _) = search(&order(), &SearchOptions::default(), &mut |spec, _, _| {
            runs += 1;
            if (at + 1..=at + refusals).contains(&runs) { Err(refused()) } else { Ok(respond(spec, 0.5)) }
        });
        assert_eq!(result.is_ok(), successful, "{refusals} refusals from run {at}: {result:?}");
    }
}

#[test]
fn orders_that_make_no_search_are_refused() {
    let spec = order();
    let conditions = Condition::list("p99<5ms").unwrap();
    let plain = SearchOptions::default;
    for (conditions, options, text) in [
        (&conditions[..0], plain(), "needs conditions"),
        (&conditions[..], SearchOptions { tolerance: 0.0, ..plain() }, "tolerance of 0;"),
        (&conditions[..], SearchOptions { tolerance: f64::NAN, ..plain() }, "tolerance of NaN"),
        (&conditions[..], SearchOptions { budget_s: 0.0, ..plain() }, "time of 0 s"),
        (&conditions[..], SearchOptions { ceiling: Some(0.0), ..plain() }, "ceiling of 0 requests"),
        (&conditions[..], SearchOptions { guess: Some(f64::NAN), ..plain() }, "first guess of NaN"),
    ] {
        let error = Search::new(&spec, conditions, &options, 0).err().unwrap().to_string();
        assert!(error.contains(text), "{error}");
    }
}

/// A target that takes 9 ms and a round trip of one for a response carries 400 requests a second over four connections.
#[test]
fn the_limit_of_a_target_that_takes_its_time_is_found() {
    let world = World::new(1);
    world.set_default_link(Link { latency: 500_000, ..Link::default() });
    let server = Server::start(&world, "127.0.0.1:0", None, |_, _| {
        Box::new(|input, _| {
            let end = input.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
            input.drain(..end);
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec();
            Some(vec![Do::Wait(9_000_000), Do::Send(response)])
        })
    });
    let spec = LoadSpec::new(Target::tcp(server.addr, "target.test"), Request::get("/"), Expect::default());
    let spec = LoadSpec { connections: 4, warmup_s: 0.1, duration_s: 0.5, timeout_s: 2.0, ..spec };
    // Above the limit requests wait for a connection, longer from one to the next.
    let conditions = Condition::list("p90<50ms, errors<1%").unwrap();
    let options = SearchOptions { tolerance: 0.1, budget_s: 60.0, ..SearchOptions::default() };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| Some(folder.path().join(name));
    let outputs = Outputs { hlog: path("latency.hlog"), series: path("load.csv") };
    let none = Outputs::default();
    let mut run = |spec: &LoadSpec, kind: ProbeKind, _: &mut dyn FnMut(SearchProgress)| {
        let outputs = if kind == ProbeKind::Confirm { &outputs } else { &none };
        drive(&world, load_tasks(spec, outputs, false, None, 1, world.now())?)
    };
    let bench = &mut Fake { run: &mut run, now: 0 };
    let found = find_max_on(bench, &spec, &conditions, &options, &StopFlag::new(), &mut |_| ()).unwrap();
    assert_eq!((found.probes[0].kind, found.probes[0].carried), (ProbeKind::Guess, 400.0));
    // Half a second over the limit by a tenth makes the last wait for 50 ms.
    let rate = found.rate.unwrap_or_else(|| panic!("{found:?}"));
    assert!((400.0..440.0).contains(&rate), "{found:?}");
    assert_eq!((found.end, found.limit), (SearchEnd::Found, Some(SearchLimit::Target)), "{found:?}");
    assert!(found.met_up_to <= found.rate && found.rate < found.failed_from, "{found:?}");
    // The files are those of the last trial of full length: half a second is one row.
    let rows = std::fs::read_to_string(folder.path().join("load.csv")).unwrap();
    let confirmation = found.confirmation.unwrap();
    let due = rows.lines().nth(1).unwrap().split(',').nth(2).unwrap();
    assert_eq!((rows.lines().count(), due), (2, confirmation.series[0].due.to_string().as_str()), "{rows}");
    assert!(folder.path().join("latency.hlog").metadata().unwrap().len() > 0);
}
