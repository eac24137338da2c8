//! A TCP connection, with or without TLS. Bytes to send are queued; each turn sends and receives what it can until a deadline.
//! The HTTP clients beside it call it.
//!
//! It sends and receives at the same time, so that two sides that both send much do not wait for each other.
//! This module does not know what the bytes mean.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use weir_wire::tls::{ClientConfig, Negotiated, Scratch, ServerName, Session, TlsEvent};

/// Bytes read at a time.
const PIECE: usize = 64 * 1024;

/// The connection.
pub struct Connection {
    socket: TcpStream,
    tls: Option<TlsState>,
    /// Bytes to send as they go over the wire, and how many of them were sent.
    out: Vec<u8>,
    sent: usize,
    /// Received bytes that were not taken yet, decrypted.
    plain: Vec<u8>,
    /// Why nothing more will come, once that is so.
    ended: Option<String>,
}

struct TlsState {
    session: Session,
    scratch: Scratch,
}

impl Connection {
    /// Connects, with a TLS handshake if `tls` is given.
    pub fn connect(
        addr: SocketAddr,
        tls: Option<(&ClientConfig, &ServerName)>,
        deadline: Instant,
    ) -> Result<Connection, String> {
        let left = left(deadline).ok_or("there was no time to connect")?;
        let socket = TcpStream::connect_timeout(&addr, left).map_err(|e| match e.kind() {
            ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            ErrorKind::TimedOut => "connecting took too long".to_owned(),
            _ => format!("cannot connect: {e}"),
        })?;
        // A head and its body may leave in two pieces; the second must not wait for the first's acknowledgement.
        let ready = socket.set_nodelay(true).and_then(|()| socket.set_nonblocking(true));
        ready.map_err(|e| format!("the socket cannot be set up: {e}"))?;
        let mut connection = Connection { socket, tls: None, out: Vec::new(), sent: 0, plain: Vec::new(), ended: None };
        if let Some((config, name)) = tls {
            connection.shake_hands(config, name, deadline)?;
        }
        Ok(connection)
    }

    fn shake_hands(&mut self, config: &ClientConfig, name: &ServerName, deadline: Instant) -> Result<(), String> {
        let mut session = Session::client(config, name).map_err(|e| format!("TLS: {e}"))?;
        session.start(&mut self.out).map_err(|e| format!("TLS: {e}"))?;
        self.tls = Some(TlsState { session, scratch: Scratch::new() });
        while self.negotiated().is_none() {
            if let Some(why) = &self.ended {
                return Err(format!("TLS: the connection ended during the handshake: {why}"));
            }
            self.turn(deadline)?;
        }
        Ok(())
    }

    /// What TLS came to.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.tls.as_ref()?.session.negotiated()
    }

    /// Queues bytes.
    ///
    /// # Errors
    /// When TLS is over.
    pub fn queue(&mut self, bytes: &[u8]) -> Result<(), String> {
        match &mut self.tls {
            None => self.out.extend_from_slice(bytes),
            Some(sealed) => sealed.session.write(&[bytes], &mut self.out).map_err(|e| format!("TLS: {e}"))?,
        }
        Ok(())
    }

    /// All that came since it was last taken.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.plain)
    }

    /// Why nothing more will come, once that is so and all that came was taken.
    pub fn ended(&self) -> Option<&str> {
        if self.plain.is_empty() { self.ended.as_deref() } else { None }
    }

    /// Nothing is left to send.
    pub fn all_sent(&self) -> bool {
        self.sent == self.out.len()
    }

    /// Waits until something can be sent or received, and does that.
    ///
    /// # Errors
    /// When the deadline passes first, or what came is not TLS. The end of the connection is none: see [`Connection::ended`].
    pub fn turn(&mut self, deadline: Instant) -> Result<(), String> {
        let left = left(deadline).ok_or("no complete response in time")?;
        let mut wanted = PollFlags::IN;
        if !self.all_sent() {
            wanted |= PollFlags::OUT;
        }
        let mut fds = [PollFd::from_borrowed_fd(self.socket.as_fd(), wanted)];
        // A signal only makes the turn shorter.
        let timeout = rustix::event::Timespec::try_from(left).ok();
        let ready = poll(&mut fds, timeout.as_ref()).unwrap_or(0);
        let flags = fds[0].revents();
        if ready == 0 {
            return Ok(());
        }
        if flags.contains(PollFlags::OUT) {
            self.send();
        }
        if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.receive()?;
        }
        Ok(())
    }

    fn send(&mut self) {
        match self.socket.write(&self.out[self.sent..]) {
            Ok(n) => self.sent += n,
            Err(e) if is_passing(e.kind()) => {}
            // A response may have come before the peer closed; reading finds out.
            Err(_) => self.sent = self.out.len(),
        }
        if self.all_sent() {
            self.out.clear();
            self.sent = 0;
        }
    }

    fn receive(&mut self) -> Result<(), String> {
        let mut piece = [0u8; PIECE];
        match self.socket.read(&mut piece) {
            Ok(0) => self.ended = Some("the peer closed the connection".to_owned()),
            Ok(n) => self.open(&piece[..n])?,
            Err(e) if is_passing(e.kind()) => {}
            Err(e) if e.kind() == ErrorKind::ConnectionReset => {
                self.ended = Some("the peer reset the connection".to_owned());
            }
            Err(e) => self.ended = Some(e.to_string()),
        }
        Ok(())
    }

    fn open(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(TlsState { session, scratch }) = &mut self.tls else {
            self.plain.extend_from_slice(bytes);
            return Ok(());
        };
        let mut input = bytes;
        loop {
            match session.next(&mut input, scratch, &mut self.out) {
                Ok(None) => return Ok(()),
                Ok(Some(TlsEvent::Plaintext(place))) => self.plain.extend_from_slice(&scratch[place]),
                Ok(Some(TlsEvent::Ready)) => {}
                Ok(Some(TlsEvent::Closed)) => self.ended = Some("the peer closed the connection".to_owned()),
                Err(error) => {
                    // With the alert that says why.
                    self.send();
                    return Err(format!("TLS: {error}"));
                }
            }
        }
    }
}

fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The time until a deadline; `None` when it has passed.
fn left(deadline: Instant) -> Option<Duration> {
    deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}
