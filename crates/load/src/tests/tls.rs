//! TLS that fails: with peers that do not speak it, end it, or offer something else.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use weir_model::load::{ErrorKind, LoadProtocol, OfferedRate, TlsSpec};
use weir_model::suite::LoadKind;
use weir_wire::tls::{Identity, KeyKind, Scratch, ServerConfig, ServerOptions, Session, TlsEvent};

use super::server::{Do, Server, ok};
use super::*;

/// A server of TLS that, once agreed, sends `first` in the clear and goes on to echo nothing.
fn secure_server(alpn: &[&str], then: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let config = ServerConfig::new(&ServerOptions {
        identities: vec![Identity::generated(KeyKind::P256).unwrap()],
        alpn: alpn.iter().map(|name| (*name).to_owned()).collect(),
        ..ServerOptions::default()
    })
    .unwrap();
    std::thread::spawn(move || {
        for line in listener.incoming() {
            let (Ok(line), config) = (line, config.clone()) else { return };
            std::thread::spawn(move || speak(line, &config, then));
        }
    });
    addr
}

/// Shakes hands, and answers whatever comes first with `then`, unencrypted.
fn speak(mut line: std::net::TcpStream, config: &ServerConfig, then: &[u8]) -> Option<()> {
    let mut session = Session::server(config).ok()?;
    let (mut scratch, mut out, mut bytes) = (Scratch::new(), Vec::new(), vec![0; 16 * 1024]);
    loop {
        let count = line.read(&mut bytes).ok().filter(|n| *n > 0)?;
        let mut input = &bytes[..count];
        loop {
            let event = session.next(&mut input, &mut scratch, &mut out);
            line.write_all(&out).ok()?;
            out.clear();
            match event.ok()? {
                Some(TlsEvent::Plaintext(_)) => line.write_all(then).ok()?,
                Some(_) => {}
                None => break,
            }
        }
    }
}

fn order_to(addr: SocketAddr, kind: LoadKind<OfferedRate>) -> LoadSpec {
    let request = Request { method: "GET".into(), path: "/".into(), headers: vec![], body: vec![] };
    let target = Target::tcp(addr, "localhost");
    LoadSpec { tls: Some(TlsSpec::default()), kind, ..LoadSpec::new(target, request, Expect::default()) }
}

#[test]
fn a_peer_without_tls_is_told_apart_at_once() {
    let server = Server::start(|_| Do::Send(ok("plain")));
    let plain = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut line in listener.incoming().flatten() {
                let _ = line.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            }
        });
        addr
    };
    for (addr, kinds) in
        [(plain, [ErrorKind::Tls, ErrorKind::Tls]), (server.addr, [ErrorKind::Tls, ErrorKind::ConnectTimeout])]
    {
        for driver in DRIVERS {
            let mut spec = order_to(addr, LoadKind::Closed);
            spec.driver = driver;
            spec.timeout_s = 4.0;
            let started = Instant::now();
            match load(&spec).unwrap_err() {
                LoadError::NoConnection { kind, detail, .. } => {
                    assert!(kinds.contains(&kind), "{kind:?}: {detail}");
                    assert!(!detail.is_empty());
                }
                other => panic!("{other}"),
            }
            assert!(started.elapsed() < Duration::from_secs(15));
        }
    }
}

#[test]
fn http_2_needs_a_peer_that_offers_it() {
    for alpn in [&[][..], &["http/1.1"]] {
        let mut spec = order_to(secure_server(alpn, b""), LoadKind::Closed);
        spec.protocol = LoadProtocol::Http2 { streams: 2 };
        spec.timeout_s = 10.0;
        let error = load(&spec).unwrap_err();
        assert!(matches!(error, LoadError::NoConnection { kind: ErrorKind::Tls, .. }), "{alpn:?}: {error}");
    }
}

#[test]
fn what_is_not_tls_after_the_handshake_is_an_error_of_tls() {
    at_once(&DRIVERS, |driver| {
        let addr = secure_server(&["http/1.1"], b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        let mut spec = order_to(addr, LoadKind::Count { requests: 4 });
        spec.driver = driver;
        spec.duration_s = 20.0;
        let result = load(&spec).unwrap();
        assert_eq!(errors(&result.total), [("tls", 4)]);
        let tls = result.tls.unwrap();
        assert_eq!(tls.failed, 0, "the handshakes were well: {tls:?}");
        assert!(tls.handshakes >= 4, "{tls:?}");
    });
}

#[test]
fn a_certificate_is_checked_only_against_authorities_that_were_named() {
    let addr = secure_server(&["http/1.1"], b"");
    let dir = tempfile::tempdir().unwrap();
    // A certificate, but none that the server's comes from.
    let other = dir.path().join("other.pem");
    std::fs::write(&other, Identity::generated(KeyKind::Rsa).unwrap().chain).unwrap();
    let mut spec = order_to(addr, LoadKind::Count { requests: 1 });
    spec.timeout_s = 3.0;
    spec.tls = Some(TlsSpec { authorities: Some(other), ..TlsSpec::default() });
    let error = load(&spec).unwrap_err();
    assert!(matches!(error, LoadError::NoConnection { kind: ErrorKind::Tls, .. }), "{error}");

    spec.tls = Some(TlsSpec { suites: vec!["TLS_NONE".into()], ..TlsSpec::default() });
    let error = load(&spec).unwrap_err();
    assert!(matches!(&error, LoadError::Order(text) if text.contains("TLS_NONE")), "{error}");
}
