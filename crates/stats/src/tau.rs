//! Whether two orders agree.

use std::cmp::Ordering;

/// Kendall's tau-b of two equally long series: 1 when they rank alike, -1 when opposite, 0 when unrelated. Ties are
/// corrected for (Kendall 1945, "The treatment of ties in ranking problems").
///
/// Pairs in which a value is not finite are left out. `None` when the lengths differ, or when fewer than two
/// different values remain in either series: then there is no order to compare. Takes time n^2; n is the number of
/// products or blocks, never of requests.
pub fn kendall_tau(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() {
        return None;
    }
    let points: Vec<(f64, f64)> =
        a.iter().copied().zip(b.iter().copied()).filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    let (mut agree, mut disagree, mut tied_a, mut tied_b) = (0_u64, 0_u64, 0_u64, 0_u64);
    for (i, p) in points.iter().enumerate() {
        for q in &points[i + 1..] {
            match (order(p.0, q.0), order(p.1, q.1)) {
                (Ordering::Equal, Ordering::Equal) => {}
                (Ordering::Equal, _) => tied_a += 1,
                (_, Ordering::Equal) => tied_b += 1,
                (x, y) if x == y => agree += 1,
                _ => disagree += 1,
            }
        }
    }
    let decided = (agree + disagree) as f64;
    // The root of the product, not the product of roots: of equal factors it is exact, and tau = 1 comes out as 1.
    let scale = ((decided + tied_a as f64) * (decided + tied_b as f64)).sqrt();
    (scale > 0.0).then(|| (agree as f64 - disagree as f64) / scale)
}

/// Only finite values come here, and of those only zeros of both signs compare equal with different bits.
fn order(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or(Ordering::Equal)
}
