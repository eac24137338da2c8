//! Ranks rows by which of them is better with statistical certainty, and sorts a table in that order.
//! Called by `section` and `overall`.

use std::ops::DerefMut;

use weir_stats::{Estimate, Ranked, paired_ratio, shared_ranks};

use super::{LEVEL, Metric, SEED, Standing};

/// Rows in the order of their ranks.
pub(super) struct Sorted<R> {
    /// Ranked ones best first, then the others as they came.
    pub rows: Vec<R>,
    /// Which were ranked, by their position in the input, best first.
    pub ranked: Vec<usize>,
}

/// Ranks those rows that have the metric and for which `may` holds, given their position. `values` has the metric of each row
/// by block (NaN where it has none).
pub(super) fn sorted<R: DerefMut<Target = Standing>>(
    rows: Vec<R>,
    values: &[Vec<f64>],
    metric: Metric,
    may: impl Fn(usize, &R) -> bool,
) -> Sorted<R> {
    let ranked: Vec<(usize, Competitor<'_>)> = (rows.iter().enumerate().zip(values))
        .filter(|((i, row), _)| may(*i, row))
        .filter_map(|((i, row), by_block)| Some((i, Competitor { estimate: row.of(metric)?, by_block })))
        .collect();
    let (indices, competitors): (Vec<usize>, Vec<Competitor<'_>>) = ranked.into_iter().unzip();
    let places = ranks(&competitors, metric.higher_is_better());
    let best = places.first().map(|place| competitors[place.index].by_block);
    let mut left: Vec<Option<R>> = rows.into_iter().map(Some).collect();
    let mut sorted = Sorted { rows: Vec::with_capacity(left.len()), ranked: Vec::with_capacity(places.len()) };
    for place in &places {
        let index = indices[place.index];
        sorted.ranked.push(index);
        if let Some(mut row) = left[index].take() {
            row.rank = Some((place.rank_low, place.rank_high));
            row.ratio_to_best =
                best.and_then(|best| paired_ratio(competitors[place.index].by_block, best, LEVEL, SEED));
            sorted.rows.push(row);
        }
    }
    sorted.rows.extend(left.into_iter().flatten());
    sorted
}

/// One competitor: its estimate, and its value in each block (NaN where it has none).
struct Competitor<'a> {
    estimate: Estimate,
    by_block: &'a [f64],
}

/// Ranks, best first. Shared where intervals overlap, and also where the ratio within blocks may be 1: below 6 blocks the
/// interval of a median is narrower than 95 % (that of 3 blocks has 75 %), so of two equal products one would be declared
/// better in one run of ten. The ratio's interval keeps its promise.
fn ranks(competitors: &[Competitor<'_>], higher_is_better: bool) -> Vec<Ranked> {
    let estimates: Vec<Estimate> = competitors.iter().map(|competitor| competitor.estimate).collect();
    shared_ranks(&estimates, higher_is_better, |better, worse| {
        match paired_ratio(competitors[better].by_block, competitors[worse].by_block, LEVEL, SEED) {
            Some(ratio) if ratio.n > 1 => {
                if higher_is_better {
                    ratio.low > 1.0
                } else {
                    ratio.high < 1.0
                }
            }
            // One block promises nothing; the order is then what was seen, and the text says so.
            _ => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Estimates;

    fn places(values: &[&[f64]], higher_is_better: bool) -> Vec<(usize, usize, usize)> {
        let competitors: Vec<Competitor> = values
            .iter()
            .map(|by_block| Competitor {
                estimate: weir_stats::median_interval(by_block, LEVEL, SEED).unwrap(),
                by_block,
            })
            .collect();
        ranks(&competitors, higher_is_better)
            .iter()
            .map(|place| (place.index, place.rank_low, place.rank_high))
            .collect()
    }

    #[test]
    fn three_blocks_do_not_tell_small_differences_apart() {
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
    fn rows_are_sorted_by_rank_and_what_may_not_be_ranked_comes_last() {
        let values = [vec![200.0], vec![50.0], vec![f64::NAN], vec![100.0]];
        let named = |(name, by_block): (&str, &Vec<f64>)| {
            let estimates = Estimates::of(|_| true, |_| weir_stats::median_interval(by_block, LEVEL, SEED));
            Box::new(Standing { title: name.to_string(), estimates, ..Standing::default() })
        };
        let rows: Vec<_> = ["invalid", "slow", "nothing", "fast"].into_iter().zip(&values).map(named).collect();
        let sorted = sorted(rows, &values, Metric::Rate, |_, row| row.title != "invalid");
        let names: Vec<&str> = sorted.rows.iter().map(|row| row.title.as_str()).collect();
        assert_eq!(names, ["fast", "slow", "invalid", "nothing"]);
        assert_eq!(sorted.ranked, [3, 1]);
        let ratio = |row: &Standing| row.ratio_to_best.map(|ratio| (ratio.value * 1e6).round() / 1e6);
        let stands: Vec<_> = sorted.rows.iter().map(|row| row.rank.zip(ratio(row))).collect();
        assert_eq!(stands, [Some(((1, 1), 1.0)), Some(((2, 2), 0.5)), None, None]);
    }

    #[test]
    fn one_block_is_ordered_as_seen() {
        assert_eq!(places(&[&[1.0], &[2.0]], true), [(1, 1, 1), (0, 2, 2)]);
        assert!(places(&[], true).is_empty());
    }
}
