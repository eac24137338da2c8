//! How long a run takes: what its loads say, and what its trials took beside them.

use std::time::Duration;

use weir_model::record::{LeftOut, Measurement};
use weir_model::suite::{Load, Suite};

use crate::plan::{Planned, plan};

/// Start-up, verification and settling beside warm-up and window: a first guess until trials were timed.
const OVERHEAD: Duration = Duration::from_millis(900);

/// The whole run, before anything of it was seen.
pub fn expected(suite: &Suite, left_out: &[LeftOut]) -> Duration {
    // The seed changes the order alone.
    let one_block = Suite { blocks: 1, ..suite.clone() };
    let each = plan(&one_block, 0, left_out)
        .iter()
        .filter_map(|planned| suite.load(&planned.case.load))
        .fold(Duration::ZERO, |sum, load| sum.saturating_add(load.longest()).saturating_add(OVERHEAD));
    each.saturating_mul(suite.blocks)
}

/// The trials of `plan` from one on, judged by what trials of this run took beyond their loads' own lengths.
pub fn left(suite: &Suite, plan: &[Planned], measured: &[Measurement], from_trial: u32) -> Duration {
    let length = |load: &str| suite.load(load).map_or(Duration::ZERO, Load::longest);
    let over: Vec<f64> = measured
        .iter()
        .filter(|m| m.error.is_none())
        .map(|m| (m.took_s - length(&m.case.load).as_secs_f64()).max(0.0))
        .collect();
    let overhead = weir_stats::median(&over).map_or(OVERHEAD, Duration::from_secs_f64);
    plan.iter().filter(|p| p.trial >= from_trial).map(|p| length(&p.case.load) + overhead).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{failed, measured, suite};
    use crate::plan::plan;

    #[test]
    fn the_first_guess_is_made_of_loads_and_overhead() {
        // 2 loads of 1 s, 2 products, 1 workload, 3 blocks.
        assert_eq!(expected(&suite(2, 1, 3), &[]), (Duration::from_secs(1) + OVERHEAD) * 12);
        let mut long = suite(2, 1, 3);
        long.blocks = u32::MAX;
        long.loads[0].duration = Duration::from_secs(u64::MAX / 4);
        assert_eq!(expected(&long, &[]), Duration::MAX, "no overflow");
    }

    #[test]
    fn what_is_left_follows_what_trials_took() {
        let suite = suite(2, 1, 3);
        let plan = plan(&suite, 1, &[]);
        assert_eq!(left(&suite, &plan, &[], 1), expected(&suite, &[]));
        assert_eq!(left(&suite, &plan, &[], 12), Duration::from_secs(1) + OVERHEAD, "the last alone");
        assert_eq!(left(&suite, &plan, &[], 13), Duration::ZERO);
        let mut seen = vec![measured(1, "p0", "w0", 9.0), measured(2, "p1", "w0", 9.0), measured(3, "p0", "w0", 9.0)];
        for (row, took_s) in seen.iter_mut().zip([1.5, 3.0, 31.0]) {
            row.took_s = took_s;
        }
        // Errors end early; they do not count.
        seen.extend((4..9).map(|trial| failed(trial, "p1", "w0", "start", "no")));
        assert_eq!(left(&suite, &plan, &seen, 12), Duration::from_secs(3), "1 s of load and the median of 0.5, 2, 30");
    }
}
