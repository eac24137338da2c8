//! Memcached's protocol, its text commands, client and server half (<https://docs.memcached.org/protocols/basic/>).
//!
//! [`ReplyReader`] and [`RequestReader`] take whole messages out of a stream; [`Reply`] and [`Command`] read and write
//! one. Replies come in the order of the requests, but requests that are quiet have none, and one that reads has a
//! reply for each value and an [`Reply::End`]: who reads them knows what was asked.
//!
//! Both halves are strict, because a benchmark has to notice a product that sends invalid bytes. Not read: the meta
//! commands, which proxies such as twemproxy do not speak, and the binary protocol, which is deprecated.

mod command;
mod frame;
mod reply;
mod words;

pub use command::{Command, Store};
pub use frame::{ReplyFrame, ReplyReader, RequestFrame, RequestReader};
pub use reply::Reply;
pub use words::Words;

/// Longest key, bytes.
pub const MOST_KEY: usize = 250;

/// What a peer did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// A reply that there is not, or with other words than it has.
    #[error("a line is no reply of memcached")]
    BadReply,
    /// A request does not begin with a command, or has other words than it needs.
    #[error("a line is no command of memcached, or has not the words that its command needs")]
    BadCommand,
    /// A number is not decimal, or too large.
    #[error("a number is not decimal, or too large")]
    BadNumber,
    /// A key is longer than 250 bytes or has a control byte.
    #[error("a key is longer than 250 bytes or has a control byte")]
    BadKey,
    /// A line has CR without LF, or LF without CR.
    #[error("a line does not end in CR LF")]
    BadLineEnd,
    /// The bytes of a value are not followed by CR LF.
    #[error("a value is not followed by CR LF")]
    BadDataEnd,
    /// A line is longer than 64 KiB.
    #[error("a line is longer than 64 KiB")]
    LineTooLong,
    /// A message is larger than the limit, or announces that it will be.
    #[error("a message is larger than the limit")]
    TooLarge,
}

/// Why a message cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A key is empty or longer than 250 bytes, or has a space or a control byte.
    #[error("a key is empty or longer than 250 bytes, or has a space or a control byte")]
    BadKey,
    /// A text has a line end, or a command's name something else than letters.
    #[error("a text has a line end, or a command's name something else than letters")]
    BadText,
}
