//! Whether something else used the machine while a trial was measured: then its numbers say more of that than of a product.
//! Knows what was recorded of the host and the roles each second.
//!
//! Dividing by the direct path does not take this out. Another process takes CPU from whoever it meets: a proxy with one CPU
//! to itself loses half of it, while the direct path, which has no proxy, loses little. And it comes and goes with hours, so
//! that it befalls one whole run and not the other, which no interval made of blocks can know.

use std::collections::BTreeMap;

use weir_model::cpu_time::{CROWDED, CpuTime};

use weir_report::run::{Run, Trial};
use weir_report::series::resource_seconds;

/// From so large a share of the machine's CPU on, a trial is left out: where the audit calls it suspect, too.
pub(super) const MOST: f64 = CROWDED;

/// Ends of rows and windows are read from different clocks.
const SLACK_MS: u64 = 500;

/// Of each trial of a run, by number, the share of the machine's CPU time, 0 to 1, that went to neither client, product nor
/// origin during the window: to other processes, or to other machines of the hypervisor. A trial of which it was not
/// recorded is not in it.
///
/// Whether the kernel charges interrupts to processes shows in some trials of a run, and then holds for all.
pub(super) fn taken(run: &Run) -> BTreeMap<u32, f64> {
    let used: BTreeMap<u32, CpuTime> =
        run.trials.iter().filter_map(|trial| Some((trial.measurement.trial, used(run, trial)?))).collect();
    let charged = used.values().any(CpuTime::charges_interrupts);
    used.into_iter().map(|(trial, used)| (trial, used.taken(charged))).collect()
}

fn used(run: &Run, trial: &Trial) -> Option<CpuTime> {
    let load = trial.measurement.load.as_ref()?;
    let begin = load.window_start_ms;
    let end = begin + (load.window_s * 1e3) as u64 + SLACK_MS;
    let rows = resource_seconds(run, trial).ok()?;
    CpuTime::of(rows.iter().filter(|row| row.time_ms > begin && row.time_ms <= end))
}
