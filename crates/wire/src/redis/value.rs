//! Reading a reply that is whole.

use super::ParseError;
use super::frame::{Header, split_line};

/// A reply, or an element of one. Strings borrow from the message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// A line, such as `OK`.
    Simple(&'a [u8]),
    /// An error, as a line or as a string; its first word says its kind.
    Error(&'a [u8]),
    /// An integer.
    Integer(i64),
    /// A string, which may hold any bytes.
    Bulk(&'a [u8]),
    /// Nothing, as a string, an array or RESP3's null.
    Null,
    /// True or false.
    Boolean(bool),
    /// A double.
    Double(f64),
    /// An integer of any size, as it is written: digits, and perhaps a sign.
    BigNumber(&'a [u8]),
    /// Text for people.
    Verbatim {
        /// `txt` or `mkd` so far.
        format: [u8; 3],
        /// The text.
        text: &'a [u8],
    },
    /// An array or a set.
    Array(Items<'a>),
    /// Keys and values, one after the other.
    Map(Items<'a>),
    /// Something that no request asked for.
    Push(Items<'a>),
}

/// A value, what follows its header, and how many values there still belong to it.
type Split<'a> = (Value<'a>, &'a [u8], u64);

impl<'a> Value<'a> {
    /// Reads a message. Attributes before the value are passed over. Elements are checked when they are read; they may
    /// be nested as deep as the message is long, so a caller that is recursive needs a limit.
    ///
    /// # Errors
    /// What the peer did wrong, as far as [`super::ReplyReader`] did not find it.
    #[inline]
    pub fn parse(message: &'a [u8]) -> Result<Value<'a>, ParseError> {
        Ok(Value::split(message)?.0)
    }

    #[inline]
    fn split(mut bytes: &'a [u8]) -> Result<Split<'a>, ParseError> {
        loop {
            let (text, rest, header) = match Header::short(bytes) {
                Some((header, length)) => (&bytes[..length - 2], &bytes[length..], header),
                None => {
                    let (text, rest) = split_line(bytes)?;
                    (text, rest, Header::of(text)?)
                }
            };
            let kind = text[0];
            return Ok(match header {
                Header::Line => (Value::line(kind, &text[1..])?, rest, 0),
                Header::Null => (Value::Null, rest, 0),
                Header::String(length) => {
                    let (string, rest) = rest.split_at_checked(length).ok_or(ParseError::BadStringEnd)?;
                    let rest = rest.strip_prefix(b"\r\n").ok_or(ParseError::BadStringEnd)?;
                    (Value::string(kind, string)?, rest, 0)
                }
                Header::Elements(count) => {
                    let items = Items { bytes: rest, left: count };
                    let value = match kind {
                        b'%' => Value::Map(items),
                        b'>' => Value::Push(items),
                        _ => Value::Array(items),
                    };
                    (value, rest, count)
                }
                Header::Attributes(count) => {
                    bytes = skip(rest, count)?;
                    continue;
                }
            });
        }
    }

    #[inline]
    fn line(kind: u8, text: &'a [u8]) -> Result<Value<'a>, ParseError> {
        Ok(match kind {
            b'+' => Value::Simple(text),
            b'-' => Value::Error(text),
            b':' => Value::Integer(number(text)?),
            b',' => Value::Double(number(text)?),
            b'(' => {
                let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
                if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                    return Err(ParseError::BadNumber);
                }
                Value::BigNumber(text)
            }
            b'#' if text == b"t" => Value::Boolean(true),
            b'#' if text == b"f" => Value::Boolean(false),
            b'_' if text.is_empty() => Value::Null,
            _ => return Err(ParseError::BadLiteral),
        })
    }

    #[inline]
    fn string(kind: u8, string: &'a [u8]) -> Result<Value<'a>, ParseError> {
        Ok(match kind {
            b'!' => Value::Error(string),
            b'=' => {
                let ([format @ .., b':'], text) = string.split_first_chunk::<4>().ok_or(ParseError::BadLiteral)? else {
                    return Err(ParseError::BadLiteral);
                };
                Value::Verbatim { format: *format, text }
            }
            _ => Value::Bulk(string),
        })
    }
}

/// What follows so many values. Not recursive.
fn skip(mut bytes: &[u8], mut values: u64) -> Result<&[u8], ParseError> {
    while values > 0 {
        let (text, rest) = split_line(bytes)?;
        bytes = rest;
        values -= 1;
        match Header::of(text)? {
            Header::Line | Header::Null => {}
            Header::String(length) => bytes = bytes.get(length + 2..).ok_or(ParseError::BadStringEnd)?,
            Header::Elements(count) => values += count,
            Header::Attributes(count) => values += count + 1,
        }
    }
    Ok(bytes)
}

/// A number in decimal, with or without a sign.
fn number<N: std::str::FromStr>(text: &[u8]) -> Result<N, ParseError> {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(ParseError::BadNumber)
}

/// The elements of an aggregate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Items<'a> {
    bytes: &'a [u8],
    left: u64,
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Value<'a>, ParseError>;

    fn next(&mut self) -> Option<Result<Value<'a>, ParseError>> {
        self.left = self.left.checked_sub(1)?;
        let next = Value::split(self.bytes).and_then(|(value, rest, values)| Ok((value, skip(rest, values)?)));
        Some(match next {
            Ok((value, rest)) => {
                self.bytes = rest;
                Ok(value)
            }
            Err(error) => {
                self.left = 0;
                Err(error)
            }
        })
    }
}
