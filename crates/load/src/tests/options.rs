//! What an order may say beside the plainest: think times, more connections, several targets, sources, headers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weir_model::load::{Bursts, OfferedRate, RandomDuration, RecordedDue, Step, Target};
use weir_model::suite::{Arrivals, LoadKind};

use super::server::{Do, Server, answer, ok};
use super::*;

#[test]
fn a_connection_thinks_between_an_answer_and_its_next_request() {
    at_once(&DRIVERS, |driver| {
        let at: Arc<Mutex<Vec<(u64, Instant)>>> = Arc::default();
        let seen = at.clone();
        let server = Server::start(move |asked| {
            seen.lock().unwrap().push((asked.connection, Instant::now()));
            Do::Send(ok("ok"))
        });
        let mut spec = order(&server, LoadKind::Count { requests: 40 });
        spec.driver = driver;
        spec.duration_s = 30.0;
        spec.think = Some(RandomDuration::Uniform { from_s: 0.05, to_s: 0.1 });
        let result = load(&spec).unwrap();
        assert_eq!(result.total.right, 40);
        let at = at.lock().unwrap();
        for connection in 0..4 {
            let times: Vec<Instant> = at.iter().filter(|(on, _)| *on == connection).map(|(_, at)| *at).collect();
            for pair in times.windows(2) {
                let gap = pair[1] - pair[0];
                assert!(gap > Duration::from_millis(45) && gap < Duration::from_secs(5), "{gap:?}");
            }
        }
        // Due when the thought is over: waiting for it is not latency.
        assert!(result.latency.p50_us < 40_000.0, "{:?}", result.latency);
        assert_eq!(result.lag.count, 40);
    });
}

#[test]
fn think_times_repeat_by_seed_and_end_with_the_load() {
    let server = Server::start(|_| Do::Send(ok("ok")));
    let mut spec = order(&server, LoadKind::Closed);
    spec.connections = 50;
    spec.think = Some(RandomDuration::Exponential { mean_s: 60.0 });
    spec.duration_s = 0.5;
    spec.timeout_s = 30.0;
    let started = Instant::now();
    let result = load(&spec).unwrap();
    // One each, and one or the other whose thought was short.
    assert!(result.total.sent >= 50 && result.total.sent < 60, "{:?}", result.total);
    assert!(started.elapsed() < Duration::from_secs(15), "nobody waits for thinking");
}

#[test]
fn a_load_in_bursts_rests_between_them() {
    at_once(&DRIVERS, |driver| {
        for kind in [LoadKind::Closed, LoadKind::open(400.0, Arrivals::Constant)] {
            let at: Arc<Mutex<Vec<Instant>>> = Arc::default();
            let seen = at.clone();
            let server = Server::start(move |_| {
                seen.lock().unwrap().push(Instant::now());
                std::thread::sleep(Duration::from_millis(1));
                Do::Send(ok("ok"))
            });
            let mut spec = order(&server, kind.clone());
            spec.driver = driver;
            spec.bursts = Some(Bursts { on_s: 0.05, off_s: 0.15 });
            spec.duration_s = 1.0;
            let result = load(&spec).unwrap();
            assert!(result.total.errors.is_empty(), "{:?}", result.total);
            if kind.is_open() {
                // A quarter of the time at 400/s.
                assert_eq!((result.total.due, result.offered_rate), (100, Some(400.0)));
            }
            // A burst may come late on a busy machine, but none reaches to the middle of the rest.
            let at = at.lock().unwrap();
            let Some(first) = at.first() else { panic!("nothing came") };
            let resting = |at: &&Instant| (100..190).contains(&(at.duration_since(*first).as_millis() % 200));
            let late = at.iter().filter(resting).count();
            assert!(at.len() >= 20 && late * 20 <= at.len(), "{late} of {}", at.len());
        }
    });
}

#[test]
fn the_pool_grows_when_requests_wait_and_no_further() {
    at_once(&DRIVERS, |driver| {
        for threads in [1, 2] {
            // An answer takes 200 ms: 100 a second need 20 connections.
            let server = Server::start(|_| Do::SendSlowly(vec![], Duration::from_millis(200), ok("ok")));
            let mut spec = order(&server, constant(100.0));
            spec.driver = driver;
            spec.threads = threads;
            spec.connections = 2;
            spec.max_connections = Some(12);
            let result = load(&spec).unwrap();
            assert_eq!(result.window.due, 100);
            assert_eq!(result.total.right, 100, "{:?}", result.total);
            assert_eq!(server.connections(), 12);
            assert_eq!((result.most_open, result.total.connections, result.connections_used), (12, 12, 12));
            spec.max_connections = Some(60);
            let result = load(&spec).unwrap();
            assert_eq!(result.total.right, 100);
            assert!(result.most_open >= 15 && result.most_open < 60, "{}", result.most_open);
            assert!(result.lag.p99_us < 200_000.0, "{:?}", result.lag);
        }
    });
}

#[test]
fn connections_go_to_the_targets_in_turn_and_ask_for_what_each_has() {
    at_once(&DRIVERS, |driver| {
        let servers = ["a", "b", "c"].map(|name| {
            Server::start(move |asked| {
                assert!(asked.head.starts_with(&format!("GET /{name} ")), "{}", asked.head);
                Do::Send(ok(name))
            })
        });
        let mut spec = order(&servers[0], LoadKind::Count { requests: 300 });
        spec.driver = driver;
        spec.threads = 2;
        spec.connections = 9;
        spec.targets = servers.iter().map(|server| Target::tcp(server.addr, "it")).collect();
        let request = spec.requests.remove(0);
        for (target, name) in (0..).zip(["a", "b", "c"]) {
            let mut request = request.clone();
            request.target = target;
            request.request.path = format!("/{name}");
            request.expect.hash = Some(xxhash_rust::xxh3::xxh3_64(name.as_bytes()));
            spec.requests.push(request);
        }
        let result = load(&spec).unwrap();
        assert_eq!(result.total.right, 300, "{:?}", result.total);
        let connections: Vec<u64> = servers.iter().map(Server::connections).collect();
        assert_eq!(connections, [3, 3, 3]);
        let asked: Vec<(&str, u64)> = result.by_request.iter().map(|r| (r.name.as_str(), r.right)).collect();
        let served: Vec<u64> = servers.iter().map(Server::requests).collect();
        assert_eq!(asked, [("GET /a", served[0]), ("GET /b", served[1]), ("GET /c", served[2])]);
        assert!(result.by_request.iter().all(|r| r.sent == r.right && r.errors == 0));
    });
}

#[test]
fn each_kind_of_request_has_its_errors_and_its_latency() {
    let server = Server::start(|asked| {
        let slow = asked.head.starts_with("GET /slow ");
        let wait = if slow { Duration::from_millis(30) } else { Duration::ZERO };
        Do::SendSlowly(vec![], wait, if slow && asked.number % 2 == 0 { answer(500, "") } else { ok("ok") })
    });
    let mut spec = order(&server, LoadKind::Count { requests: 200 });
    spec.threads = 2;
    spec.requests.push(spec.requests[0].clone());
    spec.requests[1].request.path = "/slow".into();
    let result = load(&spec).unwrap();
    let [fast, slow] = &result.by_request[..] else { panic!("{:?}", result.by_request) };
    assert_eq!((fast.sent, fast.errors, fast.errors_by_kind.len()), (fast.right, 0, 0));
    assert!(slow.errors > 0 && slow.sent == slow.right + slow.errors, "{slow:?}");
    assert_eq!(slow.errors_by_kind, result.window.errors);
    assert_eq!((fast.latency.count, slow.latency.count), (fast.sent, slow.sent));
    assert!(slow.latency.min_us >= 30_000.0 && fast.latency.p50_us < slow.latency.p50_us, "{fast:?} {slow:?}");
}

#[test]
fn connections_are_made_at_the_rate_that_was_ordered() {
    let server = Server::start(|_| Do::Send(ok("ok")));
    let mut spec = order(&server, LoadKind::Count { requests: 20 });
    spec.connections = 20;
    spec.threads = 2;
    spec.connect_rate = Some(40.0);
    let started = Instant::now();
    let result = load(&spec).unwrap();
    assert_eq!((result.total.connections, result.total.right), (20, 20));
    // Ten a thread, 50 ms apart.
    let took = started.elapsed();
    assert!(took > Duration::from_millis(440) && took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn given_source_addresses_are_used_in_turn() {
    let server = Server::start(|_| Do::Send(ok("ok")));
    let mut spec = order(&server, LoadKind::Count { requests: 8 });
    spec.sources = vec!["127.0.0.7".parse().unwrap(), "127.0.0.9".parse().unwrap()];
    assert_eq!(load(&spec).unwrap().total.right, 8);
    let peers = server.peers.lock().unwrap();
    let from: BTreeSet<String> = peers.iter().map(|peer| peer.ip().to_string()).collect();
    assert_eq!((peers.len(), from.into_iter().collect::<Vec<_>>()), (4, vec!["127.0.0.7".into(), "127.0.0.9".into()]));
}

#[test]
fn headers_are_checked_when_asked_for() {
    let server = Server::start(|asked| {
        let cache = if asked.number % 2 == 0 { "HIT" } else { "MISS" };
        Do::Send(format!("HTTP/1.1 200 OK\r\nX-Cache: {cache}\r\nContent-Length: 2\r\n\r\nok").into_bytes())
    });
    let mut spec = order(&server, LoadKind::Count { requests: 20 });
    spec.connections = 1;
    spec.requests[0].expect.headers = vec![("x-cache".into(), Some("HIT".into()))];
    let result = load(&spec).unwrap();
    assert_eq!(result.total.right, 10);
    assert_eq!(errors(&result.total), [("wrong_header", 10)]);
}

#[test]
fn each_status_has_its_latency() {
    let server = Server::start(|asked| match asked.number % 5 {
        0 => Do::SendSlowly(vec![], Duration::from_millis(40), answer(404, "")),
        1 => Do::Send(answer(503, "")),
        _ => Do::Send(ok("ok")),
    });
    // Twenty of them take 40 ms each, and more on a busy machine.
    let kind = LoadKind::Count { requests: 100 };
    let spec = LoadSpec { connections: 1, duration_s: 30.0, ..order(&server, kind) };
    let result = load(&spec).unwrap();
    let counts: Vec<(&str, u64)> = result.by_status.iter().map(|(status, q)| (status.as_str(), q.count)).collect();
    assert_eq!(counts, [("200", 60), ("404", 20), ("503", 20)]);
    assert!(result.by_status["404"].min_us >= 39_000.0 && result.by_status["200"].p50_us < 39_000.0, "{result:?}");
    // One status says nothing that the whole does not.
    let missing = Server::start(|_| Do::Send(answer(404, "")));
    assert!(load(&order(&missing, LoadKind::Count { requests: 10 })).unwrap().by_status.is_empty());
    // Requests without an answer are apart.
    let cut = Server::start(|asked| if asked.number % 2 == 0 { Do::Reset } else { Do::Send(ok("ok")) });
    let result = load(&order(&cut, LoadKind::Count { requests: 40 })).unwrap();
    assert_eq!(result.by_status["none"].count + result.by_status["200"].count, 40);
}

#[test]
fn of_many_kinds_the_last_stands_for_the_rest() {
    let server = Server::start(|_| Do::Send(ok("ok")));
    let mut spec = order(&server, LoadKind::Count { requests: 400 });
    let request = spec.requests.remove(0);
    for n in 0..20 {
        let mut request = request.clone();
        request.request.path = format!("/{n}");
        spec.requests.push(request);
    }
    let result = load(&spec).unwrap();
    assert_eq!((result.by_request.len(), result.by_request[14].name.as_str()), (16, "GET /14"));
    let last = &result.by_request[15];
    assert_eq!((last.name.as_str(), last.sent), ("5 others", last.latency.count));
    assert_eq!(result.by_request.iter().map(|kind| kind.sent).sum::<u64>(), 400);
    // 100 in the mean with a standard deviation of 9.
    assert!((55..145).contains(&last.sent), "{last:?}");
}

#[test]
fn a_rate_that_changes_is_followed() {
    let server = Server::start(|_| Do::Send(ok("ok")));
    let steps = vec![Step { rate: 100.0, for_s: 0.5 }, Step { rate: 400.0, for_s: 0.5 }];
    let arrivals = Arrivals::Constant;
    for (kind, mean) in [
        (LoadKind::Open { rate: OfferedRate::Steps(steps), arrivals }, 250.0),
        (LoadKind::Open { rate: OfferedRate::Ramp { from: 100.0, to: 300.0 }, arrivals }, 200.0),
        (
            LoadKind::Open {
                rate: OfferedRate::Replay((0..150).map(|i| f64::from(i) * 0.005).collect()),
                arrivals: Arrivals::Constant,
            },
            150.0,
        ),
    ] {
        let mut spec = order(&server, kind.clone());
        spec.warmup_s = 0.2;
        let result = load(&spec).unwrap();
        assert!((result.window.due as f64 - mean).abs() <= 1.0, "{kind:?}: {}", result.window.due);
        assert_eq!(result.window.right, result.window.due);
        assert!(result.offered_rate.is_some_and(|rate| (rate - mean).abs() < 1.0), "{:?}", result.offered_rate);
    }
}

#[test]
fn recorded_requests_come_when_and_as_recorded() {
    at_once(&DRIVERS, |driver| {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = seen.clone();
        let server = Server::start(move |asked| {
            log.lock().unwrap().push(asked.head.split(' ').nth(1).unwrap_or_default().to_owned());
            Do::Send(ok("ok"))
        });
        // Far enough apart to arrive in order, but for the last three, which are due at once.
        let recorded = [(0.0, 1), (0.1, 0), (0.2, 2), (0.3, 1), (0.4, 0), (0.4, 0), (0.4, 2)];
        let due = recorded.map(|(at_s, request)| RecordedDue { at_s, request });
        let rate = OfferedRate::Recorded(due.to_vec());
        let mut spec = order(&server, LoadKind::Open { rate, arrivals: Arrivals::Constant });
        (spec.driver, spec.threads) = (driver, 2);
        let request = spec.requests.remove(0);
        for path in ["/a", "/b", "/c"] {
            let mut request = request.clone();
            request.request.path = path.into();
            spec.requests.push(request);
        }
        let result = load(&spec).unwrap();
        assert_eq!((result.window.due, result.window.right), (7, 7));
        let sent: Vec<u64> = result.by_request.iter().map(|kind| kind.sent).collect();
        assert_eq!(sent, [3, 2, 2]);
        let mut seen = seen.lock().unwrap().clone();
        seen[4..].sort();
        assert_eq!(seen, ["/b", "/a", "/c", "/b", "/a", "/a", "/c"]);
    });
}

#[test]
fn recorded_requests_are_those_of_the_load() {
    let recorded = |request| OfferedRate::Recorded(vec![RecordedDue { at_s: 0.0, request }]);
    let mut spec = order_to("127.0.0.1:1".parse().unwrap(), LoadKind::Closed);
    spec.kind = LoadKind::Open { rate: recorded(1), arrivals: Arrivals::Constant };
    assert!(load(&spec).unwrap_err().to_string().contains("none of the load's"));
    spec.kind = LoadKind::Open { rate: recorded(0), arrivals: Arrivals::Constant };
    spec.targets.push(spec.targets[0].clone());
    assert!(load(&spec).unwrap_err().to_string().contains("for 2 targets"));
}

#[test]
fn the_first_byte_has_a_time_of_its_own() {
    at_once(&DRIVERS, |driver| {
        // Half at once; half in two pieces, 100 ms apart.
        let server = Server::start(|asked| {
            if asked.number % 2 == 0 {
                return Do::Send(ok("0123456789"));
            }
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234".to_vec();
            Do::SendSlowly(head, Duration::from_millis(100), b"56789".to_vec())
        });
        let mut spec = order(&server, LoadKind::Count { requests: 20 });
        spec.driver = driver;
        spec.connections = 1;
        spec.timeout_s = 10.0;
        spec.duration_s = 30.0;
        let result = load(&spec).unwrap();
        assert_eq!((result.first_byte.count, result.service.count), (20, 20));
        assert!(result.service.p75_us > 95_000.0, "{:?}", result.service);
        assert!(result.first_byte.p75_us < 60_000.0, "{:?}", result.first_byte);
        let slower = result.service.mean_us - result.first_byte.mean_us;
        assert!((40_000.0..70_000.0).contains(&slower), "{slower}");
    });
}
