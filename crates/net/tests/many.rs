//! More connections than descriptors. This test is alone in its process, because it lowers the limit of the process.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use weir_net::{Conn, DescriptorKind, Driver, DriverKind, Event, Handler, Io, UringDriver, capacity, listen_socket};

const MANY: usize = 3_000;
const DESCRIPTORS: u64 = 256;
const LONG: Duration = Duration::from_secs(120);

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
            Event::Accepted(_) | Event::Skipped(_) | Event::Sent | Event::Eof => {}
        }
    }
}

/// Both sides, and what they have done.
struct Pair {
    server: UringDriver,
    client: UringDriver,
    handler: Client,
    end: Instant,
}

impl Pair {
    fn turn_until(&mut self, what: &str, done: impl Fn(&Pair) -> bool) {
        while !done(self) {
            assert!(Instant::now() < self.end, "{what}: {} of {MANY}", self.handler.echoed);
            let soon = Some(Instant::now() + Duration::from_millis(1));
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
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let capacity = capacity(DriverKind::Uring);
    if capacity.per_ring == 0 {
        eprintln!("NOT TESTED: this kernel cannot hold sockets in a ring's table alone; it takes Linux 6.13");
        return;
    }
    assert!(capacity.per_ring as usize >= MANY, "the hard limit of descriptors is too low: {capacity:?}");
    let make = || UringDriver::with_descriptors(DescriptorKind::Direct).unwrap();
    let (server, client) = (make(), make());
    // A table keeps the size it was made with.
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(DESCRIPTORS), maximum }).unwrap();

    let listener = listen_socket("127.0.0.1:0".parse().unwrap(), 4096, false).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut pair = Pair { server, client, handler: Client::default(), end: Instant::now() + LONG };
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
