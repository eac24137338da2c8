//! What must hold of a TLS session whatever comes: for the fuzz targets and for the replay of their corpus.
//!
//! The input is two bytes and what follows them, so that a corpus can be written by hand:
//!
//! 1. Bits 0 and 1, counted from `0`: what comes. `0`: the bytes, instead of a handshake. `1`: the bytes, after a
//!    handshake. `2`: records sealed with the peer's keys, after a handshake: type, length (a byte), content, and so on.
//!    `3`: a handshake in which the peer's bytes are changed: place (two bytes), what is XORed to it, and so on. Bit 2:
//!    TLS 1.2 instead of 1.3. Bit 3: the session may resume (client), or asks for a certificate (server).
//! 2. How to cut: `0` byte by byte, others pieces of so many bytes, growing.

use std::sync::OnceLock;

use weir_wire::tls::{
    ClientAuth, ClientConfig, ClientOptions, Identity, KeyKind, Scratch, ServerConfig, ServerName, ServerOptions,
    Session, TlsErrorKind, TlsEvent, Version,
};

/// Which half is under test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The client half; the input plays the server.
    Client,
    /// The server half; the input plays the client.
    Server,
}

/// What became of a session.
#[derive(Debug, PartialEq, Eq)]
struct Came {
    heard: Vec<u8>,
    closed: bool,
    failed: Option<TlsErrorKind>,
}

/// Gives the client half of a session the input.
pub fn client(input: &[u8]) {
    check(Which::Client, input);
}

/// Gives the server half of a session the input.
pub fn server(input: &[u8]) {
    check(Which::Server, input);
}

fn check(which: Which, input: &[u8]) {
    let [how, cut, rest @ ..] = input else { return };
    let how = how.wrapping_sub(b'0');
    let cut = usize::from(cut.wrapping_sub(b'0'));
    match how & 3 {
        0 => {
            let whole = feed(&mut fresh(which, how), rest, rest.len().max(1));
            assert!(whole.heard.is_empty(), "data without a handshake");
            let pieces = feed(&mut fresh(which, how), rest, cut + 1);
            assert_eq!(whole, pieces, "cut or not makes a difference");
        }
        1 => {
            let (mut session, _) = joined(which, how);
            let came = feed(&mut session, rest, cut + 1);
            assert!(came.heard.is_empty() && !came.closed, "nobody has the keys");
        }
        2 => {
            let (mut session, mut peer) = joined(which, how);
            let whole = feed(&mut session, &sealed(&mut peer, rest), usize::MAX);
            let (mut session, mut peer) = joined(which, how);
            let pieces = feed(&mut session, &sealed(&mut peer, rest), cut + 1);
            assert_eq!(whole, pieces, "cut or not makes a difference");
        }
        _ => changed(which, how, rest, cut + 1),
    }
}

/// A session that has received nothing.
fn fresh(which: Which, how: u8) -> Session {
    fresh_with_hello(which, how).0
}

/// The session under test and its peer, their handshake done.
fn joined(which: Which, how: u8) -> (Session, Session) {
    let (mut client, mut there) = fresh_with_hello(Which::Client, how);
    let (mut server, mut back) = fresh_with_hello(Which::Server, how);
    let mut scratch = Scratch::new();
    while !there.is_empty() {
        take(&mut server, &mut there, &mut scratch, &mut back);
        take(&mut client, &mut back, &mut scratch, &mut there);
    }
    assert!(client.ready() && server.ready(), "a handshake that nobody disturbs");
    if which == Which::Client { (client, server) } else { (server, client) }
}

/// Gives a session bytes that may be anything; what it wants to say is appended.
fn take(session: &mut Session, bytes: &mut Vec<u8>, scratch: &mut Scratch, out: &mut Vec<u8>) {
    let mut input = &bytes[..];
    while let Ok(Some(_)) = session.next(&mut input, scratch, out) {}
    bytes.clear();
}

/// Gives a session bytes in pieces, and checks what must hold at each step.
fn feed(session: &mut Session, bytes: &[u8], piece: usize) -> Came {
    let (mut scratch, mut out) = (Scratch::new(), Vec::new());
    let mut came = Came { heard: Vec::new(), closed: false, failed: None };
    'all: for piece in bytes.chunks(piece) {
        let mut input = piece;
        loop {
            let before = (input.len(), session.ready());
            match session.next(&mut input, &mut scratch, &mut out) {
                Ok(None) => break,
                Ok(Some(event)) => {
                    assert!(input.len() < before.0, "an event out of nothing");
                    match event {
                        TlsEvent::Ready => assert!(!before.1 && session.negotiated().is_some(), "ready twice"),
                        TlsEvent::Plaintext(range) => {
                            assert!(!range.is_empty() && session.ready() && !came.closed);
                            came.heard.extend_from_slice(&scratch[range]);
                        }
                        TlsEvent::Closed => {
                            assert!(!came.closed, "closed twice");
                            came.closed = true;
                        }
                    }
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    came.failed = Some(error.kind());
                    break 'all;
                }
            }
        }
        assert!(input.is_empty(), "input was left over");
    }
    assert!(came.heard.len() <= bytes.len(), "more came out than went in");
    assert!(out.len() <= 16_384 + 4 * bytes.len(), "{} bytes for {}", out.len(), bytes.len());
    if came.failed.is_some() {
        let len = out.len();
        let again = session.next(&mut &[22, 3, 3, 0, 1, 0][..], &mut scratch, &mut out);
        assert_eq!(again.map_err(|error| error.kind()), Err(TlsErrorKind::Misuse), "a failure is the end");
        assert!(session.write(&[b"x"], &mut out).is_err() && session.negotiated().is_none());
        session.close(&mut out);
        assert_eq!(out.len(), len, "something is said after the end");
    }
    came
}

/// The records that the input describes, sealed with the peer's keys.
fn sealed(peer: &mut Session, mut input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let [kind, len, rest @ ..] = input {
        let (content, rest) = rest.split_at(usize::from(*len).min(rest.len()));
        peer.write_any(*kind, content, &mut out);
        input = rest;
    }
    out
}

/// A handshake in which bytes of the peer's are changed, and data after it.
fn changed(which: Which, how: u8, changes: &[u8], piece: usize) {
    let mut session = fresh_with_hello(which, how);
    let mut peer = fresh_with_hello(if which == Which::Client { Which::Server } else { Which::Client }, how);
    let mut scratch = Scratch::new();
    // Bytes of the peer's so far.
    let mut before = 0;
    for _ in 0..8 {
        take(&mut peer.0, &mut session.1, &mut scratch, &mut peer.1);
        if peer.0.ready() {
            peer.0.write(&[b"data"], &mut peer.1).expect("ready");
        }
        for change in changes.chunks_exact(3) {
            let place = usize::from(u16::from_be_bytes([change[0], change[1]]));
            if let Some(byte) = place.checked_sub(before).and_then(|place| peer.1.get_mut(place)) {
                *byte ^= change[2];
            }
        }
        before += peer.1.len();
        let bytes = std::mem::take(&mut peer.1);
        for piece in bytes.chunks(piece) {
            let mut input = piece;
            while let Ok(Some(event)) = session.0.next(&mut input, &mut scratch, &mut session.1) {
                if let TlsEvent::Plaintext(range) = event {
                    assert!(scratch[range].iter().eq(b"data"), "data that nobody sent");
                }
            }
        }
    }
}

/// A session that has heard nothing, and what it says first.
fn fresh_with_hello(which: Which, how: u8) -> (Session, Vec<u8>) {
    let mut out = Vec::new();
    let session = match which {
        Which::Client => {
            let mut session = Session::client(&client_config(how), &name()).expect("a client");
            session.start(&mut out).expect("a hello");
            session
        }
        Which::Server => Session::server(&server_config(how)).expect("a server"),
    };
    (session, out)
}

fn name() -> ServerName {
    ServerName::new("localhost").expect("a name")
}

/// Which of the four configurations.
fn index(how: u8) -> usize {
    usize::from(how >> 2 & 3)
}

fn client_config(how: u8) -> ClientConfig {
    static MADE: [OnceLock<ClientConfig>; 4] = [const { OnceLock::new() }; 4];
    let make = || {
        let version = if index(how) & 1 == 0 { Version::Tls13 } else { Version::Tls12 };
        let options = ClientOptions {
            versions: (version, version),
            resumption: index(how) & 2 != 0,
            identity: Some(Identity::generated(KeyKind::P256).expect("a certificate")),
            alpn: Some("h2".to_owned()),
            ..ClientOptions::default()
        };
        ClientConfig::new(&options).expect("options")
    };
    MADE[index(how)].get_or_init(make).clone()
}

fn server_config(how: u8) -> ServerConfig {
    static MADE: [OnceLock<ServerConfig>; 4] = [const { OnceLock::new() }; 4];
    let make = || {
        let identity = Identity::generated(KeyKind::P256).expect("a certificate");
        let clients = if index(how) & 2 == 0 { ClientAuth::None } else { ClientAuth::Optional(identity.chain.clone()) };
        let options = ServerOptions {
            identities: vec![identity],
            clients,
            alpn: vec!["h2".to_owned(), "http/1.1".to_owned()],
            ..ServerOptions::default()
        };
        ServerConfig::new(&options).expect("options")
    };
    MADE[index(how)].get_or_init(make).clone()
}
