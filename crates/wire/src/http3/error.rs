//! Errors of a connection and of a stream, with their codes.

use std::fmt;

use crate::http2::StreamError;

/// An error code (RFC 9114 section 8.1, RFC 9204 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal $text:literal,)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Code = Code($number);)*
        }

        impl fmt::Display for Code {
            /// The name that the RFC has for it, or `error code` and the number.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    $($number => f.write_str($text),)*
                    other => write!(f, "error code {other:#x}"),
                }
            }
        }
    };
}

codes! {
    /// There is no error.
    NO_ERROR = 0x100 "H3_NO_ERROR",
    /// Something that the protocol forbids, and no other code fits.
    GENERAL_PROTOCOL_ERROR = 0x101 "H3_GENERAL_PROTOCOL_ERROR",
    /// An internal error of the sender.
    INTERNAL_ERROR = 0x102 "H3_INTERNAL_ERROR",
    /// A stream that cannot be opened by the peer, or not again.
    STREAM_CREATION_ERROR = 0x103 "H3_STREAM_CREATION_ERROR",
    /// A stream was closed that the connection needs.
    CLOSED_CRITICAL_STREAM = 0x104 "H3_CLOSED_CRITICAL_STREAM",
    /// A frame that is not allowed now or on this stream.
    FRAME_UNEXPECTED = 0x105 "H3_FRAME_UNEXPECTED",
    /// A frame of a wrong form or size.
    FRAME_ERROR = 0x106 "H3_FRAME_ERROR",
    /// The peer's behaviour looks like an attack.
    EXCESSIVE_LOAD = 0x107 "H3_EXCESSIVE_LOAD",
    /// A stream or push ID that cannot be used.
    ID_ERROR = 0x108 "H3_ID_ERROR",
    /// SETTINGS of a wrong content.
    SETTINGS_ERROR = 0x109 "H3_SETTINGS_ERROR",
    /// A control stream that does not begin with SETTINGS.
    MISSING_SETTINGS = 0x10a "H3_MISSING_SETTINGS",
    /// The request was refused before anything was done for it; it can be tried again.
    REQUEST_REJECTED = 0x10b "H3_REQUEST_REJECTED",
    /// The request or its response is no longer needed.
    REQUEST_CANCELLED = 0x10c "H3_REQUEST_CANCELLED",
    /// A stream ended before its request was whole.
    REQUEST_INCOMPLETE = 0x10d "H3_REQUEST_INCOMPLETE",
    /// A malformed message.
    MESSAGE_ERROR = 0x10e "H3_MESSAGE_ERROR",
    /// The connection of a CONNECT failed.
    CONNECT_ERROR = 0x10f "H3_CONNECT_ERROR",
    /// Another version of HTTP is required.
    VERSION_FALLBACK = 0x110 "H3_VERSION_FALLBACK",
    /// A field section that cannot be decoded.
    QPACK_DECOMPRESSION_FAILED = 0x200 "QPACK_DECOMPRESSION_FAILED",
    /// A wrong instruction of the peer's encoder.
    QPACK_ENCODER_STREAM_ERROR = 0x201 "QPACK_ENCODER_STREAM_ERROR",
    /// A wrong instruction of the peer's decoder.
    QPACK_DECODER_STREAM_ERROR = 0x202 "QPACK_DECODER_STREAM_ERROR",
}

/// A connection error: close the connection with its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{violation} ({code})")]
pub struct ConnectionError {
    /// The code to close with.
    pub code: Code,
    /// What the peer did.
    pub violation: Violation,
}

/// What a peer did that ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The control stream does not begin with SETTINGS (RFC 9114 section 6.2.1).
    #[error("the control stream does not begin with SETTINGS")]
    NoSettings,
    /// A frame of this type where it is not allowed (section 7.2), or a type that HTTP/2 had (section 7.2.8).
    #[error("a frame of type {0:#x} came where none may come")]
    UnexpectedFrame(u64),
    /// A frame whose content is shorter or longer than its length says (section 7.1).
    #[error("a frame has a size that it cannot have")]
    FrameSize,
    /// A stream that ends within a frame (section 7.1).
    #[error("a stream ends within a frame")]
    TruncatedFrame,
    /// A frame of the control stream that is larger than any that is known.
    #[error("a frame of {0} bytes on the control stream")]
    FrameTooLarge(u64),
    /// A setting that HTTP/2 had (section 7.2.4.1), or one twice (section 7.2.4).
    #[error("the setting {0:#x} is reserved or repeated")]
    BadSetting(u64),
    /// A push, which no client of ours allows (sections 4.6, 7.2.5).
    #[error("the peer pushes")]
    Push,
    /// A push stream of a client (section 6.2.2).
    #[error("a client opened a push stream")]
    ClientPush,
    /// The ID of a push that nobody promised, or a limit that falls (sections 7.2.3, 7.2.7).
    #[error("a frame names a push that cannot be")]
    BadPushId,
    /// GOAWAY with the ID of no request, or that takes back what an earlier one said (sections 5.2, 7.2.6).
    #[error("a GOAWAY names no request, or allows more than the one before it")]
    BadGoAway,
    /// A second control stream, or a second one of QPACK's (section 6.2.1, RFC 9204 section 4.2).
    #[error("a second stream of a type that a connection has once")]
    RepeatedStream,
    /// A stream in both directions that a server opened (section 6.1).
    #[error("the server opened a stream for requests")]
    ServerRequest,
    /// A stream that cannot be the peer's.
    #[error("bytes came on a stream that the peer cannot write to")]
    WrongStream,
    /// The end of a stream that has none (section 6.2.1).
    #[error("the peer ended a stream that the connection needs")]
    ClosedCriticalStream,
    /// A field section that cannot be decoded (RFC 9204 section 4.5).
    #[error("a field section cannot be decoded")]
    Compression,
    /// A field section that refers to the table, which has no room for an entry (section 2.2.3).
    #[error("a field section refers to the dynamic table, which has no entries")]
    DynamicReference,
    /// The peer's encoder does something with a table that has no room (section 4.3).
    #[error("an instruction for a dynamic table that has no room")]
    EncoderInstruction,
    /// The peer's decoder acknowledges what was never sent (section 4.4).
    #[error("an acknowledgement of a dynamic table that was not used")]
    DecoderInstruction,
    /// More unidirectional streams than anybody needs.
    #[error("too many unidirectional streams")]
    TooManyStreams,
    /// An endless series of frames that make no progress.
    #[error("too many frames bring nothing forward")]
    Flood,
    /// An endless series of streams that are opened and reset.
    #[error("too many streams are reset")]
    ResetFlood,
}

impl Violation {
    /// The code to close the connection with.
    pub fn code(self) -> Code {
        match self {
            Violation::NoSettings => Code::MISSING_SETTINGS,
            Violation::UnexpectedFrame(_) => Code::FRAME_UNEXPECTED,
            Violation::FrameSize | Violation::TruncatedFrame => Code::FRAME_ERROR,
            Violation::BadSetting(_) => Code::SETTINGS_ERROR,
            Violation::Push | Violation::BadPushId | Violation::BadGoAway => Code::ID_ERROR,
            Violation::ClientPush | Violation::RepeatedStream | Violation::ServerRequest | Violation::WrongStream => {
                Code::STREAM_CREATION_ERROR
            }
            Violation::ClosedCriticalStream => Code::CLOSED_CRITICAL_STREAM,
            Violation::Compression | Violation::DynamicReference => Code::QPACK_DECOMPRESSION_FAILED,
            Violation::EncoderInstruction => Code::QPACK_ENCODER_STREAM_ERROR,
            Violation::DecoderInstruction => Code::QPACK_DECODER_STREAM_ERROR,
            Violation::FrameTooLarge(_) | Violation::TooManyStreams | Violation::Flood | Violation::ResetFlood => {
                Code::EXCESSIVE_LOAD
            }
        }
    }
}

/// The code with which a stream is reset for what is wrong with its message (RFC 9114 section 4.1.2).
pub fn code_of(fault: StreamError) -> Code {
    match fault {
        StreamError::TooLarge(_) | StreamError::TooManyHeaders(_) => Code::EXCESSIVE_LOAD,
        StreamError::Connect => Code::CONNECT_ERROR,
        StreamError::Incomplete => Code::REQUEST_INCOMPLETE,
        _ => Code::MESSAGE_ERROR,
    }
}

/// Why a stream ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResetCause {
    /// The peer reset it.
    #[error("reset by the peer: {0}")]
    Peer(Code),
    /// What the peer sent on it is malformed.
    #[error("{0}")]
    Malformed(StreamError),
    /// GOAWAY said that it was not processed, and will not be.
    #[error("not processed: the peer goes away")]
    GoneAway,
}

impl ResetCause {
    /// The code with which the stream is to be reset, and the peer to be stopped from sending.
    pub fn code(self) -> Code {
        match self {
            ResetCause::Malformed(fault) => code_of(fault),
            ResetCause::Peer(_) | ResetCause::GoneAway => Code::REQUEST_CANCELLED,
        }
    }

    /// Whether the peer certainly did not process the request, so that it can be sent again (RFC 9114 section 4.1.1).
    pub fn not_processed(self) -> bool {
        matches!(self, ResetCause::GoneAway | ResetCause::Peer(Code::REQUEST_REJECTED))
    }
}
