//! Prints results as other tools do, with the same lines, units and number formats, for scripts that read those tools.
//! `weir load --format` prints the result of a load, and `weir-published` that of a recorded run.
//! Where weir measures differently, its own meaning stays: latency counts from the time at which a request was due.
//! Fields that weir does not measure are left out. The module does not know products.

mod ab;
mod hey;
pub mod hgrm;
mod units;
mod wrk;

use hdrhistogram::Histogram;
use weir_model::load::{ErrorKind, LoadResult};

pub use ab::ab;
pub use hey::hey;
pub use wrk::{wrk, wrk2};

/// What came of a load, and how its times were distributed.
#[derive(Debug, Clone, Copy)]
pub struct Account<'a> {
    /// The URL, or what stands for several.
    pub title: &'a str,
    /// Connections ordered.
    pub connections: u32,
    /// The client's account.
    pub result: &'a LoadResult,
    /// Due to answered, nanoseconds.
    pub latency: &'a Histogram<u64>,
    /// Sent to answered, nanoseconds.
    pub service: &'a Histogram<u64>,
}

impl Account<'_> {
    /// Requests that ended inside the window with an answer, a wrong one too.
    pub fn answered(&self) -> u64 {
        let ended: u64 = self.result.series.iter().map(|row| row.right + row.errors).sum();
        ended.saturating_sub(self.sum(|kind| !kind.is_response()))
    }

    /// Responses in the window that were wrong.
    pub fn wrong_answers(&self) -> u64 {
        self.sum(ErrorKind::is_response)
    }

    /// Requests of the window that failed in those ways.
    pub fn sum(&self, wanted: impl Fn(ErrorKind) -> bool) -> u64 {
        self.result.window.errors.iter().filter(|(kind, _)| wanted(**kind)).map(|(_, n)| n).sum()
    }

    /// Answers whose status says that something went wrong.
    pub fn bad_statuses(&self, from: u16) -> u64 {
        self.result.window.statuses.iter().filter(|(status, _)| **status >= from).map(|(_, n)| n).sum()
    }

    /// The window's length; never 0, so that it can divide.
    pub fn seconds(&self) -> f64 {
        self.result.window_s.max(1e-6)
    }
}

/// A percentile in microseconds. The lowest step of the histogram, below half a microsecond, is 0.
pub fn percentile_us(histo: &Histogram<u64>, percent: f64) -> f64 {
    if histo.is_empty() {
        return 0.0;
    }
    let nanos = histo.value_at_quantile(percent / 100.0);
    if nanos <= histo.highest_equivalent(0) { 0.0 } else { nanos as f64 / 1e3 }
}

/// Mean, standard deviation, and the share within one of the other, per cent, of a few numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Spread {
    mean: f64,
    stdev: f64,
    max: f64,
    within: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        let n = values.len() as f64;
        if values.is_empty() {
            return Spread::default();
        }
        let mean = values.iter().sum::<f64>() / n;
        // Of a sample, as the tools have it: by n - 1.
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let stdev = if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
        let within = values.iter().filter(|v| (**v - mean).abs() <= stdev).count();
        Spread { mean, stdev, max: values.iter().copied().fold(0.0, f64::max), within: within as f64 / n * 100.0 }
    }
}
