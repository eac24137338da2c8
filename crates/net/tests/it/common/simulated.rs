//! A simulated network: a peer is a driver of its own, whose blocking calls run the world, and what is in the background is a task.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

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
    run(case, 0, link, NodeOptions::default());
    run(
        case,
        0,
        Link { split: Split::Every(7), ..link },
        NodeOptions { receive_buffer: 2_000, ..NodeOptions::default() },
    );
    in_coarse_worlds(case);
}

/// Runs a case in worlds that differ in links, buffers and seeds.
pub fn in_coarse_worlds(case: fn(&Simulated)) {
    let usual = NodeOptions::default();
    let small = NodeOptions { send_buffer: 3_000, receive_buffer: 2_000, ..usual };
    let far = Link { latency: 30 * MICROSECOND, ..Link::default() };
    let pieces = |split| Link { split, ..far };
    let random = Link { jitter: 20 * MICROSECOND, ..pieces(Split::Random) };
    let slow = Link { bandwidth: 1_000_000_000, ..far };
    let worlds = [
        (0, Link::default(), usual),
        (0, Link::default(), small),
        (0, slow, small),
        (0, pieces(Split::Every(1_000)), usual),
        (1, random, usual),
        (2, random, small),
        (3, Link { latency: 0, ..random }, small),
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
struct PeerNode {
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

impl Handler for Inboxes {
    fn on_event<I: Io>(&mut self, _: &mut I, conn: Conn, event: Event<'_>) {
        let inbox = self.all.entry(conn).or_default();
        match event {
            Event::Accepted(_) => self.accepted.push_back(conn),
            Event::Connected => inbox.connected = true,
            Event::Data(bytes) => inbox.bytes.extend(bytes),
            Event::Eof => inbox.eof = true,
            Event::Failed { error, .. } => inbox.error = error.raw_os_error(),
            Event::Skipped(_) | Event::Sent => {}
        }
    }
}

impl Inboxes {
    fn get(&mut self, conn: Conn) -> &mut Inbox {
        self.all.entry(conn).or_default()
    }

    /// Whether all that was written has left. `None`: not yet.
    fn written(&mut self, driver: &mut SimDriver, conn: Conn) -> Option<io::Result<()>> {
        driver.flush();
        if let Some(error) = self.get(conn).error {
            return Some(Err(io::Error::from_raw_os_error(error)));
        }
        driver.want_sent(conn);
        (driver.unsent(conn) == 0).then_some(Ok(()))
    }

    /// What a read returns. `None`: it waits.
    fn read(&mut self, conn: Conn, into: &mut [u8]) -> Option<io::Result<usize>> {
        let inbox = self.get(conn);
        if inbox.bytes.is_empty() {
            let error = inbox.error.map(|error| Err(io::Error::from_raw_os_error(error)));
            return error.or(inbox.eof.then_some(Ok(0)));
        }
        Some(inbox.bytes.read(into))
    }

    /// A socket that is closed with bytes unread is reset.
    fn close(&mut self, driver: &mut SimDriver, conn: Conn) {
        let unread = self.all.remove(&conn).is_some_and(|inbox| !inbox.bytes.is_empty());
        if unread {
            driver.abort(conn)
        } else {
            driver.close(conn)
        }
        driver.flush();
    }
}

impl PeerNode {
    /// Runs the world until `done`.
    fn wait<R>(&mut self, mut done: impl FnMut(&mut Inboxes, &mut SimDriver) -> Option<R>) -> R {
        let driver = self.driver.as_mut().expect("it acts in the background");
        loop {
            if let Some(done) = done(&mut self.inboxes, driver) {
                return done;
            }
            driver.poll(&mut self.inboxes, None).unwrap();
        }
    }
}

/// See [`PeerNode`].
#[derive(Clone)]
pub struct SharedNode(Arc<Mutex<PeerNode>>);

impl SharedNode {
    fn new(driver: SimDriver) -> SharedNode {
        SharedNode(Arc::new(Mutex::new(PeerNode { driver: Some(driver), inboxes: Inboxes::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, PeerNode> {
        self.0.lock().unwrap()
    }
}

pub struct SimPeer {
    node: SharedNode,
    conn: Conn,
}

impl Drop for SimPeer {
    fn drop(&mut self) {
        if let PeerNode { driver: Some(driver), inboxes } = &mut *self.node.lock() {
            inboxes.close(driver, self.conn);
        }
    }
}

impl Read for SimPeer {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.node.lock().wait(|inboxes, _| inboxes.read(self.conn, bytes))
    }
}

impl Write for SimPeer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut node = self.node.lock();
        node.driver.as_mut().expect("it acts in the background").send(self.conn, bytes);
        node.wait(|inboxes, driver| inboxes.written(driver, self.conn)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Peer for SimPeer {
    fn other_address(&self) -> SocketAddr {
        self.node.lock().wait(|_, driver| driver.peer_address(self.conn))
    }

    fn shut_down(&mut self) {
        self.node.lock().wait(|_, driver| {
            driver.shut_down(self.conn);
            driver.flush();
            Some(())
        });
    }

    fn send_all(&mut self, bytes: Vec<u8>) {
        self.node.lock().wait(|_, driver| {
            driver.send(self.conn, &bytes);
            driver.shut_down(self.conn);
            driver.flush();
            Some(())
        });
    }

    fn wait_for_bytes(&mut self) {
        self.node.lock().wait(|inboxes, _| (!inboxes.get(self.conn).bytes.is_empty()).then_some(()));
    }

    fn reset(self) {
        self.node.lock().wait(|_, driver| {
            driver.abort(self.conn);
            Some(())
        });
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

/// A peer that acts. It has the driver of its node.
struct Actor {
    node: SharedNode,
    conn: Conn,
    acts: VecDeque<Act>,
    /// The first of them has begun, and a pause ends then.
    began: Option<u64>,
    outcome: Arc<Mutex<Outcome>>,
    /// The world takes it instead of the peer's, in the end.
    spare: Option<SimDriver>,
}

#[derive(Default)]
struct Outcome {
    gone: bool,
    read: Vec<u8>,
    error: Option<io::Error>,
}

impl Actor {
    /// Does what is next. `None`: it waits, for a time at most if that is known.
    fn act(&mut self, driver: &mut SimDriver, act: &Act) -> Option<io::Result<()>> {
        let inboxes = &mut self.node.lock().inboxes;
        let outcome = &mut *self.outcome.lock().unwrap();
        let first = self.began.is_none();
        let began = *self.began.get_or_insert(driver.now());
        match act {
            Act::Write(bytes) => {
                if first {
                    driver.send(self.conn, bytes);
                }
                inboxes.written(driver, self.conn)
            }
            Act::Flood(bytes) => loop {
                driver.send(self.conn, bytes);
                match inboxes.written(driver, self.conn) {
                    Some(Ok(())) => {}
                    other => return other,
                }
            },
            Act::Read(0) => Some(Ok(())),
            Act::Read(_) | Act::ReadToEnd => {
                let most = if let Act::Read(count) = act { *count } else { usize::MAX };
                let mut bytes = [0; 4096];
                let count = match inboxes.read(self.conn, &mut bytes[..most.min(4096)])? {
                    Ok(count) => count,
                    Err(error) => return Some(Err(error)),
                };
                outcome.read.extend(&bytes[..count]);
                match act {
                    Act::ReadToEnd if count > 0 => self.acts.push_front(Act::ReadToEnd),
                    Act::Read(_) if count == 0 => return Some(Err(io::ErrorKind::UnexpectedEof.into())),
                    Act::Read(_) => self.acts.push_front(Act::Read(most - count)),
                    _ => {}
                }
                Some(Ok(()))
            }
            Act::ShutDown => {
                driver.shut_down(self.conn);
                Some(Ok(()))
            }
            Act::Close | Act::Reset => {
                if matches!(act, Act::Reset) {
                    driver.abort(self.conn)
                } else {
                    inboxes.close(driver, self.conn)
                }
                outcome.gone = true;
                Some(Ok(()))
            }
            Act::Pause(nanos) => (driver.now() >= began + nanos).then_some(Ok(())),
        }
    }
}

impl Task<SimDriver> for Actor {
    fn turn(&mut self, driver: &mut SimDriver) -> io::Result<Next> {
        while let Some(act) = self.acts.pop_front() {
            match self.act(driver, &act) {
                Some(Ok(())) => self.began = None,
                Some(Err(error)) => {
                    self.outcome.lock().unwrap().error = Some(error);
                    break;
                }
                None => {
                    let until = if let Act::Pause(nanos) = act { self.began.map(|began| began + nanos) } else { None };
                    self.acts.push_front(act);
                    return Ok(Next::Poll(until));
                }
            }
        }
        driver.flush();
        self.node.lock().driver = self.spare.take().map(|spare| std::mem::replace(driver, spare));
        Ok(Next::Over)
    }

    fn poll(&mut self, driver: &mut SimDriver, until: Option<u64>) -> io::Result<()> {
        driver.poll(&mut self.node.lock().inboxes, until)
    }
}

pub struct Script {
    peer: SimPeer,
    task: usize,
    outcome: Arc<Mutex<Outcome>>,
}

impl Simulated {
    /// As much as the kernel takes of a writer before anyone reads.
    fn peer_options(&self) -> NodeOptions {
        NodeOptions { send_buffer: 4 << 20, ..self.options }
    }

    fn connect_with(&self, to: &Address, options: NodeOptions) -> io::Result<SimPeer> {
        let mut driver = self.world.driver_with("peer", options);
        let conn = driver.connect(to, None)?;
        let peer = SimPeer { node: SharedNode::new(driver), conn };
        let error = peer.node.lock().wait(|inboxes, _| {
            let inbox = inboxes.get(conn);
            inbox.error.map(Some).or(inbox.connected.then_some(None))
        });
        error.map_or(Ok(peer), |error| Err(io::Error::from_raw_os_error(error)))
    }
}

impl Network for Simulated {
    type Driver = SimDriver;
    type Peer = SimPeer;
    type PeerListener = SharedNode;
    type Server = Server;
    type Script = Script;

    fn driver(&self) -> SimDriver {
        self.world.driver_with("driver", self.options)
    }

    fn listener(&self, place: Place) -> (SimListener, Address) {
        let (address, backlog) = match place {
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

    fn peer_listener(&self, place: Place) -> (SharedNode, Address) {
        let (listener, address) = self.listener(place);
        let mut driver = self.world.driver_with("peers", self.peer_options());
        driver.listen(listener).unwrap();
        (SharedNode::new(driver), address)
    }

    fn try_accept(&self, listener: &SharedNode) -> Option<SimPeer> {
        let conn = listener.lock().wait(|inboxes, driver| {
            driver.poll(inboxes, Some(0)).unwrap();
            Some(inboxes.accepted.pop_front())
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
        let outcome = Arc::<Mutex<Outcome>>::default();
        let driver = peer.node.lock().driver.take().expect("it acts already");
        let actor = Actor {
            node: peer.node.clone(),
            conn: peer.conn,
            acts: acts.into(),
            began: None,
            outcome: outcome.clone(),
            spare: Some(self.world.driver("spare")),
        };
        Script { peer, task: self.world.add_task(driver, Box::new(actor)), outcome }
    }

    fn is_over(&self, script: &Script) -> bool {
        self.world.is_over(script.task)
    }

    fn join(&self, script: Script) -> Played<SimPeer> {
        let Script { peer, task, outcome } = script;
        assert!(self.world.run_until(self.world.now() + LONG, || self.world.is_over(task)), "it hangs");
        let Outcome { gone, read, error } = std::mem::take(&mut *outcome.lock().unwrap());
        Played { peer: (!gone).then_some(peer), read, error }
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
