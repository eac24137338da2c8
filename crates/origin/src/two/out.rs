//! Where frames go: into one buffer, and with it to the connection's line; bodies without a copy where the line makes
//! none.

use weir_wire::http2::Output;

use crate::line::Line;

/// Pieces of bodies up to this size are copied behind their frame's head: one piece is cheaper than two.
const SMALL: usize = 4096;

/// Frames on their way to a line.
#[derive(Debug)]
pub(super) struct Out<'a, L> {
    line: &'a mut L,
    buffer: Vec<u8>,
    /// Bytes that the line has got.
    gone: u64,
}

impl<'a, L: Line> Out<'a, L> {
    /// Frames are gathered in `buffer`, which is empty.
    pub(super) fn new(line: &'a mut L, buffer: Vec<u8>) -> Out<'a, L> {
        Out { line, buffer, gone: 0 }
    }

    /// Bytes that were written.
    pub(super) fn written(&self) -> u64 {
        self.gone + self.buffer.len() as u64
    }

    /// Bytes that the kernel has not taken.
    pub(super) fn waiting(&self) -> usize {
        self.line.unsent() + self.buffer.len()
    }

    /// Gives the line what was gathered.
    pub(super) fn flush(&mut self) {
        if !self.buffer.is_empty() {
            self.line.send(&self.buffer);
            self.gone += self.buffer.len() as u64;
            self.buffer.clear();
        }
    }

    /// The line.
    pub(super) fn line(&mut self) -> &mut L {
        self.line
    }

    /// The buffer, for the next time.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }
}

impl<L: Line> Output for Out<'_, L> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn body(&mut self, piece: &'static [u8]) {
        if piece.len() <= SMALL {
            return self.buffer.extend_from_slice(piece);
        }
        self.line.send_with(&self.buffer, piece);
        self.gone += (self.buffer.len() + piece.len()) as u64;
        self.buffer.clear();
    }
}
