//! What lines consist of: words and numbers.

use super::{EncodeError, MOST_KEY, ParseError};
use crate::http1::encode::decimal;

/// Words of a line, such as keys. Equal if the words are, whatever spaces are between them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    /// The words of a text, with spaces between them.
    pub fn of(text: &'a [u8]) -> Words<'a> {
        Words(text)
    }

    /// The next word that must be there.
    #[inline]
    pub(super) fn needed(&mut self, error: ParseError) -> Result<&'a [u8], ParseError> {
        self.next().ok_or(error)
    }

    /// The next word that must be a key.
    #[inline]
    pub(super) fn key(&mut self, error: ParseError) -> Result<&'a [u8], ParseError> {
        let key = self.needed(error)?;
        if is_key(key) { Ok(key) } else { Err(ParseError::BadKey) }
    }

    /// The next word that must be a number.
    #[inline]
    pub(super) fn number<N: TryFrom<u64>>(&mut self, error: ParseError) -> Result<N, ParseError> {
        number(self.needed(error)?)
    }

    /// The next word that must be a number of seconds, which may be negative.
    #[inline]
    pub(super) fn seconds(&mut self, error: ParseError) -> Result<i32, ParseError> {
        let word = self.needed(error)?;
        let seconds = match word.strip_prefix(b"-") {
            Some(digits) => -number::<i64>(digits)?,
            None => number(word)?,
        };
        i32::try_from(seconds).map_err(|_| ParseError::BadNumber)
    }

    /// No further words.
    #[inline]
    pub(super) fn end(mut self, error: ParseError) -> Result<(), ParseError> {
        if self.next().is_none() { Ok(()) } else { Err(error) }
    }

    /// Whether they can be written.
    pub(super) fn check(self) -> Result<(), EncodeError> {
        check_text(self.0)
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.0.iter().position(|byte| *byte != b' ')?;
        let text = &self.0[start..];
        let (word, rest) = text.split_at(memchr::memchr(b' ', text).unwrap_or(text.len()));
        self.0 = rest;
        Some(word)
    }
}

impl PartialEq for Words<'_> {
    fn eq(&self, other: &Words<'_>) -> bool {
        Iterator::eq(*self, *other)
    }
}

impl Eq for Words<'_> {}

/// Whether a word can be a key.
#[inline]
fn is_key(word: &[u8]) -> bool {
    word.len() <= MOST_KEY && !word.iter().any(|byte| *byte < b' ' || *byte == 0x7F)
}

/// A number: digits only.
#[inline]
fn number<N: TryFrom<u64>>(digits: &[u8]) -> Result<N, ParseError> {
    if digits.is_empty() {
        return Err(ParseError::BadNumber);
    }
    let number = digits.iter().try_fold(0_u64, |number, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    });
    number.and_then(|number| N::try_from(number).ok()).ok_or(ParseError::BadNumber)
}

#[inline]
pub(super) fn check_key(key: &[u8]) -> Result<(), EncodeError> {
    if key.is_empty() || key.contains(&b' ') || !is_key(key) { Err(EncodeError::BadKey) } else { Ok(()) }
}

pub(super) fn check_text(text: &[u8]) -> Result<(), EncodeError> {
    if text.iter().any(|byte| matches!(byte, b'\r' | b'\n')) { Err(EncodeError::BadText) } else { Ok(()) }
}

/// Appends a space and a word.
#[inline]
pub(super) fn put(out: &mut Vec<u8>, word: &[u8]) {
    out.push(b' ');
    out.extend_from_slice(word);
}

/// Appends a space and each word.
#[inline]
pub(super) fn put_all(out: &mut Vec<u8>, words: Words<'_>) {
    words.for_each(|word| put(out, word));
}

/// Appends a space and a number.
#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, number: u64) {
    let (digits, first) = decimal(number);
    put(out, &digits[first..]);
}

/// Appends a space and a number of seconds.
#[inline]
pub(super) fn put_seconds(out: &mut Vec<u8>, seconds: i32) {
    if seconds < 0 {
        out.extend_from_slice(b" -");
        let (digits, first) = decimal(seconds.unsigned_abs().into());
        out.extend_from_slice(&digits[first..]);
    } else {
        put_number(out, seconds.unsigned_abs().into());
    }
}

/// Appends the end of a line, a value and the end of that.
#[inline]
pub(super) fn put_data(out: &mut Vec<u8>, data: &[u8]) {
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}
