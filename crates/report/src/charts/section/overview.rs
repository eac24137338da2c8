//! Builds the chart of the first screen: what each product carries over all workloads, or on each of a few workloads.
//! Called through `overview` in `section`.

use weir_model::text::{Unit, short};

use super::bars::{alt_text, bar, one_series, subtitle};
use super::style;
use crate::charts::axis::Axis;
use crate::charts::{BarGroup, BarSeries, Bars, Chart, ChartKind};
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
    let (mut groups, mut words): (Vec<(&str, BarGroup)>, Vec<String>) = (Vec::new(), Vec::new());
    for row in overall.all_rows() {
        let Some(estimate) = row.of(metric) else { continue };
        let value = short(estimate.value / unit.size);
        words.push(format!("{} {value} {}", row.label, unit.name));
        let profile = row.label != row.title && !row.is_baseline();
        let mut bar = bar(run, row, &estimate, unit);
        bar.text = if profile { format!("{value}  {}", row.entry.profile) } else { value };
        match groups.iter_mut().find(|(product, _)| *product == row.entry.product) {
            Some((_, group)) => group.bars.push(bar),
            None => {
                let label = if row.suspect() { format!("{} *", row.title) } else { row.title.clone() };
                let group = BarGroup { label, baseline: row.is_baseline(), bars: vec![bar] };
                groups.push((&row.entry.product, group));
            }
        }
    }
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
        kind: one_series(Axis::of_metric(metric, unit), groups.into_iter().map(|(_, group)| group).collect()),
    }
}

/// A group of bars for each workload.
fn each_workload(run: &Run, overall: &Overall, sections: &[&Section]) -> Chart {
    let (metric, unit) = (overall.ranked_by, unit(overall.ranked_by));
    let entries: Vec<_> = overall.all_rows().map(|row| &row.entry).collect();
    let series =
        entries.iter().map(|entry| BarSeries { name: run.label_of(entry), colour: style(run, entry).0.colour });
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
            stacked: false,
        }),
    }
}
