//! What a protocol of the origin implements: the server's half of one connection.
//!
//! [`crate::worker`] calls it, with TLS below ([`crate::tls_layer`]) or without. Nothing here assumes requests with
//! methods, paths or statuses: bytes come in, and bytes, timers and counters go out. `docs/add-a-protocol.md` lists
//! what a protocol needs.

use std::fmt::Debug;

use weir_net::Conn;

use crate::state::WorkerState;
use crate::transport::Transport;

/// Something that happened on a connection.
#[derive(Debug)]
pub(crate) enum SessionEvent<'a> {
    /// Bytes arrived.
    Data(&'a [u8]),
    /// The kernel has taken everything that was queued.
    Sent,
    /// The peer has finished sending.
    Eof,
    /// The connection is gone.
    Failed {
        /// Bytes that the kernel has not taken.
        unsent: usize,
        /// The peer has reset the connection.
        reset: bool,
    },
    /// The timer with this number has expired.
    Timeout(u32),
    /// The origin stops: accept no more requests.
    Stop,
    /// The origin has stopped: reset the connection.
    Abort,
    /// TLS has failed. Its layer closes the connection.
    TlsFailed,
    /// Another connection has sent this to all that take part ([`WorkerState::broadcast`]).
    Broadcast(&'a [u8]),
}

/// The server side of one connection.
///
/// When its connection ends, a session is kept and reused for the next connection in its slot.
pub(crate) trait Session: Debug {
    /// What the sessions of one worker share, in addition to [`WorkerState`] itself: caches, buffers, options.
    type Shared: Debug;

    /// The protocols offered by ALPN, best first; empty: ALPN is not used.
    const ALPN: &'static [&'static str];

    /// The names of a key-value protocol's operations, for counting.
    const OPERATIONS: &'static [&'static str] = &[];

    /// Makes a session that no connection has used.
    fn new() -> Self;

    /// A connection was accepted.
    fn begin(&mut self, conn: Conn);

    /// The TLS handshake is done. `alpn` is the protocol that ALPN selected, if any.
    fn on_negotiated(&mut self, alpn: Option<&str>) {
        let _ = alpn;
    }

    /// Handles an event.
    fn on_event<T: Transport>(
        &mut self,
        transport: &mut T,
        state: &mut WorkerState<Self::Shared>,
        event: SessionEvent<'_>,
    );

    /// Whether the connection has ended. It gets no more events.
    fn is_closed(&self) -> bool;
}
