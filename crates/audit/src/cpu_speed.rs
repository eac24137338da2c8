//! CPUs that were not equally fast in all blocks.

use weir_model::record::{Finding, Severity};
use weir_model::speed::Change;

use super::{Check, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Noise,
    names: &["cpu-speed"],
    sees: "a CPU of a role that was faster or slower in this block than in the blocks before. A short, constant \
         calculation before and after each window is timed by its CPU time. The result holds for the trial as a whole",
    threshold: "5 % is noted, 10 % is suspect; from 8 readings on, in the block and before",
    source: "a quiet run of `quick` on a virtual machine with 2 CPUs had 72 trials and 24 readings of each CPU a block. \
         One reading in four was at least 5 % below the fastest, up to 30 %, for less than a trial. Means of blocks \
         differed by at most 4.9 %. Products are compared to a few per cent",
    remedy: "compare with blocks of like speed (`speed` in measurement.json), or measure on a machine whose CPUs are not \
         shared. Look at its governor and its other guests",
    blind: "changes that come and go within a block. On that machine the two readings around a window said nothing of \
         its CPU time per request (correlation -0.07 over 60 trials). Nor does it see slower memory beyond the caches",
    provoked: false,
    run: None,
};

const NOTED: f64 = 0.05;
const SUSPECT: f64 = 0.10;

/// `change`: the largest of the trial's block up to now. `hosts`: how many the run has.
pub fn check(change: &Change, hosts: usize) -> Option<Finding> {
    let Change { host, cpu, ratio } = change;
    let severity = match off(*ratio) {
        off if off >= SUSPECT => Severity::Warning,
        off if off >= NOTED => Severity::Note,
        _ => return None,
    };
    let of = if hosts > 1 { format!(" of {host}") } else { String::new() };
    let message =
        format!("in this block CPU {cpu}{of} calculated at {:.0} % of its speed in the blocks before", ratio * 100.0);
    CHECK.finding(severity, message)
}

/// How far from 1, alike for faster and slower.
fn off(ratio: f64) -> f64 {
    ratio.max(1.0 / ratio) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_when_the_block_differs() {
        let found = |ratio: f64, hosts: usize| {
            check(&Change { host: "a".into(), cpu: 1, ratio }, hosts).map(|found| (found.severity, found.message))
        };
        assert_eq!(found(0.97, 1), None);
        assert_eq!(found(1.06, 1).expect("faster").0, Severity::Note);
        let (severity, message) = found(0.8, 1).expect("slower");
        assert_eq!(severity, Severity::Warning);
        assert_eq!(message, "in this block CPU 1 calculated at 80 % of its speed in the blocks before");
        assert!(found(0.8, 2).expect("slower").1.contains("CPU 1 of a calculated"));
    }
}
