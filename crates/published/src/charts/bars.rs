//! Draws a document's bar charts with this run's numbers, and how far this run's numbers are from the published ones. Bars begin at 0 even
//! where the original's do not, because their lengths would otherwise mean nothing.

use std::collections::BTreeSet;

use weir_model::suite::Entry;
use weir_model::text::{grouped, short, unique};
use weir_report::charts::axis::{Axis, Scale};
use weir_report::charts::{Arrangement, Bar, BarGroup, BarSeries, Bars, Chart, ChartKind, style};
use weir_report::palette::lighter;

use super::{Counterpart, shade};
use crate::figures::Variant;
use crate::layout::{fill, holds};
use crate::numbers::unit_size;
use crate::results::{self, Line, Measured};
use crate::run_cases::{Context, RunCase};

/// The share of white in the last of several bars of a product.
const PALEST: f64 = 0.7;

/// The legend's colour for bars that several products have.
const GREY: &str = "#57606a";

/// One number to be drawn.
struct Value<'a> {
    group: String,
    series: String,
    entry: &'a Entry,
    bar: Bar,
}

pub(super) fn draw(counterpart: Counterpart<'_>) -> Option<Chart> {
    let Counterpart { context, layout, .. } = counterpart;
    let cases = context.cases;
    let mut values: Vec<Value<'_>> = Vec::new();
    for (case, entry) in context.document_order(layout.order, |case| holds(&layout.cases, case)) {
        values.extend(layout.metrics.iter().filter_map(|metric| value(counterpart, case, entry, metric)));
    }
    let names = unique(values.iter().map(|value| value.series.clone()));
    let by_product = layout.bars.contains("{product}");
    let shade = |place: usize| shade(PALEST, place, names.len());
    for value in &mut values {
        value.bar.series = names.iter().position(|name| *name == value.series).unwrap_or(0);
        if !by_product {
            value.bar.colour = lighter(&value.bar.colour, shade(value.bar.series));
        }
    }
    let series = names.iter().enumerate().map(|(place, name)| BarSeries {
        name: name.clone(),
        colour: match values.iter().find(|value| value.series == *name) {
            Some(value) if by_product => style(cases.run, value.entry).colour,
            _ => lighter(GREY, shade(place)),
        },
    });
    let groups = grouped(values.iter().map(|value| (value.group.clone(), value.bar.clone())));
    let groups = groups.into_iter().map(|(label, mut bars)| {
        // At most one per series: a second bar would cover the first.
        let mut seen = BTreeSet::new();
        bars.retain(|bar| seen.insert(bar.series));
        BarGroup { label, baseline: false, bars }
    });
    let alt_text: Vec<String> = values.iter().map(|value| alt_text(value, names.len())).collect();
    let (label, unit) =
        counterpart.picture.map_or((String::new(), String::new()), |p| (p.y_axis.clone(), p.y_unit.clone()));
    let bars = Bars {
        value: Axis { label, unit, scale: counterpart.scale() },
        series: series.collect(),
        groups: groups.collect(),
        arrangement: Arrangement::Below,
    };
    let mut notes = vec!["Medians over blocks; whiskers are the interval of the median.".to_string()];
    if let Some(from) = counterpart.cut_off() {
        notes.push(format!(
            "The original's axis begins at {}, this one at 0: bars are compared by their length.",
            short(from)
        ));
    }
    if counterpart.scale() == Scale::Log {
        notes.push("The axis is logarithmic, as the original's: lengths of bars do not compare.".to_string());
    }
    notes.push(context.scaled.to_string());
    (!values.is_empty()).then(|| Chart {
        name: counterpart.name(),
        title: format!("{}: this run", counterpart.title()),
        subtitle: counterpart.subtitle(better(&layout.metrics)),
        alt: format!("Bars: {}.", alt_text.join("; ")),
        notes,
        kind: ChartKind::Bars(bars),
    })
}

fn value<'a>(counterpart: Counterpart<'_>, case: &RunCase<'_>, entry: &'a Entry, metric: &str) -> Option<Value<'a>> {
    let (context, cases) = (counterpart.context, counterpart.context.cases);
    let estimate = cases.estimate(case, Variant::Whole, entry, metric)?;
    let unit = context.source.results(metric).next().map(|figure| figure.unit.as_str()).unwrap_or_default();
    let size = unit_size(unit).unwrap_or(1.0);
    if counterpart.scale() == Scale::Log && estimate.low <= 0.0 {
        return None;
    }
    let label = cases.run.label_of(entry);
    let more = [("product", label.as_str()), ("metric", metric.strip_prefix("latency-").unwrap_or(metric))];
    let mut bar = Bar::of(&estimate, size, style(cases.run, entry).colour);
    if case.invalid(entry) {
        bar.hollow = true;
        bar.text.push_str(" invalid, not ranked");
    }
    let group = fill(&counterpart.layout.groups, case.name, &more);
    Some(Value { group, series: fill(&counterpart.layout.bars, case.name, &more), entry, bar })
}

fn alt_text(value: &Value<'_>, series: usize) -> String {
    let part = if series > 1 { format!(" {}", value.series) } else { String::new() };
    format!("{}{part} {}", value.group, value.bar.text)
}

fn better(metrics: &[String]) -> &'static str {
    if metrics.iter().all(|metric| metric.starts_with("latency-")) { "Less is better." } else { "More is better." }
}

/// One chart of all results that compare. `None` where there are none.
pub(crate) fn distances(context: &Context<'_>, lines: &[Line<'_>]) -> Option<Chart> {
    let run = context.cases.run;
    let compared = lines.iter().filter_map(|line| {
        let measured = line.measured().filter(|measured| measured.closest)?;
        Some((line, measured, measured.ratio?.value)).filter(|(.., ratio)| *ratio > 0.0)
    });
    let compared: Vec<(&Line<'_>, &Measured<'_>, f64)> = compared.collect();
    let order = |product: &str| context.source.products.iter().position(|known| known.product == product);
    let mut products = unique(compared.iter().map(|(line, ..)| line.figure.product.as_str()));
    products.sort_by_key(|product| order(product));
    let series = products.iter().map(|product| {
        let entry = compared.iter().find(|(line, ..)| line.figure.product == *product).map(|(_, own, _)| own.entry);
        let colour = entry.map(|entry| style(run, entry).colour).unwrap_or_default();
        BarSeries { name: run.title_of(product).to_string(), colour }
    });
    let series: Vec<BarSeries> = series.collect();
    let dot = |(line, measured, ratio): &(&Line<'_>, &Measured<'_>, f64)| {
        let place = products.iter().position(|product| *product == line.figure.product).unwrap_or(0);
        let figure = line.figure;
        let of = [figure.metric.as_str(), &figure.case, &figure.variant].join(" ");
        let text = format!(
            "{} times: {}, {} {} there, {} here{}",
            short(*ratio),
            of.trim_end(),
            short(figure.value),
            figure.unit,
            short(measured.value.value),
            if measured.invalid { ", invalid" } else { "" }
        );
        Bar {
            series: place,
            value: *ratio,
            interval: None,
            colour: series[place].colour.clone(),
            hollow: measured.invalid,
            text,
        }
    };
    let groups = results::by_group(context.source, compared.iter().map(|one| (one.0, one)));
    let groups = groups.into_iter().map(|(group, all)| BarGroup {
        label: group.to_string(),
        // A rule below each.
        baseline: true,
        bars: all.into_iter().map(dot).collect(),
    });
    let groups: Vec<BarGroup> = groups.collect();
    let within = |factor: f64| compared.iter().filter(|(.., r)| (1.0 / factor..=factor).contains(r)).count();
    let (near, far) = (within(2.0), compared.len() - within(10.0));
    let title = format!("How far this run is from {}", context.source.documents.first()?.title);
    let subtitle = format!(
        "Each dot is one published result: ours divided by theirs. Of {}, {near} are within a factor of 2 and {far} beyond one of 10.",
        compared.len()
    );
    let mut notes = vec![
        "At 1 both are the same; right of it ours is more, left of it less. Machines differ, so look at whether the dots of one \
         product stand elsewhere than those of the others, more than at where all of them stand. Counts that grow with the number \
         of requests are compared as shares of it. Results that are 0 on either side have no place on this axis."
            .to_string(),
    ];
    if context.cases.profiles.len() > 1 {
        notes.push("Of each product the profile that repeats the document most closely.".to_string());
    }
    notes.push(context.scaled.to_string());
    (!compared.is_empty()).then(|| Chart {
        name: "published-distances".to_string(),
        alt: format!("{title}. {subtitle}"),
        title,
        subtitle,
        notes,
        kind: ChartKind::bars(
            Axis { scale: Scale::Log, ..Axis::linear("This run / published", "") },
            series,
            groups,
            Arrangement::Dots { rule: 1.0 },
        ),
    })
}
