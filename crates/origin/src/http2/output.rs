//! The output of one event: frames are gathered in one buffer, which goes to the connection's transport. Bodies are not
//! copied where the transport does not copy them. The session of HTTP/2 writes here.

use weir_wire::http2::Output;

use crate::transport::Transport;

/// Pieces of bodies up to this size are copied behind their frame's head: sending one piece is cheaper than two.
const SMALL: usize = 4096;

/// Frames on their way to a transport.
#[derive(Debug)]
pub(super) struct FrameOutput<'a, T> {
    transport: &'a mut T,
    /// Bytes in the transport that the kernel has not taken.
    unsent: usize,
    buffer: Vec<u8>,
    /// Bytes given to the transport.
    gone: u64,
}

impl<'a, T: Transport> FrameOutput<'a, T> {
    /// Gathers frames in `buffer`, which is empty.
    pub(super) fn new(transport: &'a mut T, buffer: Vec<u8>) -> FrameOutput<'a, T> {
        FrameOutput { unsent: transport.unsent(), transport, buffer, gone: 0 }
    }

    /// Bytes that were written.
    pub(super) fn written(&self) -> u64 {
        self.gone + self.buffer.len() as u64
    }

    /// Bytes that the kernel has not taken.
    pub(super) fn waiting(&self) -> usize {
        self.unsent + self.buffer.len()
    }

    /// Gives the transport the gathered frames.
    pub(super) fn flush(&mut self) {
        if !self.buffer.is_empty() {
            self.transport.send(&self.buffer);
            self.sent(0);
        }
    }

    /// The transport has taken the buffer, and so many bytes of a body.
    fn sent(&mut self, body: usize) {
        self.gone += (self.buffer.len() + body) as u64;
        self.buffer.clear();
        self.unsent = self.transport.unsent();
    }

    /// The transport.
    pub(super) fn transport(&mut self) -> &mut T {
        self.transport
    }

    /// Returns the buffer for reuse.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }
}

impl<T: Transport> Output for FrameOutput<'_, T> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn body(&mut self, piece: &'static [u8]) {
        if piece.len() <= SMALL {
            return self.buffer.extend_from_slice(piece);
        }
        self.transport.send_with(&self.buffer, piece);
        self.sent(piece.len());
    }
}
