//! The arithmetic: cost of a request, and ratios within rounds.

use weir_stats::{Estimate, median_interval, paired_ratio};

/// Level of every interval.
pub const LEVEL: f64 = 0.95;

/// Resampling starts from here, so that equal measurements print equal intervals.
const SEED: u64 = 1;

/// CPU a request, us; not a number when there were no requests.
pub fn per_request(cpu_us: f64, requests: u64) -> f64 {
    if requests == 0 { f64::NAN } else { cpu_us / requests as f64 }
}

/// How many times `b` is `a`, round by round; rounds in which either failed (not a number) are left out. `None` when
/// none is left.
pub fn ratio(a: &[f64], b: &[f64]) -> Option<Estimate> {
    paired_ratio(a, b, LEVEL, SEED)
}

/// The median of rounds; rounds that failed (not a number) are left out. `None` when none is left.
pub fn middle(xs: &[f64]) -> Option<Estimate> {
    median_interval(xs, LEVEL, SEED)
}

/// `a - b`, round by round.
pub fn differences(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_cpu_over_requests() {
        assert_eq!(per_request(430.0, 100), 4.3);
        assert!(per_request(430.0, 0).is_nan());
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        // The machine is twice as slow in every other round; the ratio does not see it.
        let weir: Vec<f64> = (0..10).map(|i| if i % 2 == 0 { 5.0 } else { 10.0 }).collect();
        let wrk: Vec<f64> = weir.iter().map(|x| x * 2.0).collect();
        let found = ratio(&weir, &wrk).unwrap();
        assert!((found.value - 0.5).abs() < 1e-9 && (found.high - found.low).abs() < 1e-9, "{found:?}");
        assert_eq!(found.n, 10);
    }

    #[test]
    fn a_failed_round_is_skipped_and_none_is_no_ratio() {
        let found = ratio(&[1.0, f64::NAN, 3.0], &[2.0, 2.0, 6.0]).unwrap();
        assert_eq!(found.n, 2);
        assert!((found.value - 0.5).abs() < 1e-9);
        assert!(ratio(&[f64::NAN], &[1.0]).is_none());
        assert!(ratio(&[], &[]).is_none());
    }

    #[test]
    fn differences_keep_failed_rounds_in_place() {
        let found = differences(&[40.0, f64::NAN, 50.0], &[30.0, 30.0, 20.0]);
        assert_eq!((found[0], found[2]), (10.0, 30.0));
        assert!(found[1].is_nan());
        assert_eq!(middle(&found).unwrap().value, 20.0);
    }
}
