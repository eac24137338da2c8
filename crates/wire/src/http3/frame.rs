//! Numbers of variable length (RFC 9000 section 16) and frames (RFC 9114 section 7), in slices that end anywhere.

/// Frame types (section 7.2).
pub(super) mod kind {
    pub(in crate::http3) const DATA: u64 = 0x0;
    pub(in crate::http3) const HEADERS: u64 = 0x1;
    pub(in crate::http3) const CANCEL_PUSH: u64 = 0x3;
    pub(in crate::http3) const SETTINGS: u64 = 0x4;
    pub(in crate::http3) const PUSH_PROMISE: u64 = 0x5;
    pub(in crate::http3) const GOAWAY: u64 = 0x7;
    pub(in crate::http3) const MAX_PUSH_ID: u64 = 0xd;

    /// Types that HTTP/2 had and HTTP/3 forbids (section 7.2.8).
    pub(in crate::http3) fn is_of_http2(kind: u64) -> bool {
        matches!(kind, 0x2 | 0x6 | 0x8 | 0x9)
    }
}

/// A larger buffer is freed after use, so that waiting connections stay small.
const KEPT: usize = 1024;

/// The number at the beginning of `input`, and its length; `None`: it is not whole.
#[inline]
pub(super) fn number(input: &[u8]) -> Option<(u64, usize)> {
    let &first = input.first()?;
    if first < 0x40 {
        return Some((u64::from(first), 1));
    }
    let length = 1usize << (first >> 6);
    let rest = input.get(1..length)?;
    let number = rest.iter().fold(u64::from(first & 0x3f), |number, &byte| (number << 8) | u64::from(byte));
    Some((number, length))
}

/// Takes a number from a payload.
pub(super) fn take_number(payload: &mut &[u8]) -> Option<u64> {
    let (number, length) = number(payload)?;
    *payload = &payload[length..];
    Some(number)
}

/// Appends a number below 2^62.
#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, number: u64) {
    match number {
        0..0x40 => out.push(number as u8),
        0x40..0x4000 => out.extend_from_slice(&(number as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(number as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(number | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Appends a frame.
pub(super) fn put(out: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    put_number(out, kind);
    put_number(out, payload.len() as u64);
    out.extend_from_slice(payload);
}

/// Appends a HEADERS frame whose field section `write` appends.
#[inline]
pub(super) fn put_section(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    // Two bytes are enough for the length of nearly every section, which is known last.
    out.extend_from_slice(&[kind::HEADERS as u8, 0x40, 0]);
    let start = out.len();
    write(out);
    let length = out.len() - start;
    if length < 0x4000 {
        out[start - 2..start].copy_from_slice(&(length as u16 | 0x4000).to_be_bytes());
    } else {
        let mut long = Vec::new();
        put_number(&mut long, length as u64);
        out.splice(start - 2..start, long);
    }
}

/// What to do with a frame's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    /// Hand it over when it is whole.
    Whole,
    /// Hand it over as it comes.
    Pieces,
    /// Drop it.
    Nothing,
}

/// A whole payload.
#[derive(Debug)]
pub(super) enum Payload<'i> {
    Input(&'i [u8]),
    /// It came in pieces. [`Framer::give_back`] takes the buffer.
    Kept(Vec<u8>),
}

impl Payload<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Payload::Input(bytes) => bytes,
            Payload::Kept(bytes) => bytes,
        }
    }
}

/// What was found.
#[derive(Debug)]
pub(super) enum Found<'i> {
    /// Everything was used.
    More,
    /// A frame begins: [`Framer::take`] has to be called.
    Head { kind: u64, length: u64 },
    /// A piece of a payload; not empty.
    Piece(&'i [u8]),
    /// A payload.
    Whole(u64, Payload<'i>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Kind,
    Length,
    Payload(Take),
}

/// Finds the frames of one stream.
#[derive(Debug)]
pub(super) struct Framer {
    /// What came of a number or payload that is not whole.
    partial: Vec<u8>,
    kind: u64,
    /// Bytes of the payload that were not handed over, or with [`Take::Whole`] all of them.
    left: u64,
    next: Next,
}

impl Framer {
    pub(super) fn new() -> Framer {
        Framer { partial: Vec::new(), kind: 0, left: 0, next: Next::Kind }
    }

    /// For another stream.
    pub(super) fn clear(&mut self) {
        let buffer = std::mem::take(&mut self.partial);
        self.give_back(buffer);
        self.next = Next::Kind;
    }

    /// Whether no frame has begun.
    pub(super) fn is_between(&self) -> bool {
        self.next == Next::Kind && self.partial.is_empty()
    }

    /// Decides on the payload of the frame that has begun.
    #[inline]
    pub(super) fn take(&mut self, take: Take) {
        self.next = if self.left == 0 && take != Take::Whole { Next::Kind } else { Next::Payload(take) };
    }

    /// The buffer of a payload that was kept.
    pub(super) fn give_back(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        if buffer.capacity() > KEPT {
            buffer = Vec::new();
        }
        self.partial = buffer;
    }

    /// Bytes kept of what is not whole.
    pub(super) fn held(&self) -> usize {
        self.partial.len()
    }

    /// Keeps a byte of what is not whole.
    pub(super) fn hold(&mut self, byte: u8) {
        self.partial.push(byte);
    }

    /// A number, also over the ends of slices.
    #[inline]
    pub(super) fn number(&mut self, input: &mut &[u8]) -> Option<u64> {
        if self.partial.is_empty()
            && let Some(number) = take_number(input)
        {
            return Some(number);
        }
        while let Some((&byte, rest)) = input.split_first() {
            self.partial.push(byte);
            *input = rest;
            if let Some((number, _)) = number(&self.partial) {
                self.partial.clear();
                return Some(number);
            }
        }
        None
    }

    #[inline]
    pub(super) fn next<'i>(&mut self, input: &mut &'i [u8]) -> Found<'i> {
        loop {
            match self.next {
                Next::Kind => match self.number(input) {
                    Some(kind) => (self.kind, self.next) = (kind, Next::Length),
                    None => return Found::More,
                },
                Next::Length => match self.number(input) {
                    Some(length) => {
                        self.left = length;
                        return Found::Head { kind: self.kind, length };
                    }
                    None => return Found::More,
                },
                Next::Payload(Take::Whole) => return self.whole(input),
                Next::Payload(take) => {
                    if input.is_empty() {
                        return Found::More;
                    }
                    let (piece, rest) = input.split_at(self.left.min(input.len() as u64) as usize);
                    *input = rest;
                    self.left -= piece.len() as u64;
                    self.take(take);
                    if take == Take::Pieces {
                        return Found::Piece(piece);
                    }
                }
            }
        }
    }

    /// The whole payload, if it is.
    #[inline]
    fn whole<'i>(&mut self, input: &mut &'i [u8]) -> Found<'i> {
        // The caller takes only short payloads whole.
        let length = self.left as usize;
        if self.partial.is_empty()
            && let Some((payload, rest)) = input.split_at_checked(length)
        {
            *input = rest;
            self.next = Next::Kind;
            return Found::Whole(self.kind, Payload::Input(payload));
        }
        let (piece, rest) = input.split_at(input.len().min(length - self.partial.len()));
        self.partial.extend_from_slice(piece);
        *input = rest;
        if self.partial.len() < length {
            return Found::More;
        }
        self.next = Next::Kind;
        Found::Whole(self.kind, Payload::Kept(std::mem::take(&mut self.partial)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_rfc() {
        // RFC 9000 appendix A.1.
        let samples: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in samples {
            assert_eq!(number(bytes), Some((value, bytes.len())));
            assert!((0..bytes.len()).all(|cut| number(&bytes[..cut]).is_none()));
        }
        for value in [0, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, (1 << 62) - 1] {
            let mut out = Vec::new();
            put_number(&mut out, value);
            assert_eq!(number(&out), Some((value, out.len())), "{value}");
        }
    }

    #[test]
    fn a_long_section_has_a_long_length() {
        for length in [0, 16_383, 16_384, 70_000] {
            let mut out = vec![7];
            put_section(&mut out, |out| out.resize(out.len() + length, 9));
            let mut rest = &out[1..];
            assert_eq!(take_number(&mut rest), Some(kind::HEADERS));
            assert_eq!(take_number(&mut rest), Some(length as u64));
            assert!(rest.len() == length && rest.iter().all(|&byte| byte == 9));
        }
    }
}
