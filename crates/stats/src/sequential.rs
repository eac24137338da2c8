//! An interval that may be looked at after every value. Duets call it.
//!
//! An interval at 95 % that is looked at after each of fifty values excludes the truth at some time in far more than one of twenty
//! experiments. This one is valid at all times together, so that a measurement may end as soon as it says enough.

use crate::estimate::Estimate;

/// Variance of the effects, in units of the noise's variance, for which the interval is narrowest early: the noise of one value
/// (the unit information prior). Effects of this size are found after 12 values, half of it after 30; a smaller variance gains 5 % of
/// width at a hundred values, and cannot end before the tenth.
const PRIOR: f64 = 1.0;

/// The mean of `xs` with an interval that is valid whenever one stops, on logarithms of ratios, as a ratio: the values are
/// differences of logarithms, and value and ends are their exponentials.
///
/// The interval are the means that the test martingale of the t statistic does not reject (Lai 1976, "On confidence sequences",
/// Annals of Statistics 4; Wang and Ramdas 2025, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
/// variance", Sequential Analysis 44): for independent normal values of unknown variance the chance that it ever excludes
/// the true mean is at most `1 - level`, however long one looks. Rejected: group sequential tests at fixed looks (Lan and DeMets
/// 1983), which need the number of values in advance, and asymptotic confidence sequences (Waudby-Smith and others 2024), which
/// promise nothing for the first dozens of values. Wild values widen it: they cost time, and no false claims
/// (`tests/it/sequential.rs` shows both).
///
/// Below two values, and where so few cannot carry `level` (up to 5 at 95 %), the interval is everything: 0 to infinity. Values that
/// are not finite are left out. `None` when none remains, or `level` is not between 0 and 1 (both excluded).
pub fn anytime_ratio(xs: &[f64], level: f64) -> Option<Estimate> {
    if !(level > 0.0 && level < 1.0) {
        return None;
    }
    let xs: Vec<f64> = xs.iter().copied().filter(|x| x.is_finite()).collect();
    let count = xs.len();
    if count == 0 {
        return None;
    }
    let n = count as f64;
    let mean = xs.iter().sum::<f64>() / n;
    let squares = xs.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    let half = half_width(n, squares, 1.0 - level);
    Some(Estimate { value: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp(), n: count, level })
}

/// With `t` the t statistic of a mean and `r = 1 + n PRIOR`, the martingale is
/// `r^(-1/2) ((1 + t^2 / (n - 1)) / (1 + t^2 / ((n - 1) r)))^(n/2)`; the interval has the means at which it is below `1 / alpha`.
fn half_width(n: f64, squares: f64, alpha: f64) -> f64 {
    let r = 1.0 + n * PRIOR;
    let bound = (r / (alpha * alpha)).powf(1.0 / n);
    if n < 2.0 || bound >= r {
        return f64::INFINITY;
    }
    // t^2 / (n - 1) = n (mean - truth)^2 / squares.
    (squares * (bound - 1.0) / (1.0 - bound / r) / n).sqrt()
}
