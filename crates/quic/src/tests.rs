//! Connections in the simulated world: an echo of streams, with and without loss, and every way not to connect.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use weir_net::sim::{Link, NodeOptions, SimDriver, World};
use weir_net::{Conn, Driver, Event, Handler, Io, Next, Task};
use weir_wire::quic::{Kind, Part, Reader, put, put_close};
use weir_wire::tls::{self, Identity, KeyKind, ServerName};

use super::*;

const MS: u64 = 1_000_000;
const ADDRESS: &str = "127.0.0.1:4433";

/// Room for what a congestion window lets come at once.
const ROOMY: NodeOptions = NodeOptions {
    send_buffer: 256 * 1024,
    receive_buffer: 8 << 20,
    descriptors: usize::MAX,
    ports: 1_000,
    cpu_per_event: 1_000,
    wake_latency: 0,
    clock_offset: 0,
};

/// Sends back what comes on streams that clients open, on the same streams.
#[derive(Default)]
struct Echo {
    reader: Reader,
    aborts: bool,
}

impl Handler for Echo {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Accepted(_) if self.aborts => {
                let mut out = Vec::new();
                put_close(&mut out, 0x102, "not today");
                io.send(conn, &out);
                io.abort(conn);
            }
            Event::Data(mut bytes) => {
                let mut out = Vec::new();
                while let Ok(Some(Part::Stream { stream, bytes, fin })) = self.reader.next(&mut bytes) {
                    if stream % 4 == 0 {
                        put(&mut out, stream, if fin { Kind::StreamFin } else { Kind::Stream }, bytes);
                    }
                }
                io.send(conn, &out);
            }
            Event::Eof => io.close(conn),
            _ => {}
        }
    }
}

impl<D: Driver> Task<D> for Echo {
    fn turn(&mut self, _: &mut D) -> io::Result<Next> {
        Ok(Next::Poll(None))
    }

    fn poll(&mut self, driver: &mut D, until: Option<u64>) -> io::Result<()> {
        driver.poll(self, until)
    }
}

/// What a client was told.
#[derive(Debug, Default)]
struct Seen {
    reader: Reader,
    allowed: Vec<u64>,
    connected: Vec<(Conn, u64)>,
    bytes: std::collections::BTreeMap<u64, Vec<u8>>,
    ended: usize,
    last: u64,
    eof: usize,
    failed: Vec<(FailureKind, String, u64)>,
}

impl Handler for Seen {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        let now = io.now();
        match event {
            Event::Connected => self.connected.push((conn, now)),
            Event::Eof => self.eof += 1,
            Event::Failed { error, .. } => {
                let failure = Failure::of(&error).expect("one of this crate");
                self.failed.push((failure.kind, failure.to_string(), now));
            }
            Event::Data(mut bytes) => {
                while let Some(part) = self.reader.next(&mut bytes).unwrap() {
                    match part {
                        Part::Other(header, _) if header.kind == Kind::MaxStreams => self.allowed.push(header.stream),
                        Part::Other(header, _) => panic!("{header:?}"),
                        Part::Stream { stream, bytes, fin } => {
                            self.bytes.entry(stream).or_default().extend_from_slice(bytes);
                            self.ended += usize::from(fin);
                            self.last = now;
                        }
                    }
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A world with a server, and a client's driver with its endpoint.
struct Pair {
    world: World,
    client: SimDriver,
    quic: Quic,
    handshakes: Arc<Mutex<Vec<(tls::Negotiated, u64)>>>,
}

/// What differs from test to test.
struct Setup {
    seed: u64,
    link: Link,
    streams: (u32, u32),
    alpn: &'static str,
    verifies: bool,
    serves: bool,
    aborts: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        let link = Link { latency: MS, ..Link::default() };
        Setup { seed: 1, link, streams: (100, 100), alpn: "h3", verifies: false, serves: true, aborts: false }
    }
}

impl Pair {
    fn new(setup: &Setup) -> Pair {
        let world = World::new(setup.seed);
        world.set_default_link(setup.link);
        let address: SocketAddr = ADDRESS.parse().unwrap();
        let identity = Identity::generated(KeyKind::P256).unwrap();
        if setup.serves {
            let options = tls::ServerOptions {
                identities: vec![identity],
                alpn: vec!["h3".into()],
                ..tls::ServerOptions::default()
            };
            let config = tls::ServerConfig::new(&options).unwrap();
            let quic = Quic::server(ServerOptions { config, streams: setup.streams.1, seed: setup.seed }).unwrap();
            let mut driver = world.driver_with("server", ROOMY);
            driver.listen(world.listen_datagrams(address, false).unwrap()).unwrap();
            let echo = Echo { aborts: setup.aborts, ..Echo::default() };
            world.add_task(driver, Box::new(OverTask::new(quic, echo)));
        }
        let authorities = setup.verifies.then(|| Identity::generated(KeyKind::Rsa).unwrap().chain);
        let options =
            tls::ClientOptions { alpn: Some(setup.alpn.into()), authorities, ..tls::ClientOptions::default() };
        let target = Target {
            address,
            config: tls::ClientConfig::new(&options).unwrap(),
            name: ServerName::new("localhost").unwrap(),
        };
        let handshakes = Arc::new(Mutex::new(Vec::new()));
        let observed = Arc::clone(&handshakes);
        let quic = Quic::client(ClientOptions {
            targets: vec![target],
            streams: setup.streams.0,
            seed: setup.seed,
            observe: Box::new(move |negotiated, took| observed.lock().unwrap().push((negotiated.clone(), took))),
        });
        Pair { client: world.driver_with("client", ROOMY), world, quic: quic.unwrap(), handshakes }
    }

    fn over(&mut self) -> Over<'_, SimDriver> {
        Over::new(&mut self.client, &mut self.quic)
    }

    fn connect(&mut self) -> Conn {
        let address: SocketAddr = ADDRESS.parse().unwrap();
        self.over().connect(&address.into(), None).unwrap()
    }

    /// Until something holds, for two virtual minutes.
    fn run(&mut self, seen: &mut Seen, done: impl Fn(&Seen) -> bool) {
        while !done(seen) {
            assert!(self.world.now() < 120_000 * MS, "it hangs: {seen:?}");
            let until = self.world.now() + 1_000 * MS;
            self.over().poll(seen, Some(until)).unwrap();
        }
    }
}

fn bytes(stream: u64, size: usize) -> Vec<u8> {
    (0..size).map(|at| (at as u64 * 31 + stream) as u8).collect()
}

/// Sends a body on each of so many streams, and gets them back.
fn echo(setup: &Setup, streams: u64, size: usize) -> (Pair, Seen) {
    let mut pair = Pair::new(setup);
    let mut seen = Seen::default();
    let conn = pair.connect();
    pair.run(&mut seen, |seen| !seen.allowed.is_empty());
    for stream in (0..streams).map(|number| number * 4) {
        let mut out = Vec::new();
        put(&mut out, stream, Kind::StreamFin, &bytes(stream, size));
        pair.over().send(conn, &out);
    }
    pair.run(&mut seen, |seen| seen.ended == streams as usize);
    for (stream, got) in &seen.bytes {
        assert!(*got == bytes(*stream, size), "stream {stream}: {} of {size}", got.len());
    }
    (pair, seen)
}

#[test]
fn a_handshake_takes_one_round_trip_and_a_request_another() {
    let (pair, seen) = echo(&Setup::default(), 1, 100);
    assert_eq!(seen.connected[0].1, 2 * MS, "exactly");
    assert_eq!((seen.allowed[0], seen.last), (100, 4 * MS));
    let handshakes = pair.handshakes.lock().unwrap();
    let (negotiated, took) = &handshakes[0];
    assert_eq!((negotiated.alpn.as_deref(), *took), (Some("h3"), 2 * MS));
    assert_eq!((negotiated.group, negotiated.peer_key), (Some("X25519"), Some(KeyKind::P256)));
}

#[test]
fn what_a_peer_does_not_allow_waits_and_is_counted() {
    let setup = Setup { streams: (100, 8), ..Setup::default() };
    let (pair, seen) = echo(&setup, 40, 10);
    assert_eq!(seen.allowed, [8]);
    let counts = pair.quic.path_counts();
    assert_eq!(counts.waited, 32);
    assert!(counts.longest_wait_ns >= 2 * MS && counts.waited_ns >= 32 * 2 * MS, "{counts:?}");
}

#[test]
fn large_bodies_come_whole_with_and_without_loss() {
    for (loss, jitter, mtu) in [(0, 0, 0), (10_000, 0, 0), (30_000, MS / 2, 1_300), (30_000, 0, 1_200)] {
        let link = Link { latency: MS, loss, jitter, mtu, duplicates: loss, ..Link::default() };
        let (pair, _) = echo(&Setup { link, ..Setup::default() }, 5, 400_000);
        let counts = pair.quic.path_counts();
        // Without loss, reordering within a time that QUIC does not take for a loss.
        assert_eq!(counts.lost > 0, loss > 0, "{counts:?}");
        assert!(mtu == 0 || usize::from(counts.mtu) <= mtu, "{counts:?}");
        assert!(counts.sent >= 5 * 400_000 / 1_500);
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let trace = |seed| {
        let link = Link { latency: MS, jitter: MS / 10, loss: 20_000, ..Link::default() };
        let (pair, seen) = echo(&Setup { seed, link, ..Setup::default() }, 20, 5_000);
        (pair.world.trace_hash(), seen.last, pair.quic.path_counts())
    };
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7).0, trace(8).0);
}

#[test]
fn a_closed_connection_ends_on_both_sides() {
    let (mut pair, mut seen) = echo(&Setup::default(), 3, 1_000);
    let conn = seen.connected[0].0;
    pair.over().close(conn);
    let until = pair.world.now() + 100 * MS;
    while pair.world.now() < until {
        pair.over().poll(&mut seen, Some(until)).unwrap();
    }
    assert_eq!(pair.over().open(), 0);
    assert!(seen.failed.is_empty() && seen.eof == 0, "{seen:?}");
    // Its slot has another connection, and the old one's name means nothing.
    let next = pair.connect();
    pair.run(&mut seen, |seen| seen.connected.len() == 2);
    assert!(next != conn && next.slot() == conn.slot());
}

/// The one failure of a connection that is not made, or not kept.
fn failure_of(setup: &Setup) -> (FailureKind, String, u64) {
    let (mut pair, mut seen) = (Pair::new(setup), Seen::default());
    pair.connect();
    pair.run(&mut seen, |seen| !seen.failed.is_empty());
    assert_eq!(pair.over().open(), 0);
    seen.failed.remove(0)
}

#[test]
fn a_closed_port_says_udp_at_once() {
    let (kind, text, at) = failure_of(&Setup { serves: false, ..Setup::default() });
    assert_eq!((kind, at), (FailureKind::Refused, 2 * MS));
    assert!(text.contains("UDP"), "{text}");
}

#[test]
fn a_black_hole_is_a_timeout_that_says_udp() {
    let link = Link { down: true, ..Link::default() };
    let (kind, text, _) = failure_of(&Setup { link, ..Setup::default() });
    assert_eq!(kind, FailureKind::TimedOut);
    assert!(text.contains("UDP"), "{text}");
}

#[test]
fn another_protocol_and_an_unknown_certificate_are_failures_of_tls() {
    let (kind, text, _) = failure_of(&Setup { alpn: "hq-interop", ..Setup::default() });
    assert_eq!((kind, text.contains("no_application_protocol")), (FailureKind::Tls, true), "{text}");
    let (kind, text, _) = failure_of(&Setup { verifies: true, ..Setup::default() });
    assert_eq!((kind, text.contains("certificate is refused")), (FailureKind::Tls, true), "{text}");
}

#[test]
fn a_peer_that_ends_the_connection_is_heard() {
    let (kind, text, _) = failure_of(&Setup { aborts: true, ..Setup::default() });
    assert_eq!((kind, text.contains("0x102") && text.contains("not today")), (FailureKind::Closed, true), "{text}");
}

#[test]
fn noise_is_ignored() {
    let mut pair = Pair::new(&Setup::default());
    let mut seen = Seen::default();
    let noise = pair.client.connect_datagrams(ADDRESS.parse().unwrap(), None).unwrap();
    let mut draw = crate::ids::Draw::new(5);
    for size in 1..1_300usize {
        let one: Vec<u8> = (0..size).map(|_| draw.next() as u8).collect();
        pair.client.send_datagrams(noise, None, &one, size);
    }
    pair.connect();
    pair.run(&mut seen, |seen| seen.connected.len() == 1);
}
