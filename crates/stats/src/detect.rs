//! The smallest change between two runs that their blocks could have shown. Comparisons of runs call it.
//!
//! It does not know whether there was a change.

use crate::student;
use crate::unpaired::{cut_off, mean_and_error, sorted_logs, welch_freedom};

/// The share of runs in which a change of that size has to be found.
const POWER: f64 = 0.8;

/// By how much an interval of the Mann-Whitney test is wider than that of the means under normal noise: its asymptotic
/// relative efficiency is 3 / pi (Hodges and Lehmann 1956, Annals of Mathematical Statistics 27).
const RANKS_COST: f64 = 1.023_326_707_946_488_5;

/// The smallest ratio (above 1) of `a` to `b` that [`crate::unpaired_ratio`] at `level` tells from 1 in four
/// comparisons of five, if blocks differ as these do. 1.06 means: a change of 6 % would probably have been found.
///
/// The minimum detectable effect of Bloom (1995), "Minimum detectable effects", Evaluation Review 19(5), on the
/// logarithmic scale, with Welch's error and degrees of freedom (Welch 1947, Biometrika 34):
/// `exp((t[(1 + level) / 2] + t[0.8]) sqrt(s_a^2 / n + s_b^2 / m))`. The level is the one that ranks of so few values reach,
/// which may be more than was asked for. It is itself an estimate: from few blocks it is known to about a third.
///
/// Infinite when nothing can be found: fewer than 2 usable values in either sample, or a level that is none.
pub fn detectable_change(a: &[f64], b: &[f64], level: f64) -> f64 {
    let (a, b) = (sorted_logs(a), sorted_logs(b));
    let Some(((_, error_a), (_, error_b))) = mean_and_error(&a).zip(mean_and_error(&b)) else {
        return f64::INFINITY;
    };
    let (_, reached) = cut_off(a.len(), b.len(), level);
    let level = reached.max(level);
    let freedom = welch_freedom((a.len(), error_a), (b.len(), error_b));
    // A one-sided quantile at p is the two-sided one at 2 p - 1.
    let quantiles = student::two_sided(level, freedom).zip(student::two_sided(2.0 * POWER - 1.0, freedom));
    quantiles.map_or(f64::INFINITY, |(sure, power)| (RANKS_COST * (sure + power) * (error_a + error_b).sqrt()).exp())
}
