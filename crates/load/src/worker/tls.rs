//! TLS under a connection's protocol.
//!
//! Sessions are the slots', buffers are the worker's. `bytes_in` and `bytes_out` count what is on the wire.

use std::collections::BTreeMap;

use weir_model::load::ErrorKind;
use weir_net::Io;
use weir_wire::tls::{ClientConfig, Scratch, Session, TlsError, TlsEvent};

use super::pool::SlotState;
use super::{SlotId, Worker};
use crate::plan::Plan;
use crate::recorder::{Histo, histo};

/// What a worker needs for TLS, and what it saw of it.
#[derive(Debug)]
pub(super) struct TlsLayer {
    /// By target: tickets of one are of no use at another.
    configs: Vec<ClientConfig>,
    scratch: Scratch,
    /// Bytes for the wire, for as long as it takes to send them.
    sealed: Vec<u8>,
    pub counters: TlsCounters,
}

/// What TLS came to on one thread.
#[derive(Debug, Clone)]
pub(crate) struct TlsCounters {
    pub handshakes: u64,
    pub resumed: u64,
    pub failed: u64,
    pub versions: BTreeMap<&'static str, u64>,
    pub suites: BTreeMap<&'static str, u64>,
    pub groups: BTreeMap<&'static str, u64>,
    /// Times from connected to agreed.
    pub times: Histo,
}

impl TlsLayer {
    /// `None`: TLS is not spoken.
    pub(super) fn new(plan: &Plan) -> Option<Box<TlsLayer>> {
        let tls = plan.tls.as_ref()?;
        let counters = TlsCounters {
            handshakes: 0,
            resumed: 0,
            failed: 0,
            versions: BTreeMap::new(),
            suites: BTreeMap::new(),
            groups: BTreeMap::new(),
            times: histo(),
        };
        Some(Box::new(TlsLayer {
            configs: plan.targets.iter().map(|_| tls.config.for_thread()).collect(),
            scratch: Scratch::new(),
            sealed: Vec::new(),
            counters,
        }))
    }
}

impl Worker {
    /// A connection was made: begins the handshake. False: no TLS is spoken.
    pub(super) fn begin_tls<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) -> bool {
        let (Some(secure), Some(tls)) = (&mut self.secure, &self.plan.tls) else {
            return false;
        };
        let slot = &mut self.pool.slots[id as usize];
        slot.state = SlotState::Handshaking;
        slot.since = now;
        let target = slot.target as usize;
        secure.sealed.clear();
        let begun = Session::client(&secure.configs[target], &tls.names[target]).and_then(|mut session| {
            session.start(&mut secure.sealed)?;
            Ok(session)
        });
        match begun {
            Ok(session) => {
                slot.tls = Some(session);
                self.send_sealed(io, id);
            }
            Err(error) => self.tls_failed(io, id, &error, now),
        }
        true
    }

    /// Hands what is sealed to the driver.
    fn send_sealed<I: Io>(&mut self, io: &mut I, id: SlotId) {
        if let (Some(secure), Some(conn)) = (&self.secure, self.pool.slots[id as usize].conn)
            && !secure.sealed.is_empty()
        {
            io.send(conn, &secure.sealed);
            self.slab.counts.bytes_out += secure.sealed.len() as u64;
        }
    }

    /// Bytes of TLS came.
    pub(super) fn on_records<I: Io>(&mut self, io: &mut I, id: SlotId, bytes: &[u8], now: u64) {
        let conn = self.pool.slots[id as usize].conn;
        // Plaintext is handled while other sessions' calls need no scratch.
        let mut scratch = match &mut self.secure {
            Some(secure) => std::mem::take(&mut secure.scratch),
            None => return,
        };
        let mut rest = bytes;
        // As long as it is the same connection, and still there.
        while self.pool.slots[id as usize].conn == conn {
            let (Some(secure), Some(session)) = (&mut self.secure, &mut self.pool.slots[id as usize].tls) else {
                break;
            };
            secure.sealed.clear();
            let event = session.next(&mut rest, &mut scratch, &mut secure.sealed);
            self.send_sealed(io, id);
            match event {
                Ok(None) => break,
                Ok(Some(TlsEvent::Ready)) => self.on_agreed(io, id, now),
                Ok(Some(TlsEvent::Plaintext(range))) => match self.plan.http2 {
                    None => self.on_answers(io, id, &scratch[range], now),
                    Some(_) => self.on_frames(io, id, &scratch[range], now),
                },
                Ok(Some(TlsEvent::Closed)) => {
                    self.on_eof(io, id, now);
                    break;
                }
                Err(error) => {
                    self.tls_failed(io, id, &error, now);
                    break;
                }
            }
        }
        if let Some(secure) = &mut self.secure {
            secure.scratch = scratch;
        }
    }

    /// The handshake is done.
    fn on_agreed<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let slot = &mut self.pool.slots[id as usize];
        let (Some(secure), Some(agreed)) = (&mut self.secure, slot.tls.as_ref().and_then(Session::negotiated)) else {
            return;
        };
        if self.plan.http2.is_some() && agreed.alpn.as_deref() != Some("h2") {
            let detail = "the peer speaks TLS, and does not offer HTTP/2 in it (ALPN h2)";
            self.handshake_failed(io, id, ErrorKind::Tls, detail, now);
            return;
        }
        let counters = &mut secure.counters;
        counters.times.saturating_record(now.saturating_sub(slot.since));
        counters.handshakes += 1;
        counters.resumed += u64::from(agreed.resumed);
        *counters.versions.entry(agreed.version.as_str()).or_default() += 1;
        *counters.suites.entry(agreed.suite).or_default() += 1;
        if let Some(group) = agreed.group {
            *counters.groups.entry(group).or_default() += 1;
        }
        if !self.begin_http2(io, id) {
            self.on_ready(io, id, now);
        }
    }

    /// The handshake failed, or what came after it is not TLS, or says that the peer has a reason to end.
    fn tls_failed<I: Io>(&mut self, io: &mut I, id: SlotId, error: &TlsError, now: u64) {
        let slot = self.pool.slot(id);
        if slot.state == SlotState::Handshaking {
            self.handshake_failed(io, id, ErrorKind::Tls, &error.to_string(), now);
        } else if slot.busy > 0 {
            self.cut(io, id, ErrorKind::Tls, now);
        } else {
            self.slab.counts.closed_by_peer += 1;
            self.cut(io, id, ErrorKind::Tls, now);
        }
    }

    /// Sends plaintext on a connection with TLS. False: the connection has none.
    #[inline]
    pub(super) fn seal<I: Io>(
        secure: &mut Option<Box<TlsLayer>>,
        session: &mut Option<Session>,
        io: &mut I,
        conn: weir_net::Conn,
        plain: &[&[u8]],
    ) -> Option<u64> {
        let (Some(secure), Some(session)) = (secure, session) else {
            return None;
        };
        secure.sealed.clear();
        // Only a session that has failed refuses, and its connection ends with that.
        let _ = session.write(plain, &mut secure.sealed);
        io.send(conn, &secure.sealed);
        Some(secure.sealed.len() as u64)
    }

    /// Says goodbye on a connection with TLS.
    pub(super) fn close_tls<I: Io>(&mut self, io: &mut I, id: SlotId) {
        if let (Some(secure), Some(session)) = (&mut self.secure, &mut self.pool.slots[id as usize].tls) {
            secure.sealed.clear();
            session.close(&mut secure.sealed);
            self.send_sealed(io, id);
        }
    }
}
