//! Who is surely better than whom.

use weir_stats::{Estimate, paired_ratio};

use super::{LEVEL, SEED};

/// One competitor: its estimate, and its value in each block (NaN where it has none).
pub(super) struct Competitor<'a> {
    pub estimate: Estimate,
    pub by_block: &'a [f64],
}

/// Place of a competitor, by its position in the input: best and worst rank that the data allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub index: usize,
    pub low: usize,
    pub high: usize,
}

/// Ranks, best first. Shared where intervals overlap, as [`weir_stats::shared_ranks`] has it, and also where the ratio
/// within blocks may be 1: below 6 blocks the interval of a median is narrower than 95 % (that of 3 blocks has 75 %), so
/// of two equal products one would be declared better in one run of ten. The ratio's interval keeps its promise.
pub(super) fn ranks(competitors: &[Competitor<'_>], higher_is_better: bool) -> Vec<Place> {
    let estimates: Vec<Estimate> = competitors.iter().map(|competitor| competitor.estimate).collect();
    let order = weir_stats::shared_ranks(&estimates, higher_is_better);
    let n = competitors.len();
    // Each pair once: with fifty products there are thousands of them.
    let mut table = vec![false; n * n];
    for (a, one) in competitors.iter().enumerate() {
        for (b, other) in competitors.iter().enumerate() {
            table[a * n + b] = a != b && surely_better(one, other, higher_is_better);
        }
    }
    let better = |a: usize, b: usize| table[a * n + b];
    let mut places: Vec<Place> = order
        .iter()
        .map(|ranked| Place {
            index: ranked.index,
            low: 1 + (0..n).filter(|other| better(*other, ranked.index)).count(),
            high: n - (0..n).filter(|other| better(ranked.index, *other)).count(),
        })
        .collect();
    let value =
        |place: &Place| if higher_is_better { -estimates[place.index].value } else { estimates[place.index].value };
    places.sort_by(|a, b| a.low.cmp(&b.low).then(value(a).total_cmp(&value(b))));
    places
}

fn surely_better(a: &Competitor<'_>, b: &Competitor<'_>, higher_is_better: bool) -> bool {
    let apart = if higher_is_better { a.estimate.low > b.estimate.high } else { a.estimate.high < b.estimate.low };
    if !apart {
        return false;
    }
    match paired_ratio(a.by_block, b.by_block, LEVEL, SEED) {
        // One block promises nothing; the order is then what was seen, and the text says so.
        Some(ratio) if ratio.n > 1 => {
            if higher_is_better {
                ratio.low > 1.0
            } else {
                ratio.high < 1.0
            }
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(values: &[&[f64]], higher_is_better: bool) -> Vec<(usize, usize, usize)> {
        let competitors: Vec<Competitor> = values
            .iter()
            .map(|by_block| Competitor {
                estimate: weir_stats::median_interval(by_block, LEVEL, SEED).unwrap(),
                by_block,
            })
            .collect();
        ranks(&competitors, higher_is_better).iter().map(|place| (place.index, place.low, place.high)).collect()
    }

    #[test]
    fn three_blocks_do_not_tell_a_hair_apart() {
        // Intervals do not touch, but the difference is no larger than what blocks differ by anyway.
        assert_eq!(places(&[&[100.0, 103.0, 101.0], &[104.0, 103.5, 107.0]], true), [(1, 1, 2), (0, 1, 2)]);
    }

    #[test]
    fn what_differs_clearly_is_ranked() {
        let values: [&[f64]; 3] = [&[50.0, 51.0, 50.5], &[100.0, 101.0, 99.0], &[100.5, 99.5, 100.0]];
        let of = |x: Vec<(usize, usize, usize)>| -> Vec<(usize, usize)> { x.iter().map(|p| (p.1, p.2)).collect() };
        assert_eq!(of(places(&values, true)), [(1, 2), (1, 2), (3, 3)]);
        assert_eq!(places(&values, false)[0], (0, 1, 1));
    }

    #[test]
    fn one_block_is_ordered_as_seen() {
        assert_eq!(places(&[&[1.0], &[2.0]], true), [(1, 1, 1), (0, 2, 2)]);
        assert!(places(&[], true).is_empty());
    }
}
