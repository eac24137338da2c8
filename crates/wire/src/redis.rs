//! Redis's protocol, RESP2 and RESP3, client and server half (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).
//!
//! [`ReplyReader`] takes whole replies out of a stream, and [`Value`] reads one. [`RequestReader`] takes whole
//! requests, and [`Command`] reads one. [`encode`] writes both. Nothing here knows what a server stores, or which reply
//! belongs to which request: they come in the order of the requests, but for [`Value::Push`].
//!
//! Both halves are strict, because a benchmark has to notice a product that sends invalid bytes. Not read: streamed
//! strings and aggregates of RESP3 (`$?`, `*?`), which no server sends, and quotes in inline requests.

mod command;
pub mod encode;
mod frame;
mod value;

pub use command::{Command, Condition, Expiry, Words};
pub use frame::{ReplyFrame, ReplyReader, RequestFrame, RequestReader};
pub use value::{Items, Value};

/// Version of the protocol, which a connection chooses with `HELLO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// What a connection begins with.
    #[default]
    Resp2,
    /// With maps, booleans, doubles, and a null of its own.
    Resp3,
}

/// What a peer did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// A value begins with a byte that is no type of RESP.
    #[error("a value begins with a byte that is no RESP type")]
    BadType,
    /// A length is not a decimal number below 2^32, an integer does not fit 64 bits, or a double is none.
    #[error("a length, an integer or a double is not a number")]
    BadNumber,
    /// A line has CR without LF, or LF without CR.
    #[error("a line does not end in CR LF")]
    BadLineEnd,
    /// The bytes of a string are not followed by CR LF.
    #[error("a string is not followed by CR LF")]
    BadStringEnd,
    /// A null, a boolean or the format of a text is none that RESP has: `_x`, `#x`.
    #[error("a null, a boolean or a text's format is none that RESP has")]
    BadLiteral,
    /// A streamed string or aggregate.
    #[error("a string or an aggregate is streamed, which weir does not read")]
    Streamed,
    /// A line is longer than 64 KiB.
    #[error("a line is longer than 64 KiB")]
    LineTooLong,
    /// A message is larger than the limit, or announces that it will be.
    #[error("a message is larger than the limit")]
    TooLarge,
    /// A request is not an array of strings.
    #[error("a request is not an array of strings")]
    NotACommand,
}
