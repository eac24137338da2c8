//! Prints a result as hey does. The histogram has eleven marks, from the fastest to the slowest request. Name lookup and the writing of a
//! request are 0: weir resolves names before it starts, and does not time the writing.

use askama::Template;
use weir_model::load::{ErrorKind, LoadResult};
use weir_model::metric::{Metric, Window};

use super::{Account, percentile_us};

/// Marks of the histogram.
const MARKS: usize = 11;

/// Characters of the longest bar.
const BAR: u64 = 40;

#[derive(Template)]
#[template(path = "formats/hey.txt", escape = "none")]
struct Hey<'a> {
    account: Account<'a>,
    result: &'a LoadResult,
}

/// hey.
pub fn hey(account: Account<'_>) -> String {
    format!("{}\n", Hey { account, result: account.result })
}

impl Hey<'_> {
    /// Each mark of the histogram: its seconds, requests up to it, and a bar.
    fn histogram(&self) -> Vec<(f64, u64, String)> {
        let (histo, service) = (self.account.service, &self.result.service);
        if histo.is_empty() {
            return Vec::new();
        }
        let step = (service.max_us - service.min_us) / (MARKS - 1) as f64;
        let mut marks: Vec<f64> = (0..MARKS).map(|i| service.min_us + step * i as f64).collect();
        marks[MARKS - 1] = service.max_us;
        let mut counts = [0u64; MARKS];
        for value in histo.iter_recorded() {
            // The beginning of its step: it is printed as the fastest time, and the fastest request counts at the first mark.
            let us = histo.lowest_equivalent(value.value_iterated_to()) as f64 / 1e3;
            let at = marks.iter().position(|mark| us <= *mark).unwrap_or(MARKS - 1);
            counts[at] += value.count_at_value();
        }
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        let bar = |n: u64| "■".repeat(((n * BAR + most / 2) / most) as usize);
        marks.into_iter().zip(counts).map(|(mark, n)| (mark / 1e6, n, bar(n))).collect()
    }

    /// Percentages, and the seconds within which so many were answered.
    fn percentiles(&self) -> [(u32, f64); 7] {
        let of = |percent| (percent, percentile_us(self.account.service, f64::from(percent)) / 1e6);
        [10, 25, 50, 75, 90, 95, 99].map(of)
    }

    /// Each part of a request: its name, and its seconds on average, at best and at worst.
    fn details(&self) -> [(&'static str, f64, f64, f64); 5] {
        let (service, first, connect) = (&self.result.service, &self.result.first_byte, &self.result.connect);
        let mean = |metric: Metric| metric.value(&Window::of_load(self.result)).unwrap_or(0.0);
        let fastest = if connect.count < service.count.max(1) { 0.0 } else { connect.min_us };
        let wait = if first.count > 0 { first } else { service };
        let read_max = (service.max_us - wait.max_us).max(0.0);
        [
            ("DNS+dialup", mean(Metric::Dial), fastest, connect.max_us),
            ("DNS-lookup", 0.0, 0.0, 0.0),
            ("req write", 0.0, 0.0, 0.0),
            ("resp wait", mean(Metric::Wait), wait.min_us, wait.max_us),
            ("resp read", mean(Metric::Read), 0.0, read_max),
        ]
        .map(|(name, mean, fastest, slowest)| (name, mean / 1e6, fastest / 1e6, slowest / 1e6))
    }

    /// Requests without a response, by kind.
    fn failed(&self) -> Vec<(&ErrorKind, &u64)> {
        self.result.window.errors.iter().filter(|(kind, _)| !kind.is_response()).collect()
    }
}
