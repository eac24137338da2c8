//! Sends and receives bytes on a connection, with or without TLS, with a deadline for everything. `http1`, `http2`
//! and `keyvalue` use it.
//!
//! It receives while it sends, so that two sides that both send much do not wait for each other. It knows sockets, and TLS
//! through `weir_wire`'s session. It knows no protocol above that.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use weir_host::Clock;
use weir_host::stop::Stop;
use weir_model::At;
use weir_wire::tls::{Negotiated, Scratch, Session, TlsEvent};

use super::{Endpoint, Readiness, RequestError, Socket};

/// The longest time until a request to stop is noticed.
pub(super) const SLICE: Duration = Duration::from_millis(100);

/// Bytes read at a time.
const PIECE: usize = 64 * 1024;

/// A connection.
pub struct Transport {
    socket: Box<dyn Socket>,
    clock: Arc<dyn Clock>,
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
    /// Why the connection failed, within the time.
    pub fn open(endpoint: &Endpoint, timeout: Duration) -> Result<Transport, RequestError> {
        let clock = endpoint.network.clock();
        let until = clock.now().plus(timeout);
        let timeout = timeout.max(Duration::from_millis(1));
        let socket = endpoint.network.connect(endpoint.addr, timeout).map_err(|e| match e.kind() {
            ErrorKind::ConnectionRefused => RequestError::Refused,
            ErrorKind::ConnectionReset => RequestError::Reset,
            ErrorKind::TimedOut => RequestError::Silent(timeout),
            _ => RequestError::Unreachable(e.to_string()),
        })?;
        let (stop, piece) = (endpoint.stop.clone(), vec![0; PIECE]);
        let mut transport =
            Transport { socket, clock, tls: None, stop, out: Vec::new(), piece, input: Vec::new(), end: None };
        if let Some((config, name)) = &endpoint.tls {
            let mut session = Session::client(config, name).map_err(tls_failed)?;
            session.start(&mut transport.out).map_err(tls_failed)?;
            transport.tls = Some(Box::new(Tls { session, scratch: Scratch::new() }));
            transport.handshake(until)?;
        }
        Ok(transport)
    }

    /// The clock of its time limits.
    pub fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// The result of the TLS handshake.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.tls.as_ref().and_then(|tls| tls.session.negotiated())
    }

    fn handshake(&mut self, until: At) -> Result<(), RequestError> {
        let begun = self.clock.now();
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
    pub fn write(&mut self, bytes: &[u8], until: At) -> Result<(), RequestError> {
        match &mut self.tls {
            None => self.out.extend_from_slice(bytes),
            Some(tls) => tls.session.write(&[bytes], &mut self.out).map_err(tls_failed)?,
        }
        self.flush(until)
    }

    fn flush(&mut self, until: At) -> Result<(), RequestError> {
        let begun = self.clock.now();
        while !self.out.is_empty() {
            self.turn(until, begun)?;
        }
        Ok(())
    }

    /// Appends the next bytes; false at the end of the stream.
    ///
    /// # Errors
    /// When nothing arrives by the deadline, or the connection fails.
    pub fn read(&mut self, into: &mut Vec<u8>, until: At) -> Result<bool, RequestError> {
        let begun = self.clock.now();
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
    fn turn(&mut self, until: At, begun: At) -> Result<(), RequestError> {
        if self.stop.is_requested() {
            return Err(RequestError::Stopped);
        }
        let left = self.clock.left(until);
        if left.is_zero() {
            return Err(RequestError::Silent(self.clock.since(begun)));
        }
        let wanted = Readiness { read: self.end.is_none(), write: !self.out.is_empty() };
        let ready = self.socket.wait(wanted, left.min(SLICE));
        if ready.read {
            self.receive();
        }
        if ready.write && !self.out.is_empty() {
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
