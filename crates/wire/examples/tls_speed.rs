//! What TLS costs a small request and its response on the client, and a large response: nanoseconds, and (under
//! `valgrind --tool=callgrind --toggle-collect='*one_round*'`) instructions.
//!
//! `cargo run --release -p weir-wire --example tls_speed [rounds [suite]]`

use std::hint::black_box;
use std::time::Instant;

use weir_wire::tls::{
    ClientConfig, ClientOptions, Identity, KeyKind, Scratch, ServerConfig, ServerName, ServerOptions, Session, TlsEvent,
};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8443\r\nUser-Agent: weir\r\n\r\n";

struct Half {
    session: Session,
    scratch: Scratch,
    out: Vec<u8>,
}

impl Half {
    fn hear(&mut self, bytes: &[u8]) -> usize {
        let mut input = bytes;
        let mut heard = 0;
        while let Some(event) = self.session.next(&mut input, &mut self.scratch, &mut self.out).expect("TLS") {
            if let TlsEvent::Plaintext(range) = event {
                heard += black_box(&self.scratch[range]).len();
            }
        }
        heard
    }
}

/// The client's part of a request: seal it, open the response.
#[inline(never)]
fn one_round(client: &mut Half, answer: &[u8]) -> usize {
    client.out.clear();
    client.session.write(&[REQUEST], &mut client.out).expect("ready");
    client.hear(answer)
}

fn joined(suite: &str) -> (Half, Half) {
    let options = ClientOptions { suites: vec![suite.to_owned()], ..ClientOptions::default() };
    let to = ClientConfig::new(&options).expect("options");
    let identities =
        vec![Identity::generated(KeyKind::P256).expect("a key"), Identity::generated(KeyKind::Rsa).expect("a key")];
    let from = ServerConfig::new(&ServerOptions { identities, ..ServerOptions::default() }).expect("options");
    let half = |session| Half { session, scratch: Scratch::new(), out: Vec::new() };
    let mut client = half(Session::client(&to, &ServerName::new("localhost").expect("a name")).expect("a client"));
    let mut server = half(Session::server(&from).expect("a server"));
    client.session.start(&mut client.out).expect("a hello");
    while !client.out.is_empty() || !server.out.is_empty() {
        server.hear(&std::mem::take(&mut client.out));
        client.hear(&std::mem::take(&mut server.out));
    }
    (client, server)
}

fn main() {
    let rounds: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let only = std::env::args().nth(2).unwrap_or_default();
    for suite in [
        "TLS_AES_256_GCM_SHA384",
        "TLS_AES_128_GCM_SHA256",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    ]
    .into_iter()
    .filter(|suite| suite.contains(&only))
    {
        for size in [240, 11_500, 166_000] {
            let (mut client, mut server) = joined(suite);
            let rounds = (rounds * 240 / size).max(10);
            // The server's records are made beforehand, for each has a number.
            let answers: Vec<Vec<u8>> = (0..rounds)
                .map(|_| {
                    let mut out = Vec::new();
                    server.session.write(&[&vec![b'x'; size]], &mut out).expect("ready");
                    out
                })
                .collect();
            let start = Instant::now();
            for answer in &answers {
                assert_eq!(one_round(&mut client, answer), size);
            }
            let ns = start.elapsed().as_nanos() as f64 / rounds as f64;
            println!("{suite}: a request of {} B and an answer of {size} B: {ns:.0} ns", REQUEST.len());
        }
    }
    let start = Instant::now();
    let handshakes = (rounds / 400).max(1);
    for _ in 0..handshakes {
        black_box(joined("TLS_AES_256_GCM_SHA384"));
    }
    println!(
        "a handshake, both halves, configurations included: {:.0} us",
        start.elapsed().as_micros() as f64 / handshakes as f64
    );
}
