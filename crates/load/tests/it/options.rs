//! What an order may say beside the plainest: think times, bursts, more connections, several targets, sources, headers, kinds of requests.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use weir_model::load::{Bursts, LoadSpec, OfferedRate, RandomDuration, RecordedDue, Step, Target};
use weir_model::suite::{Arrivals, LoadKind};
use xxhash_rust::xxh3::xxh3_64;

use crate::script::{Do, Server};
use crate::servers::{Asked, http, late, ok, response};
use crate::world::*;

/// The order's request to each of these paths, at the same target.
fn to_paths(spec: &mut LoadSpec, paths: impl IntoIterator<Item = String>) {
    let request = spec.requests.remove(0);
    for path in paths {
        spec.requests.push(request.clone());
        spec.requests.last_mut().unwrap().request.path = path;
    }
}

#[test]
fn a_connection_thinks_between_a_response_and_its_next_request() {
    let gaps = |think, kind| {
        let world = world();
        let server = http(&world, |_| ok("ok"));
        let result = load(&world, &LoadSpec { think: Some(think), ..order(server.addr, kind) }).unwrap();
        // Due when the thought is over: waiting for it is not latency.
        times(&result.latency, ROUND_TRIP, ROUND_TRIP, ROUND_TRIP);
        assert_eq!((result.total.successful, result.lag.max_us), (server.requests(), 0.0));
        let mut last = BTreeMap::new();
        let seen = server.seen();
        let gap = |(connection, at): &(u64, u64)| last.insert(*connection, *at).map(|last| at - last);
        seen.asked.iter().filter_map(gap).collect::<Vec<u64>>()
    };
    let uniform = gaps(RandomDuration::Uniform { from_s: 0.05, to_s: 0.1 }, counted(40));
    assert!(uniform.len() == 36 && uniform.iter().all(|gap| (51 * MS..=101 * MS).contains(gap)), "{uniform:?}");
    assert!(uniform.windows(2).any(|pair| pair[0] != pair[1]));
    assert_eq!(gaps(RandomDuration::Constant { s: 0.24 }, LoadKind::Closed), [241 * MS; 4 * 4]);
}

#[test]
fn a_worker_is_of_the_real_time_class_while_it_is_under_load_and_no_longer() {
    let places = |real_time| {
        let world = world();
        world.keep_trace();
        let server = http(&world, |_| ok("ok"));
        let spec = LoadSpec { connections: 50, real_time, ..order(server.addr, constant(1_000.0)) };
        load(&world, &spec).unwrap();
        let trace = world.trace();
        let last = |words: &str| trace.iter().rposition(|line| line.contains(words));
        let closed = trace.iter().position(|line| line.contains("end of stream"));
        [last(": connected"), last("client: RealTime"), last("client: Ordinary"), closed]
    };
    assert_eq!(places(false)[1..3], [None, None]);
    let places = places(true);
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
}

#[test]
fn think_times_end_with_the_load() {
    let world = world();
    let server = http(&world, |_| ok("ok"));
    let think = Some(RandomDuration::Exponential { mean_s: 60.0 });
    let mut spec = LoadSpec { think, connections: 50, duration_s: 0.5, ..order(server.addr, LoadKind::Closed) };
    spec.timeout_s = 30.0;
    let result = load(&world, &spec).unwrap();
    // One each, and one or the other whose thought was short.
    assert!((50..55).contains(&result.total.sent), "{:?}", result.total);
    assert!(world.now() < 2 * SECOND, "nobody waits for thinking");
}

#[test]
fn a_load_in_bursts_rests_between_them() {
    for (kind, due) in [(LoadKind::Closed, 4 * 5 * 50), (constant(400.0), 100)] {
        let world = world();
        let server = http(&world, |_| ok("ok"));
        let bursts = Some(Bursts { on_s: 0.05, off_s: 0.15 });
        let result = load(&world, &LoadSpec { bursts, ..order(server.addr, kind.clone()) }).unwrap();
        assert_eq!([result.total.due, result.total.successful], [due; 2]);
        assert_eq!(result.offered_rate, kind.is_open().then_some(400.0));
        // They come half a round trip after they are due.
        let first = server.seen().asked[0].1;
        assert!(server.seen().asked.iter().all(|(_, at)| (at - first) % (200 * MS) < 50 * MS));
    }
}

#[test]
fn the_pool_grows_when_requests_wait_and_no_further() {
    for threads in [1, 2] {
        // A response takes 200 ms: 100 a second need 20 connections, and one a thread for the round trip in which they are made. With 12
        // the hundredth request, due at 990 ms, waits for the ninth of the connection that was made at 30 ms.
        for (most, open, longest) in
            [(12, 12, 30 * MS + ROUND_TRIP + 9 * 200 * MS - 990 * MS), (60, 20 + threads, 201 * MS)]
        {
            let world = world();
            let server = http(&world, |_| late(199 * MS));
            let mut spec = LoadSpec { threads, connections: 2, ..order(server.addr, constant(100.0)) };
            spec.max_connections = Some(most);
            let result = load(&world, &spec).unwrap();
            assert_eq!([result.window.due, result.total.successful], [100; 2]);
            assert_eq!((result.most_open, result.connections_used), (open, u64::from(open)));
            assert_eq!([result.total.connections, server.connections()], [u64::from(open); 2]);
            assert_eq!(result.latency.max_us, us(longest));
        }
    }
}

#[test]
fn connections_go_to_the_targets_in_turn_and_ask_for_what_each_has() {
    let world = world();
    let server = |name: &'static str| {
        http(&world, move |asked| {
            assert_eq!(asked.path(), format!("/{name}"));
            ok(name)
        })
    };
    let servers = ["a", "b", "c"].map(server);
    let mut spec = LoadSpec { threads: 2, connections: 9, ..order(servers[0].addr, counted(300)) };
    spec.targets = servers.iter().map(|server| Target::tcp(server.addr, "it")).collect();
    to_paths(&mut spec, ["/a", "/b", "/c"].map(String::from));
    for (target, request) in (0..).zip(&mut spec.requests) {
        request.target = target;
        request.expect.hash = Some(xxh3_64(&request.request.path.as_bytes()[1..]));
    }
    let result = load(&world, &spec).unwrap();
    assert_eq!((result.total.successful, servers.each_ref().map(Server::connections)), (300, [3, 3, 3]));
    let asked: Vec<_> = result.by_request.iter().map(|r| (r.name.as_str(), r.sent, r.successful, r.errors)).collect();
    let served = servers.each_ref().map(Server::requests);
    let row = |nth: usize, name| (name, served[nth], served[nth], 0);
    assert_eq!(asked, [row(0, "GET /a"), row(1, "GET /b"), row(2, "GET /c")]);
}

#[test]
fn each_kind_of_request_has_its_errors_and_its_latency() {
    let world = world();
    let server = http(&world, |asked| match (asked.path(), asked.number % 2) {
        ("/slow", 0) => vec![Do::Wait(30 * MS), Do::Send(response(500, ""))],
        ("/slow", _) => late(30 * MS),
        _ => ok("ok"),
    });
    let mut spec = LoadSpec { threads: 2, ..order(server.addr, counted(200)) };
    to_paths(&mut spec, ["/", "/slow"].map(String::from));
    let result = load(&world, &spec).unwrap();
    let [fast, slow] = &result.by_request[..] else { panic!("{:?}", result.by_request) };
    assert_eq!((fast.sent, fast.errors, fast.errors_by_kind.len()), (fast.successful, 0, 0));
    assert!(slow.errors > 0 && slow.sent == slow.successful + slow.errors, "{slow:?}");
    assert_eq!(slow.errors_by_kind, result.window.errors);
    assert_eq!((fast.latency.count, slow.latency.count), (fast.sent, slow.sent));
    times(&fast.latency, ROUND_TRIP, ROUND_TRIP, ROUND_TRIP);
    times(&slow.latency, 31 * MS, 31 * MS, 31 * MS);
}

#[test]
fn connections_are_made_at_the_rate_that_was_ordered() {
    let world = world();
    let server = http(&world, |_| ok("ok"));
    let mut spec = LoadSpec { connections: 20, threads: 2, ..order(server.addr, counted(20)) };
    spec.connect_rate = Some(40.0);
    let result = load(&world, &spec).unwrap();
    assert_eq!((result.total.connections, result.total.successful), (20, 20));
    // Ten a thread, 50 ms apart: the last are up at 451 ms, which is seen at 500 ms, and the load begins 50 ms later.
    assert_eq!(server.seen().asked[0].1, 550 * MS + ROUND_TRIP / 2);
}

#[test]
fn each_status_has_its_latency() {
    let run = |requests, connections, behaviour: fn(&Asked) -> Vec<Do>| {
        let world = world();
        let server = http(&world, behaviour);
        load(&world, &LoadSpec { connections, duration_s: 30.0, ..order(server.addr, counted(requests)) }).unwrap()
    };
    let result = run(100, 1, |asked| match asked.number % 5 {
        0 => vec![Do::Wait(40 * MS), Do::Send(response(404, ""))],
        1 => vec![Do::Send(response(503, ""))],
        _ => ok("ok"),
    });
    let rows: Vec<_> = result.by_status.iter().map(|(name, of)| (name.as_str(), of.count, of.max_us)).collect();
    assert_eq!(rows, [("200", 60, us(MS)), ("404", 20, us(41 * MS)), ("503", 20, us(MS))]);
    // One status says nothing that the whole does not.
    assert!(run(10, 4, |_| vec![Do::Send(response(404, ""))]).by_status.is_empty());
    // Requests without a response are apart.
    let cut = run(40, 4, |asked| if asked.number % 2 == 0 { vec![Do::Reset] } else { ok("ok") });
    assert_eq!(
        cut.by_status.iter().map(|(name, of)| (name.as_str(), of.count)).collect::<Vec<_>>(),
        [("200", 20), ("none", 20)]
    );
}

#[test]
fn of_many_kinds_the_last_stands_for_the_rest() {
    let world = world();
    let server = http(&world, |_| ok("ok"));
    let mut spec = order(server.addr, counted(400));
    to_paths(&mut spec, (0..20).map(|n| format!("/{n}")));
    let result = load(&world, &spec).unwrap();
    assert_eq!((result.by_request.len(), result.by_request[14].name.as_str()), (16, "GET /14"));
    let last = &result.by_request[15];
    assert_eq!((last.name.as_str(), last.sent), ("5 others", last.latency.count));
    assert_eq!(result.by_request.iter().map(|kind| kind.sent).sum::<u64>(), 400);
    // 100 in the mean with a standard deviation of 9.
    assert!((55..145).contains(&last.sent), "{last:?}");
}

#[test]
fn a_rate_that_changes_is_followed() {
    let steps = vec![Step { rate: 100.0, for_s: 0.5 }, Step { rate: 400.0, for_s: 0.5 }];
    let replay = (0..150).map(|i| f64::from(i) * 0.005).collect();
    for (rate, due, offered) in [
        (OfferedRate::Steps(steps), 250, 250.0),
        (OfferedRate::Ramp { from: 100.0, to: 300.0 }, 200, 200.0),
        (OfferedRate::Replay(replay), 150, 150.0),
    ] {
        let world = world();
        let server = http(&world, |_| ok("ok"));
        let spec = order(server.addr, LoadKind::Open { rate, arrivals: Arrivals::Constant });
        let result = load(&world, &LoadSpec { warmup_s: 0.2, ..spec.clone() }).unwrap();
        assert_eq!(
            ([result.window.due, result.window.successful], result.offered_rate),
            ([due; 2], Some(offered)),
            "{spec:?}"
        );
    }
}

#[test]
fn recorded_requests_come_when_and_as_recorded() {
    let world = world();
    let seen = Rc::<RefCell<Vec<String>>>::default();
    let log = seen.clone();
    let server = http(&world, move |asked| {
        log.borrow_mut().push(asked.path().to_owned());
        ok("ok")
    });
    // Far enough apart to arrive in order, but for the last three, which are due at once.
    let recorded = [(0.0, 1), (0.1, 0), (0.2, 2), (0.3, 1), (0.4, 0), (0.4, 0), (0.4, 2)];
    let rate = |due: &[(f64, u32)]| {
        OfferedRate::Recorded(due.iter().map(|&(at_s, request)| RecordedDue { at_s, request }).collect())
    };
    let kind = |rate| LoadKind::Open { rate, arrivals: Arrivals::Constant };
    let mut spec = LoadSpec { threads: 2, ..order(server.addr, kind(rate(&recorded))) };
    to_paths(&mut spec, ["/a", "/b", "/c"].map(String::from));
    let result = load(&world, &spec).unwrap();
    assert_eq!((result.window.due, result.window.successful), (7, 7));
    assert_eq!(result.by_request.iter().map(|kind| kind.sent).collect::<Vec<_>>(), [3, 2, 2]);
    let at: Vec<u64> = server.seen().asked.iter().map(|(_, at)| (at - 100 * MS - ROUND_TRIP / 2) / MS).collect();
    assert_eq!(at, [0, 100, 200, 300, 400, 400, 400]);
    seen.borrow_mut()[4..].sort();
    assert_eq!(*seen.borrow(), ["/b", "/a", "/c", "/b", "/a", "/a", "/c"]);
    // They are those of the load, which has one target.
    spec.kind = kind(rate(&[(0.0, 3)]));
    assert!(load(&world, &spec).unwrap_err().to_string().contains("none of the load's"));
    spec.kind = kind(rate(&[(0.0, 0)]));
    spec.targets.push(spec.targets[0].clone());
    assert!(load(&world, &spec).unwrap_err().to_string().contains("for 2 targets"));
}

#[test]
fn the_first_byte_has_a_time_of_its_own() {
    let world = world();
    // Half at once; half in two pieces, 100 ms apart.
    let server = http(&world, |asked| {
        let mut text = response(200, "0123456789");
        let second = text.split_off(text.len() - 5);
        let pause = if asked.number % 2 == 0 { 0 } else { 100 * MS };
        vec![Do::Send(text), Do::Wait(pause), Do::Send(second)]
    });
    let spec = LoadSpec { connections: 1, duration_s: 30.0, ..order(server.addr, counted(20)) };
    let result = load(&world, &spec).unwrap();
    assert_eq!((result.first_byte.count, result.service.count), (20, 20));
    times(&result.first_byte, ROUND_TRIP, ROUND_TRIP, ROUND_TRIP);
    times(&result.service, ROUND_TRIP, ROUND_TRIP, 101 * MS);
}
