//! One connection's TLS.

use std::ops::Range;

use super::config::{ClientConfig, ServerConfig, ServerName};
use super::error::{TlsError, TlsErrorKind};
use super::options::{KeyKind, Version};
use super::scratch::Scratch;

/// What [`Session::next`] came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsEvent {
    /// The handshake is done; [`Session::agreed`] says with what. Comes once, before any plaintext.
    Ready,
    /// Plaintext, at this range of the scratch: `&scratch[range]`. Never empty.
    Plain(Range<usize>),
    /// The peer said that it will send no more (close_notify). Comes once; what follows it in the input is ignored.
    Closed,
}

/// What the two sides agreed on. Names are IANA's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
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

/// The TLS of one connection, client or server half. About the size of a pointer; what it points to is freed or shrunk when
/// the handshake is done.
#[derive(Debug)]
pub struct Session;

impl Session {
    /// The client half of a new connection.
    ///
    /// # Errors
    /// When rustls refuses, which it does when it has no random numbers.
    pub fn client(config: &ClientConfig, name: &ServerName) -> Result<Session, TlsError> {
        let _ = (config, name);
        Ok(Session)
    }

    /// The server half of a new connection.
    ///
    /// # Errors
    /// As [`Session::client`].
    pub fn server(config: &ServerConfig) -> Result<Session, TlsError> {
        let _ = config;
        Ok(Session)
    }

    /// Appends what has to be sent first: the client's hello; nothing for a server. To be called once.
    ///
    /// # Errors
    /// When rustls refuses.
    pub fn start(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        let _ = out;
        Ok(())
    }

    /// Reads at most one record's worth of `input` (moving its start) and appends to `out` what has to be sent (also when it
    /// fails: the alert). `None`: all input was taken, more is needed. To be called until then.
    ///
    /// The end of the stream without [`TlsEvent::Closed`] before it is a truncation; that is the caller's to notice.
    ///
    /// # Errors
    /// The session is over and `out` may hold an alert that says so to the peer.
    pub fn next(
        &mut self,
        input: &mut &[u8],
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<Option<TlsEvent>, TlsError> {
        let _ = (input, scratch, out);
        Err(TlsError::new(TlsErrorKind::Misuse, "TLS is not there yet"))
    }

    /// Encrypts the parts as one piece and appends the records (16 KiB of plaintext each at most). Parts may be empty; nothing
    /// is appended when there is nothing to send.
    ///
    /// # Errors
    /// [`TlsErrorKind::Misuse`] before [`TlsEvent::Ready`], after [`Session::close`] and after a failure.
    pub fn write(&mut self, plain: &[&[u8]], out: &mut Vec<u8>) -> Result<(), TlsError> {
        let _ = (plain, out);
        Err(TlsError::new(TlsErrorKind::Misuse, "TLS is not there yet"))
    }

    /// Bytes that [`Session::write`] appends for so many bytes of plaintext; 0 before [`TlsEvent::Ready`].
    pub fn written_len(&self, plain: usize) -> usize {
        plain
    }

    /// Appends close_notify, once; nothing more can be written. Before the handshake is done it appends an alert that says so.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Whether the handshake is done.
    pub fn ready(&self) -> bool {
        false
    }

    /// What the two sides agreed on; `None` before [`TlsEvent::Ready`].
    pub fn agreed(&self) -> Option<Agreed> {
        None
    }
}
