//! What `--hgrm` writes: HdrHistogram's text of percentiles.

pub use weir_report::formats::hgrm::{Flavour, spectrum};

use super::{Told, pipelined};

/// What is written to a file: HdrHistogram's own text of the latencies.
pub fn file(told: Told<'_>) -> String {
    let mut text = spectrum(&told.distributions.latency, Flavour::Hdr);
    if let Some(label) = pipelined(told.spec) {
        text.push_str(&format!("#[{label}]\n"));
    }
    text
}
