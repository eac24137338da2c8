//! What the tests share: handlers that echo or record, and a thread that runs one.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_net::{Conn, Driver, Event, Handler, Io, Waker, listen_socket, raise_descriptor_limit};

/// Far longer than any test takes; only a hang reaches it.
pub const LONG: Duration = Duration::from_secs(60);

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

/// Bytes that differ from their neighbours and from themselves 256 later.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 253) as u8).collect()
}

/// A listening socket on a free port.
pub fn listener() -> (TcpListener, SocketAddr) {
    raise_descriptor_limit();
    let listener = listen_socket("127.0.0.1:0".parse().unwrap(), 4096, false).unwrap();
    let addr = listener.local_addr().unwrap();
    (listener, addr)
}

/// A plain listener, for drivers to connect to.
pub fn peer_listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    (listener, addr)
}

/// A connected peer with a read timeout.
pub fn peer(addr: SocketAddr) -> TcpStream {
    let peer = TcpStream::connect(addr).unwrap();
    peer.set_read_timeout(Some(LONG)).unwrap();
    peer
}

/// A connected peer with a receive buffer of a few kilobytes.
pub fn small_peer(addr: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_recv_buffer_size(&fd, 4096).unwrap();
    connect(&fd, &addr).unwrap();
    let peer = TcpStream::from(fd);
    peer.set_read_timeout(Some(LONG)).unwrap();
    peer
}

/// Makes the peer's close a reset.
pub fn reset(peer: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&peer, Some(Duration::ZERO)).unwrap();
}

/// Runs turns until `done` returns true.
pub fn run_until<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>, H: Handler>(
    driver: &mut D,
    handler: &mut H,
    mut done: impl FnMut(&mut H, &mut D) -> bool,
) {
    let end = Instant::now() + LONG;
    while !done(handler, driver) {
        assert!(Instant::now() < end, "it hangs");
        poll(driver, handler);
    }
}

/// One turn of at most 20 ms.
pub fn poll<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>, H: Handler>(
    driver: &mut D,
    handler: &mut H,
) {
    driver.poll(handler, Some(Instant::now() + Duration::from_millis(20))).unwrap();
}

/// Runs turns until no connection is left.
pub fn run_out<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker>, H: Handler>(
    driver: &mut D,
    handler: &mut H,
) {
    run_until(driver, handler, |_, driver| driver.open() == 0);
}

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Accepted,
    Connected,
    Data(Vec<u8>),
    Skipped(usize),
    Sent,
    Eof,
    Failed(io::ErrorKind),
}

/// Records all events.
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
        self.seen.push((conn, keep(&event)));
    }
}

/// The event, owned.
pub fn keep(event: &Event<'_>) -> Seen {
    match event {
        Event::Accepted(_) => Seen::Accepted,
        Event::Connected => Seen::Connected,
        Event::Data(bytes) => Seen::Data(bytes.to_vec()),
        Event::Skipped(count) => Seen::Skipped(*count),
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
            Event::Eof => io.close(conn),
            Event::Accepted(_) | Event::Connected | Event::Skipped(_) | Event::Sent | Event::Failed { .. } => {}
        }
    }
}

/// A driver that listens on its own thread until it is dropped.
pub struct Server {
    pub addr: SocketAddr,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start<D: Driver<Listener = weir_net::Listener, Waker = weir_net::Waker> + 'static, H: Handler>(
        make: fn() -> io::Result<D>,
        handler: impl FnOnce() -> H + Send + 'static,
    ) -> Server {
        let (listener, addr) = listener();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut driver = make().unwrap();
            driver.listen(listener).unwrap();
            tell.send(driver.waker()).unwrap();
            let mut handler = handler();
            while !stopped.load(Ordering::Acquire) {
                driver.poll(&mut handler, None).unwrap();
            }
        });
        Server { addr, stop, waker: told.recv().unwrap(), thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake();
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}
