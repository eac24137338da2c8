//! What a protocol over QUIC and the layer of QUIC say to each other: frames of streams, in one sequence of bytes each way.
//!
//! QUIC has many streams in a connection, and everything above it here takes a connection's bytes in order. So the layer of QUIC hands
//! what came on the streams to the protocol as a sequence of frames, and takes such a sequence from it. They are those frames of RFC 9000
//! that concern an application, in a fixed encoding that never leaves the process:
//!
//! ```text
//! stream ID (u64) | kind (u32) | length (u32) | payload          little-endian
//! ```
//!
//! Like the bytes of TCP they may be cut anywhere. This module does not know packets, loss or flow control, nor what streams carry.

/// Bytes before a payload.
pub const HEADER: usize = 16;

/// What a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Kind {
    /// The next bytes of a stream.
    Stream = 0,
    /// The same, and they are the last: FIN. There may be none.
    StreamFin = 1,
    /// The sender gives up the stream; the payload is the application's error code, a u64.
    ResetStream = 2,
    /// The receiver wants no more of the stream; the payload is the code.
    StopSending = 3,
    /// To a client, the first of all: `stream` is the number of requests that the peer allows at a time. No payload.
    MaxStreams = 4,
    /// From the protocol, its last: the connection ends with a code, a u64, and the text behind it.
    Close = 5,
}

/// The header of a frame, whose payload follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The stream's ID as RFC 9000 counts (section 2.1): a client's requests are 0, 4, 8 and so on.
    pub stream: u64,
    /// What it says.
    pub kind: Kind,
    /// Bytes of the payload.
    pub length: u32,
}

impl Header {
    /// Its bytes.
    #[inline]
    pub fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.stream.to_le_bytes());
        bytes[8..12].copy_from_slice(&(self.kind as u32).to_le_bytes());
        bytes[12..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// Reads it; `None`: there is no such kind, which only a fault of weir can be.
    #[inline]
    pub fn of(bytes: &[u8; HEADER]) -> Option<Header> {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let kind = match number(8) {
            0 => Kind::Stream,
            1 => Kind::StreamFin,
            2 => Kind::ResetStream,
            3 => Kind::StopSending,
            4 => Kind::MaxStreams,
            5 => Kind::Close,
            _ => return None,
        };
        Some(Header { stream: u64::from(number(0)) | u64::from(number(4)) << 32, kind, length: number(12) })
    }
}

/// Bytes of headers in a sequence of whole frames: what is no part of what they carry.
pub fn overhead(mut frames: &[u8]) -> u64 {
    let mut bytes = 0;
    while let Some((header, rest)) = frames.split_first_chunk::<HEADER>() {
        let length = Header::of(header).map_or(0, |header| header.length as usize);
        frames = rest.get(length..).unwrap_or_default();
        bytes += HEADER as u64;
    }
    bytes
}

/// Appends a frame with its payload.
#[inline]
pub fn put(out: &mut Vec<u8>, stream: u64, kind: Kind, payload: &[u8]) {
    out.extend_from_slice(&Header { stream, kind, length: payload.len() as u32 }.to_bytes());
    out.extend_from_slice(payload);
}

/// Leaves room for the header of a frame whose length is not known yet. Returns where it is, for [`end`].
#[inline]
pub fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    start
}

/// Writes the header of a frame that began at `start`. Its payload follows it in `out`, and `elsewhere` more bytes will.
#[inline]
pub fn end(out: &mut [u8], start: usize, stream: u64, kind: Kind, elsewhere: usize) {
    let length = (out.len() - start - HEADER + elsewhere) as u32;
    out[start..start + HEADER].copy_from_slice(&Header { stream, kind, length }.to_bytes());
}

/// Appends the frames with which neither side sends on a stream any more.
pub fn put_give_up(out: &mut Vec<u8>, stream: u64, code: u64) {
    put_code(out, stream, Kind::ResetStream, code);
    put_code(out, stream, Kind::StopSending, code);
}

/// The code with which a payload begins; 0: it has none.
pub fn code(payload: &[u8]) -> u64 {
    payload.first_chunk().map_or(0, |code| u64::from_le_bytes(*code))
}

/// Appends a frame that gives up a stream ([`Kind::ResetStream`], [`Kind::StopSending`]).
pub fn put_code(out: &mut Vec<u8>, stream: u64, kind: Kind, code: u64) {
    put(out, stream, kind, &code.to_le_bytes());
}

/// Appends the frame that ends the connection.
pub fn put_close(out: &mut Vec<u8>, code: u64, reason: &str) {
    let payload = [&code.to_le_bytes(), reason.as_bytes()].concat();
    put(out, 0, Kind::Close, &payload);
}

/// A part of a frame, as [`Reader::next`] finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// Bytes of a stream; `fin`: the last. Empty only with `fin`.
    Stream {
        /// The stream.
        stream: u64,
        /// They follow those before.
        bytes: &'a [u8],
        /// Nothing follows.
        fin: bool,
    },
    /// Any other frame, whole.
    Other(Header, &'a [u8]),
}

/// Reads frames from bytes that are cut anywhere. The payloads of streams are passed on as they come, those of other frames are gathered.
#[derive(Debug, Default)]
pub struct Reader {
    /// The beginning of a header, or the payload of a frame that is not of a stream.
    gathered: Vec<u8>,
    /// The frame under way, and how much of its payload is still to come.
    frame: Option<(Header, u32)>,
    /// What is gathered was passed on.
    passed: bool,
}

/// Bytes that are not such frames: a fault of weir.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotFrames;

impl Reader {
    /// The next part of `input`, which advances; `None`: all of it was used.
    ///
    /// # Errors
    /// What comes is not a frame.
    #[inline]
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Option<Part<'s>>, NotFrames> {
        if std::mem::take(&mut self.passed) {
            self.gathered.clear();
        }
        loop {
            let (header, left) = match self.frame {
                Some(frame) => frame,
                None => match self.header(input)? {
                    Some(header) => (header, header.length),
                    None => return Ok(None),
                },
            };
            let (now, later) = input.split_at(input.len().min(left as usize));
            let left = left - now.len() as u32;
            *input = later;
            self.frame = (left > 0).then_some((header, left));
            if matches!(header.kind, Kind::Stream | Kind::StreamFin) {
                let fin = left == 0 && header.kind == Kind::StreamFin;
                if !now.is_empty() || fin {
                    return Ok(Some(Part::Stream { stream: header.stream, bytes: now, fin }));
                }
            } else {
                if left == 0 && now.len() == header.length as usize {
                    return Ok(Some(Part::Other(header, now)));
                }
                if now.len() + left as usize == header.length as usize {
                    self.gathered.clear();
                }
                self.gathered.extend_from_slice(now);
                if left == 0 {
                    self.passed = true;
                    return Ok(Some(Part::Other(header, &self.gathered)));
                }
            }
            if input.is_empty() {
                return Ok(None);
            }
        }
    }

    /// The payload that comes next is not in the input, but so many bytes elsewhere. Returns its stream, and whether it is the stream's
    /// end; `None`: no frame of a stream has room for all of it.
    pub fn elsewhere(&mut self, count: usize) -> Option<(u64, bool)> {
        let (header, left) = self.frame.filter(|(_, left)| count <= *left as usize)?;
        if !matches!(header.kind, Kind::Stream | Kind::StreamFin) {
            return None;
        }
        let left = left - count as u32;
        self.frame = (left > 0).then_some((header, left));
        Some((header.stream, left == 0 && header.kind == Kind::StreamFin))
    }

    /// Reads a header, gathered if it was cut.
    #[inline]
    fn header(&mut self, input: &mut &[u8]) -> Result<Option<Header>, NotFrames> {
        if self.gathered.is_empty()
            && let Some((header, rest)) = input.split_first_chunk::<HEADER>()
        {
            *input = rest;
            return Header::of(header).map(Some).ok_or(NotFrames);
        }
        let (now, later) = input.split_at(input.len().min(HEADER - self.gathered.len()));
        self.gathered.extend_from_slice(now);
        *input = later;
        let Some(header) = self.gathered.first_chunk::<HEADER>() else { return Ok(None) };
        let header = Header::of(header).ok_or(NotFrames)?;
        self.gathered.clear();
        Ok(Some(header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All frames, with the parts of streams joined.
    fn read(pieces: &[&[u8]]) -> Vec<(u64, Kind, Vec<u8>)> {
        let (mut reader, mut found) = (Reader::default(), Vec::<(u64, Kind, Vec<u8>)>::new());
        for mut piece in pieces.iter().copied() {
            loop {
                let (stream, kind, bytes) = match reader.next(&mut piece).unwrap() {
                    None => break,
                    Some(Part::Other(header, payload)) => (header.stream, header.kind, payload.to_vec()),
                    Some(Part::Stream { stream, bytes, fin: true }) => (stream, Kind::StreamFin, bytes.to_vec()),
                    Some(Part::Stream { stream, bytes, fin: false }) => (stream, Kind::Stream, bytes.to_vec()),
                };
                match found.last_mut() {
                    Some(last) if last.0 == stream && last.1 == Kind::Stream => {
                        last.1 = kind;
                        last.2.extend(bytes);
                    }
                    _ => found.push((stream, kind, bytes)),
                }
            }
            assert!(piece.is_empty());
        }
        found
    }

    #[test]
    fn frames_may_be_cut_anywhere() {
        let mut bytes = Vec::new();
        put(&mut bytes, 100, Kind::MaxStreams, b"");
        put(&mut bytes, 0, Kind::Stream, b"GET /");
        put_code(&mut bytes, 4, Kind::ResetStream, 0x10c);
        put_code(&mut bytes, 1 << 40, Kind::StopSending, u64::MAX);
        put(&mut bytes, 8, Kind::StreamFin, b"");
        put(&mut bytes, 12, Kind::StreamFin, b"all");
        put_close(&mut bytes, 0x100, "over");
        let whole = read(&[&bytes]);
        let kinds = whole.iter().map(|(stream, kind, payload)| (*stream, *kind, payload.len())).collect::<Vec<_>>();
        let expected = [
            (100, Kind::MaxStreams, 0),
            (0, Kind::Stream, 5),
            (4, Kind::ResetStream, 8),
            (1 << 40, Kind::StopSending, 8),
            (8, Kind::StreamFin, 0),
            (12, Kind::StreamFin, 3),
            (0, Kind::Close, 12),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(overhead(&bytes), 7 * HEADER as u64);
        for size in 1..bytes.len() {
            assert_eq!(read(&bytes.chunks(size).collect::<Vec<_>>()), whole, "pieces of {size}");
        }
    }

    #[test]
    fn other_bytes_are_a_fault() {
        assert_eq!(Reader::default().next(&mut &[9; HEADER][..]), Err(NotFrames));
    }
}
