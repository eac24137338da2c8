//! The TLS of one connection.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;

use super::config::{ClientConfig, ServerConfig, ServerName};
use super::error::{TlsError, TlsErrorKind};
use super::handshake::{Half, Handshake};
use super::options::{KeyKind, Version};
use super::records::{Fail, Traffic};
use super::scratch::Scratch;

/// An event of [`Session::next`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsEvent {
    /// The handshake is done; [`Session::negotiated`] has the result. It comes once, before any plaintext.
    Ready,
    /// Plaintext, at this range of the scratch: `&scratch[range]`. Never empty.
    Plaintext(Range<usize>),
    /// The peer has finished sending (close_notify). It comes once; later input is ignored.
    Closed,
}

/// What the two sides agreed on. Names are IANA's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// Version.
    pub version: Version,
    /// Cipher suite: `TLS_AES_128_GCM_SHA256`, `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`.
    pub suite: &'static str,
    /// Key exchange group (`X25519`); `None` for a resumed session of TLS 1.2, which exchanges no keys.
    pub group: Option<&'static str>,
    /// ALPN protocol, if the two agreed on one.
    pub alpn: Option<Box<str>>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// Kind of the key in the peer's certificate; `None` when it has none, or another kind.
    pub peer_key: Option<KeyKind>,
}

/// The TLS of one connection, client or server half. It takes two words and what they point to; the larger part of
/// that is freed when the handshake is done.
pub struct Session(pub(super) State);

pub(super) enum State {
    Handshake(Box<Handshake>),
    Traffic(Box<Traffic>),
    /// It failed, or was closed before it was ready.
    Over,
}

impl Session {
    /// The client half of a new connection.
    ///
    /// # Errors
    /// When rustls fails, for example because there are no random numbers.
    pub fn client(config: &ClientConfig, name: &ServerName) -> Result<Session, TlsError> {
        let connection = UnbufferedClientConnection::new(Arc::clone(&config.rustls), name.0.clone())
            .map_err(|e| TlsError::of_handshake(&e))?;
        Ok(Session::new(Half::Client { connection, tickets: config.resumption }))
    }

    /// The server half of a new connection.
    ///
    /// # Errors
    /// As [`Session::client`].
    pub fn server(config: &ServerConfig) -> Result<Session, TlsError> {
        let connection =
            UnbufferedServerConnection::new(Arc::clone(&config.rustls)).map_err(|e| TlsError::of_handshake(&e))?;
        Ok(Session::new(Half::Server(connection)))
    }

    fn new(half: Half) -> Session {
        Session(State::Handshake(Box::new(Handshake::new(half))))
    }

    /// Appends the first bytes: the client's hello; nothing for a server. Call it once.
    ///
    /// # Errors
    /// When rustls fails.
    pub fn start(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        let State::Handshake(handshake) = &mut self.0 else { return Ok(()) };
        handshake.next(&mut &[][..], out).map(drop).map_err(|fail| self.fail(fail, out))
    }

    /// Reads at most one record with an event from `input` (and advances it). Appends the bytes to send to `out`,
    /// also when it fails: the alert. `None`: all input was used, more is needed. Call it until then.
    ///
    /// If the stream ends without [`TlsEvent::Closed`], it was truncated; the caller has to notice that.
    ///
    /// # Errors
    /// The session is over, and `out` may hold an alert that informs the peer.
    pub fn next(
        &mut self,
        input: &mut &[u8],
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<Option<TlsEvent>, TlsError> {
        match &mut self.0 {
            State::Traffic(traffic) => traffic.next(input, scratch, out).map_err(|fail| self.fail(fail, out)),
            State::Handshake(_) if input.is_empty() => Ok(None),
            State::Handshake(handshake) => match handshake.next(input, out) {
                Ok(true) => self.ready_now().map(Some),
                Ok(false) => Ok(None),
                Err(fail) => Err(self.fail(fail, out)),
            },
            State::Over => Err(over()),
        }
    }

    /// Switches from the handshake to the record layer.
    fn ready_now(&mut self) -> Result<TlsEvent, TlsError> {
        let State::Handshake(handshake) = std::mem::replace(&mut self.0, State::Over) else { return Err(over()) };
        self.0 = State::Traffic(Box::new(handshake.into_traffic()?));
        Ok(TlsEvent::Ready)
    }

    fn fail(&mut self, fail: Fail, out: &mut Vec<u8>) -> TlsError {
        match std::mem::replace(&mut self.0, State::Over) {
            State::Traffic(mut traffic) => traffic.give_up(&fail, out),
            State::Handshake(_) => {
                if let Some(alert) = fail.alert {
                    out.extend_from_slice(&plain_alert(alert));
                }
            }
            State::Over => {}
        }
        fail.error
    }

    /// Encrypts the parts as one piece, and appends the records (16 KiB of plaintext each at most). Parts may be
    /// empty; nothing is appended when there is nothing to send.
    ///
    /// # Errors
    /// [`TlsErrorKind::Misuse`] before [`TlsEvent::Ready`], after [`Session::close`] and after a failure.
    pub fn write(&mut self, plain: &[&[u8]], out: &mut Vec<u8>) -> Result<(), TlsError> {
        match &mut self.0 {
            State::Traffic(traffic) => traffic.write(plain, out).map_err(|fail| fail.error),
            State::Handshake(_) => {
                Err(TlsError::new(TlsErrorKind::Misuse, "data was written to TLS before the handshake was done"))
            }
            State::Over => Err(over()),
        }
    }

    /// Appends a record of any type and content (16 KiB at most), valid or not: tests and fuzzers use it to be a peer
    /// that has the keys and misuses them. Nothing is appended when the session is not ready.
    #[doc(hidden)]
    pub fn write_any(&mut self, kind: u8, content: &[u8], out: &mut Vec<u8>) {
        if let State::Traffic(traffic) = &mut self.0 {
            // A failure is the crypto library's, and the peer then gets nothing.
            let _ = traffic.seal(kind, content, out);
        }
    }

    /// Appends close_notify, once. Nothing more can be written then, but the peer's data can still be read. Before
    /// the handshake is done nothing is appended, and the session is over.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        match &mut self.0 {
            State::Traffic(traffic) => traffic.close(out),
            State::Handshake(_) => self.0 = State::Over,
            State::Over => {}
        }
    }

    /// Whether the handshake is done and the session has not failed.
    pub fn ready(&self) -> bool {
        matches!(self.0, State::Traffic(_))
    }

    /// What the two sides agreed on; `None` before [`TlsEvent::Ready`] and after a failure.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        match &self.0 {
            State::Traffic(traffic) => Some(&traffic.negotiated),
            _ => None,
        }
    }
}

/// A fatal alert as it is sent before there are keys.
fn plain_alert(alert: u8) -> [u8; 7] {
    [super::records::ALERT, 3, 3, 0, 2, 2, alert]
}

fn over() -> TlsError {
    TlsError::new(TlsErrorKind::Misuse, "the TLS session is over")
}

impl fmt::Debug for Session {
    /// Without keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            State::Handshake(_) => f.write_str("Session(handshake)"),
            State::Traffic(traffic) => f.debug_tuple("Session").field(&traffic.negotiated).finish(),
            State::Over => f.write_str("Session(over)"),
        }
    }
}
