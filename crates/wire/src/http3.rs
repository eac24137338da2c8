//! HTTP/3, client and server half (RFC 9114), with its header compression (QPACK, RFC 9204).
//!
//! QUIC has the streams, so each call names the QUIC stream whose bytes it takes, and everything written belongs to one
//! stream. [`Client`] sends requests and reads responses, [`Server`] reads requests and sends responses; the load and the
//! origin call them. Both are pulled like [`crate::http2`]: call `next` with a slice until it returns `None`, then with the
//! next slice. Flow control, lost packets and the order of bytes are QUIC's.
//!
//! Both halves announce a table of 0 bytes and send nothing that needs one: a header is an entry of the static table or a
//! literal, so that no stream waits for another. RFC 9204 (section 4.2) then needs no streams of QPACK's own, and none are
//! opened. The peer may open its own.
//!
//! Both are strict, as http1 and http2 are: what RFC 9114 calls an error is one. Everything that a peer can make grow is
//! limited by [`Limits`]. Server push and CONNECT are rejected, priorities are ignored.
//!
//! This module does not know sockets, clocks, QUIC's packets, or what requests mean.

mod client;
mod conn;
mod control;
mod error;
mod frame;
mod prepared;
#[doc(hidden)]
pub mod probe;
mod qpack;
mod section;
mod server;
mod streams;

pub use crate::http2::{
    Body, EncodeError, Headers, Limits, Output, Request, RequestHead, ResponseHead, SendError, StreamError, Template,
    Values,
};
pub use client::{Client, ClientEvent};
pub use error::{Code, ConnectionError, ResetCause, Violation, code_of};
pub use prepared::Prepared;
pub use server::{Server, ServerEvent, Stream};

/// The identifier of HTTP/3 in ALPN.
pub const ALPN: &[u8] = b"h3";

/// The options of one half of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Keep the headers of responses for [`ResponseHead::headers`]. Without, that is empty and reading costs less.
    /// Servers always keep those of requests.
    pub keep_headers: bool,
    /// Limits on what the peer may send.
    pub limits: Limits,
}

impl Default for Options {
    /// Headers are kept, and the limits are HTTP/2's.
    fn default() -> Options {
        Options { keep_headers: true, limits: Limits::default() }
    }
}
