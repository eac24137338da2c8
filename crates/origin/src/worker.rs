//! One worker: the connections of a driver, and what its turns do with them.
//!
//! [`crate::origin`] runs one per thread, [`crate::tasks`] makes them for other drivers. This module does not know the protocol of a connection: a [`Session`] does.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_model::counters::ProxyCounters;
use weir_net::{Conn, Driver, Event, Handler, Io, Next, Task};
use weir_wire::proxy_protocol;
use weir_wire::tls::{self, ServerConfig};

use crate::idle::{Age, Looks};
use crate::session::{Session, SessionEvent};
use crate::state::WorkerState;
use crate::tls_layer::on_event as on_tls_event;
use crate::transport::PlainTransport;

/// How long a stop waits for responses under way, nanoseconds.
const GRACE: u64 = 5_000_000_000;

/// Connections per page.
const PAGE: usize = 64;

/// The connections of one thread.
#[derive(Debug)]
pub(crate) struct Worker<S: Session> {
    /// By slot, in pages, so that nothing moves when the table grows.
    connections: Vec<Box<[Connection<S>]>>,
    state: WorkerState<S::Shared>,
    tls: Option<ServerConfig>,
    /// Connections have to begin with a header of the PROXY protocol.
    proxy_protocol: bool,
    /// Where connections may not be idle for long.
    looks: Option<Looks>,
    /// Addresses that are down.
    down: Vec<usize>,
    stop: Arc<AtomicBool>,
    stage: Stage,
}

/// What a worker is doing.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// It accepts and serves.
    Serving,
    /// It finishes responses, until then.
    Finishing { until: u64 },
    /// All is closed.
    Over,
}

#[derive(Debug)]
struct Connection<S> {
    /// The connection in the driver, while it is open.
    conn: Option<Conn>,
    /// Which of the origin's addresses it was made to.
    address: u32,
    /// How long nothing has happened on it.
    age: Age,
    session: S,
    below: Below,
}

/// What is between a session and its connection.
#[derive(Debug)]
enum Below {
    Nothing,
    Tls(tls::Session),
    /// A header of the PROXY protocol has to come first; then, if there is TLS, that.
    Header(Box<(proxy_protocol::Reader, Option<tls::Session>)>),
}

impl<S: Session> Connection<S> {
    fn new() -> Connection<S> {
        Connection { conn: None, address: 0, age: Age::default(), session: S::new(), below: Below::Nothing }
    }

    #[inline]
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, state: &mut WorkerState<S::Shared>, event: SessionEvent<'_>) {
        match &mut self.below {
            Below::Nothing => self.session.on_event(&mut PlainTransport { io, conn }, state, event),
            Below::Tls(tls) => on_tls_event(tls, &mut self.session, io, conn, state, event),
            Below::Header(_) => self.before_header(io, conn, state, event),
        }
        if self.session.is_closed() {
            self.conn = None;
            self.below = Below::Nothing;
        }
    }

    /// An event of a connection whose header is not complete. One that does not begin with a header is reset.
    fn before_header<I: Io>(
        &mut self,
        io: &mut I,
        conn: Conn,
        state: &mut WorkerState<S::Shared>,
        event: SessionEvent<'_>,
    ) {
        let (Below::Header(header), SessionEvent::Data(bytes)) = (&mut self.below, &event) else {
            return self.session.on_event(&mut PlainTransport { io, conn }, state, event);
        };
        let mut rest = *bytes;
        match header.0.next(&mut rest) {
            Ok(None) => {}
            Ok(Some(found)) => {
                state.all_counters.proxy_protocol(|counters| count_header(counters, &found));
                self.below = header.1.take().map_or(Below::Nothing, Below::Tls);
                if !rest.is_empty() {
                    self.on_event(io, conn, state, SessionEvent::Data(rest));
                }
            }
            Err(_) => {
                state.all_counters.proxy_protocol(|counters| counters.refused += 1);
                self.session.on_event(&mut PlainTransport { io, conn }, state, SessionEvent::Abort);
            }
        }
    }
}

/// What all connections of an origin have below their sessions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layers {
    pub(crate) tls: Option<ServerConfig>,
    /// They begin with a header of the PROXY protocol.
    pub(crate) proxy_protocol: bool,
    /// They end after so long without an event.
    pub(crate) idle: Option<Duration>,
}

impl<S: Session> Worker<S> {
    /// A worker for a driver that already listens. It serves until `stop` is set and the driver woken; then it takes no more
    /// requests, and finishes the responses under way, for at most [`GRACE`].
    pub(crate) fn new(state: WorkerState<S::Shared>, below: Layers, stop: Arc<AtomicBool>) -> Worker<S> {
        let looks = below.idle.map(|idle| Looks::new(idle, state.clock.now()));
        let Layers { tls, proxy_protocol, .. } = below;
        Worker {
            connections: Vec::new(),
            state,
            tls,
            proxy_protocol,
            looks,
            down: Vec::new(),
            stop,
            stage: Stage::Serving,
        }
    }

    /// Notifies the sessions whose timers have expired. Without timers the clock is not read.
    fn expire_timers<I: Io>(&mut self, io: &mut I) {
        if self.state.timers.next().is_none() {
            return;
        }
        let now = io.now();
        while let Some((_, (conn, number))) = self.state.timers.pop(now) {
            self.dispatch(io, conn, SessionEvent::Timeout(number));
        }
    }

    /// Takes addresses down, or up again, whose faults say so. Returns when the next one changes.
    fn change_addresses<D: Driver>(&mut self, driver: &mut D) -> io::Result<Option<u64>> {
        self.state.faults.look();
        let now = driver.now();
        for address in 0..self.state.all_counters.addresses() {
            let down = self.state.faults.is_down(address, now);
            if down != self.down.contains(&address) {
                driver.refuse(address, down)?;
                self.down.retain(|other| *other != address);
            }
            if down && !self.down.contains(&address) {
                self.down.push(address);
                self.reset_address(driver, address);
            }
        }
        Ok(self.state.faults.next_change(now))
    }

    /// Resets all connections to an address.
    fn reset_address<I: Io>(&mut self, io: &mut I, address: usize) {
        for connection in self.connections.iter_mut().flatten().filter(|one| one.address as usize == address) {
            if let Some(conn) = connection.conn {
                self.state.count_for(address);
                connection.on_event(io, conn, &mut self.state, SessionEvent::Abort);
            }
        }
    }

    fn serve<D: Driver>(&mut self, driver: &mut D) -> io::Result<Next> {
        if self.stop.load(Ordering::Acquire) {
            driver.stop_listening();
            self.dispatch_to_all(driver, |_, _| Some(SessionEvent::Stop));
            self.stage = Stage::Finishing { until: driver.now() + GRACE };
            return Ok(self.finish(driver));
        }
        let change = if self.state.faults.is_empty() { None } else { self.change_addresses(driver)? };
        self.expire_timers(driver);
        if let Some(looks) = &mut self.looks
            && looks.due(driver.now())
        {
            self.dispatch_to_all(driver, |_, age| age.look());
        }
        let looks = self.looks.as_ref().map(Looks::next);
        Ok(Next::Poll(self.state.timers.next().into_iter().chain(looks).chain(change).min()))
    }

    fn finish<D: Driver>(&mut self, driver: &mut D) -> Next {
        let Stage::Finishing { until } = self.stage else { return Next::Over };
        self.expire_timers(driver);
        if driver.open() > 0 && driver.now() < until {
            return Next::Poll(Some(self.state.timers.next().map_or(until, |next| next.min(until))));
        }
        self.dispatch_to_all(driver, |_, _| Some(SessionEvent::Abort));
        self.stage = Stage::Over;
        // This poll sends the resets.
        Next::Poll(Some(0))
    }

    #[inline(always)]
    fn dispatch<I: Io>(&mut self, io: &mut I, conn: Conn, event: SessionEvent<'_>) {
        if let Some(connection) = find(&mut self.connections, conn) {
            self.state.count_for(connection.address as usize);
            connection.age = Age::default();
            connection.on_event(io, conn, &mut self.state, event);
            if !self.state.broadcast.is_empty() {
                self.broadcast(io, conn);
            }
        }
    }

    /// Gives what a connection has for all to the others.
    #[cold]
    fn broadcast<I: Io>(&mut self, io: &mut I, from: Conn) {
        let mut bytes = std::mem::take(&mut self.state.broadcast);
        self.dispatch_to_all(io, |conn, _| (conn != from).then_some(SessionEvent::Broadcast(&bytes)));
        bytes.clear();
        self.state.broadcast = bytes;
    }

    /// Gives each open connection the event that it is to have, by its age or otherwise, if there is one.
    fn dispatch_to_all<'a, I: Io>(&mut self, io: &mut I, event: impl Fn(Conn, &mut Age) -> Option<SessionEvent<'a>>) {
        for connection in self.connections.iter_mut().flatten() {
            if let Some(conn) = connection.conn
                && let Some(event) = event(conn, &mut connection.age)
            {
                self.state.count_for(connection.address as usize);
                connection.on_event(io, conn, &mut self.state, event);
            }
        }
    }

    /// `listener`: first come the origin's addresses, then a Unix socket, which is counted for the first address.
    fn accepted<I: Io>(&mut self, io: &mut I, conn: Conn, listener: usize) {
        let address = if listener < self.state.all_counters.addresses() { listener } else { 0 };
        let (page, index) = (conn.slot() / PAGE, conn.slot() % PAGE);
        if self.connections.len() <= page {
            self.connections.resize_with(page + 1, || (0..PAGE).map(|_| Connection::new()).collect());
        }
        let connection = &mut self.connections[page][index];
        connection.address = address as u32;
        connection.age = Age::default();
        self.state.count_for(address);
        self.state.connection_opened();
        connection.session.begin(conn);
        connection.conn = Some(conn);
        let tls = self.tls.as_ref().map(tls::Session::server);
        connection.below = match tls.transpose() {
            Ok(tls) if self.proxy_protocol => Below::Header(Box::new((proxy_protocol::Reader::default(), tls))),
            Ok(tls) => tls.map_or(Below::Nothing, Below::Tls),
            // There are no random numbers, so TLS is impossible.
            Err(_) => return connection.on_event(io, conn, &mut self.state, SessionEvent::Abort),
        };
    }
}

impl<S: Session, D: Driver> Task<D> for Worker<S> {
    fn turn(&mut self, driver: &mut D) -> io::Result<Next> {
        Ok(match self.stage {
            Stage::Serving => self.serve(driver)?,
            Stage::Finishing { .. } => self.finish(driver),
            Stage::Over => Next::Over,
        })
    }

    fn poll(&mut self, driver: &mut D, until: Option<u64>) -> io::Result<()> {
        driver.poll(self, until)
    }
}

impl<S: Session> Handler for Worker<S> {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        match event {
            Event::Data(bytes) => self.dispatch(io, conn, SessionEvent::Data(bytes)),
            Event::Sent => self.dispatch(io, conn, SessionEvent::Sent),
            Event::Accepted(listener) => self.accepted(io, conn, listener),
            Event::Eof => self.dispatch(io, conn, SessionEvent::Eof),
            Event::Failed { error, unsent } => {
                self.dispatch(io, conn, SessionEvent::Failed { unsent, reset: is_reset(&error) });
            }
            // The origin makes no connections, and looks at all that comes.
            Event::Connected | Event::Skipped(_) | Event::Datagrams(_) => {}
        }
    }
}

fn count_header(counters: &mut ProxyCounters, header: &proxy_protocol::Header) {
    match header.version {
        proxy_protocol::Version::V1 => counters.v1 += 1,
        proxy_protocol::Version::V2 => counters.v2 += 1,
    }
    counters.without_addresses += u64::from(header.addresses.is_none());
}

/// Finds an open connection.
#[inline]
fn find<S>(connections: &mut [Box<[Connection<S>]>], conn: Conn) -> Option<&mut Connection<S>> {
    let connection = connections.get_mut(conn.slot() / PAGE)?.get_mut(conn.slot() % PAGE)?;
    (connection.conn == Some(conn)).then_some(connection)
}

fn is_reset(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), ConnectionReset | BrokenPipe | ConnectionAborted)
}

#[cfg(test)]
mod tests;
