//! Drivers whose process is short of descriptors. These tests have a process of their own, because they lower its limit and take all that
//! there are; they run one after the other.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weir_net::{
    Conn, DescriptorKind, Driver, DriverKind, EpollDriver, Event, Handler, Io, UringDriver, capacity, listen_socket,
};

const MANY: usize = 3_000;

/// Nanoseconds; only a hang reaches it.
const LONG: u64 = 120_000_000_000;

static ALONE: Mutex<()> = Mutex::new(());

fn limit_descriptors(most: u64) {
    let limit = Rlimit { current: Some(most), maximum: getrlimit(Resource::Nofile).maximum };
    setrlimit(Resource::Nofile, limit).unwrap();
}

struct Echo;

impl Handler for Echo {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Data(bytes) => io.send(conn, bytes),
            Event::Eof => io.close(conn),
            _ => {}
        }
    }
}

/// Sends each connection its number and reads it back.
#[derive(Default)]
struct Client {
    conns: Vec<Conn>,
    accepted: usize,
    echoed: usize,
    failed: usize,
}

impl Handler for Client {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Connected => {
                self.conns.push(conn);
                io.send(conn, &conn.slot().to_le_bytes());
            }
            Event::Data(bytes) => {
                assert_eq!(bytes, conn.slot().to_le_bytes());
                self.echoed += 1;
            }
            Event::Failed { .. } => self.failed += 1,
            Event::Accepted(_) => self.accepted += 1,
            Event::Datagrams(_) | Event::Skipped(_) | Event::Sent | Event::Eof => {}
        }
    }
}

/// Both sides, and what they have done.
struct Pair {
    server: UringDriver,
    client: UringDriver,
    handler: Client,
    end: u64,
}

impl Pair {
    fn turn_until(&mut self, what: &str, done: impl Fn(&Pair) -> bool) {
        while !done(self) {
            assert!(self.client.now() < self.end, "{what}: {} of {MANY}", self.handler.echoed);
            let soon = Some(self.client.now() + 1_000_000);
            self.client.poll(&mut self.handler, soon).unwrap();
            self.server.poll(&mut Echo, soon).unwrap();
        }
    }

    /// Connects all, a few hundred at a time, and waits for every echo.
    fn connect_all(&mut self, addr: SocketAddr) -> io::Result<()> {
        self.handler = Client::default();
        for first in (0..MANY).step_by(500) {
            for _ in 0..500 {
                self.client.connect(&addr.into(), None)?;
            }
            self.turn_until("echoes", |pair| pair.handler.echoed == first + 500);
        }
        Ok(())
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn three_thousand_connections_with_two_hundred_and_fifty_six_descriptors() {
    let _alone = ALONE.lock();
    let capacity = capacity(DriverKind::Uring);
    assert!(capacity.per_ring > 0, "a ring's table alone holds no sockets here; it takes Linux 6.13");
    assert!(capacity.per_ring as usize >= MANY, "the hard limit of descriptors is too low: {capacity:?}");
    let make = || UringDriver::with_descriptors(DescriptorKind::Direct).unwrap();
    let (server, client) = (make(), make());
    // A table keeps the size it was made with.
    limit_descriptors(256);

    let listener = listen_socket("127.0.0.1:0".parse().unwrap(), 4096, false).unwrap();
    let addr = listener.local_addr().unwrap();
    let end = client.now() + LONG;
    let mut pair = Pair { server, client, handler: Client::default(), end };
    pair.server.listen(listener).unwrap();
    let before = descriptors();

    // Closed, aborted, and the rest closed by the other side; the table entries are reused each time.
    for round in 0..3 {
        pair.connect_all(addr).unwrap();
        assert_eq!((pair.client.open(), pair.server.open()), (MANY, MANY));
        assert!(descriptors() <= before, "{} descriptors", descriptors());
        let conns = std::mem::take(&mut pair.handler.conns);
        for (number, &conn) in conns.iter().enumerate() {
            assert!(conn.slot() < MANY, "places are used again");
            match (number + round) % 3 {
                0 => pair.client.close(conn),
                1 => pair.client.abort(conn),
                _ => {
                    pair.client.send(conn, &conn.slot().to_le_bytes());
                    pair.client.close(conn);
                }
            }
        }
        pair.turn_until("ends", |pair| pair.client.open() + pair.server.open() == 0);
        assert_eq!(pair.handler.failed, 0);
    }
    // An abort is a reset for a peer that has a descriptor.
    let peer = listen_socket("127.0.0.1:0".parse().unwrap(), 8, false).unwrap();
    peer.set_nonblocking(false).unwrap();
    let conn = pair.client.connect(&peer.local_addr().unwrap().into(), None).unwrap();
    pair.turn_until("a connection", |pair| !pair.handler.conns.is_empty());
    let (mut accepted, _) = peer.accept().unwrap();
    pair.client.abort(conn);
    pair.turn_until("an end", |pair| pair.client.open() == 0);
    let mut got = Vec::new();
    let error = io::Read::read_to_end(&mut accepted, &mut got).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

/// Opens files until no more can be opened.
fn take_all_descriptors() -> Vec<File> {
    let mut all = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        all.push(file);
    }
    all
}

fn accepting_pauses_and_goes_on<D: Driver<Listener = weir_net::Listener>>(make: fn() -> io::Result<D>) {
    let listener = listen_socket("127.0.0.1:0".parse().unwrap(), 64, false).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut driver = make().unwrap();
    driver.listen(listener).unwrap();
    let mut client = Client::default();

    let mut all = take_all_descriptors();
    all.pop();
    let _peer = TcpStream::connect(addr).unwrap();
    // The peer has the last descriptor.
    let mut turns = 0;
    let end = driver.now() + 100_000_000;
    while driver.now() < end {
        driver.poll(&mut client, Some(end)).unwrap();
        turns += 1;
    }
    assert_eq!(client.accepted, 0);
    assert!(turns < 100, "{} spins: {turns} turns", driver.name());

    drop(all);
    let end = driver.now() + LONG;
    while client.accepted == 0 {
        assert!(driver.now() < end, "{} accepts no more", driver.name());
        driver.poll(&mut client, Some(end)).unwrap();
    }
    // No other connection is kept waiting.
    let _more = TcpStream::connect(addr).unwrap();
    while client.accepted == 1 {
        assert!(driver.now() < end, "{} accepts no more", driver.name());
        driver.poll(&mut client, Some(end)).unwrap();
    }
}

#[test]
fn accepting_pauses_without_descriptors_and_goes_on_with_them() {
    let _alone = ALONE.lock();
    limit_descriptors(100);
    accepting_pauses_and_goes_on(EpollDriver::new);
    accepting_pauses_and_goes_on(UringDriver::new);
}
