//! What a protocol of the origin implements: the server's half of one connection.
//!
//! [`crate::worker`] calls it, with TLS below ([`crate::tls_layer`]) or without. Nothing here assumes requests with methods, paths
//! or statuses: bytes come in, and bytes, timers and counters go out. `docs/add-a-protocol.md` lists what a protocol needs.

use std::fmt::Debug;

use weir_net::Conn;

use crate::state::WorkerState;
use crate::transport::Transport;

/// Something that happened on a connection.
#[derive(Debug)]
pub(crate) enum SessionEvent<'a> {
    /// Bytes came.
    Data(&'a [u8]),
    /// The kernel has taken everything that was queued.
    Sent,
    /// The peer will send no more.
    Eof,
    /// The connection is gone.
    Failed {
        /// Bytes that the kernel has not taken.
        unsent: usize,
        /// The peer has reset it.
        reset: bool,
    },
    /// The timer that was set with this number has expired.
    Timeout(u32),
    /// The origin stops: no more requests are to be taken.
    Stop,
    /// The origin has stopped: the connection is to be reset.
    Abort,
    /// TLS has failed. Its layer closes the connection.
    TlsFailed,
}

/// One connection's server half.
///
/// A session is kept when its connection ends, and used for the next one in its slot.
pub(crate) trait Session: Debug {
    /// What the sessions of one worker share, besides [`WorkerState`] itself: caches, buffers, options.
    type Shared: Debug;

    /// What is offered by ALPN, best first; empty: ALPN is not used.
    const ALPN: &'static [&'static str];

    /// A session that no connection has used.
    fn new() -> Self;

    /// A connection was accepted.
    fn begin(&mut self, conn: Conn);

    /// The TLS handshake is done, with this protocol by ALPN or none.
    fn on_negotiated(&mut self, alpn: Option<&str>) {
        let _ = alpn;
    }

    /// Deals with an event.
    fn on_event<T: Transport>(
        &mut self,
        transport: &mut T,
        state: &mut WorkerState<Self::Shared>,
        event: SessionEvent<'_>,
    );

    /// Whether the connection has ended. It gets no more events.
    fn is_closed(&self) -> bool;
}

#[cfg(test)]
mod tests;
