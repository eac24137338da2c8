//! One worker: a driver, its connections, and the loop that turns them.
//!
//! This module does not know what requests mean; it joins the parser ([`weir_wire`]) to the [`Flow`].

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_net::{Conn, Driver, Event, Handler, Io};
use weir_wire::h1::{Limits, RequestEvent, Requests};

use crate::desk::Desk;
use crate::flow::Flow;
use crate::line::{Line, Plain};

/// How long a stop waits for answers that are under way.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// The connections of one thread.
#[derive(Debug)]
pub(crate) struct Worker {
    connections: Vec<Connection>,
    desk: Desk,
}

#[derive(Debug)]
struct Connection {
    parser: Requests,
    flow: Flow,
}

impl Connection {
    fn new() -> Connection {
        Connection { parser: Requests::new(Limits::default()), flow: Flow::default() }
    }
}

/// Serves on a driver that already listens, until `stop` is set and the driver woken; then takes no more
/// requests, finishes the answers under way (for at most [`GRACE`]), and returns.
///
/// # Errors
/// When the driver fails as a whole.
pub(crate) fn serve<D: Driver>(driver: &mut D, desk: Desk, stop: &AtomicBool) -> io::Result<()> {
    let mut worker = Worker::new(desk);
    while !stop.load(Ordering::Acquire) {
        let until = worker.desk.timers.next();
        driver.turn(&mut worker, until)?;
        worker.on_time(driver);
    }
    worker.finish(driver)
}

impl Worker {
    fn new(desk: Desk) -> Worker {
        Worker { connections: Vec::new(), desk }
    }

    /// Looks at the connections whose time has come. Without timers the clock is not read.
    fn on_time<I: Io>(&mut self, io: &mut I) {
        if self.desk.timers.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some((conn, _)) = self.desk.timers.pop(now) {
            if let Some(connection) = self.connections.get_mut(conn.slot())
                && connection.flow.is(conn)
            {
                connection.flow.on_time(&mut Plain { io, conn }, &mut self.desk);
            }
        }
    }

    fn finish<D: Driver>(&mut self, driver: &mut D) -> io::Result<()> {
        driver.stop_listening();
        self.each_open(|flow, conn, desk| flow.stop(&mut Plain { io: driver, conn }, desk));
        let end = Instant::now() + GRACE;
        while driver.open() > 0 && Instant::now() < end {
            let until = self.desk.timers.next().map_or(end, |next| next.min(end));
            driver.turn(self, Some(until))?;
            self.on_time(driver);
        }
        self.each_open(|flow, conn, desk| flow.abort(&mut Plain { io: driver, conn }, desk));
        // The aborts leave with this turn.
        driver.turn(self, Some(Instant::now()))
    }

    fn each_open(&mut self, mut f: impl FnMut(&mut Flow, Conn, &mut Desk)) {
        for connection in &mut self.connections {
            if let Some(conn) = connection.flow.open_conn() {
                f(&mut connection.flow, conn, &mut self.desk);
            }
        }
    }

    fn accepted(&mut self, conn: Conn) {
        if self.connections.len() <= conn.slot() {
            self.connections.resize_with(conn.slot() + 1, Connection::new);
        }
        let connection = &mut self.connections[conn.slot()];
        connection.parser = Requests::new(Limits::default());
        connection.flow.begin(conn);
        self.desk.opened();
    }
}

impl Handler for Worker {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        if matches!(event, Event::Accepted) {
            return self.accepted(conn);
        }
        let desk = &mut self.desk;
        let Some(Connection { parser, flow }) = self.connections.get_mut(conn.slot()) else {
            return;
        };
        if !flow.is(conn) {
            return;
        }
        let line = &mut Plain { io, conn };
        match event {
            Event::Data(bytes) => {
                flow.settle(line, desk);
                on_data(parser, flow, line, desk, bytes);
            }
            Event::Sent => flow.on_sent(line, desk),
            Event::Eof => {
                flow.settle(line, desk);
                flow.on_eof(line, desk);
            }
            Event::Failed { error, unsent } => flow.on_failed(desk, unsent, is_reset(&error)),
            // The origin makes no connections.
            Event::Accepted | Event::Connected => {}
        }
    }
}

/// Feeds what came to the parser, and what the parser says to the flow.
fn on_data(parser: &mut Requests, flow: &mut Flow, line: &mut impl Line, desk: &mut Desk, bytes: &[u8]) {
    let mut input = bytes;
    while flow.reads() {
        let before = input.len();
        let event = parser.next(&mut input);
        let read = before - input.len();
        match event {
            Ok(Some(RequestEvent::Head(head))) => flow.on_head(line, desk, &head, read),
            Ok(Some(RequestEvent::Body(piece))) => {
                flow.read(read, desk);
                flow.on_body(desk, piece);
            }
            Ok(Some(RequestEvent::End { keep_alive })) => {
                flow.read(read, desk);
                flow.on_end(line, desk, keep_alive);
            }
            Ok(None) => return flow.read(read, desk),
            Err(why) => {
                flow.read(read, desk);
                flow.on_malformed(line, desk, why.status(), &why);
            }
        }
    }
    // A connection that reads no more requests still drains.
    flow.read(input.len(), desk);
}

fn is_reset(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), ConnectionReset | BrokenPipe | ConnectionAborted)
}

#[cfg(test)]
mod tests;
