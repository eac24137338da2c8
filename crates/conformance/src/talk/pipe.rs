//! Bytes to and from a product, through TLS or not, with a deadline for everything.
//!
//! Knows sockets, and TLS by `weir_wire`'s session; does not know HTTP.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use weir_wire::tls::{Negotiated, Scratch, Session, TlsEvent};

use super::{Door, Trouble};
use weir_host::stop::Stop;

/// The longest that a wish to stop goes unheard.
const SLICE: Duration = Duration::from_millis(100);

/// Bytes read at a time.
const PIECE: usize = 64 * 1024;

/// A connection.
pub struct Pipe {
    stream: TcpStream,
    secure: Option<Box<Secure>>,
    stop: Stop,
    piece: Vec<u8>,
    /// Plaintext that came with the end of the handshake.
    early: Vec<u8>,
    opened: Instant,
}

impl std::fmt::Debug for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipe").field("stream", &self.stream).field("secure", &self.secure.is_some()).finish()
    }
}

struct Secure {
    session: Session,
    scratch: Scratch,
    /// Bytes of the wire that the session has not taken.
    sealed: Vec<u8>,
    ready: bool,
    closed: bool,
}

impl Pipe {
    /// Connects, and shakes hands if there is TLS.
    ///
    /// # Errors
    /// Why not, at the deadline at the latest.
    pub fn open(door: &Door, until: Instant) -> Result<Pipe, Trouble> {
        let opened = Instant::now();
        let left = until.saturating_duration_since(opened).max(Duration::from_millis(1));
        let stream = TcpStream::connect_timeout(&door.addr, left).map_err(|e| match e.kind() {
            ErrorKind::ConnectionRefused => Trouble::Refused,
            ErrorKind::ConnectionReset => Trouble::Reset,
            ErrorKind::TimedOut => Trouble::Silent(left),
            _ => Trouble::Unreachable(e.to_string()),
        })?;
        // Best effort: without it a check is slower, not wrong.
        let _ = stream.set_nodelay(true);
        let stop = door.stop.clone();
        let mut pipe = Pipe { stream, secure: None, stop, piece: vec![0; PIECE], early: Vec::new(), opened };
        if let Some((config, name)) = &door.tls {
            let session = Session::client(config, name).map_err(|e| Trouble::Secure(e.to_string()))?;
            pipe.secure = Some(Box::new(Secure {
                session,
                scratch: Scratch::new(),
                sealed: Vec::new(),
                ready: false,
                closed: false,
            }));
            pipe.shake(until)?;
        }
        Ok(pipe)
    }

    /// When it was begun to be made.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// What TLS came to.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.secure.as_ref().and_then(|secure| secure.session.negotiated())
    }

    fn shake(&mut self, until: Instant) -> Result<(), Trouble> {
        let mut out = Vec::new();
        if let Some(secure) = &mut self.secure {
            secure.session.start(&mut out).map_err(|e| Trouble::Secure(e.to_string()))?;
        }
        self.push(&out, until)?;
        let mut early = Vec::new();
        while !self.secure.as_ref().is_none_or(|secure| secure.ready) {
            match self.read(&mut early, until) {
                Ok(true) => {}
                Ok(false) | Err(Trouble::Closed) => {
                    return Err(Trouble::Secure("the connection was closed in the handshake".to_owned()));
                }
                Err(Trouble::Reset) => {
                    return Err(Trouble::Secure("the connection was reset in the handshake".to_owned()));
                }
                Err(other) => return Err(other),
            }
        }
        // A server of HTTP/2 may send its settings right behind the handshake.
        self.early = early;
        Ok(())
    }

    /// Sends all of it.
    ///
    /// # Errors
    /// When the peer does not take it by the deadline, or has gone.
    pub fn write(&mut self, bytes: &[u8], until: Instant) -> Result<(), Trouble> {
        match &mut self.secure {
            None => self.push(bytes, until),
            Some(secure) => {
                let mut out = Vec::new();
                secure.session.write(&[bytes], &mut out).map_err(|e| Trouble::Secure(e.to_string()))?;
                self.push(&out, until)
            }
        }
    }

    fn push(&mut self, mut bytes: &[u8], until: Instant) -> Result<(), Trouble> {
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

    /// Appends what comes next; false at the end of the stream. With TLS it may append nothing and be true.
    ///
    /// # Errors
    /// When nothing comes by the deadline, or the connection fails.
    pub fn read(&mut self, into: &mut Vec<u8>, until: Instant) -> Result<bool, Trouble> {
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
        let Some(secure) = &mut self.secure else {
            into.extend_from_slice(&self.piece[..n]);
            return Ok(n > 0);
        };
        if n == 0 || secure.closed {
            return Ok(false);
        }
        secure.sealed.extend_from_slice(&self.piece[..n]);
        let mut out = Vec::new();
        let opened = secure.open(into, &mut out);
        // An alert goes out although the session failed.
        let sent = self.push(&out, until);
        opened?;
        sent?;
        Ok(true)
    }

    /// How long the next call may wait: until the deadline, and no longer than a wish to stop may go unheard.
    fn slice(&self, until: Instant, begun: Instant) -> Result<Duration, Trouble> {
        if self.stop.wanted() {
            return Err(Trouble::Stopped);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(Trouble::Silent(begun.elapsed())) } else { Ok(left.min(SLICE)) }
    }
}

impl Secure {
    /// Opens what has come.
    fn open(&mut self, into: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), Trouble> {
        let sealed = std::mem::take(&mut self.sealed);
        let mut input = &sealed[..];
        loop {
            match self.session.next(&mut input, &mut self.scratch, out) {
                Ok(Some(TlsEvent::Ready)) => self.ready = true,
                Ok(Some(TlsEvent::Plaintext(range))) => into.extend_from_slice(&self.scratch[range]),
                Ok(Some(TlsEvent::Closed)) => self.closed = true,
                Ok(None) => break,
                Err(e) => return Err(Trouble::Secure(e.to_string())),
            }
        }
        self.sealed = input.to_vec();
        Ok(())
    }
}

fn waits(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn failed(error: &std::io::Error) -> Trouble {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => Trouble::Reset,
        ErrorKind::BrokenPipe => Trouble::Closed,
        _ => Trouble::Unreachable(error.to_string()),
    }
}
