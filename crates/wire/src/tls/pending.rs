//! A record that has not come whole.

use super::keys::HEADER;
use super::records::{Fail, body_len};
use super::scratch::Scratch;

/// The part of a record that has come. Holds a buffer of the thread's only while the record's body comes.
#[derive(Default)]
pub(super) struct Pending {
    header: [u8; HEADER],
    /// Bytes that have come, header included: at most 5 + 18432.
    have: u16,
    /// Where the body goes; empty until the header is whole.
    buffer: Box<[u8]>,
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.have == 0
    }

    /// Takes what it lacks from the input; says whether the record is whole now.
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

    /// The whole record: header, buffer, how much of the buffer is the body. The buffer is to be given back.
    pub(super) fn take(&mut self) -> ([u8; HEADER], Box<[u8]>, usize) {
        let len = usize::from(self.have) - HEADER;
        self.have = 0;
        (self.header, std::mem::take(&mut self.buffer), len)
    }
}

/// Copies as much as there is and as fits, and moves the input's start.
fn take(input: &mut &[u8], to: &mut [u8]) -> usize {
    let len = input.len().min(to.len());
    let (now, later) = input.split_at(len);
    to[..len].copy_from_slice(now);
    *input = later;
    len
}
