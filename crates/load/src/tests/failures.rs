//! What goes wrong is counted by kind, and is never an absence.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weir_model::load::{Endpoint, ErrorKind};
use weir_model::suite::LoadKind;

use super::server::{Do, Server, ok};
use super::*;
use crate::capacity::Resources;
use crate::plan;
use crate::run::Job;

/// An address on which nobody listens.
fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn when_all_connections_stall_the_rest_is_unsent_and_sampled() {
    at_once(&DRIVERS, |driver| {
        let server = Server::start(|_| Do::Nothing);
        let mut spec = order(&server, constant(100.0));
        spec.driver = driver;
        spec.connections = 2;
        spec.duration_s = 1.0;
        spec.timeout_s = 1.5;
        let result = load(&spec).unwrap();
        // At 0 ms and 10 ms the two connections take a request each; both time out at about 1.5 s, are made
        // again, take the requests due at 20 ms and 30 ms, and are given up with all others when the drain ends
        // at 1 + 1.5 = 2.5 s. Sent: 4, all of them timeouts. Unsent: 96.
        assert_eq!(result.window.due, 100);
        assert_eq!(result.window.sent, 4);
        assert_eq!(result.window.unsent, 96);
        assert_eq!(errors(&result.window), [("timeout", 4)]);
        assert_eq!(server.requests(), 4);
        assert_eq!(result.rate, 0.0);
        // Unsent requests had waited between 2.5 - 0.99 and 2.5 - 0.04 s.
        assert!(result.latency.min_us > 1_400_000.0, "{:?}", result.latency);
        assert!(result.latency.max_us > 2_400_000.0 && result.latency.max_us < 10_000_000.0, "{:?}", result.latency);
        assert!(result.lag.p50_us > 1_500_000.0, "{:?}", result.lag);
    });
}

#[test]
fn a_request_that_is_not_answered_in_time_is_a_timeout_and_the_next_goes_on() {
    at_once(&DRIVERS, |driver| {
        // The third request of all is never answered.
        let server = Server::start(|asked| if asked.number == 2 { Do::Nothing } else { Do::Send(ok("ok")) });
        let mut spec = order(&server, LoadKind::Count { requests: 6 });
        spec.driver = driver;
        spec.connections = 1;
        // Long enough that none of the others is late, even where the machine stalls.
        spec.timeout_s = 1.0;
        spec.duration_s = 30.0;
        let result = load(&spec).unwrap();
        assert_eq!(result.total.right, 5);
        assert_eq!(errors(&result.total), [("timeout", 1)]);
        assert_eq!(result.total.connections, 2);
        assert!(result.latency.max_us >= 1_000_000.0 && result.latency.max_us < 10_000_000.0, "{:?}", result.latency);
    });
}

#[test]
fn resets_early_closes_and_nonsense_have_their_kinds() {
    for driver in DRIVERS {
        let server = Server::start(|asked| match asked.number % 5 {
            0 => Do::Reset,
            1 => Do::SendAndClose(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234".to_vec()),
            2 => Do::Send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec()),
            3 => Do::SendAndClose(vec![]),
            _ => Do::Send(ok("ok")),
        });
        let mut spec = order(&server, LoadKind::Count { requests: 20 });
        spec.driver = driver;
        spec.connections = 1;
        spec.duration_s = 20.0;
        let result = load(&spec).unwrap();
        assert_eq!(result.total.right, 4);
        assert_eq!(errors(&result.total), [("reset", 4), ("closed_early", 8), ("protocol", 4)]);
        assert_eq!(server.requests(), 20, "nothing is sent twice");
        assert_eq!(result.total.sent, 20);
    }
}

#[test]
fn more_bytes_than_the_answer_has_are_a_protocol_error() {
    let server = Server::start(|_| {
        let mut bytes = ok("ok");
        bytes.extend_from_slice(b"more");
        Do::Send(bytes)
    });
    let mut spec = order(&server, LoadKind::Count { requests: 3 });
    spec.connections = 1;
    assert_eq!(errors(&load(&spec).unwrap().total), [("protocol", 3)]);
}

#[test]
fn nobody_listening_is_an_error_with_its_kind_and_no_hang() {
    at_once(&DRIVERS, |driver| {
        let addr = nobody();
        let mut spec = plan::tests::spec();
        spec.driver = driver;
        spec.targets[0].address = Endpoint::Tcp(addr);
        spec.connections = 10;
        spec.threads = 2;
        spec.timeout_s = 30.0;
        let started = Instant::now();
        let error = run(&spec, &Outputs::default(), &StopFlag::new(), &mut |_| {}).unwrap_err();
        match &error {
            LoadError::NoConnection { kind, attempts, .. } => {
                assert_eq!(*kind, ErrorKind::ConnectRefused);
                assert!(*attempts >= 10);
            }
            other => panic!("{other}"),
        }
        assert!(error.to_string().contains("connect_refused"), "{error}");
        // Refusals end the wait at once; silence would have it last 30 s.
        assert!(started.elapsed() < Duration::from_secs(25));
    });
}

#[test]
fn a_server_that_starts_late_is_waited_for() {
    let addr = nobody();
    let mut spec = plan::tests::spec();
    spec.targets[0].address = Endpoint::Tcp(addr);
    spec.connections = 3;
    spec.kind = LoadKind::Count { requests: 3 };
    spec.timeout_s = 10.0;
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        let listener = TcpListener::bind(addr).unwrap();
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().unwrap();
            std::thread::spawn(move || {
                use std::io::{Read, Write};
                let mut bytes = [0; 1024];
                while matches!(stream.read(&mut bytes), Ok(1..)) {
                    stream.write_all(&ok("ok")).unwrap();
                }
            });
        }
    });
    let result = load(&spec).unwrap();
    late.join().unwrap();
    assert_eq!(result.total.right, 3);
    assert!(result.total.connect_failures >= 3);
    assert!(result.total.errors.is_empty(), "before the start no request is waiting");
}

#[test]
fn a_server_that_dies_fails_requests_by_kind_and_nothing_is_lost() {
    at_once(&[LoadKind::Closed, constant(200.0)], |kind| {
        // Answers for 300 ms from the first request on, then resets every connection and listens no more.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let mut streams: Vec<_> = (0..4).map(|_| listener.accept().unwrap().0).collect();
            drop(listener);
            for stream in &mut streams {
                stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
            }
            let mut until = Instant::now() + Duration::from_secs(30);
            let mut bytes = [0; 4096];
            while Instant::now() < until {
                for stream in &mut streams {
                    if matches!(stream.read(&mut bytes), Ok(1..)) {
                        until = until.min(Instant::now() + Duration::from_millis(300));
                        stream.write_all(&ok("ok")).unwrap();
                    }
                }
            }
        });
        let mut spec = plan::tests::spec();
        spec.targets[0].address = Endpoint::Tcp(addr);
        spec.connections = 4;
        spec.kind = kind.clone();
        spec.timeout_s = 1.0;
        let result = load(&spec).unwrap();
        server.join().unwrap();
        assert!(result.total.right > 0);
        let refused = result.total.errors.get(&ErrorKind::ConnectRefused);
        assert!(refused.is_some_and(|n| *n > 0), "{:?}", result.total);
        if kind != LoadKind::Closed {
            assert_eq!(result.window.due, 200);
            assert!(result.window.unsent > 0, "{:?}", result.window);
        }
    });
}

#[test]
fn a_connection_that_nobody_accepts_is_a_connect_timeout() {
    // A listen queue of one that is full: further attempts get no answer.
    let listener = weir_net::listen_socket("127.0.0.1:0".parse().unwrap(), 1, false).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut spec = plan::tests::spec();
    spec.targets[0].address = Endpoint::Tcp(addr);
    spec.connections = 30;
    spec.timeout_s = 0.5;
    spec.duration_s = 0.2;
    let result = load(&spec).unwrap();
    assert!(result.total.connections >= 1 && result.total.connections < 30, "{:?}", result.total);
    assert!(result.total.connect_failures > 0, "{:?}", result.total);
    assert!(result.total.errors.get(&ErrorKind::ConnectTimeout).is_some_and(|n| *n > 0), "{:?}", result.total);
}

#[test]
fn connections_spread_over_source_addresses_when_ports_run_short() {
    for driver in DRIVERS {
        let server = Server::start(|_| Do::Send(ok("ok")));
        let mut spec = order(&server, LoadKind::Count { requests: 100 });
        spec.driver = driver;
        spec.connections = 50;
        spec.threads = 2;
        // 20 ports, 2 of them left to others: 18 an address, so three addresses.
        let resources = &Resources { ports: (40_000, 40_019), ..Resources::of_host(driver).unwrap() };
        let result = Job { spec: &spec, outputs: &Outputs::default(), gate: None, stop: &StopFlag::new(), resources }
            .run(&mut |_| {})
            .unwrap();
        balanced(&result);
        assert_eq!(result.total.right, 100);
        let peers = server.peers.lock().unwrap();
        let from = |ip: &str| peers.iter().filter(|peer| peer.ip().to_string() == ip).count();
        assert_eq!((from("127.0.0.1"), from("127.0.0.2"), from("127.0.0.3")), (17, 17, 16));
        assert_eq!(server.connections.load(Ordering::SeqCst), 50);
    }
}

#[test]
fn a_cpu_that_is_not_there_is_an_error_before_anything_is_sent() {
    let server = Server::start(|_| Do::Send(ok("ok")));
    let mut spec = order(&server, LoadKind::Closed);
    spec.cpus = vec![100_000];
    let error = load(&spec).unwrap_err();
    assert!(matches!(error, LoadError::Cpu { cpu: 100_000, .. }), "{error}");
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_before_anything_is_sent() {
    let server = Server::start(|_| Do::Send(ok("ok")));
    let outputs = Outputs { hlog: Some("/nowhere/latency.hlog".into()), series: None };
    let error = run(&order(&server, LoadKind::Closed), &outputs, &StopFlag::new(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, LoadError::Output { .. }), "{error}");
    assert_eq!(server.requests(), 0);
}
