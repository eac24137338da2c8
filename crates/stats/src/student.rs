//! Student's t, as far as intervals need it. [`crate::ratio`] and others call it.
//!
//! It is our own code, because the inverse in the usual crate does not return for some arguments in its domain.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

/// With more degrees of freedom than this, the quantiles no longer change in their fourth digit.
const MOST: usize = 10_000;

/// The t that the size of a Student-distributed variable with `freedom` degrees stays below with probability
/// `level`. `None` without freedom, or when `level` is not between 0 and 1 (both excluded).
///
/// Bisects the closed form over the angle `atan(t / sqrt(freedom))`, in which it is bounded and monotone.
pub(crate) fn two_sided(level: f64, freedom: usize) -> Option<f64> {
    if freedom == 0 || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let freedom = freedom.min(MOST);
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    // 60 halvings are below the resolution of the angle.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if within(middle, freedom) < level { low = middle } else { high = middle }
    }
    Some((freedom as f64).sqrt() * low.tan())
}

/// P(|T| < sqrt(freedom) tan(angle)): Abramowitz and Stegun, *Handbook of Mathematical Functions*, 26.7.3 for odd
/// and 26.7.4 for even degrees of freedom.
fn within(angle: f64, freedom: usize) -> f64 {
    let (sin, cos) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    let (mut term, mut sum, first) = if odd { (cos, cos, 3) } else { (1.0, 1.0, 2) };
    // Term of cos^(k-2) to term of cos^k.
    let mut k = first;
    while k + 2 <= freedom {
        term *= cos * cos * (k - 1) as f64 / k as f64;
        sum += term;
        k += 2;
    }
    match (odd, freedom) {
        (true, 1) => FRAC_2_PI * angle,
        (true, _) => FRAC_2_PI * (angle + sin * sum),
        (false, _) => sin * sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_tables() {
        let tables = [
            (0.95, 1, 12.706),
            (0.95, 2, 4.303),
            (0.95, 3, 3.182),
            (0.95, 4, 2.776),
            (0.95, 9, 2.262),
            (0.95, 30, 2.042),
            (0.99, 3, 5.841),
            (0.6, 2, 1.061),
            (0.6, 9, 0.883),
            (0.95, 1_000_000, 1.960),
        ];
        for (level, freedom, table) in tables {
            let t = two_sided(level, freedom).expect("in the domain");
            assert!((t - table).abs() < 6e-4, "t({level}, {freedom}) = {t}, table {table}");
        }
    }

    #[test]
    fn edges_of_the_domain() {
        assert_eq!(two_sided(0.9, 0), None);
        assert_eq!(two_sided(1.0, 3), None);
        assert_eq!(two_sided(f64::NAN, 3), None);
        for level in [f64::MIN_POSITIVE, 1.0 - f64::EPSILON / 2.0] {
            for freedom in [1, 2, 7, usize::MAX] {
                let t = two_sided(level, freedom).expect("in the domain");
                assert!(t >= 0.0 && t.is_finite(), "t({level}, {freedom}) = {t}");
            }
        }
    }
}
