//! What the connections of one worker share: its counters, its timers, its buffers for TLS, and what their protocol adds.

use std::sync::Arc;

use weir_wire::tls::Scratch;

use crate::counters::{AllCounters, WorkerCounters};
use crate::timers::Timers;

/// Shared by the connections of one worker, whose sessions share an `S` besides.
#[derive(Debug)]
pub(crate) struct WorkerState<S> {
    pub(crate) all_counters: Arc<AllCounters>,
    worker: usize,
    /// When to wake which connection.
    pub(crate) timers: Timers,
    /// For TLS: the record that was opened last, and what is sealed and not yet sent.
    pub(crate) opened: Scratch,
    pub(crate) sealed: Vec<u8>,
    /// The protocol's own.
    pub(crate) shared: S,
}

impl<S> WorkerState<S> {
    /// The state of one worker, by number.
    pub(crate) fn new(all_counters: Arc<AllCounters>, worker: usize, shared: S) -> WorkerState<S> {
        let (timers, opened, sealed) = (Timers::default(), Scratch::new(), Vec::new());
        WorkerState { all_counters, worker, timers, opened, sealed, shared }
    }

    /// This worker's counters.
    pub(crate) fn counters(&self) -> &WorkerCounters {
        self.all_counters.worker(self.worker)
    }

    /// The counters of all workers.
    pub(crate) fn all_counters(&self) -> &AllCounters {
        &self.all_counters
    }

    /// A connection was accepted.
    pub(crate) fn connection_opened(&self) {
        self.all_counters.opened(self.worker);
    }

    /// A connection has ended; whether the counters were read over it.
    pub(crate) fn connection_closed(&self, reader: bool) {
        self.all_counters.closed(reader);
    }
}
