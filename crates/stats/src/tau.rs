//! Whether two orders agree, such as a published ranking and ours. Reports call it.
//!
//! It does not know what is ranked, or which of the two is right.

use std::cmp::Ordering;

/// How far two orders agree.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Agreement {
    /// Kendall's tau-b; `None` when one series orders no pair: then there is no order to agree with.
    pub tau: Option<f64>,
    /// Pairs of places that both series order.
    pub pairs: usize,
    /// Those among them that the two order oppositely, each as (lower, higher) place, ascending.
    pub opposite: Vec<(usize, usize)>,
}

/// How far two equally long series agree: tau is 1 when they rank alike, -1 when one is the other's reverse, 0 when one says
/// nothing about the other.
///
/// Of all pairs of places, those that both series order alike, less those that they order oppositely, over the
/// geometric mean of the pairs that either series orders at all (Kendall 1938, "A new measure of rank correlation",
/// Biometrika 30; with ties as in Kendall 1945, "The treatment of ties in ranking problems", Biometrika 33).
///
/// With few places tau is coarse: three can give only 1, 1/3, -1/3 and -1, and two unrelated orders of three agree
/// entirely in one case of six.
///
/// Places at which a value is not finite are left out. There is no agreement when the lengths differ. Takes time n^2, n
/// being products or cases and never requests.
pub fn agreement(a: &[f64], b: &[f64]) -> Agreement {
    if a.len() != b.len() {
        return Agreement::default();
    }
    let usable: Vec<usize> = (0..a.len()).filter(|&i| a[i].is_finite() && b[i].is_finite()).collect();
    let (mut pairs, mut only_a, mut only_b, mut opposite) = (0, 0, 0, Vec::new());
    for (at, &i) in usable.iter().enumerate() {
        for &j in &usable[at + 1..] {
            match (order(a[i], a[j]), order(b[i], b[j])) {
                (Ordering::Equal, Ordering::Equal) => {}
                (_, Ordering::Equal) => only_a += 1,
                (Ordering::Equal, _) => only_b += 1,
                (in_a, in_b) => {
                    pairs += 1;
                    opposite.extend((in_a != in_b).then_some((i, j)));
                }
            }
        }
    }
    // The root of the product, not the product of roots: of equal factors it is exact, and tau = 1 comes out as 1.
    let ordered = ((pairs + only_a) as f64 * (pairs + only_b) as f64).sqrt();
    let tau = (ordered > 0.0).then(|| (pairs as f64 - 2.0 * opposite.len() as f64) / ordered);
    Agreement { tau, pairs, opposite }
}

/// Only finite values come here. Zeros of both signs are equal, which `total_cmp` would deny.
fn order(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or(Ordering::Equal)
}
