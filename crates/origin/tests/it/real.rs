//! What only a kernel shows: TLS over sockets, half-closes and resets, full buffers, threads that share a port, Unix sockets, and what
//! starting and stopping report. Each driver runs the first.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;
use weir_model::counters::OriginCounters;
use weir_model::load::DriverChoice;
use weir_origin::{Options, Origin, OriginError, payload};

use crate::common::{Http2, Pipe, connect, server_options};
use crate::sim::get;

/// Runs each test on each driver. On a kernel without io_uring, half of the tests fail on purpose.
macro_rules! on_each_driver {
    ($($name:ident),* $(,)?) => {
        mod epoll { $( #[test] fn $name() { super::$name(super::DriverChoice::Epoll) } )* }
        mod io_uring { $( #[test] fn $name() { super::$name(super::DriverChoice::IoUring) } )* }
    };
}

on_each_driver!(
    tls_and_both_versions_of_http,
    half_closes_and_resets,
    a_peer_that_reads_late_gets_everything,
    a_delay_is_never_cut_short,
    a_frozen_origin_answers_afterwards_and_stops,
    several_threads_share_the_address_and_free_it,
    a_taken_port_and_a_missing_cpu_are_reported,
    a_unix_socket_serves_too_and_its_file_goes,
);

fn start(options: Options) -> Origin {
    Origin::start(options).expect("an origin on a free port")
}

fn on(driver: DriverChoice) -> Options {
    Options { driver, ..Options::default() }
}

/// Waits until the counters are as wanted. Panics with them if they are not in time.
fn counters_when(origin: &Origin, wanted: impl Fn(&OriginCounters) -> bool) -> OriginCounters {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let counters = origin.counters();
        if wanted(&counters) {
            return counters;
        }
        assert!(Instant::now() < end, "the counters did not get there: {counters:#?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// All that comes until the end, and the error that it ends with.
fn rest(pipe: &mut Pipe) -> (Vec<u8>, Option<ErrorKind>) {
    let mut bytes = Vec::new();
    loop {
        match pipe.receive(|more| bytes.extend_from_slice(more)) {
            Ok(0) => return (bytes, None),
            Ok(_) => {}
            Err(error) => return (bytes, Some(error.kind())),
        }
    }
}

/// All that comes when this is sent and nothing more, and the error that it ends with.
fn all_of(origin: &Origin, request: &str) -> (Vec<u8>, Option<ErrorKind>) {
    let mut pipe = Pipe::new(origin.addr());
    pipe.send(request.as_bytes());
    // It may have been reset meanwhile.
    let _ = pipe.stream.shutdown(Shutdown::Write);
    rest(&mut pipe)
}

fn serves(origin: &Origin) {
    assert!(all_of(origin, &get("/bytes/5")).0.ends_with(payload(5)));
    assert_eq!(origin.failure(), None);
}

fn tls_and_both_versions_of_http(driver: DriverChoice) {
    for tls in [true, false] {
        let origin = start(Options { tls: tls.then(server_options), ..on(driver) });
        let pipe = |alpn| if tls { Pipe::with_tls(origin.addr(), alpn) } else { Pipe::new(origin.addr()) };
        let mut first = pipe("http/1.1");
        first.send(b"GET /bytes/3MiB HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n");
        let (response, end) = rest(&mut first);
        assert!(response.starts_with(b"HTTP/1.1 200 OK\r\n") && response.ends_with(payload(3 << 20)) && end.is_none());
        let mut second = Http2::new(pipe("h2"), "/bytes/50000", &[]);
        assert!((0..100).all(|_| second.exchange() == 50_000));
        let counters = counters_when(&origin, |counters| counters.answered == 101);
        assert_eq!((counters.tls.handshakes, counters.tls.failed), (if tls { 2 } else { 0 }, 0));
        assert_eq!((counters.versions["HTTP/1.1"], counters.versions["HTTP/2"]), (1, 100));
        assert_eq!(counters.body_bytes_out, (3 << 20) + 5_000_000);
    }
}

fn half_closes_and_resets(driver: DriverChoice) {
    let origin = start(on(driver));
    let requests = get("/bytes/1?delay=50ms") + &get("/bytes/300000") + "GET /bytes/3 HT";
    let (responses, end) = all_of(&origin, &requests);
    assert!(responses.ends_with(payload(300_000)) && end.is_none());
    // Resets by the origin, which are no fault of its peer; and an end that is none.
    assert_eq!(all_of(&origin, &get("/bytes/1000?fault=reset=before")), (Vec::new(), Some(ErrorKind::ConnectionReset)));
    assert_eq!(all_of(&origin, &get("/bytes/1MiB?fault=reset=middle")).1, Some(ErrorKind::ConnectionReset));
    let (part, end) = all_of(&origin, &get("/bytes/3MiB?fault=close"));
    assert!(part.ends_with(payload(3 << 19)) && end.is_none());
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.requests, counters.answered, counters.connections_reset), (5, 2, 0));
    // Resets by the peer: in the middle, of which bytes are unread, and at the end.
    let mut deaf = connect(origin.addr());
    deaf.write_all(get("/bytes/64MiB").as_bytes()).expect("sent");
    counters_when(&origin, |counters| counters.requests == 6);
    deaf.read_exact(&mut [0; 1000]).expect("some of it");
    drop(deaf);
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.answered, counters.connections_reset), (2, 1));
    for round in 1..=20 {
        let mut client = connect(origin.addr());
        client.write_all(get("/bytes/0").as_bytes()).expect("sent");
        client.read_exact(&mut [0; 10]).expect("a response");
        set_socket_linger(&client, Some(Duration::ZERO)).expect("a linger");
        drop(client);
        let counters = counters_when(&origin, |counters| counters.connections_open == 0);
        // The response had been taken. The reset afterwards changes nothing about it.
        assert_eq!((counters.answered, counters.connections_reset), (2 + round, 1 + round));
    }
    // Many at once, of which some have asked for something.
    for round in 0..1000 {
        let mut client = connect(origin.addr());
        client.write_all(get("/bytes/165854?delay=5ms").repeat(round % 3).as_bytes()).expect("sent");
        set_socket_linger(&client, Some(Duration::ZERO)).expect("a linger");
    }
    serves(&origin);
    counters_when(&origin, |counters| counters.connections_open == 0);
}

/// 100 MB of responses: more than any socket buffer, so they wait in the origin's queue.
fn a_peer_that_reads_late_gets_everything(driver: DriverChoice) {
    let origin = start(on(driver));
    let mut pipe = Pipe::new(origin.addr());
    pipe.send((get("/bytes/100000").repeat(999) + &get("/bytes/100000?close=1")).as_bytes());
    counters_when(&origin, |counters| counters.requests == 1000);
    assert!(origin.counters().answered < 1000);
    let (responses, end) = rest(&mut pipe);
    assert!(responses.ends_with(payload(100_000)) && responses.len() > 100_000_000 && end.is_none());
    let counters = counters_when(&origin, |counters| counters.answered == 1000);
    assert_eq!((counters.body_bytes_out, counters.bytes_out), (100_000_000, responses.len() as u64));
}

fn a_delay_is_never_cut_short(driver: DriverChoice) {
    let origin = start(on(driver));
    for us in [1, 50, 999, 1001, 10_000, 33_333] {
        let mut stream = connect(origin.addr());
        let begun = Instant::now();
        stream.write_all(get(&format!("/delay/{us}us")).as_bytes()).expect("sent");
        stream.read_exact(&mut [0; 10]).expect("a response");
        assert!(begun.elapsed() >= Duration::from_micros(us), "{us}");
    }
}

fn a_frozen_origin_answers_afterwards_and_stops(driver: DriverChoice) {
    let origin = start(on(driver));
    serves(&origin);
    let begun = Instant::now();
    origin.freeze(Duration::from_millis(300));
    // The first may be answered in the turn that the thread is in.
    serves(&origin);
    serves(&origin);
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    origin.freeze(Duration::from_secs(600));
    let begun = Instant::now();
    origin.stop();
    assert!(begun.elapsed() < Duration::from_secs(30), "a frozen origin stops");
}

fn several_threads_share_the_address_and_free_it(driver: DriverChoice) {
    for threads in [1, 3] {
        let origin = start(Options { threads, ..on(driver) });
        let addr = origin.addr();
        let mut clients: Vec<TcpStream> = (0..60).map(|_| connect(addr)).collect();
        for client in &mut clients {
            client.write_all(get("/bytes/0").as_bytes()).expect("sent");
            client.read_exact(&mut [0; 10]).expect("a response");
        }
        let counters = counters_when(&origin, |counters| counters.answered == 60);
        assert_eq!((counters.connections_used, counters.max_connections_open), (60, 60));
        // One stalls, which nobody waits for.
        clients[0].write_all(get("/bytes/5?fault=stall").as_bytes()).expect("sent");
        counters_when(&origin, |counters| counters.requests == 61);
        let counters = origin.stop();
        assert_eq!((counters.requests, counters.answered, counters.connections_open), (61, 60, 0));
        assert!(TcpStream::connect(addr).is_err(), "something still accepts");
        drop(TcpListener::bind(addr).expect("the port is free"));
    }
}

fn a_taken_port_and_a_missing_cpu_are_reported(driver: DriverChoice) {
    let error = Origin::start(Options { threads: 2, cpus: vec![0, 1000], ..on(driver) }).expect_err("no such CPU");
    assert!(error.to_string().contains("CPU 1000"), "{error}");
    for (first, second) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let origin = start(Options { threads: first, ..on(driver) });
        let options = Options { listen: origin.addr(), threads: second, ..on(driver) };
        let error = Origin::start(options).expect_err("the port is taken");
        assert!(matches!(error, OriginError::Listen { .. }), "{error}");
        assert!(error.to_string().contains(&format!("sport = :{}", origin.addr().port())), "{error}");
    }
}

fn a_unix_socket_serves_too_and_its_file_goes(driver: DriverChoice) {
    let path = std::env::temp_dir().join(format!("weir-origin-test-{driver:?}-{}.sock", std::process::id()));
    let origin = start(Options { threads: 2, unix: Some(path.clone()), ..on(driver) });
    assert_eq!(origin.unix(), Some(Path::new(&path)));
    for _ in 0..10 {
        let mut stream = std::os::unix::net::UnixStream::connect(&path).expect("it listens");
        stream.write_all(b"GET /bytes/20000 HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n").expect("a request");
        let mut response = Vec::new();
        stream.read_to_end(&mut response).expect("a response");
        assert!(response.ends_with(payload(20_000)));
    }
    // And TCP as well, and one path has one origin.
    serves(&origin);
    let second = Origin::start(Options { unix: Some(path.clone()), ..on(driver) });
    let error = second.expect_err("the path is taken").to_string();
    assert!(error.contains("listens on"), "{error}");
    assert_eq!(counters_when(&origin, |counters| counters.answered == 11).connections_used, 11);
    drop(origin);
    assert!(!path.exists());
}

#[test]
fn as_many_threads_as_connections_need() {
    let capacity = weir_net::capacity(weir_net::probe(None).expect("a driver"));
    let few = start(Options { connections: Some(100), ..Options::default() });
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
    let many = start(Options { connections: Some(connections), ..Options::default() });
    assert!(many.workers() >= 2 && many.shortage().is_none());
    serves(&many);
    let short = start(Options { connections: Some(connections), ..on(DriverChoice::Epoll) }).shortage();
    let short = short.expect("too few descriptors");
    assert!(short.contains("ulimit -n"), "{short}");
}
