//! An endpoint of one thread: its connections, sockets and timers.
//!
//! [`crate::driver`] gives it what came and the time, and asks what to send and to tell. It does not know drivers or handlers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::{hkdf, hmac};
use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, EndpointEvent, IdleTimeout,
    NoneTokenStore, ServerConfig, TransportConfig,
};
use weir_net::{Conn, Datagrams, Io, PathCounts};
use weir_wire::tls::{self, Negotiated, ServerName, TlsError};

use crate::connection::{Connection, State};
use crate::ids::{Draw, Ids, peer_ids};
use crate::tls::{Client, Server};

/// How long a peer may be silent.
const IDLE: Duration = Duration::from_secs(60);

/// Bytes that a peer may send ahead on a stream, and on a connection.
const STREAM_WINDOW: u32 = 16 << 20;
const WINDOW: u32 = 1 << 30;

/// Bytes of a connection that QUIC holds until they have arrived.
const SEND_WINDOW: u64 = 8 << 20;

/// Unidirectional streams that a peer may open: control, and those of QPACK, and what nobody knows.
const UNI_STREAMS: u32 = 8;

/// How long a connection that was closed waits for what it has sent to arrive, nanoseconds.
const CLOSE_WAIT: u64 = 1_000_000_000;

/// Called with what each handshake has agreed on, and how long it took, nanoseconds.
pub type Observe = Box<dyn FnMut(&Negotiated, u64) + Send>;

/// Who is connected to.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where: one target for each address.
    pub address: SocketAddr,
    /// How TLS is spoken there; it has to allow 1.3.
    pub config: tls::ClientConfig,
    /// Who that should be.
    pub name: ServerName,
}

/// The options of an endpoint that connects.
pub struct ClientOptions {
    /// See [`Target`].
    pub targets: Vec<Target>,
    /// Requests that a connection has open at a time, at most.
    pub streams: u32,
    /// What is random follows from it; see the crate.
    pub seed: u64,
    /// See [`Observe`].
    pub observe: Observe,
}

/// The options of an endpoint that is connected to.
#[derive(Debug)]
pub struct ServerOptions {
    /// How TLS is spoken; it has to allow 1.3.
    pub config: tls::ServerConfig,
    /// Requests that a client may have open at a time.
    pub streams: u32,
    /// What is random follows from it; see the crate.
    pub seed: u64,
}

/// A socket of datagrams.
#[derive(Debug)]
struct Socket {
    conn: Conn,
    /// Its one connection; `None`: it has many, or none any more.
    owner: Option<usize>,
    /// The number of the listener; `None`: a client's.
    listener: Option<usize>,
    /// It accepts connections.
    accepts: bool,
}

struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

/// See the module.
pub struct Quic {
    endpoint: Endpoint,
    /// What the time's nanoseconds count from: `quinn-proto` measures by instants, of which only differences matter.
    origin: Instant,
    clients: Vec<(SocketAddr, ClientConfig)>,
    streams: u64,
    observe: Option<Observe>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Slots by the library's handles.
    by_handle: Vec<usize>,
    sockets: Vec<Socket>,
    /// Sockets by the slots of the driver below.
    by_conn: Vec<usize>,
    pub(crate) listed: Vec<usize>,
    pub(crate) dirty: Vec<usize>,
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    /// What is to be sent, in use while it is made.
    out: Vec<u8>,
    open: usize,
    /// Of connections that are gone.
    counts: PathCounts,
}

impl std::fmt::Debug for Quic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quic").field("open", &self.open).finish_non_exhaustive()
    }
}

/// Nowhere.
const NONE: usize = usize::MAX;

fn transport(streams: u32) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(streams.into())
        .max_concurrent_uni_streams(UNI_STREAMS.into())
        .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(WINDOW.into())
        .send_window(SEND_WINDOW)
        .datagram_receive_buffer_size(None);
    Arc::new(config)
}

impl Quic {
    /// An endpoint that connects.
    ///
    /// # Errors
    /// When TLS's options do not do for QUIC.
    pub fn client(options: ClientOptions) -> Result<Quic, TlsError> {
        let mut draw = Draw::new(options.seed);
        let (transport, initial) = (transport(0), tls::quic_initial_suite()?);
        let clients = options.targets.into_iter().map(|Target { address, config, name }| {
            config.quic(&name, rustls::quic::Version::V1, Vec::new())?;
            let mut client = ClientConfig::new(Arc::new(Client { config, name, initial }));
            client
                .transport_config(Arc::clone(&transport))
                .token_store(Arc::new(NoneTokenStore))
                .initial_dst_cid_provider(Arc::new(peer_ids(Draw::new(draw.next()))));
            Ok((address, client))
        });
        let clients = clients.collect::<Result<_, TlsError>>()?;
        Ok(Quic::new(draw, None, clients, options.streams, Some(options.observe)))
    }

    /// An endpoint that is connected to.
    ///
    /// # Errors
    /// As [`Quic::client`].
    pub fn server(options: ServerOptions) -> Result<Quic, TlsError> {
        let mut draw = Draw::new(options.seed);
        let server = Server { config: options.config, initial: tls::quic_initial_suite()? };
        server.check()?;
        let token_key = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&draw.bytes());
        let mut config = ServerConfig::new(Arc::new(server), Arc::new(token_key));
        config.transport_config(transport(options.streams));
        // No tokens for later connections: they would have the time of a clock in them.
        config.validation_token.sent(0);
        Ok(Quic::new(draw, Some(Arc::new(config)), Vec::new(), 0, None))
    }

    fn new(
        mut draw: Draw,
        server: Option<Arc<ServerConfig>>,
        clients: Vec<(SocketAddr, ClientConfig)>,
        streams: u32,
        observe: Option<Observe>,
    ) -> Quic {
        let mut config = EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &draw.bytes())));
        let ids = draw.next();
        config.rng_seed(Some(draw.bytes())).cid_generator(move || Box::new(Ids(Draw::new(ids))));
        Quic {
            endpoint: Endpoint::new(Arc::new(config), server, true, None),
            origin: Instant::now(),
            clients,
            streams: streams.into(),
            observe,
            slots: Vec::new(),
            free: Vec::new(),
            by_handle: Vec::new(),
            sockets: Vec::new(),
            by_conn: Vec::new(),
            listed: Vec::new(),
            dirty: Vec::new(),
            timers: BinaryHeap::new(),
            out: Vec::new(),
            open: 0,
            counts: PathCounts::default(),
        }
    }

    fn instant(&self, now: u64) -> Instant {
        self.origin + Duration::from_nanos(now)
    }

    fn nanos(&self, instant: Instant) -> u64 {
        instant.saturating_duration_since(self.origin).as_nanos() as u64
    }

    /// Connections that have not ended.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// What all connections have counted so far.
    pub(crate) fn path_counts(&self) -> PathCounts {
        let mut counts = self.counts;
        self.slots.iter().filter_map(|slot| slot.connection.as_deref()).for_each(|one| add(&mut counts, one));
        counts
    }

    // --- Connections by their slots.

    pub(crate) fn get(&mut self, slot: usize) -> Option<&mut Connection> {
        self.slots.get_mut(slot)?.connection.as_deref_mut()
    }

    /// The connection that the program means, if it is there.
    pub(crate) fn find(&mut self, conn: Conn) -> Option<&mut Connection> {
        self.get(conn.slot()).filter(|one| one.conn == conn)
    }

    /// Bytes that a connection has not handed to QUIC.
    pub(crate) fn unsent(&self, conn: Conn) -> usize {
        let slot = self.slots.get(conn.slot()).and_then(|slot| slot.connection.as_ref());
        slot.filter(|one| one.conn == conn).map_or(0, |one| one.queued)
    }

    fn insert(&mut self, quinn: quinn_proto::Connection, handle: ConnectionHandle, socket: usize, now: u64) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, connection: None });
            self.slots.len() - 1
        });
        let entry = &mut self.slots[slot];
        entry.generation = entry.generation.wrapping_add(1);
        let conn = Conn::new(slot as u32, entry.generation);
        entry.connection = Some(Box::new(Connection::new(quinn, handle, conn, socket, now)));
        put_at(&mut self.by_handle, handle.0, slot);
        self.open += 1;
        self.mark(slot);
        slot
    }

    /// It has something to send.
    pub(crate) fn mark(&mut self, slot: usize) {
        if let Some(one) = self.get(slot)
            && !std::mem::replace(&mut one.dirty, true)
        {
            self.dirty.push(slot);
        }
    }

    /// It may have something to tell.
    pub(crate) fn list(&mut self, slot: usize) {
        if let Some(one) = self.get(slot)
            && !std::mem::replace(&mut one.listed, true)
        {
            self.listed.push(slot);
        }
    }

    // --- Clients.

    /// The configuration for an address.
    pub(crate) fn client_config(&self, to: SocketAddr) -> Option<ClientConfig> {
        self.clients.iter().find(|(address, _)| *address == to).map(|(_, config)| config.clone())
    }

    /// Begins a connection on a socket of its own.
    pub(crate) fn connect(
        &mut self,
        config: ClientConfig,
        to: SocketAddr,
        socket: Conn,
        now: u64,
    ) -> Result<Conn, quinn_proto::ConnectError> {
        let (handle, quinn) = self.endpoint.connect(self.instant(now), config, to, "")?;
        let number = self.add_socket(socket, None);
        let slot = self.insert(quinn, handle, number, now);
        self.sockets[number].owner = Some(slot);
        Ok(self.slots[slot].connection.as_ref().map_or(Conn::new(0, 0), |one| one.conn))
    }

    /// Gives a client's connection another socket. Returns the one that it had; `None`: there is no such connection.
    pub(crate) fn change_socket(&mut self, conn: Conn, socket: Conn) -> Option<Conn> {
        self.find(conn)?;
        let number = self.add_socket(socket, None);
        self.sockets[number].owner = Some(conn.slot());
        let old = std::mem::replace(&mut self.find(conn)?.socket, number);
        self.mark(conn.slot());
        let old = &mut self.sockets[old];
        old.owner = None;
        Some(old.conn)
    }

    // --- Sockets.

    /// Returns its number. Those of clients are as many as there were connections at a time.
    pub(crate) fn add_socket(&mut self, conn: Conn, listener: Option<usize>) -> usize {
        let socket = Socket { conn, owner: None, listener, accepts: listener.is_some() };
        // A slot of the driver below has one socket at a time.
        let number = match self.by_conn.get(conn.slot()).filter(|number| **number != NONE) {
            Some(number) => *number,
            None => self.sockets.len(),
        };
        if number == self.sockets.len() {
            self.sockets.push(socket);
        } else {
            self.sockets[number] = socket;
        }
        put_at(&mut self.by_conn, conn.slot(), number);
        number
    }

    fn socket_of(&self, conn: Conn) -> Option<usize> {
        let number = *self.by_conn.get(conn.slot())?;
        self.sockets.get(number).filter(|socket| socket.conn == conn).map(|_| number)
    }

    /// The connection whose own socket this is.
    pub(crate) fn owner_of(&self, conn: Conn) -> Option<usize> {
        self.sockets[self.socket_of(conn)?].owner
    }

    /// The number of the listener of a connection.
    pub(crate) fn listener_of(&mut self, slot: usize) -> usize {
        let socket = self.get(slot).map_or(0, |one| one.socket);
        self.sockets[socket].listener.unwrap_or(0)
    }

    /// A listener accepts connections, or refuses them; `None`: all.
    pub(crate) fn accept(&mut self, listener: Option<usize>, accepts: bool) {
        for socket in &mut self.sockets {
            if socket.listener.is_some() && (listener.is_none() || socket.listener == listener) {
                socket.accepts = accepts;
            }
        }
    }

    // --- What came.

    /// Datagrams came at a socket.
    pub(crate) fn receive<I: Io>(&mut self, io: &mut I, conn: Conn, train: &Datagrams<'_>, now: u64) {
        let Some(socket) = self.socket_of(conn) else { return };
        let instant = self.instant(now);
        let mut bytes = BytesMut::from(train.bytes);
        while !bytes.is_empty() {
            let one = bytes.split_to(train.segment.min(bytes.len()));
            self.out.clear();
            let mut out = std::mem::take(&mut self.out);
            let response = match self.endpoint.handle(instant, train.from, None, None, one, &mut out) {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    let slot = self.by_handle.get(handle.0).copied().unwrap_or(NONE);
                    if let Some(one) = self.get(slot) {
                        one.quinn.handle_event(event);
                        self.list(slot);
                        self.mark(slot);
                    }
                    None
                }
                Some(DatagramEvent::NewConnection(incoming)) if self.sockets[socket].accepts => {
                    match self.endpoint.accept(incoming, instant, &mut out, None) {
                        Ok((handle, quinn)) => {
                            let slot = self.insert(quinn, handle, socket, now);
                            self.list(slot);
                            None
                        }
                        Err(error) => error.response,
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => Some(self.endpoint.refuse(incoming, &mut out)),
                Some(DatagramEvent::Response(transmit)) => Some(transmit),
                None => None,
            };
            if let Some(transmit) = response {
                let to = self.sockets[socket].listener.map(|_| transmit.destination);
                io.send_datagrams(conn, to, &out[..transmit.size], transmit.size);
            }
            self.out = out;
        }
    }

    // --- Timers.

    /// When the next timer expires.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Gives connections whose time has come the time.
    pub(crate) fn expire(&mut self, now: u64) {
        while let Some(Reverse((at, slot))) = self.timers.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.timers.pop();
            let instant = self.instant(now);
            // One of an earlier connection, or one that an earlier time has replaced.
            let Some(one) = self.get(slot).filter(|one| one.scheduled == at) else { continue };
            one.scheduled = u64::MAX;
            if one.quinn.poll_timeout().is_some_and(|due| due <= instant) {
                one.quinn.handle_timeout(instant);
                self.list(slot);
            }
            // This sets the next one.
            self.mark(slot);
        }
    }

    /// A connection has a timer at its next time, at the latest.
    fn schedule(&mut self, slot: usize) {
        let Some(one) = self.get(slot) else { return };
        let closes = match one.state {
            State::Closing(since) => since + CLOSE_WAIT,
            _ => u64::MAX,
        };
        let due = one.quinn.poll_timeout();
        let due = due.map_or(u64::MAX, |due| self.nanos(due)).min(closes);
        if let Some(one) = self.get(slot)
            && due < one.scheduled
        {
            one.scheduled = due;
            self.timers.push(Reverse((due, slot)));
        }
    }

    // --- What is to be sent.

    /// Sends what a connection has to send, as far as it may now. Returns the socket to close, if it has ended.
    pub(crate) fn transmit<I: Io>(&mut self, io: &mut I, slot: usize, now: u64) -> Option<Conn> {
        let instant = self.instant(now);
        let mut out = std::mem::take(&mut self.out);
        let one = self.slots.get_mut(slot)?.connection.as_deref_mut()?;
        one.dirty = false;
        // Of one that the peer has ended nothing arrives any more.
        let settled = one.is_settled() || one.quinn.is_closed();
        let overdue = |since| now >= since + CLOSE_WAIT;
        if matches!(one.state, State::Closing(since) if settled || overdue(since)) {
            one.state = State::Ending;
        }
        if one.state == State::Ending {
            let (code, reason) = one.closing();
            one.quinn.close(instant, code, reason);
            one.state = State::Over;
        }
        let socket = &self.sockets[one.socket];
        loop {
            out.clear();
            let most = Datagrams::MOST.min(Datagrams::MOST_BYTES / usize::from(one.quinn.current_mtu()));
            let Some(transmit) = one.quinn.poll_transmit(instant, most, &mut out) else { break };
            let to = socket.listener.map(|_| transmit.destination);
            io.send_datagrams(socket.conn, to, &out[..transmit.size], transmit.segment_size.unwrap_or(transmit.size));
        }
        while let Some(event) = one.quinn.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(one.handle, event) {
                one.quinn.handle_event(event);
            }
        }
        self.out = out;
        if one.state == State::Over {
            return self.remove(slot);
        }
        self.schedule(slot);
        None
    }

    /// A connection is gone. Returns its socket, if it had one of its own.
    pub(crate) fn remove(&mut self, slot: usize) -> Option<Conn> {
        let one = self.slots.get_mut(slot)?.connection.take()?;
        add(&mut self.counts, &one);
        if !one.quinn.is_drained() {
            self.endpoint.handle_event(one.handle, EndpointEvent::drained());
        }
        put_at(&mut self.by_handle, one.handle.0, NONE);
        self.free.push(slot);
        self.open -= 1;
        let socket = &mut self.sockets[one.socket];
        socket.owner.take().map(|_| socket.conn)
    }

    // --- What is to be told.

    /// A handshake is done: how many requests may be open.
    pub(crate) fn connected(&mut self, slot: usize, now: u64) -> u64 {
        let (mut observe, most) = (self.observe.take(), self.streams);
        let mut allowed = 0;
        if let Some(one) = self.get(slot) {
            let negotiated =
                one.quinn.crypto_session().handshake_data().and_then(|data| data.downcast::<Negotiated>().ok());
            if let (Some(observe), Some(negotiated)) = (&mut observe, negotiated) {
                observe(&negotiated, now.saturating_sub(one.begun));
            }
            allowed = one.open_requests(most);
        }
        self.observe = observe;
        allowed
    }

    /// As many requests may be open as the peer allows by now.
    pub(crate) fn connected_again(&mut self, slot: usize) -> u64 {
        let most = self.streams;
        self.get(slot).map_or(0, |one| one.open_requests(most))
    }
}

/// Adds what a connection has counted.
fn add(counts: &mut PathCounts, one: &Connection) {
    let path = one.quinn.stats().path;
    counts.sent += path.sent_packets;
    counts.lost += path.lost_packets;
    counts.congestion_events += path.congestion_events;
    if one.known {
        counts.connections += 1;
        counts.rtt_ns += path.rtt.as_nanos() as u64;
        counts.mtu = counts.mtu.max(path.current_mtu);
    }
    counts.waited += one.waits.streams;
    counts.waited_ns += one.waits.ns;
    counts.longest_wait_ns = counts.longest_wait_ns.max(one.waits.longest);
}

/// Sets an entry, also behind the end.
fn put_at(table: &mut Vec<usize>, index: usize, value: usize) {
    if table.len() <= index {
        table.resize(index + 1, NONE);
    }
    table[index] = value;
}
