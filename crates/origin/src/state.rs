//! What the connections of one worker share: counters, timers, TLS buffers, and the state of their protocol.
//! [`crate::worker`] makes it and passes it to sessions.

use std::sync::Arc;

use weir_net::{Clock, Conn, TimerQueue};
use weir_wire::tls::Scratch;

use crate::counters::{AllCounters, WorkerCounters};
use crate::member_faults::MemberFaults;

/// Shared by the connections of one worker. Their protocol adds an `S`.
#[derive(Debug)]
pub(crate) struct WorkerState<S> {
    pub(crate) all_counters: Arc<AllCounters>,
    /// The number of this worker's first counters, and of those of the connection that has an event.
    first: usize,
    current: usize,
    /// The driver's clock.
    pub(crate) clock: Clock,
    /// The timers of all connections, each with a number that its session chose.
    pub(crate) timers: TimerQueue<(Conn, u32)>,
    /// For TLS: the record that was opened last, and records that are sealed and not yet sent.
    pub(crate) opened: Scratch,
    pub(crate) sealed: Vec<u8>,
    /// What goes wrong at addresses, for a while.
    pub(crate) faults: MemberFaults,
    /// Bytes that the connection with an event sends to all others of the worker.
    pub(crate) broadcast: Vec<u8>,
    /// The state that the protocol adds.
    pub(crate) shared: S,
}

impl<S> WorkerState<S> {
    /// The state of the worker with this number.
    pub(crate) fn new(all_counters: Arc<AllCounters>, worker: usize, shared: S, clock: Clock) -> WorkerState<S> {
        let (timers, opened, sealed) = (TimerQueue::default(), Scratch::new(), Vec::new());
        let first = worker * all_counters.addresses();
        let (faults, broadcast) = (MemberFaults::default(), Vec::new());
        WorkerState { all_counters, first, current: first, clock, timers, opened, sealed, faults, broadcast, shared }
    }

    /// The same with faults of its addresses.
    pub(crate) fn with_faults(self, faults: MemberFaults) -> WorkerState<S> {
        WorkerState { faults, ..self }
    }

    /// From now on, counts for this address of those that the origin listens on.
    #[inline]
    pub(crate) fn count_for(&mut self, address: usize) {
        self.current = self.first + address;
    }

    /// The number of that address.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        self.current - self.first
    }

    /// This worker's counters, for the address of the connection that has an event.
    #[inline]
    pub(crate) fn counters(&self) -> &WorkerCounters {
        self.all_counters.worker(self.current)
    }

    /// The same counters, and what the protocol adds.
    #[inline]
    pub(crate) fn counters_and_shared(&mut self) -> (&WorkerCounters, &mut S) {
        (self.all_counters.worker(self.current), &mut self.shared)
    }

    /// The counters of all workers.
    pub(crate) fn all_counters(&self) -> &AllCounters {
        &self.all_counters
    }

    /// A connection was accepted.
    pub(crate) fn connection_opened(&self) {
        self.all_counters.opened(self.current);
    }

    /// A connection has ended. `reader`: the counters were read over it.
    pub(crate) fn connection_closed(&self, reader: bool) {
        self.all_counters.closed(reader);
    }
}
