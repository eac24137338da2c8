//! What is counted is what happened.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_model::load::{LoadSecond, OfferedRate};
use weir_model::suite::{Arrivals, LoadKind};
use xxhash_rust::xxh3::xxh3_64;

use super::server::{Do, Server, answer, ok};
use super::*;
use crate::Progress;

#[test]
fn a_counted_load_sends_exactly_that_many() {
    for driver in DRIVERS {
        let server = Server::start(|_| Do::Send(ok("hello")));
        let mut spec = order(&server, LoadKind::Count { requests: 1_003 });
        spec.driver = driver;
        spec.connections = 7;
        spec.threads = 2;
        spec.duration_s = 30.0;
        spec.warmup_s = 5.0;
        let result = load(&spec).unwrap();
        assert_eq!(server.requests(), 1_003);
        assert_eq!(result.total.sent, 1_003);
        assert_eq!(result.window.right, 1_003);
        assert_eq!(result.window.right_in_window, 1_003);
        assert_eq!(result.window.body_bytes, 5 * 1_003);
        assert_eq!(result.total.connections, 7);
        assert_eq!(server.connections(), 7);
        assert_eq!(result.threads, 2);
        assert!(!result.cut_short);
        // It ends with its last answer, not with the bound, and has no warm-up.
        assert!(result.window_s < 20.0, "{}", result.window_s);
    }
}

#[test]
fn fewer_requests_than_connections_are_no_trouble() {
    let server = Server::start(|_| Do::Send(ok("")));
    let mut spec = order(&server, LoadKind::Count { requests: 3 });
    spec.connections = 8;
    spec.threads = 2;
    assert_eq!(load(&spec).unwrap().window.right, 3);
}

#[test]
fn a_counted_load_ends_at_its_bound_if_that_comes_first() {
    let server = Server::start(|_| Do::SendSlowly(vec![], Duration::from_millis(20), ok("")));
    let mut spec = order(&server, LoadKind::Count { requests: 100_000 });
    spec.duration_s = 0.5;
    let result = load(&spec).unwrap();
    assert!((result.window_s - 0.5).abs() < 0.01);
    assert!(result.total.sent < 1_000);
    assert_eq!(server.requests(), result.total.sent);
}

#[test]
fn a_closed_load_balances_with_the_server() {
    at_once(&DRIVERS, |driver| {
        let server = Server::start(|_| Do::Send(ok("0123456789")));
        let mut spec = order(&server, LoadKind::Closed);
        spec.driver = driver;
        spec.threads = 2;
        spec.warmup_s = 0.5;
        spec.duration_s = 1.5;
        let mut seen = Vec::new();
        let result = run(&spec, &Outputs::default(), &StopFlag::new(), &mut |p| seen.push(p)).unwrap();
        balanced(&result);
        assert_eq!(server.requests(), result.total.sent);
        assert_eq!(result.total.right, result.total.sent);
        assert!(result.total.sent > result.window.sent, "warm-up counts in the total only");
        assert_eq!(result.window.statuses.get(&200), Some(&result.window.right));
        assert_eq!(result.lag.max_us, 0.0, "a closed load is never late");
        let bytes_out = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", server.addr).len() as u64;
        assert_eq!(result.total.bytes_out, bytes_out * result.total.sent);
        assert_eq!(result.total.bytes_in, ok("0123456789").len() as u64 * result.total.sent);
        assert_eq!(result.total.plaintext_in, result.total.bytes_in);
        let rate = result.window.right_in_window as f64 / result.window_s;
        assert!((result.rate - rate).abs() < 1e-6 * rate);
        assert!((result.body_bytes_per_s - 10.0 * rate).abs() < 1e-5 * rate);
        assert_eq!(result.series.len(), 2);
        assert!((result.series[1].length_s - 0.5).abs() < 1e-9);
        assert!(result.thread_busy.iter().all(|busy| *busy > 0.0 && *busy <= 1.05), "{:?}", result.thread_busy);
        assert!(result.cpu_us.0 + result.cpu_us.1 > 0);

        let rows: Vec<&LoadSecond> = seen
            .iter()
            .filter_map(|p| match p {
                Progress::Second(row) => Some(row),
                _ => None,
            })
            .collect();
        assert_eq!(rows.len(), 2);
        assert!(matches!(seen[0], Progress::Connecting { of: 4, .. }));
        let at = |wanted: fn(&Progress) -> bool| seen.iter().position(wanted).unwrap();
        let start = at(|p| matches!(p, Progress::WindowStart { .. }));
        let end = at(|p| matches!(p, Progress::WindowEnd));
        assert!(start < end);
        assert!(at(|p| matches!(p, Progress::Warmup { second: 0, .. })) < end);
        assert!(matches!(seen[start], Progress::WindowStart { unix_ms } if unix_ms == result.window_start_ms));
    });
}

/// 10,000 due in the second, each with up to 50 us awake before it: about half of it. The work is little beside.
#[test]
fn what_is_spent_awake_and_waiting_is_told_apart_from_work() {
    at_once(&DRIVERS, |driver| {
        let server = Server::start(|_| Do::Send(ok("hello")));
        let mut spec = order(&server, constant(10_000.0));
        spec.driver = driver;
        let open = load(&spec).unwrap();
        let cpu_us = open.cpu_us.0 + open.cpu_us.1;
        assert!(open.busy_poll_us > 0, "{open:?}");
        assert!(open.busy_poll_us <= cpu_us, "{} of {cpu_us} us", open.busy_poll_us);
        let work = (cpu_us - open.busy_poll_us) as f64 / 1e6 / open.window_s;
        assert!((open.thread_busy[0] - work).abs() < 0.01, "{:?}, {work}", open.thread_busy);
        spec.kind = LoadKind::Closed;
        assert_eq!(load(&spec).unwrap().busy_poll_us, 0, "nothing falls due in a closed load");
    });
}

#[test]
fn an_open_load_is_due_exactly_as_often_as_ordered() {
    at_once(&DRIVERS, |driver| {
        for threads in [1, 2] {
            let server = Server::start(|_| Do::Send(ok("hello")));
            let mut spec = order(&server, constant(400.0));
            spec.driver = driver;
            spec.threads = threads;
            spec.warmup_s = 0.25;
            spec.duration_s = 0.75;
            let result = load(&spec).unwrap();
            assert_eq!(result.window.due, 300);
            assert_eq!(result.total.due, 400);
            assert_eq!(result.window.right, 300);
            assert_eq!(server.requests(), 400);
            assert_eq!(result.offered_rate, Some(400.0));
        }
    });
}

#[test]
fn an_open_load_uses_every_connection() {
    let asked_on: Arc<Mutex<[u32; 20]>> = Arc::default();
    let seen = asked_on.clone();
    let server = Server::start(move |asked| {
        seen.lock().unwrap()[asked.connection as usize] += 1;
        Do::Send(ok(""))
    });
    let mut spec = order(&server, constant(200.0));
    spec.connections = 20;
    assert_eq!(load(&spec).unwrap().total.right, 200);
    // First free, first used: 200 requests over 20 connections are 10 each, give or take where an answer was late.
    let asked_on = asked_on.lock().unwrap();
    assert!(asked_on.iter().all(|n| (5..=15).contains(n)), "{asked_on:?}");
}

#[test]
fn poisson_arrivals_repeat_by_seed() {
    let run_once = |seed| {
        let server = Server::start(|_| Do::Send(ok("hello")));
        let mut spec = order(&server, LoadKind::open(500.0, Arrivals::Poisson));
        spec.seed = seed;
        load(&spec).unwrap().window.due
    };
    let due = run_once(5);
    assert_eq!(due, run_once(5));
    // Mean 500, standard deviation 22.
    assert!((380..620).contains(&due), "{due}");
}

#[test]
fn warmup_requests_answered_in_the_window_count_for_the_rate_and_leave_no_sample() {
    // One connection; the first answer takes 1.5 s and comes 1.2 s into the window, the others take 5 ms.
    let server = Server::start(|asked| {
        let ms = if asked.number == 0 { 1_500 } else { 5 };
        Do::SendSlowly(vec![], Duration::from_millis(ms), ok("x"))
    });
    let mut spec = order(&server, LoadKind::Closed);
    spec.connections = 1;
    spec.warmup_s = 0.3;
    spec.duration_s = 2.5;
    spec.timeout_s = 10.0;
    let result = load(&spec).unwrap();
    assert!(result.latency.max_us < 1_400_000.0, "{}", result.latency.max_us);
    assert_eq!(result.total.right, result.window.right + 1);
    // All in the window by due time, but the last one comes after it; instead the first one came in it.
    assert_eq!(result.window.right_in_window, result.window.right);
}

#[test]
fn connection_close_opens_one_for_every_request() {
    at_once(&DRIVERS, |driver| {
        let server = Server::start(|asked| {
            assert!(asked.head.contains("Connection: close\r\n"), "{}", asked.head);
            Do::SendAndClose(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_vec())
        });
        for kind in [LoadKind::Count { requests: 50 }, constant(100.0)] {
            let mut spec = order(&server, kind);
            spec.driver = driver;
            spec.connection_close = true;
            let before = server.requests();
            let result = load(&spec).unwrap();
            let sent = server.requests() - before;
            assert_eq!(result.total.right, sent);
            assert!(sent == 50 || sent == 100);
            // Those made before the start serve the first requests; in a counted load all are used.
            assert!(result.total.connections >= sent && result.total.connections <= sent + 4);
            assert_eq!(result.total.closed_by_peer, 0);
            assert_eq!(result.connect.count, result.total.connections);
        }
    });
}

#[test]
fn a_peer_may_close_between_answers_and_answers_may_end_with_the_connection() {
    for driver in DRIVERS {
        // Alternately: a polite announcement, no announcement, and a body that only the close ends.
        let server = Server::start(|asked| match asked.connection % 3 {
            0 => Do::SendAndClose(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok".to_vec()),
            1 => Do::SendAndClose(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()),
            _ => Do::SendAndClose(b"HTTP/1.1 200 OK\r\n\r\nok".to_vec()),
        });
        let mut spec = order(&server, LoadKind::Count { requests: 60 });
        spec.driver = driver;
        spec.requests[0].expect.size = Some(2);
        let result = load(&spec).unwrap();
        assert_eq!(result.total.right, 60);
        assert_eq!(result.total.closed_by_peer, 60);
        assert_eq!(server.requests(), 60);
    }
}

#[test]
fn an_idle_connection_that_the_peer_closes_is_made_again() {
    let server = Server::start(|asked| {
        if asked.connection < 4 {
            // Answers, then closes a little later, while the connection is idle.
            Do::SendAndClose(ok("ok"))
        } else {
            Do::Send(ok("ok"))
        }
    });
    // Every connection is used each half second, so that a close is seen in between.
    let mut spec = order(&server, constant(8.0));
    spec.duration_s = 1.0;
    let result = load(&spec).unwrap();
    assert_eq!(result.total.right, 8);
    assert_eq!(result.total.closed_by_peer, 4);
    assert_eq!(result.total.connections, 8);
}

#[test]
fn bodies_and_statuses_are_checked() {
    let server = Server::start(|asked| {
        Do::Send(match asked.number % 4 {
            0 => ok("right"),
            1 => ok("wrong"),
            2 => ok("too long"),
            _ => answer(503, "right"),
        })
    });
    let mut spec = order(&server, LoadKind::Count { requests: 80 });
    spec.connections = 1;
    spec.requests[0].expect.size = Some(5);
    spec.requests[0].expect.hash = Some(xxh3_64(b"right"));
    let result = load(&spec).unwrap();
    assert_eq!(result.total.right, 20);
    assert_eq!(errors(&result.total), [("bad_status", 20), ("wrong_body", 40)]);
    assert_eq!(result.total.statuses.into_iter().collect::<Vec<_>>(), [(200, 60), (503, 20)]);
    assert_eq!(result.total.body_bytes, 20 * (5 + 5 + 8 + 5));
    assert_eq!(result.total.right_body_bytes_in_window, 20 * 5);
    // A wrong answer is no reason to leave the connection.
    assert_eq!(result.total.connections, 1);
}

#[test]
fn a_header_that_comes_during_the_load_is_named() {
    let server = Server::start(|asked| {
        let header = if asked.number < 1_500 { "" } else { "X-Cache: HIT\r\n" };
        let varies = asked.number;
        Do::Send(format!("HTTP/1.1 200 OK\r\n{header}X-Id: {varies}\r\nContent-Length: 2\r\n\r\nok").into_bytes())
    });
    let mut spec = order(&server, LoadKind::Count { requests: 2_500 });
    (spec.connections, spec.threads) = (1, 1);
    let headers = load(&spec).unwrap().headers.unwrap();
    assert!(headers.sampled >= 3, "{headers:?}");
    let [change] = &headers.changes[..] else { panic!("{headers:?}") };
    assert_eq!((change.name.as_str(), &change.was, change.is.as_deref()), ("x-cache", &None, Some("HIT")));
}

#[test]
fn bodies_in_pieces_and_in_chunks_are_right_too() {
    let server = Server::start(|asked| {
        let pause = Duration::from_millis(2);
        if asked.number % 2 == 0 {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234".to_vec();
            Do::SendSlowly(head, pause, b"56789".to_vec())
        } else {
            let head =
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n012\r\n"
                    .to_vec();
            Do::SendSlowly(head, pause, b"7\r\n3456789\r\n0\r\n\r\n".to_vec())
        }
    });
    let mut spec = order(&server, LoadKind::Count { requests: 40 });
    spec.connections = 1;
    spec.requests[0].expect.hash = Some(xxh3_64(b"0123456789"));
    assert_eq!(load(&spec).unwrap().total.right, 40);
}

#[test]
fn small_and_large_request_bodies_arrive_whole() {
    for driver in DRIVERS {
        for size in [10, 200_000] {
            let body: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let wanted = body.clone();
            let server =
                Server::start(move |asked| Do::Send(if asked.body == wanted { ok("yes") } else { answer(400, "no") }));
            let mut spec = order(&server, LoadKind::Count { requests: 20 });
            spec.driver = driver;
            spec.requests[0].request.method = "POST".into();
            spec.requests[0].request.body = body;
            let result = load(&spec).unwrap();
            assert_eq!(result.total.right, 20, "{:?}", errors(&result.total));
            assert!(result.total.bytes_out > 20 * size as u64);
        }
    }
}

#[test]
fn head_requests_have_no_body_to_check() {
    let server = Server::start(|_| Do::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_vec()));
    let mut spec = order(&server, LoadKind::Count { requests: 10 });
    spec.requests[0].request.method = "HEAD".into();
    spec.requests[0].expect.size = Some(1_000);
    assert_eq!(load(&spec).unwrap().total.right, 10);
}

#[test]
fn every_row_says_how_many_connections_are_open() {
    at_once(&DRIVERS, |driver| {
        let server = Server::start(|_| Do::Send(ok("hello")));
        let mut spec = order(&server, LoadKind::Closed);
        (spec.driver, spec.threads, spec.connections, spec.duration_s) = (driver, 2, 3, 2.0);
        let open = |spec: &LoadSpec| -> Vec<Option<u32>> {
            load(spec).unwrap().series.iter().map(|row| row.connections_open).collect()
        };
        assert_eq!(open(&spec), [Some(3); 2]);
        // Each thread has one request, in a second of its own, and its connection is closed after it.
        (spec.kind, spec.connection_close) =
            (LoadKind::Open { rate: OfferedRate::Replay(vec![0.1, 1.1]), arrivals: Arrivals::Constant }, true);
        assert_eq!(open(&spec), [Some(2), Some(1)]);
    });
}

#[test]
fn the_files_hold_what_the_result_says() {
    let server = Server::start(|_| Do::Send(ok("hello")));
    let mut spec = order(&server, constant(100.0));
    spec.duration_s = 2.0;
    let dir = tempfile::tempdir().unwrap();
    let outputs = Outputs { hlog: Some(dir.path().join("latency.hlog")), series: Some(dir.path().join("load.csv")) };
    let result = run(&spec, &outputs, &StopFlag::new(), &mut |_| {}).unwrap();
    let log = std::fs::read_to_string(dir.path().join("latency.hlog")).unwrap();
    // Two seconds and the drain, four tags each.
    assert_eq!(log.lines().filter(|line| line.starts_with("Tag=")).count(), 12);
    let mut csv = csv::Reader::from_path(dir.path().join("load.csv")).unwrap();
    let rows: Vec<LoadSecond> = csv.deserialize().collect::<Result<_, _>>().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows.iter().map(|row| row.due).sum::<u64>(), result.window.due);
    let json = serde_json::to_string(&result).unwrap();
    assert_eq!(serde_json::from_str::<LoadResult>(&json).unwrap().window, result.window);
}
