//! Reading and writing a reply.

use super::frame::split;
use super::words::{check_key, check_text, put, put_data, put_number};
use super::{EncodeError, ParseError, Words};
use crate::http1::encode::decimal;

/// A reply, or a part of one: each value is one of these, and [`Reply::End`] follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// A value.
    Value {
        /// Its key.
        key: &'a [u8],
        /// What it was written with.
        flags: u32,
        /// Its version number, if that was asked for.
        cas: Option<u64>,
        /// The value.
        data: &'a [u8],
    },
    /// There are no further values.
    End,
    /// The value was written.
    Stored,
    /// It was not, because of its condition.
    NotStored,
    /// It was not, because the one that there is has another version number.
    Exists,
    /// There is no such key.
    NotFound,
    /// The key was removed.
    Deleted,
    /// The key's time was set.
    Touched,
    /// What a number is now.
    Number(u64),
    /// It was done.
    Ok,
    /// The server's version.
    Version(&'a [u8]),
    /// There is no such command.
    Error,
    /// The request is wrong, and why.
    ClientError(&'a [u8]),
    /// The server cannot do it, and why.
    ServerError(&'a [u8]),
}

impl<'a> Reply<'a> {
    /// Reads a reply.
    ///
    /// # Errors
    /// What the peer did wrong, as far as [`super::ReplyReader`] did not find it.
    #[inline]
    pub fn parse(message: &'a [u8]) -> Result<Reply<'a>, ParseError> {
        const BAD: ParseError = ParseError::BadReply;
        let (mut words, data) = split(message)?;
        let name = words.needed(BAD)?;
        let alone = |reply: Reply<'a>| words.end(BAD).map(|()| reply);
        // The line behind its first word and a space.
        let text = || message[name.len()..].strip_suffix(b"\r\n").unwrap_or_default().trim_ascii_start();
        match name {
            b"VALUE" => {
                let (key, flags) = (words.key(BAD)?, words.number(BAD)?);
                words.next();
                let cas = match words.next() {
                    Some(word) => Some(Words::of(word).number(BAD)?),
                    None => None,
                };
                words.end(BAD)?;
                Ok(Reply::Value { key, flags, cas, data })
            }
            b"END" => alone(Reply::End),
            b"STORED" => alone(Reply::Stored),
            b"NOT_STORED" => alone(Reply::NotStored),
            b"EXISTS" => alone(Reply::Exists),
            b"NOT_FOUND" => alone(Reply::NotFound),
            b"DELETED" => alone(Reply::Deleted),
            b"TOUCHED" => alone(Reply::Touched),
            b"OK" => alone(Reply::Ok),
            b"ERROR" => alone(Reply::Error),
            b"VERSION" => Ok(Reply::Version(text())),
            b"CLIENT_ERROR" => Ok(Reply::ClientError(text())),
            b"SERVER_ERROR" => Ok(Reply::ServerError(text())),
            _ if name[0].is_ascii_digit() => alone(Reply::Number(Words::of(name).number(BAD)?)),
            _ => Err(BAD),
        }
    }

    /// Appends the reply.
    ///
    /// # Errors
    /// What cannot be written. `out` is then unchanged.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match *self {
            Reply::Value { key, flags, cas, data } => {
                check_key(key)?;
                out.extend_from_slice(b"VALUE");
                put(out, key);
                put_number(out, flags.into());
                put_number(out, data.len() as u64);
                if let Some(cas) = cas {
                    put_number(out, cas);
                }
                put_data(out, data);
                return Ok(());
            }
            Reply::Number(number) => {
                let (digits, first) = decimal(number);
                out.extend_from_slice(&digits[first..]);
            }
            Reply::Version(text) => put_text(out, b"VERSION", text)?,
            Reply::ClientError(text) => put_text(out, b"CLIENT_ERROR", text)?,
            Reply::ServerError(text) => put_text(out, b"SERVER_ERROR", text)?,
            Reply::End => out.extend_from_slice(b"END"),
            Reply::Stored => out.extend_from_slice(b"STORED"),
            Reply::NotStored => out.extend_from_slice(b"NOT_STORED"),
            Reply::Exists => out.extend_from_slice(b"EXISTS"),
            Reply::NotFound => out.extend_from_slice(b"NOT_FOUND"),
            Reply::Deleted => out.extend_from_slice(b"DELETED"),
            Reply::Touched => out.extend_from_slice(b"TOUCHED"),
            Reply::Ok => out.extend_from_slice(b"OK"),
            Reply::Error => out.extend_from_slice(b"ERROR"),
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}

fn put_text(out: &mut Vec<u8>, name: &[u8], text: &[u8]) -> Result<(), EncodeError> {
    check_text(text)?;
    out.extend_from_slice(name);
    put(out, text);
    Ok(())
}
