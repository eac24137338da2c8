//! The way out of one connection: what a flow of answers may do with it.
//!
//! This module does not know what is sent.

use weir_net::{Conn, Io};

/// Takes bytes, in order.
pub(crate) trait Sink {
    /// Takes bytes; they are copied.
    fn send(&mut self, bytes: &[u8]);

    /// Takes `head`, copied, and then `body`, which need not be.
    fn send_with(&mut self, head: &[u8], body: &'static [u8]);
}

/// One connection of a driver, for as long as an event lasts.
pub(crate) trait Line: Sink {
    /// Whether bodies are copied even by [`Sink::send_with`].
    const COPIES: bool;

    /// Asks for [`weir_net::Event::Sent`].
    fn want_sent(&mut self);

    /// Sends what is queued, then closes.
    fn close(&mut self);

    /// Resets it.
    fn abort(&mut self);

    /// Bytes taken by [`Sink::send`] that the kernel has not taken; never fewer than there are.
    fn unsent(&self) -> usize;
}

/// A connection without TLS.
#[derive(Debug)]
pub(crate) struct Plain<'a, I> {
    /// The driver.
    pub(crate) io: &'a mut I,
    /// Its connection.
    pub(crate) conn: Conn,
}

impl<I: Io> Sink for Plain<'_, I> {
    fn send(&mut self, bytes: &[u8]) {
        self.io.send(self.conn, bytes);
    }

    fn send_with(&mut self, head: &[u8], body: &'static [u8]) {
        self.io.send_with(self.conn, head, body);
    }
}

impl<I: Io> Line for Plain<'_, I> {
    const COPIES: bool = false;

    fn want_sent(&mut self) {
        self.io.want_sent(self.conn);
    }

    fn close(&mut self) {
        self.io.close(self.conn);
    }

    fn abort(&mut self) {
        self.io.abort(self.conn);
    }

    fn unsent(&self) -> usize {
        self.io.unsent(self.conn)
    }
}
