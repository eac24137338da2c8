//! Detects a window in which the product's rate changed its level, so that the result is the mean of two states or of a
//! transition. Listed in `CHECKS`.
//!
//! Method: the permutation test of [`weir_stats::steady_part`] on right responses a second, at 99 %, for changes of at least 5 % of
//! the mean; blocks differ by less anyway. That function ignores a transient at the start. A measured window must not have one, so
//! the test also runs on the reversed series, and both must be steady. It needs at least 10 rows. In rounds without a warm-up,
//! which show how a product warms up, the earlier rounds are only noted.

use weir_model::record::{Finding, Severity};
use weir_model::text::human_rate;
use weir_stats::{SteadyPart, steady_part};

use super::{Evidence, finding};

const TOLERANCE: f64 = 0.05;
const LEVEL: f64 = 0.99;
/// A fixed seed for the permutations, so that the same rows always give the same result.
const SEED: u64 = 1;
/// Shorter rows, at the end of a load, are ignored.
const LEAST_LENGTH_S: f64 = 0.5;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let rows = e.load.series.iter().filter(|row| row.length_s >= LEAST_LENGTH_S);
    let rates: Vec<f64> = rows.map(|row| row.right as f64 / row.length_s).collect();
    let backwards: Vec<f64> = rates.iter().rev().copied().collect();
    let drifts = |series: &[f64]| steady_part(series, TOLERANCE, LEVEL, SEED).filter(|part| !part.steady);
    let part: SteadyPart = drifts(&rates).or_else(|| drifts(&backwards))?;
    let (first, last) = rates.split_at(rates.len() / 2);
    let mean = |rates: &[f64]| human_rate(rates.iter().sum::<f64>() / rates.len() as f64);
    let message = format!(
        "the level changed within the window, at one place by {:.0} % of the mean; {} in its first half and {} in its second",
        part.shift * 100.0,
        mean(first),
        mean(last)
    );
    let severity = if e.warming_round { Severity::Note } else { Severity::Warning };
    finding("drift", severity, message, "a longer `warmup`, or `steady`; else see in load.csv what happened when")
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Trial, good};
    use weir_model::load::LoadSecond;
    use weir_model::record::{Finding, Severity};

    /// Twenty seconds that hardly differ, times what `level` says of each.
    fn trial(level: fn(u32) -> f64) -> Trial {
        let mut trial = good();
        let right = |second: u32| ((1_000.0 + f64::from(second * 7 % 11)) * level(second)) as u64;
        let row = |second| LoadSecond { second, length_s: 1.0, right: right(second), ..LoadSecond::default() };
        trial.load.series = (0..20).map(row).collect();
        trial
    }

    fn found(trial: &Trial) -> Option<Finding> {
        trial.check(super::check)
    }

    #[test]
    fn a_change_of_level_is_seen_wherever_it_is() {
        assert_eq!(found(&trial(|_| 1.0)), None);
        for level in [
            |second: u32| if second < 6 { 0.7 } else { 1.0 },
            |second: u32| if second < 14 { 1.0 } else { 0.7 },
            |second: u32| 0.5 + f64::from(second) / 40.0,
        ] {
            let found = found(&trial(level)).expect("fires");
            assert_eq!(found.severity, Severity::Warning);
        }
    }

    #[test]
    fn a_stolen_second_a_small_change_and_a_short_window_are_no_drift() {
        assert_eq!(found(&trial(|second| if second == 9 { 0.2 } else { 1.0 })), None);
        assert_eq!(found(&trial(|second| if second < 10 { 0.98 } else { 1.0 })), None);
        let mut short = trial(|second| if second < 4 { 0.5 } else { 1.0 });
        short.load.series.truncate(9);
        assert_eq!(found(&short), None);
        let mut rest = trial(|_| 1.0);
        rest.load.series.push(LoadSecond { length_s: 0.1, right: 1, ..LoadSecond::default() });
        assert_eq!(found(&rest), None);
    }

    #[test]
    fn rounds_that_show_how_a_product_warms_up_are_only_noted() {
        let mut trial = trial(|second| 0.5 + f64::from(second) / 40.0);
        trial.warming_round = true;
        assert_eq!(found(&trial).expect("says so").severity, Severity::Note);
    }
}
