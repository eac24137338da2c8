//! The buffers that all sessions of a thread share. The load and each worker of the origin own one set.

use std::fmt;
use std::ops::Deref;

use super::keys::{BODY_MOST, HEADER};

/// Bytes of a buffer: one record.
const SIZE: usize = HEADER + BODY_MOST;

/// Spare buffers kept at most (18 KiB each).
const SPARES: usize = 64;

/// The buffers that all sessions of a thread share: one for plaintext, and spares for records that arrive in pieces.
/// It grows to 18 KiB, and by as much for each record that is incomplete at the same time (of which it keeps 64).
#[derive(Default)]
pub struct Scratch {
    /// Plaintext of the last record opened.
    plain: Box<[u8]>,
    /// Buffers of records that arrived in pieces, for reuse. Their contents are meaningless.
    spares: Vec<Box<[u8]>>,
}

impl Scratch {
    /// Empty; it grows when it is used.
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// The buffer that a record is opened into.
    pub(super) fn target(&mut self) -> &mut [u8] {
        if self.plain.is_empty() {
            self.plain = empty();
        }
        &mut self.plain
    }

    /// A buffer for the largest record. It may contain old bytes.
    pub(super) fn take(&mut self) -> Box<[u8]> {
        self.spares.pop().unwrap_or_else(empty)
    }

    /// Returns a buffer.
    pub(super) fn give_back(&mut self, buffer: Box<[u8]>) {
        if self.spares.len() < SPARES {
            self.spares.push(buffer);
        }
    }
}

fn empty() -> Box<[u8]> {
    vec![0; SIZE].into_boxed_slice()
}

impl Deref for Scratch {
    type Target = [u8];

    /// `&scratch[range]`: the plaintext of the last [`super::TlsEvent::Plaintext`]. Valid until the next call of any session.
    fn deref(&self) -> &[u8] {
        &self.plain
    }
}

impl fmt::Debug for Scratch {
    /// Without the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").field("spares", &self.spares.len()).finish_non_exhaustive()
    }
}
