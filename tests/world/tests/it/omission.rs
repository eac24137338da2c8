//! Coordinated omission, to the nanosecond: an origin or a client that stands still has latencies that can be computed by hand.
//!
//! The model here is a queue: requests are due by a formula, leave in that order as soon as a stream is free, and are responded to at once,
//! or when the freeze ends. It does not know weir-load, of which it computes every number that a result has of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_model::At;
use weir_model::keyvalue::KeyValue;
use weir_model::load::*;
use weir_model::protocol::Protocol::{self, *};
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};
use weir_net::sim::{Link, NodeOptions, World};
use weir_origin::Options;
use weir_wire::tls::{Identity, KeyKind, ServerOptions};
use weir_world::engine::{SimLoad, SimOrigin};
use weir_world::quantiles::{by_hand, numbers};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// When loads start, by the world's clock; the client's machine is older.
const START: u64 = SECOND;
const AGE: u64 = 3_600 * SECOND + 7;

/// How often a client looks whether it stood still.
const SWEEP: u64 = 10 * MS;

const CONNECTIONS: u32 = 4;
const WINDOW: u64 = 4 * SECOND;

#[derive(Debug, Clone)]
struct Case {
    kind: LoadKind<OfferedRate>,
    /// And how many requests a connection may have in flight.
    protocol: (Protocol, u32),
    threads: u32,
    warmup: u64,
    /// Of the link, each way.
    latency: u64,
    /// Since the load's start.
    freeze: (u64, u64),
    /// The client is frozen, not the origin.
    client: bool,
}

const CONSTANT: Case = Case {
    kind: LoadKind::Open { rate: OfferedRate::Constant(1_000.0), arrivals: Arrivals::Constant },
    protocol: (Http11, 1),
    threads: 1,
    warmup: 0,
    latency: 0,
    freeze: (2 * SECOND, 3 * SECOND),
    client: false,
};

impl Case {
    /// Runs it. Returns when the origin was told something since the start, too.
    fn run(&self, connections: u32) -> (LoadResult, Vec<u64>) {
        let world = World::new(1);
        world.set_default_link(Link { latency: self.latency, ..Link::default() });
        let (protocol, streams) = self.protocol;
        let mut options = Options { tls: protocol.is_tls().then(ServerOptions::default), ..Options::default() };
        if protocol.is_keyvalue() {
            options.protocol = protocol;
        }
        if let Some(tls) = &mut options.tls {
            tls.identities.push(Identity::generated(KeyKind::P256).unwrap());
        }
        let origin = SimOrigin::start(&world, options, NodeOptions::default()).unwrap();
        let target = Target::tcp(origin.addresses[0], "localhost");
        let mut spec = LoadSpec {
            protocol: LoadProtocol::of(protocol, 1).in_flight(streams),
            tls: protocol.is_tls().then(TlsSpec::default),
            keyvalue: protocol.is_keyvalue().then(KeyValue::default),
            kind: self.kind.clone(),
            connections,
            threads: self.threads,
            warmup_s: self.warmup as f64 / 1e9,
            duration_s: WINDOW as f64 / 1e9,
            ..LoadSpec::new(target, Request::get("/bytes/128"), Expect::default())
        };
        if let Some(keyvalue) = &spec.keyvalue {
            spec.requests = RequestSpec::operations(&keyvalue.operations);
        }
        // CPU time would be taken off what it stood still.
        let node = NodeOptions { clock_offset: AGE, cpu_per_event: 0, ..NodeOptions::default() };
        let load = SimLoad::start(&world, &spec, &Default::default(), true, node);
        world.run_to(START / 2);
        load.start_at(At { mono_ns: START + AGE, unix_ns: world.unix_now() + START / 2 });
        world.keep_trace();
        let tasks = if self.client { load.tasks() } else { origin.tasks.clone() };
        let until = START + self.freeze.1;
        world.at(START + self.freeze.0, move |world| tasks.iter().for_each(|task| world.freeze(*task, until)));
        assert!(world.run_until(1_000 * SECOND, || load.is_over()), "{self:?}");
        let at = |line: String| line.split_whitespace().next()?.parse::<u64>().ok()?.checked_sub(START);
        let told = world.trace().into_iter().filter(|line| line.contains("origin 0") && line.contains(": data"));
        (load.take_result().unwrap().unwrap(), told.filter_map(at).collect())
    }

    /// When requests of an open load are due, since its start.
    fn due(&self) -> Vec<u64> {
        let LoadKind::Open { rate, arrivals } = &self.kind else { panic!("{self:?}") };
        let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
        let mut due = match rate {
            // The origin is told at once where nothing is frozen and nothing has to wait.
            _ if *arrivals == Arrivals::Poisson => {
                Case { freeze: (0, 0), kind: self.kind.clone(), ..CONSTANT }.run(64).1
            }
            OfferedRate::Constant(rate) => line(*rate, *rate, self.warmup + WINDOW),
            OfferedRate::Ramp { from, to } => line(*from, *to, WINDOW),
            OfferedRate::Replay(all) => all.iter().map(|at_s| nanos(*at_s)).collect(),
            OfferedRate::Recorded(all) => all.iter().map(|due| nanos(due.at_s)).collect(),
            OfferedRate::Steps(..) => panic!("{self:?}"),
        };
        due.retain(|due| *due < self.warmup + WINDOW);
        due
    }

    /// When one of the two acts to which something happens.
    fn acts(&self, client: bool, at: u64) -> u64 {
        if self.client == client && (self.freeze.0..self.freeze.1).contains(&at) { self.freeze.1 } else { at }
    }

    /// When the response to a request that was sent then is seen.
    fn seen(&self, sent: u64) -> u64 {
        self.acts(true, self.acts(false, sent + self.latency) + self.latency)
    }

    fn samples(&self) -> Vec<Sample> {
        let streams = CONNECTIONS * self.protocol.1;
        if self.kind == LoadKind::Closed {
            let times = std::iter::successors(Some(0), |sent| Some(self.seen(*sent)).filter(|seen| *seen < WINDOW));
            let each = times.map(|due| Sample { due, sent: due, seen: self.seen(due), waited: false });
            return each.flat_map(|one| vec![one; streams as usize]).collect();
        }
        let due = self.due();
        let of_thread = |thread| {
            let mut free: BinaryHeap<_> = (0..streams / self.threads).map(|_| Reverse(0)).collect();
            let send = move |due: &u64| {
                let Reverse(since) = free.pop().unwrap();
                let sent = self.acts(true, *due).max(since);
                free.push(Reverse(self.seen(sent)));
                Sample { due: *due, sent, seen: self.seen(sent), waited: since == sent && since > *due }
            };
            due.iter().skip(thread).step_by(self.threads as usize).map(send)
        };
        (0..self.threads as usize).flat_map(of_thread).collect()
    }

    /// Runs it, and compares with what is computed by hand.
    fn check(&self) -> LoadResult {
        let (result, samples) = (self.run(CONNECTIONS).0, self.samples());
        let measured: Vec<Sample> = samples.iter().copied().filter(|one| one.due >= self.warmup).collect();
        let (counts, n) = (&result.window, measured.len() as u64);
        let ended = [counts.due, counts.sent, counts.successful, counts.unsent, counts.error_count(), result.total.due];
        assert_eq!(ended, [n, n, n, 0, 0, samples.len() as u64], "{self:?}");
        let same = |name: &str, got: &Quantiles, value: fn(&Sample) -> u64| {
            assert_eq!(numbers(got), by_hand(measured.iter().map(value)), "{name} of {self:?}");
        };
        same("latency", &result.latency, |one| one.seen - one.due);
        same("service", &result.service, |one| one.seen - one.sent);
        same("first byte", &result.first_byte, |one| one.seen - one.sent);
        same("lag", &result.lag, |one| one.sent - one.due);
        if let Some(own) = &result.lateness {
            same("own lag", &own.lag, |one| if one.waited { 0 } else { one.sent - one.due });
            same("own latency", &own.latency, |one| one.seen - if one.waited { one.due } else { one.sent });
        }
        let row = |second: u32| {
            let from = self.warmup + u64::from(second) * SECOND;
            let inside = |at: u64| (from..from + SECOND).contains(&at);
            let count = |at: fn(&Sample) -> u64| samples.iter().filter(|one| inside(at(one))).count() as u64;
            let ended = || measured.iter().filter(|one| inside(one.seen));
            let (_, latency, _) = by_hand(ended().map(|one| one.seen - one.due));
            let stood_still = self.client && inside(self.freeze.1);
            let stalled = (self.freeze.1 - self.freeze.0.next_multiple_of(SWEEP)) * u64::from(self.threads);
            LoadSecond {
                second,
                due: count(|one| one.due),
                sent: count(|one| one.sent),
                successful: count(|one| one.seen),
                p50_us: latency[0],
                p99_us: latency[4],
                max_us: latency[7],
                lag_max_us: by_hand(ended().map(|one| one.sent - one.due)).1[7],
                connections_open: Some(CONNECTIONS),
                stalled_us: if stood_still { stalled / 1_000 } else { 0 },
                ..result.series[second as usize]
            }
        };
        assert_eq!(result.series, (0..4).map(row).collect::<Vec<_>>(), "{self:?}");
        result
    }
}

/// What became of a request, since the load's start.
#[derive(Debug, Clone, Copy)]
struct Sample {
    due: u64,
    sent: u64,
    seen: u64,
    /// For a stream.
    waited: bool,
}

/// Due times of a rate that goes from one to another in a time: where its integral is a whole number.
fn line(from: f64, to: f64, length: u64) -> Vec<u64> {
    let seconds = length as f64 / 1e9;
    let at = |n: f64| 2.0 * n / (from + (from * from + 2.0 * n * (to - from) / seconds).sqrt());
    (0..((from + to) / 2.0 * seconds) as u64).map(|nth| (at(nth as f64) * 1e9).round() as u64).collect()
}

/// Cases of every protocol, and of every way in which requests become due by themselves: about a thousand a second.
fn open_loads(shift: usize) -> impl Iterator<Item = Case> {
    let open = |rate| LoadKind::Open { rate, arrivals: Arrivals::Constant };
    // Three are due at a time.
    let at_s = |nth: u64| (nth / 3 * 3_000_111) as f64 / 1e9;
    let recorded = |nth| RecordedDue { at_s: at_s(nth) + (nth % 3) as f64 / 1e9, request: 0 };
    let kinds = [
        open(OfferedRate::Constant(1_300.0)),
        open(OfferedRate::Ramp { from: 500.0, to: 1_500.0 }),
        open(OfferedRate::Replay((0..3_900).map(at_s).collect())),
        open(OfferedRate::Recorded((0..3_900).map(recorded).collect())),
        LoadKind::Open { rate: OfferedRate::Constant(1_000.0), arrivals: Arrivals::Poisson },
    ];
    let kinds = kinds.into_iter().cycle().skip(shift);
    PROTOCOLS.into_iter().zip(IN_FLIGHT).zip(kinds).map(|(protocol, kind)| Case { protocol, kind, ..CONSTANT })
}

const PROTOCOLS: [Protocol; 8] = [Http11, Http11, Https11, H2c, H2, Redis, Juno, Memcached];
const IN_FLIGHT: [u32; 8] = [1, 3, 1, 5, 2, 4, 3, 1];

/// Of 4,000 requests 1,000 wait for 1 ms to 1 s, and 3,000 for nothing.
#[test]
fn a_frozen_second_is_in_every_percentile_that_it_reaches() {
    let LoadResult { latency, service, .. } = CONSTANT.check();
    let ms = |of: &Quantiles| numbers(of).1.map(|us| us.round() as u64 / 1_000);
    assert_eq!(ms(&latency), [0, 0, 600, 800, 960, 996, 1_000, 1_000]);
    // From the sending on, it is four requests long, which is a thousandth.
    assert_eq!(ms(&service), [0, 0, 0, 0, 0, 0, 1_000, 1_000]);
}

#[test]
fn a_frozen_origin_makes_every_request_wait_that_was_due() {
    for (shift, latency) in [(0, 0), (2, 250_000), (4, 1_234_567)] {
        let freeze = (SECOND + 6_283_184, 2 * SECOND + 271_828);
        open_loads(shift).for_each(|case| drop(Case { latency, freeze, ..case }.check()));
    }
}

#[test]
fn a_frozen_client_is_late_by_the_freeze() {
    for case in open_loads(1) {
        let stalls = Case { client: true, ..case }.check().stalls;
        assert_eq!(stalls, Stalls { count: 1, total_us: 1_000_000, longest_us: 1_000_000 });
    }
}

#[test]
fn a_freeze_counts_with_the_time_of_its_requests() {
    for client in [false, true] {
        // Into the window, over its end, and with several workers.
        Case { warmup: SECOND, freeze: (400 * MS, 1_600 * MS), client, ..CONSTANT }.check();
        Case { freeze: (3_500 * MS, 4_500 * MS), client, ..CONSTANT }.check();
        Case { threads: 2, freeze: (1_505 * MS, 2_505 * MS), client, ..CONSTANT }.check();
    }
    Case { freeze: (0, 0), ..CONSTANT }.check();
}

/// A closed load has one long sample for each stream: what it would have sent meanwhile is in none of its numbers.
#[test]
fn a_closed_load_omits_what_it_did_not_send() {
    for protocol in PROTOCOLS.into_iter().zip(IN_FLIGHT) {
        let latency = Case { kind: LoadKind::Closed, protocol, latency: MS, ..CONSTANT }.check().latency;
        assert_eq!(latency.count, u64::from(CONNECTIONS * protocol.1) * 1_501);
        assert!(latency.p99_us < 2_002.0 && latency.max_us > 1e6, "{latency:?}");
    }
}

/// Requests that are never responded to have waited until the client gave up, which is a timeout after the window.
#[test]
fn an_origin_that_never_thaws_is_waited_for() {
    let result = Case { freeze: (2 * SECOND, 100 * SECOND), ..CONSTANT }.run(CONNECTIONS).0;
    let counts = &result.window;
    // Four time out at the next sweep, and four that are sent on new connections are given up.
    assert_eq!([counts.due, counts.successful, counts.error_count(), counts.unsent], [4_000, 2_000, 8, 1_992]);
    assert_eq!([result.latency.count, result.service.count, result.lag.count], [4_000, 2_008, 4_000]);
    let waited = |due: u64| match due / MS {
        ..2_000 => 0,
        2_000..2_004 => 12 * SECOND + SWEEP - due,
        _ => 14 * SECOND - due,
    };
    assert_eq!(numbers(&result.latency), by_hand((0..4_000).map(|nth| waited(nth * MS))));
}
