//! TLS: negotiation, client certificates, and peers that break the rules.

mod common;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use common::pipe::{Pipe, client_config, server_options};
use common::{TIMEOUT, counters_when};
use weir_model::counters::OriginCounters;
use weir_model::load::DriverChoice;
use weir_origin::{Options, Origin, payload, tls};
use weir_wire::tls::{ClientConfig, ClientOptions};

on_each_driver!(
    http_1_over_tls,
    versions_and_suites_are_counted,
    resumption_is_counted_and_can_be_off,
    a_client_without_certificate_is_refused,
    plain_bytes_get_an_alert,
    garbage_after_the_handshake,
    a_peer_that_never_finishes_the_handshake,
    a_slow_reader_gets_everything,
    an_end_is_signalled_by_close_notify,
    without_alpn_the_first_bytes_decide,
);

fn start(driver: DriverChoice, tls: tls::ServerOptions) -> Origin {
    Origin::start(Options { driver, tls: Some(tls), ..Options::default() }).expect("an origin")
}

/// One request, and all that comes.
fn get(pipe: &mut Pipe, target: &str) -> Vec<u8> {
    pipe.send(format!("GET {target} HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n").as_bytes()).expect("a request");
    pipe.rest().0
}

fn http_1_over_tls(driver: DriverChoice) {
    let origin = start(driver, server_options());
    for (alpn, size) in [(Some("http/1.1"), 128), (None, 11_268), (Some("http/1.1"), 3 << 20)] {
        let mut pipe = Pipe::with_tls(&origin, &client_config(alpn)).expect("a handshake");
        assert_eq!(pipe.session().negotiated().and_then(|agreed| agreed.alpn.as_deref()), alpn);
        let answer = get(&mut pipe, &format!("/bytes/{size}"));
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n") && answer.ends_with(payload(size)), "{size}");
    }
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.answered, counters.tls.handshakes, counters.tls.failed), (3, 3, 0));
    assert_eq!(counters.body_bytes_out, 128 + 11_268 + (3 << 20));
    assert_eq!(counters.connections_by_protocol["http/1.1"], 3);
}

fn versions_and_suites_are_counted(driver: DriverChoice) {
    let origin = start(driver, server_options());
    let mut suites = 0;
    for (suite, version) in weir_wire::tls::suites().collect::<Vec<_>>() {
        if suite.contains("RSA") {
            // The origin's key is P-256.
            continue;
        }
        let options = ClientOptions { suites: vec![suite.to_owned()], ..ClientOptions::default() };
        let config = ClientConfig::new(&options).expect("a suite that there is");
        let mut pipe = Pipe::with_tls(&origin, &config).expect("a handshake");
        assert!(get(&mut pipe, "/bytes/20000").ends_with(payload(20_000)), "{suite}");
        suites += 1;
        let counters = counters_when(&origin, |counters| counters.tls.handshakes == suites);
        assert_eq!(counters.tls.suites[suite], 1);
        assert!(counters.tls.versions[version.as_str()] >= 1);
    }
    assert!(suites >= 2);
    let only = tls::ServerOptions { versions: (tls::Version::Tls12, tls::Version::Tls12), ..server_options() };
    let old = start(driver, only);
    let mut pipe = Pipe::with_tls(&old, &client_config(None)).expect("a handshake");
    get(&mut pipe, "/bytes/1");
    assert_eq!(counters_when(&old, |counters| counters.tls.handshakes == 1).tls.versions["TLS 1.2"], 1);
}

fn resumption_is_counted_and_can_be_off(driver: DriverChoice) {
    for resumption in [true, false] {
        let origin = start(driver, tls::ServerOptions { resumption, ..server_options() });
        let options = ClientOptions { resumption: true, ..ClientOptions::default() };
        let config = ClientConfig::new(&options).expect("options");
        for _ in 0..4 {
            let mut pipe = Pipe::with_tls(&origin, &config).expect("a handshake");
            // Tickets come with the response or after it.
            assert!(get(&mut pipe, "/bytes/5").ends_with(payload(5)));
        }
        let counters =
            counters_when(&origin, |counters| counters.tls.handshakes == 4 && counters.connections_open == 0);
        assert_eq!(counters.tls.resumed, if resumption { 3 } else { 0 });
    }
}

fn a_client_without_certificate_is_refused(driver: DriverChoice) {
    let identity = tls::Identity::generated(tls::KeyKind::P256).expect("a certificate");
    let clients = tls::ClientAuth::Required(identity.chain.clone());
    let origin = start(driver, tls::ServerOptions { clients, ..server_options() });
    let refused = match Pipe::with_tls(&origin, &client_config(None)) {
        // In TLS 1.3 the client has finished before it learns of the refusal.
        Ok(mut pipe) => get(&mut pipe, "/bytes/1").is_empty(),
        Err(_) => true,
    };
    assert!(refused);
    let counters = counters_when(&origin, |counters| counters.tls.failed == 1 && counters.connections_open == 0);
    assert_eq!((counters.tls.handshakes, counters.requests), (0, 0));
}

fn plain_bytes_get_an_alert(driver: DriverChoice) {
    let origin = start(driver, server_options());
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: o\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &[0; 5000],
        &[22, 3, 1, 255, 255],
    ] {
        let mut pipe = Pipe::plain(&origin);
        pipe.send(bytes).expect("sent");
        pipe.stream.shutdown(std::net::Shutdown::Write).expect("a shutdown");
        let (answer, _) = pipe.rest();
        assert!(answer.len() < 100, "{answer:?}");
    }
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.requests, counters.malformed, counters.tls.handshakes), (0, 0, 0));
    assert!(counters.tls.failed >= 3, "{counters:?}");
}

fn garbage_after_the_handshake(driver: DriverChoice) {
    let origin = start(driver, server_options());
    for garbage in [&[23, 3, 3, 0, 40, 1, 2, 3][..], &[255; 400], b"GET / HTTP/1.1\r\nHost: o\r\n\r\n"] {
        let mut pipe = Pipe::with_tls(&origin, &client_config(None)).expect("a handshake");
        pipe.stream.write_all(garbage).expect("sent");
        pipe.stream.write_all(&[7; 100]).expect("sent");
        let (answer, _) = pipe.rest();
        assert!(answer.is_empty(), "{answer:?}");
    }
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.tls.handshakes, counters.tls.failed, counters.requests), (3, 3, 0));
}

fn a_peer_that_never_finishes_the_handshake(driver: DriverChoice) {
    let origin = start(driver, server_options());
    let mut idle = Vec::new();
    for _ in 0..50 {
        let mut pipe = Pipe::plain(&origin);
        pipe.send(&[22, 3, 1]).expect("sent");
        idle.push(pipe);
    }
    let mut pipe = Pipe::with_tls(&origin, &client_config(None)).expect("others are served");
    assert!(get(&mut pipe, "/bytes/5").ends_with(payload(5)));
    let begun = Instant::now();
    assert_eq!(origin.stop().connections_open, 0);
    assert!(begun.elapsed() < Duration::from_secs(4), "nobody waits for them");
}

fn a_slow_reader_gets_everything(driver: DriverChoice) {
    let origin = start(driver, server_options());
    let mut pipe = Pipe::with_tls(&origin, &client_config(None)).expect("a handshake");
    pipe.send(b"GET /bytes/16MiB HTTP/1.1\r\nHost: o\r\n\r\nGET /bytes/7?close=1 HTTP/1.1\r\nHost: o\r\n\r\n")
        .expect("sent");
    counters_when(&origin, |counters| counters.requests == 2);
    std::thread::sleep(Duration::from_millis(100));
    // Only as much was sealed as there was room for.
    let taken = origin.counters().bytes_out;
    assert!(taken < 12 << 20, "{taken}");
    let (answer, _) = pipe.rest();
    assert!(answer.ends_with(payload(7)) && answer.len() > 16 << 20);
    let counters: OriginCounters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.answered, counters.body_bytes_out), (2, (16 << 20) + 7));
}

fn an_end_is_signalled_by_close_notify(driver: DriverChoice) {
    let origin = start(driver, server_options());
    let mut pipe = Pipe::with_tls(&origin, &client_config(None)).expect("a handshake");
    pipe.send(b"GET /bytes/5?close=1 HTTP/1.1\r\nHost: o\r\n\r\n").expect("sent");
    let (answer, said) = pipe.rest();
    assert!(answer.ends_with(payload(5)) && said, "an end without close_notify is a truncation");
}

fn without_alpn_the_first_bytes_decide(driver: DriverChoice) {
    let origin = start(driver, server_options());
    let pipe = Pipe::with_tls(&origin, &client_config(None)).expect("a handshake");
    let mut client = common::http2::Http2::new(pipe);
    assert_eq!(client.get("/bytes/77").body, payload(77));
}

#[test]
fn bad_options_are_reported() {
    let identity = tls::Identity { chain: b"no PEM".to_vec(), key: b"none".to_vec() };
    let tls = tls::ServerOptions { identities: vec![identity], ..tls::ServerOptions::default() };
    let error = Origin::start(Options { tls: Some(tls), ..Options::default() }).expect_err("no certificate");
    assert!(error.to_string().starts_with("the origin cannot speak TLS: "), "{error}");
}

#[test]
fn a_flood_of_half_handshakes_leaves_no_memory() {
    let origin = start(DriverChoice::Auto, server_options());
    for _ in 0..200 {
        let mut stream = std::net::TcpStream::connect(origin.addr()).expect("a connection");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.write_all(&[22, 3, 1, 0, 200, 1, 0, 0]).expect("sent");
    }
    counters_when(&origin, |counters| counters.connections_open == 0 && counters.connections_accepted == 200);
    let mut stream = std::net::TcpStream::connect(origin.addr()).expect("a connection");
    stream.write_all(&[0; 64]).expect("sent");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    counters_when(&origin, |counters| counters.connections_open == 0);
}
