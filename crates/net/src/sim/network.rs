//! The network of a world: sockets, listeners and what is under way between them, by virtual time. [`super::World`] pops its events, and
//! [`super::SimDriver`] calls it for a node. It does not know tasks or handlers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::hash::Hasher;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::datagrams::DatagramEnd;
use super::link::{Link, NodeOptions, Split};
use crate::{Address, Conn, DatagramCounts, SchedulingClass};

/// The largest segment, and the most bytes that one event hands over.
const SEGMENT: usize = 64 * 1024;

/// The first wait before a lost attempt to connect is repeated; each further one is twice as long (tcp(7), `tcp_syn_retries`).
const SYN_WAIT: u64 = 1_000_000_000;

/// Attempts that follow the first.
const SYN_RETRIES: u32 = 6;

/// How often a Unix socket looks for room in the queue of its server.
const UNIX_WAIT: u64 = 1_000_000;

/// The first of the ports that listeners are given.
const FIRST_PORT: u16 = 20_000;

/// The first of the ports that connections come from.
const FIRST_SOURCE_PORT: u16 = 32_768;

pub(super) type NodeId = usize;
pub(super) type SocketId = usize;
pub(super) type ListenerId = usize;

/// Something that happens at a time.
pub(super) enum Event {
    /// An attempt to connect reaches its target; so many were lost before.
    Syn { socket: SocketId, lost: u32 },
    /// The response to it reaches the client.
    SynAck { socket: SocketId },
    /// The attempt has failed.
    Refused { socket: SocketId, error: i32 },
    /// Bytes arrive.
    Segment { to: SocketId, bytes: Vec<u8> },
    /// A datagram arrives at an address.
    Datagram { from: Route, sender: SocketId, bytes: Vec<u8> },
    /// The peer sends no more.
    Fin { to: SocketId },
    /// The peer has reset the connection.
    Reset { to: SocketId },
    /// The peer of this socket has read, so there is room for more bytes.
    Room { socket: SocketId, bytes: usize },
    /// Something that the world's owner planned.
    Call(Box<dyn FnOnce(&super::World) + Send>),
}

/// An entry of the heap, ordered by time and then by age.
struct Entry {
    at: u64,
    number: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.number == other.number
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Connecting,
    Open,
    /// The program has closed it, and what is queued is on its way.
    Closing,
    /// Nothing refers to it but what is under way.
    Gone,
}

/// What a socket has to tell its program, besides bytes and ends.
#[derive(Debug)]
pub(super) enum Notice {
    Accepted(usize),
    Connected,
    Data(Vec<u8>),
    Skipped(usize),
    Datagrams { from: SocketAddr, bytes: Vec<u8>, segment: usize },
    Sent,
    Eof,
    Failed { error: i32, unsent: usize },
}

/// Source and destination.
pub(super) type Route = (SocketAddr, SocketAddr);

/// One end of a connection, or a socket of datagrams.
pub(super) struct Socket {
    pub(super) node: NodeId,
    pub(super) conn: Option<Conn>,
    peer: Option<SocketId>,
    /// Where it connects to.
    to: Option<Address>,
    /// Both ends, if it is a TCP connection that this end has made.
    route: Option<Route>,
    pub(super) state: State,
    /// The number of the listener, until the program knows of the connection.
    pub(super) accepted: Option<usize>,
    pub(super) datagrams: Option<Box<DatagramEnd>>,
    connected: bool,
    /// Bytes that the kernel has not taken.
    queue: VecDeque<u8>,
    /// Bytes that the kernel has taken and that are not under way.
    taken: VecDeque<u8>,
    /// Bytes under way from here.
    under_way: usize,
    /// Bytes that the peer has room for, as far as this end knows.
    window: usize,
    /// When the last of them arrives.
    last_arrival: u64,
    want_sent: bool,
    sent: bool,
    /// After `taken` the end of the stream follows, and whether it is under way.
    fin: Option<bool>,
    /// Arrived and not read.
    received: VecDeque<u8>,
    segments: VecDeque<usize>,
    /// Bytes read that the peer does not know of.
    freed: usize,
    skip: u64,
    /// The program receives so many bytes more.
    at_most: u64,
    eof: bool,
    eof_told: bool,
    /// Why it is gone, by the kernel's number.
    error: Option<i32>,
    /// It is in its node's list.
    listed: bool,
}

/// A listening socket, or a bound one of datagrams.
pub(super) struct ListeningSocket {
    pub(super) address: Address,
    pub(super) datagrams: bool,
    backlog: usize,
    pub(super) queue: VecDeque<SocketId>,
    pub(super) node: Option<NodeId>,
    pub(super) open: bool,
}

impl Node {
    /// The number of a listener, as its driver counts them.
    pub(super) fn listener_number(&self, listener: ListenerId) -> usize {
        self.listeners.iter().position(|one| *one == listener).unwrap_or(0)
    }
}

impl ListeningSocket {
    pub(super) fn is_at(&self, address: &Address, datagrams: bool) -> bool {
        self.open && self.datagrams == datagrams && self.address == *address
    }
}

struct Slot {
    generation: u32,
    socket: Option<SocketId>,
}

pub(super) struct Node {
    pub(super) options: NodeOptions,
    pub(super) name: String,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots to free at the end of the turn.
    dead: Vec<u32>,
    /// By the number that the driver gave them.
    listeners: Vec<ListenerId>,
    /// Sockets with something to tell, and since when there are any.
    ready: VecDeque<SocketId>,
    ready_since: u64,
    /// Sockets whose queue is to be handed to the kernel.
    dirty: Vec<SocketId>,
    pub(super) woken: bool,
    pub(super) cpu_ns: u64,
    /// See [`crate::Io::batch_completions`].
    pub(super) gather: (u64, usize),
    pub(super) datagrams: DatagramCounts,
}

/// See the module.
pub(super) struct Network {
    pub(super) now: u64,
    heap: BinaryHeap<Reverse<Entry>>,
    number: u64,
    pub(super) random: ChaCha8Rng,
    pub(super) nodes: Vec<Node>,
    pub(super) sockets: Vec<Socket>,
    pub(super) listeners: Vec<ListeningSocket>,
    pub(super) default_link: Link,
    links: HashMap<(NodeId, NodeId), Link>,
    /// When a link with a bandwidth has sent what it was given.
    busy_until: HashMap<(NodeId, NodeId), u64>,
    /// What waits for a link to come up, in order.
    held: Vec<((NodeId, NodeId), Event)>,
    next_port: u16,
    /// Counts the source ports that were given out.
    next_source: u64,
    routes: HashSet<Route>,
    trace: Trace,
}

/// All that programs were told, as a hash and, on request, as lines.
struct Trace {
    hash: fnv::Fnv,
    lines: Option<Vec<String>>,
}

/// The first `count` bytes.
fn take(from: &mut VecDeque<u8>, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    // A queue of bytes gives all that is asked for in two calls at most, and does not fail.
    let _ = io::Read::read_exact(from, &mut bytes);
    bytes
}

mod fnv {
    /// FNV-1a (Fowler, Noll, Vo), of words and not of bytes: the same on every machine and for every version of Rust.
    pub(super) struct Fnv(pub(super) u64);

    impl std::hash::Hasher for Fnv {
        fn finish(&self) -> u64 {
            self.0
        }

        fn write(&mut self, bytes: &[u8]) {
            let mut mix = |word| self.0 = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x0100_0000_01b3);
            let (words, rest) = bytes.as_chunks();
            words.iter().for_each(|word| mix(*word));
            if !rest.is_empty() {
                let mut word = [0; 8];
                word[..rest.len()].copy_from_slice(rest);
                mix(word);
            }
        }
    }
}

impl Network {
    pub(super) fn new(seed: u64) -> Network {
        Network {
            now: 0,
            heap: BinaryHeap::new(),
            number: 0,
            random: ChaCha8Rng::seed_from_u64(seed),
            nodes: Vec::new(),
            sockets: Vec::new(),
            listeners: Vec::new(),
            default_link: Link::default(),
            links: HashMap::new(),
            busy_until: HashMap::new(),
            held: Vec::new(),
            next_port: FIRST_PORT,
            next_source: 0,
            routes: HashSet::new(),
            trace: Trace { hash: fnv::Fnv(0xcbf2_9ce4_8422_2325), lines: None },
        }
    }

    pub(super) fn add_node(&mut self, name: &str, options: NodeOptions) -> NodeId {
        self.nodes.push(Node {
            options,
            name: name.to_owned(),
            slots: Vec::new(),
            free: Vec::new(),
            dead: Vec::new(),
            listeners: Vec::new(),
            ready: VecDeque::new(),
            ready_since: 0,
            dirty: Vec::new(),
            woken: false,
            cpu_ns: 0,
            gather: (0, 0),
            datagrams: DatagramCounts::default(),
        });
        self.nodes.len() - 1
    }

    pub(super) fn node(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node]
    }

    // --- Time and events.

    pub(super) fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    pub(super) fn schedule(&mut self, at: u64, event: Event) {
        self.number += 1;
        self.heap.push(Reverse(Entry { at: at.max(self.now), number: self.number, event }));
    }

    pub(super) fn next_event(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes the next event that is due now.
    pub(super) fn take_event(&mut self) -> Option<Event> {
        if self.next_event()? > self.now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.event)
    }

    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::Syn { socket, lost } => self.syn_arrives(socket, lost),
            Event::SynAck { socket } => self.established(socket),
            Event::Refused { socket, error } => self.fail(socket, error),
            Event::Segment { to, bytes } => self.segment_arrives(to, bytes),
            Event::Datagram { from, sender, bytes } => self.datagram_arrives(from, sender, bytes),
            Event::Fin { to } => self.fin_arrives(to),
            Event::Reset { to } => self.fail(to, libc::ECONNRESET),
            Event::Room { socket, bytes } => {
                self.sockets[socket].window += bytes;
                self.transmit(socket);
            }
            Event::Call(_) => {}
        }
    }

    // --- Links.

    pub(super) fn set_default_link(&mut self, link: Link) {
        self.default_link = link;
    }

    pub(super) fn set_link(&mut self, from: NodeId, to: NodeId, link: Link) {
        self.links.insert((from, to), link);
        if !link.down {
            for held in std::mem::take(&mut self.held) {
                if held.0 == (from, to) {
                    self.schedule(self.now + link.latency, held.1);
                } else {
                    self.held.push(held);
                }
            }
        }
    }

    pub(super) fn link(&self, from: NodeId, to: NodeId) -> Link {
        self.links.get(&(from, to)).copied().unwrap_or(self.default_link)
    }

    /// Sends an event from a socket to its peer's node, behind what is under way already.
    fn send_event(&mut self, from: SocketId, to: NodeId, bytes: usize, event: Event) {
        let node = self.sockets[from].node;
        let link = self.link(node, to);
        if link.down {
            self.held.push(((node, to), event));
            return;
        }
        let departs = self.departure(node, to, bytes);
        let jitter = if link.jitter == 0 { 0 } else { self.random.random_range(0..=link.jitter) };
        let arrives = (departs + link.latency + jitter).max(self.sockets[from].last_arrival);
        self.sockets[from].last_arrival = arrives;
        self.schedule(arrives, event);
    }

    /// When the last of so many bytes leaves a node for another.
    pub(super) fn departure(&mut self, node: NodeId, to: NodeId, bytes: usize) -> u64 {
        let bandwidth = self.link(node, to).bandwidth;
        if bandwidth == 0 {
            return self.now;
        }
        let busy = self.busy_until.entry((node, to)).or_default();
        *busy = self.now.max(*busy) + (bytes as u128 * 1_000_000_000 / u128::from(bandwidth)) as u64;
        *busy
    }

    // --- Listeners.

    /// Binds an address; port 0 is replaced by a free one. Several may listen on one address if `shared`.
    pub(super) fn bind(&mut self, address: Address, backlog: usize, shared: bool) -> io::Result<(ListenerId, Address)> {
        self.bind_kind(address, backlog, shared, false)
    }

    pub(super) fn bind_kind(
        &mut self,
        address: Address,
        backlog: usize,
        shared: bool,
        datagrams: bool,
    ) -> io::Result<(ListenerId, Address)> {
        let address = match address {
            Address::Tcp(addr) if addr.port() == 0 => SocketAddr::new(addr.ip(), self.free_port()).into(),
            other => other,
        };
        if !shared && self.listeners.iter().any(|one| one.is_at(&address, datagrams)) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let listener = ListeningSocket {
            address: address.clone(),
            datagrams,
            backlog,
            queue: VecDeque::new(),
            node: None,
            open: true,
        };
        self.listeners.push(listener);
        Ok((self.listeners.len() - 1, address))
    }

    pub(super) fn free_port(&mut self) -> u16 {
        self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
        self.next_port
    }

    pub(super) fn is_listening(&self, address: &Address) -> bool {
        self.listeners.iter().any(|one| one.is_at(address, false))
    }

    /// The node accepts on it from now on.
    pub(super) fn attach(&mut self, node: NodeId, listener: ListenerId) {
        self.listeners[listener].node = Some(node);
        self.nodes[node].listeners.push(listener);
        if self.listeners[listener].datagrams {
            return self.attach_datagrams(node, listener);
        }
        self.touch(node);
    }

    pub(super) fn close_listener(&mut self, listener: ListenerId) {
        self.listeners[listener].open = false;
        for socket in std::mem::take(&mut self.listeners[listener].queue) {
            self.reset_peer(socket);
            self.sockets[socket].state = State::Gone;
        }
    }

    /// A listener of a node refuses connections, or accepts them again.
    pub(super) fn refuse(&mut self, node: NodeId, number: usize, refuse: bool) {
        match self.nodes[node].listeners.get(number).copied() {
            Some(listener) if refuse => self.close_listener(listener),
            Some(listener) => self.listeners[listener].open = true,
            None => {}
        }
    }

    /// Closes all that a node has, as the kernel does when a process ends.
    pub(super) fn close_all(&mut self, node: NodeId) {
        self.close_listeners_of(node);
        for slot in 0..self.nodes[node].slots.len() {
            let Some(socket) = self.nodes[node].slots[slot].socket else { continue };
            let one = &mut self.sockets[socket];
            one.queue.clear();
            if let Some(conn) = one.conn {
                self.close(node, conn);
            }
        }
        self.flush(node);
        self.end_turn(node);
    }

    pub(super) fn close_listeners_of(&mut self, node: NodeId) {
        for listener in self.nodes[node].listeners.clone() {
            self.close_listener(listener);
        }
    }

    // --- Connections.

    pub(super) fn connect(&mut self, node: NodeId, to: &Address, from: Option<IpAddr>) -> io::Result<Conn> {
        if self.open(node) >= self.nodes[node].options.descriptors {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let from = from.filter(|from| !from.is_unspecified());
        if from.is_some_and(|from| !from.is_loopback()) {
            return Err(io::Error::from_raw_os_error(libc::EADDRNOTAVAIL));
        }
        self.charge(node);
        let socket = self.add_socket(node, State::Connecting);
        self.sockets[socket].to = Some(to.clone());
        let conn = self.take_slot(node, socket);
        if let Some(to) = to.tcp() {
            let Some(route) = self.take_route(from, to, self.nodes[node].options.ports) else {
                self.schedule(self.now, Event::Refused { socket, error: libc::EADDRNOTAVAIL });
                return Ok(conn);
            };
            self.sockets[socket].route = Some(route);
        }
        let target = self.target_of(to).unwrap_or(node);
        let link = self.link(node, target);
        self.schedule(self.now + link.latency, Event::Syn { socket, lost: 0 });
        Ok(conn)
    }

    /// A free port to come from.
    pub(super) fn take_route(&mut self, from: Option<IpAddr>, to: SocketAddr, ports: u16) -> Option<Route> {
        let local = if to.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        (0..ports).find_map(|_| {
            let port = FIRST_SOURCE_PORT + (self.next_source % u64::from(ports)) as u16;
            self.next_source += 1;
            let route = (SocketAddr::new(from.unwrap_or(local), port), to);
            self.routes.insert(route).then_some(route)
        })
    }

    pub(super) fn peer_address(&self, node: NodeId, conn: Conn) -> Option<SocketAddr> {
        let socket = &self.sockets[self.known(node, conn)?];
        let accepted_from = || self.sockets[socket.peer?].route.map(|(from, _)| from);
        socket.route.map(|(_, to)| to).or_else(accepted_from)
    }

    pub(super) fn add_socket(&mut self, node: NodeId, state: State) -> SocketId {
        self.sockets.push(Socket {
            node,
            conn: None,
            peer: None,
            to: None,
            route: None,
            state,
            accepted: None,
            datagrams: None,
            connected: false,
            queue: VecDeque::new(),
            taken: VecDeque::new(),
            under_way: 0,
            window: 0,
            last_arrival: 0,
            want_sent: false,
            sent: false,
            fin: None,
            received: VecDeque::new(),
            segments: VecDeque::new(),
            freed: 0,
            skip: 0,
            at_most: u64::MAX,
            eof: false,
            eof_told: false,
            error: None,
            listed: false,
        });
        self.sockets.len() - 1
    }

    /// The node that listens at an address, if any does.
    fn target_of(&self, to: &Address) -> Option<NodeId> {
        self.listeners.iter().find(|one| one.is_at(to, false)).and_then(|one| one.node)
    }

    fn syn_arrives(&mut self, socket: SocketId, lost: u32) {
        let one = &self.sockets[socket];
        let (State::Connecting | State::Closing, Some(to)) = (one.state, one.to.clone()) else { return };
        let node = one.node;
        let all: Vec<ListenerId> =
            (0..self.listeners.len()).filter(|id| self.listeners[*id].is_at(&to, false)).collect();
        if all.is_empty() {
            let error = if to.tcp().is_some() { libc::ECONNREFUSED } else { libc::ENOENT };
            return self.schedule(self.now + self.default_link.latency, Event::Refused { socket, error });
        }
        let listener = all[if all.len() == 1 { 0 } else { self.random.random_range(0..all.len()) }];
        let server = self.listeners[listener].node.unwrap_or(node);
        let link = self.link(node, server);
        let is_full = self.listeners[listener].queue.len() > self.listeners[listener].backlog;
        if link.down || is_full {
            let (wait, lost) = match to {
                Address::Tcp(_) => (SYN_WAIT << lost, lost + 1),
                Address::Unix(_) => (UNIX_WAIT, 0),
            };
            if lost > SYN_RETRIES {
                return self.schedule(self.now + wait, Event::Refused { socket, error: libc::ETIMEDOUT });
            }
            return self.schedule(self.now + wait, Event::Syn { socket, lost });
        }
        let accepted = self.add_socket(server, State::Open);
        self.sockets[accepted].peer = Some(socket);
        self.sockets[socket].peer = Some(accepted);
        self.sockets[accepted].window = self.nodes[node].options.receive_buffer;
        self.sockets[socket].window = self.nodes[server].options.receive_buffer;
        self.listeners[listener].queue.push_back(accepted);
        self.touch(server);
        self.send_event(accepted, node, 0, Event::SynAck { socket });
    }

    fn established(&mut self, socket: SocketId) {
        let one = &mut self.sockets[socket];
        match one.state {
            State::Connecting => {
                one.state = State::Open;
                one.connected = true;
                self.list(socket);
                self.transmit(socket);
            }
            // It was closed meanwhile: what was queued is sent first.
            State::Closing => self.transmit(socket),
            State::Open | State::Gone => {}
        }
    }

    /// Accepts what waits, as far as there are descriptors.
    pub(super) fn accept(&mut self, node: NodeId) {
        for number in 0..self.nodes[node].listeners.len() {
            let listener = self.nodes[node].listeners[number];
            while self.open(node) < self.nodes[node].options.descriptors
                && let Some(socket) = self.listeners[listener].queue.pop_front()
            {
                self.sockets[socket].node = node;
                self.sockets[socket].accepted = Some(number);
                self.take_slot(node, socket);
                self.list(socket);
            }
        }
    }

    pub(super) fn take_slot(&mut self, node: NodeId, socket: SocketId) -> Conn {
        let node = &mut self.nodes[node];
        let slot = node.free.pop().unwrap_or_else(|| {
            node.slots.push(Slot { generation: 0, socket: None });
            node.slots.len() as u32 - 1
        });
        let entry = &mut node.slots[slot as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.socket = Some(socket);
        let conn = Conn::new(slot, entry.generation);
        self.sockets[socket].conn = Some(conn);
        conn
    }

    /// The program does not know the socket any more. Its slot is free when the turn ends.
    fn give_slot(&mut self, socket: SocketId) {
        let node = self.sockets[socket].node;
        if let Some(conn) = self.sockets[socket].conn.take() {
            self.nodes[node].slots[conn.slot()].socket = None;
            self.nodes[node].dead.push(conn.slot() as u32);
        }
        if let Some(route) = self.sockets[socket].route {
            self.routes.remove(&route);
        }
    }

    pub(super) fn end_turn(&mut self, node: NodeId) {
        let node = &mut self.nodes[node];
        node.free.append(&mut node.dead);
    }

    /// The last connection has just gone and nothing listens, so a wait could last for ever.
    pub(super) fn has_lost_all(&self, id: NodeId) -> bool {
        let node = &self.nodes[id];
        let listens = node.listeners.iter().any(|listener| self.listeners[*listener].open);
        !listens && !node.dead.is_empty() && self.open(id) == node.dead.len()
    }

    pub(super) fn clock_offset(&self, node: NodeId) -> u64 {
        self.nodes[node].options.clock_offset
    }

    pub(super) fn open(&self, node: NodeId) -> usize {
        self.nodes[node].slots.len() - self.nodes[node].free.len()
    }

    /// The socket of a connection that the program knows and has not closed.
    pub(super) fn known(&self, node: NodeId, conn: Conn) -> Option<SocketId> {
        let slot = self.nodes[node].slots.get(conn.slot())?;
        let socket = slot.socket.filter(|_| slot.generation == conn.generation())?;
        Some(socket)
    }

    pub(super) fn usable(&self, node: NodeId, conn: Conn) -> Option<SocketId> {
        self.known(node, conn).filter(|socket| self.sockets[*socket].state != State::Closing)
    }

    pub(super) fn send(&mut self, node: NodeId, conn: Conn, bytes: &[u8]) {
        if let Some(socket) = self.usable(node, conn) {
            self.sockets[socket].queue.extend(bytes);
            self.nodes[node].dirty.push(socket);
        }
    }

    pub(super) fn unsent(&self, node: NodeId, conn: Conn) -> usize {
        self.usable(node, conn).map_or(0, |socket| self.sockets[socket].queue.len())
    }

    pub(super) fn want_sent(&mut self, node: NodeId, conn: Conn) {
        if let Some(socket) = self.usable(node, conn) {
            self.sockets[socket].want_sent = true;
            self.nodes[node].dirty.push(socket);
        }
    }

    pub(super) fn skip(&mut self, node: NodeId, conn: Conn, bytes: u64) {
        if let Some(socket) = self.usable(node, conn) {
            (self.sockets[socket].skip, self.sockets[socket].at_most) = (bytes, u64::MAX);
        }
    }

    pub(super) fn receive_at_most(&mut self, node: NodeId, conn: Conn, bytes: u64) {
        if let Some(socket) = self.usable(node, conn) {
            (self.sockets[socket].skip, self.sockets[socket].at_most) = (0, bytes);
            self.list(socket);
        }
    }

    pub(super) fn close(&mut self, node: NodeId, conn: Conn) {
        let Some(socket) = self.usable(node, conn) else { return };
        let one = &mut self.sockets[socket];
        // Linux resets a connection that is closed with bytes that nobody has read.
        if !one.received.is_empty() && one.queue.is_empty() {
            return self.abort(node, conn);
        }
        let is_gone = one.state == State::Open && one.peer.is_none();
        if is_gone || one.state == State::Connecting && one.queue.is_empty() {
            return self.forget(socket);
        }
        one.state = State::Closing;
        one.fin.get_or_insert(false);
        self.nodes[node].dirty.push(socket);
    }

    /// Sends the end of the stream behind what is queued. What comes is read all the same.
    pub(super) fn shut_down(&mut self, node: NodeId, conn: Conn) {
        if let Some(socket) = self.usable(node, conn) {
            self.sockets[socket].fin.get_or_insert(false);
            self.nodes[node].dirty.push(socket);
        }
    }

    pub(super) fn abort(&mut self, node: NodeId, conn: Conn) {
        if let Some(socket) = self.known(node, conn) {
            self.reset_peer(socket);
            self.forget(socket);
        }
    }

    /// Nothing is sent or told any more.
    fn forget(&mut self, socket: SocketId) {
        self.give_slot(socket);
        let one = &mut self.sockets[socket];
        one.state = State::Gone;
        (one.queue, one.taken, one.received) = Default::default();
    }

    fn reset_peer(&mut self, socket: SocketId) {
        if let Some(peer) = self.sockets[socket].peer.take() {
            let node = self.sockets[peer].node;
            self.sockets[peer].peer = None;
            self.send_event(socket, node, 0, Event::Reset { to: peer });
        }
    }

    // --- Bytes.

    /// Hands to the kernel what programs have queued since the last turn.
    pub(super) fn flush(&mut self, node: NodeId) {
        for socket in std::mem::take(&mut self.nodes[node].dirty) {
            self.charge(node);
            self.transmit(socket);
        }
    }

    /// Moves bytes as far as there is room: from the queue to the kernel, and from there to the peer.
    fn transmit(&mut self, socket: SocketId) {
        let one = &self.sockets[socket];
        let may_send = matches!(one.state, State::Open | State::Closing);
        let Some(peer) = one.peer.filter(|_| may_send) else {
            // A sender learns why nothing can be sent, also where nothing is received.
            if one.error.is_some() {
                self.list(socket);
            }
            return;
        };
        let most = self.nodes[one.node].options.send_buffer;
        let to = self.sockets[peer].node;
        let split = self.link(one.node, to).split;
        loop {
            let one = &mut self.sockets[socket];
            let room = most.saturating_sub(one.taken.len() + one.under_way).min(one.queue.len());
            one.taken.extend(take(&mut one.queue, room));
            let ready = one.taken.len().min(one.window).min(SEGMENT);
            if ready == 0 {
                break;
            }
            let length = match split {
                Split::Whole => ready,
                Split::Every(bytes) => bytes.clamp(1, ready),
                // Small pieces as often as large ones.
                Split::Random => {
                    let largest = [1, 16, 1_460, ready][self.random.random_range(0..4)].min(ready);
                    self.random.random_range(1..=largest)
                }
            };
            let one = &mut self.sockets[socket];
            let bytes = take(&mut one.taken, length);
            one.under_way += length;
            one.window -= length;
            self.send_event(socket, to, length, Event::Segment { to: peer, bytes });
        }
        self.after_transmit(socket, peer, to);
    }

    fn after_transmit(&mut self, socket: SocketId, peer: SocketId, to: NodeId) {
        let one = &mut self.sockets[socket];
        if !one.queue.is_empty() {
            if one.state == State::Closing {
                self.discard(socket);
            }
            return;
        }
        if one.state == State::Closing && !one.received.is_empty() {
            self.reset_peer(socket);
            return self.forget(socket);
        }
        if one.want_sent && one.state == State::Open {
            (one.want_sent, one.sent) = (false, true);
            self.list(socket);
        }
        let one = &mut self.sockets[socket];
        if one.taken.is_empty() && one.fin == Some(false) {
            one.fin = Some(true);
            self.send_event(socket, to, 0, Event::Fin { to: peer });
        }
        if self.sockets[socket].state == State::Closing {
            self.give_slot(socket);
        }
    }

    /// The program has closed it and does not look at what comes, but its driver reads it until all is sent.
    fn discard(&mut self, socket: SocketId) {
        let one = &mut self.sockets[socket];
        let count = std::mem::take(&mut one.received).len();
        one.segments.clear();
        self.free(socket, count);
    }

    /// So many bytes were read. As in TCP the peer hears of it when they are half of the buffer, or else it would send tiny segments.
    fn free(&mut self, socket: SocketId, count: usize) {
        let one = &mut self.sockets[socket];
        one.freed += count;
        let node = one.node;
        if let Some(peer) = one.peer
            && one.freed >= self.nodes[node].options.receive_buffer.div_ceil(2).min(SEGMENT)
        {
            let bytes = std::mem::take(&mut one.freed);
            let link = self.link(node, self.sockets[peer].node);
            self.schedule(self.now + link.latency, Event::Room { socket: peer, bytes });
        }
    }

    fn segment_arrives(&mut self, to: SocketId, bytes: Vec<u8>) {
        if let Some(from) = self.sockets[to].peer {
            self.sockets[from].under_way -= bytes.len();
        }
        let one = &mut self.sockets[to];
        match one.state {
            State::Open if one.error.is_none() => {
                one.segments.push_back(bytes.len());
                one.received.extend(bytes);
                self.list(to);
                // The sender's buffer has room again.
                if let Some(from) = self.sockets[to].peer {
                    self.transmit(from);
                }
            }
            State::Closing if !one.queue.is_empty() => {
                one.received.extend(bytes);
                self.discard(to);
            }
            // Bytes for a connection that its program has closed are answered with a reset.
            State::Closing | State::Gone => {
                self.reset_peer(to);
                self.forget(to);
            }
            State::Open | State::Connecting => {}
        }
    }

    fn fin_arrives(&mut self, to: SocketId) {
        let one = &mut self.sockets[to];
        if one.state == State::Open {
            one.eof = true;
            self.list(to);
        }
    }

    fn fail(&mut self, socket: SocketId, error: i32) {
        let one = &mut self.sockets[socket];
        one.peer = None;
        match one.state {
            State::Open | State::Connecting => {
                one.error = Some(error);
                self.list(socket);
            }
            // The program has closed it and expects no event.
            State::Closing => self.forget(socket),
            State::Gone => {}
        }
    }

    // --- What a node's program is told.

    pub(super) fn list(&mut self, socket: SocketId) {
        let one = &mut self.sockets[socket];
        if one.conn.is_some() && !std::mem::replace(&mut one.listed, true) {
            let node = one.node;
            self.nodes[node].ready.push_back(socket);
            self.touch(node);
        }
    }

    /// Something is ready on the node.
    fn touch(&mut self, node: NodeId) {
        if self.nodes[node].ready.len() <= 1 {
            self.nodes[node].ready_since = self.now;
        }
    }

    fn has_notices(&self, node: NodeId) -> bool {
        let node = &self.nodes[node];
        let accepts = || {
            let waits = |id: &ListenerId| !self.listeners[*id].queue.is_empty() && self.listeners[*id].open;
            node.slots.len() - node.free.len() < node.options.descriptors && node.listeners.iter().any(waits)
        };
        !node.ready.is_empty() || accepts()
    }

    /// When the node has something to handle: now, later because it gathers, or not until something happens.
    pub(super) fn ready_at(&self, id: NodeId) -> Option<u64> {
        let node = &self.nodes[id];
        if node.woken || self.has_lost_all(id) {
            return Some(self.now);
        }
        let (within, events) = node.gather;
        let at = if node.ready.len() >= events.max(1) { self.now } else { node.ready_since + within };
        self.has_notices(id).then_some(at.max(self.now))
    }

    /// The next thing to tell the node's program.
    pub(super) fn next_notice(&mut self, node: NodeId) -> Option<(Conn, Notice)> {
        loop {
            let socket = self.nodes[node].ready.pop_front()?;
            self.sockets[socket].listed = false;
            let Some(conn) = self.sockets[socket].conn else { continue };
            let Some(notice) = self.notice(socket) else { continue };
            self.charge(node);
            self.record(node, conn, &notice);
            // There may be more.
            self.list(socket);
            return Some((conn, notice));
        }
    }

    fn notice(&mut self, socket: SocketId) -> Option<Notice> {
        let one = &mut self.sockets[socket];
        if one.state == State::Closing {
            return None;
        }
        if let Some(listener) = one.accepted.take() {
            return Some(Notice::Accepted(listener));
        }
        if one.datagrams.is_some() && one.error.is_none() {
            return self.read_datagrams(socket);
        }
        if std::mem::take(&mut one.connected) {
            return Some(Notice::Connected);
        }
        // It is not read, and so nobody sees its end, unless it cannot be made or sent to.
        let fails = one.error.is_some() && (one.state == State::Connecting || !one.queue.is_empty());
        if one.at_most == 0 && !fails {
            return std::mem::take(&mut one.sent).then_some(Notice::Sent);
        }
        if !one.received.is_empty() {
            return Some(self.read(socket));
        }
        if one.eof && !one.eof_told {
            one.eof_told = true;
            return Some(Notice::Eof);
        }
        if let Some(error) = one.error {
            let unsent = one.queue.len();
            self.forget(socket);
            return Some(Notice::Failed { error, unsent });
        }
        std::mem::take(&mut one.sent).then_some(Notice::Sent)
    }

    /// Reads as many segments as the link may have merged.
    fn read(&mut self, socket: SocketId) -> Notice {
        let node = self.sockets[socket].node;
        let from = self.sockets[socket].peer.map_or(node, |peer| self.sockets[peer].node);
        let split = self.link(from, node).split;
        let one = &mut self.sockets[socket];
        let mut length = one.segments.pop_front().unwrap_or(one.received.len());
        while let Some(next) = one.segments.front()
            && length + next <= SEGMENT
            && match split {
                Split::Whole => true,
                Split::Every(_) => false,
                Split::Random => self.random.random::<bool>(),
            }
        {
            length += next;
            one.segments.pop_front();
        }
        let skipped = (one.skip as usize).min(length);
        // One that has failed is read to its end.
        let most = if skipped > 0 { skipped as u64 } else { one.at_most };
        if most > 0 && most < length as u64 {
            // The rest is read next.
            one.segments.push_front(length - most as usize);
            length = most as usize;
        }
        one.skip = one.skip.saturating_sub(length as u64);
        if one.at_most < u64::MAX {
            one.at_most = one.at_most.saturating_sub(length as u64);
        }
        let bytes = take(&mut one.received, length);
        self.free(socket, length);
        if skipped > 0 { Notice::Skipped(skipped) } else { Notice::Data(bytes) }
    }

    pub(super) fn charge(&mut self, node: NodeId) {
        self.nodes[node].cpu_ns += self.nodes[node].options.cpu_per_event;
    }

    // --- Trace.

    pub(super) fn keep_trace(&mut self) {
        self.trace.lines = Some(Vec::new());
    }

    pub(super) fn trace_hash(&self) -> u64 {
        self.trace.hash.finish()
    }

    pub(super) fn trace_lines(&self) -> Vec<String> {
        self.trace.lines.clone().unwrap_or_default()
    }

    /// A world has no other processes: the class of a thread stands in the trace alone.
    pub(super) fn record_class(&mut self, node: NodeId, class: SchedulingClass) {
        if let Some(lines) = &mut self.trace.lines {
            lines.push(format!("{:>14} ns  {}: {class:?}", self.now, self.nodes[node].name));
        }
    }

    fn record(&mut self, node: NodeId, conn: Conn, notice: &Notice) {
        let hash = &mut self.trace.hash;
        hash.write_u64(self.now);
        hash.write_usize(node);
        hash.write_usize(conn.slot());
        let word = match notice {
            Notice::Accepted(_) => "accepted",
            Notice::Connected => "connected",
            Notice::Data(bytes) => {
                hash.write(bytes);
                "data"
            }
            Notice::Skipped(_) => "skipped",
            Notice::Datagrams { .. } => "datagrams",
            Notice::Sent => "sent",
            Notice::Eof => "end of stream",
            Notice::Failed { .. } => "failed",
        };
        hash.write(word.as_bytes());
        if let Some(lines) = &mut self.trace.lines {
            let detail = match notice {
                Notice::Data(bytes) => {
                    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
                    format!("{} {start:?}", bytes.len())
                }
                Notice::Skipped(length) => length.to_string(),
                Notice::Datagrams { from, bytes, segment } => format!("{from} {} of {segment}", bytes.len()),
                _ => String::new(),
            };
            let name = &self.nodes[node].name;
            lines.push(format!("{:>14} ns  {name} {}: {word} {detail}", self.now, conn.slot()));
        }
    }
}
