//! Errors: of a connection, of a stream, and of the caller's requests.

use std::fmt;

/// An error code (RFC 9113 section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Code = Code($number);)*
        }

        impl fmt::Display for Code {
            /// The name that RFC 9113 has for it, or `error code` and the number.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    $($number => f.write_str(stringify!($name)),)*
                    other => write!(f, "error code {other}"),
                }
            }
        }
    };
}

codes! {
    /// There is no error.
    NO_ERROR = 0,
    /// Something that the protocol forbids.
    PROTOCOL_ERROR = 1,
    /// An internal error of the sender.
    INTERNAL_ERROR = 2,
    /// More was sent than the window allowed.
    FLOW_CONTROL_ERROR = 3,
    /// SETTINGS were not acknowledged in time.
    SETTINGS_TIMEOUT = 4,
    /// A frame for a stream that is closed.
    STREAM_CLOSED = 5,
    /// A frame of a wrong size.
    FRAME_SIZE_ERROR = 6,
    /// The stream was refused before anything was done for it; it can be tried again.
    REFUSED_STREAM = 7,
    /// The stream is no longer needed.
    CANCEL = 8,
    /// Header compression is out of sync.
    COMPRESSION_ERROR = 9,
    /// The connection of a CONNECT failed.
    CONNECT_ERROR = 10,
    /// The peer's behaviour looks like an attack.
    ENHANCE_YOUR_CALM = 11,
    /// The transport is not secure enough.
    INADEQUATE_SECURITY = 12,
    /// HTTP/1.1 is required.
    HTTP_1_1_REQUIRED = 13,
}

/// A connection error: the connection is unusable. GOAWAY with the code has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{violation} ({code})")]
pub struct ConnectionError {
    /// The code that GOAWAY carries.
    pub code: Code,
    /// What the peer did.
    pub violation: Violation,
}

/// What a peer did that ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A client's first bytes are not [`super::PREFACE`].
    #[error("what came first is not the HTTP/2 preface")]
    BadPreface,
    /// The first frame is not SETTINGS (RFC 9113 section 3.4).
    #[error("the first frame is not SETTINGS")]
    NoSettings,
    /// Longer than SETTINGS_MAX_FRAME_SIZE allows, or of a length that its type cannot have (section 4.2).
    #[error("a frame has a size that it cannot have")]
    FrameSize,
    /// On stream 0 where that is forbidden, on another stream where 0 is required, or on one that cannot be used yet.
    #[error("a frame came on a stream that it cannot have")]
    WrongStream,
    /// A frame for a stream that has ended (section 5.1).
    #[error("a frame came for a stream that has ended")]
    StreamClosed,
    /// Padding that is longer than the frame (section 6.1).
    #[error("a frame has more padding than bytes")]
    Padding,
    /// A setting with a value that it cannot have (section 6.5.2).
    #[error("a setting has a value that it cannot have")]
    BadSetting,
    /// A window above 2^31 - 1 (sections 6.5.2 and 6.9.1).
    #[error("a window grows beyond 2^31 - 1")]
    BadWindow,
    /// WINDOW_UPDATE by 0 (section 6.9).
    #[error("a window grows by nothing")]
    NoIncrement,
    /// More data than the window allowed (section 6.9.1).
    #[error("more data came than there was a window for")]
    WindowExceeded,
    /// CONTINUATION where none belongs, or none where one does (section 6.10).
    #[error("a header block is interrupted, or continued where there is none")]
    Continuation,
    /// A header block that cannot be decoded (RFC 7541).
    #[error("a header block cannot be decoded")]
    Compression,
    /// A header block above the limits.
    #[error("a header block of more than {0} bytes")]
    BlockTooLarge(u32),
    /// PUSH_PROMISE, which a client has switched off and a server never takes (section 8.4).
    #[error("the peer pushes")]
    Push,
    /// GOAWAY that takes back what an earlier one said (section 6.8).
    #[error("a GOAWAY allows more than the one before it")]
    BadGoAway,
    /// An endless series of frames that make no progress.
    #[error("too many frames bring nothing forward")]
    Flood,
    /// An endless series of streams that are opened and reset.
    #[error("too many streams are reset")]
    ResetFlood,
}

impl Violation {
    /// The code that GOAWAY carries.
    pub fn code(self) -> Code {
        match self {
            Violation::FrameSize => Code::FRAME_SIZE_ERROR,
            Violation::StreamClosed => Code::STREAM_CLOSED,
            Violation::BadWindow | Violation::WindowExceeded => Code::FLOW_CONTROL_ERROR,
            Violation::Compression => Code::COMPRESSION_ERROR,
            Violation::BlockTooLarge(_) | Violation::Flood | Violation::ResetFlood => Code::ENHANCE_YOUR_CALM,
            _ => Code::PROTOCOL_ERROR,
        }
    }
}

/// What is wrong with one message: a stream error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// A name with upper-case letters or other bytes that no name has (RFC 9113 section 8.2.1).
    #[error("a header's name is malformed")]
    BadName,
    /// A value with control bytes, or white space at an end (section 8.2.1).
    #[error("a header's value is malformed")]
    BadValue,
    /// `Connection` and what belongs to it, or `TE` other than `trailers` (section 8.2.2).
    #[error("a header belongs to HTTP/1.1's connections")]
    ConnectionHeader,
    /// A pseudo-header that is unknown, repeated, missing, behind a header, malformed or in trailers (section 8.3).
    #[error("a pseudo-header is missing, repeated, unknown, malformed or out of place")]
    PseudoHeader,
    /// `:authority` and `Host` differ (section 8.3.1).
    #[error(":authority and Host differ")]
    DifferingHosts,
    /// Not a number, or two that differ (section 8.1.1).
    #[error("Content-Length is no number, or two that differ")]
    BadContentLength,
    /// The body is longer or shorter than announced, or is not allowed (section 8.1.1).
    #[error("the body does not have the length that Content-Length says")]
    WrongLength,
    /// Trailers that do not end the stream, data before the head, an interim response that ends the stream (section
    /// 8.1).
    #[error("header blocks and data come in a wrong order")]
    WrongOrder,
    /// Larger than [`super::Limits::header_list`].
    #[error("a header list of more than {0} bytes")]
    TooLarge(u32),
    /// More headers than [`super::Limits::headers`].
    #[error("more than {0} headers")]
    TooManyHeaders(u32),
    /// CONNECT, which is not served.
    #[error("CONNECT is not served")]
    Connect,
    /// More data than the stream's window allowed (section 6.9.1).
    #[error("more data came than the stream had a window for")]
    WindowExceeded,
    /// A window above 2^31 - 1 (section 6.9.1).
    #[error("the stream's window grows beyond 2^31 - 1")]
    BadWindow,
    /// WINDOW_UPDATE by 0 (section 6.9).
    #[error("the stream's window grows by nothing")]
    NoIncrement,
    /// The stream ends before its head is whole (RFC 9114 section 4.1). HTTP/3 only.
    #[error("the stream ended before its head")]
    Incomplete,
}

impl StreamError {
    /// The code that RST_STREAM carries.
    pub fn code(self) -> Code {
        match self {
            StreamError::WindowExceeded | StreamError::BadWindow => Code::FLOW_CONTROL_ERROR,
            StreamError::TooLarge(_) | StreamError::TooManyHeaders(_) => Code::ENHANCE_YOUR_CALM,
            StreamError::Connect => Code::CONNECT_ERROR,
            _ => Code::PROTOCOL_ERROR,
        }
    }
}

/// Why a stream ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResetCause {
    /// The peer reset it.
    #[error("reset by the peer: {0}")]
    Peer(Code),
    /// What the peer sent on it is malformed. It has been reset.
    #[error("{0}")]
    Malformed(StreamError),
    /// GOAWAY said that it was not processed, and will not be.
    #[error("not processed: the peer goes away")]
    GoneAway,
}

impl ResetCause {
    /// Whether the peer certainly did not process the request, so that it can be sent again (RFC 9113 section 8.7).
    pub fn not_processed(self) -> bool {
        matches!(self, ResetCause::GoneAway | ResetCause::Peer(Code::REFUSED_STREAM))
    }
}

/// Why something was not sent. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The limit of open streams is reached: [`super::Client::streams`].
    #[error("as many streams are open as may be")]
    Full,
    /// GOAWAY was sent or has come, or the connection failed. A new connection is needed.
    #[error("the connection takes no more requests")]
    Closing,
    /// A connection has 2^30 stream numbers, and all are used (RFC 9113 section 5.1.1). A new connection is needed.
    #[error("the connection has no stream numbers left")]
    Exhausted,
    /// A filled-in value cannot be sent, or the number of values is not the template's.
    #[error("what was filled into the template cannot be sent")]
    BadValue,
    /// The stream is gone, or its response has begun (or ended) already.
    #[error("the stream takes no such thing now")]
    NoStream,
}

/// What can never be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// Not a token, or `CONNECT`.
    #[error("{0:?} is not a method that can be sent")]
    BadMethod(String),
    /// Not `http` or `https`.
    #[error("{0:?} is not http or https")]
    BadScheme(String),
    /// Not origin form, nor `*`.
    #[error("{0:?} is not a path: it begins with / and has no spaces, or is *")]
    BadPath(String),
    /// Not a host with an optional port.
    #[error("{0:?} is not a host with an optional port")]
    BadAuthority(String),
    /// Not a token. Upper case is made lower case.
    #[error("{0:?} is not a header's name")]
    BadName(String),
    /// A control byte inside, or white space at an end.
    #[error("the header {0} has a control byte, or white space at an end of its value")]
    BadValue(String),
    /// `connection`, `keep-alive`, `proxy-connection`, `transfer-encoding`, `upgrade`, or `te` other than `trailers`.
    #[error("the header {0} belongs to HTTP/1.1 and cannot be sent in HTTP/2 (RFC 9113 section 8.2.2)")]
    ConnectionHeader(String),
    /// `content-length`, which is derived from the body, or `host`, which is the authority.
    #[error("the header {0} is written from the body or the authority and cannot be given")]
    Derived(String),
    /// Not from 100 to 999, or 101, which HTTP/2 does not have.
    #[error("{0} is not a status code of HTTP/2")]
    BadStatus(u16),
    /// No header has this index.
    #[error("there is no header {0} that could change")]
    NoSuchHeader(usize),
}
