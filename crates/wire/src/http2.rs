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
pub(crate) mod class;
mod client;
mod conn;
mod control;
mod error;
pub(crate) mod fields;
mod frame;
pub(crate) mod hpack;
pub(crate) mod memo;
pub(crate) mod message;
pub(crate) mod prepared;
#[doc(hidden)]
pub mod probe;
mod receive;
mod send;
mod server;
mod settings;
mod streams;

pub use body::{Body, Output};
pub use client::{Client, ClientEvent, ResponseHead};
pub use error::{Code, ConnectionError, EncodeError, ResetCause, SendError, StreamError, Violation};
pub use fields::Headers;
pub use prepared::{Prepared, Request, Template, Values};
pub use server::{RequestHead, SendStatus, Server, ServerEvent, Stream};

/// What a client sends first on a connection, before its SETTINGS (RFC 9113 section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The options of one half of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Streams that a client opens at a time, or that a server lets its client open, at most.
    pub max_streams: u32,
    /// Bytes of bodies that the peer may send ahead on a stream, up to 2^31 - 1.
    pub stream_window: u32,
    /// Bytes of bodies that the peer may send ahead on the connection, from 65,535 to 2^31 - 1.
    pub connection_window: u32,
    /// Largest frame the peer may send, from 16,384 to 2^24 - 1.
    pub max_frame: u32,
    /// Keep the headers of responses for [`ResponseHead::headers`]. Without, that is empty and reading costs less.
    /// Servers always keep those of requests.
    pub keep_headers: bool,
    /// Limits on what the peer may send.
    pub limits: Limits,
}

impl Options {
    /// A client's: 100 streams, windows of 16 MiB and 2^31 - 1 bytes, frames of 16,384 bytes, headers kept.
    pub fn client() -> Options {
        Options { max_streams: 100, stream_window: 16 << 20, connection_window: (1 << 31) - 1, ..Options::server() }
    }

    /// A server's: 256 streams, windows of 1 MiB and 16 MiB, frames of 16,384 bytes.
    pub fn server() -> Options {
        Options {
            max_streams: 256,
            stream_window: 1 << 20,
            connection_window: 16 << 20,
            max_frame: 16_384,
            keep_headers: true,
            limits: Limits::default(),
        }
    }
}

/// Bounds on what a peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest header list: names, values and 32 bytes for each header (RFC 9113 section 6.5.2), bytes.
    pub header_list: u32,
    /// Most headers, without pseudo-headers.
    pub headers: u32,
    /// The most frames in a row that make no progress (PING, SETTINGS, WINDOW_UPDATE, empty DATA, unknown ...).
    pub idle_frames: u32,
    /// The most streams that the peer may reset in addition to those that ended normally.
    pub resets: u32,
}

impl Default for Limits {
    /// [`crate::MOST_HEAD_BYTES`] of headers, [`crate::MOST_HEADERS`], 10,000 idle frames, 10,000 resets.
    fn default() -> Limits {
        let (header_list, headers) = (crate::MOST_HEAD_BYTES, crate::MOST_HEADERS);
        Limits { header_list, headers, idle_frames: 10_000, resets: 10_000 }
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
