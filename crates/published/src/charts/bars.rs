//! Draws a document's bar charts with this run's numbers. `charts` calls it. Bars begin at 0 even where the original's
//! do not, because their lengths would otherwise mean nothing.

use std::collections::BTreeSet;

use weir_model::suite::Entry;

use super::{Counterpart, shade};
use crate::context::Context;
use crate::layout::fill;
use crate::metrics::unit_size;
use crate::run_cases::RunCase;
use crate::variant::Variant;
use weir_model::text::{grouped, short, unique};
use weir_report::charts::axis::{Axis, Scale};
use weir_report::charts::style;
use weir_report::charts::{Arrangement, Bar, BarGroup, BarSeries, Bars, Chart, ChartKind};
use weir_report::palette::lighter;

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

pub(super) fn draw(context: &Context<'_>, counterpart: Counterpart<'_>) -> Option<Chart> {
    let layout = counterpart.layout;
    let cases = context.cases;
    let mut values: Vec<Value<'_>> = Vec::new();
    for (case, entry) in context.document_order(layout.order, |case| layout.holds(case)) {
        values.extend(layout.metrics.iter().filter_map(|metric| value(context, counterpart, case, entry, metric)));
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

fn value<'a>(
    context: &Context<'_>,
    counterpart: Counterpart<'_>,
    case: &RunCase<'_>,
    entry: &'a Entry,
    metric: &str,
) -> Option<Value<'a>> {
    let cases = context.cases;
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
