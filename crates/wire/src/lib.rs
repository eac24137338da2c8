//! Protocols as sans-IO state machines: bytes in, bytes and events out.
//!
//! [`http1`] has HTTP/1.1's client half ([`http1::ResponseParser`]) and server half ([`http1::RequestParser`]). Both
//! are pulled: call them with a slice, take events until there are none, and go on with the next slice. Events borrow
//! from the slice (or, for a head that arrived in pieces, from the parser's own bounded buffer). Nothing is copied or
//! allocated for a message that arrives in one piece.
//!
//! [`http2`] has the same halves of HTTP/2 ([`http2::Client`], [`http2::Server`]), with header compression and flow
//! control, pulled in the same way. [`http3`] has those of HTTP/3 ([`http3::Client`], [`http3::Server`]) above the streams of a
//! QUIC connection, which is somebody else's.
//!
//! [`quic`] has the frames in which a protocol above QUIC gets its streams.
//!
//! [`redis`], [`juno`] and [`memcached`] have the protocols of key-value servers. Their messages are small and taken
//! whole ([`messages`]): one that arrives in one piece is a slice of the caller's bytes, one that was split is copied into
//! a bounded buffer.
//!
//! [`names`] are those of requests: the client writes them into a header, and the origin returns them. [`digest`] has the digests
//! behind them, by which the origin sees what was altered on the way.
//!
//! [`sse`] reads the events of a body, [`openai`] what those of a language model bring, [`grpc`] the messages of calls, [`websocket`] those of upgraded connections, and [`stamp`] has what the origin writes into each message of a stream, of events or others.
//!
//! [`proxy_protocol`] is the header with which a connection may begin, below TLS.
//!
//! [`tls`] has sessions of TLS 1.2 and 1.3, client and server half, for use between the socket and any of them.
//!
//! The load and the origin call this crate. It does not know sockets, clocks or threads.

/// The most headers that a message of HTTP may have, in every version.
pub const MOST_HEADERS: u32 = 128;

/// The largest head of a message of HTTP, in every version, bytes: of HTTP/1.1 as it comes, of HTTP/2 as RFC 9113 counts (section
/// 6.5.2).
pub const MOST_HEAD_BYTES: u32 = 64 * 1024;

pub mod digest;
pub mod grpc;
pub mod http1;
pub mod http2;
pub mod http3;
pub mod juno;
pub mod memcached;
pub mod messages;
pub mod openai;
pub mod proxy_protocol;
pub mod quic;
pub mod redis;
pub mod request_id;
pub mod sse;
pub mod stamp;
mod stream_table;
pub mod tls;
pub mod websocket;
