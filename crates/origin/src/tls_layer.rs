//! The TLS layer, below any session: it turns records into plaintext, and plaintext into records.
//!
//! The output of one event is sealed into one buffer, which all connections of a worker share, and is given to the
//! driver in one piece. Bytes not taken by the kernel are counted as sealed bytes, which are more than the plaintext.
//! So the counters are behind by the overhead of the records until the connection's queue is empty.
//!
//! This module does not know the protocols above it.

use std::mem;

use weir_model::counters::TlsCounters;
use weir_net::{Conn, Io};
use weir_wire::tls::{self, Negotiated, TlsEvent};

use crate::session::{Session, SessionEvent};
use crate::state::WorkerState;
use crate::transport::{Sink, Transport};

/// A connection with TLS.
struct TlsTransport<'a, I> {
    io: &'a mut I,
    conn: Conn,
    tls: &'a mut tls::Session,
    /// Sealed and not yet given to the driver.
    out: Vec<u8>,
}

impl<I: Io> TlsTransport<'_, I> {
    fn flush(&mut self) {
        if !self.out.is_empty() {
            self.io.send(self.conn, &self.out);
            self.out.clear();
        }
    }

    fn seal(&mut self, parts: &[&[u8]]) {
        // This fails only after the session's end, when nothing more is sent.
        let _ = self.tls.write(parts, &mut self.out);
    }
}

impl<I: Io> Sink for TlsTransport<'_, I> {
    fn send(&mut self, bytes: &[u8]) {
        self.seal(&[bytes]);
    }

    fn send_with(&mut self, head: &[u8], body: &'static [u8]) {
        self.seal(&[head, body]);
    }
}

impl<I: Io> Transport for TlsTransport<'_, I> {
    const COPIES: bool = true;

    fn want_sent(&mut self) {
        self.flush();
        self.io.want_sent(self.conn);
    }

    fn close(&mut self) {
        self.tls.close(&mut self.out);
        self.flush();
        self.io.close(self.conn);
    }

    fn abort(&mut self) {
        self.out.clear();
        self.io.abort(self.conn);
    }

    fn unsent(&self) -> usize {
        self.io.unsent(self.conn) + self.out.len()
    }
}

/// The capacity that the shared buffer keeps, in bytes: a few records.
const KEEP: usize = 256 << 10;

/// Handles an event of a connection that has TLS.
pub(crate) fn on_event<S: Session, I: Io>(
    tls: &mut tls::Session,
    session: &mut S,
    io: &mut I,
    conn: Conn,
    state: &mut WorkerState<S::Shared>,
    event: SessionEvent<'_>,
) {
    let out = mem::take(&mut state.sealed);
    let mut transport = TlsTransport { io, conn, tls, out };
    match event {
        SessionEvent::Data(bytes) => open(&mut transport, session, state, bytes),
        event => session.on_event(&mut transport, state, event),
    }
    transport.flush();
    let mut out = transport.out;
    out.shrink_to(KEEP);
    state.sealed = out;
}

/// Opens records, and passes their plaintext to the session.
fn open<S: Session, I: Io>(
    transport: &mut TlsTransport<'_, I>,
    session: &mut S,
    state: &mut WorkerState<S::Shared>,
    bytes: &[u8],
) {
    let mut opened = mem::take(&mut state.opened);
    let mut input = bytes;
    while !session.is_closed() {
        match transport.tls.next(&mut input, &mut opened, &mut transport.out) {
            Ok(None) => break,
            Ok(Some(TlsEvent::Plaintext(range))) => {
                session.on_event(transport, state, SessionEvent::Data(&opened[range]));
            }
            Ok(Some(TlsEvent::Ready)) => {
                if let Some(negotiated) = transport.tls.negotiated() {
                    state.all_counters.tls(|counters| count(counters, negotiated));
                    session.on_negotiated(negotiated.alpn.as_deref());
                }
            }
            Ok(Some(TlsEvent::Closed)) => session.on_event(transport, state, SessionEvent::Eof),
            Err(_) => {
                state.all_counters.tls(|counters| counters.failed += 1);
                session.on_event(transport, state, SessionEvent::TlsFailed);
                // This includes the alert, if there is one.
                transport.flush();
                transport.io.close(transport.conn);
            }
        }
    }
    state.opened = opened;
}

fn count(counters: &mut TlsCounters, negotiated: &Negotiated) {
    counters.handshakes += 1;
    counters.resumed += u64::from(negotiated.resumed);
    *counters.versions.entry(negotiated.version.as_str().to_owned()).or_default() += 1;
    *counters.suites.entry(negotiated.suite.to_owned()).or_default() += 1;
}
