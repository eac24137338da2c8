//! The reports of a running load. `controller` makes them; callers of [`crate::run()`] receive them.

use weir_model::load::LoadSecond;

use crate::detail::{Detail, Distributions};

/// The progress of a load. The window's marks are reported on time; the last row of warm-up or window may follow some
/// milliseconds after the mark that ends it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// Keys are being written, before the load; comes about every second.
    Preloading {
        /// Written so far.
        written: u64,
        /// To be written.
        of: u64,
    },
    /// Connections are being made; comes about every 50 ms until all are up.
    Connecting {
        /// Established so far.
        open: u32,
        /// Requested.
        of: u32,
    },
    /// All connections are up, and the load waits for its start. Only of a load with a gate.
    Ready,
    /// A second of warm-up is over.
    Warmup {
        /// Its number, 0-based.
        second: u32,
        /// What happened in it.
        row: LoadSecond,
    },
    /// The measured window begins.
    WindowStart {
        /// When, Unix time in milliseconds.
        unix_ms: u64,
    },
    /// A second of the window is over.
    Second(LoadSecond),
    /// More detail on the state after that second; follows [`Progress::Second`] directly.
    Detail(Box<Detail>),
    /// The measured window is over.
    WindowEnd,
    /// The load waits for requests in flight; reported about every 50 ms.
    Draining {
        /// Requests due that have not ended, sent or not.
        in_flight: u64,
    },
    /// The load is over. Has the whole distributions behind the result's percentiles. Reported once, last.
    Distributions(Box<Distributions>),
}
