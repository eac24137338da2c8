//! Where a message ends: its header says how long it is.

use super::ParseError;
use crate::messages::{Extent, Frame, Messages};

/// Takes whole messages out of a stream.
pub type Reader = Messages<MessageFrame>;

/// Bytes of both headers.
pub(super) const HEADERS: usize = 16;

/// Finds the end of messages.
#[derive(Debug)]
pub struct MessageFrame {
    limit: usize,
}

impl MessageFrame {
    /// Messages of at most `limit` bytes.
    pub fn new(limit: usize) -> MessageFrame {
        MessageFrame { limit }
    }
}

impl Frame for MessageFrame {
    type Error = ParseError;

    #[inline]
    fn extent(&mut self, bytes: &[u8]) -> Result<Extent, ParseError> {
        if !b"\x50\x50".starts_with(&bytes[..bytes.len().min(2)]) {
            return Err(ParseError::BadMagic);
        }
        let Some(size) = bytes.get(4..8) else {
            // A peer that speaks something else is told from a slow one by its first bytes.
            let next = if bytes.len() < 2 { 2 } else { 8 };
            return Ok(Extent::Bytes(next - bytes.len()));
        };
        let size = u32::from_be_bytes(size.try_into().expect("four bytes")) as usize;
        match size {
            ..HEADERS => Err(ParseError::BadSize),
            size if size > self.limit => Err(ParseError::TooLarge),
            size if size > bytes.len() => Ok(Extent::Bytes(size - bytes.len())),
            size => Ok(Extent::Whole(size)),
        }
    }
}
