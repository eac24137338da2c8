//! The layer below a protocol: it gathers the bytes of a connection, and encrypts them with TLS.
//!
//! Plaintext goes down through [`Transport::send`], which seals it if the slot has a TLS session; records come up
//! through `Worker::receive_records`. TLS sessions belong to slots, buffers to the worker. Byte counts are those on the
//! wire.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use weir_model::load::{Endpoint, ErrorKind, ProxyVersion, TlsResult};
use weir_net::Io;
use weir_wire::proxy_protocol;
use weir_wire::quic;
use weir_wire::tls::{ClientConfig, Scratch, Session, TlsError, TlsEvent};

use super::Worker;
use super::pool::{ConnSlot, NO_SLOT, SlotId, SlotState};
use crate::interval::{Histo, histo};
use crate::plan::Plan;
use crate::protocol::{Alpn, Protocol};
use crate::tls::count;

/// What a worker sends with.
#[derive(Debug)]
pub(super) struct Transport {
    /// TLS, if it is spoken.
    pub tls: Option<Box<TlsLayer>>,
    /// The bytes of the connection that is gathering, or of the current one.
    pub out: Vec<u8>,
    /// The slot whose bytes are gathered, to leave together.
    pub corked: SlotId,
}

/// What a worker needs for TLS, and what it saw of it.
#[derive(Debug)]
pub(super) struct TlsLayer {
    /// By target: a ticket of one target is of no use at another.
    configs: Vec<ClientConfig>,
    scratch: Scratch,
    /// Records, for as long as it takes to send them.
    records: Vec<u8>,
    pub counters: TlsResult,
    /// Times from connected to negotiated.
    pub times: Histo,
}

impl Transport {
    /// `tls`: it is spoken here, and not inside of QUIC.
    pub(super) fn new(plan: &Plan, tls: bool) -> Transport {
        let layer = |tls: &crate::tls::TlsPlan| TlsLayer {
            configs: plan.targets.iter().map(|_| tls.config.for_thread()).collect(),
            scratch: Scratch::new(),
            records: Vec::new(),
            counters: TlsResult::default(),
            times: histo(),
        };
        let tls = plan.tls.as_ref().filter(|_| tls);
        Transport { tls: tls.map(|tls| Box::new(layer(tls))), out: Vec::new(), corked: NO_SLOT }
    }

    /// Sends bytes and then a body, which is not copied unless it is sealed. Returns how many bytes go on the wire.
    #[inline]
    pub(super) fn send<I: Io, S>(
        &mut self,
        io: &mut I,
        slot: &mut ConnSlot<S>,
        bytes: &[u8],
        body: &'static [u8],
    ) -> u64 {
        let Some(conn) = slot.conn else { return 0 };
        if let (Some(layer), Some(session)) = (&mut self.tls, &mut slot.tls) {
            layer.records.clear();
            // Only a session that has failed refuses, and its connection ends with that.
            let _ = session.write(&[bytes, body], &mut layer.records);
            io.send(conn, &layer.records);
            return layer.records.len() as u64;
        }
        io.send_with(conn, bytes, body);
        (bytes.len() + body.len()) as u64
    }

    /// Sends what was gathered, on the slot that it is for.
    #[inline]
    pub(super) fn flush<I: Io, S>(&mut self, io: &mut I, slot: &mut ConnSlot<S>) -> u64 {
        if self.out.is_empty() {
            return 0;
        }
        let mut out = std::mem::take(&mut self.out);
        let sent = self.send(io, slot, &out, &[]);
        out.clear();
        self.out = out;
        sent
    }

    /// Sends records that the TLS session has written by itself.
    fn send_records<I: Io, S>(&self, io: &mut I, slot: &ConnSlot<S>) -> u64 {
        match (&self.tls, slot.conn) {
            (Some(layer), Some(conn)) if !layer.records.is_empty() => {
                io.send(conn, &layer.records);
                layer.records.len() as u64
            }
            _ => 0,
        }
    }
}

/// The address that a connection says its client has: one for each connection number, of the networks that are set apart for benchmarks
/// (RFC 2544 and RFC 5180), and another port each time that the thread has made a connection.
fn apparent_source(number: u32, made: u64, v4: bool) -> SocketAddr {
    const FIRST_PORT: u64 = 1_024;
    let port = (FIRST_PORT + made % (65_536 - FIRST_PORT)) as u16;
    let number = number.wrapping_add(1);
    let ip = match v4 {
        true => Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) + number % (1 << 17)).into(),
        false => Ipv6Addr::from((0x2001_0002_u128 << 96) + u128::from(number)).into(),
    };
    SocketAddr::new(ip, port)
}

impl<P: Protocol> Worker<P> {
    /// Sends what was gathered for a slot.
    #[inline]
    pub(super) fn flush<I: Io>(&mut self, io: &mut I, id: SlotId) {
        // What frames of streams add does not leave the process.
        let overhead = if P::QUIC { quic::overhead(&self.transport.out) } else { 0 };
        let sent = self.transport.flush(io, &mut self.pool.slots[id as usize]);
        self.recorder.counts().bytes_out += sent.saturating_sub(overhead);
    }

    fn send_records<I: Io>(&mut self, io: &mut I, id: SlotId) {
        let sent = self.transport.send_records(io, &self.pool.slots[id as usize]);
        self.recorder.counts().bytes_out += sent;
    }

    /// A new connection begins with a header of the PROXY protocol, if the load's do: from an address of its own, as if behind it were a
    /// client of a load balancer, to the target.
    pub(super) fn send_proxy_header<I: Io>(&mut self, io: &mut I, id: SlotId) {
        let Some(version) = self.plan.spec.proxy_protocol else { return };
        let (number, made) = (self.share.number(id), self.connector.attempts);
        let slot = &self.pool.slots[id as usize];
        let addresses = match &self.plan.spec.targets[slot.target as usize].address {
            Endpoint::Tcp(target) => Some((apparent_source(number, made, target.is_ipv4()), *target)),
            Endpoint::Unix(_) => None,
        };
        let version = match version {
            ProxyVersion::V1 => proxy_protocol::Version::V1,
            ProxyVersion::V2 => proxy_protocol::Version::V2,
        };
        let mut header = Vec::new();
        proxy_protocol::write(&mut header, version, addresses);
        if let Some(conn) = slot.conn {
            io.send(conn, &header);
            self.recorder.counts().bytes_out += header.len() as u64;
        }
    }

    /// Begins the handshake on a new connection. `false`: the load does not use TLS.
    pub(super) fn begin_tls<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) -> bool {
        let (Some(layer), Some(tls)) = (&mut self.transport.tls, &self.plan.tls) else {
            return false;
        };
        let slot = &mut self.pool.slots[id as usize];
        slot.state = SlotState::Handshaking;
        slot.connected_at = now;
        let target = slot.target as usize;
        layer.records.clear();
        let begun = Session::client(&layer.configs[target], &tls.names[target]).and_then(|mut session| {
            session.start(&mut layer.records)?;
            Ok(session)
        });
        match begun {
            Ok(session) => {
                slot.tls = Some(session);
                self.send_records(io, id);
            }
            Err(error) => self.tls_failed(io, id, &error, now),
        }
        true
    }

    /// Records came.
    pub(super) fn receive_records<I: Io>(&mut self, io: &mut I, id: SlotId, bytes: &[u8], now: u64) {
        let conn = self.pool.slots[id as usize].conn;
        // Plaintext is handled while calls of other sessions need no scratch.
        let mut scratch = match &mut self.transport.tls {
            Some(layer) => std::mem::take(&mut layer.scratch),
            None => return,
        };
        let mut rest = bytes;
        // As long as it is the same connection, and still there.
        while self.pool.slots[id as usize].conn == conn {
            let (Some(layer), Some(session)) = (&mut self.transport.tls, &mut self.pool.slots[id as usize].tls) else {
                break;
            };
            layer.records.clear();
            let event = session.next(&mut rest, &mut scratch, &mut layer.records);
            self.send_records(io, id);
            match event {
                Ok(None) => break,
                Ok(Some(TlsEvent::Ready)) => self.on_negotiated(io, id, now),
                Ok(Some(TlsEvent::Plaintext(range))) => self.receive(io, id, &scratch[range], now),
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
        if let Some(layer) = &mut self.transport.tls {
            layer.scratch = scratch;
        }
    }

    /// The handshake is done.
    fn on_negotiated<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let slot = &mut self.pool.slots[id as usize];
        let negotiated = slot.tls.as_ref().and_then(Session::negotiated);
        let (Some(layer), Some(negotiated)) = (&mut self.transport.tls, negotiated) else {
            return;
        };
        if let Some(Alpn::Required(name)) = self.plan.tls.as_ref().map(|tls| tls.alpn)
            && negotiated.alpn.as_deref() != Some(name)
        {
            let detail = format!("the peer speaks TLS and does not offer the load's protocol in it (ALPN {name})");
            self.handshake_failed(io, id, ErrorKind::Tls, detail, now);
            return;
        }
        layer.times.saturating_record(now.saturating_sub(slot.connected_at));
        count(&mut layer.counters, negotiated);
        self.begin_session(io, id, now);
    }

    /// The handshake failed, or later bytes are not TLS or are an alert of the peer.
    fn tls_failed<I: Io>(&mut self, io: &mut I, id: SlotId, error: &TlsError, now: u64) {
        let slot = self.pool.slot(id);
        if slot.state == SlotState::Handshaking {
            self.handshake_failed(io, id, ErrorKind::Tls, error.to_string(), now);
            return;
        }
        if slot.in_flight == 0 {
            self.ended_by_peer(ErrorKind::Tls, || error.to_string());
        }
        self.record_reason(id, ErrorKind::Tls, error);
        self.cut(io, id, ErrorKind::Tls, now);
    }

    /// Ends the protocol and TLS on a connection.
    pub(super) fn say_goodbye<I: Io>(&mut self, io: &mut I, id: SlotId) {
        self.protocol.close(&mut self.pool.slots[id as usize].session, &mut self.transport.out);
        self.flush(io, id);
        if let (Some(layer), Some(session)) = (&mut self.transport.tls, &mut self.pool.slots[id as usize].tls) {
            layer.records.clear();
            session.close(&mut layer.records);
            self.send_records(io, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apparent_sources_differ_by_connection_and_stay_in_their_networks() {
        let of = |number, made, v4| apparent_source(number, made, v4).to_string();
        assert_eq!([of(0, 0, true), of(0, 1, true)], ["198.18.0.1:1024", "198.18.0.1:1025"]);
        assert_eq!([of(255, 64_512, true), of(131_070, 0, true)], ["198.18.1.0:1024", "198.19.255.255:1024"]);
        assert_eq!(of(131_071, 0, true), "198.18.0.0:1024", "from the beginning");
        assert_eq!(of(u32::MAX - 1, 2, false), "[2001:2::ffff:ffff]:1026");
    }
}
