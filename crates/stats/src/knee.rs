//! Finds where a curve bends most: the rate above which latency climbs, the connections above which throughput does not
//! grow. Searches call it.
//!
//! It does not know what the axes are.

use serde::{Deserialize, Serialize};

/// Which way a rising curve bends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bend {
    /// Flat, then steep: latency against rate.
    Up,
    /// Steep, then flat: throughput against connections.
    Down,
}

/// The point at which a rising curve bends most, as its place in the input.
///
/// Kneedle (Satopää, Albrecht, Irwin and Raghavan 2011, "Finding a 'kneedle' in a haystack: detecting knee points in
/// system behavior", ICDCS workshops): the curve is scaled into the unit square, and the knee is where it lies
/// farthest from the diagonal, provided that it comes back towards the diagonal by at least `sensitivity` times the
/// mean distance of neighbouring points. Their advice is 1; more asks for a plainer knee. Their smoothing is left
/// out: a point here is a median of blocks, and there are too few points to smooth.
///
/// The response is one of the points measured, never between two. It depends on how far past the bend one measured,
/// since that sets the scale: a latency of seconds after saturation makes all before it look flat. The logarithm of
/// latency as `ys` asks for the bend in its order of magnitude instead.
///
/// Points may come in any order. Those with a value that is not finite are left out. `None` when fewer than 4
/// remain, when either axis has no extent, when the lengths differ, or when there is no such knee: a straight line
/// has none.
pub fn knee(xs: &[f64], ys: &[f64], bend: Bend, sensitivity: f64) -> Option<usize> {
    if xs.len() != ys.len() || sensitivity.is_nan() || sensitivity < 0.0 {
        return None;
    }
    let mut points: Vec<(usize, f64, f64)> =
        (0..xs.len()).map(|i| (i, xs[i], ys[i])).filter(|(_, x, y)| x.is_finite() && y.is_finite()).collect();
    if points.len() < 4 {
        return None;
    }
    points.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (across, up) = (Extent::of(points.iter().map(|p| p.1))?, Extent::of(points.iter().map(|p| p.2))?);
    let mut away: Vec<(usize, f64)> = (points.iter())
        .map(|&(place, x, y)| {
            let (x, y) = (across.share(x), up.share(y));
            (place, if bend == Bend::Up { x - y } else { y - x })
        })
        .collect();
    // A curve that bends up is one that bends down, seen from its other end.
    if bend == Bend::Up {
        away.reverse();
    }
    let step = 1.0 / (away.len() - 1) as f64;
    farthest_that_returns(&away, sensitivity * step)
}

/// The index with the greatest distance after which the distance falls by more than `by`. The earliest of equals.
fn farthest_that_returns(away: &[(usize, f64)], by: f64) -> Option<usize> {
    let inner = 1..away.len() - 1;
    let returns = |at: usize| away[at + 1..].iter().any(|(_, distance)| *distance < away[at].1 - by);
    // The ends lie on the diagonal's corners by construction; a knee is above it.
    let knees = inner.filter(|&at| away[at].1 > 0.0 && returns(at));
    knees
        .fold(None, |best: Option<usize>, at| match best {
            Some(b) if away[b].1 >= away[at].1 => best,
            _ => Some(at),
        })
        .map(|at| away[at].0)
}

/// Smallest to largest of one axis.
struct Extent {
    least: f64,
    /// Half of the length: the whole of it may be beyond what a float holds.
    half: f64,
}

impl Extent {
    /// `None` when the extent is zero, or too small for a share of it to be computed.
    fn of(values: impl Iterator<Item = f64> + Clone) -> Option<Extent> {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let half = values.fold(f64::NEG_INFINITY, f64::max) / 2.0 - least / 2.0;
        (half.is_normal()).then_some(Extent { least, half })
    }

    /// 0 at the smallest, 1 at the largest.
    fn share(&self, value: f64) -> f64 {
        (value / 2.0 - self.least / 2.0) / self.half
    }
}
