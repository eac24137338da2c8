//! TLS that fails: with peers that do not speak it, end it, or offer something else.

use std::path::PathBuf;

use weir_load::LoadError;
use weir_model::load::{ErrorKind, LoadProtocol, LoadSpec, TlsSpec};
use weir_model::suite::LoadKind;
use weir_net::sim::World;
use weir_wire::tls::{Identity, KeyKind};

use crate::script::{Do, Server, tls};
use crate::servers::{http, http_at, ok};
use crate::world::*;

/// A server that, once agreed, answers whatever comes with this below TLS; `alpn` is what it offers, `None` that it has no TLS.
fn server(world: &World, alpn: Option<&[&str]>, response: &'static [u8]) -> Server {
    Server::start(world, "127.0.0.1:0", alpn.map(tls), move |_, _| {
        Box::new(move |input, _| {
            let came = !std::mem::take(input).is_empty();
            came.then(|| vec![Do::Raw(response.to_vec())])
        })
    })
}

fn secure(server: &Server, kind: LoadKind<weir_model::load::OfferedRate>) -> LoadSpec {
    LoadSpec { tls: Some(TlsSpec::default()), connections: 1, ..order(server.addr, kind) }
}

#[test]
fn a_connection_on_which_tls_fails_says_why() {
    let dir = tempfile::tempdir().unwrap();
    // A certificate, but none that the server's comes from.
    let other = dir.path().join("other.pem");
    std::fs::write(&other, Identity::generated(KeyKind::Rsa).unwrap().chain).unwrap();
    let (h1, h2) = (LoadProtocol::Http1 { pipeline: 1 }, LoadProtocol::Http2 { streams: 2 });
    type Case<'a> = (Option<&'a [&'a str]>, LoadProtocol, Option<PathBuf>, ErrorKind, f64);
    let cases: [Case<'_>; 5] = [
        // It answers in the clear, is silent, offers no HTTP/2, or has another certificate.
        (None, h1, None, ErrorKind::Tls, 2.05),
        (Some(&[]), h2, None, ErrorKind::Tls, 2.05),
        (Some(&["http/1.1"]), h2, None, ErrorKind::Tls, 2.05),
        (Some(&["http/1.1"]), h1, Some(other), ErrorKind::Tls, 2.05),
        (None, h1, None, ErrorKind::ConnectTimeout, 4.05),
    ];
    for (alpn, protocol, authorities, expected, seconds) in cases {
        let world = world();
        let is_silent = expected == ErrorKind::ConnectTimeout;
        let server = match is_silent {
            true => http(&world, |_| ok("plain")),
            false => server(&world, alpn, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        };
        let tls = Some(TlsSpec { authorities: authorities.clone(), ..TlsSpec::default() });
        let spec = LoadSpec { tls, protocol, timeout_s: 4.0, ..secure(&server, LoadKind::Closed) };
        let error = load(&world, &spec).unwrap_err();
        let LoadError::NoConnection { kind, detail, seconds: took, .. } = &error else { panic!("{error}") };
        assert_eq!((*kind, *took, detail.is_empty()), (expected, seconds, false), "{alpn:?} {protocol:?}: {error}");
    }
}

/// Wherever the connection goes.
#[test]
fn a_certificate_is_checked_for_the_name_of_the_url() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("own.pem");
    std::fs::write(&own, Identity::generated(KeyKind::P256).unwrap().chain).unwrap();
    for (authority, is_right) in [("localhost", true), ("localhost:1", true), ("shop.example", false)] {
        let world = world();
        let server = http_at(&world, "127.0.0.7:0", Some(tls(&["http/1.1"])), |_| ok("ok"));
        let mut spec = secure(&server, counted(3));
        spec.tls = Some(TlsSpec { authorities: Some(own.clone()), ..TlsSpec::default() });
        spec.targets[0].authority = authority.into();
        match load(&world, &spec) {
            Ok(result) => assert_eq!((result.total.successful, is_right), (3, true), "{authority}"),
            Err(LoadError::NoConnection { kind, .. }) => assert_eq!((kind, is_right), (ErrorKind::Tls, false)),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn what_is_not_tls_after_the_handshake_is_an_error_of_tls() {
    let world = world();
    let server = server(&world, Some(&["http/1.1"]), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let result = load(&world, &LoadSpec { duration_s: 20.0, ..secure(&server, counted(4)) }).unwrap();
    assert_eq!(errors(&result.total), [("tls", 4)]);
    let tls = result.tls.unwrap();
    assert_eq!((tls.handshakes, tls.failed), (4, 0), "the handshakes were well");
}

#[test]
fn a_suite_that_nobody_knows_is_refused() {
    let mut spec = order("127.0.0.1:1".parse().unwrap(), counted(1));
    spec.tls = Some(TlsSpec { suites: vec!["TLS_NONE".into()], ..TlsSpec::default() });
    let error = load(&world(), &spec).unwrap_err();
    assert!(matches!(&error, LoadError::InvalidSpec(text) if text.to_string().contains("TLS_NONE")), "{error}");
}
