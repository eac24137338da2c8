//! The driver: connections of QUIC over the datagrams of another driver.
//!
//! A turn sends what connections have to send, waits below, reads all datagrams that came, and then tells what they brought, connection by
//! connection. It does not know what connections carry.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use quinn_proto::{Dir, Event as QuicEvent, StreamEvent};
use weir_net::{
    Address, Clock, Conn, CpuTime, DatagramCounts, Driver, Event, Handler, Io, Next, PathCounts, SchedulingClass, Task,
};
use weir_wire::quic::{self, Kind};

use crate::connection::State;
use crate::endpoint::Quic;
use crate::error::{Failure, FailureKind, failure};

/// A driver, and the endpoint over it. See the crate.
#[derive(Debug)]
pub struct Over<'a, D> {
    below: &'a mut D,
    quic: &'a mut Quic,
}

/// What a node's program is told of a connection.
enum Notice {
    Accepted(usize),
    Connected,
    Sent,
    Eof,
    Failed(Failure),
}

impl<'a, D: Driver> Over<'a, D> {
    /// Puts an endpoint over a driver. All calls of an endpoint have to be over the same one.
    pub fn new(below: &'a mut D, quic: &'a mut Quic) -> Over<'a, D> {
        Over { below, quic }
    }

    /// Sends what connections have to send now.
    pub fn flush(&mut self) {
        while !self.quic.dirty.is_empty() {
            let now = self.below.now();
            for slot in std::mem::take(&mut self.quic.dirty) {
                if let Some(socket) = self.quic.transmit(self.below, slot, now) {
                    self.below.close(socket);
                }
            }
        }
    }

    /// Has a client's connection go on from another port, as if a translator of addresses had forgotten the old one.
    ///
    /// # Errors
    /// When no socket can be made, and where there is no such connection.
    pub fn change_port(&mut self, conn: Conn, to: SocketAddr) -> io::Result<()> {
        let socket = self.below.connect_datagrams(to, None)?;
        let old = self.quic.change_socket(conn, socket);
        self.below.close(old.unwrap_or(socket));
        old.map(drop).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Has the next packet of a connection use new keys (RFC 9001, section 6).
    pub fn update_keys(&mut self, conn: Conn) {
        if let Some(one) = self.quic.find(conn) {
            one.quinn.force_key_update();
            self.quic.mark(conn.slot());
        }
    }

    /// Tells what listed connections have to tell.
    fn dispatch<H: Handler>(&mut self, handler: &mut H) {
        let mut inbox = Vec::new();
        let mut at = 0;
        // What handlers list is told in the next turn.
        let listed = std::mem::take(&mut self.quic.listed);
        while let Some(slot) = listed.get(at).copied() {
            at += 1;
            if let Some(one) = self.quic.get(slot) {
                one.listed = false;
                let conn = one.conn;
                inbox.clear();
                self.tell_all(handler, conn, &mut inbox);
            }
        }
    }

    /// Tells all that a connection has to tell, as long as the program wants to know.
    fn tell_all<H: Handler>(&mut self, handler: &mut H, conn: Conn, inbox: &mut Vec<u8>) {
        let slot = conn.slot();
        loop {
            let now = self.below.now();
            let Some(one) = self.quic.find(conn) else { return };
            let Some(event) = one.quinn.poll() else { break };
            let told = match event {
                QuicEvent::Connected => {
                    if one.is_open() {
                        one.state = State::Up;
                        one.known = true;
                    }
                    let is_client = one.quinn.side().is_client();
                    let allowed = self.quic.connected(slot, now);
                    if is_client {
                        put_allowed(inbox, allowed);
                        Some(Notice::Connected)
                    } else {
                        Some(Notice::Accepted(self.quic.listener_of(slot)))
                    }
                }
                QuicEvent::ConnectionLost { reason } => Some(failure(&reason).map_or(Notice::Eof, Notice::Failed)),
                QuicEvent::Stream(event) => {
                    self.on_stream(conn, event, inbox, now);
                    None
                }
                QuicEvent::HandshakeDataReady | QuicEvent::DatagramReceived | QuicEvent::DatagramsUnblocked => None,
            };
            match told {
                // What came before an end is read before it.
                Some(Notice::Eof | Notice::Failed(_)) => {
                    self.read(handler, conn, inbox);
                    if let Some(told) = told {
                        self.tell_end(handler, conn, told);
                    }
                    return;
                }
                Some(told) => self.tell(handler, conn, told),
                None => {}
            }
        }
        self.read(handler, conn, inbox);
        if let Some(one) = self.quic.find(conn)
            && one.want_sent
            && one.queued == 0
        {
            one.want_sent = false;
            self.tell(handler, conn, Notice::Sent);
        }
    }

    fn on_stream(&mut self, conn: Conn, event: StreamEvent, inbox: &mut Vec<u8>, now: u64) {
        let Some(one) = self.quic.find(conn) else { return };
        match event {
            StreamEvent::Opened { dir } => one.accept(dir),
            StreamEvent::Readable { id } => one.readable(id),
            StreamEvent::Writable { id } => one.unblock(id),
            StreamEvent::Finished { .. } => one.stream_arrived(),
            StreamEvent::Stopped { id, error_code } => one.stopped(id, error_code, inbox),
            StreamEvent::Available { dir } => {
                one.open_waiting(now);
                // One that allowed none at first allows some now.
                if dir == Dir::Bi && one.state == State::Up && one.open_requests(0) == 0 {
                    let allowed = self.quic.connected_again(conn.slot());
                    put_allowed(inbox, allowed);
                }
            }
        }
        self.quic.mark(conn.slot());
    }

    /// Reads what came on a connection, and hands it over.
    fn read<H: Handler>(&mut self, handler: &mut H, conn: Conn, inbox: &mut Vec<u8>) {
        loop {
            let Some(one) = self.quic.find(conn).filter(|one| one.known) else { return inbox.clear() };
            let more = one.read(inbox);
            let open = one.is_open();
            self.quic.mark(conn.slot());
            if open && !inbox.is_empty() {
                handler.on_event(self, conn, Event::Data(inbox));
            }
            inbox.clear();
            if !more {
                return;
            }
        }
    }

    fn tell<H: Handler>(&mut self, handler: &mut H, conn: Conn, told: Notice) {
        let Some(one) = self.quic.find(conn).filter(|one| one.is_open()) else { return };
        let unsent = one.queued;
        let event = match told {
            Notice::Accepted(listener) => Event::Accepted(listener),
            Notice::Connected => Event::Connected,
            Notice::Sent => Event::Sent,
            Notice::Eof => Event::Eof,
            Notice::Failed(failure) => Event::Failed { error: failure.into_error(), unsent },
        };
        handler.on_event(self, conn, event);
    }

    /// A connection has ended. Nobody can send on it, so that an end without a fault is also the end of what is sent.
    fn tell_end<H: Handler>(&mut self, handler: &mut H, conn: Conn, told: Notice) {
        let Some(one) = self.quic.find(conn) else { return };
        // A server's connection of which the program does not know is nothing to it; a client has begun its own.
        let tells = one.is_open() && (one.known || one.quinn.side().is_client());
        let told = match told {
            Notice::Eof if !one.known => {
                Notice::Failed(Failure::new(FailureKind::Closed, "the peer closed the connection in the handshake"))
            }
            told => told,
        };
        let eof = matches!(told, Notice::Eof);
        if tells {
            self.tell(handler, conn, told);
        }
        // After an end without a fault the program closes the connection.
        match self.quic.find(conn) {
            Some(one) if eof && one.is_open() => {}
            Some(_) => {
                if let Some(socket) = self.quic.remove(conn.slot()) {
                    self.below.close(socket);
                }
            }
            None => {}
        }
    }
}

/// Tells a client how many requests may be open.
fn put_allowed(inbox: &mut Vec<u8>, allowed: u64) {
    quic::put(inbox, allowed, Kind::MaxStreams, &[]);
}

/// What comes from below.
struct Inbound<'a> {
    quic: &'a mut Quic,
    /// Sockets that failed.
    failed: Vec<(Conn, io::Error)>,
}

impl Handler for Inbound<'_> {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Datagrams(train) => {
                let now = io.now();
                self.quic.receive(io, conn, &train, now);
            }
            Event::Accepted(listener) => {
                self.quic.add_socket(conn, Some(listener));
            }
            Event::Failed { error, .. } => self.failed.push((conn, error)),
            Event::Connected | Event::Data(_) | Event::Skipped(_) | Event::Sent | Event::Eof => {}
        }
    }
}

impl<D: Driver> Io for Over<'_, D> {
    fn now(&self) -> u64 {
        self.below.now()
    }

    fn unix_now(&self) -> u64 {
        self.below.unix_now()
    }

    fn cpu_ns(&self) -> u64 {
        self.below.cpu_ns()
    }

    fn cpu_time(&self) -> CpuTime {
        self.below.cpu_time()
    }

    fn connect(&mut self, to: &Address, from: Option<IpAddr>) -> io::Result<Conn> {
        let to: SocketAddr = to.tcp().ok_or(io::ErrorKind::Unsupported)?;
        let config = self.quic.client_config(to).ok_or(io::ErrorKind::Unsupported)?;
        let socket = self.below.connect_datagrams(to, from)?;
        let now = self.below.now();
        self.quic.connect(config, to, socket, now).map_err(|error| {
            self.below.close(socket);
            Failure::new(FailureKind::Protocol, format!("QUIC cannot begin: {error}")).into_error()
        })
    }

    fn datagram_counts(&self) -> DatagramCounts {
        self.below.datagram_counts()
    }

    fn path_counts(&self) -> PathCounts {
        self.quic.path_counts()
    }

    fn send_with(&mut self, conn: Conn, head: &[u8], body: &'static [u8]) {
        let now = self.below.now();
        if let Some(one) = self.quic.find(conn).filter(|one| one.is_open()) {
            one.write(head, body, now);
            self.quic.mark(conn.slot());
        }
    }

    fn batch_completions(&mut self, within: Duration, events: u32) -> bool {
        self.below.batch_completions(within, events)
    }

    fn want_sent(&mut self, conn: Conn) {
        if let Some(one) = self.quic.find(conn).filter(|one| one.is_open()) {
            one.want_sent = true;
            self.quic.list(conn.slot());
        }
    }

    fn close(&mut self, conn: Conn) {
        let now = self.below.now();
        if let Some(one) = self.quic.find(conn).filter(|one| one.is_open()) {
            one.state = if one.state == State::Up { State::Closing(now) } else { State::Ending };
            self.quic.mark(conn.slot());
        }
    }

    fn abort(&mut self, conn: Conn) {
        if let Some(one) = self.quic.find(conn) {
            one.state = State::Ending;
            self.quic.mark(conn.slot());
        }
    }

    fn unsent(&self, conn: Conn) -> usize {
        self.quic.unsent(conn)
    }
}

impl<D: Driver> Driver for Over<'_, D> {
    type Listener = D::Listener;
    type Waker = D::Waker;

    fn name(&self) -> &'static str {
        self.below.name()
    }

    fn listen(&mut self, listener: impl Into<D::Listener>) -> io::Result<()> {
        self.below.listen(listener)
    }

    fn stop_listening(&mut self) {
        self.quic.accept(None, false);
        self.below.stop_listening();
    }

    fn refuse(&mut self, listener: usize, refuse: bool) -> io::Result<()> {
        self.quic.accept(Some(listener), !refuse);
        Ok(())
    }

    fn poll<H: Handler>(&mut self, handler: &mut H, until: Option<u64>) -> io::Result<()> {
        self.flush();
        let until = until.into_iter().chain(self.quic.next_timer()).min();
        let until = if self.quic.listed.is_empty() { until } else { Some(0) };
        let mut inbound = Inbound { quic: self.quic, failed: Vec::new() };
        self.below.poll(&mut inbound, until)?;
        for (socket, error) in inbound.failed {
            if let Some(conn) = self.quic.owner_of(socket).and_then(|slot| self.quic.get(slot)).map(|one| one.conn) {
                self.tell_end(handler, conn, Notice::Failed(Failure::of_socket(&error)));
            }
        }
        let now = self.below.now();
        self.quic.expire(now);
        self.dispatch(handler);
        Ok(())
    }

    fn waker(&self) -> D::Waker {
        self.below.waker()
    }

    fn clock(&self) -> Clock {
        self.below.clock()
    }

    fn wake_latency(&self) -> u64 {
        self.below.wake_latency()
    }

    fn yield_now(&mut self) {
        self.below.yield_now();
    }

    fn set_scheduling_class(&mut self, class: SchedulingClass) -> io::Result<()> {
        self.below.set_scheduling_class(class)
    }

    fn open(&self) -> usize {
        self.quic.open()
    }
}

/// A task that runs on an endpoint over a driver.
#[derive(Debug)]
pub struct OverTask<T> {
    quic: Quic,
    task: T,
}

impl<T> OverTask<T> {
    /// The endpoint, and what runs on it.
    pub fn new(quic: Quic, task: T) -> OverTask<T> {
        OverTask { quic, task }
    }
}

impl<D, T> Task<D> for OverTask<T>
where
    D: Driver + 'static,
    T: for<'a> Task<Over<'a, D>>,
{
    fn turn(&mut self, driver: &mut D) -> io::Result<Next> {
        let mut over = Over::new(driver, &mut self.quic);
        let next = self.task.turn(&mut over)?;
        over.flush();
        Ok(match next {
            Next::Poll(until) => {
                let soon = if self.quic.listed.is_empty() { None } else { Some(0) };
                Next::Poll(until.into_iter().chain(self.quic.next_timer()).chain(soon).min())
            }
            Next::Over => Next::Over,
        })
    }

    fn poll(&mut self, driver: &mut D, until: Option<u64>) -> io::Result<()> {
        self.task.poll(&mut Over::new(driver, &mut self.quic), until)
    }
}
