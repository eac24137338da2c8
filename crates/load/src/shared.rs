//! State shared by the calling thread and the workers: a few numbers, and channels for finished intervals. Used by
//! `run` and `worker`.
//!
//! No single request touches it, unless each request has a connection of its own. Workers read the numbers once a turn
//! and write their own a hundred times a second; intervals are sent once a second. No thread writes a cache line that another reads each
//! turn, because a load would then not grow with its threads.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use weir_model::load::{ConnectionSpread, ErrorKind, QuicResult, SlowClients, TlsResult};

use crate::clock::NEVER;
use crate::counts::RequestCounts;
use crate::interval::{Histo, Interval, StatusLatency};
use crate::protocol::Watches;

/// The numbers. Times are of the run's clock.
#[derive(Debug)]
pub(crate) struct Shared {
    start: AtomicU64,
    end: AtomicU64,
    abandon: AtomicBool,
    finished: AtomicU32,
    last: AtomicU64,
    connections: OpenConnections,
    /// One a worker.
    pub gauges: Vec<Gauge>,
}

/// Connections open, of all workers, and the most there were. All workers write them.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OpenConnections {
    now: AtomicU32,
    most: AtomicU32,
}

/// The gauges of a worker. A line has 64 bytes, and many CPUs fetch two at a time.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Gauge {
    /// Connections ready for requests.
    pub open: AtomicU32,
    /// Requests due that have not ended.
    pub waiting: AtomicU64,
}

impl Shared {
    pub(crate) fn new(workers: u32) -> Shared {
        Shared {
            start: AtomicU64::new(NEVER),
            end: AtomicU64::new(NEVER),
            abandon: AtomicBool::new(false),
            finished: AtomicU32::new(0),
            last: AtomicU64::new(0),
            connections: OpenConnections::default(),
            gauges: (0..workers).map(|_| Gauge::default()).collect(),
        }
    }

    /// Fixes when the load starts and when its window ends.
    pub(crate) fn begin(&self, start: u64, end: u64) {
        self.end.store(end, Ordering::Relaxed);
        // A worker that sees the start must see the end too.
        self.start.store(start, Ordering::Release);
    }

    /// When the load starts, once that is known.
    pub(crate) fn start(&self) -> Option<u64> {
        Some(self.start.load(Ordering::Acquire)).filter(|start| *start != NEVER)
    }

    /// When the window ends.
    pub(crate) fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Ends the window earlier.
    pub(crate) fn end_at(&self, end: u64) {
        self.end.fetch_min(end, Ordering::Relaxed);
    }

    /// Asks the workers to stop waiting and give up.
    pub(crate) fn abandon(&self) {
        self.abandon.store(true, Ordering::Relaxed);
    }

    /// Whether to give up.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandon.load(Ordering::Relaxed)
    }

    /// A worker of a load of a fixed number of requests has finished its share; its last response arrived at `last`.
    pub(crate) fn finish(&self, last: u64) {
        self.last.fetch_max(last, Ordering::Relaxed);
        // A thread that sees the last worker finish must see the times of all.
        self.finished.fetch_add(1, Ordering::AcqRel);
    }

    /// When the last request of such a load ended, once all have.
    pub(crate) fn all_finished(&self) -> Option<u64> {
        let all = self.finished.load(Ordering::Acquire) as usize == self.gauges.len();
        all.then(|| self.last.load(Ordering::Relaxed))
    }

    /// A connection was made.
    pub(crate) fn opened(&self) {
        let open = self.connections.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.connections.most.fetch_max(open, Ordering::Relaxed);
    }

    /// One was closed or lost.
    pub(crate) fn closed(&self) {
        self.connections.now.fetch_sub(1, Ordering::Relaxed);
    }

    /// Most connections that were open at a time.
    pub(crate) fn most_open(&self) -> u32 {
        self.connections.most.load(Ordering::Relaxed)
    }

    /// Sum of the workers' gauges: connections ready for requests.
    pub(crate) fn open(&self) -> u32 {
        let load = |gauge: &Gauge| gauge.open.load(Ordering::Relaxed);
        self.gauges.iter().map(load).sum()
    }

    /// Sum of the workers' gauges: requests due that have not ended.
    pub(crate) fn waiting(&self) -> u64 {
        let load = |gauge: &Gauge| gauge.waiting.load(Ordering::Relaxed);
        self.gauges.iter().map(load).sum()
    }
}

/// A message of a worker. Each worker sends them in the order of this list.
#[derive(Debug)]
pub(crate) enum Message {
    /// All connections are up that could be made.
    Connected(Ready),
    /// A second, or a part of one, is over.
    Interval(u32, Box<Interval>),
    /// The load is over.
    Done(Box<WorkerResult>),
    /// The slow clients are gone. No worker sends it.
    SlowClients(Vec<SlowClients>),
}

/// The result of connecting.
#[derive(Debug)]
pub(crate) struct Ready {
    pub open: u32,
    /// Failed attempts.
    pub attempts: u64,
    /// The last failure.
    pub failure: Option<(ErrorKind, String)>,
}

/// The final report of a worker.
#[derive(Debug)]
pub(crate) struct WorkerResult {
    /// Which of this client's.
    pub thread: u32,
    /// Requests due before the window.
    pub before: RequestCounts,
    /// Requests due in the window.
    pub window: RequestCounts,
    /// Latency by status, but for the usual one.
    pub by_status: Option<StatusLatency>,
    /// Times to connect.
    pub connect: Histo,
    /// How evenly connections were served, and their mean latencies.
    pub by_connection: (ConnectionSpread, Histo),
    /// Connections that brought a response.
    pub used: u64,
    /// The fewest streams that a peer allowed a connection.
    pub min_streams: u32,
    /// The TLS statistics, if TLS was used, and times from connected to negotiated.
    pub tls: Option<(TlsResult, Histo)>,
    /// What QUIC counted, if it carried the load.
    pub quic: Option<QuicResult>,
    /// What it saw of the responses.
    pub watches: Watches,
    /// CPU time in the window, microseconds: user, system.
    pub cpu_us: (u64, u64),
    /// The part of it spent on busy-polling.
    pub busy_poll_us: u64,
    /// It was of the real-time class.
    pub real_time: bool,
    /// Share of the window on the CPU, busy-polling not counted.
    pub busy: f64,
    /// See [`weir_model::load::LoadResult::coalescing_us`].
    pub coalescing_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which pair of cache lines a value begins on.
    fn lines<T>(value: &T) -> usize {
        std::ptr::from_ref(value).addr() / 128
    }

    #[test]
    fn no_worker_writes_a_line_that_another_reads() {
        let shared = Shared::new(64);
        let mut written: Vec<usize> = shared.gauges.iter().map(lines).collect();
        written.push(lines(&shared.connections.now));
        let read = [lines(&shared.start), lines(&shared.end), lines(&shared.abandon), lines(&shared.gauges)];
        assert!(read.iter().all(|line| !written.contains(line)));
        written.sort_unstable();
        written.dedup();
        assert_eq!(written.len(), 65, "each has lines of its own");
    }
}
