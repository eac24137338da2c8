//! Frames: how messages are cut out of the stream of bytes between weir and an agent. Both sides call it; it does not know
//! what the messages mean.
//!
//! A frame is 20 bytes, little endian, and a payload:
//!
//! | bytes | |
//! |---|---|
//! | 4 | length of the payload, at most [`MOST`] |
//! | 4 | CRC-32 of all that follows it |
//! | 8 | sequence number, from 0 in each direction, without a gap |
//! | 4 | how much of the payload is text (JSON); the rest is raw, such as a part of a file |
//!
//! Anything that does not fit ends the connection: a transport that lost or changed a byte has no later point from which it
//! could be trusted again.

use std::io::{self, Read, Write};

/// Longest payload, bytes: far above the series of a day, and far below what a number read from noise would be.
pub const MOST: usize = 64 * 1024 * 1024;

/// Bytes before the payload.
const HEADER: usize = 20;

/// Where the part of the header begins that the checksum covers.
const CHECKED: usize = 8;

/// What one frame carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    payload: Vec<u8>,
    text: usize,
}

impl Frame {
    /// A text, and raw bytes behind it.
    pub fn new(text: Vec<u8>, bytes: &[u8]) -> Frame {
        let (length, mut payload) = (text.len(), text);
        payload.extend_from_slice(bytes);
        Frame { payload, text: length }
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.payload[..self.text]
    }

    /// The raw bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.payload[self.text..]
    }
}

/// Why no frame could be read or written. The connection is of no use afterwards.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The stream ended between two frames, and nobody had said that it would.
    #[error("the connection ended without a goodbye")]
    Ended,
    /// The stream ended within a frame.
    #[error("the connection ended within a message: byte {0} of it was the last")]
    Cut(usize),
    /// The system reported an error.
    #[error("the connection broke: {0}")]
    Broken(io::Error),
    /// The length is beyond [`MOST`], or the text longer than the payload.
    #[error("the connection carried a message of impossible length ({0} bytes)")]
    Length(usize),
    /// The checksum does not match.
    #[error("the connection changed a message on its way (number {0}: wrong checksum)")]
    Checksum(u64),
    /// A frame is missing or came twice.
    #[error("the connection lost or repeated a message (number {found} came instead of {expected})")]
    Sequence {
        /// The number that was due.
        expected: u64,
        /// The number that came.
        found: u64,
    },
}

/// Reads frames.
#[derive(Debug)]
pub struct FrameReader<R> {
    input: R,
    next: u64,
}

impl<R: Read> FrameReader<R> {
    /// Reads from `input`, of which nothing was read yet.
    pub fn new(input: R) -> FrameReader<R> {
        FrameReader { input, next: 0 }
    }

    /// Reads the next frame; waits for it.
    ///
    /// # Errors
    /// When the stream has ended or is damaged.
    pub fn read(&mut self) -> Result<Frame, FrameError> {
        let header = self.header()?;
        let (length, sum) = (number(&header[0..4]) as usize, number(&header[4..8]));
        let (found, text) = (u64::from(number(&header[12..16])) << 32, number(&header[16..20]) as usize);
        let found = found | u64::from(number(&header[8..12]));
        if length > MOST {
            return Err(FrameError::Length(length));
        }
        // A length alone takes no memory: it may be wrong.
        let mut payload = Vec::new();
        self.input.by_ref().take(length as u64).read_to_end(&mut payload).map_err(FrameError::Broken)?;
        if payload.len() < length {
            return Err(FrameError::Cut(HEADER + payload.len()));
        }
        if checksum(&header, &payload) != sum {
            return Err(FrameError::Checksum(found));
        }
        if text > length {
            return Err(FrameError::Length(text));
        }
        if found != self.next {
            return Err(FrameError::Sequence { expected: self.next, found });
        }
        self.next += 1;
        Ok(Frame { payload, text })
    }

    /// Reads a header.
    fn header(&mut self) -> Result<[u8; HEADER], FrameError> {
        let (mut header, mut filled) = ([0; HEADER], 0);
        while filled < HEADER {
            match self.input.read(&mut header[filled..]) {
                Ok(0) if filled == 0 => return Err(FrameError::Ended),
                Ok(0) => return Err(FrameError::Cut(filled)),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FrameError::Broken(error)),
            }
        }
        Ok(header)
    }
}

/// Writes frames.
#[derive(Debug)]
pub struct FrameWriter<W> {
    output: W,
    next: u64,
}

impl<W: Write> FrameWriter<W> {
    /// Writes to `output`, to which nothing was written yet.
    pub fn new(output: W) -> FrameWriter<W> {
        FrameWriter { output, next: 0 }
    }

    /// Writes a frame and flushes it.
    ///
    /// # Errors
    /// When it is longer than [`MOST`], or the system reported an error.
    pub fn write(&mut self, frame: &Frame) -> Result<(), FrameError> {
        if frame.payload.len() > MOST {
            return Err(FrameError::Length(frame.payload.len()));
        }
        let mut header = [0; HEADER];
        header[0..4].copy_from_slice(&(frame.payload.len() as u32).to_le_bytes());
        header[8..16].copy_from_slice(&self.next.to_le_bytes());
        header[16..20].copy_from_slice(&(frame.text as u32).to_le_bytes());
        let sum = checksum(&header, &frame.payload);
        header[4..8].copy_from_slice(&sum.to_le_bytes());
        let whole = [&header[..], &frame.payload].concat();
        self.output.write_all(&whole).and_then(|()| self.output.flush()).map_err(FrameError::Broken)?;
        self.next += 1;
        Ok(())
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte))
}

fn checksum(header: &[u8; HEADER], payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&header[CHECKED..]);
    sum.update(payload);
    sum.finalize()
}
