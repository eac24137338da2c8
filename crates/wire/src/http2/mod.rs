//! HTTP/2, client and server half (RFC 9113), with its own header compression (HPACK, RFC 7541).
//!
//! [`Client`] sends requests and reads responses, [`Server`] reads requests and sends responses; the load and the
//! origin call them. Both are pulled like [`crate::http1`]: call [`Client::next`] or [`Server::next`] with a slice
//! until it returns `None`, then with the next slice. They append the bytes to send to an [`Output`]. They handle
//! flow control: bodies that exceed the peer's window wait inside and are sent when it opens.
//!
//! Both are strict, as http1 is: what RFC 9113 calls an error is one. A connection error ends in [`ConnectionError`]
//! (with GOAWAY written), a stream error in RST_STREAM and an event. Everything that a peer can make grow is limited
//! by [`Limits`]. Server push and CONNECT are rejected, priorities are ignored.
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
    /// The most frames in a row that make no progress (PING, SETTINGS, WINDOW_UPDATE, empty DATA, unknown ...).
    pub idle_frames: u32,
    /// The most streams that the peer may reset in addition to those that ended normally.
    pub resets: u32,
}

impl Default for Limits {
    /// 64 KiB of headers, 10,000 idle frames, 10,000 resets.
    fn default() -> Limits {
        Limits { header_list: 64 * 1024, idle_frames: 10_000, resets: 10_000 }
    }
}

/// The protocol of a client on a connection without TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detected {
    /// The bytes so far begin both; call again with more.
    Undecided,
    /// HTTP/1: for [`crate::http1::RequestParser`].
    Http1,
    /// HTTP/2 by prior knowledge: for [`Server`].
    Http2,
}

/// Detects the protocol of a client from the first bytes of a connection (RFC 9113 section 3.3).
///
/// The method `PRI` is reserved for this, so `PRI * HTTP/2.0` decides. No byte is consumed.
pub fn detect(first: &[u8]) -> Detected {
    const PREFACE_LINE: &[u8] = b"PRI * HTTP/2.0\r\n";
    if first.starts_with(PREFACE_LINE) {
        Detected::Http2
    } else if PREFACE_LINE.starts_with(first) {
        Detected::Undecided
    } else {
        Detected::Http1
    }
}
