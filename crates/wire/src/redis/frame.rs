//! Where a reply or a request ends. It does not know what values mean.
//!
//! A message is one value, and an aggregate has further values behind it. It is enough to count how many values are
//! still to come: each one takes one away, and an aggregate adds its elements. So nothing is recursive, and what is
//! complete is not looked at again, in whatever pieces the rest arrives.

use super::ParseError;
use crate::messages::{Extent, Frame, Line, LineError, Messages, line};

/// Takes whole replies out of a stream.
pub type ReplyReader = Messages<ReplyFrame>;

/// Takes whole requests out of a stream.
pub type RequestReader = Messages<RequestFrame>;

/// Finds the end of replies.
#[derive(Debug)]
pub struct ReplyFrame(Scan);

impl ReplyFrame {
    /// Replies of at most `limit` bytes, below 4 GiB.
    pub fn new(limit: usize) -> ReplyFrame {
        ReplyFrame(Scan::new(limit))
    }
}

impl Frame for ReplyFrame {
    type Error = ParseError;

    #[inline]
    fn extent(&mut self, bytes: &[u8]) -> Result<Extent, ParseError> {
        self.0.extent::<false>(bytes)
    }
}

/// Finds the end of requests: arrays of strings, or a line of words (an inline request).
#[derive(Debug)]
pub struct RequestFrame(Scan);

impl RequestFrame {
    /// Requests of at most `limit` bytes, below 4 GiB.
    pub fn new(limit: usize) -> RequestFrame {
        RequestFrame(Scan::new(limit))
    }
}

impl Frame for RequestFrame {
    type Error = ParseError;

    #[inline]
    fn extent(&mut self, bytes: &[u8]) -> Result<Extent, ParseError> {
        match bytes.first() {
            Some(b'*') => self.0.extent::<true>(bytes),
            _ => Ok(match line(bytes, self.0.limit as usize)? {
                Line::Whole { length, .. } => Extent::Whole(length),
                Line::Open(most) => Extent::Line(most),
            }),
        }
    }
}

/// How much of a message was seen.
#[derive(Debug)]
struct Scan {
    /// Where the next value begins.
    at: u32,
    /// Values still to come.
    values: u32,
    /// The longest message, bytes.
    limit: u32,
}

impl Scan {
    fn new(limit: usize) -> Scan {
        Scan { at: 0, values: 1, limit: u32::try_from(limit).unwrap_or(u32::MAX) }
    }

    /// See [`Frame::extent`]. `REQUEST`: it is an array, and all others are strings.
    #[inline]
    fn extent<const REQUEST: bool>(&mut self, bytes: &[u8]) -> Result<Extent, ParseError> {
        while self.values > 0 {
            let at = self.at as usize;
            // A peer that speaks something else is told from a slow one by its first byte.
            match bytes.get(at) {
                Some(b'$') => {}
                Some(_) if REQUEST && at > 0 => return Err(ParseError::NotACommand),
                Some(kind) if !TYPES.contains(kind) => return Err(ParseError::BadType),
                Some(_) => {}
                None => return Ok(Extent::Bytes(1)),
            }
            let room = self.limit as usize - at;
            let (header, next) = match Header::short(&bytes[at..]) {
                Some(short) if short.1 <= room => short,
                _ => match line(&bytes[at..], room)? {
                    Line::Whole { text, length } => (Header::of(text)?, length),
                    Line::Open(most) => return Ok(Extent::Line(most)),
                },
            };
            if REQUEST && at > 0 && header == Header::Null {
                return Err(ParseError::NotACommand);
            }
            let length = next + header.follows();
            // Each value to come has at least three bytes.
            let values = u64::from(self.values) - 1 + header.elements();
            if length as u64 + 3 * values > room as u64 {
                return Err(ParseError::TooLarge);
            }
            let end = at + length;
            if bytes.len() < end {
                return Ok(Extent::Bytes(end - bytes.len()));
            }
            if header.follows() > 0 && &bytes[end - 2..end] != b"\r\n" {
                return Err(ParseError::BadStringEnd);
            }
            // Neither is above the limit.
            (self.at, self.values) = (end as u32, values as u32);
        }
        let whole = std::mem::take(&mut self.at);
        self.values = 1;
        Ok(Extent::Whole(whole as usize))
    }
}

/// What values begin with.
const TYPES: &[u8] = b"$+-:*_#,(!=%~>|";

impl From<LineError> for ParseError {
    fn from(error: LineError) -> ParseError {
        match error {
            LineError::BadEnd => ParseError::BadLineEnd,
            LineError::TooLong => ParseError::LineTooLong,
            LineError::NoRoom => ParseError::TooLarge,
        }
    }
}

/// The first line of a message that is whole, and what follows it.
#[inline]
pub(super) fn split_line(bytes: &[u8]) -> Result<(&[u8], &[u8]), ParseError> {
    match line(bytes, usize::MAX)? {
        Line::Whole { text, length } => Ok((text, &bytes[length..])),
        Line::Open(_) => Err(ParseError::BadLineEnd),
    }
}

/// What the first line of a value says of what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    /// The line is all.
    Line,
    /// A string of this length.
    String(usize),
    /// An aggregate with so many values.
    Elements(u64),
    /// Attributes: so many values, and then the value that they belong to.
    Attributes(u64),
    /// A null, written as a string or an array of length -1.
    Null,
}

impl Header {
    /// That of the commonest values, with the length of its line: a string with a length of a few digits, a null string, and
    /// `+OK`. They are read sooner than the end of a line is searched for.
    #[inline]
    pub(super) fn short(bytes: &[u8]) -> Option<(Header, usize)> {
        if bytes.starts_with(b"+OK\r\n") {
            return Some((Header::Line, 5));
        }
        let digits = bytes.strip_prefix(b"$")?;
        if digits.starts_with(b"-1\r\n") {
            return Some((Header::Null, 5));
        }
        let mut length = 0;
        for (at, byte) in digits.iter().enumerate().take(9) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return (at > 0 && digits[at..].starts_with(b"\r\n")).then_some((Header::String(length), at + 3));
            }
            length = length * 10 + usize::from(digit);
        }
        None
    }

    #[inline]
    pub(super) fn of(line: &[u8]) -> Result<Header, ParseError> {
        let (kind, rest) = line.split_first().ok_or(ParseError::BadType)?;
        Ok(match kind {
            b'$' | b'*' if rest == b"-1" => Header::Null,
            b'$' | b'=' | b'!' => Header::String(count(rest)? as usize),
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => Header::Line,
            b'*' | b'~' | b'>' => Header::Elements(count(rest)?),
            b'%' => Header::Elements(2 * count(rest)?),
            b'|' => Header::Attributes(2 * count(rest)?),
            _ => return Err(ParseError::BadType),
        })
    }

    /// Bytes behind the line that belong to this value itself.
    #[inline]
    fn follows(self) -> usize {
        match self {
            Header::String(length) => length + 2,
            _ => 0,
        }
    }

    /// Values that follow.
    #[inline]
    fn elements(self) -> u64 {
        match self {
            Header::Elements(count) => count,
            Header::Attributes(count) => count + 1,
            _ => 0,
        }
    }
}

/// A length: digits only, below 2^32, so that sums of a few do not overflow.
#[inline]
fn count(digits: &[u8]) -> Result<u64, ParseError> {
    if digits == b"?" {
        return Err(ParseError::Streamed);
    }
    if digits.is_empty() || digits.len() > 10 {
        return Err(ParseError::BadNumber);
    }
    let number = digits.iter().try_fold(0_u64, |number, digit| match digit {
        b'0'..=b'9' => Ok(number * 10 + u64::from(digit - b'0')),
        _ => Err(ParseError::BadNumber),
    })?;
    if number > u64::from(u32::MAX) { Err(ParseError::BadNumber) } else { Ok(number) }
}
