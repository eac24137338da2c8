//! Results as other tools print them, so that scripts which read those tools can read weir: the same lines, units and
//! number formats. What weir measures otherwise keeps its own meaning: latency counts from when a request was due, and
//! what a tool does not know is left out.

mod ab;
mod hey;
pub mod hgrm;
#[cfg(test)]
mod tests;
mod units;
mod wrk;

use hdrhistogram::Histogram;
use weir_load::Distributions;
use weir_model::load::{ErrorKind, Http, LoadResult, LoadSpec};

use super::flags::FormatArg;

/// A load that is over: what was ordered, and what came of it.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// The URL, or what stands for several.
    pub title: &'a str,
    pub spec: &'a LoadSpec,
    pub result: &'a LoadResult,
    pub distributions: &'a Distributions,
}

/// The result as that tool prints it.
pub fn text(format: FormatArg, told: Told<'_>) -> String {
    let mut text = match format {
        FormatArg::Wrk => wrk::wrk(told),
        FormatArg::Wrk2 => wrk::wrk2(told),
        FormatArg::Hey => hey::hey(told),
        FormatArg::Ab => ab::ab(told),
    };
    // None of these tools pipelines: whoever compares must see it.
    if let Some(label) = pipelined(told.spec) {
        text.push_str(&format!("Pipelining: {label}\n"));
    }
    text
}

/// What a result that was pipelined says of it.
pub fn pipelined(spec: &LoadSpec) -> Option<String> {
    match spec.http {
        Http::One { pipeline } if pipeline > 1 => Some(format!("HTTP/1.1 pipelined, {pipeline} deep")),
        Http::One { .. } | Http::Two { .. } => None,
    }
}

impl Told<'_> {
    /// Requests that ended inside the window with an answer, a wrong one too.
    fn answered(&self) -> u64 {
        let ended: u64 = self.result.series.iter().map(|row| row.right + row.errors).sum();
        ended.saturating_sub(self.sum(|kind| !is_answer(kind)))
    }

    /// Answers of the window that came and were not right.
    pub fn wrong_answers(&self) -> u64 {
        self.sum(is_answer)
    }

    /// Requests of the window that failed in those ways.
    fn sum(&self, wanted: impl Fn(ErrorKind) -> bool) -> u64 {
        self.result.window.errors.iter().filter(|(kind, _)| wanted(**kind)).map(|(_, n)| n).sum()
    }

    /// Answers whose status says that something went wrong.
    fn bad_statuses(&self, from: u16) -> u64 {
        self.result.window.statuses.iter().filter(|(status, _)| **status >= from).map(|(_, n)| n).sum()
    }

    /// The window's length; never 0, so that it can divide.
    fn seconds(&self) -> f64 {
        self.result.window_s.max(1e-6)
    }
}

/// An answer came, though a wrong one.
fn is_answer(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::BadStatus | ErrorKind::WrongBody | ErrorKind::WrongHeader)
}

/// No connection was made.
fn is_connect(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectRefused | ErrorKind::ConnectFailed | ErrorKind::ConnectTimeout | ErrorKind::Tls)
}

/// A percentile in microseconds. The lowest step of the histogram, below half a microsecond, is 0.
fn percentile_us(histo: &Histogram<u64>, percent: f64) -> f64 {
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
