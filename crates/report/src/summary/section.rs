//! Summarises one workload under one load: ranks, ratios, and the smallest difference that could have been found. `overall` ranks its rows
//! in the same way.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::DerefMut;

use weir_model::record::Verdict;
use weir_model::suite::{Load, LoadKind, Series, Workload};
use weir_model::text::{extremes, list};
use weir_stats::{Estimate, Ranked, detectable_difference, paired_noise, paired_ratio, relative_noise, shared_ranks};

use super::rows::{Cases, Cause, Coder};
use super::{LEVEL, Metric, Row, SEED, Section, Standing, words};
use crate::run::{BASELINE, Run, Trial};

/// `None` when no trial of the section has ended.
pub(super) fn section(run: &Run, workload: &Workload, load: &Load) -> Option<Section> {
    let places = run.places_of(&workload.name, &load.name);
    let trials: Vec<&Trial> = places.iter().filter_map(|place| run.trials.get(*place)).collect();
    if trials.is_empty() {
        return None;
    }
    let rates: Vec<f64> = trials.iter().filter_map(|t| t.measurement.load.as_ref()?.offered_rate).collect();
    let open = !rates.is_empty() && !matches!(load.kind, LoadKind::Search { .. });
    // A saturating load asks how much can be carried, and so does a series.
    let given = open && !load.saturating && load.series == Series::Once;
    let mut messages = trials.iter().filter_map(|trial| trial.measurement.load.as_ref()?.messages.as_ref());
    let metric = match workload.stream {
        // The rate of streams of several messages, and how long each takes, are their sender's.
        Some(_) if messages.any(|all| all.total.received > all.total.begun) => Metric::MessageDelay,
        _ if given => Metric::P99,
        _ => Metric::Rate,
    };
    let blocks: BTreeSet<u32> = trials.iter().map(|trial| trial.measurement.block).collect();
    let blocks: Vec<u32> = blocks.into_iter().collect();
    let cases: Vec<Cases> = run.suite.entries.iter().filter_map(|entry| Cases::of(entry, load, &trials)).collect();
    let (baseline, products): (Vec<Cases>, Vec<Cases>) =
        cases.into_iter().partition(|cases| cases.entry.product == BASELINE);
    let ranked = rank(run, &products, &blocks, metric);
    let mut rows = ranked.rows;
    for row in &mut rows {
        let values = |cases: &Cases| cases.by_block(&blocks, |window| metric.value(window));
        let direct = baseline.iter().filter(|cases| cases.ranked());
        let same_profile = direct.clone().find(|cases| cases.entry.profile == row.entry.profile);
        let own = products.iter().find(|cases| *cases.entry == row.entry);
        if let (Some(own), Some(direct)) = (own, same_profile.or_else(|| direct.clone().next())) {
            row.ratio_to_baseline = paired_ratio(&values(own), &values(direct), LEVEL, SEED);
        }
    }
    let counting = || trials.iter().filter(|trial| trial.counts()).map(|trial| &trial.measurement);
    let windows: Vec<f64> = counting().filter_map(|measurement| Some(measurement.load.as_ref()?.window_s)).collect();
    let noise = ranked.noise;
    let detectable = noise.map(|noise| detectable_difference(noise, ranked.pairs, LEVEL)).filter(|x| x.is_finite());
    let verdict_count = |verdict| trials.iter().filter(|trial| trial.measurement.verdict == verdict).count();
    let mut section = Section {
        workload: workload.name.clone(),
        workload_title: workload.title.clone(),
        load: load.name.clone(),
        load_title: load.title.clone(),
        kind: load.kind.clone(),
        series: load.series.clone(),
        open,
        saturating: load.saturating,
        own_rates: load.kind.own_rates(),
        protocol: Some(workload.protocol),
        streams: load.streams_of(workload.protocol),
        tls: spoken(&trials),
        close: load.close,
        connections: (load.connections > 0).then_some(load.connections),
        window_s: weir_stats::median(&windows).unwrap_or(0.0),
        offered_rate: extremes(rates.iter().copied()).filter(|_| open),
        ranked_by: metric,
        blocks: counting().map(|measurement| measurement.block).collect::<BTreeSet<_>>().len(),
        noise,
        detectable_ratio: detectable,
        invalid: verdict_count(Verdict::Invalid),
        failed: verdict_count(Verdict::Error),
        clients: Vec::new(),
        how: Vec::new(),
        how_drawn: Vec::new(),
        origin_spoke: words::spoken(run, &trials),
        baseline: baseline.iter().map(|cases| cases.row(run, &blocks)).collect(),
        rows,
        places,
        block_numbers: blocks,
    };
    section.clients = words::clients(run, &section);
    section.how = words::how(&section);
    section.how.extend(words::kept_words(run, &trials));
    section.how_drawn = words::how_drawn(&section);
    Some(section)
}

/// True when a product is ranked among all of its section.
pub(super) fn is_ranked(cases: &Cases<'_>, all: &[Cases<'_>]) -> bool {
    cases.ranked() && not_comparable(cases, all).is_none()
}

/// The reason why a product's numbers are not comparable with those of its section. It compressed responses and another did not, or
/// it got responses uncoded that the origin coded for another.
fn not_comparable(cases: &Cases<'_>, all: &[Cases<'_>]) -> Option<&'static str> {
    let others = || all.iter().filter(|other| other.entry.product != BASELINE && other.ranked());
    let any = |coder: Coder| others().any(|other| other.coder() == coder);
    match cases.coder() {
        Coder::Product if any(Coder::Nobody) || any(Coder::Origin) => {
            Some("compressed responses, and products of the same case did not")
        }
        Coder::Nobody if any(Coder::Origin) => {
            Some("got responses uncoded which the origin coded for products of the same case")
        }
        _ => None,
    }
}

/// The cases of a section that was made.
pub(super) fn cases_of<'a>(run: &'a Run, section: &Section) -> Vec<Cases<'a>> {
    let trials: Vec<&Trial> = section.trials(run).collect();
    let Some(load) = run.suite.loads.iter().find(|load| load.name == section.load) else { return Vec::new() };
    run.suite.entries.iter().filter_map(|entry| Cases::of(entry, load, &trials)).collect()
}

/// Versions and suites of TLS in the trials that count, each once.
fn spoken(trials: &[&Trial]) -> Vec<String> {
    let results =
        trials.iter().filter(|trial| trial.counts()).filter_map(|t| t.measurement.load.as_ref()?.tls.as_ref());
    let names = |counts: &BTreeMap<String, u64>| list(&counts.keys().collect::<Vec<_>>());
    results
        .filter(|tls| tls.handshakes > 0)
        .map(|tls| format!("{} with {}", names(&tls.versions), names(&tls.suites)))
        .collect::<BTreeSet<String>>()
        .into_iter()
        .collect()
}

/// The products of a section: those that may be ranked, best first; the others follow in the suite's order.
struct RankedRows {
    rows: Vec<Row>,
    /// Typical noise of one product, pairing taken into account.
    noise: Option<f64>,
    /// Blocks in which the best was measured.
    pairs: usize,
}

fn rank(run: &Run, products: &[Cases], blocks: &[u32], metric: Metric) -> RankedRows {
    let values: Vec<Vec<f64>> =
        products.iter().map(|cases| cases.by_block(blocks, |window| metric.value(window))).collect();
    let row = |cases: &Cases<'_>| {
        let not_comparable = not_comparable(cases, products);
        let mut row = Row { not_comparable, ..cases.row(run, blocks) };
        row.causes.extend(not_comparable.map(|why| Cause {
            kind: "not ranked".to_owned(),
            blocks: Vec::new(),
            message: format!("it {why}"),
            differs: false,
        }));
        row
    };
    let rows: Vec<Row> = products.iter().map(row).collect();
    let sorted = sorted(rows, &values, metric, |i, _| is_ranked(&products[i], products));
    let Some((best, others)) = sorted.ranked.split_first() else {
        return RankedRows { rows: sorted.rows, noise: None, pairs: 0 };
    };
    let best = &values[*best];
    let noises: Vec<f64> = others.iter().filter_map(|other| paired_noise(&values[*other], best)).collect();
    let pairs = sorted.rows[0].of(metric).map_or(0, |estimate| estimate.n);
    RankedRows { noise: weir_stats::median(&noises).or_else(|| relative_noise(best)), pairs, rows: sorted.rows }
}

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
    let may_rank = rows.iter().enumerate().filter(|(place, row)| may(*place, row));
    let (indices, estimates): (Vec<usize>, Vec<Estimate>) =
        may_rank.filter_map(|(place, row)| Some((place, row.of(metric)?))).unzip();
    let by_block: Vec<&[f64]> = indices.iter().map(|index| values[*index].as_slice()).collect();
    let places = ranks(&estimates, &by_block, metric.higher_is_better());
    let mut left: Vec<Option<R>> = rows.into_iter().map(Some).collect();
    let mut sorted = Sorted { rows: Vec::with_capacity(left.len()), ranked: Vec::with_capacity(places.len()) };
    for place in &places {
        let index = indices[place.index];
        sorted.ranked.push(index);
        if let Some(mut row) = left[index].take() {
            row.rank = Some((place.rank_low, place.rank_high));
            row.ratio_to_best = paired_ratio(&values[index], &values[sorted.ranked[0]], LEVEL, SEED);
            sorted.rows.push(row);
        }
    }
    sorted.rows.extend(left.into_iter().flatten());
    sorted
}

/// Ranks, best first. Shared where intervals overlap, and also where the ratio within blocks may be 1. Below 6 blocks the
/// interval of a median is narrower than 95 % (that of 3 blocks has 75 %). One of two equal products would then be declared
/// better in one run of ten. The ratio's interval keeps its promise.
fn ranks(estimates: &[Estimate], by_block: &[&[f64]], higher_is_better: bool) -> Vec<Ranked> {
    shared_ranks(estimates, higher_is_better, |better, worse| {
        match paired_ratio(by_block[better], by_block[worse], LEVEL, SEED) {
            Some(ratio) if ratio.n > 1 && higher_is_better => ratio.low > 1.0,
            Some(ratio) if ratio.n > 1 => ratio.high < 1.0,
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
        let estimates: Vec<Estimate> =
            values.iter().map(|by_block| weir_stats::median_interval(by_block, LEVEL, SEED).unwrap()).collect();
        ranks(&estimates, values, higher_is_better)
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
