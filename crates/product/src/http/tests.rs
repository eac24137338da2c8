//! The lab's requests against weir's own origin, in every protocol, and against peers that misbehave.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use weir_model::counters::OriginCounters;
use weir_model::suite::{Protocol, Tls};
use weir_origin::{Options, Origin, tls};

use super::*;
use crate::tls::RunTls;

/// Far more than any of these tests needs.
const LONG: Duration = Duration::from_secs(30);

fn origin(protocol: Protocol, run: &RunTls) -> Origin {
    let identities = vec![run.identity().clone()];
    let tls = protocol.is_tls().then(|| tls::ServerOptions { identities, ..tls::ServerOptions::default() });
    Origin::start(Options { tls, http3: protocol.is_quic(), ..Options::default() }).expect("an origin")
}

/// The protocols that have paths to ask for.
fn of_paths() -> impl Iterator<Item = Protocol> {
    Protocol::all().filter(|protocol| !protocol.is_keyvalue())
}

fn request(method: &str, path: &str, body: &[u8]) -> Request {
    Request { method: method.into(), body: body.to_vec(), ..Request::get(path) }
}

/// The origin's counters, as users read them.
fn counters(http: &Http) -> OriginCounters {
    serde_json::from_slice(&http.get("/_weir/counters").expect("a response").body).expect("counters")
}

#[test]
fn every_protocol_gets_the_same_answers_over_one_connection() {
    let run = RunTls::new(Tls::default()).expect("a certificate");
    for protocol in of_paths() {
        let origin = origin(protocol, &run);
        let http = Http::with_protocol(origin.addr(), LONG, &run.wire_protocol(protocol).expect("session"));
        let body: Vec<u8> = (0..3 << 20).map(|n: u32| n.to_le_bytes()[0]).collect();
        for (request, status, size) in [
            (request("GET", "/bytes/11268", b""), 200, 11_268),
            (request("GET", "/bytes/11268?chunked=1", b""), 200, 11_268),
            (request("HEAD", "/bytes/11268", b""), 200, 0),
            (request("POST", "/echo", &body), 200, body.len() as u64),
            (request("GET", "/status/404", b""), 404, 0),
            (request("GET", "/_weir/ready", b""), 204, 0),
        ] {
            let response = http.send(&request).unwrap_or_else(|e| panic!("{protocol:?} {}: {e}", request.path));
            assert_eq!((response.status, response.size().min(size)), (status, size), "{protocol:?} {}", request.path);
            let version = protocol.version().expect("HTTP has one");
            assert_eq!(response.version, version, "{protocol:?}");
            if request.method == "POST" {
                assert_eq!(response.body, body, "{protocol:?}");
            }
            assert_eq!(response.tls.is_some(), protocol.is_tls(), "{protocol:?}");
        }
        let counters = counters(&http);
        assert_eq!(counters.requests, 5, "{protocol:?}");
        // The counters are asked for by the last.
        let connections = if protocol.is_quic() { 7 } else { 1 };
        assert_eq!(counters.connections_accepted, connections, "{protocol:?}");
    }
}

#[test]
fn the_negotiated_tls_is_reported() {
    let run = RunTls::new(Tls::default()).expect("a certificate");
    let origin = origin(Protocol::H2, &run);
    let http = Http::with_protocol(origin.addr(), LONG, &run.wire_protocol(Protocol::H2).expect("session"));
    let agreed = http.get("/bytes/1").expect("answered").tls.expect("TLS");
    assert_eq!((agreed.suite, agreed.alpn.as_deref()), ("TLS_AES_128_GCM_SHA256", Some("h2")));
}

#[test]
fn a_connection_that_ended_meanwhile_is_made_again() {
    let run = RunTls::new(Tls::default()).expect("a certificate");
    for protocol in [Protocol::Http11, Protocol::Https11] {
        let origin = origin(protocol, &run);
        let http = Http::with_protocol(origin.addr(), LONG, &run.wire_protocol(protocol).expect("session"));
        for _ in 0..3 {
            assert_eq!(http.get("/bytes/1?close=1").expect("answered").status, 200, "{protocol:?}");
        }
        assert_eq!(counters(&http).connections_accepted, 4, "{protocol:?}");
    }
}

/// A peer that reads a request and says this; what the lab makes of it.
fn said(protocol: Protocol, words: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("bound");
    let peer = thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("accepted");
        let mut some = [0; 1024];
        let _ = socket.read(&mut some);
        let _ = socket.write_all(words);
        // What the lab sends after this must not reset the connection before the words were read.
        let _ = socket.shutdown(std::net::Shutdown::Write);
        while matches!(socket.read(&mut some), Ok(n) if n > 0) {}
    });
    let run = RunTls::new(Tls::default()).expect("a certificate");
    let http = Http::with_protocol(addr, LONG, &run.wire_protocol(protocol).expect("session"));
    let error = http.get("/").expect_err("no response");
    drop(http);
    peer.join().expect("it ends");
    error
}

#[test]
fn a_peer_that_misbehaves_is_an_error_with_a_reason() {
    use Protocol::{H2, H2c, Http11, Https11};
    for (protocol, words, expected) in [
        (Http11, &b"SSH-2.0-OpenSSH_9\r\n"[..], "what came is no HTTP response: "),
        (Http11, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "in the middle of its response"),
        (H2c, b"HTTP/1.1 400 Bad Request\r\n\r\n", "what came is no HTTP response: "),
        (Https11, b"HTTP/1.1 400 Bad Request\r\n\r\n", "TLS: "),
        (H2, b"\x15\x03\x03\x00\x02\x02\x28", "TLS: "),
    ] {
        let error = said(protocol, words);
        assert!(error.contains(expected), "{protocol:?}: {error}");
    }
}

#[test]
fn a_refused_connection_is_an_error() {
    let addr = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let run = RunTls::new(Tls::default()).expect("a certificate");
    for protocol in of_paths() {
        let http = Http::with_protocol(addr, LONG, &run.wire_protocol(protocol).expect("session"));
        let error = http.get("/").expect_err("nobody").to_lowercase();
        let said = if protocol.is_quic() { "nothing listens on this port of udp" } else { "connection refused" };
        assert!(error.contains(said), "{protocol:?}: {error}");
    }
}

#[test]
fn a_stranger_with_another_certificate_is_refused() {
    let run = RunTls::new(Tls::default()).expect("a certificate");
    // Made once a process and kind: the other kind is another certificate.
    let other = RunTls::new(Tls { key: weir_model::suite::KeyType::Rsa2048, ..Tls::default() }).expect("another");
    let origin = origin(Protocol::Https11, &other);
    let http = Http::with_protocol(origin.addr(), LONG, &run.wire_protocol(Protocol::Https11).expect("session"));
    let error = http.get("/bytes/1").expect_err("refused");
    assert!(error.contains("certificate"), "{error}");
}

#[test]
fn a_response_that_breaks_off_is_no_response() {
    let run = RunTls::new(Tls::default()).expect("a certificate");
    for protocol in of_paths() {
        let origin = origin(protocol, &run);
        let http = Http::with_protocol(origin.addr(), LONG, &run.wire_protocol(protocol).expect("session"));
        for fault in ["close", "reset"] {
            let error = http.get(&format!("/bytes/100000?fault={fault}")).expect_err(fault);
            let said = ["in the middle of its response", "reset by the peer"];
            // The end of a connection of QUIC overtakes what was sent before.
            let overtaken = protocol.is_quic() && error.contains("closed before the response began");
            assert!(overtaken || said.iter().any(|words| error.contains(words)), "{protocol:?} {fault}: {error}");
        }
        assert_eq!(http.get("/bytes/10").expect("the next is answered").size(), 10, "{protocol:?}");
    }
}
