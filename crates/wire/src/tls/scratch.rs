//! The buffers that all sessions of a thread share.

use std::ops::{Deref, Range};

/// Buffers that all sessions of a thread share: where plaintext is put, and spares for records that come in pieces. One a
/// thread; it grows to about 17 KiB, and by as much for each record that is incomplete at the same time.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Plaintext of the last record opened.
    pub(super) plain: Vec<u8>,
}

impl Scratch {
    /// Empty; it grows when it is used.
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// The plaintext of the last [`super::TlsEvent::Plain`], to be changed in place. Valid until the next call of any session.
    pub fn plain_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.plain[range]
    }
}

impl Deref for Scratch {
    type Target = [u8];

    /// `&scratch[range]`: the plaintext of the last [`super::TlsEvent::Plain`]. Valid until the next call of any session.
    fn deref(&self) -> &[u8] {
        &self.plain
    }
}
