//! An incomplete record. [`super::records`] uses it.

use super::keys::HEADER;
use super::records::{Fail, body_len};
use super::scratch::Scratch;

/// The received part of a record. It holds a buffer of the thread only while the record's body arrives.
#[derive(Default)]
pub(super) struct Pending {
    header: [u8; HEADER],
    /// Bytes received, header included: at most 5 + 18432.
    have: u16,
    /// The buffer of the body; empty until the header is complete.
    buffer: Box<[u8]>,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.have == 0
    }

    /// Reads missing bytes from the input. Returns whether the record is complete.
    pub(super) fn fill(&mut self, input: &mut &[u8], scratch: &mut Scratch) -> Result<bool, Fail> {
        let mut have = usize::from(self.have);
        if have < HEADER {
            have += take(input, &mut self.header[have..]);
            self.have = have as u16;
            if have < HEADER {
                return Ok(false);
            }
        }
        let len = body_len(self.header)?;
        if self.buffer.is_empty() {
            self.buffer = scratch.take();
        }
        have += take(input, &mut self.buffer[have - HEADER..len]);
        // `len` is at most BODY_MOST.
        self.have = have as u16;
        Ok(have == HEADER + len)
    }

    /// The complete record: header, buffer, and the length of the body in it. The buffer has to be returned.
    pub(super) fn take(&mut self) -> ([u8; HEADER], Box<[u8]>, usize) {
        let len = usize::from(self.have) - HEADER;
        self.have = 0;
        (self.header, std::mem::take(&mut self.buffer), len)
    }
}

/// Copies as much as is available and fits, and advances the input.
fn take(input: &mut &[u8], to: &mut [u8]) -> usize {
    let len = input.len().min(to.len());
    let (now, later) = input.split_at(len);
    to[..len].copy_from_slice(now);
    *input = later;
    len
}
