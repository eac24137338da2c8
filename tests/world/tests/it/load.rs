//! Loads of every kind: what is ordered is sent, to the last request and at its time.

use weir_load::StopFlag;
use weir_model::Condition;
use weir_model::load::*;
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};
use weir_net::sim::{Link, NodeOptions, World};
use weir_origin::Options;
use weir_requests::recorded::{self, Format};
use weir_requests::{feed, replay};
use weir_search::find_max_on;
use weir_world::engine::{SimBench, SimOrigin, run_load};

/// A load of one path on an origin that is 1 ms away. It takes a second.
fn run(path: &str, change: impl FnOnce(&mut LoadSpec)) -> LoadResult {
    let (result, counted) = run_counted(path, change);
    let window = &result.window;
    assert_eq!((window.due, window.error_count(), counted), (window.successful, 0, result.total.sent), "{window:?}");
    result
}

/// The same, whatever becomes of it.
fn run_any(path: &str, change: impl FnOnce(&mut LoadSpec)) -> LoadResult {
    run_counted(path, change).0
}

/// The result, and the requests that the origin counted.
fn run_counted(path: &str, change: impl FnOnce(&mut LoadSpec)) -> (LoadResult, u64) {
    let world = World::new(1);
    world.set_default_link(Link { latency: 1_000_000, ..Link::default() });
    let origin = SimOrigin::start(&world, Options::default(), NodeOptions::default()).unwrap();
    let target = Target::tcp(origin.addresses[0], "localhost");
    let mut spec = LoadSpec::new(target, Request::get(path), Expect::default());
    spec.connections = 8;
    change(&mut spec);
    let result = run_load(&world, &spec).unwrap();
    (result, origin.handle.counters().requests)
}

/// What is due in each second.
fn due(result: &LoadResult) -> Vec<u64> {
    result.series.iter().map(|row| row.due).collect()
}

fn open(rate: OfferedRate) -> LoadKind<OfferedRate> {
    LoadKind::Open { rate, arrivals: Arrivals::Constant }
}

#[test]
fn rates_change_as_ordered() {
    let step = |rate| Step { rate, for_s: 1.0 };
    for (rate, seconds, expected) in [
        (OfferedRate::Constant(500.0), 2.0, &[500, 500][..]),
        // A request is due where the integral of the rate is whole: 250 = 500 t²/2 after a second, and that one is the second's.
        (OfferedRate::Ramp { from: 0.0, to: 1_000.0 }, 2.0, &[250, 750]),
        (OfferedRate::Steps(vec![step(100.0), step(0.0), step(400.0)]), 3.0, &[100, 0, 400]),
        // 0 s, 0 s, 0.2 s, 0.7 s; the comment and the unit are the file's.
        (OfferedRate::Replay(replay::parse("x", "# two at once\n0\n0\n0.2\n700ms # late\n").unwrap()), 1.0, &[4]),
    ] {
        let result = run("/bytes/16", |spec| (spec.kind, spec.duration_s) = (open(rate), seconds));
        assert_eq!(due(&result), expected);
        assert_eq!((result.latency.max_us, result.lag.max_us), (2_000.895, 0.0), "each left when it was due");
    }
}

#[test]
fn connections_that_are_served_alike_have_one_mean_latency() {
    let spread = run("/bytes/16", |_| ()).by_connection.expect("a closed load");
    assert_eq!((spread.connections, spread.fewest, spread.slow, spread.is_uneven()), (8, spread.most, 0, false));
    assert_eq!((spread.p10_us, spread.p90_us), (2_000.895, spread.max_us));
    // Connections of an open load do not count with few responses.
    let open = |rate| run("/bytes/16", |spec| spec.kind = open(OfferedRate::Constant(rate))).by_connection;
    assert_eq!((open(100.0), open(400.0).map(|spread| (spread.fewest, spread.most))), (None, Some((50, 50))));
}

#[test]
fn an_access_log_is_sent_at_its_times() {
    let line = |second: u32, path: &str| {
        format!("192.0.2.7 - - [23/Nov/2026:20:00:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 5 \"-\" \"x\"\n")
    };
    let text = [line(0, "/bytes/10"), line(2, "/bytes/20"), line(4, "/bytes/10")].concat();
    let mut log = recorded::parse("x", text.as_bytes(), Format::of(text.as_bytes()).unwrap()).unwrap();
    // Ten times as fast: 0 s, 0.2 s and 0.4 s.
    let times = log.timetable("x", 10.0).unwrap();
    let result = run("/bytes/10", |spec| {
        let second = RequestSpec { request: Request::get("/bytes/20"), ..spec.requests[0].clone() };
        spec.requests.push(second);
        let due = times.iter().zip([0, 1, 0]).map(|(at_s, request)| RecordedDue { at_s: *at_s, request });
        (spec.kind, spec.duration_s) = (open(OfferedRate::Recorded(due.collect())), 0.4);
    });
    let sent: Vec<u64> = result.by_request.iter().map(|kind| kind.sent).collect();
    assert_eq!((times, sent, result.window.body_bytes), (vec![0.0, 0.2, 0.4], vec![2, 1], 40));
    assert_eq!((result.window_s, result.offered_rate), (0.402, Some(7.5)), "it ends with its last response");
}

/// Five requests in 0.2 s to an origin that takes 200 ms.
#[test]
fn a_replay_ends_with_its_last_response() {
    let replay = |timeout_s, connections| {
        run_any("/bytes/1?delay=200ms", |spec| {
            spec.kind = open(OfferedRate::Replay(vec![0.0, 0.05, 0.1, 0.15, 0.2]));
            (spec.duration_s, spec.timeout_s, spec.connections) = (0.2, timeout_s, connections);
        })
    };
    let result = replay(10.0, 8);
    let window = &result.window;
    assert_eq!((window.due, window.successful, window.successful_in_window, window.unsent), (5, 5, 5, 0));
    assert_eq!((result.offered_rate, result.window_s, result.rate), (Some(25.0), 0.402, 5.0 / 0.402));
    // One connection has a response each 202 ms, and the window waits a timeout for the last: for 0.2 s + 0.3 s.
    let result = replay(0.3, 1);
    let window = &result.window;
    assert_eq!((window.due, window.successful_in_window, result.window_s), (5, 2, 0.5), "{window:?}");
    // Responses that never come do not hold it up.
    let result = replay(0.1, 8);
    assert_eq!((result.window.successful, result.window.error_count(), result.total.due), (0, 5, 5));
    assert!(result.window_s <= 0.31, "{}", result.window_s);
}

#[test]
fn requests_are_filled_in_and_weighed() {
    let table = feed::parse("x", b"size,text\n1,a\n20,bb\n300,ccc\n").unwrap();
    let bytes = |path: &str, threads, feed| {
        let result = run(path, |spec| {
            (spec.kind, spec.threads, spec.feed) = (LoadKind::Count { requests: 900 }, threads, feed);
            spec.requests[0].template = true;
        });
        result.window.body_bytes
    };
    for threads in [1, 2] {
        // Every row as often as the others.
        assert_eq!(bytes("/bytes/{{size}}", threads, Some(table.clone())), 300 * 321);
    }
    let random = bytes("/bytes/{{size}}", 1, Some(table.in_order(FeedOrder::Random(1))));
    assert!(random != 300 * 321, "{random}");
    // Drawn anew for each request: 1,800 in the mean, with a deviation of 24.
    assert!((1_700..1_900).contains(&bytes("/bytes/{{random:1..3}}", 1, None)));
    let result = run("/bytes/10", |spec| {
        let second = RequestSpec { weight: 1, request: Request::get("/bytes/20"), ..spec.requests[0].clone() };
        spec.requests[0].weight = 9;
        spec.requests.push(second);
        spec.kind = LoadKind::Count { requests: 4_000 };
    });
    let sent: Vec<u64> = result.by_request.iter().map(|kind| kind.sent).collect();
    // 400 in the mean, with a deviation of 19.
    assert!(sent[0] + sent[1] == 4_000 && (340..460).contains(&sent[1]), "{sent:?}");
}

#[test]
fn a_closed_load_waits_for_its_responses_and_thinks() {
    for (think, each) in [(None, 500), (Some(0.098), 10)] {
        let result = run("/bytes/1", |spec| {
            (spec.kind, spec.think) = (LoadKind::Closed, think.map(|s| RandomDuration::Constant { s }));
        });
        assert_eq!((result.window.successful, result.latency.max_us), (8 * each, 2_000.895));
    }
}

#[test]
fn connections_come_and_go_as_ordered() {
    let opened = |change: fn(&mut LoadSpec)| {
        let result = run("/bytes/1", |spec| {
            (spec.kind, spec.connections) = (LoadKind::Count { requests: 100 }, 2);
            change(spec);
        });
        assert_eq!(result.total.successful, 100);
        result.total.connections
    };
    assert_eq!(opened(|_| {}), 2);
    assert_eq!(opened(|spec| spec.requests_per_connection = Some(10)), 10);
    // A connection that may send four does not send all that it could have in flight.
    let pipelined = |spec: &mut LoadSpec| {
        (spec.protocol, spec.requests_per_connection) = (LoadProtocol::Http1 { pipeline: 8 }, Some(4));
    };
    assert_eq!(opened(pipelined), 25);
    // One more shows that there is a target.
    assert_eq!(opened(|spec| spec.connection_close = true), 101);
    // A response takes 202 ms: of 20 a second four or five are under way.
    let result = run("/bytes/1?delay=200ms", |spec| {
        (spec.kind, spec.connections, spec.max_connections) = (open(OfferedRate::Constant(20.0)), 1, Some(16));
        spec.duration_s = 2.0;
    });
    assert_eq!((result.most_open, result.total.connections), (5, 5));
    // Four of them share a connection, and the next one needs one more.
    let result = run("/bytes/1?delay=200ms", |spec| {
        (spec.kind, spec.connections, spec.max_connections) = (open(OfferedRate::Constant(20.0)), 1, Some(16));
        (spec.protocol, spec.duration_s) = (LoadProtocol::Http2 { streams: 4 }, 2.0);
    });
    assert_eq!((result.most_open, result.total.connections), (2, 2));
    // Ten connections at 20 a second: the last is opened 450 ms later than all at once.
    let [at_once, in_turn] = [None, Some(20.0)].map(|rate| {
        let begun = run("/bytes/1", |spec| {
            (spec.kind, spec.connections, spec.connect_rate) = (LoadKind::Count { requests: 10 }, 10, rate);
        });
        begun.window_start_ms
    });
    assert_eq!(in_turn - at_once, 450);
}

/// The target is 1 ms away: a request takes 2 ms, and 2 ms more where its connection is made for it.
#[test]
fn a_new_connection_is_part_of_the_latency_of_its_request() {
    let each: [fn(&mut LoadSpec); 3] = [
        |spec| spec.connection_close = true,
        |spec| spec.requests_per_connection = Some(1),
        |spec| spec.requests[0].request.headers = vec![("Connection".into(), "close".into())],
    ];
    for way in each {
        for kind in [open(OfferedRate::Constant(100.0)), LoadKind::Count { requests: 100 }] {
            let result = run("/bytes/1", |spec| {
                spec.kind = kind;
                way(spec);
            });
            assert_eq!((result.latency.min_us, result.latency.max_us), (3_999.744, 4_001.791));
        }
    }
    let kept = run("/bytes/1", |spec| spec.kind = open(OfferedRate::Constant(100.0)));
    assert_eq!(kept.latency.max_us, 2_000.895);
}

/// A thousand million requests a second, of which a connection carries five hundred: the load ends in time, and all are counted.
#[test]
fn a_rate_that_nobody_can_offer_ends_with_its_window() {
    let world = World::new(1);
    world.set_default_link(Link { latency: 1_000_000, ..Link::default() });
    let origin = SimOrigin::start(&world, Options::default(), NodeOptions::default()).unwrap();
    let target = Target::tcp(origin.addresses[0], "localhost");
    let spec = LoadSpec {
        kind: open(OfferedRate::Constant(1e9)),
        timeout_s: 1.0,
        ..LoadSpec::new(target, Request::get("/bytes/1"), Expect::default())
    };
    let result = run_load(&world, &spec).unwrap();
    let window = &result.window;
    // The thousand and first is under way when the drain ends.
    assert_eq!((window.due, window.successful, window.error_count()), (1_000_000_000, 1_000, 1));
    assert_eq!(window.unsent, 1_000_000_000 - 1_001);
    assert_eq!((result.window_s, world.now() / 1_000_000_000), (1.0, 2));
}

/// One connection with 18 ms a response and 2 ms of way carries 50 a second. A rate above it has a queue that grows.
#[test]
fn the_highest_rate_is_found() {
    let world = World::new(1);
    world.set_default_link(Link { latency: 1_000_000, ..Link::default() });
    let origin = SimOrigin::start(&world, Options::default(), NodeOptions::default()).unwrap();
    let target = Target::tcp(origin.addresses[0], "localhost");
    let spec =
        LoadSpec { duration_s: 10.0, ..LoadSpec::new(target, Request::get("/bytes/1?delay=18ms"), Expect::default()) };
    let conditions = Condition::list("max<40ms, errors<1%").unwrap();
    let options = SearchOptions::default();
    let mut told = 0;
    let found =
        find_max_on(&mut SimBench(&world), &spec, &conditions, &options, &StopFlag::new(), &mut |_| told += 1).unwrap();
    let (rate, failed) = (found.rate.unwrap(), found.failed_from.unwrap());
    assert_eq!((found.end, found.limit, found.confirmed), (SearchEnd::Found, Some(SearchLimit::Target), true));
    assert_eq!(found.probes[0].kind, ProbeKind::Guess);
    // The last of 10 s at 0.2 % above it has waited for 20 ms.
    assert!(rate <= 50.1 && failed > 50.0 && failed / rate <= 1.02, "{rate} {failed}");
    let confirmation = found.confirmation.unwrap();
    assert_eq!((confirmation.window.due, told), ((rate * 10.0).round() as u64, 2 * found.probes.len()));
    assert_eq!(world.now() / 1_000_000, (found.seconds * 1e3) as u64, "it knows no other clock");
}
