//! Reads and writes bytes on a connection to a product, with or without TLS, with a deadline for everything. `http1`
//! and `http2` use it.
//!
//! It knows sockets, and TLS through `weir_wire`'s session. It does not know HTTP.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use weir_wire::tls::{Negotiated, Scratch, Session, TlsEvent};

use super::{Endpoint, Failure};
use weir_host::stop::Stop;

/// The longest time until a request to stop is noticed.
const SLICE: Duration = Duration::from_millis(100);

/// Bytes read at a time.
const PIECE: usize = 64 * 1024;

/// A connection.
pub struct Transport {
    stream: TcpStream,
    tls: Option<Box<Tls>>,
    stop: Stop,
    piece: Vec<u8>,
    /// Plaintext that arrived with the end of the handshake.
    early: Vec<u8>,
    opened: Instant,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport").field("stream", &self.stream).field("tls", &self.tls.is_some()).finish()
    }
}

struct Tls {
    session: Session,
    scratch: Scratch,
    /// Received bytes that the session has not consumed yet.
    sealed: Vec<u8>,
    ready: bool,
    closed: bool,
}

impl Transport {
    /// Connects, and performs the handshake if there is TLS.
    ///
    /// # Errors
    /// Why the connection failed, at the deadline at the latest.
    pub fn open(endpoint: &Endpoint, until: Instant) -> Result<Transport, Failure> {
        let opened = Instant::now();
        let left = until.saturating_duration_since(opened).max(Duration::from_millis(1));
        let stream = TcpStream::connect_timeout(&endpoint.addr, left).map_err(|e| match e.kind() {
            ErrorKind::ConnectionRefused => Failure::Refused,
            ErrorKind::ConnectionReset => Failure::Reset,
            ErrorKind::TimedOut => Failure::Silent(left),
            _ => Failure::Unreachable(e.to_string()),
        })?;
        // Best effort: without it a check is slower but still right.
        let _ = stream.set_nodelay(true);
        let stop = endpoint.stop.clone();
        let mut transport = Transport { stream, tls: None, stop, piece: vec![0; PIECE], early: Vec::new(), opened };
        if let Some((config, name)) = &endpoint.tls {
            let session = Session::client(config, name).map_err(|e| Failure::Tls(e.to_string()))?;
            transport.tls = Some(Box::new(Tls {
                session,
                scratch: Scratch::new(),
                sealed: Vec::new(),
                ready: false,
                closed: false,
            }));
            transport.handshake(until)?;
        }
        Ok(transport)
    }

    /// When connecting began.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// The result of the TLS handshake.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.tls.as_ref().and_then(|tls| tls.session.negotiated())
    }

    fn handshake(&mut self, until: Instant) -> Result<(), Failure> {
        let mut out = Vec::new();
        if let Some(tls) = &mut self.tls {
            tls.session.start(&mut out).map_err(|e| Failure::Tls(e.to_string()))?;
        }
        self.push(&out, until)?;
        let mut early = Vec::new();
        while !self.tls.as_ref().is_none_or(|tls| tls.ready) {
            match self.read(&mut early, until) {
                Ok(true) => {}
                Ok(false) | Err(Failure::Closed) => {
                    return Err(Failure::Tls("the connection was closed in the handshake".to_owned()));
                }
                Err(Failure::Reset) => {
                    return Err(Failure::Tls("the connection was reset in the handshake".to_owned()));
                }
                Err(other) => return Err(other),
            }
        }
        // An HTTP/2 server may send its settings right after the handshake.
        self.early = early;
        Ok(())
    }

    /// Sends all bytes.
    ///
    /// # Errors
    /// When the peer does not accept them by the deadline, or closes the connection.
    pub fn write(&mut self, bytes: &[u8], until: Instant) -> Result<(), Failure> {
        match &mut self.tls {
            None => self.push(bytes, until),
            Some(tls) => {
                let mut out = Vec::new();
                tls.session.write(&[bytes], &mut out).map_err(|e| Failure::Tls(e.to_string()))?;
                self.push(&out, until)
            }
        }
    }

    fn push(&mut self, mut bytes: &[u8], until: Instant) -> Result<(), Failure> {
        let begun = Instant::now();
        while !bytes.is_empty() {
            self.stream.set_write_timeout(Some(self.slice(until, begun)?)).map_err(|e| failed(&e))?;
            match self.stream.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if waits(&e) => {}
                Err(e) => return Err(failed(&e)),
            }
        }
        Ok(())
    }

    /// Appends the next bytes; false at the end of the stream. With TLS it may return true and append nothing.
    ///
    /// # Errors
    /// When nothing arrives by the deadline, or the connection fails.
    pub fn read(&mut self, into: &mut Vec<u8>, until: Instant) -> Result<bool, Failure> {
        if !self.early.is_empty() {
            into.append(&mut self.early);
            return Ok(true);
        }
        let begun = Instant::now();
        let n = loop {
            self.stream.set_read_timeout(Some(self.slice(until, begun)?)).map_err(|e| failed(&e))?;
            match self.stream.read(&mut self.piece) {
                Ok(n) => break n,
                Err(e) if waits(&e) => {}
                Err(e) => return Err(failed(&e)),
            }
        };
        let Some(tls) = &mut self.tls else {
            into.extend_from_slice(&self.piece[..n]);
            return Ok(n > 0);
        };
        if n == 0 || tls.closed {
            return Ok(false);
        }
        tls.sealed.extend_from_slice(&self.piece[..n]);
        let mut out = Vec::new();
        let opened = tls.open(into, &mut out);
        // An alert is sent even if the session failed.
        let sent = self.push(&out, until);
        opened?;
        sent?;
        Ok(true)
    }

    /// How long the next call may block: until the deadline, and at most the time until a request to stop must be
    /// noticed.
    fn slice(&self, until: Instant, begun: Instant) -> Result<Duration, Failure> {
        if self.stop.is_requested() {
            return Err(Failure::Stopped);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(Failure::Silent(begun.elapsed())) } else { Ok(left.min(SLICE)) }
    }
}

impl Tls {
    /// Decrypts the received bytes.
    fn open(&mut self, into: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let sealed = std::mem::take(&mut self.sealed);
        let mut input = &sealed[..];
        loop {
            match self.session.next(&mut input, &mut self.scratch, out) {
                Ok(Some(TlsEvent::Ready)) => self.ready = true,
                Ok(Some(TlsEvent::Plaintext(range))) => into.extend_from_slice(&self.scratch[range]),
                Ok(Some(TlsEvent::Closed)) => self.closed = true,
                Ok(None) => break,
                Err(e) => return Err(Failure::Tls(e.to_string())),
            }
        }
        self.sealed = input.to_vec();
        Ok(())
    }
}

fn waits(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn failed(error: &std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => Failure::Reset,
        ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::Unreachable(error.to_string()),
    }
}
