//! Protocols as sans-IO state machines: bytes in, bytes and events out.
//!
//! [`http1`] has HTTP/1.1's client half ([`http1::ResponseParser`]) and server half ([`http1::RequestParser`]). Both are pulled: give
//! them a slice, take events until there are none, and give them the next slice. Events borrow from the slice (or,
//! for a head that came in pieces, from the parser's own bounded buffer); nothing is copied and nothing is
//! allocated for a message that comes in one piece.
//!
//! [`http2`] has HTTP/2's ([`http2::Client`], [`http2::Server`]), with header compression and flow control inside, pulled alike.
//!
//! [`tls`] has sessions of TLS 1.2 and 1.3, client and server half, to go between the socket and either.
//!
//! This crate does not know sockets, clocks or threads.

pub mod http1;
pub mod http2;
pub mod tls;
