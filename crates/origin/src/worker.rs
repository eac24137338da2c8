//! One worker: a driver, its connections, and the loop that turns them.
//!
//! This module does not know what is spoken on a connection ([`Talk`] does), nor what requests mean.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_net::{Conn, Driver, Event, Handler, Io};
use weir_wire::tls::{ServerConfig, Session};

use crate::desk::Desk;
use crate::line::Plain;
use crate::one::One;
use crate::secure;
use crate::talk::{Heard, Talk};

/// How long a stop waits for answers that are under way.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Connections a page.
const PAGE: usize = 64;

/// The connections of one thread.
#[derive(Debug)]
pub(crate) struct Worker {
    /// By slot, in pages, so that nothing moves when there are more.
    connections: Vec<Box<[Connection]>>,
    desk: Desk,
    tls: Option<ServerConfig>,
}

#[derive(Debug)]
struct Connection {
    /// Its name, while it is open.
    conn: Option<Conn>,
    talk: Talk,
    session: Option<Session>,
}

impl Connection {
    fn new() -> Connection {
        Connection { conn: None, talk: Talk::new(), session: None }
    }

    fn hear<I: Io>(&mut self, io: &mut I, conn: Conn, desk: &mut Desk, heard: Heard<'_>) {
        match &mut self.session {
            None => self.talk.hear(&mut Plain { io, conn }, desk, heard),
            Some(session) => secure::hear(session, &mut self.talk, io, conn, desk, heard),
        }
        if self.talk.is_over() {
            self.conn = None;
            self.session = None;
        }
    }
}

/// Serves on a driver that already listens, until `stop` is set and the driver woken; then takes no more
/// requests, finishes the answers under way (for at most [`GRACE`]), and returns.
///
/// # Errors
/// When the driver fails as a whole.
pub(crate) fn serve<D: Driver>(
    driver: &mut D,
    desk: Desk,
    tls: Option<ServerConfig>,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut worker = Worker::new(desk, tls);
    while !stop.load(Ordering::Acquire) {
        let until = worker.desk.timers.next();
        driver.poll(&mut worker, until)?;
        worker.on_time(driver);
    }
    worker.finish(driver)
}

impl Worker {
    fn new(desk: Desk, tls: Option<ServerConfig>) -> Worker {
        Worker { connections: Vec::new(), desk, tls }
    }

    /// Looks at the connections whose time has come. Without timers the clock is not read.
    fn on_time<I: Io>(&mut self, io: &mut I) {
        if self.desk.timers.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some((conn, which)) = self.desk.timers.pop(now) {
            self.tell(io, conn, Heard::Time(which));
        }
    }

    fn tell<I: Io>(&mut self, io: &mut I, conn: Conn, heard: Heard<'_>) {
        if let Some(connection) = find(&mut self.connections, conn) {
            connection.hear(io, conn, &mut self.desk, heard);
        }
    }

    /// The short way for what happens all the time: bytes, and the end of sending, of HTTP/1 without TLS.
    #[inline]
    fn usual<I: Io>(
        &mut self,
        io: &mut I,
        conn: Conn,
        deal: impl FnOnce(&mut One, &mut Plain<'_, I>, &mut Desk),
    ) -> bool {
        let Some(connection) = find(&mut self.connections, conn) else {
            return true;
        };
        if connection.session.is_some() {
            return false;
        }
        let Some(one) = connection.talk.as_one() else {
            return false;
        };
        deal(one, &mut Plain { io, conn }, &mut self.desk);
        if one.flow.is_gone() {
            connection.conn = None;
        }
        true
    }

    fn finish<D: Driver>(&mut self, driver: &mut D) -> io::Result<()> {
        driver.stop_listening();
        self.tell_all(driver, || Heard::Stop);
        let end = Instant::now() + GRACE;
        while driver.open() > 0 && Instant::now() < end {
            let until = self.desk.timers.next().map_or(end, |next| next.min(end));
            driver.poll(self, Some(until))?;
            self.on_time(driver);
        }
        self.tell_all(driver, || Heard::Abort);
        // The aborts leave with this turn.
        driver.poll(self, Some(Instant::now()))
    }

    fn tell_all<I: Io>(&mut self, io: &mut I, what: impl Fn() -> Heard<'static>) {
        for page in 0..self.connections.len() {
            for place in 0..PAGE {
                if let Some(conn) = self.connections[page][place].conn {
                    self.tell(io, conn, what());
                }
            }
        }
    }

    fn accepted<I: Io>(&mut self, io: &mut I, conn: Conn) {
        let (page, place) = (conn.slot() / PAGE, conn.slot() % PAGE);
        if self.connections.len() <= page {
            self.connections.resize_with(page + 1, || (0..PAGE).map(|_| Connection::new()).collect());
        }
        let connection = &mut self.connections[page][place];
        self.desk.opened();
        connection.talk.begin(conn);
        connection.conn = Some(conn);
        if let Some(config) = &self.tls {
            connection.session = Session::server(config).ok();
            if connection.session.is_none() {
                // No random numbers: nobody can be served.
                connection.hear(io, conn, &mut self.desk, Heard::Abort);
            }
        }
    }
}

impl Handler for Worker {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        let heard = match event {
            Event::Data(bytes) => {
                if self.usual(io, conn, |one, line, desk| one.on_data(line, desk, bytes)) {
                    return;
                }
                Heard::Data(bytes)
            }
            Event::Sent => {
                if self.usual(io, conn, |one, line, desk| one.flow.on_sent(line, desk)) {
                    return;
                }
                Heard::Sent
            }
            Event::Accepted => return self.accepted(io, conn),
            Event::Eof => Heard::Eof,
            Event::Failed { error, unsent } => Heard::Failed(unsent, is_reset(&error)),
            // The origin makes no connections.
            Event::Connected => return,
        };
        self.tell(io, conn, heard);
    }
}

/// A connection by its name, while it is open.
#[inline]
fn find(connections: &mut [Box<[Connection]>], conn: Conn) -> Option<&mut Connection> {
    let connection = connections.get_mut(conn.slot() / PAGE)?.get_mut(conn.slot() % PAGE)?;
    (connection.conn == Some(conn)).then_some(connection)
}

fn is_reset(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), ConnectionReset | BrokenPipe | ConnectionAborted)
}

#[cfg(test)]
mod tests;
