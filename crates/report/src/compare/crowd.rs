//! Whether something else used the machine while a trial was measured: then its numbers say more of that than of a product.
//! Knows what was recorded of the host and the roles each second.
//!
//! Dividing by the direct path does not take this out. Another process takes CPU from whoever it meets: a proxy with one CPU
//! to itself loses half of it, while the direct path, which has no proxy, loses little. And it comes and goes with hours, so
//! that it befalls one whole run and not the other, which no interval made of blocks can know.

use std::collections::BTreeMap;

use weir_model::record::ResourceSecond;

use crate::run::{Run, Trial};
use crate::series::resource_seconds;

/// From so large a share of the machine's CPU on, a trial is left out: all of it taken from the one CPU of a proxy on a machine
/// of two is 10 % of that. In 300 trials of one product beside compilers on such a machine it carried 63,000 requests/s below
/// half of this share, 57,000 up to it, 39,000 from four times of it on, and 29,000 from eight times of it on (medians).
pub(super) const MOST: f64 = 0.05;

/// Ends of rows and windows are read from different clocks.
const SLACK_MS: u64 = 500;

/// Roles that used so much more than the host says that its processes did must have been charged for interrupts, too. As a
/// share of the machine; less than that are the ticks of two clocks.
const CHARGED: f64 = 0.02;

/// Of each trial of a run, by number, the share of the machine's CPU time, 0 to 1, that went to neither client, product nor
/// origin during the window: to other processes, or to other machines of the hypervisor. A trial of which it was not
/// recorded is not in it.
///
/// Interrupts are the load's own for the most part, over loopback. Some kernels charge them to the process that they
/// interrupt, others (`CONFIG_IRQ_TIME_ACCOUNTING`) to nobody; which of them this was, shows where a run's roles used more
/// than the host says that all processes did.
pub(super) fn taken(run: &Run) -> BTreeMap<u32, f64> {
    let used: BTreeMap<u32, Used> =
        run.trials.iter().filter_map(|trial| Some((trial.measurement.trial, used(run, trial)?))).collect();
    let charged = used.values().any(|used| used.roles - used.host > CHARGED * used.whole);
    used.into_iter().map(|(trial, used)| (trial, used.taken(charged))).collect()
}

/// CPU time of a window, seconds.
#[derive(Debug, Default, Clone, Copy)]
struct Used {
    /// All processes, and what the hypervisor took.
    host: f64,
    /// Interrupts.
    interrupts: f64,
    /// Client, product, origin.
    roles: f64,
    /// All there was.
    whole: f64,
}

impl Used {
    fn taken(&self, interrupts_are_charged: bool) -> f64 {
        let interrupts = if interrupts_are_charged { self.interrupts } else { 0.0 };
        ((self.host + interrupts - self.roles) / self.whole).max(0.0)
    }
}

fn used(run: &Run, trial: &Trial) -> Option<Used> {
    let load = trial.measurement.load.as_ref()?;
    let begin = load.window_start_ms;
    let end = begin + (load.window_s * 1e3) as u64 + SLACK_MS;
    let rows = resource_seconds(run, trial).ok()?;
    sum(rows.iter().filter(|row| row.time_ms > begin && row.time_ms <= end))
}

/// `None` without a row of the host.
fn sum<'a>(rows: impl Iterator<Item = &'a ResourceSecond>) -> Option<Used> {
    let mut all = Used::default();
    for row in rows {
        let seconds = |cores: Option<f64>| cores.unwrap_or(0.0) * row.length_s;
        let used = seconds(row.cpu_user) + seconds(row.cpu_system);
        if row.who == "host" {
            let (stolen, interrupts) = (seconds(row.cpu_steal), seconds(row.cpu_irq));
            all.host += used + stolen;
            all.interrupts += interrupts;
            all.whole += used + stolen + interrupts + seconds(row.cpu_idle) + seconds(row.cpu_iowait);
        } else {
            all.roles += used;
        }
    }
    (all.whole > 0.0).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(who: &str, used: f64, interrupts: f64, idle: f64, stolen: f64) -> ResourceSecond {
        ResourceSecond {
            length_s: 0.5,
            who: who.to_owned(),
            cpu_user: Some(used / 2.0),
            cpu_system: Some(used / 2.0),
            cpu_irq: Some(interrupts),
            cpu_idle: Some(idle),
            cpu_steal: Some(stolen),
            ..ResourceSecond::default()
        }
    }

    #[test]
    fn what_no_role_used_was_taken() {
        let roles = ["client", "proxy", "origin"].map(|who| row(who, 0.5, 0.0, 0.0, 0.0));
        let with = |host: ResourceSecond| sum(roles.iter().chain([&host])).expect("recorded");
        // Interrupts charged to nobody: they are no role's, and nobody else's.
        let near = |taken: f64, wanted: f64| assert!((taken - wanted).abs() < 1e-9, "{taken} is not {wanted}");
        near(with(row("host", 1.5, 0.1, 0.4, 0.0)).taken(false), 0.0);
        near(with(row("host", 1.7, 0.1, 0.2, 0.0)).taken(false), 0.1);
        near(with(row("host", 1.5, 0.1, 0.2, 0.2)).taken(false), 0.1);
        // Charged to whom they interrupt: the roles have used more than all processes did.
        let charged = with(row("host", 1.2, 0.5, 0.3, 0.0));
        assert!(charged.roles - charged.host > CHARGED * charged.whole);
        near(charged.taken(true), 0.1);
        // Ticks of two clocks: no less than nothing was taken.
        near(charged.taken(false), 0.0);
        assert!(sum(roles.iter()).is_none());
    }
}
