//! Data of a load beyond its rows and its result: its state after each second for a live view, and whole distributions
//! for formats that need every bucket. `aggregate` fills it; callers of [`crate::run()`] get it through `Progress`.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use weir_model::load::{ErrorKind, Quantiles};

use crate::recorder::Merged;

/// The state of a load at the end of a second of its window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Detail {
    /// The latency of requests that were due in the window and ended in this second.
    pub second: Quantiles,
    /// The latency of requests that were due in the window and have ended so far.
    pub so_far: Quantiles,
    /// Requests that failed in the window so far, by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Connections open now.
    pub open: u32,
    /// Requests that are due and have not ended.
    pub in_flight: u64,
}

/// The distributions of requests due in the window. **Values are nanoseconds**, from 1 µs (values below about half of
/// it count as 0) to 1 h, with 3 significant digits.
#[derive(Debug, Clone, PartialEq)]
pub struct Distributions {
    /// Due to answered.
    pub latency: Histogram<u64>,
    /// Sent to answered.
    pub service: Histogram<u64>,
    /// Due to sent.
    pub lag: Histogram<u64>,
}

impl Distributions {
    pub(crate) fn of(merged: &Merged) -> Distributions {
        Distributions { latency: merged.latency.clone(), service: merged.service.clone(), lag: merged.lag.clone() }
    }
}
