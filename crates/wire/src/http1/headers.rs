//! Header lines: the public iterator over them, and the few headers that frame a message.
//!
//! It knows the meaning of `Content-Length`, `Transfer-Encoding`, `Connection`, `Host` and `Expect`. It does not know
//! start lines, bodies, or where a line came from.

use super::chars::{check_text, control_error, is_host, is_token_byte, strip_line_end, trim};
use super::{ConnectionHeader, Framing, ParseError, Version};

/// The headers of a head's raw bytes, in order: name as sent, and value without the white space around it.
///
/// It is meant for the `raw` of a parsed head; of other bytes it yields what looks like headers.
pub fn headers(raw: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
    raw.split(|&b| b == b'\n')
        .skip(1)
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            Some((&line[..colon], trim(&line[colon + 1..])))
        })
}

/// The value of the first header with this name, compared without case.
pub fn header<'a>(raw: &'a [u8], name: &str) -> Option<&'a [u8]> {
    headers(raw).find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
}

/// Splits a complete header line (with its line end) into name and value (RFC 9112 section 5).
#[inline]
pub(super) fn split_field(line: &[u8]) -> Result<(&[u8], &[u8]), ParseError> {
    let line = strip_line_end(line)?;
    let end = line.iter().position(|&b| !is_token_byte(b)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    match rest {
        [b':', value @ ..] if !name.is_empty() => {
            check_text(value)?;
            Ok((name, trim(value)))
        }
        _ => Err(bad_field(name, rest)),
    }
}

/// Why a line is not a header. `rest` begins at the first byte that is not part of a token.
#[cold]
fn bad_field(name: &[u8], rest: &[u8]) -> ParseError {
    match rest {
        [b' ' | b'\t', ..] if name.is_empty() => ParseError::ObsFold,
        [b' ' | b'\t', ..] if trim(rest).first() == Some(&b':') => ParseError::SpaceBeforeColon,
        [byte @ (0..0x20 | 0x7f), ..] if *byte != b'\t' => control_error(*byte),
        _ => ParseError::BadHeaderName,
    }
}

/// The members of a comma-separated list, without empty ones (RFC 9110 section 5.6.1.2).
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(trim).filter(|member| !member.is_empty())
}

/// The names of the headers that say something about the message or its connection, in lower case.
pub(super) const FRAMING: [&[u8]; 5] = [b"content-length", b"transfer-encoding", b"connection", b"host", b"expect"];

/// What a head's headers say about the message and its connection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fields {
    count: u32,
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    connection: bool,
    host: bool,
    expects_continue: bool,
}

impl Fields {
    /// Processes one complete header line. Most headers are not one of the five, which their length shows.
    #[inline]
    pub(super) fn add(&mut self, line: &[u8], most: u32, request: bool) -> Result<(), ParseError> {
        self.count += 1;
        if self.count > most {
            return Err(ParseError::TooManyHeaders(most));
        }
        let (name, value) = split_field(line)?;
        let [length, coding, connection, host, expect] = FRAMING;
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match (name.len(), name[0] | 0x20) {
            (14, b'c') if is(length) => self.add_length(value),
            (17, b't') if is(coding) => self.add_coding(value),
            (10, b'c') if is(connection) => {
                self.add_connection(value);
                Ok(())
            }
            (4, b'h') if request && is(host) => self.add_host(value),
            (6, b'e') if request && is(expect) => {
                self.expects_continue |= value.eq_ignore_ascii_case(b"100-continue");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// RFC 9112 section 6.3: a list of lengths that are all the same counts as one.
    fn add_length(&mut self, value: &[u8]) -> Result<(), ParseError> {
        for member in value.split(|&b| b == b',') {
            let length = decimal(trim(member)).ok_or(ParseError::BadContentLength)?;
            if self.content_length.is_some_and(|earlier| earlier != length) {
                return Err(ParseError::DifferingContentLengths);
            }
            self.content_length = Some(length);
        }
        Ok(())
    }

    /// RFC 9112 section 7: `chunked`, once. Other codings come only when a TE header offered them.
    fn add_coding(&mut self, value: &[u8]) -> Result<(), ParseError> {
        let mut members = list(value);
        match (members.next(), members.next()) {
            (Some(coding), None) if !self.chunked && coding.eq_ignore_ascii_case(b"chunked") => {
                self.chunked = true;
                Ok(())
            }
            _ => Err(ParseError::BadTransferEncoding),
        }
    }

    /// RFC 9110 section 7.6.1.
    fn add_connection(&mut self, value: &[u8]) {
        self.connection = true;
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// RFC 9112 section 3.2: at most one, and a valid one.
    fn add_host(&mut self, value: &[u8]) -> Result<(), ParseError> {
        if self.host {
            return Err(ParseError::RepeatedHost);
        }
        self.host = true;
        if is_host(value) { Ok(()) } else { Err(ParseError::BadHost) }
    }

    /// Whether the connection stays open after the message: RFC 9112 section 9.3.
    pub(super) fn persists(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }

    /// The framing that the headers specify; `None` when they specify none.
    ///
    /// RFC 9112 section 6.3 lets Transfer-Encoding override Content-Length, and section 6.1 calls a message with both
    /// an error of its sender, as it does Transfer-Encoding in HTTP/1.0. Both are rejected here: a recipient that
    /// continues cannot know how the next one in the chain reads the message.
    pub(super) fn framing(&self, version: Version) -> Result<Option<Framing>, ParseError> {
        match (self.chunked, self.content_length) {
            (true, Some(_)) => Err(ParseError::LengthAndTransferEncoding),
            (true, None) if version == Version::Http10 => Err(ParseError::TransferEncodingIn10),
            (true, None) => Ok(Some(Framing::Chunked)),
            (false, Some(length)) => Ok(Some(Framing::Length(length))),
            (false, None) => Ok(None),
        }
    }

    /// Whether there was a `Host`.
    pub(super) fn has_host(&self) -> bool {
        self.host
    }

    /// Whether there was `Expect: 100-continue`.
    pub(super) fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// All `Connection` headers combined. `close` wins, because the connection will close.
    pub(super) fn connection(&self) -> ConnectionHeader {
        match (self.connection, self.close, self.keep_alive) {
            (_, true, _) => ConnectionHeader::Close,
            (_, _, true) => ConnectionHeader::KeepAlive,
            (true, ..) => ConnectionHeader::Other,
            (false, ..) => ConnectionHeader::None,
        }
    }
}

/// Parses one or more digits. `None` when it is not a number or does not fit.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_iterator_yields_names_as_sent_and_trimmed_values_up_to_the_empty_line() {
        let raw = b"HTTP/1.1 200 OK\r\nA:1\r\nb-C: \t x y\t \r\nEmpty:\r\nA: 2:3\r\n\r\nNot: this\r\n";
        let got: Vec<_> = headers(raw).collect();
        let want: [(&[u8], &[u8]); 4] = [(b"A", b"1"), (b"b-C", b"x y"), (b"Empty", b""), (b"A", b"2:3")];
        assert_eq!(got, want);
        assert_eq!(header(raw, "B-c"), Some(&b"x y"[..]));
        assert_eq!(header(raw, "a"), Some(&b"1"[..]));
        assert_eq!(header(raw, "not"), None);
    }

    #[test]
    fn the_iterator_takes_any_bytes() {
        for raw in [&b""[..], b"\n", b"x", b"a\nb", b"a\n:\n", b"\r\n\r\n", b"a\nb:c"] {
            let _ = headers(raw).count();
        }
    }

    #[test]
    fn decimals() {
        assert_eq!(decimal(b"0"), Some(0));
        assert_eq!(decimal(b"007"), Some(7));
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for bad in [&b""[..], b"18446744073709551616", b"30000000000000000000", b"+1", b"-1", b"1 2", b"0x1", b"1a"] {
            assert_eq!(decimal(bad), None);
        }
    }
}
