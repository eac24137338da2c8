//! Sends and receives bytes on a connection, with or without TLS, with a deadline for everything. `http1`, `http2`
//! and `keyvalue` use it.
//!
//! It receives while it sends, so that two sides that both send much do not wait for each other. It knows sockets, and TLS
//! through `weir_wire`'s session. It knows no protocol above that.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_host::stop::Stop;
use weir_wire::tls::{Negotiated, Scratch, Session, TlsEvent};

use super::{Endpoint, RequestError};

/// The longest time until a request to stop is noticed.
const SLICE: Duration = Duration::from_millis(100);

/// Bytes read at a time.
const PIECE: usize = 64 * 1024;

/// A connection.
pub struct Transport {
    socket: TcpStream,
    tls: Option<Box<Tls>>,
    stop: Stop,
    /// Bytes to send, as they go over the wire.
    out: Vec<u8>,
    piece: Vec<u8>,
    /// Received bytes that were not taken yet, decrypted.
    input: Vec<u8>,
    /// Why nothing more will come, once that is so. [`RequestError::Closed`] is the end of the stream.
    end: Option<RequestError>,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport").field("socket", &self.socket).field("tls", &self.tls.is_some()).finish()
    }
}

struct Tls {
    session: Session,
    scratch: Scratch,
}

impl Transport {
    /// Connects, and performs the handshake if there is TLS.
    ///
    /// # Errors
    /// Why the connection failed, at the deadline at the latest.
    pub fn open(endpoint: &Endpoint, until: Instant) -> Result<Transport, RequestError> {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let socket = TcpStream::connect_timeout(&endpoint.addr, left).map_err(|e| match e.kind() {
            ErrorKind::ConnectionRefused => RequestError::Refused,
            ErrorKind::ConnectionReset => RequestError::Reset,
            ErrorKind::TimedOut => RequestError::Silent(left),
            _ => RequestError::Unreachable(e.to_string()),
        })?;
        // A head and its body may leave in two pieces; the second must not wait for the first's acknowledgement.
        socket.set_nodelay(true).and_then(|()| socket.set_nonblocking(true)).map_err(|e| failed(&e))?;
        let (stop, piece) = (endpoint.stop.clone(), vec![0; PIECE]);
        let mut transport = Transport { socket, tls: None, stop, out: Vec::new(), piece, input: Vec::new(), end: None };
        if let Some((config, name)) = &endpoint.tls {
            let mut session = Session::client(config, name).map_err(tls_failed)?;
            session.start(&mut transport.out).map_err(tls_failed)?;
            transport.tls = Some(Box::new(Tls { session, scratch: Scratch::new() }));
            transport.handshake(until)?;
        }
        Ok(transport)
    }

    /// The result of the TLS handshake.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.tls.as_ref().and_then(|tls| tls.session.negotiated())
    }

    fn handshake(&mut self, until: Instant) -> Result<(), RequestError> {
        let begun = Instant::now();
        while self.negotiated().is_none() {
            let how = match &self.end {
                None => {
                    self.turn(until, begun)?;
                    continue;
                }
                Some(RequestError::Closed) => "closed",
                Some(RequestError::Reset) => "reset",
                Some(other) => return Err(other.clone()),
            };
            return Err(RequestError::Tls(format!("the connection was {how} in the handshake")));
        }
        self.flush(until)
    }

    /// Sends all bytes.
    ///
    /// # Errors
    /// When the peer does not accept them by the deadline, or closes the connection. What it sent before that can still
    /// be read.
    pub fn write(&mut self, bytes: &[u8], until: Instant) -> Result<(), RequestError> {
        match &mut self.tls {
            None => self.out.extend_from_slice(bytes),
            Some(tls) => tls.session.write(&[bytes], &mut self.out).map_err(tls_failed)?,
        }
        self.flush(until)
    }

    fn flush(&mut self, until: Instant) -> Result<(), RequestError> {
        let begun = Instant::now();
        while !self.out.is_empty() {
            self.turn(until, begun)?;
        }
        Ok(())
    }

    /// Appends the next bytes; false at the end of the stream.
    ///
    /// # Errors
    /// When nothing arrives by the deadline, or the connection fails.
    pub fn read(&mut self, into: &mut Vec<u8>, until: Instant) -> Result<bool, RequestError> {
        let begun = Instant::now();
        while self.input.is_empty() {
            match &self.end {
                None => self.turn(until, begun)?,
                Some(RequestError::Closed) => return Ok(false),
                Some(error) => return Err(error.clone()),
            }
        }
        into.append(&mut self.input);
        Ok(true)
    }

    /// Waits until something can be sent or received, and does that.
    fn turn(&mut self, until: Instant, begun: Instant) -> Result<(), RequestError> {
        if self.stop.is_requested() {
            return Err(RequestError::Stopped);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(RequestError::Silent(begun.elapsed()));
        }
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::IN, self.end.is_none());
        wanted.set(PollFlags::OUT, !self.out.is_empty());
        let mut fds = [PollFd::from_borrowed_fd(self.socket.as_fd(), wanted)];
        let timeout = Timespec::try_from(left.min(SLICE)).ok();
        // A signal only makes the turn shorter.
        let _ = poll(&mut fds, timeout.as_ref());
        let ready = fds[0].revents();
        if self.end.is_none() && ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.receive();
        }
        if !self.out.is_empty() && ready.intersects(PollFlags::OUT | PollFlags::HUP | PollFlags::ERR) {
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), RequestError> {
        match self.socket.write(&self.out) {
            Ok(n) => drop(self.out.drain(..n)),
            Err(e) if is_passing(&e) => {}
            Err(e) => {
                self.out.clear();
                return Err(failed(&e));
            }
        }
        Ok(())
    }

    fn receive(&mut self) {
        match self.socket.read(&mut self.piece) {
            Ok(0) => self.end = Some(RequestError::Closed),
            Ok(n) => self.open_piece(n),
            Err(e) if is_passing(&e) => {}
            Err(e) => self.end = Some(failed(&e)),
        }
    }

    /// Decrypts the first bytes of the piece that was read.
    fn open_piece(&mut self, n: usize) {
        let Some(Tls { session, scratch }) = self.tls.as_deref_mut() else {
            return self.input.extend_from_slice(&self.piece[..n]);
        };
        let mut sealed = &self.piece[..n];
        loop {
            match session.next(&mut sealed, scratch, &mut self.out) {
                Ok(Some(TlsEvent::Plaintext(range))) => self.input.extend_from_slice(&scratch[range]),
                Ok(Some(TlsEvent::Ready)) => {}
                Ok(Some(TlsEvent::Closed)) => self.end = Some(RequestError::Closed),
                Ok(None) => return,
                Err(error) => {
                    self.end = Some(tls_failed(error));
                    // The alert that says why; the error itself is what counts.
                    let _ = self.send();
                    return;
                }
            }
        }
    }
}

fn tls_failed(error: impl std::fmt::Display) -> RequestError {
    RequestError::Tls(error.to_string())
}

fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn failed(error: &std::io::Error) -> RequestError {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => RequestError::Reset,
        ErrorKind::BrokenPipe => RequestError::Closed,
        _ => RequestError::Unreachable(error.to_string()),
    }
}
