//! A server in a simulated world that follows a script: on each connection it sends, waits, ends or resets, as a closure says that reads
//! what has come. Closures know protocols; this does not, but for TLS, which may lie below. It does not know loads.
#![allow(dead_code)] // each test program uses some of it

use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use weir_net::sim::{NodeOptions, SimDriver, World};
use weir_net::{Conn, Driver, Event, Handler, Io, Next, Task};
use weir_wire::tls::{Identity, KeyKind, Scratch, ServerConfig, ServerOptions, Session, TlsEvent};

/// What happens on a connection next.
pub enum Do {
    Send(Vec<u8>),
    /// Sends these below TLS.
    Raw(Vec<u8>),
    /// Sends what this makes of the TLS session.
    Seal(fn(&mut Session, &mut Vec<u8>)),
    /// Nothing for so long, nanoseconds.
    Wait(u64),
    /// Sends this again and again, as fast as it is taken.
    Flood(Vec<u8>),
    /// Nothing more is read; the connection is closed when the peer ends it.
    Silence,
    /// This side ends, and the connection when the peer ends it.
    End,
    /// The connection is closed, whatever was not read.
    Close,
    Reset,
}

/// Reads what has come by a time: what is done next, or `None` until there is more. It is asked before anything has come, too.
pub type Reader = Box<dyn FnMut(&mut Vec<u8>, u64) -> Option<Vec<Do>>>;

/// What a server has seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// Of each connection: where it came from.
    pub peers: Vec<SocketAddr>,
    /// Connections that are open.
    pub open: u64,
    /// Of each request: its connection, and when it came.
    pub asked: Vec<(u64, u64)>,
    /// Requests that the client took back.
    pub cancelled: u64,
}

/// A server in a world.
pub struct Server {
    pub addr: SocketAddr,
    /// Its task.
    pub task: usize,
    pub seen: Rc<RefCell<Seen>>,
}

impl Server {
    /// Starts one at an address, whose port may be 0. `reader` is called for each connection with its number.
    pub fn start(
        world: &World,
        addr: &str,
        tls: Option<ServerConfig>,
        reader: impl FnMut(u64, &Rc<RefCell<Seen>>) -> Reader + 'static,
    ) -> Server {
        let listener = world.listen(addr.parse::<SocketAddr>().unwrap(), 1_024, false).unwrap();
        let addr = listener.address().tcp().unwrap();
        // A flood is not endless at one instant.
        let mut driver = world.driver_with("server", NodeOptions { send_buffer: 2 * 1024, ..NodeOptions::default() });
        driver.listen(listener).unwrap();
        let seen = Rc::<RefCell<Seen>>::default();
        let script = Script { reader: Box::new(reader), tls, seen: seen.clone(), lines: BTreeMap::new() };
        Server { addr, task: world.add_task(driver, Box::new(script)), seen }
    }

    pub fn seen(&self) -> Ref<'_, Seen> {
        self.seen.borrow()
    }

    pub fn requests(&self) -> u64 {
        self.seen().asked.len() as u64
    }

    pub fn connections(&self) -> u64 {
        self.seen().peers.len() as u64
    }
}

/// A server's TLS with a certificate that nobody signed.
pub fn tls(alpn: &[&str]) -> ServerConfig {
    let alpn = alpn.iter().map(|name| (*name).to_owned()).collect();
    let identities = vec![Identity::generated(KeyKind::P256).unwrap()];
    ServerConfig::new(&ServerOptions { identities, alpn, ..ServerOptions::default() }).unwrap()
}

/// A connection.
struct Line {
    number: usize,
    reader: Reader,
    tls: Option<(Session, Scratch)>,
    input: Vec<u8>,
    steps: VecDeque<Do>,
    until: u64,
    silent: bool,
    ended: bool,
}

type MakeReader = Box<dyn FnMut(u64, &Rc<RefCell<Seen>>) -> Reader>;

struct Script {
    reader: MakeReader,
    tls: Option<ServerConfig>,
    seen: Rc<RefCell<Seen>>,
    lines: BTreeMap<usize, (Conn, Line)>,
}

impl Handler for Script {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Accepted(_) => {
                let number = self.seen.borrow().peers.len() as u64;
                self.seen.borrow_mut().open += 1;
                let session = |config| (Session::server(config).unwrap(), Scratch::new());
                let line = Line {
                    number: number as usize,
                    reader: (self.reader)(number, &self.seen),
                    tls: self.tls.as_ref().map(session),
                    input: Vec::new(),
                    steps: VecDeque::new(),
                    until: 0,
                    silent: false,
                    ended: false,
                };
                // A turn, which has the driver, says where it came from.
                self.seen.borrow_mut().peers.push(([0, 0, 0, 0], 0).into());
                self.lines.insert(conn.slot(), (conn, line));
            }
            Event::Data(bytes) => {
                let Some((_, line)) = self.lines.get_mut(&conn.slot()) else { return };
                if !line.take(io, conn, bytes) {
                    io.abort(conn);
                    self.forget(conn.slot());
                }
            }
            Event::Eof => {
                if let Some((_, line)) = self.lines.get_mut(&conn.slot()) {
                    line.ended = true;
                }
            }
            Event::Failed { .. } => self.forget(conn.slot()),
            Event::Connected | Event::Datagrams(_) | Event::Skipped(_) | Event::Sent => {}
        }
    }
}

impl Script {
    fn forget(&mut self, slot: usize) {
        if self.lines.remove(&slot).is_some() {
            self.seen.borrow_mut().open -= 1;
        }
    }
}

impl Task<SimDriver> for Script {
    fn turn(&mut self, driver: &mut SimDriver) -> io::Result<Next> {
        let slots: Vec<usize> = self.lines.keys().copied().collect();
        let mut next = None;
        for slot in slots {
            let (conn, line) = self.lines.get_mut(&slot).unwrap();
            if let Some(peer) = driver.peer_address(*conn) {
                self.seen.borrow_mut().peers[line.number] = peer;
            }
            let goes_on = line.go_on(driver, *conn);
            if goes_on {
                next = next.into_iter().chain(Some(line.until).filter(|until| *until > driver.now())).min();
            } else {
                self.forget(slot);
            }
        }
        Ok(Next::Poll(next))
    }

    fn poll(&mut self, driver: &mut SimDriver, until: Option<u64>) -> io::Result<()> {
        driver.poll(self, until)
    }
}

impl Line {
    /// Takes what has come. `false`: it is not TLS.
    fn take(&mut self, io: &mut impl Io, conn: Conn, mut bytes: &[u8]) -> bool {
        let Some((session, scratch)) = &mut self.tls else {
            self.input.extend_from_slice(bytes);
            return true;
        };
        let mut out = Vec::new();
        let is_tls = loop {
            match session.next(&mut bytes, scratch, &mut out) {
                Ok(Some(TlsEvent::Plaintext(range))) => self.input.extend_from_slice(&scratch[range]),
                Ok(Some(_)) => {}
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        io.send(conn, &out);
        is_tls
    }

    /// Does what can be done now. `false`: the connection is gone.
    fn go_on(&mut self, driver: &mut SimDriver, conn: Conn) -> bool {
        while self.until <= driver.now() {
            let Some(step) = self.steps.pop_front() else {
                let steps = if self.silent { None } else { (self.reader)(&mut self.input, driver.now()) };
                let Some(steps) = steps else { break };
                self.steps.extend(steps);
                continue;
            };
            let mut sealed = Vec::new();
            match (step, &mut self.tls) {
                (Do::Send(bytes), Some((session, _))) => session.write(&[&bytes], &mut sealed).unwrap(),
                (Do::Send(bytes) | Do::Raw(bytes), _) => driver.send(conn, &bytes),
                (Do::Seal(make), Some((session, _))) => make(session, &mut sealed),
                (Do::Seal(_), None) => panic!("there is no TLS"),
                (Do::Wait(time), _) => self.until = driver.now() + time,
                (Do::Flood(bytes), _) => {
                    if self.ended {
                        driver.close(conn);
                        return false;
                    }
                    if driver.unsent(conn) == 0 {
                        driver.send(conn, &bytes);
                    }
                    driver.want_sent(conn);
                    self.steps.push_front(Do::Flood(bytes));
                    return true;
                }
                (Do::Silence, _) => self.silent = true,
                (Do::End, _) => {
                    driver.shut_down(conn);
                    self.silent = true;
                }
                (Do::Close, _) => {
                    driver.close(conn);
                    return false;
                }
                (Do::Reset, _) => {
                    driver.abort(conn);
                    return false;
                }
            }
            driver.send(conn, &sealed);
        }
        let over = self.ended && self.steps.is_empty() && self.until <= driver.now();
        if over {
            driver.close(conn);
        }
        !over
    }
}
