//! Sockets of datagrams in a world: each datagram goes its own way, and may be lost, doubled or overtaken. It does not know what they say.
//!
//! What they say is not part of a trace's hash, for QUIC's keys are drawn by its TLS library and by nobody's seed: times, peers and lengths are.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};

use rand::Rng;

use super::network::{Event, ListenerId, Network, NodeId, Notice, Route, SocketId, State};
use crate::{Address, Conn, Datagrams};

/// What a socket of datagrams has, beside what all have.
#[derive(Debug)]
pub(super) struct DatagramEnd {
    local: SocketAddr,
    /// Its one peer; `None`: any.
    peer: Option<SocketAddr>,
    /// Arrived and not read, with their sources.
    inbox: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Bytes of these.
    waiting: usize,
}

impl Network {
    /// Binds an address for datagrams.
    pub(super) fn bind_datagrams(&mut self, address: SocketAddr, shared: bool) -> io::Result<(ListenerId, SocketAddr)> {
        let (id, address) = self.bind_kind(address.into(), 0, shared, true)?;
        match address {
            Address::Tcp(address) => Ok((id, address)),
            Address::Unix(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// A bound socket of datagrams is a connection of the node from now on.
    pub(super) fn attach_datagrams(&mut self, node: NodeId, listener: ListenerId) {
        let Some(local) = self.listeners[listener].address.tcp() else { return };
        let socket = self.add_datagrams(node, local, None);
        self.sockets[socket].accepted = Some(self.nodes[node].listener_number(listener));
        self.list(socket);
    }

    fn add_datagrams(&mut self, node: NodeId, local: SocketAddr, peer: Option<SocketAddr>) -> SocketId {
        let socket = self.add_socket(node, State::Open);
        self.sockets[socket].datagrams =
            Some(Box::new(DatagramEnd { local, peer, inbox: VecDeque::new(), waiting: 0 }));
        self.take_slot(node, socket);
        socket
    }

    pub(super) fn connect_datagrams(&mut self, node: NodeId, to: SocketAddr, from: Option<IpAddr>) -> io::Result<Conn> {
        if self.open(node) >= self.nodes[node].options.descriptors {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let from = from.filter(|from| !from.is_unspecified());
        let ports = self.nodes[node].options.ports;
        let Some((local, _)) = self.take_route(from, to, ports) else {
            return Err(io::Error::from_raw_os_error(libc::EADDRNOTAVAIL));
        };
        self.charge(node);
        let socket = self.add_datagrams(node, local, Some(to));
        self.sockets[socket].conn.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Each datagram leaves at once.
    pub(super) fn send_datagrams(
        &mut self,
        node: NodeId,
        conn: Conn,
        to: Option<SocketAddr>,
        bytes: &[u8],
        segment: usize,
    ) {
        let Some(socket) = self.usable(node, conn) else { return };
        let Some(end) = &self.sockets[socket].datagrams else { return };
        let Some(to) = to.or(end.peer) else { return };
        let local = end.local;
        self.charge(node);
        self.nodes[node].datagrams.send_calls += 1;
        let target = self.datagram_socket(local, to).map(|found| self.sockets[found].node);
        let link = self.link(node, target.unwrap_or(node));
        for one in bytes.chunks(segment.max(1)) {
            self.nodes[node].datagrams.sent += 1;
            let departs = self.departure(node, target.unwrap_or(node), one.len());
            let mut chance = |of: u32| of > 0 && self.random.random_range(0..1_000_000) < of;
            let lost = chance(link.loss) | link.down | (link.mtu > 0 && one.len() > link.mtu);
            let copies = if lost { 0 } else { 1 + usize::from(chance(link.duplicates)) };
            for _ in 0..copies {
                let jitter = if link.jitter == 0 { 0 } else { self.random.random_range(0..=link.jitter) };
                let event = Event::Datagram { from: (local, to), sender: socket, bytes: one.to_vec() };
                self.schedule(departs + link.latency + jitter, event);
            }
        }
    }

    /// The socket that gets what goes from one address to another: of those that share an address always the same.
    fn datagram_socket(&self, from: SocketAddr, to: SocketAddr) -> Option<SocketId> {
        let mut found = (0..self.sockets.len()).filter(|id| {
            let one = &self.sockets[*id];
            one.state == State::Open
                && one.datagrams.as_ref().is_some_and(|end| end.local == to && end.peer.is_none_or(|peer| peer == from))
        });
        let all: Vec<SocketId> = found.by_ref().collect();
        all.get(usize::from(from.port()) % all.len().max(1)).copied()
    }

    pub(super) fn datagram_arrives(&mut self, (from, to): Route, sender: SocketId, bytes: Vec<u8>) {
        let Some(socket) = self.datagram_socket(from, to) else {
            // The kernel says so (ICMP); who has many peers does not hear of it.
            let back = self.now + self.default_link.latency;
            if self.sockets[sender].datagrams.as_ref().is_some_and(|end| end.peer.is_some()) {
                self.schedule(back, Event::Refused { socket: sender, error: libc::ECONNREFUSED });
            }
            return;
        };
        let node = self.sockets[socket].node;
        let room = self.nodes[node].options.receive_buffer;
        let Some(end) = &mut self.sockets[socket].datagrams else { return };
        if end.waiting + bytes.len() > room {
            return;
        }
        end.waiting += bytes.len();
        end.inbox.push_back((from, bytes));
        self.list(socket);
    }

    /// Reads what came from one peer in datagrams of one size, as Linux coalesces it.
    pub(super) fn read_datagrams(&mut self, socket: SocketId) -> Option<Notice> {
        let end = self.sockets[socket].datagrams.as_mut()?;
        let (from, mut bytes) = end.inbox.pop_front()?;
        let segment = bytes.len();
        let mut count = 1;
        while bytes.len() == count * segment
            && count < Datagrams::MOST
            && let Some((_, next)) = end.inbox.front().filter(|(other, next)| *other == from && next.len() <= segment)
            && bytes.len() + next.len() <= Datagrams::MOST_BYTES
        {
            bytes.extend_from_slice(next);
            count += 1;
            end.inbox.pop_front();
        }
        end.waiting -= bytes.len();
        let node = self.sockets[socket].node;
        let counts = &mut self.nodes[node].datagrams;
        counts.received += count as u64;
        counts.received_trains += 1;
        counts.receive_calls += 1;
        Some(Notice::Datagrams { from, bytes, segment })
    }
}
