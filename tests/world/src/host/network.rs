//! What weir's own requests go over in a world. A socket's wait runs the world.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_host::Clock;
use weir_net::sim::SimDriver;
use weir_net::{Conn, Driver, Event, Handler, Io};
use weir_product::client::{Network, Readiness, Socket};

use super::{Realm, RealmClock, SimHost, locked};

/// The network of a host.
#[derive(Debug)]
pub(super) struct SimNetwork {
    pub(super) host: SimHost,
}

impl Network for SimNetwork {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(RealmClock(Arc::clone(&self.host.realm)))
    }

    fn connect(&self, addr: SocketAddr, within: Duration) -> io::Result<Box<dyn Socket>> {
        let realm: &Realm = &self.host.realm;
        let mut driver = realm.world.driver_with("requester", self.host.node());
        let conn = driver.connect(&addr.into(), None)?;
        let until = driver.now() + within.as_nanos() as u64;
        let mut inbox = Inbox::default();
        while !inbox.connected && inbox.error.is_none() {
            if driver.now() >= until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            driver.poll(&mut inbox, Some(until))?;
        }
        match inbox.error.take() {
            Some(error) => Err(error),
            None => Ok(Box::new(SimSocket(Mutex::new(Inner { driver, conn, inbox })))),
        }
    }
}

/// What has come on a connection.
#[derive(Debug, Default)]
struct Inbox {
    connected: bool,
    bytes: VecDeque<u8>,
    ended: bool,
    error: Option<io::Error>,
}

impl Handler for Inbox {
    fn on_event<I: Io>(&mut self, _: &mut I, _: Conn, event: Event<'_>) {
        match event {
            Event::Connected => self.connected = true,
            Event::Data(bytes) => self.bytes.extend(bytes),
            Event::Eof => self.ended = true,
            Event::Failed { error, .. } => self.error = Some(error),
            Event::Accepted(_) | Event::Datagrams(_) | Event::Skipped(_) | Event::Sent => {}
        }
    }
}

#[derive(Debug)]
struct Inner {
    driver: SimDriver,
    conn: Conn,
    inbox: Inbox,
}

impl Inner {
    fn poll(&mut self, until: u64) {
        // A simulated driver does not fail.
        let _ = self.driver.poll(&mut self.inbox, Some(until));
    }

    fn can_read(&self) -> bool {
        !self.inbox.bytes.is_empty() || self.inbox.ended || self.inbox.error.is_some()
    }
}

/// A connection. Dropping it closes it.
#[derive(Debug)]
struct SimSocket(Mutex<Inner>);

impl Socket for SimSocket {
    fn wait(&self, wanted: Readiness, within: Duration) -> Readiness {
        let mut inner = locked(&self.0);
        let until = inner.driver.now() + within.as_nanos() as u64;
        // There is always room for requests.
        if wanted.write {
            inner.poll(0);
        } else if !inner.can_read() {
            inner.poll(until);
        }
        Readiness { read: wanted.read && inner.can_read(), write: wanted.write }
    }
}

impl Read for SimSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut inner = locked(&self.0);
        let inbox = &mut inner.inbox;
        if !inbox.bytes.is_empty() {
            return inbox.bytes.read(into);
        }
        match inbox.error.take() {
            Some(error) => Err(error),
            None if inbox.ended => Ok(0),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for SimSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = locked(&self.0);
        let conn = inner.conn;
        inner.driver.send(conn, bytes);
        inner.driver.flush();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
