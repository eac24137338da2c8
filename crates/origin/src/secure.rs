//! TLS below what is spoken: records in, plaintext up; plaintext down, records out.
//!
//! What an event leads to is sealed into one buffer that all connections of a worker share, and given to the driver in
//! one piece where nobody waits for it. Bytes not taken by the kernel are reckoned in sealed bytes, which are more than
//! those of the plaintext, so the counters are behind by the records' overhead until a connection's queue is empty.
//!
//! This module does not know protocols above TLS.

use std::mem;

use weir_model::counters::TlsCounters;
use weir_net::{Conn, Io};
use weir_wire::tls::{Negotiated, Session, TlsEvent};

use crate::desk::Desk;
use crate::line::{Line, Sink};
use crate::talk::{Heard, Talk};

/// A connection with TLS.
struct Sealed<'a, I> {
    io: &'a mut I,
    conn: Conn,
    session: &'a mut Session,
    /// Sealed and not yet given to the driver.
    out: Vec<u8>,
}

impl<I: Io> Sealed<'_, I> {
    fn flush(&mut self) {
        if !self.out.is_empty() {
            self.io.send(self.conn, &self.out);
            self.out.clear();
        }
    }

    fn seal(&mut self, parts: &[&[u8]]) {
        // Fails only after the session's end, when nobody reads what is sent.
        let _ = self.session.write(parts, &mut self.out);
    }
}

impl<I: Io> Sink for Sealed<'_, I> {
    fn send(&mut self, bytes: &[u8]) {
        self.seal(&[bytes]);
    }

    fn send_with(&mut self, head: &[u8], body: &'static [u8]) {
        self.seal(&[head, body]);
    }
}

impl<I: Io> Line for Sealed<'_, I> {
    const COPIES: bool = true;

    fn want_sent(&mut self) {
        self.flush();
        self.io.want_sent(self.conn);
    }

    fn close(&mut self) {
        self.session.close(&mut self.out);
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

/// Deals with what happened on a connection that speaks TLS.
pub(crate) fn hear<I: Io>(
    session: &mut Session,
    talk: &mut Talk,
    io: &mut I,
    conn: Conn,
    desk: &mut Desk,
    heard: Heard<'_>,
) {
    let out = mem::take(&mut desk.sealed);
    let mut line = Sealed { io, conn, session, out };
    match heard {
        Heard::Data(bytes) => open(&mut line, talk, desk, bytes),
        heard => talk.hear(&mut line, desk, heard),
    }
    line.flush();
    let mut out = line.out;
    out.shrink_to(KEEP);
    desk.sealed = out;
}

/// What the shared buffer keeps, bytes: a few records.
const KEEP: usize = 256 << 10;

fn open<I: Io>(line: &mut Sealed<'_, I>, talk: &mut Talk, desk: &mut Desk, bytes: &[u8]) {
    let mut scratch = mem::take(&mut desk.scratch);
    let mut input = bytes;
    while !talk.is_over() {
        match line.session.next(&mut input, &mut scratch, &mut line.out) {
            Ok(None) => break,
            Ok(Some(TlsEvent::Plaintext(place))) => talk.hear(line, desk, Heard::Data(&scratch[place])),
            Ok(Some(TlsEvent::Ready)) => {
                if let Some(agreed) = line.session.negotiated() {
                    desk.all_counters().tls(|counters| count(counters, agreed));
                    talk.agreed_on(line.conn, agreed.alpn.as_deref());
                }
            }
            Ok(Some(TlsEvent::Closed)) => talk.hear(line, desk, Heard::Eof),
            Err(_) => {
                desk.all_counters().tls(|counters| counters.failed += 1);
                talk.hear(line, desk, Heard::Broken);
                // With the alert, if there is one.
                line.flush();
                line.io.close(line.conn);
            }
        }
    }
    desk.scratch = scratch;
}

fn count(counters: &mut TlsCounters, agreed: &Negotiated) {
    counters.handshakes += 1;
    counters.resumed += u64::from(agreed.resumed);
    *counters.versions.entry(agreed.version.as_str().to_owned()).or_default() += 1;
    *counters.suites.entry(agreed.suite.to_owned()).or_default() += 1;
}
