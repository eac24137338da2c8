//! How much blocks differ by chance, and which difference such blocks could have shown. Reports call it.

use crate::order::{median_of_sorted, sorted_finite};
use crate::ratio::log_ratios;
use crate::student;

/// Makes the median absolute deviation estimate the standard deviation of normal noise: 1 / Phi^-1(3/4).
pub(crate) const MAD_TO_SIGMA: f64 = 1.482_602_218_505_602;

/// Factors that undo the MAD's bias in samples of 2 to 9 (Croux and Rousseeuw 1992, "Time-efficient algorithms
/// for two highly robust estimators of scale"); from 10 on n / (n - 0.8).
const SMALL_SAMPLE: [f64; 8] = [1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107];

/// How much the blocks of one product differ, as a share of their median: a coefficient of variation that one
/// wild block cannot move (1.4826 x MAD / |median|, corrected for small samples).
///
/// `None` with fewer than 2 finite values, or when the median is 0.
pub fn relative_noise(blocks: &[f64]) -> Option<f64> {
    let sorted = sorted_finite(blocks);
    let middle = median_of_sorted(&sorted)?;
    let noise = robust_sigma(&sorted)? / middle.abs();
    noise.is_finite().then_some(noise)
}

/// The noise that is left in one product once pairing has cancelled what both share: the robust standard deviation
/// of the log ratios, over the square root of 2. What [`detectable_difference`] wants.
///
/// `None` with fewer than 2 usable pairs, or lengths that differ.
pub fn paired_noise(a: &[f64], b: &[f64]) -> Option<f64> {
    robust_sigma(&log_ratios(a, b)?).map(|sigma| sigma / std::f64::consts::SQRT_2)
}

/// The smallest ratio (above 1) that a paired comparison of so many blocks finds with a power of 80 %, testing
/// at `level` (two-sided). 1.05 means: of products that differ by 5 %, four runs of five would have shown it.
///
/// `noise` is one product's relative noise between blocks: [`paired_noise`] where two products' blocks are at
/// hand; [`relative_noise`] is an upper bound, as it still holds the drift that pairing cancels. Both products
/// have it, so a log ratio has the standard deviation `s = sqrt(2 ln(1 + noise^2))`, and the ratio is
///
/// `exp((t[(1 + level) / 2, n - 1] + t[0.8, n - 1]) s / sqrt(n))`
///
/// which is the minimum detectable effect of Bloom (1995), "Minimum detectable effects", Evaluation Review 19(5),
/// on the log scale. Student's t and not the normal's quantiles: with 3 blocks the difference is 5.4 against 2.8.
///
/// Infinite when nothing could be found: fewer than 2 blocks, a level outside of 0 to 1, noise that is negative or
/// not finite.
pub fn detectable_difference(noise: f64, blocks: usize, level: f64) -> f64 {
    const POWER: f64 = 0.8;
    if !(noise.is_finite() && noise >= 0.0 && level > 0.0 && level < 1.0) || blocks < 2 {
        return f64::INFINITY;
    }
    let n = blocks as f64;
    // A one-sided quantile at p is the two-sided one at 2 p - 1.
    let freedom = blocks - 1;
    let quantiles = student::two_sided(level, freedom).zip(student::two_sided(2.0 * POWER - 1.0, freedom));
    let Some((sure, power)) = quantiles else {
        return f64::INFINITY;
    };
    let sigma = (2.0 * (noise * noise).ln_1p()).sqrt();
    ((sure + power) * sigma / n.sqrt()).exp()
}

/// Standard deviation from the median absolute deviation; needs two values.
pub(crate) fn robust_sigma(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    if n < 2 {
        return None;
    }
    let middle = median_of_sorted(sorted)?;
    let deviations: Vec<f64> = sorted.iter().map(|x| (x - middle).abs()).collect();
    let mad = median_of_sorted(&sorted_finite(&deviations))?;
    let correction = SMALL_SAMPLE.get(n - 2).copied().unwrap_or(n as f64 / (n as f64 - 0.8));
    Some(mad * MAD_TO_SIGMA * correction)
}
