//! Whole messages out of a stream of bytes, for protocols whose messages are small enough to be kept.
//!
//! [`crate::redis`] and [`crate::juno`] use it. A message that arrives in one piece is returned as a slice of the
//! caller's bytes; only one that was split is copied, into a buffer with a bound. It does not know what is in a message.

use std::fmt;

/// Finds the end of a protocol's messages.
pub trait Frame {
    /// What a peer did wrong.
    type Error: Copy + fmt::Debug;

    /// Looks at the bytes of a message, from its first one; there is at least one. Called again with more bytes of the
    /// same message until it returns [`Extent::Whole`]; the next call begins a message.
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
    /// At least the rest of a line is missing.
    Line,
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
    /// Between two messages, or inside one whose beginning is stored.
    Reading,
    /// What is stored was returned.
    Returned,
    Failed(E),
}

/// A larger buffer is freed when its message was read, so that waiting connections stay small.
const KEPT: usize = 1024;

impl<F: Frame> Messages<F> {
    /// A stream before its first byte.
    pub fn new(frame: F) -> Messages<F> {
        Messages { frame, stored: Vec::new(), state: State::Reading }
    }

    /// Whether the stream is between two messages, as far as it was read. If it ends elsewhere, a message was cut off.
    pub fn is_between(&self) -> bool {
        match self.state {
            State::Reading => self.stored.is_empty(),
            State::Returned => true,
            State::Failed(_) => false,
        }
    }

    /// Returns the next message from `input`, and advances `input`. `None`: all of `input` was used; give more bytes.
    ///
    /// # Errors
    /// What the peer did wrong. The stream cannot be read any further, and every further call returns the same error.
    #[inline]
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Result<Option<&'a [u8]>, F::Error> {
        match self.state {
            State::Reading => {}
            State::Returned => self.forget(),
            State::Failed(error) => return Err(error),
        }
        if !self.stored.is_empty() {
            return self.go_on(input);
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
            Ok(_) => {
                self.stored.extend_from_slice(input);
                *input = &[];
                Ok(None)
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// The rest of a message that was split.
    #[cold]
    fn go_on<'a>(&'a mut self, input: &mut &[u8]) -> Result<Option<&'a [u8]>, F::Error> {
        loop {
            let missing = match self.frame.extent(&self.stored) {
                Ok(Extent::Whole(_)) => {
                    self.state = State::Returned;
                    return Ok(Some(&self.stored));
                }
                Ok(Extent::Bytes(missing)) => missing.min(input.len()),
                Ok(Extent::Line) => memchr::memchr(b'\n', input).map_or(input.len(), |at| at + 1),
                Err(error) => return Err(self.fail(error)),
            };
            if input.is_empty() {
                return Ok(None);
            }
            let (piece, rest) = input.split_at(missing);
            self.stored.extend_from_slice(piece);
            *input = rest;
        }
    }

    /// Drops the message that was returned.
    #[cold]
    fn forget(&mut self) {
        self.state = State::Reading;
        self.stored.clear();
        if self.stored.capacity() > KEPT {
            self.stored = Vec::new();
        }
    }

    #[cold]
    fn fail(&mut self, error: F::Error) -> F::Error {
        self.state = State::Failed(error);
        self.stored = Vec::new();
        error
    }
}
