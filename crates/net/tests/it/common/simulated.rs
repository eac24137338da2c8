//! A simulated network: a peer is a driver of its own, whose blocking calls run the world, and what is in the background is a task.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use weir_net::sim::{Link, NodeOptions, SimDriver, SimListener, Split, World};
use weir_net::{Address, Conn, Driver, Event, Handler, Io, Next, Task};

use super::{Act, LONG, MICROSECOND, Network, Peer, Place, Played};

/// A world, and what the drivers of its cases have.
pub struct Simulated {
    world: World,
    options: NodeOptions,
    paths: AtomicUsize,
}

/// Runs a case in every world, also in those whose links pass a few bytes at a time.
pub fn in_every_world(case: fn(&Simulated)) {
    let link = Link { latency: MICROSECOND, split: Split::Every(1), ..Link::default() };
    let small = NodeOptions { send_buffer: 3_000, receive_buffer: 2_000, ..NodeOptions::default() };
    run(case, 0, link, NodeOptions::default());
    run(case, 0, Link { split: Split::Every(7), ..link }, small);
    run(case, 1, Link { split: Split::Random, ..link }, small);
    in_coarse_worlds(case);
}

/// Runs a case in worlds that differ in links, buffers and seeds.
pub fn in_coarse_worlds(case: fn(&Simulated)) {
    let usual = NodeOptions::default();
    let small = NodeOptions { send_buffer: 30_000, receive_buffer: 20_000, ..usual };
    let far = Link { latency: 30 * MICROSECOND, ..Link::default() };
    let random = Link { jitter: 20 * MICROSECOND, split: Split::Random, ..far };
    let worlds = [
        (0, Link::default(), usual),
        (0, Link { bandwidth: 1_000_000_000, ..far }, small),
        (0, Link { split: Split::Every(1_000), ..far }, usual),
        (1, random, usual),
        (2, Link { latency: 0, ..random }, small),
    ];
    worlds.into_iter().for_each(|(seed, link, options)| run(case, seed, link, options));
}

fn run(case: fn(&Simulated), seed: u64, link: Link, options: NodeOptions) {
    // Shown if it fails.
    println!("seed {seed}, {link:?}, {options:?}");
    let world = World::new(seed);
    world.set_default_link(link);
    case(&Simulated { world, options, paths: AtomicUsize::new(0) });
}

/// Peers with one driver: those that one listener accepted, or one that has connected.
pub struct Node {
    /// `None` while one of them acts in the background.
    driver: Option<SimDriver>,
    inboxes: Inboxes,
}

/// What has come for them.
#[derive(Default)]
struct Inboxes {
    all: HashMap<Conn, Inbox>,
    accepted: VecDeque<Conn>,
}

#[derive(Default)]
struct Inbox {
    bytes: VecDeque<u8>,
    eof: bool,
    connected: bool,
    error: Option<i32>,
}

impl Inbox {
    fn error(&self) -> Option<io::Result<()>> {
        self.error.map(|error| Err(io::Error::from_raw_os_error(error)))
    }
}

impl Handler for Inboxes {
    fn on_event<I: Io>(&mut self, _: &mut I, conn: Conn, event: Event<'_>) {
        let inbox = self.all.entry(conn).or_default();
        match event {
            Event::Accepted(_) => self.accepted.push_back(conn),
            Event::Connected => inbox.connected = true,
            Event::Data(bytes) => inbox.bytes.extend(bytes),
            Event::Eof => inbox.eof = true,
            Event::Failed { error, .. } => inbox.error = error.raw_os_error(),
            Event::Datagrams(_) | Event::Skipped(_) | Event::Sent => {}
        }
    }
}

impl Node {
    fn new(driver: SimDriver) -> Arc<Mutex<Node>> {
        Arc::new(Mutex::new(Node { driver: Some(driver), inboxes: Inboxes::default() }))
    }

    /// Runs the world until `done`, looking again when something happens or at the time that `until` returns.
    fn wait<R>(&mut self, mut done: impl FnMut(&mut SimDriver, &mut Inboxes) -> Result<R, Option<u64>>) -> R {
        let driver = self.driver.as_mut().expect("it acts in the background");
        loop {
            match done(driver, &mut self.inboxes) {
                Ok(done) => return done,
                Err(until) => driver.poll(&mut self.inboxes, until).unwrap(),
            }
        }
    }
}

/// An act, how far it is, and what it has read.
struct Doing {
    act: Act,
    began: Option<u64>,
    read: Vec<u8>,
}

impl Doing {
    fn new(act: Act) -> Doing {
        Doing { act, began: None, read: Vec::new() }
    }

    /// Goes on with it. `None`: it waits.
    fn go_on(&mut self, driver: &mut SimDriver, inboxes: &mut Inboxes, conn: Conn) -> Option<io::Result<()>> {
        let inbox = inboxes.all.entry(conn).or_default();
        let is_first = self.began.is_none();
        let began = *self.began.get_or_insert(driver.now());
        match &self.act {
            Act::Write(bytes) | Act::Flood(bytes) => loop {
                let floods = matches!(self.act, Act::Flood(_));
                if is_first || floods {
                    driver.send(conn, bytes);
                    driver.flush();
                }
                if inbox.error.is_some() || !floods && driver.unsent(conn) == 0 {
                    return inbox.error().or(Some(Ok(())));
                }
                if driver.unsent(conn) > 0 {
                    driver.want_sent(conn);
                    return None;
                }
            },
            Act::Read(count) => {
                let more = (count - self.read.len()) as u64;
                inbox.bytes.by_ref().take(more).read_to_end(&mut self.read).unwrap();
                let is_over = inbox.eof && self.read.len() < *count;
                let error = is_over.then(|| Err(io::ErrorKind::UnexpectedEof.into()));
                (self.read.len() == *count).then_some(Ok(())).or(inbox.error()).or(error)
            }
            Act::ReadToEnd => {
                inbox.bytes.read_to_end(&mut self.read).unwrap();
                inbox.error().or(inbox.eof.then_some(Ok(())))
            }
            Act::Wait => (!inbox.bytes.is_empty()).then_some(Ok(())),
            Act::ShutDown => {
                driver.shut_down(conn);
                Some(Ok(()))
            }
            // A socket that is closed with bytes unread is reset.
            Act::Close if inbox.bytes.is_empty() => {
                driver.close(conn);
                Some(Ok(()))
            }
            Act::Close | Act::Reset => {
                driver.abort(conn);
                Some(Ok(()))
            }
            Act::Pause(nanos) => (driver.now() >= began + nanos).then_some(Ok(())),
        }
    }

    /// When it goes on even if nothing happens.
    fn until(&self) -> Option<u64> {
        if let Act::Pause(nanos) = self.act { self.began.map(|began| began + nanos) } else { None }
    }
}

/// See [`Node`].
pub struct SimPeer {
    node: Arc<Mutex<Node>>,
    conn: Conn,
}

impl Drop for SimPeer {
    fn drop(&mut self) {
        if let Node { driver: Some(driver), inboxes } = &mut *self.node.lock().unwrap() {
            Doing::new(Act::Close).go_on(driver, inboxes, self.conn);
            driver.flush();
        }
    }
}

impl Peer for SimPeer {
    fn other_address(&self) -> SocketAddr {
        self.node.lock().unwrap().wait(|driver, _| driver.peer_address(self.conn).ok_or(None))
    }

    fn act(&mut self, act: Act) -> io::Result<Vec<u8>> {
        let mut doing = Doing::new(act);
        let result = self.node.lock().unwrap().wait(|driver, inboxes| {
            let result = doing.go_on(driver, inboxes, self.conn);
            driver.flush();
            result.ok_or(doing.until())
        });
        result.map(|()| doing.read)
    }
}

/// A handler with its driver.
struct Serves<H>(H);

impl<H: Handler> Task<SimDriver> for Serves<H> {
    fn turn(&mut self, _: &mut SimDriver) -> io::Result<Next> {
        Ok(Next::Poll(None))
    }

    fn poll(&mut self, driver: &mut SimDriver, until: Option<u64>) -> io::Result<()> {
        driver.poll(&mut self.0, until)
    }
}

pub struct Server {
    world: World,
    task: usize,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.world.kill(self.task);
    }
}

/// A peer that acts in the background. The world has the driver of its node.
struct Actor {
    world: World,
    node: Arc<Mutex<Node>>,
    conn: Conn,
    acts: VecDeque<Doing>,
    outcome: Arc<Mutex<(Vec<u8>, Option<io::Error>)>>,
}

impl Task<SimDriver> for Actor {
    fn turn(&mut self, driver: &mut SimDriver) -> io::Result<Next> {
        let mut node = self.node.lock().unwrap();
        let mut outcome = self.outcome.lock().unwrap();
        while let Some(mut doing) = self.acts.pop_front() {
            match doing.go_on(driver, &mut node.inboxes, self.conn) {
                None => {
                    let until = doing.until();
                    self.acts.push_front(doing);
                    return Ok(Next::Poll(until));
                }
                Some(result) => {
                    outcome.0.extend(doing.read);
                    outcome.1 = result.err();
                }
            }
            if outcome.1.is_some() {
                break;
            }
        }
        driver.flush();
        node.driver = Some(std::mem::replace(driver, self.world.driver("over")));
        Ok(Next::Over)
    }

    fn poll(&mut self, driver: &mut SimDriver, until: Option<u64>) -> io::Result<()> {
        driver.poll(&mut self.node.lock().unwrap().inboxes, until)
    }
}

pub struct Script {
    peer: SimPeer,
    task: usize,
    outcome: Arc<Mutex<(Vec<u8>, Option<io::Error>)>>,
}

impl Simulated {
    /// As much as the kernel takes of a writer before anyone reads.
    fn peer_options(&self) -> NodeOptions {
        NodeOptions { send_buffer: 4 << 20, ..self.options }
    }

    fn connect_with(&self, to: &Address, options: NodeOptions) -> io::Result<SimPeer> {
        let mut driver = self.world.driver_with("peer", options);
        let conn = driver.connect(to, None)?;
        let peer = SimPeer { node: Node::new(driver), conn };
        let connected = peer.node.lock().unwrap().wait(|_, inboxes| {
            let inbox = inboxes.all.entry(conn).or_default();
            inbox.error().or(inbox.connected.then_some(Ok(()))).ok_or(None)
        });
        connected.map(|()| peer)
    }
}

impl Network for Simulated {
    type Driver = SimDriver;
    type Peer = SimPeer;
    type PeerListener = Arc<Mutex<Node>>;
    type Server = Server;
    type Script = Script;

    fn driver(&self) -> SimDriver {
        self.world.driver_with("driver", self.options)
    }

    fn listener(&self, place: Place) -> (SimListener, Address) {
        let (address, backlog) = match place {
            Place::Datagrams => {
                let listener = self.world.listen_datagrams("127.0.0.1:0".parse().unwrap(), false).unwrap();
                let address = listener.address().clone();
                return (listener, address);
            }
            Place::Tcp => (Address::Tcp("127.0.0.1:0".parse().unwrap()), 4096),
            Place::Unix(backlog) => {
                let number = self.paths.fetch_add(1, Ordering::Relaxed);
                (Address::unix(format!("/{number}")), backlog as usize)
            }
        };
        let listener = self.world.listen(address, backlog, false).unwrap();
        let address = listener.address().clone();
        (listener, address)
    }

    fn peer_listener(&self, place: Place) -> (Arc<Mutex<Node>>, Address) {
        let (listener, address) = self.listener(place);
        let mut driver = self.world.driver_with("peers", self.peer_options());
        driver.listen(listener).unwrap();
        (Node::new(driver), address)
    }

    fn try_accept(&self, listener: &Arc<Mutex<Node>>) -> Option<SimPeer> {
        let conn = listener.lock().unwrap().wait(|driver, inboxes| {
            driver.poll(inboxes, Some(0)).unwrap();
            Ok(inboxes.accepted.pop_front())
        })?;
        Some(SimPeer { node: listener.clone(), conn })
    }

    fn try_connect(&self, to: &Address) -> io::Result<SimPeer> {
        self.connect_with(to, self.peer_options())
    }

    fn connect_small(&self, to: &Address) -> SimPeer {
        self.connect_with(to, NodeOptions { receive_buffer: 4096, ..self.peer_options() }).unwrap()
    }

    fn serve(&self, handler: impl Handler + Send + 'static) -> (Server, Address) {
        let (driver, address) = self.listening(Place::Tcp);
        let task = self.world.add_task(driver, Box::new(Serves(handler)));
        (Server { world: self.world.clone(), task }, address)
    }

    fn play(&self, peer: SimPeer, acts: Vec<Act>) -> Script {
        let outcome = Arc::default();
        let driver = peer.node.lock().unwrap().driver.take().expect("it acts already");
        let actor = Actor {
            world: self.world.clone(),
            node: peer.node.clone(),
            conn: peer.conn,
            acts: acts.into_iter().map(Doing::new).collect(),
            outcome: Arc::clone(&outcome),
        };
        Script { peer, task: self.world.add_task(driver, Box::new(actor)), outcome }
    }

    fn is_over(&self, script: &Script) -> bool {
        self.world.is_over(script.task)
    }

    fn join(&self, script: Script) -> Played<SimPeer> {
        let Script { peer, task, outcome } = script;
        assert!(self.world.run_until(self.world.now() + LONG, || self.world.is_over(task)), "it hangs");
        let (read, error) = std::mem::take(&mut *outcome.lock().unwrap());
        Played { peer, read, error }
    }

    fn pause(&self, nanos: u64) {
        self.world.run_to(self.world.now() + nanos);
    }

    fn later(&self, nanos: u64, call: impl FnOnce() + Send + 'static) {
        self.world.at(self.world.now() + nanos, |_| call());
    }

    /// An address at which nothing listens is as good as a path without a file.
    fn unlink(&self, address: &Address) {
        assert!(!self.world.is_listening(address));
    }
}
