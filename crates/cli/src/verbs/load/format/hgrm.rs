//! Writes latencies as HdrHistogram's text of percentiles. `weir load --hgrm` calls it.

pub use weir_report::formats::hgrm::{Flavour, spectrum};

use super::{Outcome, pipelined};

/// What is written to a file: HdrHistogram's own text of the latencies.
pub fn file(outcome: Outcome<'_>) -> String {
    let mut text = spectrum(&outcome.distributions.latency, Flavour::Hdr);
    if let Some(label) = pipelined(outcome.spec) {
        text.push_str(&format!("#[{label}]\n"));
    }
    text
}
