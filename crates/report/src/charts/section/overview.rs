//! Builds the chart of the first screen: what each product carries over all workloads, or on each of a few workloads.
//! Called through `overview` in `section`.

use weir_model::text::{Unit, grouped, short};
use weir_stats::Estimate;

use super::bars::{alt_text, bar, one_series, subtitle};
use super::style;
use crate::charts::axis::Axis;
use crate::charts::{Arrangement, BarGroup, BarSeries, Bars, Chart, ChartKind};
use crate::run::Run;
use crate::summary::{Metric, Overall, Section, Summary};

/// With more bars than this a chart is no longer readable.
const MOST_BARS: usize = 24;

/// The picture of the first screen; `None` when nothing may be ranked.
pub fn overview(run: &Run, summary: &Summary) -> Option<Chart> {
    let overall = summary.overall.as_ref()?;
    let sections: Vec<&Section> =
        summary.sections.iter().filter(|section| overall.leading().contains(&section.slug())).collect();
    let bars: usize = sections.iter().map(|section| section.all_rows().count()).sum();
    Some(if sections.len() > 1 && bars <= MOST_BARS {
        each_workload(run, overall, &sections)
    } else {
        over_all(run, overall, &sections)
    })
}

fn unit(metric: Metric) -> Unit {
    if metric == Metric::Rate { Unit::PER_SECOND } else { Unit::MILLIS }
}

/// One bar a product; under one label those of a product's profiles.
fn over_all(run: &Run, overall: &Overall, sections: &[&Section]) -> Chart {
    let (metric, unit) = (overall.ranked_by, unit(overall.ranked_by));
    let measured = || overall.all_rows().filter_map(|row| Some((row, row.of(metric)?)));
    let value = |estimate: &Estimate| short(estimate.value / unit.size);
    let words: Vec<String> =
        measured().map(|(row, estimate)| format!("{} {} {}", row.label, value(&estimate), unit.name)).collect();
    let bars = measured().map(|(row, estimate)| {
        let mut bar = bar(run, row, &estimate, unit);
        bar.text = value(&estimate);
        if row.label != row.title && !row.is_baseline() {
            bar.text.push_str(&format!("  {}", row.entry.profile));
        }
        (row.entry.product.as_str(), (row, bar))
    });
    let groups = grouped(bars).into_iter().map(|(_, bars)| {
        let row = bars[0].0;
        let label = if row.suspect() { format!("{} *", row.title) } else { row.title.clone() };
        BarGroup { label, baseline: row.is_baseline(), bars: bars.into_iter().map(|(_, bar)| bar).collect() }
    });
    let groups = groups.collect();
    let several = overall.workloads.len() > 1;
    let over = match overall.workloads.as_slice() {
        [only] => format!("on {only}"),
        all => format!("geometric means over {} workloads", all.len()),
    };
    let means = several.then(|| {
        format!(
            "Geometric means over {}, taken within each block; then medians over {} blocks.",
            overall.workloads.join(", "),
            overall.blocks
        )
    });
    let how_drawn = sections.first().into_iter().flat_map(|section| &section.how_drawn).skip(usize::from(several));
    let suspect = sections.iter().flat_map(|section| section.all_rows()).any(|row| row.suspect());
    let better = if metric.higher_is_better() { "More is better." } else { "Less is better." };
    let whiskers = (overall.blocks > 1).then_some("Whiskers are the interval of the median.");
    let parts = [Some(better), whiskers, suspect.then_some("* suspect, see its remark.")];
    Chart {
        name: "overview".to_string(),
        title: format!("{}: {over}", metric.entry().name),
        subtitle: parts.into_iter().flatten().collect::<Vec<_>>().join(" "),
        alt: format!("Bars. {}.", words.join(", ")),
        notes: means.into_iter().chain(how_drawn.cloned()).collect(),
        kind: one_series(Axis::of_metric(metric, unit), groups),
    }
}

/// A group of bars for each workload.
fn each_workload(run: &Run, overall: &Overall, sections: &[&Section]) -> Chart {
    let (metric, unit) = (overall.ranked_by, unit(overall.ranked_by));
    let entries: Vec<_> = overall.all_rows().map(|row| &row.entry).collect();
    let series = entries.iter().map(|entry| BarSeries { name: run.label_of(entry), colour: style(run, entry).colour });
    let groups = sections.iter().map(|section| {
        let bars = entries.iter().enumerate().filter_map(|(series, entry)| {
            let row = section.all_rows().find(|row| row.entry == **entry)?;
            let mut bar = bar(run, row, &row.of(metric)?, unit);
            bar.series = series;
            Some(bar)
        });
        BarGroup { label: format!("{} {}", section.workload, section.load), baseline: false, bars: bars.collect() }
    });
    let words = sections
        .iter()
        .map(|section| format!("{}: {}", section.slug_words(), alt_text(section, |row| row.of(metric), unit)));
    let at_most = if metric == Metric::Rate { " at its most" } else { "" };
    Chart {
        name: "overview".to_string(),
        title: format!("{}: every workload{at_most}", metric.entry().name),
        subtitle: sections.first().map(|section| subtitle(section)).unwrap_or_default(),
        alt: format!("Bars. {}.", words.collect::<Vec<_>>().join(". ")),
        notes: sections.first().into_iter().flat_map(|section| &section.how_drawn).skip(1).cloned().collect(),
        kind: ChartKind::Bars(Bars {
            value: Axis::of_metric(metric, unit),
            series: series.collect(),
            groups: groups.collect(),
            arrangement: Arrangement::Below,
        }),
    }
}
