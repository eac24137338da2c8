//! Where a session sends its bytes: a connection of the driver, or the TLS layer above it.
//!
//! Sessions use it while they handle an event. This module does not know what is sent.

use weir_net::{Conn, Io};

/// Takes bytes, in order.
pub(crate) trait Sink {
    /// Sends a copy of `bytes`.
    fn send(&mut self, bytes: &[u8]);

    /// Sends a copy of `head`, and then `body`, which need not be copied.
    fn send_with(&mut self, head: &[u8], body: &'static [u8]);
}

/// One connection of a driver, while an event is handled.
pub(crate) trait Transport: Sink {
    /// Whether bodies are copied even by [`Sink::send_with`].
    const COPIES: bool;

    /// Asks for [`weir_net::Event::Sent`].
    fn want_sent(&mut self);

    /// Sends what is queued, then closes.
    fn close(&mut self);

    /// Resets the connection.
    fn abort(&mut self);

    /// Bytes given to [`Sink::send`] that the kernel has not taken. The number may be too high, never too low.
    fn unsent(&self) -> usize;
}

/// A connection without TLS.
#[derive(Debug)]
pub(crate) struct PlainTransport<'a, I> {
    /// The driver.
    pub(crate) io: &'a mut I,
    /// Its connection.
    pub(crate) conn: Conn,
}

impl<I: Io> Sink for PlainTransport<'_, I> {
    fn send(&mut self, bytes: &[u8]) {
        self.io.send(self.conn, bytes);
    }

    fn send_with(&mut self, head: &[u8], body: &'static [u8]) {
        self.io.send_with(self.conn, head, body);
    }
}

impl<I: Io> Transport for PlainTransport<'_, I> {
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

    #[inline]
    fn unsent(&self) -> usize {
        self.io.unsent(self.conn)
    }
}
