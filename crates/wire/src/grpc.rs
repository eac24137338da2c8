//! gRPC over HTTP/2 (the protocol's own specification, "gRPC over HTTP2"): messages with a prefix of their length, the status of a call,
//! and its deadline.
//!
//! Pull it as [`crate::sse`]: a message that comes in one piece is a slice of the caller's bytes, and one that was split is copied into a
//! buffer with a bound. It does not know HTTP/2, nor what a message says; [`field`] and [`before_field`] alone know that weir's own
//! messages have one field.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

/// The type of a request's and a response's body; `+proto` and parameters may follow.
pub const CONTENT_TYPE: &str = "application/grpc";

/// The trailers with the status of a call, and what they say of it; without a message they stand in the head.
pub const STATUS: &str = "grpc-status";
/// See [`STATUS`].
pub const MESSAGE: &str = "grpc-message";

/// The header with the time that a client gives a call.
pub const TIMEOUT: &str = "grpc-timeout";

/// The largest message, bytes: what gRPC's own clients take unless told otherwise.
pub const MOST_MESSAGE_BYTES: usize = 4 << 20;

/// Bytes of a prefix: whether the message is compressed, and its length.
pub const PREFIX: usize = 5;

/// A message that cannot be read; the rest of the body cannot be, either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PrefixError {
    /// It is compressed, which nobody asked for.
    #[error("a compressed message, which was not asked for")]
    Compressed,
    /// Its first byte means nothing.
    #[error("a message that begins with {0}; expected: 0, which is not compressed")]
    Flag(u8),
    /// It is larger than [`MOST_MESSAGE_BYTES`].
    #[error("a message of {0} bytes; expected: at most {MOST_MESSAGE_BYTES}")]
    TooLarge(u32),
}

/// The reader of the messages of one body.
#[derive(Debug, Default)]
pub struct Parser {
    /// The beginning of a message that was split, with its prefix.
    split: Vec<u8>,
    /// The message in `split` has been returned.
    returned: bool,
}

impl Parser {
    /// Begins a new body.
    pub fn reset(&mut self) {
        self.split.clear();
        self.returned = false;
    }

    /// Takes bytes from `input` up to the end of the next message, and returns what it says; `None` when all were taken and no message is
    /// complete.
    ///
    /// # Errors
    /// A prefix that is wrong. What came before it is lost with the body.
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Option<&'s [u8]>, PrefixError> {
        if std::mem::take(&mut self.returned) {
            self.split.clear();
        }
        if self.split.is_empty()
            && let Some(prefix) = input.first_chunk()
        {
            let length = length(prefix)?;
            if let Some(message) = input[PREFIX..].get(..length) {
                *input = &input[PREFIX + length..];
                return Ok(Some(message));
            }
        }
        self.fill(PREFIX, input);
        let Some(prefix) = self.split.first_chunk() else { return Ok(None) };
        let whole = PREFIX + length(prefix)?;
        self.fill(whole, input);
        self.returned = self.split.len() == whole;
        Ok(self.returned.then(|| &self.split[PREFIX..]))
    }

    /// Takes bytes until there are so many.
    fn fill(&mut self, until: usize, input: &mut &[u8]) {
        let (piece, rest) = input.split_at(input.len().min(until.saturating_sub(self.split.len())));
        self.split.extend_from_slice(piece);
        *input = rest;
    }

    /// Whether a part of a message has come, which is lost if nothing follows.
    pub fn is_within(&self) -> bool {
        !self.split.is_empty() && !self.returned
    }
}

/// The length that a prefix says.
fn length(prefix: &[u8; PREFIX]) -> Result<usize, PrefixError> {
    let [flag, length @ ..] = *prefix;
    let length = u32::from_be_bytes(length);
    match flag {
        0 if length as usize <= MOST_MESSAGE_BYTES => Ok(length as usize),
        0 => Err(PrefixError::TooLarge(length)),
        1 => Err(PrefixError::Compressed),
        flag => Err(PrefixError::Flag(flag)),
    }
}

/// The prefix of a message of so many bytes, at most [`MOST_MESSAGE_BYTES`].
pub fn prefix(length: usize) -> [u8; PREFIX] {
    let [a, b, c, d] = (length as u32).to_be_bytes();
    [0, a, b, c, d]
}

/// The key of field 1 of a message of Protocol Buffers, whose value is bytes or a text.
const FIELD: u8 = 0x0a;

/// The value of a message's only field, number 1; all of a message that is another.
pub fn field(message: &[u8]) -> &[u8] {
    let Some((&FIELD, rest)) = message.split_first() else { return message };
    let digits = rest.iter().take(5).position(|byte| *byte < 0x80);
    let Some((digits, value)) = digits.and_then(|last| rest.split_at_checked(last + 1)) else { return message };
    let length = digits.iter().rev().fold(0, |length: u64, digit| (length << 7) | u64::from(digit & 0x7f));
    if length == value.len() as u64 { value } else { message }
}

/// What stands before a value of so many bytes in a message with this only field: the prefix of the message, the key and the length. The
/// first so many bytes count.
pub fn before_field(length: usize) -> ([u8; PREFIX + 6], usize) {
    let mut out = [0; PREFIX + 6];
    out[PREFIX] = FIELD;
    let (mut at, mut left) = (PREFIX + 1, length as u32);
    while left >= 0x80 {
        out[at] = left as u8 | 0x80;
        (at, left) = (at + 1, left >> 7);
    }
    out[at] = left as u8;
    at += 1;
    out[..PREFIX].copy_from_slice(&prefix(at - PREFIX + length));
    (out, at)
}

/// Whether a body of this type has messages of gRPC.
pub fn is_grpc(content_type: &[u8]) -> bool {
    let rest = content_type.strip_prefix(CONTENT_TYPE.as_bytes());
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// The status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    /// The call succeeded.
    pub const OK: Status = Status(0);
    /// Nobody knows.
    pub const UNKNOWN: Status = Status(2);
    /// It took longer than the client gave it.
    pub const DEADLINE_EXCEEDED: Status = Status(4);
    /// The service has no such method.
    pub const UNIMPLEMENTED: Status = Status(12);
    /// The server failed.
    pub const INTERNAL: Status = Status(13);

    /// The value of the trailer; `None`: it is no number.
    pub fn parse(value: &[u8]) -> Option<Status> {
        let digits = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse().ok().map(Status)
    }

    /// Its name in the specification; empty where it has none.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 17] = [
            "OK",
            "CANCELLED",
            "UNKNOWN",
            "INVALID_ARGUMENT",
            "DEADLINE_EXCEEDED",
            "NOT_FOUND",
            "ALREADY_EXISTS",
            "PERMISSION_DENIED",
            "RESOURCE_EXHAUSTED",
            "FAILED_PRECONDITION",
            "ABORTED",
            "OUT_OF_RANGE",
            "UNIMPLEMENTED",
            "INTERNAL",
            "UNAVAILABLE",
            "DATA_LOSS",
            "UNAUTHENTICATED",
        ];
        NAMES.get(self.0 as usize).copied().unwrap_or_default()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{STATUS} {} {}", self.0, self.name())
    }
}

const UNITS: [(u8, u64); 6] = [
    (b'n', 1),
    (b'u', 1_000),
    (b'm', 1_000_000),
    (b'S', 1_000_000_000),
    (b'M', 60_000_000_000),
    (b'H', 3_600_000_000_000),
];

/// The value of the header for a time, exact up to eight digits.
pub fn timeout(time: Duration) -> String {
    let nanos = time.as_nanos();
    let unit = UNITS.iter().find(|(_, size)| nanos.div_ceil(u128::from(*size)) < 100_000_000).unwrap_or(&UNITS[5]);
    format!("{}{}", nanos.div_ceil(u128::from(unit.1)).min(99_999_999), char::from(unit.0))
}

/// The time that the header gives; `None`: it gives none.
pub fn parse_timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    let (_, size) = UNITS.iter().find(|(name, _)| name == unit)?;
    let right = (1..=8).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let number: u64 = std::str::from_utf8(digits).ok().filter(|_| right)?.parse().ok()?;
    Some(Duration::from_nanos(number.saturating_mul(*size)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, PrefixError> {
        let (mut parser, mut messages) = (Parser::default(), Vec::new());
        for piece in pieces {
            let mut input = *piece;
            while let Some(message) = parser.next(&mut input)? {
                messages.push(message.to_vec());
            }
            assert!(input.is_empty(), "all of it was taken");
        }
        Ok(messages)
    }

    proptest! {
        #[test]
        fn messages_are_the_same_however_they_come(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let all: Vec<u8> =
                messages.iter().flat_map(|message| [prefix(message.len()).to_vec(), message.clone()].concat()).collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(all.len() + 1)).chain([0, all.len()]).collect();
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|two| &all[two[0]..two[1]]).collect();
            prop_assert_eq!(read(&pieces), Ok(messages));
        }

        #[test]
        fn a_field_is_read_as_written(value in proptest::collection::vec(any::<u8>(), 0..300)) {
            let (before, length) = before_field(value.len());
            let body = [&before[..length], &value].concat();
            let messages = read(&[&body]).expect("a right prefix");
            prop_assert_eq!(messages.len(), 1);
            prop_assert_eq!(field(&messages[0]), &value[..]);
        }

        #[test]
        fn timeouts_are_kept(nanos in 0u64..99_999_999) {
            let time = Duration::from_nanos(nanos);
            prop_assert_eq!(parse_timeout(timeout(time).as_bytes()), Some(time));
        }
    }

    #[test]
    fn prefixes_that_lie_are_told_before_anything_is_kept() {
        assert_eq!(read(&[&[1, 0, 0, 0, 0]]), Err(PrefixError::Compressed));
        assert_eq!(read(&[&[2, 0], &[0, 0, 0]]), Err(PrefixError::Flag(2)));
        assert_eq!(read(&[&[0, 255, 255, 255, 255]]), Err(PrefixError::TooLarge(u32::MAX)));
        let mut parser = Parser::default();
        assert_eq!(parser.next(&mut &[0, 0, 0, 0, 3, 7][..]), Ok(None));
        assert!(parser.is_within());
        assert_eq!(parser.next(&mut &[8, 9][..]), Ok(Some(&[7, 8, 9][..])));
        assert!(!parser.is_within());
    }

    #[test]
    fn another_message_has_no_field_of_ours() {
        for message in [&b""[..], b"\x0a", b"\x0a\x05abc", b"\x12\x03abc", b"\x0a\xff\xff\xff\xff\xffabc", b"text"] {
            assert_eq!(field(message), message);
        }
        assert_eq!(field(b"\x0a\x03abc"), b"abc");
    }

    #[test]
    fn statuses_and_types_and_timeouts_are_read() {
        assert_eq!(
            Status::parse(b"14").map(|status| status.to_string()).as_deref(),
            Some("grpc-status 14 UNAVAILABLE")
        );
        assert_eq!(
            (Status::parse(b"99").map(Status::name), Status::parse(b"-1"), Status::parse(b"")),
            (Some(""), None, None)
        );
        for (value, right) in
            [("application/grpc", true), ("application/grpc+proto", true), ("application/grpc-web", false)]
        {
            assert_eq!(is_grpc(value.as_bytes()), right, "{value}");
        }
        assert_eq!(
            (timeout(Duration::from_secs(10)), timeout(Duration::from_secs(200_000))),
            ("10000000u".into(), "200000S".into())
        );
        assert_eq!(parse_timeout(b"2S"), Some(Duration::from_secs(2)));
        for wrong in [&b"S"[..], b"2", b"2s", b"+2S", b"123456789m", b""] {
            assert_eq!(parse_timeout(wrong), None, "{wrong:?}");
        }
    }
}
