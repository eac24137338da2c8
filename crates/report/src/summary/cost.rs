//! Summarises the memory of a product, in total and per connection, and its time to warm up. Called by `row` and
//! `overall`. CPU time is with the other estimates of a row.

use serde::Serialize;
use weir_model::metric::Window;
use weir_model::record::Role;
use weir_stats::{Estimate, median_interval};

use super::row::Cases;
use super::{LEVEL, SEED};

/// Memory of the proxy's process tree, at its most in the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Memory {
    /// Proportional sets, in which a page that several processes share is counted once; else resident sets, in which each
    /// of them counts it.
    pub proportional: bool,
    /// All of it, bytes.
    pub bytes: Estimate,
    /// All of it by the client's connections, bytes: what the product needs with none is in it.
    pub by_connection: Option<Estimate>,
}

/// How a product was warmed up, over the trials shown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WarmupSummary {
    /// Until what it carried each second kept its level, seconds; where it never did, the time that was given.
    pub seconds: Estimate,
    /// Trials in which it never did.
    pub never: usize,
    /// Trials.
    pub of: usize,
}

/// `None` without a proxy. Resident sets as soon as one block has no other: blocks are compared in one measure.
pub(super) fn memory(cases: &Cases<'_>, blocks: &[u32]) -> Option<Memory> {
    let estimate =
        |value: &dyn Fn(&Window<'_>) -> Option<f64>| median_interval(&cases.by_block(blocks, value), LEVEL, SEED);
    let resident = estimate(&|window| bytes(window, false))?;
    let proportional = estimate(&|window| bytes(window, true)).filter(|estimate| estimate.n == resident.n);
    let planned = (cases.load.connections > 0).then_some(cases.load.connections);
    let by_connection = estimate(&|window| by_connection(window, proportional.is_some(), planned));
    Some(Memory { proportional: proportional.is_some(), bytes: proportional.unwrap_or(resident), by_connection })
}

/// Memory of the proxy in one window, as proportional sets or as resident sets.
fn bytes(window: &Window<'_>, proportional: bool) -> Option<f64> {
    let usage = window.role(Role::Proxy)?;
    Some(if proportional { usage.pss_max_bytes? } else { usage.rss_max_bytes } as f64)
}

/// The same by the connections that were open, or by those `planned` where that was not recorded.
pub(super) fn by_connection(window: &Window<'_>, proportional: bool, planned: Option<u32>) -> Option<f64> {
    let connections = match window.load.most_open {
        0 => planned?,
        open => open,
    };
    Some(bytes(window, proportional)? / f64::from(connections.max(1)))
}

/// `None` if no trial was asked to wait for a steady level.
pub(super) fn warmup(cases: &Cases<'_>, blocks: &[u32]) -> Option<WarmupSummary> {
    let seconds = cases.of_measurements(blocks, |measurement| Some(measurement.warmup?.seconds));
    let watched: Vec<_> = cases.displayed().filter_map(|trial| trial.measurement.warmup).collect();
    Some(WarmupSummary {
        seconds: median_interval(&seconds, LEVEL, SEED)?,
        never: watched.iter().filter(|warmup| !warmup.steady).count(),
        of: watched.len(),
    })
}
