//! Prints results as other tools do, with the same lines, units and number formats, for scripts that read those tools.
//! `weir load --format` prints the result of a load, and `weir-published` that of a recorded run. What a tool's text looks
//! like is in its template (`templates/formats`); JSON has none.
//! Where weir measures differently, its own meaning stays: latency counts from the time at which a request was due.
//! Fields that weir does not measure are left out. The module does not know products.

mod github;
mod hey;
pub mod hgrm;
mod junit;
mod junoload;
mod k6;
mod wrk;

use hdrhistogram::Histogram;
use weir_model::load::{ErrorKind, LoadResult};

pub use github::{Better, github, github_of_run};
pub use hey::hey;
pub use junit::{junit, junit_of_run};
pub use junoload::junoload;
pub use k6::k6;
pub use wrk::{ThreadRates, thread_rates, wrk, wrk2};

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
    /// Requests that ended inside the window with a response, a wrong one too.
    fn answered(&self) -> u64 {
        let (successful, failed) = self.ended();
        (successful + failed).saturating_sub(self.unanswered())
    }

    /// Requests that ended inside the window: with a successful response, and otherwise.
    fn ended(&self) -> (u64, u64) {
        let rows = &self.result.series;
        (rows.iter().map(|row| row.successful).sum(), rows.iter().map(|row| row.errors).sum())
    }

    /// Requests that ended without a response.
    fn unanswered(&self) -> u64 {
        self.sum(|kind| !kind.is_response())
    }

    /// Responses in the window that were wrong.
    pub fn wrong_responses(&self) -> u64 {
        self.sum(ErrorKind::is_response)
    }

    /// Requests of the window that failed in those ways.
    fn sum(&self, wanted: impl Fn(ErrorKind) -> bool) -> u64 {
        self.result.window.errors.iter().filter(|(kind, _)| wanted(**kind)).map(|(_, n)| n).sum()
    }

    /// Requests of the window that failed in that way.
    fn errors_of(&self, kind: ErrorKind) -> u64 {
        self.sum(|other| other == kind)
    }

    /// Responses of any kind.
    fn responses(&self) -> u64 {
        self.result.window.statuses.values().sum()
    }

    /// Bytes of a body.
    fn body_size(&self) -> u64 {
        self.result.window.body_bytes / self.responses().max(1)
    }

    /// Responses with that status or a higher one.
    fn statuses_from(&self, from: u16) -> u64 {
        self.result.window.statuses.iter().filter(|(status, _)| **status >= from).map(|(_, n)| n).sum()
    }

    /// The window's length; never 0, so that it can divide.
    fn seconds(&self) -> f64 {
        self.result.window_s.max(1e-6)
    }
}

/// A percentile in microseconds. The lowest step of the histogram, below half a microsecond, is 0.
fn percentile_us(histo: &Histogram<u64>, percent: f64) -> f64 {
    if histo.is_empty() {
        return 0.0;
    }
    let nanos = histo.value_at_quantile(percent / 100.0);
    if nanos <= histo.highest_equivalent(0) { 0.0 } else { nanos as f64 / 1e3 }
}
