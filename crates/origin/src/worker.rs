//! One worker: a driver, its connections, and the loop that polls it.
//!
//! [`crate::origin`] runs one per thread. This module does not know the protocol of a connection: a [`Session`] does.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_net::{Conn, Driver, Event, Handler, Io};
use weir_wire::tls::{self, ServerConfig};

use crate::pause::Pause;
use crate::session::{Session, SessionEvent};
use crate::state::WorkerState;
use crate::tls_layer::on_event as on_tls_event;
use crate::transport::PlainTransport;

/// How long a stop waits for responses under way.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Connections per page.
const PAGE: usize = 64;

/// The connections of one thread.
#[derive(Debug)]
pub(crate) struct Worker<S: Session> {
    /// By slot, in pages, so that nothing moves when the table grows.
    connections: Vec<Box<[Connection<S>]>>,
    state: WorkerState<S::Shared>,
    tls: Option<ServerConfig>,
}

#[derive(Debug)]
struct Connection<S> {
    /// The connection in the driver, while it is open.
    conn: Option<Conn>,
    /// Which of the origin's addresses it was made to.
    address: u32,
    session: S,
    tls: Option<tls::Session>,
}

impl<S: Session> Connection<S> {
    fn new() -> Connection<S> {
        Connection { conn: None, address: 0, session: S::new(), tls: None }
    }

    #[inline]
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, state: &mut WorkerState<S::Shared>, event: SessionEvent<'_>) {
        match &mut self.tls {
            None => self.session.on_event(&mut PlainTransport { io, conn }, state, event),
            Some(tls) => on_tls_event(tls, &mut self.session, io, conn, state, event),
        }
        if self.session.is_closed() {
            self.conn = None;
            self.tls = None;
        }
    }
}

/// Serves on a driver that already listens, until `stop` is set and the driver woken; then takes no more
/// requests, finishes the responses under way (for at most [`GRACE`]), and returns.
///
/// # Errors
/// When the driver fails as a whole.
pub(crate) fn serve<S: Session, D: Driver>(
    driver: &mut D,
    state: WorkerState<S::Shared>,
    tls: Option<ServerConfig>,
    stop: &AtomicBool,
    pause: &Pause,
) -> io::Result<()> {
    let mut worker = Worker::<S>::new(state, tls);
    while !stop.load(Ordering::Acquire) {
        let until = worker.state.timers.next();
        driver.poll(&mut worker, until)?;
        pause.wait();
        worker.expire_timers(driver);
    }
    worker.finish(driver)
}

impl<S: Session> Worker<S> {
    fn new(state: WorkerState<S::Shared>, tls: Option<ServerConfig>) -> Worker<S> {
        Worker { connections: Vec::new(), state, tls }
    }

    /// Notifies the sessions whose timers have expired. Without timers the clock is not read.
    fn expire_timers<I: Io>(&mut self, io: &mut I) {
        if !self.state.timers.is_empty() {
            self.expire_timers_at(io, Instant::now());
        }
    }

    fn expire_timers_at<I: Io>(&mut self, io: &mut I, now: Instant) {
        while let Some((conn, number)) = self.state.timers.pop(now) {
            self.dispatch(io, conn, SessionEvent::Timeout(number));
        }
    }

    #[inline(always)]
    fn dispatch<I: Io>(&mut self, io: &mut I, conn: Conn, event: SessionEvent<'_>) {
        if let Some(connection) = find(&mut self.connections, conn) {
            self.state.count_for(connection.address as usize);
            connection.on_event(io, conn, &mut self.state, event);
        }
    }

    fn finish<D: Driver>(&mut self, driver: &mut D) -> io::Result<()> {
        driver.stop_listening();
        self.dispatch_to_all(driver, || SessionEvent::Stop);
        let end = Instant::now() + GRACE;
        while driver.open() > 0 && Instant::now() < end {
            let until = self.state.timers.next().map_or(end, |next| next.min(end));
            driver.poll(self, Some(until))?;
            self.expire_timers(driver);
        }
        self.dispatch_to_all(driver, || SessionEvent::Abort);
        // This poll sends the resets.
        driver.poll(self, Some(Instant::now()))
    }

    fn dispatch_to_all<I: Io>(&mut self, io: &mut I, event: impl Fn() -> SessionEvent<'static>) {
        for page in 0..self.connections.len() {
            for index in 0..PAGE {
                if let Some(conn) = self.connections[page][index].conn {
                    self.dispatch(io, conn, event());
                }
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
        self.state.count_for(address);
        self.state.connection_opened();
        connection.session.begin(conn);
        connection.conn = Some(conn);
        if let Some(config) = &self.tls {
            connection.tls = tls::Session::server(config).ok();
            if connection.tls.is_none() {
                // There are no random numbers, so TLS is impossible.
                connection.on_event(io, conn, &mut self.state, SessionEvent::Abort);
            }
        }
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
            // The origin makes no connections.
            Event::Connected => {}
        }
    }
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
