//! Bodies: by length, chunked, or until the connection closes.
//!
//! Data is returned as slices of the caller's bytes. Only a chunk-size line or a trailer that was split is ever copied.
//! It does not know how a message chose its framing.

use super::chars::{check_text, strip_line_end, trim};
use super::head::{StartLine, Store};
use super::headers::split_field;
use super::{Framing, Limits, ParseError};

/// How much of a body is still to come, and in which part it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Body {
    /// This many bytes; never 0.
    Length(u64),
    /// The line with a chunk's size.
    ChunkLine,
    /// This many bytes of a chunk; never 0.
    ChunkData(u64),
    /// The CR after a chunk's data.
    ChunkCr,
    /// The LF after that.
    ChunkLf,
    /// Trailers; this many bytes of them were read.
    Trailers(u32),
    /// Everything up to the end of the connection.
    UntilClose,
    /// Nothing.
    Done,
}

/// The result of reading a body.
#[derive(Debug)]
pub(super) enum Step<'i> {
    /// All input was used, and the body continues.
    More,
    /// Some data, at least one byte.
    Data(&'i [u8]),
    /// The body is complete.
    Done,
}

impl Body {
    /// A body at its beginning.
    pub(super) fn new(framing: Framing) -> Body {
        match framing {
            Framing::None | Framing::Length(0) => Body::Done,
            Framing::Length(length) => Body::Length(length),
            Framing::Chunked => Body::ChunkLine,
            Framing::UntilClose => Body::UntilClose,
        }
    }

    /// The bytes of data that come before anything else; 0 where that is not known.
    pub(super) fn data_left(&self) -> u64 {
        match *self {
            Body::Length(left) | Body::ChunkData(left) => left,
            _ => 0,
        }
    }

    /// So many of [`Body::data_left`] have come, and are not in the input.
    pub(super) fn skip(&mut self, bytes: u64) {
        let (left, more, then): (u64, fn(u64) -> Body, Body) = match *self {
            Body::Length(left) => (left, Body::Length, Body::Done),
            Body::ChunkData(left) => (left, Body::ChunkData, Body::ChunkCr),
            _ => return,
        };
        *self = match left.saturating_sub(bytes) {
            0 => then,
            left => more(left),
        };
    }

    /// The next piece.
    #[inline]
    pub(super) fn next<'i, S: StartLine>(
        &mut self,
        store: &mut Store<S>,
        input: &mut &'i [u8],
        limits: &Limits,
    ) -> Result<Step<'i>, ParseError> {
        loop {
            let next = match *self {
                Body::Done => return Ok(Step::Done),
                _ if input.is_empty() => return Ok(Step::More),
                Body::Length(left) => return Ok(self.data(input, left, Body::Length, Body::Done)),
                Body::ChunkData(left) => {
                    return Ok(self.data(input, left, Body::ChunkData, Body::ChunkCr));
                }
                Body::UntilClose => {
                    let (data, rest) = input.split_at(input.len());
                    *input = rest;
                    return Ok(Step::Data(data));
                }
                Body::ChunkLine => {
                    let limit = limits.chunk_line_bytes as usize;
                    let too_long = ParseError::ChunkLineTooLong(limits.chunk_line_bytes);
                    store.read_line(input, limit, too_long, chunk_size)?.map(|size| match size {
                        0 => Body::Trailers(0),
                        size => Body::ChunkData(size),
                    })
                }
                Body::ChunkCr => Some(expect(input, b'\r', Body::ChunkLf)?),
                Body::ChunkLf => Some(expect(input, b'\n', Body::ChunkLine)?),
                Body::Trailers(used) => {
                    let limit = (limits.trailer_bytes - used) as usize;
                    let too_long = ParseError::TrailersTooLarge(limits.trailer_bytes);
                    store.read_line(input, limit, too_long, trailer)?.map(|size| match size {
                        None => Body::Done,
                        // A line is within its limit, which is what is left of a u32.
                        Some(size) => Body::Trailers(used + size),
                    })
                }
            };
            match next {
                Some(next) => *self = next,
                None => return Ok(Step::More),
            }
        }
    }

    /// Returns the available part of `left` bytes; `then` is the state after the last of them.
    #[inline]
    fn data<'i>(&mut self, input: &mut &'i [u8], left: u64, more: fn(u64) -> Body, then: Body) -> Step<'i> {
        let here = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
        let (data, rest) = input.split_at(here);
        *input = rest;
        *self = match left - here as u64 {
            0 => then,
            left => more(left),
        };
        Step::Data(data)
    }
}

/// Takes one byte of the line end after a chunk's data (RFC 9112 section 7.1).
fn expect(input: &mut &[u8], byte: u8, then: Body) -> Result<Body, ParseError> {
    match input.split_first() {
        Some((first, rest)) if *first == byte => {
            *input = rest;
            Ok(then)
        }
        _ => Err(ParseError::BadChunkEnd),
    }
}

/// A chunk-size line: hexadecimal digits, then extensions, which are ignored (RFC 9112 section 7.1.1).
///
/// White space is allowed where the grammar has it, which is before a semicolon and not before the line end.
fn chunk_size(line: &[u8]) -> Result<u64, ParseError> {
    let line = strip_line_end(line)?;
    let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let (digits, rest) = line.split_at(digits);
    if digits.is_empty() {
        return Err(ParseError::BadChunkSize);
    }
    check_text(rest)?;
    if !rest.is_empty() && trim(rest).first() != Some(&b';') {
        return Err(ParseError::BadChunkExtension);
    }
    digits
        .iter()
        .try_fold(0u64, |size, &digit| {
            let digit = char::from(digit).to_digit(16)?;
            Some(size.checked_mul(16)? + u64::from(digit))
        })
        .ok_or(ParseError::BadChunkSize)
}

/// Returns a trailer's size with its line end, or `None` for the empty line at the end. The content of trailers is
/// ignored, as RFC 9110 section 6.5.1 allows, but they must be well-formed.
fn trailer(line: &[u8]) -> Result<Option<u32>, ParseError> {
    if line == b"\r\n" {
        return Ok(None);
    }
    split_field(line)?;
    // Cannot fail: a line is within the trailers' limit, a u32.
    Ok(Some(u32::try_from(line.len()).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_sizes() {
        let good: [(&[u8], u64); 9] = [
            (b"0\r\n", 0),
            (b"000\r\n", 0),
            (b"a\r\n", 10),
            (b"1F\r\n", 31),
            (b"ffffffffffffffff\r\n", u64::MAX),
            (b"00000000000000000001\r\n", 1),
            (b"5;x\r\n", 5),
            (b"5 ; x=\"y\"\r\n", 5),
            (b"5\t;\r\n", 5),
        ];
        for (line, size) in good {
            assert_eq!(chunk_size(line), Ok(size), "{line:?}");
        }
        let bad: [(&[u8], ParseError); 13] = [
            (b"\r\n", ParseError::BadChunkSize),
            (b" 5\r\n", ParseError::BadChunkSize),
            (b"-5\r\n", ParseError::BadChunkSize),
            (b"+5\r\n", ParseError::BadChunkSize),
            (b"g\r\n", ParseError::BadChunkSize),
            (b"10000000000000000\r\n", ParseError::BadChunkSize),
            (b"0x5\r\n", ParseError::BadChunkExtension),
            (b"5 \r\n", ParseError::BadChunkExtension),
            (b"5 5\r\n", ParseError::BadChunkExtension),
            (b"5\n", ParseError::BareLf),
            (b"5;a\rb\r\n", ParseError::BareCr),
            (b"5;a\0b\r\n", ParseError::Nul),
            (b"5\r\r\n", ParseError::BareCr),
        ];
        for (line, error) in bad {
            assert_eq!(chunk_size(line), Err(error), "{line:?}");
        }
    }
}
