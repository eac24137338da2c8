//! Frames: their format (RFC 9113 sections 4 and 6), and how they are found in slices that end anywhere.

use super::Violation;

/// Bytes before each payload.
pub(super) const HEAD: usize = 9;

/// Frame types.
pub(super) mod kind {
    pub(in crate::http2) const DATA: u8 = 0;
    pub(in crate::http2) const HEADERS: u8 = 1;
    pub(in crate::http2) const PRIORITY: u8 = 2;
    pub(in crate::http2) const RST_STREAM: u8 = 3;
    pub(in crate::http2) const SETTINGS: u8 = 4;
    pub(in crate::http2) const PUSH_PROMISE: u8 = 5;
    pub(in crate::http2) const PING: u8 = 6;
    pub(in crate::http2) const GOAWAY: u8 = 7;
    pub(in crate::http2) const WINDOW_UPDATE: u8 = 8;
    pub(in crate::http2) const CONTINUATION: u8 = 9;
}

/// Frame flags.
pub(super) mod flag {
    pub(in crate::http2) const ACK: u8 = 1;
    pub(in crate::http2) const END_STREAM: u8 = 1;
    pub(in crate::http2) const END_HEADERS: u8 = 4;
    pub(in crate::http2) const PADDED: u8 = 8;
    pub(in crate::http2) const PRIORITY: u8 = 0x20;
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Head {
    #[inline]
    pub(super) fn parse(b: &[u8; HEAD]) -> Head {
        Head {
            length: u32::from_be_bytes([0, b[0], b[1], b[2]]),
            kind: b[3],
            flags: b[4],
            // The highest bit is reserved and ignored (section 4.1).
            stream: u32::from_be_bytes([b[5], b[6], b[7], b[8]]) & 0x7fff_ffff,
        }
    }

    #[inline]
    pub(super) fn bytes(self) -> [u8; HEAD] {
        let [_, a, b, c] = self.length.to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, d, e, f, g]
    }

    #[inline]
    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Checks what is known before the payload: its length, and whether the stream's number is 0.
    #[inline]
    pub(super) fn check(self, max_frame: u32) -> Result<(), Violation> {
        if self.length > max_frame {
            return Err(Violation::FrameSize);
        }
        let length = self.length;
        let (on_stream, size_right) = match self.kind {
            kind::DATA => (true, length > 0 || !self.has(flag::PADDED)),
            kind::HEADERS | kind::PUSH_PROMISE | kind::CONTINUATION => (true, true),
            kind::PRIORITY => (true, length == 5),
            kind::RST_STREAM => (true, length == 4),
            kind::SETTINGS if self.has(flag::ACK) => (false, length == 0),
            kind::SETTINGS => (false, length.is_multiple_of(6)),
            kind::PING => (false, length == 8),
            kind::GOAWAY => (false, length >= 8),
            kind::WINDOW_UPDATE => return if length == 4 { Ok(()) } else { Err(Violation::FrameSize) },
            _ => return Ok(()),
        };
        if on_stream != (self.stream != 0) {
            Err(Violation::WrongStream)
        } else if !size_right {
            Err(Violation::FrameSize)
        } else {
            Ok(())
        }
    }
}

/// Appends a whole frame.
pub(super) fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = payload.len() as u32;
    out.extend_from_slice(&Head { length, kind, flags, stream }.bytes());
    out.extend_from_slice(payload);
}

/// Appends a frame whose payload is one number.
pub(super) fn put_number(out: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    put(out, kind, 0, stream, &number.to_be_bytes());
}

/// The number in a payload of four bytes (or that begins with them).
#[inline]
pub(super) fn number(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// The fragment of a header block in a HEADERS frame (section 6.2). The optional priority before it is ignored.
#[inline]
pub(super) fn fragment(head: Head, payload: &[u8]) -> Result<&[u8], Violation> {
    let mut payload = payload;
    if head.has(flag::PADDED) {
        let (&padding, rest) = payload.split_first().ok_or(Violation::FrameSize)?;
        payload = &rest[..rest.len().checked_sub(usize::from(padding)).ok_or(Violation::Padding)?];
    }
    if head.has(flag::PRIORITY) {
        payload = payload.get(5..).ok_or(Violation::FrameSize)?;
    }
    Ok(payload)
}

/// What a [`Framer`] found.
#[derive(Debug)]
pub(super) enum Found<'i> {
    /// All of the input was used.
    Nothing,
    /// A frame that lies whole in the input.
    Whole(Head, &'i [u8]),
    /// A frame that arrived in pieces: [`Framer::take`].
    Stored(Head),
    /// The beginning of DATA, whose payload is still in the input: with the length of its padding.
    Data(Head, u8),
    /// The beginning of a frame of unknown type, whose payload is still in the input.
    Unknown(Head),
}

/// Finds frames. It stores only incomplete ones.
#[derive(Debug)]
pub(super) struct Framer {
    stored: Vec<u8>,
    max_frame: u32,
    /// Largest frame that is not DATA and so may have to be stored.
    max_stored: u32,
}

impl Framer {
    pub(super) fn new(max_frame: u32, max_stored: u32) -> Framer {
        Framer { stored: Vec::new(), max_frame, max_stored }
    }

    #[inline]
    fn check(&self, head: Head) -> Result<(), Violation> {
        head.check(self.max_frame)?;
        let stored = head.kind != kind::DATA && head.kind <= kind::CONTINUATION;
        if stored && head.length > self.max_stored { Err(Violation::BlockTooLarge(self.max_stored)) } else { Ok(()) }
    }

    /// The next frame.
    #[inline]
    pub(super) fn next<'i>(&mut self, input: &mut &'i [u8]) -> Result<Found<'i>, Violation> {
        if input.is_empty() {
            return Ok(Found::Nothing);
        }
        let all: &'i [u8] = input;
        if self.stored.is_empty()
            && let Some((bytes, rest)) = all.split_first_chunk::<HEAD>()
        {
            let head = Head::parse(bytes);
            self.check(head)?;
            if head.kind == kind::DATA {
                if !head.has(flag::PADDED) {
                    *input = rest;
                    return Ok(Found::Data(head, 0));
                }
                if let Some((&padding, rest)) = rest.split_first() {
                    *input = rest;
                    return Ok(Found::Data(head, padding));
                }
            } else if head.kind > kind::CONTINUATION {
                *input = rest;
                return Ok(Found::Unknown(head));
            } else if let Some((payload, rest)) = rest.split_at_checked(head.length as usize) {
                *input = rest;
                return Ok(Found::Whole(head, payload));
            }
        }
        self.store(input)
    }

    /// Continues a frame in pieces.
    #[cold]
    fn store<'i>(&mut self, input: &mut &'i [u8]) -> Result<Found<'i>, Violation> {
        if !self.fill(HEAD, input) {
            return Ok(Found::Nothing);
        }
        let Some(bytes) = self.stored.first_chunk::<HEAD>() else {
            return Ok(Found::Nothing);
        };
        let head = Head::parse(bytes);
        self.check(head)?;
        let begun = match head.kind {
            kind::DATA if !head.has(flag::PADDED) => Found::Data(head, 0),
            kind::DATA => {
                if !self.fill(HEAD + 1, input) {
                    return Ok(Found::Nothing);
                }
                Found::Data(head, self.stored[HEAD])
            }
            kind::CONTINUATION.. if head.kind != kind::CONTINUATION => Found::Unknown(head),
            _ => {
                let whole = self.fill(HEAD + head.length as usize, input);
                return Ok(if whole { Found::Stored(head) } else { Found::Nothing });
            }
        };
        self.stored.clear();
        Ok(begun)
    }

    /// Moves bytes from `input` until the given number is stored. Returns false if there were not enough.
    fn fill(&mut self, length: usize, input: &mut &[u8]) -> bool {
        let wanted = length.saturating_sub(self.stored.len()).min(input.len());
        let (piece, rest) = input.split_at(wanted);
        self.stored.extend_from_slice(piece);
        *input = rest;
        self.stored.len() >= length
    }

    /// The frame that was [`Found::Stored`], its payload from [`HEAD`] on. Its buffer is not used again: in time each connection
    /// has a frame that was split, and would keep one.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_survive_and_the_reserved_bit_does_not() {
        let head = Head { length: 0x01_02_03, kind: 4, flags: 5, stream: 0x7fff_fffe };
        let mut bytes = head.bytes();
        assert_eq!(bytes, [1, 2, 3, 4, 5, 0x7f, 0xff, 0xff, 0xfe]);
        bytes[5] |= 0x80;
        assert_eq!(Head::parse(&bytes), head);
    }

    #[test]
    fn fragments_lose_padding_and_priority() {
        let head = |flags| Head { length: 0, kind: kind::HEADERS, flags, stream: 1 };
        let both = flag::PADDED | flag::PRIORITY;
        assert_eq!(fragment(head(0), b"abc"), Ok(&b"abc"[..]));
        assert_eq!(fragment(head(flag::PADDED), b"\x02abpp"), Ok(&b"ab"[..]));
        assert_eq!(fragment(head(flag::PADDED), b"\x04pppp"), Ok(&b""[..]));
        assert_eq!(fragment(head(flag::PADDED), b"\x05pppp"), Err(Violation::Padding));
        assert_eq!(fragment(head(flag::PADDED), b""), Err(Violation::FrameSize));
        assert_eq!(fragment(head(flag::PRIORITY), b"12345a"), Ok(&b"a"[..]));
        assert_eq!(fragment(head(flag::PRIORITY), b"1234"), Err(Violation::FrameSize));
        assert_eq!(fragment(head(both), b"\x0112345ap"), Ok(&b"a"[..]));
        assert_eq!(fragment(head(both), b"\x0312345ap"), Err(Violation::FrameSize));
    }
}
