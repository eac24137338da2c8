//! The driver of a node in a simulated world. Inside of a task's step a wait returns at once; outside, it runs the world until something
//! happens to the node.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::network::{ListenerId, NodeId, Notice};
use super::{Shared, World};
use crate::{
    Address, Clock, Conn, CpuTime, DatagramCounts, Datagrams, Driver, Event, Handler, Io, SchedulingClass,
    SocketLimits, Wake,
};

/// See the module. It belongs to one node; dropping it closes the node's sockets.
#[derive(Debug)]
pub struct SimDriver {
    world: World,
    node: NodeId,
    clock_offset: u64,
}

/// A listening socket of a world. Dropping it closes it, unless a driver has it.
#[derive(Debug)]
pub struct SimListener {
    shared: Option<Arc<Shared>>,
    id: ListenerId,
    address: Address,
}

/// Wakes a node of a world.
#[derive(Debug, Clone)]
pub struct SimWaker {
    shared: Arc<Shared>,
    node: NodeId,
}

/// The clock of a node's machine.
#[derive(Debug, Clone)]
pub struct SimClock {
    world: World,
    offset: u64,
}

impl SimClock {
    /// Its monotonic clock.
    pub fn now(&self) -> u64 {
        self.world.now() + self.offset
    }

    /// Its wall clock.
    pub fn unix_now(&self) -> u64 {
        self.world.unix_now()
    }
}

impl SimListener {
    pub(super) fn new(shared: Arc<Shared>, id: ListenerId, address: Address) -> SimListener {
        SimListener { shared: Some(shared), id, address }
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.network().close_listener(self.id);
        }
    }
}

impl Wake for SimWaker {
    fn wake(&self) {
        self.shared.network().node(self.node).woken = true;
    }
}

impl SimDriver {
    pub(super) fn new(world: World, node: NodeId, clock_offset: u64) -> SimDriver {
        SimDriver { world, node, clock_offset }
    }

    /// The number of its node.
    pub fn node(&self) -> usize {
        self.node
    }

    /// The address of the other end of a TCP connection.
    pub fn peer_address(&self, conn: Conn) -> Option<SocketAddr> {
        self.world.shared.network().peer_address(self.node, conn)
    }

    /// Ends the stream to the peer behind what is queued, and goes on reading.
    pub fn shut_down(&mut self, conn: Conn) {
        self.world.shared.network().shut_down(self.node, conn);
    }

    /// Hands to the kernel what is queued, as the next turn would.
    pub fn flush(&mut self) {
        self.world.shared.network().flush(self.node);
    }

    /// Passes on what is ready. Returns whether anything was.
    fn dispatch<H: Handler>(&mut self, handler: &mut H) -> bool {
        let mut any = false;
        self.world.shared.network().accept(self.node);
        // It ends: what handlers send leaves with the next turn.
        loop {
            let next = self.world.shared.network().next_notice(self.node);
            let Some((conn, notice)) = next else { return any };
            any = true;
            handler.on_event(self, conn, event(&notice));
        }
    }

    /// A time of the node's clock as one of the world's.
    fn world_time(&self, until: Option<u64>) -> u64 {
        until.map_or(u64::MAX, |until| until.saturating_sub(self.clock_offset))
    }
}

fn event(notice: &Notice) -> Event<'_> {
    match notice {
        Notice::Accepted(listener) => Event::Accepted(*listener),
        Notice::Connected => Event::Connected,
        Notice::Data(bytes) => Event::Data(bytes),
        Notice::Skipped(bytes) => Event::Skipped(*bytes),
        Notice::Datagrams { from, bytes, segment } => {
            Event::Datagrams(Datagrams { from: *from, bytes, segment: *segment })
        }
        Notice::Sent => Event::Sent,
        Notice::Eof => Event::Eof,
        Notice::Failed { error, unsent } => {
            Event::Failed { error: io::Error::from_raw_os_error(*error), unsent: *unsent }
        }
    }
}

impl Drop for SimDriver {
    fn drop(&mut self) {
        self.world.shared.network().close_all(self.node);
    }
}

impl Io for SimDriver {
    fn now(&self) -> u64 {
        self.world.now() + self.clock_offset
    }

    fn unix_now(&self) -> u64 {
        self.world.unix_now()
    }

    fn cpu_ns(&self) -> u64 {
        self.world.shared.network().node(self.node).cpu_ns
    }

    fn cpu_time(&self) -> CpuTime {
        let us = self.cpu_ns() / 1_000;
        CpuTime { user_us: us / 2, system_us: us - us / 2 }
    }

    fn connect(&mut self, to: &Address, from: Option<IpAddr>) -> io::Result<Conn> {
        self.world.shared.network().connect(self.node, to, from)
    }

    fn connect_datagrams(&mut self, to: SocketAddr, from: Option<IpAddr>) -> io::Result<Conn> {
        self.world.shared.network().connect_datagrams(self.node, to, from)
    }

    fn send_datagrams(&mut self, conn: Conn, to: Option<SocketAddr>, bytes: &[u8], segment: usize) {
        self.world.shared.network().send_datagrams(self.node, conn, to, bytes, segment);
    }

    fn datagram_counts(&self) -> DatagramCounts {
        self.world.shared.network().node(self.node).datagrams
    }

    fn send_with(&mut self, conn: Conn, head: &[u8], body: &'static [u8]) {
        let mut network = self.world.shared.network();
        network.send(self.node, conn, head);
        network.send(self.node, conn, body);
    }

    fn skip(&mut self, conn: Conn, bytes: u64) {
        self.world.shared.network().skip(self.node, conn, bytes);
    }

    fn receive_at_most(&mut self, conn: Conn, bytes: u64) {
        self.world.shared.network().receive_at_most(self.node, conn, bytes);
    }

    fn limit_sockets(&mut self, limits: SocketLimits) {
        if let Some(bytes) = limits.receive_buffer {
            self.world.shared.network().node(self.node).options.receive_buffer = bytes as usize;
        }
    }

    fn batch_completions(&mut self, within: std::time::Duration, events: u32) -> bool {
        self.world.shared.network().node(self.node).gather = (within.as_nanos() as u64, events as usize);
        true
    }

    fn want_sent(&mut self, conn: Conn) {
        self.world.shared.network().want_sent(self.node, conn);
    }

    fn close(&mut self, conn: Conn) {
        self.world.shared.network().close(self.node, conn);
    }

    fn abort(&mut self, conn: Conn) {
        self.world.shared.network().abort(self.node, conn);
    }

    fn unsent(&self, conn: Conn) -> usize {
        self.world.shared.network().unsent(self.node, conn)
    }
}

impl Driver for SimDriver {
    type Listener = SimListener;
    type Waker = SimWaker;

    fn name(&self) -> &'static str {
        "simulated"
    }

    fn listen(&mut self, listener: impl Into<SimListener>) -> io::Result<()> {
        let mut listener = listener.into();
        // The network owns it from here on.
        listener.shared = None;
        self.world.shared.network().attach(self.node, listener.id);
        Ok(())
    }

    fn stop_listening(&mut self) {
        self.world.shared.network().close_listeners_of(self.node);
    }

    fn refuse(&mut self, listener: usize, refuse: bool) -> io::Result<()> {
        self.world.shared.network().refuse(self.node, listener, refuse);
        Ok(())
    }

    fn poll<H: Handler>(&mut self, handler: &mut H, until: Option<u64>) -> io::Result<()> {
        self.flush();
        let until = self.world_time(until);
        loop {
            let any = self.dispatch(handler);
            let woken = std::mem::take(&mut self.world.shared.network().node(self.node).woken);
            let is_nested = self.world.shared.stepping.load(Ordering::Relaxed);
            let is_over = any || woken || is_nested || self.world.shared.network().has_lost_all(self.node);
            if is_over || self.world.now() >= until || !self.world.wait_for(self.node, until) {
                break;
            }
        }
        self.world.shared.network().end_turn(self.node);
        Ok(())
    }

    fn waker(&self) -> SimWaker {
        SimWaker { shared: self.world.shared.clone(), node: self.node }
    }

    fn clock(&self) -> Clock {
        Clock::World(SimClock { world: self.world.clone(), offset: self.clock_offset })
    }

    fn wake_latency(&self) -> u64 {
        self.world.shared.network().node(self.node).options.wake_latency
    }

    fn yield_now(&mut self) {}

    fn set_scheduling_class(&mut self, class: SchedulingClass) -> io::Result<()> {
        self.world.shared.network().record_class(self.node, class);
        Ok(())
    }

    fn open(&self) -> usize {
        self.world.shared.network().open(self.node)
    }
}
