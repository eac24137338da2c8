//! Summarises one workload under one load: ranks, ratios, and the smallest difference that could have been found.
//! Called by `summary`; `overall` reuses the cases of a section.

use std::collections::{BTreeMap, BTreeSet};

use weir_model::record::Verdict;
use weir_model::suite::{Load, LoadKind, Series, Workload};
use weir_model::text::{extremes, list};
use weir_stats::{detectable_difference, paired_noise, paired_ratio, relative_noise};

use super::rank::sorted;
use super::row::{Cases, Coder};
use super::{LEVEL, Metric, Row, SEED, Section, curve, hosts, how, kept, origin};
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
    let metric = if given { Metric::P99 } else { Metric::Rate };
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
        curve::bend(row, &load.series);
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
        origin_spoke: origin::spoken(run, &trials),
        baseline: baseline.iter().map(|cases| baseline_row(cases, run, &blocks)).collect(),
        rows,
        places,
        block_numbers: blocks,
    };
    section.clients = hosts::clients(run, &section);
    section.how = how::how(&section);
    section.how.extend(kept::words(run, &trials));
    section.how_drawn = how::how_drawn(&section);
    Some(section)
}

fn baseline_row(cases: &Cases<'_>, run: &Run, blocks: &[u32]) -> Row {
    let mut row = cases.row(run, blocks);
    curve::bend(&mut row, &cases.load.series);
    row
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
        row.remarks.extend(not_comparable.map(|why| format!("not ranked: it {why}")));
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
