//! HTTP/1.1, client and server half (RFC 9112 and 9110).
//!
//! [`ResponseParser`] reads what a server sends, [`RequestParser`] reads what a client sends, and [`encode`] writes
//! both.
//!
//! Both parsers are strict: a benchmark has to notice a product that sends invalid HTTP, and an origin has to notice a
//! proxy that forwards it. Where RFC 9112 lets a recipient be lenient (a lone LF as a line end, folded headers, a
//! message with both framings) they return an error, with a kind for each. They are lenient in three harmless cases:
//! a status line may end after the code, one empty line may come before a request, and equal `Content-Length`s may be
//! repeated.

pub(crate) mod chars;
mod chunked;
pub mod encode;
mod error;
mod head;
mod headers;
mod memo;
mod request;
mod response;

pub use error::ParseError;
pub use headers::{header, headers};
pub use memo::HeadMemo;
pub use request::{RequestLine, RequestParser};
pub use response::{ResponseParser, StatusLine};

/// Bounds on what a peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest head (start line and headers, with line ends), bytes.
    pub head_bytes: u32,
    /// Most headers.
    pub headers: u32,
    /// Largest chunk-size line (with extensions), bytes.
    pub chunk_line_bytes: u32,
    /// Largest trailer section, bytes.
    pub trailer_bytes: u32,
}

impl Default for Limits {
    /// [`crate::MOST_HEAD_BYTES`] of head, [`crate::MOST_HEADERS`], 256 bytes a chunk-size line, 8 KiB of trailers.
    fn default() -> Limits {
        let (head_bytes, headers) = (crate::MOST_HEAD_BYTES, crate::MOST_HEADERS);
        Limits { head_bytes, headers, chunk_line_bytes: 256, trailer_bytes: 8 * 1024 }
    }
}

/// How a message's body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    None,
    /// This many bytes.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// Until the connection closes (responses only).
    UntilClose,
}

/// HTTP version of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// An event of the client half.
#[derive(Debug, PartialEq, Eq)]
pub enum ResponseEvent<'a> {
    /// A 1xx response (not 101); the final one follows.
    Informational(u16),
    /// The head of the final response.
    Head(ResponseHead<'a>),
    /// A piece of the body, de-chunked.
    Body(&'a [u8]),
    /// The response is complete.
    End {
        /// The connection may carry another request.
        keep_alive: bool,
    },
}

/// Head of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    /// Version.
    pub version: Version,
    /// Status code, 200 to 999.
    pub status: u16,
    /// How the body is delimited.
    pub framing: Framing,
    /// All bytes of the head, start line to the empty line; read with [`headers`].
    pub raw: &'a [u8],
    /// The value of the header that the [`HeadMemo`] knows by name, if there is a memo and the head has one.
    pub marked: Option<&'a [u8]>,
}

/// An event of the server half.
#[derive(Debug, PartialEq, Eq)]
pub enum RequestEvent<'a> {
    /// The head of a request.
    Head(RequestHead<'a>),
    /// A piece of the body, de-chunked.
    Body(&'a [u8]),
    /// The request is complete.
    End {
        /// The connection may carry another response.
        keep_alive: bool,
    },
}

/// Head of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// Version.
    pub version: Version,
    /// Method as sent.
    pub method: &'a [u8],
    /// Target as sent (origin form, absolute form or `*`).
    pub target: &'a [u8],
    /// How the body is delimited.
    pub framing: Framing,
    /// Whether the peer waits for `100 Continue`.
    pub expects_continue: bool,
    /// The `Connection` header, classified.
    pub connection: ConnectionHeader,
    /// All bytes of the head; read with [`headers`].
    pub raw: &'a [u8],
    /// The value of the header that the [`HeadMemo`] knows by name, if there is a memo and the head has one.
    pub marked: Option<&'a [u8]>,
}

/// The `Connection` header, classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionHeader {
    /// Absent.
    None,
    /// Has `close`.
    Close,
    /// Has `keep-alive`.
    KeepAlive,
    /// Something else.
    Other,
}
