//! How connections and origins end: properly, early, and by force.

mod common;

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use common::{Client, counters_when, get, start, start_with};
use rustix::net::sockopt::set_socket_linger;
use weir_model::load::DriverChoice;
use weir_origin::{Options, Origin, OriginError, payload};

on_each_driver!(
    what_is_malformed_is_refused_and_counted,
    counters_balance_over_many_connections,
    several_threads_share_the_address,
    a_reset_in_the_middle_of_an_answer,
    a_reset_after_the_answer,
    the_400_waits_its_turn,
    a_stop_finishes_what_is_under_way,
    a_stop_frees_the_port_and_leaves_no_thread,
    a_taken_port_is_reported,
);

fn what_is_malformed_is_refused_and_counted(driver: DriverChoice) {
    let origin = start(driver);
    let cases: [(&[u8], u64); 5] = [
        (b"nonsense\r\n\r\n", 0),
        (b"GET / HTTP/1.1\r\nHost: o\r\nbad header\r\n\r\n", 0),
        (b"GET / HTTP/1.1\r\n\r\n", 0),
        (b"POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 0),
        (b"POST /echo HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 1),
    ];
    let mut requests = 0;
    for (number, (bytes, heads)) in (1..).zip(cases) {
        let mut client = Client::new(&origin);
        // Valid requests before it are still answered, and first.
        client.send(get("/bytes/10"));
        client.send(bytes);
        assert_eq!(client.reply().body, payload(10));
        let reply = client.reply();
        assert_eq!((reply.status, reply.header("connection")), (400, Some("close")), "{}", reply.text());
        client.expect_closed();
        requests += 1 + heads;
        let counters = counters_when(&origin, |counters| counters.connections_open == 0);
        assert_eq!(
            (counters.malformed, counters.requests, counters.answered),
            (number, requests, number),
            "{counters:?}"
        );
    }
}

fn counters_balance_over_many_connections(driver: DriverChoice) {
    let origin = start(driver);
    let (mut sent, mut received, mut body_in, mut body_out) = (0, 0, 0, 0);
    for connection in 0..10 {
        let mut client = Client::new(&origin);
        for request in 0..20 {
            let size = connection * 1000 + request;
            let text = format!("POST /bytes/{size} HTTP/1.1\r\nHost: o\r\nContent-Length: 4\r\n\r\nbody");
            client.send(&text);
            let reply = client.reply();
            sent += text.len() as u64;
            received += (reply.head.len() + reply.body.len()) as u64;
            body_in += 4;
            body_out += size;
            // The lab's own requests on the same connection change nothing.
            assert_eq!(client.get("/_weir/ready").status, 204);
        }
        let old = "GET /bytes/0 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
        client.send(old);
        sent += old.len() as u64;
        received += client.reply().head.len() as u64;
        let last = "GET /bytes/0 HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n";
        client.send(last);
        sent += last.len() as u64;
        received += client.reply().head.len() as u64;
        client.expect_closed();
    }
    // One connection of the lab's own.
    assert_eq!(Client::new(&origin).get("/_weir/counters").status, 200);
    let counters = counters_when(&origin, |counters| counters.answered == 220 && counters.connections_open == 0);
    assert_eq!((counters.requests, counters.own_requests, counters.malformed), (220, 201, 0));
    assert_eq!((counters.connections_accepted, counters.connections_used, counters.connections_reset), (11, 10, 0));
    assert_eq!((counters.bytes_in, counters.bytes_out), (sent, received));
    assert_eq!((counters.body_bytes_in, counters.body_bytes_out), (body_in, body_out));
    assert_eq!(counters.versions, BTreeMap::from([("HTTP/1.0".into(), 10), ("HTTP/1.1".into(), 210)]));
    let headers = [("(none)", 200), ("close", 10), ("keep-alive", 10)];
    assert_eq!(counters.connection_headers, headers.into_iter().map(|(name, n)| (name.to_owned(), n)).collect());
    assert_eq!((counters.max_in_flight_per_connection, counters.max_connections_open), (1, 1));
}

fn several_threads_share_the_address(driver: DriverChoice) {
    let origin = start_with(driver, 3);
    let mut clients: Vec<Client> = (0..60).map(|_| Client::new(&origin)).collect();
    for client in &mut clients {
        for _ in 0..5 {
            assert_eq!(client.get("/bytes/128").body, payload(128));
        }
    }
    let counters = counters_when(&origin, |counters| counters.answered == 300);
    assert_eq!((counters.connections_open, counters.max_connections_open, counters.connections_used), (60, 60, 60));
    drop(clients);
    counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!(origin.stop().requests, 300);
}

fn a_reset_in_the_middle_of_an_answer(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    client.send(get("/bytes/8MiB"));
    counters_when(&origin, |counters| counters.requests == 1);
    std::thread::sleep(Duration::from_millis(20));
    // Bytes of the response are unread, so closing resets.
    drop(client);
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.requests, counters.answered, counters.connections_reset), (1, 0, 1));
    assert!(counters.bytes_out < 8 << 20);
    // The same while a response is delayed.
    let mut client = Client::new(&origin);
    client.send([get("/bytes/1000"), get("/delay/200ms")].concat());
    counters_when(&origin, |counters| counters.answered == 1);
    drop(client);
    counters_when(&origin, |counters| counters.connections_open == 0);
    // Other connections are not affected.
    assert_eq!(Client::new(&origin).get("/bytes/5").body, payload(5));
}

fn a_reset_after_the_answer(driver: DriverChoice) {
    let origin = start(driver);
    for round in 1..=20 {
        let mut client = Client::new(&origin);
        assert_eq!(client.get("/bytes/11268").body.len(), 11_268);
        set_socket_linger(client.stream(), Some(Duration::ZERO)).expect("a linger");
        drop(client);
        let counters = counters_when(&origin, |counters| counters.connections_open == 0);
        // The response had been taken. The client's reset afterwards changes nothing about it.
        assert_eq!((counters.answered, counters.connections_reset), (round, round));
        assert_eq!(counters.body_bytes_out, round * 11_268);
    }
}

fn the_400_waits_its_turn(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    let start = Instant::now();
    client.send(get("/delay/50ms") + "nonsense\r\n\r\n" + &get("/bytes/1"));
    assert_eq!(client.reply().text(), "ok");
    assert!(start.elapsed() >= Duration::from_millis(50));
    assert_eq!(client.reply().status, 400);
    // The peer may send more before it sees the end.
    client.send(vec![b'x'; 100_000]);
    client.expect_closed();
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.requests, counters.answered, counters.malformed, counters.connections_reset), (1, 1, 1, 0));
}

fn a_stop_finishes_what_is_under_way(driver: DriverChoice) {
    let origin = start(driver);
    let mut idle = Client::new(&origin);
    assert_eq!(idle.get("/bytes/1").status, 200);
    let mut busy = Client::new(&origin);
    busy.send([get("/bytes/1?delay=200ms"), get("/bytes/200000")].concat());
    counters_when(&origin, |counters| counters.requests == 3);
    let reader = std::thread::spawn(move || {
        let first = busy.reply();
        let second = busy.reply();
        busy.expect_closed();
        (first.body.len(), second.body.len(), second.header("connection").map(str::to_owned))
    });
    let counters = origin.stop();
    assert_eq!((counters.requests, counters.answered, counters.connections_open), (3, 3, 0));
    idle.expect_closed();
    assert_eq!(reader.join().expect("the reader"), (1, 200_000, Some("close".to_owned())));
}

fn a_stop_frees_the_port_and_leaves_no_thread(driver: DriverChoice) {
    for threads in [1, 2] {
        let origin = start_with(driver, threads);
        let addr = origin.addr();
        let mut client = Client::new(&origin);
        client.get("/bytes/1");
        client.send(get("/delay/60s"));
        counters_when(&origin, |counters| counters.requests == 2);
        let start = Instant::now();
        let counters = origin.stop();
        // The delay is longer than the grace: cut off, and not counted as answered.
        assert_eq!((counters.requests, counters.answered, counters.connections_open), (2, 1, 0));
        assert!(start.elapsed() < Duration::from_secs(20));
        assert!(TcpStream::connect(addr).is_err(), "something still accepts");
        drop(TcpListener::bind(addr).expect("the port is free"));
    }
}

fn a_taken_port_is_reported(driver: DriverChoice) {
    for (first, second) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let origin = start_with(driver, first);
        let options = Options { listen: origin.addr(), threads: second, driver, ..Options::default() };
        let error = Origin::start(options).expect_err("the port is taken");
        assert!(matches!(error, OriginError::Listen { .. }), "{error}");
        assert!(error.to_string().contains(&format!("sport = :{}", origin.addr().port())), "{error}");
    }
}

#[test]
fn a_missing_cpu_is_reported() {
    let options = Options { threads: 2, cpus: vec![0, 1000], driver: DriverChoice::Epoll, ..Options::default() };
    let error = Origin::start(options).expect_err("no such CPU");
    assert!(error.to_string().contains("CPU 1000"), "{error}");
}

#[test]
fn a_unix_socket_serves_too_and_its_file_goes() {
    use std::io::{Read, Write};
    let path = std::env::temp_dir().join(format!("weir-origin-test-{}.sock", std::process::id()));
    for driver in [DriverChoice::Epoll, DriverChoice::IoUring] {
        let options = Options { driver, threads: 2, unix: Some(path.clone()), ..Options::default() };
        let origin = Origin::start(options).expect("an origin");
        assert_eq!(origin.unix(), Some(path.as_path()));
        for _ in 0..10 {
            let mut stream = std::os::unix::net::UnixStream::connect(&path).expect("it listens");
            stream.write_all(b"GET /bytes/20000 HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n").expect("a request");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).expect("an answer");
            assert!(answer.ends_with(payload(20_000)));
        }
        // And TCP as well, and one path has one origin.
        assert_eq!(Client::new(&origin).get("/bytes/5").body, payload(5));
        let second = Origin::start(Options { unix: Some(path.clone()), ..Options::default() });
        let error = second.expect_err("the path is taken").to_string();
        assert!(error.contains("listens on"), "{error}");
        let counters = counters_when(&origin, |counters| counters.answered == 11);
        assert_eq!(counters.connections_used, 11);
        drop(origin);
        assert!(!path.exists());
    }
}

#[test]
fn as_many_threads_as_connections_need() {
    let capacity = weir_net::capacity(weir_net::probe(weir_model::load::DriverChoice::Auto).expect("a driver"));
    let few = Origin::start(Options { connections: Some(100), ..Options::default() }).expect("an origin");
    assert_eq!((few.workers(), few.shortage(), few.full()), (1, None, None));
    if capacity.per_ring == 0 {
        eprintln!("THE TABLE IS NOT TESTED: this kernel cannot hold sockets in it alone");
        return;
    }
    let connections = u32::try_from(capacity.descriptors + 1).unwrap_or(u32::MAX);
    if connections > 1 << 20 {
        eprintln!("MORE CONNECTIONS THAN DESCRIPTORS ARE NOT TESTED: there are {} descriptors", capacity.descriptors);
        return;
    }
    let many = Origin::start(Options { connections: Some(connections), ..Options::default() }).expect("an origin");
    assert!(many.workers() >= 2 && many.shortage().is_none());
    assert_eq!(Client::new(&many).get("/bytes/5").body, payload(5));
    let epoll = Options { connections: Some(connections), driver: DriverChoice::Epoll, ..Options::default() };
    let short = Origin::start(epoll).expect("an origin").shortage().expect("too few descriptors");
    assert!(short.contains("ulimit -n"), "{short}");
}
