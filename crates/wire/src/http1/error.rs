//! The ways in which a peer can break the protocol, with one kind for each. The parsers return them.
//!
//! The kinds are small and `Copy`, so that a connection can store its error and counters can count by kind. They
//! carry no positions or bytes.

/// What a peer did wrong. Sections are of RFC 9112 unless another is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Not a status line or request line (sections 3 and 4).
    #[error("the start line is not one of HTTP/1.x")]
    BadStartLine,
    /// A version other than 1.0 and 1.1 (section 2.3).
    #[error("the version is neither HTTP/1.0 nor HTTP/1.1")]
    UnsupportedVersion,
    /// A status code that is not three digits from 100 up (section 4, RFC 9110 section 15).
    #[error("the status code is not a number from 100 to 999")]
    BadStatus,
    /// A request target in none of the three forms that weir serves (section 3.2).
    #[error("the request target is not a path, an absolute URI or *")]
    BadTarget,
    /// `CONNECT`: weir does not tunnel (RFC 9110 section 9.3.6).
    #[error("the method is CONNECT, and weir does not tunnel")]
    ConnectMethod,
    /// 101: weir asks for no upgrade (RFC 9110 section 15.2.2).
    #[error("the response is 101 Switching Protocols, and no upgrade was asked for")]
    SwitchingProtocols,

    /// The head is larger than [`super::Limits::head_bytes`].
    #[error("a head of more than {0} bytes")]
    HeadTooLarge(u32),
    /// More headers than [`super::Limits::headers`].
    #[error("more than {0} headers")]
    TooManyHeaders(u32),
    /// A line that ends in LF without CR (section 2.2).
    #[error("a line ends in LF without CR")]
    BareLf,
    /// CR inside a line (section 2.2).
    #[error("a line has CR inside it")]
    BareCr,
    /// NUL in a head (RFC 9110 section 5.5).
    #[error("a line has a NUL byte")]
    Nul,
    /// Another control byte, other than a tab (RFC 9110 section 5.5).
    #[error("a line has a control byte")]
    ControlByte,
    /// A header continued on the next line (section 5.2).
    #[error("a header is folded over two lines")]
    ObsFold,
    /// White space between a header's name and its colon (section 5.1).
    #[error("there is white space before a header's colon")]
    SpaceBeforeColon,
    /// A header without a colon, or with a name that is no token (section 5.1).
    #[error("a header's name is not a token followed by a colon")]
    BadHeaderName,

    /// Not a decimal number below 2^64 (section 6.3, RFC 9110 section 8.6).
    #[error("Content-Length is not a number")]
    BadContentLength,
    /// Several lengths that differ (section 6.3).
    #[error("Content-Length is given twice and differs")]
    DifferingContentLengths,
    /// Both framings at once (section 6.1).
    #[error("the message has both Content-Length and Transfer-Encoding")]
    LengthAndTransferEncoding,
    /// Anything but one `chunked` (sections 6.1 and 7.1); weir never offers another coding.
    #[error("Transfer-Encoding is something other than chunked")]
    BadTransferEncoding,
    /// Transfer-Encoding in a message of HTTP/1.0 (section 6.1).
    #[error("an HTTP/1.0 message has Transfer-Encoding")]
    TransferEncodingIn10,
    /// A request of HTTP/1.1 without `Host` (section 3.2).
    #[error("the request has no Host header")]
    MissingHost,
    /// More than one `Host` (section 3.2).
    #[error("the request has more than one Host header")]
    RepeatedHost,
    /// A `Host` that is no host and port (section 3.2).
    #[error("the Host header is not a host with an optional port")]
    BadHost,

    /// A chunk-size line that does not begin with a hexadecimal number below 2^64 (section 7.1).
    #[error("a chunk's size is not a hexadecimal number")]
    BadChunkSize,
    /// The size is followed by something that is not a chunk extension (section 7.1.1).
    #[error("a chunk's size is followed by something that is no extension")]
    BadChunkExtension,
    /// The line is longer than [`super::Limits::chunk_line_bytes`].
    #[error("a chunk-size line of more than {0} bytes")]
    ChunkLineTooLong(u32),
    /// A chunk's data is not followed by CR LF (section 7.1).
    #[error("a chunk's data is not followed by a line end")]
    BadChunkEnd,
    /// The trailers are larger than [`super::Limits::trailer_bytes`].
    #[error("trailers of more than {0} bytes")]
    TrailersTooLarge(u32),

    /// Bytes arrived although no request was waiting for a response.
    #[error("bytes came although no request was waiting for a response")]
    Unsolicited,
    /// Bytes arrived after a message that was the connection's last (section 9.6).
    #[error("bytes came after the message that closes the connection")]
    DataAfterClose,
    /// The peer closed with requests unanswered, before the first byte of the next response.
    #[error("the connection was closed before the response began")]
    ClosedBeforeResponse,
    /// The peer closed inside a head (section 8).
    #[error("the connection was closed in the middle of a head")]
    TruncatedHead,
    /// The peer closed inside a body (section 8).
    #[error("the connection was closed in the middle of a body")]
    TruncatedBody,
}

impl ParseError {
    /// The status that a server responds with when reading a request fails with this error (RFC 9110 sections 15.5
    /// and 15.6, RFC 6585 section 5).
    pub fn status(self) -> u16 {
        match self {
            ParseError::HeadTooLarge(_) | ParseError::TooManyHeaders(_) | ParseError::TrailersTooLarge(_) => 431,
            ParseError::UnsupportedVersion => 505,
            ParseError::BadTransferEncoding | ParseError::ConnectMethod => 501,
            _ => 400,
        }
    }
}
