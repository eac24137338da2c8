//! TLS: negotiation, client certificates, and peers that break the rules.

use weir_model::protocol::Protocol;
use weir_origin::{Options, Origin, payload, tls};
use weir_wire::tls::{ClientConfig, ClientOptions};

use crate::common::server_options;
use crate::h2::Http2;
use crate::sim::{Client, NodeOptions, Scene, client_config, small};

fn start(tls: tls::ServerOptions) -> Scene {
    Scene::of(Options { tls: Some(tls), ..Options::default() })
}

/// One request, and all that comes.
fn get(client: &mut Client, target: &str) -> Vec<u8> {
    client.send(format!("GET {target} HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n"));
    client.rest().0
}

#[test]
fn http_1_over_tls() {
    let scene = start(server_options());
    for (alpn, size) in [(Some("http/1.1"), 128), (None, 11_268), (Some("http/1.1"), 3 << 20)] {
        let mut client = scene.tls_client(&client_config(alpn)).expect("a handshake");
        assert_eq!(client.alpn().as_deref(), alpn);
        let response = get(&mut client, &format!("/bytes/{size}"));
        assert!(response.starts_with(b"HTTP/1.1 200 OK\r\n") && response.ends_with(payload(size)), "{size}");
        assert!(client.is_closed_by_tls(), "an end without close_notify is a truncation");
    }
    let counters = scene.counters();
    assert_eq!((counters.answered, counters.tls.handshakes, counters.tls.failed), (3, 3, 0));
    assert_eq!(counters.body_bytes_out, 128 + 11_268 + (3 << 20));
    assert_eq!(counters.connections_by_protocol["http/1.1"], 3);
}

#[test]
fn versions_and_suites_are_counted() {
    let scene = start(server_options());
    let mut suites = 0;
    for (suite, version) in weir_wire::tls::suites().collect::<Vec<_>>() {
        if suite.contains("RSA") {
            // The origin's key is P-256.
            continue;
        }
        let options = ClientOptions { suites: vec![suite.to_owned()], ..ClientOptions::default() };
        let config = ClientConfig::new(&options).expect("a suite that there is");
        let mut client = scene.tls_client(&config).expect("a handshake");
        assert!(get(&mut client, "/bytes/20000").ends_with(payload(20_000)), "{suite}");
        suites += 1;
        let counters = scene.counters();
        assert_eq!(counters.tls.suites[suite], 1);
        assert!(counters.tls.versions[version.as_str()] >= 1);
    }
    assert!(suites >= 2);
    let only = tls::ServerOptions { versions: (tls::Version::Tls12, tls::Version::Tls12), ..server_options() };
    let old = start(only);
    let mut client = old.tls_client(&client_config(None)).expect("a handshake");
    get(&mut client, "/bytes/1");
    assert_eq!(old.counters().tls.versions["TLS 1.2"], 1);
}

#[test]
fn resumption_is_counted_and_can_be_off() {
    for resumption in [true, false] {
        let scene = start(tls::ServerOptions { resumption, ..server_options() });
        let options = ClientOptions { resumption: true, ..ClientOptions::default() };
        let config = ClientConfig::new(&options).expect("options");
        for _ in 0..4 {
            let mut client = scene.tls_client(&config).expect("a handshake");
            // Tickets come with the response or after it.
            assert!(get(&mut client, "/bytes/5").ends_with(payload(5)));
        }
        let counters = scene.counters();
        assert_eq!((counters.tls.handshakes, counters.tls.resumed), (4, if resumption { 3 } else { 0 }));
        assert_eq!(counters.connections_open, 0);
    }
}

#[test]
fn a_client_without_certificate_is_refused() {
    let identity = tls::Identity::generated(tls::KeyKind::P256).expect("a certificate");
    let clients = tls::ClientAuth::Required(identity.chain.clone());
    let scene = start(tls::ServerOptions { clients, ..server_options() });
    let refused = match scene.tls_client(&client_config(None)) {
        // In TLS 1.3 the client has finished before it learns of the refusal.
        Ok(mut client) => get(&mut client, "/bytes/1").is_empty(),
        Err(_) => true,
    };
    assert!(refused);
    let counters = scene.counters();
    assert_eq!((counters.tls.handshakes, counters.tls.failed, counters.requests), (0, 1, 0));
    assert_eq!(counters.connections_open, 0);
}

#[test]
fn plain_bytes_get_an_alert() {
    let scene = start(server_options());
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: o\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &[0; 5000],
        &[22, 3, 1, 255, 255],
    ] {
        let mut client = scene.client();
        client.send(bytes);
        client.shut_down();
        let (response, ..) = client.rest();
        assert!(response.len() < 100, "{response:?}");
    }
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.malformed, counters.tls.handshakes), (0, 0, 0));
    assert_eq!((counters.tls.failed, counters.connections_open), (4, 0));
}

#[test]
fn garbage_after_the_handshake() {
    let scene = start(server_options());
    for garbage in [&[23, 3, 3, 0, 40, 1, 2, 3][..], &[255; 400], b"GET / HTTP/1.1\r\nHost: o\r\n\r\n"] {
        let mut client = scene.tls_client(&client_config(None)).expect("a handshake");
        client.send_below([garbage, &[7; 100]].concat());
        let (response, ..) = client.rest();
        assert!(response.is_empty(), "{response:?}");
    }
    let counters = scene.counters();
    assert_eq!((counters.tls.handshakes, counters.tls.failed, counters.requests), (3, 3, 0));
    assert_eq!(counters.connections_open, 0);
}

#[test]
fn a_peer_that_never_finishes_the_handshake() {
    let scene = start(server_options());
    let idle: Vec<_> = (0..50).map(|_| scene.client()).collect();
    idle.iter().for_each(|client| client.send([22, 3, 1]));
    // Some give up in the middle.
    for _ in 0..200 {
        scene.client().send([22, 3, 1, 0, 200, 1, 0, 0]);
    }
    let mut client = scene.tls_client(&client_config(None)).expect("others are served");
    assert!(get(&mut client, "/bytes/5").ends_with(payload(5)));
    let counters = scene.counters();
    assert_eq!((counters.connections_open, counters.connections_accepted), (50, 251));
    assert_eq!(scene.stop(), 0, "nobody waits for them");
    assert_eq!(scene.counters().connections_open, 0);
}

#[test]
fn a_slow_reader_gets_everything() {
    let scene = Scene::with(Options { tls: Some(server_options()), ..Options::default() }, small());
    let machine = scene.machine(NodeOptions { receive_buffer: 100_000, ..small() });
    let mut client = scene.tls_client_of(&machine, &client_config(None)).expect("a handshake");
    client.send("GET /bytes/16MiB HTTP/1.1\r\nHost: o\r\n\r\nGET /bytes/7?close=1 HTTP/1.1\r\nHost: o\r\n\r\n");
    machine.freeze();
    let counters = scene.counters();
    // Only as much was sealed as there was room for, and less was taken.
    assert!(counters.requests == 2 && counters.bytes_out <= 110_000, "{}", counters.bytes_out);
    machine.thaw();
    let (response, ..) = client.rest();
    assert!(response.ends_with(payload(7)) && response.len() > 16 << 20);
    let counters = scene.counters();
    assert_eq!((counters.answered, counters.body_bytes_out), (2, (16 << 20) + 7));
}

#[test]
fn without_alpn_the_first_bytes_decide() {
    let scene = start(server_options());
    let mut client = Http2::new(scene.tls_client(&client_config(None)).expect("a handshake"));
    assert_eq!(client.get("/bytes/77").body, payload(77));
}

#[test]
fn keys_and_values_are_served_over_it() {
    let scene = Scene::of(Options { protocol: Protocol::Redis, tls: Some(server_options()), ..Options::default() });
    let mut client = scene.tls_client(&client_config(None)).expect("a handshake");
    client.send("SET a 1\r\nGET a\r\n");
    client.expect("+OK\r\n$1\r\n1\r\n");
    client.shut_down();
    client.expect_closed();
    let counters = scene.counters();
    assert_eq!((counters.answered, counters.tls.handshakes, counters.connections_open), (2, 1, 0));
}

#[test]
fn bad_options_are_reported() {
    let identity = tls::Identity { chain: b"no PEM".to_vec(), key: b"none".to_vec() };
    let tls = tls::ServerOptions { identities: vec![identity], ..tls::ServerOptions::default() };
    let error = Origin::start(Options { tls: Some(tls), ..Options::default() }).expect_err("no certificate");
    assert!(error.to_string().starts_with("the origin cannot speak TLS: "), "{error}");
}
