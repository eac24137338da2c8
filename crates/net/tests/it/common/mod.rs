//! What the cases share: the network around a driver, with its peers, and handlers that echo or record.

mod kernel;
mod simulated;

use std::io;
use std::net::SocketAddr;

use weir_net::{Address, Conn, Driver, Event, Handler, Io};

pub use kernel::Kernel;
pub use simulated::{in_coarse_worlds, in_every_world};

pub const MICROSECOND: u64 = 1_000;
pub const MILLISECOND: u64 = 1_000_000;

/// Nanoseconds, and far longer than any test takes; only a hang reaches it.
pub const LONG: u64 = 60_000_000_000;

/// A static body of the size that a published benchmark uses.
pub static BODY: [u8; 165_854] = {
    let mut body = [0; 165_854];
    let mut i = 0;
    while i < body.len() {
        body[i] = (i * 13 + i / 251) as u8;
        i += 1;
    }
    body
};

/// More bytes than a connection's sockets hold.
pub const MANY: usize = 50 * BODY.len();

/// Queues so many.
pub fn send_many(driver: &mut impl Driver, conn: Conn) {
    (0..50).for_each(|_| driver.send_with(conn, b"", &BODY));
}

/// Bytes that differ from their neighbours and from themselves 256 later.
pub fn pattern(len: usize) -> Vec<u8> {
    // After so many it begins again.
    let period: Vec<u8> = (0..len.min(253 * 256)).map(|i| (i * 31 + i / 253) as u8).collect();
    let mut bytes = period.repeat(len.div_ceil(period.len().max(1)));
    bytes.truncate(len);
    bytes
}

/// Where something listens.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// A free port.
    Tcp,
    /// A path of its own, with a queue of so many.
    Unix(u32),
    /// A free port of datagrams.
    Datagrams,
}

/// What is around the driver of a case: the kernel's network or a simulated one.
pub trait Network {
    type Driver: Driver;
    type Peer: Peer;
    type PeerListener;
    type Server;
    type Script;

    fn driver(&self) -> Self::Driver;

    /// For drivers to listen on.
    fn listener(&self, place: Place) -> (<Self::Driver as Driver>::Listener, Address);

    /// For drivers to connect to.
    fn peer_listener(&self, place: Place) -> (Self::PeerListener, Address);

    fn try_accept(&self, listener: &Self::PeerListener) -> Option<Self::Peer>;

    fn try_connect(&self, to: &Address) -> io::Result<Self::Peer>;

    /// A connected peer with a receive buffer of a few kilobytes.
    fn connect_small(&self, to: &Address) -> Self::Peer;

    /// A driver that listens in the background until the server is dropped.
    fn serve(&self, handler: impl Handler + Send + 'static) -> (Self::Server, Address);

    /// A peer acts in the background, until the first error.
    fn play(&self, peer: Self::Peer, acts: Vec<Act>) -> Self::Script;

    fn is_over(&self, script: &Self::Script) -> bool;

    /// Waits for the end.
    fn join(&self, script: Self::Script) -> Played<Self::Peer>;

    /// Nothing for so many nanoseconds.
    fn pause(&self, nanos: u64);

    /// Calls it in the background after so many nanoseconds.
    fn later(&self, nanos: u64, call: impl FnOnce() + Send + 'static);

    /// Removes the file of a Unix socket.
    fn unlink(&self, address: &Address);

    fn accept(&self, listener: &Self::PeerListener) -> Self::Peer {
        loop {
            if let Some(peer) = self.try_accept(listener) {
                return peer;
            }
            self.pause(50 * MICROSECOND);
        }
    }

    fn connect(&self, to: &Address) -> Self::Peer {
        self.try_connect(to).unwrap()
    }

    /// An address where nothing listens, any more.
    fn refusing(&self) -> Address {
        self.peer_listener(Place::Tcp).1
    }

    /// A driver that listens.
    fn listening(&self, place: Place) -> (Self::Driver, Address) {
        let (listener, address) = self.listener(place);
        let mut driver = self.driver();
        driver.listen(listener).unwrap();
        (driver, address)
    }

    /// A driver, and what records its events.
    fn recording(&self) -> (Self::Driver, Record) {
        (self.driver(), Record::default())
    }

    /// A driver that has accepted a peer.
    fn accepted(&self, connect: fn(&Self, &Address) -> Self::Peer) -> (Self::Driver, Record, Conn, Self::Peer) {
        let (mut driver, address) = self.listening(Place::Tcp);
        let peer = connect(self, &address);
        let mut record = Record::default();
        run_until(&mut driver, &mut record, |record, _| !record.seen.is_empty());
        assert_eq!(record.seen[0].1, Seen::Accepted);
        let conn = record.conn();
        (driver, record, conn, peer)
    }
}

/// A peer of a driver. It blocks; its drop is a close.
pub trait Peer: Sized {
    /// The address of the other end.
    fn other_address(&self) -> SocketAddr;

    /// Returns what was read.
    fn act(&mut self, act: Act) -> io::Result<Vec<u8>>;

    fn write(&mut self, bytes: &[u8]) {
        self.act(Act::Write(bytes.to_vec())).unwrap();
    }

    fn read(&mut self, count: usize) -> io::Result<Vec<u8>> {
        self.act(Act::Read(count))
    }

    fn read_to_end(&mut self) -> io::Result<Vec<u8>> {
        self.act(Act::ReadToEnd)
    }

    /// It fails if the other end has reset the connection, which does not matter.
    fn shut_down(&mut self) {
        let _ = self.act(Act::ShutDown);
    }

    /// The other end has reset the connection.
    fn is_reset(&mut self) -> bool {
        self.read_to_end().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset)
    }

    fn reset(mut self) {
        self.act(Act::Reset).unwrap();
    }
}

/// What a peer does.
#[derive(Debug, Clone)]
pub enum Act {
    Write(Vec<u8>),
    /// Writes it again and again, until that fails.
    Flood(Vec<u8>),
    /// So many bytes.
    Read(usize),
    ReadToEnd,
    /// Waits for bytes, and does not read them.
    Wait,
    ShutDown,
    Close,
    Reset,
    /// Nanoseconds.
    Pause(u64),
}

/// What has come of it.
pub struct Played<P> {
    pub peer: P,
    pub read: Vec<u8>,
    pub error: Option<io::Error>,
}

/// Runs turns until `done` returns true.
pub fn run_until<D: Driver, H: Handler>(driver: &mut D, handler: &mut H, mut done: impl FnMut(&mut H, &mut D) -> bool) {
    let end = driver.now() + LONG;
    while !done(handler, driver) {
        assert!(driver.now() < end, "it hangs with {} open", driver.open());
        poll(driver, handler);
    }
}

/// One turn of two milliseconds at most.
pub fn poll<D: Driver, H: Handler>(driver: &mut D, handler: &mut H) {
    driver.poll(handler, Some(driver.now() + 2 * MILLISECOND)).unwrap();
}

/// Turns until all has happened that can.
pub fn settle<D: Driver, H: Handler>(driver: &mut D, handler: &mut H) {
    for _ in 0..3 {
        poll(driver, handler);
    }
}

/// Runs turns until no connection is left.
pub fn run_out<D: Driver, H: Handler>(driver: &mut D, handler: &mut H) {
    run_until(driver, handler, |_, driver| driver.open() == 0);
}

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Accepted,
    Connected,
    Data(Vec<u8>),
    Skipped(usize),
    /// From whom, and how large each is.
    Datagrams(SocketAddr, Vec<usize>),
    Sent,
    Eof,
    Failed(io::ErrorKind),
}

/// Records all events. What comes in several pieces stands as one.
#[derive(Debug, Default)]
pub struct Record {
    pub seen: Vec<(Conn, Seen)>,
}

impl Record {
    /// How many events are like this.
    pub fn count(&self, like: impl Fn(&Seen) -> bool) -> usize {
        self.seen.iter().filter(|(_, seen)| like(seen)).count()
    }

    /// The connection of the first event.
    pub fn conn(&self) -> Conn {
        self.seen[0].0
    }

    /// How much has come, of which some was dropped.
    pub fn received(&self) -> usize {
        let length = |seen: &Seen| match seen {
            Seen::Data(bytes) => bytes.len(),
            Seen::Skipped(count) => *count,
            _ => 0,
        };
        self.seen.iter().map(|(_, seen)| length(seen)).sum()
    }

    /// All data, one after the other.
    pub fn data(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for (_, seen) in &self.seen {
            if let Seen::Data(bytes) = seen {
                all.extend_from_slice(bytes);
            }
        }
        all
    }
}

impl Handler for Record {
    fn on_event<I: Io>(&mut self, _io: &mut I, conn: Conn, event: Event<'_>) {
        match (event, self.seen.last_mut()) {
            (Event::Data(more), Some((last, Seen::Data(bytes)))) if *last == conn => bytes.extend(more),
            (Event::Skipped(more), Some((last, Seen::Skipped(count)))) if *last == conn => *count += more,
            (event, _) => self.seen.push((conn, keep(&event))),
        }
    }
}

/// The event, owned.
pub fn keep(event: &Event<'_>) -> Seen {
    match event {
        Event::Accepted(_) => Seen::Accepted,
        Event::Connected => Seen::Connected,
        Event::Data(bytes) => Seen::Data(bytes.to_vec()),
        Event::Skipped(count) => Seen::Skipped(*count),
        Event::Datagrams(train) => Seen::Datagrams(train.from, train.each().map(<[u8]>::len).collect()),
        Event::Sent => Seen::Sent,
        Event::Eof => Seen::Eof,
        Event::Failed { error, .. } => Seen::Failed(error.kind()),
    }
}

/// Sends back every byte, and closes when the peer has finished sending.
#[derive(Debug, Default)]
pub struct Echo;

impl Handler for Echo {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Data(bytes) => io.send(conn, bytes),
            Event::Datagrams(train) => io.send_datagrams(conn, Some(train.from), train.bytes, train.segment),
            Event::Eof => io.close(conn),
            Event::Accepted(_) | Event::Connected | Event::Skipped(_) | Event::Sent | Event::Failed { .. } => {}
        }
    }
}
