//! Whole messages out of a stream of bytes, for protocols whose messages are small enough to be kept; and lines, of which
//! some consist.
//!
//! [`crate::redis`], [`crate::juno`] and [`crate::memcached`] use it. A message that arrives in one piece is returned as a slice of the
//! caller's bytes; only one that was split is copied, into a buffer with a bound. It does not know what is in a message.

use std::fmt;

/// Finds the end of a protocol's messages.
pub trait Frame {
    /// What a peer did wrong.
    type Error: Copy + fmt::Debug;

    /// Looks at the bytes of a message, from its first one; there is at least one. Called again with what it asked for
    /// behind them, until it returns [`Extent::Whole`]; the next call begins a message. To find a mistake at the same byte
    /// however a message is split, ask for no more bytes than are needed to see it.
    ///
    /// # Errors
    /// The bytes cannot be a message, or it is too large.
    fn extent(&mut self, bytes: &[u8]) -> Result<Extent, Self::Error>;
}

/// How far a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// It is complete, and so many bytes long.
    Whole(usize),
    /// At least so many bytes are missing, one or more.
    Bytes(usize),
    /// At least the rest of a line is missing. If it does not end within so many bytes, one or more, it is too long.
    Line(usize),
}

/// Takes messages out of a stream.
#[derive(Debug)]
pub struct Messages<F: Frame> {
    frame: F,
    /// The beginning of a message that was split.
    stored: Vec<u8>,
    state: State<F::Error>,
}

#[derive(Debug, Clone, Copy)]
enum State<E> {
    /// Between two messages.
    Between,
    /// Inside a message: what was missing of it when its frame was asked last, less what arrived since.
    Inside(Extent),
    /// What is stored was returned.
    Returned,
    Failed(E),
}

impl<F: Frame> Messages<F> {
    /// A stream before its first byte.
    pub fn new(frame: F) -> Messages<F> {
        Messages { frame, stored: Vec::new(), state: State::Between }
    }

    /// Whether the stream is between two messages, as far as it was read. If it ends elsewhere, a message was cut off.
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Between | State::Returned)
    }

    /// Returns the next message from `input`, and advances `input`. `None`: all of `input` was used; give more bytes.
    ///
    /// # Errors
    /// What the peer did wrong. The stream cannot be read any further, and every further call returns the same error.
    #[inline]
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Result<Option<&'a [u8]>, F::Error> {
        match self.state {
            State::Between => {}
            State::Inside(missing) => return self.go_on(input, missing),
            State::Returned => self.forget(),
            State::Failed(error) => return Err(error),
        }
        if input.is_empty() {
            return Ok(None);
        }
        match self.frame.extent(input) {
            Ok(Extent::Whole(length)) => {
                let (message, rest) = input.split_at(length);
                *input = rest;
                Ok(Some(message))
            }
            Ok(missing) => {
                self.stored.extend_from_slice(input);
                *input = &[];
                self.state = State::Inside(missing);
                Ok(None)
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// The rest of a message that was split. Its frame is asked again only when there is what it asked for, so that a
    /// message in many pieces is not looked at many times.
    #[cold]
    fn go_on<'a>(&'a mut self, input: &mut &[u8], mut missing: Extent) -> Result<Option<&'a [u8]>, F::Error> {
        loop {
            let wanted = match missing {
                Extent::Whole(_) => {
                    self.state = State::Returned;
                    return Ok(Some(&self.stored));
                }
                Extent::Bytes(bytes) => bytes,
                Extent::Line(most) => {
                    let window = &input[..input.len().min(most)];
                    memchr::memchr(b'\n', window).map_or(most, |at| at + 1)
                }
            };
            let (piece, rest) = input.split_at(wanted.min(input.len()));
            self.stored.extend_from_slice(piece);
            *input = rest;
            if piece.len() < wanted {
                let less = wanted - piece.len();
                self.state = State::Inside(if matches!(missing, Extent::Line(_)) {
                    Extent::Line(less)
                } else {
                    Extent::Bytes(less)
                });
                return Ok(None);
            }
            missing = match self.frame.extent(&self.stored) {
                Ok(missing) => missing,
                Err(error) => return Err(self.fail(error)),
            };
        }
    }

    /// Drops the message that was returned, and its buffer: in time each connection has one that was split.
    #[cold]
    fn forget(&mut self) {
        self.state = State::Between;
        self.stored = Vec::new();
    }

    #[cold]
    fn fail(&mut self, error: F::Error) -> F::Error {
        self.state = State::Failed(error);
        self.stored = Vec::new();
        error
    }
}

/// Longest line with its end, bytes.
const LINE: usize = 64 * 1024;

/// The first line of some bytes.
pub(crate) enum Line<'a> {
    /// It is complete.
    Whole {
        /// Without its end.
        text: &'a [u8],
        /// With its end.
        length: usize,
    },
    /// It goes on, for at most so many bytes: one or more.
    Open(usize),
}

/// Why some bytes do not begin with a line.
pub(crate) enum LineError {
    /// CR without LF, or LF without CR.
    BadEnd,
    /// It is longer than [`LINE`].
    TooLong,
    /// It is longer than the room for it.
    NoRoom,
}

/// The first line, which ends in CR LF. `room` is how many bytes of it there may be in the message.
#[inline]
pub(crate) fn line(bytes: &[u8], room: usize) -> Result<Line<'_>, LineError> {
    let most = room.min(LINE);
    let window = &bytes[..bytes.len().min(most)];
    let Some(end) = memchr::memchr(b'\n', window) else {
        return match most - window.len() {
            0 if most < LINE => Err(LineError::NoRoom),
            0 => Err(LineError::TooLong),
            most => Ok(Line::Open(most)),
        };
    };
    match window[..end].split_last() {
        Some((b'\r', text)) if !text.contains(&b'\r') => Ok(Line::Whole { text, length: end + 1 }),
        _ => Err(LineError::BadEnd),
    }
}
