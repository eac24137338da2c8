//! Where a request or a reply ends: it is a line, and for some a value of the length that the line gives.

use super::{ParseError, Words};
use crate::messages::{Extent, Frame, Line, LineError, Messages, line};

/// Takes whole replies out of a stream.
pub type ReplyReader = Messages<ReplyFrame>;

/// Takes whole requests out of a stream.
pub type RequestReader = Messages<RequestFrame>;

/// Finds the end of replies.
#[derive(Debug)]
pub struct ReplyFrame(u32);

impl ReplyFrame {
    /// Replies of at most `limit` bytes, below 4 GiB.
    pub fn new(limit: usize) -> ReplyFrame {
        ReplyFrame(u32::try_from(limit).unwrap_or(u32::MAX))
    }
}

impl Frame for ReplyFrame {
    type Error = ParseError;

    #[inline]
    fn extent(&mut self, bytes: &[u8]) -> Result<Extent, ParseError> {
        // A peer that speaks something else is told from a slow one by its first byte.
        if !bytes.first().is_some_and(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) {
            return Err(ParseError::BadReply);
        }
        extent(bytes, self.0, |mut words| match words.next() {
            Some(b"VALUE") => words.nth(2).map(Some).ok_or(ParseError::BadReply),
            _ => Ok(None),
        })
    }
}

/// Finds the end of requests.
#[derive(Debug)]
pub struct RequestFrame(u32);

impl RequestFrame {
    /// Requests of at most `limit` bytes, below 4 GiB.
    pub fn new(limit: usize) -> RequestFrame {
        RequestFrame(u32::try_from(limit).unwrap_or(u32::MAX))
    }
}

impl Frame for RequestFrame {
    type Error = ParseError;

    #[inline]
    fn extent(&mut self, bytes: &[u8]) -> Result<Extent, ParseError> {
        if !bytes.first().is_some_and(u8::is_ascii_lowercase) {
            return Err(ParseError::BadCommand);
        }
        extent(bytes, self.0, |mut words| match words.next() {
            Some(b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas") => {
                words.nth(3).map(Some).ok_or(ParseError::BadCommand)
            }
            _ => Ok(None),
        })
    }
}

/// See [`Frame::extent`]. `length`: the word of a line that is the length of its value.
#[inline]
fn extent<'a>(
    bytes: &'a [u8],
    limit: u32,
    length: impl FnOnce(Words<'a>) -> Result<Option<&'a [u8]>, ParseError>,
) -> Result<Extent, ParseError> {
    let (text, end) = match line(bytes, limit as usize)? {
        Line::Whole { text, length } => (text, length),
        Line::Open(most) => return Ok(Extent::Line(most)),
    };
    let Some(word) = length(Words::of(text))? else { return Ok(Extent::Whole(end)) };
    let value: u32 = Words::of(word).number(ParseError::BadNumber)?;
    let whole = end + value as usize + 2;
    if whole > limit as usize {
        return Err(ParseError::TooLarge);
    }
    if bytes.len() < whole {
        return Ok(Extent::Bytes(whole - bytes.len()));
    }
    if &bytes[whole - 2..whole] == b"\r\n" { Ok(Extent::Whole(whole)) } else { Err(ParseError::BadDataEnd) }
}

impl From<LineError> for ParseError {
    fn from(error: LineError) -> ParseError {
        match error {
            LineError::BadEnd => ParseError::BadLineEnd,
            LineError::TooLong => ParseError::LineTooLong,
            LineError::NoRoom => ParseError::TooLarge,
        }
    }
}

/// The words of the line of a message that is whole, and its value.
#[inline]
pub(super) fn split(message: &[u8]) -> Result<(Words<'_>, &[u8]), ParseError> {
    match line(message, usize::MAX)? {
        Line::Whole { text, length } => {
            let rest = &message[length..];
            Ok((Words::of(text), rest.strip_suffix(b"\r\n").unwrap_or(rest)))
        }
        Line::Open(_) => Err(ParseError::BadLineEnd),
    }
}
