//! Builds the chart of the first screen: what each product carries over all workloads, or on each of a few workloads.
//! Called through `overview` in `section`.

use weir_stats::Estimate;

use super::capacity::{alt_text, bar, subtitle, with_interval};
use super::style;
use crate::charts::axis::{Axis, Scale};
use crate::charts::{Bar, BarGroup, BarSeries, Bars, Chart, ChartKind};
use crate::run::{BASELINE, Run};
use crate::summary::{Metric, Overall, OverallRow, Row, Section, Summary};
use weir_model::text::{Unit, short};

/// With more bars than this a chart is no longer readable.
const MOST_BARS: usize = 24;

/// `None` when nothing may be ranked.
pub(super) fn overview(run: &Run, summary: &Summary) -> Option<Chart> {
    let overall = summary.overall.as_ref()?;
    let from = if overall.ranked_by == Metric::Rate { &overall.rate_from } else { &overall.latency_from };
    let sections: Vec<&Section> = summary.sections.iter().filter(|section| from.contains(&section.slug())).collect();
    let bars: usize = sections.iter().map(|section| section.all_rows().count()).sum();
    Some(if sections.len() > 1 && bars <= MOST_BARS {
        each_workload(run, overall, &sections)
    } else {
        over_all(run, overall, &sections)
    })
}

fn axis(metric: Metric) -> (Unit, Axis) {
    let (unit, label) = match metric {
        Metric::Rate => (Unit::PER_SECOND, "Right answers a second"),
        _ => (Unit::MILLIS, "99th percentile of latency"),
    };
    (unit, Axis { label: label.to_string(), unit: unit.name.to_string(), scale: Scale::Linear })
}

/// One bar a product; under one label those of a product's profiles.
fn over_all(run: &Run, overall: &Overall, sections: &[&Section]) -> Chart {
    let (unit, value) = axis(overall.ranked_by);
    let mut groups: Vec<(&str, BarGroup)> = Vec::new();
    for row in overall.all_rows() {
        let Some(bar) = overall_bar(run, overall, row, unit) else { continue };
        let baseline = row.entry.product == BASELINE;
        match groups.iter_mut().find(|(product, _)| *product == row.entry.product) {
            Some((_, group)) => group.bars.push(bar),
            None => {
                let label = mark(&row.title, row);
                groups.push((&row.entry.product, BarGroup { label, baseline, bars: vec![bar] }));
            }
        }
    }
    let several = overall.workloads.len() > 1;
    let over = match overall.workloads.as_slice() {
        [only] => format!("on {only}"),
        all => format!("geometric means over {} workloads", all.len()),
    };
    let words: Vec<String> = (overall.all_rows())
        .filter_map(|row| {
            let estimate = row.of(overall.ranked_by)?;
            Some(format!("{} {} {}", row.label, short(estimate.value / unit.size), unit.name))
        })
        .collect();
    let mut notes = Vec::new();
    if several {
        notes.push(format!(
            "Geometric means over {}, taken within each block; then medians over {} blocks.",
            overall.workloads.join(", "),
            overall.blocks
        ));
    }
    notes.extend(
        sections.first().iter().flat_map(|section| section.how_drawn.iter().skip(usize::from(several)).cloned()),
    );
    Chart {
        name: "overview".to_string(),
        title: format!("{}: {over}", value.label),
        subtitle: words_of(overall, sections),
        alt: format!("Bars. {}.", words.join(", ")),
        notes,
        kind: ChartKind::Bars(Bars {
            value,
            series: vec![BarSeries { name: String::new(), colour: String::new() }],
            groups: groups.into_iter().map(|(_, group)| group).collect(),
            stacked: false,
        }),
    }
}

fn overall_bar(run: &Run, overall: &Overall, row: &OverallRow, unit: Unit) -> Option<Bar> {
    let estimate = row.of(overall.ranked_by)?;
    let scaled = |value: f64| value / unit.size;
    let value = short(scaled(estimate.value));
    let profile = row.label != row.title && row.entry.product != BASELINE;
    Some(Bar {
        series: 0,
        value: scaled(estimate.value),
        interval: (estimate.n > 1).then(|| (scaled(estimate.low), scaled(estimate.high))),
        colour: style(run, &row.entry).0.colour,
        hollow: row.rank.is_none() && row.entry.product != BASELINE,
        text: if profile { format!("{value}  {}", row.entry.profile) } else { value },
    })
}

fn mark(title: &str, row: &OverallRow) -> String {
    if row.verdicts.suspect > 0 { format!("{title} *") } else { title.to_string() }
}

fn words_of(overall: &Overall, sections: &[&Section]) -> String {
    let mut parts = vec![match overall.ranked_by {
        Metric::Rate => "More is better.",
        _ => "Less is better.",
    }];
    if overall.blocks > 1 {
        parts.push("Whiskers are the interval of the median.");
    }
    if sections.iter().flat_map(|section| section.all_rows()).any(Row::suspect) {
        parts.push("* suspect, see its remark.");
    }
    parts.join(" ")
}

/// A group of bars for each workload.
fn each_workload(run: &Run, overall: &Overall, sections: &[&Section]) -> Chart {
    let metric = overall.ranked_by;
    let (unit, value) = axis(metric);
    let entries: Vec<_> = overall.all_rows().map(|row| &row.entry).collect();
    let series =
        entries.iter().map(|entry| BarSeries { name: run.label_of(entry), colour: style(run, entry).0.colour });
    let groups = sections.iter().map(|section| {
        let bars = entries.iter().enumerate().filter_map(|(index, entry)| {
            let row = section.all_rows().find(|row| row.entry == **entry)?;
            let estimate = row.of(metric)?;
            let baseline = section.baseline.iter().any(|row| row.entry == **entry);
            let mut bar = bar(run, row, &estimate, index, baseline);
            bar.value /= unit.size;
            bar.interval = bar.interval.map(|(low, high)| (low / unit.size, high / unit.size));
            bar.text = with_interval(&estimate, unit.size, row);
            Some(bar)
        });
        BarGroup { label: format!("{} {}", section.workload, section.load), baseline: false, bars: bars.collect() }
    });
    let alt_text: Vec<String> = sections
        .iter()
        .map(|section| {
            let of = |row: &Row| -> Option<Estimate> { row.of(metric) };
            format!("{}: {}", section.slug_words(), alt_text(section, of, unit))
        })
        .collect();
    Chart {
        name: "overview".to_string(),
        title: match metric {
            Metric::Rate => "Right answers a second: every workload at its most".to_string(),
            _ => "99th percentile of latency: every workload".to_string(),
        },
        subtitle: sections.first().map(|section| subtitle(section)).unwrap_or_default(),
        alt: format!("Bars. {}.", alt_text.join(". ")),
        notes: sections.first().map(|section| section.how_drawn.iter().skip(1).cloned().collect()).unwrap_or_default(),
        kind: ChartKind::Bars(Bars { value, series: series.collect(), groups: groups.collect(), stacked: false }),
    }
}
