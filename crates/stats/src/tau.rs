//! Whether two orders agree, such as a published ranking and ours. Reports call it.
//!
//! It does not know what is ranked, or which of the two is right.

use std::cmp::Ordering;

/// Kendall's tau-b of two equally long series: 1 when they rank alike, -1 when one is the other's reverse, 0 when
/// one says nothing about the other.
///
/// Of all pairs of places, those that both series order alike, less those that they order oppositely, over the
/// geometric mean of the pairs that either series orders at all (Kendall 1938, "A new measure of rank correlation",
/// Biometrika 30; with ties as in Kendall 1945, "The treatment of ties in ranking problems", Biometrika 33).
///
/// With few places tau is coarse: three can give only 1, 1/3, -1/3 and -1, and two unrelated orders of three agree
/// entirely in one case of six. [`opposite_pairs`] says what stands behind it.
///
/// Places at which a value is not finite are left out. `None` when the lengths differ, or when one series orders no
/// pair: then there is no order to agree with. Takes time n^2, n being products or cases and never requests.
pub fn kendall_tau(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() {
        return None;
    }
    let (mut alike, mut opposite, mut only_a, mut only_b) = (0_u64, 0_u64, 0_u64, 0_u64);
    for pair in pairs(a, b) {
        match (pair.in_a, pair.in_b) {
            (Ordering::Equal, Ordering::Equal) => {}
            (_, Ordering::Equal) => only_a += 1,
            (Ordering::Equal, _) => only_b += 1,
            (x, y) if x == y => alike += 1,
            _ => opposite += 1,
        }
    }
    let both = alike + opposite;
    // The root of the product, not the product of roots: of equal factors it is exact, and tau = 1 comes out as 1.
    let ordered = ((both + only_a) as f64 * (both + only_b) as f64).sqrt();
    (ordered > 0.0).then(|| (alike as f64 - opposite as f64) / ordered)
}

/// The pairs of places that the two series order oppositely, each as (lower, higher) place, ascending.
///
/// Places at which a value is not finite are left out; of series whose lengths differ nothing is returned.
pub fn opposite_pairs(a: &[f64], b: &[f64]) -> Vec<(usize, usize)> {
    if a.len() != b.len() {
        return Vec::new();
    }
    let opposite = |pair: &Pair| pair.in_a != Ordering::Equal && pair.in_a == pair.in_b.reverse();
    pairs(a, b).into_iter().filter(opposite).map(|pair| pair.places).collect()
}

/// Two places, and how each series orders them.
struct Pair {
    places: (usize, usize),
    in_a: Ordering,
    in_b: Ordering,
}

fn pairs(a: &[f64], b: &[f64]) -> Vec<Pair> {
    let usable: Vec<usize> = (0..a.len()).filter(|&i| a[i].is_finite() && b[i].is_finite()).collect();
    let mut pairs = Vec::with_capacity(usable.len() * usable.len() / 2);
    for (at, &i) in usable.iter().enumerate() {
        for &j in &usable[at + 1..] {
            pairs.push(Pair { places: (i, j), in_a: order(a[i], a[j]), in_b: order(b[i], b[j]) });
        }
    }
    pairs
}

/// Only finite values come here. Zeros of both signs are equal, which `total_cmp` would deny.
fn order(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or(Ordering::Equal)
}
