//! HTTP/2, client and server half (RFC 9113), with its own header compression (HPACK, RFC 7541).
//!
//! [`Client`] makes requests and reads responses, [`Server`] reads requests and gives responses. Both are pulled like
//! [`crate::http1`]: give [`Client::next`] or [`Server::next`] a slice until it yields `None`, then the next slice. What
//! they have to send they append to an [`Output`]; flow control is theirs, so bodies that the peer has no window for
//! wait inside and leave when it has.
//!
//! Both are strict, as http1 is: what RFC 9113 calls an error is one, a connection error ends in [`ConnectionError`] (with
//! GOAWAY written), a stream error in RST_STREAM and an event. Everything a peer can make grow is bounded by
//! [`Limits`]. Server push and CONNECT are refused, priorities are ignored.
//!
//! This module does not know sockets, clocks, TLS, or what requests mean.

mod body;
mod class;
mod client;
mod conn;
mod control;
mod error;
mod fields;
mod frame;
mod hpack;
mod message;
mod prepared;
#[doc(hidden)]
pub mod probe;
mod receive;
mod send;
mod server;
mod settings;
mod streams;

pub use body::{Body, Output};
pub use client::{Client, ClientEvent, ClientOptions, ResponseHead};
pub use error::{Code, ConnectionError, EncodeError, ResetCause, SendError, StreamError, Violation};
pub use fields::Headers;
pub use prepared::{Prepared, Request};
pub use server::{RequestHead, SendStatus, Server, ServerEvent, ServerOptions, Stream};

/// What a client sends first on a connection, before its SETTINGS (RFC 9113 section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bounds on what a peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest header list: names, values and 32 bytes for each header (RFC 9113 section 6.5.2), bytes.
    pub header_list: u32,
    /// Most frames in a row that bring nothing forward (PING, SETTINGS, WINDOW_UPDATE, empty DATA, unknown ...).
    pub idle_frames: u32,
    /// Most streams that the peer may reset beyond those that ended well.
    pub resets: u32,
}

impl Default for Limits {
    /// 64 KiB of headers, 10,000 idle frames, 10,000 resets.
    fn default() -> Limits {
        Limits { header_list: 64 * 1024, idle_frames: 10_000, resets: 10_000 }
    }
}

/// Which protocol a client speaks on a connection without TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detected {
    /// The bytes so far begin both; ask again with more.
    Undecided,
    /// HTTP/1: for [`crate::http1::RequestParser`].
    Http1,
    /// HTTP/2 by prior knowledge: for [`Server`].
    Http2,
}

/// Tells from the first bytes of a connection which protocol the client speaks (RFC 9113 section 3.3).
///
/// The method `PRI` is reserved for this, so `PRI * HTTP/2.0` decides; no byte is used up.
pub fn detect(first: &[u8]) -> Detected {
    const TELLTALE: &[u8] = b"PRI * HTTP/2.0\r\n";
    if first.starts_with(TELLTALE) {
        Detected::Http2
    } else if TELLTALE.starts_with(first) {
        Detected::Undecided
    } else {
        Detected::Http1
    }
}
