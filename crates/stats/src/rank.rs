//! Ranks of products, shared when the intervals cannot tell two apart. Reports call it.

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;

/// The rank of one product among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranked {
    /// Position in the input.
    pub index: usize,
    /// The best possible rank: 1 + the number of products that are surely better.
    pub rank_low: usize,
    /// The worst possible rank: all, minus the number of products that are surely worse.
    pub rank_high: usize,
}

/// Ranks of products from their intervals, best first.
///
/// One is *surely better* than another when their intervals do not touch and `confirmed` agrees, which gets the places of
/// the better and of the worse one. Overlap is not transitive: A may
/// overlap B and B overlap C while A is surely better than C. So a product gets the range of ranks that the
/// intervals allow, and no groups are formed: in that chain A is 1 to 2, B is 1 to 3, C is 2 to 3.
///
/// Sorted by `rank_low`, then by value, then by place in the input. An estimate with a NaN in it is not comparable:
/// it shares every rank and comes last among those whose `rank_low` is 1.
pub fn shared_ranks(
    intervals: &[Estimate],
    higher_is_better: bool,
    confirmed: impl Fn(usize, usize) -> bool,
) -> Vec<Ranked> {
    let n = intervals.len();
    let apart = |a: &Estimate, b: &Estimate| if higher_is_better { a.low > b.high } else { a.high < b.low };
    let mut ranked: Vec<Ranked> = (0..n).map(|index| Ranked { index, rank_low: 1, rank_high: n }).collect();
    for (better, own) in intervals.iter().enumerate() {
        for (worse, other) in intervals.iter().enumerate() {
            if apart(own, other) && confirmed(better, worse) {
                ranked[worse].rank_low += 1;
                ranked[better].rank_high -= 1;
            }
        }
    }
    ranked.sort_by(|a, b| {
        let (x, y) = (intervals[a.index].value, intervals[b.index].value);
        let by_value = if higher_is_better { y.total_cmp(&x) } else { x.total_cmp(&y) };
        a.rank_low.cmp(&b.rank_low).then(x.is_nan().cmp(&y.is_nan())).then(by_value)
    });
    ranked
}
