//! What is counted is what happened.

use std::net::{IpAddr, SocketAddr};

use weir_load::{Outputs, Progress, StopFlag};
use weir_model::load::{LoadResult, LoadSecond, LoadSpec, OfferedRate, RequestSpec, Target};
use weir_model::suite::{Arrivals, Expect, LoadKind};
use xxhash_rust::xxh3::xxh3_64;

use crate::script::{Do, Server};
use crate::servers::{Asked, closing, http, late, ok, response};
use crate::world::*;

#[test]
fn a_counted_load_sends_exactly_that_many() {
    // Of a thread with three connections each has 167 requests at most.
    for (requests, connections, longest) in [(1_003, 7, 167), (3, 8, 1)] {
        let world = world();
        let server = http(&world, |_| ok("hello"));
        let mut spec = LoadSpec { connections, threads: 2, ..order(server.addr, counted(requests)) };
        (spec.duration_s, spec.warmup_s) = (30.0, 5.0);
        let result = load(&world, &spec).unwrap();
        let sent = [result.total.sent, result.window.successful, result.window.successful_in_window, server.requests()];
        assert_eq!(sent, [requests; 4]);
        assert_eq!(result.window.body_bytes, 5 * requests);
        assert_eq!((result.total.connections, server.connections()), (connections.into(), connections.into()));
        assert_eq!((result.threads, result.cut_short), (2, false));
        // It ends with its last response, not with the bound, and has no warm-up.
        assert_eq!(result.window_s, (longest * ROUND_TRIP) as f64 / 1e9);
        times(&result.latency, ROUND_TRIP, ROUND_TRIP, ROUND_TRIP);
    }
}

#[test]
fn a_counted_load_ends_at_its_bound_if_that_comes_first() {
    let world = world();
    let server = http(&world, |_| late(19 * MS));
    let spec = LoadSpec { duration_s: 0.5, ..order(server.addr, counted(100_000)) };
    let result = load(&world, &spec).unwrap();
    assert_eq!((result.window_s, result.total.sent, server.requests()), (0.5, 4 * 25, 4 * 25));
}

#[test]
fn a_closed_load_balances_with_the_server() {
    let world = world();
    let server = http(&world, |_| ok("0123456789"));
    let spec = LoadSpec { threads: 2, warmup_s: 0.507, duration_s: 1.5, ..order(server.addr, LoadKind::Closed) };
    let mut seen = Vec::new();
    let result =
        load_with(&world, &spec, &Outputs::default(), &StopFlag::new(), &mut |p| seen.push((world.now() / MS, p)))
            .unwrap();
    assert_eq!([result.window.sent, result.window.successful_in_window, result.total.sent], [6_000, 6_000, 8_028]);
    assert_eq!([server.requests(), result.total.successful], [8_028; 2]);
    assert_eq!(result.window.statuses.iter().collect::<Vec<_>>(), [(&200, &6_000)]);
    assert_eq!((result.lag.max_us, result.rate, result.body_bytes_per_s), (0.0, 4_000.0, 40_000.0));
    times(&result.latency, ROUND_TRIP, ROUND_TRIP, ROUND_TRIP);
    times(&result.connect, ROUND_TRIP, ROUND_TRIP, ROUND_TRIP);
    let length = |text: Vec<u8>| text.len() as u64 * 8_028;
    assert_eq!(result.total.bytes_out, length(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()));
    assert_eq!([result.total.bytes_in, result.total.plaintext_in], [length(response(200, "0123456789")); 2]);
    let rows: Vec<(f64, u64)> = result.series.iter().map(|row| (row.length_s, row.successful)).collect();
    assert_eq!(rows, [(1.0, 4_000), (0.5, 2_000)]);
    assert_eq!(result.tenths, [400; 15]);
    // To send, to hand over and to receive take a microsecond each.
    assert_eq!(result.cpu_us.0 + result.cpu_us.1, 3 * 6_000);
    assert_eq!(result.thread_busy, [0.006; 2]);
    let name = |(ms, news): &(u64, Progress)| match news {
        Progress::Connecting { open, of: 4 } => Some(format!("{ms} open {open}")),
        Progress::Warmup { second, row } => Some(format!("{ms} warm-up {second} {}", row.successful)),
        Progress::WindowStart { unix_ms } if *unix_ms == result.window_start_ms => Some(format!("{ms} start")),
        Progress::Second(row) => Some(format!("{ms} second {} {}", row.second, row.successful)),
        Progress::WindowEnd => Some(format!("{ms} end")),
        _ => None,
    };
    // Marks are on time; what comes at one counts behind it.
    let news: Vec<String> = seen.iter().filter_map(name).collect();
    let begun = ["0 open 0", "50 open 4", "607 start", "607 warm-up 0 2024"];
    assert_eq!(news[..4], begun);
    assert_eq!(news[4..], ["1607 second 0 4000", "2107 end", "2107 second 1 2000"]);
}

#[test]
fn an_open_load_is_due_exactly_as_often_as_ordered() {
    for threads in [1, 2] {
        let world = world();
        let server = http(&world, |_| ok("hello"));
        let spec = LoadSpec { threads, warmup_s: 0.25, duration_s: 0.75, ..order(server.addr, constant(400.0)) };
        let result = load(&world, &spec).unwrap();
        assert_eq!([result.window.due, result.window.successful, result.total.due], [300, 300, 400]);
        assert_eq!((server.requests(), result.offered_rate), (400, Some(400.0)));
        let first = server.seen().asked[0].1;
        assert!(server.seen().asked.iter().zip(0..).all(|((_, at), nth)| *at == first + nth * 2_500_000));
    }
}

#[test]
fn an_open_load_uses_every_connection() {
    let world = world();
    let server = http(&world, |_| ok(""));
    load(&world, &LoadSpec { connections: 20, ..order(server.addr, constant(200.0)) }).unwrap();
    // First free, first used.
    let used: Vec<u64> = server.seen().asked.iter().map(|(connection, _)| *connection).collect();
    let first: Vec<u64> = used[..20].to_vec();
    assert!(used.chunks(20).all(|round| round == first) && used.len() == 200, "{used:?}");
    assert_eq!(first.iter().collect::<std::collections::BTreeSet<_>>().len(), 20);
}

#[test]
fn poisson_arrivals_repeat_by_seed() {
    let arrivals = |seed| {
        let world = world();
        let server = http(&world, |_| ok("hello"));
        load(&world, &LoadSpec { seed, ..order(server.addr, LoadKind::open(500.0, Arrivals::Poisson)) }).unwrap();
        server.seen().asked.iter().map(|(_, at)| *at).collect::<Vec<_>>()
    };
    assert_eq!(arrivals(5), arrivals(5));
    assert_ne!(arrivals(5), arrivals(6));
    // Mean 500, standard deviation 22.
    assert!((400..600).contains(&arrivals(5).len()));
}

#[test]
fn warmup_requests_answered_in_the_window_count_for_the_rate_and_leave_no_sample() {
    let world = world();
    // The first response comes 1.2 s into the window, the others take 5 ms.
    let server = http(&world, |asked| late(if asked.number == 0 { 1_499 * MS } else { 4 * MS }));
    let mut spec = LoadSpec { connections: 1, warmup_s: 0.3, duration_s: 2.5, ..order(server.addr, LoadKind::Closed) };
    spec.timeout_s = 10.0;
    let result = load(&world, &spec).unwrap();
    times(&result.latency, 5 * MS, 5 * MS, 5 * MS);
    // From 1.5 s to 2.8 s.
    assert_eq!(
        [result.window.successful, result.window.successful_in_window, result.total.successful],
        [260, 260, 261]
    );
}

#[test]
fn connection_close_opens_one_for_every_request() {
    for (kind, requests) in [(counted(50), 50), (constant(100.0), 100)] {
        let world = world();
        let server = http(&world, |asked| {
            assert!(asked.head.contains("Connection: close\r\n"), "{}", asked.head);
            closing()
        });
        let result = load(&world, &LoadSpec { connection_close: true, ..order(server.addr, kind) }).unwrap();
        assert_eq!((result.total.successful, server.requests()), (requests, requests));
        // One shows that there is a target; all others are made when requests are due.
        let opened = requests + 1;
        assert_eq!([result.total.connections, server.connections(), result.connect.count], [opened; 3]);
        assert_eq!((result.total.closed_by_peer, result.lag.max_us), (0, us(ROUND_TRIP)));
        times(&result.latency, 2 * ROUND_TRIP, 2 * ROUND_TRIP, 2 * ROUND_TRIP);
        // Ports in TIME_WAIT: they come from sixteen addresses in turn.
        let peers = &server.seen().peers;
        let is_from = |last: u8| move |peer: &&SocketAddr| peer.ip() == IpAddr::from([127, 0, 0, last]);
        let from = |last| peers.iter().filter(is_from(last)).count() as u64;
        assert!((1..=16).all(|last| (opened / 16..=opened / 16 + 1).contains(&from(last))), "{peers:?}");
    }
}

#[test]
fn a_peer_may_close_between_answers_and_answers_may_end_with_the_connection() {
    let world = world();
    // Alternately: a polite announcement, no announcement, and a body that only the close ends.
    let server = http(&world, |asked| {
        let end = |text: &[u8]| vec![Do::Send(text.to_vec()), Do::End];
        match asked.connection % 3 {
            0 => closing(),
            1 => end(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            _ => end(b"HTTP/1.1 200 OK\r\n\r\nok"),
        }
    });
    let mut spec = order(server.addr, counted(60));
    spec.requests[0].expect.size = Some(2);
    let result = load(&world, &spec).unwrap();
    assert_eq!([result.total.successful, result.total.closed_by_peer, server.requests()], [60; 3]);
}

#[test]
fn an_idle_connection_that_the_peer_closes_is_made_again() {
    let world = world();
    let close = |asked: &Asked| if asked.connection < 4 { vec![Do::Wait(50 * MS), Do::End] } else { Vec::new() };
    let server = http(&world, move |asked| ok("ok").into_iter().chain(close(asked)).collect());
    // Each connection is used twice.
    let result = load(&world, &order(server.addr, constant(8.0))).unwrap();
    assert_eq!([result.total.successful, result.total.closed_by_peer, result.total.connections], [8, 4, 8]);
}

#[test]
fn bodies_statuses_and_headers_are_checked() {
    let world = world();
    let server = http(&world, |asked| match asked.number % 5 {
        0 => vec![Do::Send(b"HTTP/1.1 200 OK\r\nX-Cache: HIT\r\nContent-Length: 5\r\n\r\nright".to_vec())],
        1 => vec![Do::Send(b"HTTP/1.1 200 OK\r\nX-Cache: HIT\r\nContent-Length: 5\r\n\r\nwrong".to_vec())],
        2 => vec![Do::Send(b"HTTP/1.1 200 OK\r\nX-Cache: HIT\r\nContent-Length: 8\r\n\r\ntoo long".to_vec())],
        3 => vec![Do::Send(b"HTTP/1.1 200 OK\r\nX-Cache: MISS\r\nContent-Length: 5\r\n\r\nright".to_vec())],
        _ => vec![Do::Send(response(503, "right"))],
    });
    let mut spec = LoadSpec { connections: 1, ..order(server.addr, counted(100)) };
    let headers = vec![("x-cache".into(), Some("HIT".into()))];
    spec.requests[0].expect = Expect { size: Some(5), hash: Some(xxh3_64(b"right")), headers, ..Expect::default() };
    let result = load(&world, &spec).unwrap();
    assert_eq!(errors(&result.total), [("bad_status", 20), ("wrong_body", 40), ("wrong_header", 20)]);
    assert_eq!(result.total.statuses.iter().collect::<Vec<_>>(), [(&200, &80), (&503, &20)]);
    assert_eq!((result.total.successful, result.total.body_bytes), (20, 20 * (5 + 5 + 8 + 5 + 5)));
    // A wrong response is no reason to leave the connection.
    assert_eq!((result.total.successful_body_bytes_in_window, result.total.connections), (20 * 5, 1));
}

#[test]
fn a_header_that_comes_during_the_load_is_named() {
    let world = world();
    let server = http(&world, |asked| {
        let (cache, number) = (if asked.number < 1_500 { "" } else { "X-Cache: HIT\r\n" }, asked.number);
        let text = format!("HTTP/1.1 200 OK\r\n{cache}X-Id: {number}\r\nContent-Length: 2\r\n\r\nok");
        vec![Do::Send(text.into_bytes())]
    });
    let spec = LoadSpec { connections: 1, duration_s: 30.0, ..order(server.addr, counted(2_500)) };
    let headers = load(&world, &spec).unwrap().headers.unwrap();
    let [change] = &headers.changes[..] else { panic!("{headers:?}") };
    assert_eq!((change.name.as_str(), &change.was, change.is.as_deref()), ("x-cache", &None, Some("HIT")));
    assert_eq!(headers.sampled, 3, "{headers:?}");
}

#[test]
fn only_the_window_counts_for_headers_and_its_end_forgets_nothing() {
    let world = world();
    // Some 2,000 requests of a warm-up, then 8,000 of the window; samples are one in a thousand.
    let server = http(&world, |asked| {
        let text = match asked.number {
            ..1_000 => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            1_000..6_000 => "HTTP/1.1 200 OK\r\nX-Early: 1\r\nContent-Length: 2\r\n\r\nok",
            _ => "HTTP/1.1 200 OK\r\nX-Early: 1\r\nX-Late: 1\r\nContent-Length: 2\r\n\r\nok",
        };
        vec![Do::Send(text.as_bytes().to_vec())]
    });
    let spec = LoadSpec { warmup_s: 0.5, duration_s: 2.0, ..order(server.addr, LoadKind::Closed) };
    let headers = load(&world, &spec).unwrap().headers.unwrap();
    let changes: Vec<&str> = headers.changes.iter().map(|change| change.name.as_str()).collect();
    assert_eq!(changes, ["x-late"], "{headers:?}");
}

#[test]
fn a_large_body_that_nobody_hashes_is_counted_to_the_byte() {
    let world = world();
    let body = "x".repeat(300_000);
    let sent = response(200, &body);
    let length = sent.len() as u64;
    let server = http(&world, move |_| vec![Do::Send(sent.clone())]);
    let total = load(&world, &order(server.addr, counted(20))).unwrap().total;
    assert_eq!([total.bytes_in, total.plaintext_in, total.body_bytes], [20 * length, 20 * length, 20 * 300_000]);
}

#[test]
fn a_connection_that_cannot_be_made_is_an_error_and_none_that_was_served_badly() {
    let world = world();
    let server = http(&world, |_| ok("ok"));
    let mut spec = order(server.addr, LoadKind::Closed);
    spec.targets.push(Target::tcp("127.0.0.1:9".parse().unwrap(), "localhost"));
    spec.requests.push(RequestSpec { target: 1, ..spec.requests[0].clone() });
    let result = load(&world, &spec).unwrap();
    let spread = result.by_connection.unwrap();
    assert!(errors(&result.total).len() == 1, "{:?}", result.total);
    assert_eq!((spread.connections, spread.max_us), (2, spread.p10_us), "{spread:?}");
}

#[test]
fn bodies_in_pieces_and_in_chunks_are_right_too() {
    let world = world();
    let server = http(&world, |asked| {
        let chunked = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n012\r\n";
        let (first, second): (&[u8], &[u8]) = match asked.number % 2 {
            0 => (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234", b"56789"),
            _ => (chunked, b"7\r\n3456789\r\n0\r\n\r\n"),
        };
        vec![Do::Send(first.to_vec()), Do::Wait(2 * MS), Do::Send(second.to_vec())]
    });
    let mut spec = LoadSpec { connections: 1, ..order(server.addr, counted(40)) };
    spec.requests[0].expect.hash = Some(xxh3_64(b"0123456789"));
    let result = load(&world, &spec).unwrap();
    assert_eq!(result.total.successful, 40);
    times(&result.first_byte, ROUND_TRIP, ROUND_TRIP, ROUND_TRIP);
    times(&result.service, 3 * MS, 3 * MS, 3 * MS);
}

#[test]
fn small_and_large_request_bodies_arrive_whole_and_head_responses_have_none() {
    let body = |size: usize| (0..size).map(|i| (i % 251) as u8).collect::<Vec<u8>>();
    for (method, size) in [("POST", 10), ("POST", 700_000), ("HEAD", 0)] {
        let world = world();
        let server = http(&world, move |asked| {
            assert!(asked.body == body(size));
            match asked.head.starts_with("HEAD") {
                true => vec![Do::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_vec())],
                false => ok("yes"),
            }
        });
        let mut spec = order(server.addr, counted(20));
        spec.requests[0].request.method = method.into();
        spec.requests[0].request.body = body(size);
        spec.requests[0].expect.size = Some(if method == "HEAD" { 1_000 } else { 3 });
        let result = load(&world, &spec).unwrap();
        assert_eq!((result.total.successful, result.total.sent), (20, 20), "{:?}", errors(&result.total));
        let head = result.total.bytes_out / 20 - size as u64;
        assert!((30..100).contains(&head), "{head}");
    }
}

#[test]
fn every_row_says_how_many_connections_are_open() {
    let world = world();
    let server = http(&world, |_| ok("hello"));
    let mut spec = order(server.addr, LoadKind::Closed);
    (spec.threads, spec.connections, spec.duration_s) = (2, 3, 2.0);
    let open = |spec: &LoadSpec| -> Vec<Option<u32>> {
        load(&world, spec).unwrap().series.iter().map(|row| row.connections_open).collect()
    };
    assert_eq!(open(&spec), [Some(3); 2]);
    // Each thread has one request, in a second of its own, with a connection that is closed after it.
    let rate = OfferedRate::Replay(vec![0.1, 1.1]);
    (spec.kind, spec.connection_close) = (LoadKind::Open { rate, arrivals: Arrivals::Constant }, true);
    assert_eq!(open(&spec), [Some(0), Some(0)]);
}

#[test]
fn a_redirect_says_where_to() {
    let world = world();
    let redirect = b"HTTP/1.1 301 Moved\r\nLocation: https://shop.example/\r\nContent-Length: 0\r\n\r\n";
    let server = http(&world, |_| vec![Do::Send(redirect.to_vec())]);
    let location = |server: &Server| {
        let result = load(&world, &order(server.addr, counted(20))).unwrap();
        assert_eq!(result.total.successful, 20);
        result.headers.unwrap().location
    };
    assert_eq!(location(&server).as_deref(), Some("https://shop.example/"));
    assert_eq!(location(&http(&world, |_| ok("ok"))), None);
}

#[test]
fn the_files_hold_what_the_result_says() {
    let world = world();
    let server = http(&world, |_| ok("hello"));
    let spec = LoadSpec { duration_s: 2.0, ..order(server.addr, constant(100.0)) };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| Some(dir.path().join(name));
    let outputs = Outputs { hlog: path("latency.hlog"), series: path("load.csv") };
    let result = load_with(&world, &spec, &outputs, &StopFlag::new(), &mut |_| ()).unwrap();
    let log = std::fs::read_to_string(dir.path().join("latency.hlog")).unwrap();
    // Two seconds and the drain, four tags each.
    assert_eq!(log.lines().filter(|line| line.starts_with("Tag=")).count(), 12);
    let mut csv = csv::Reader::from_path(dir.path().join("load.csv")).unwrap();
    let rows: Vec<LoadSecond> = csv.deserialize().collect::<Result<_, _>>().unwrap();
    assert_eq!(rows, result.series);
    assert_eq!(rows.iter().map(|row| row.due).collect::<Vec<_>>(), [100, 100]);
    let json = serde_json::to_string(&result).unwrap();
    assert_eq!(serde_json::from_str::<LoadResult>(&json).unwrap(), result);
    // A file that cannot be written is an error before anything is sent.
    let (before, outputs) =
        (server.connections(), Outputs { hlog: Some("/nowhere/latency.hlog".into()), series: None });
    let error = load_with(&world, &spec, &outputs, &StopFlag::new(), &mut |_| ()).unwrap_err();
    assert!(matches!(error, weir_load::LoadError::Output { .. }), "{error}");
    assert_eq!(server.connections(), before);
}
