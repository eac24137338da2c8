//! Draws a document's curves over connections or rates: percentiles of one product of this run, and the published ones
//! behind them. `charts` calls it.

use weir_model::suite::Entry;
use weir_model::text::Unit;

use super::{Counterpart, shade, slug};
use crate::context::Context;
use crate::metrics::unit_size;
use crate::points::{Across, Published};
use weir_report::charts::axis::{Axis, Scale};
use weir_report::charts::{Chart, ChartKind, Curve, CurvePoint, Curves, Dash, style};
use weir_report::palette::lighter;

/// The share of white in the lowest percentile.
const PALEST: f64 = 0.55;

/// The published curves' colour.
const GREY: &str = "#57606a";

/// One chart for each product under the first profile that has points; the table beside them has all profiles.
pub(super) fn draw(context: &Context<'_>, counterpart: Counterpart<'_>) -> Vec<Chart> {
    let Some(curves) = Published::of(context, counterpart.layout) else { return Vec::new() };
    let drawn = curves.entries(context);
    let of_product = |entry: &Entry| context.cases.entries(&entry.product).into_iter().find(|own| drawn.contains(own));
    drawn
        .iter()
        .copied()
        .filter(|entry| of_product(entry) == Some(entry))
        .map(|entry| chart(context, counterpart, &curves, entry))
        .collect()
}

fn chart(context: &Context<'_>, counterpart: Counterpart<'_>, curves: &Published<'_>, entry: &Entry) -> Chart {
    let run = context.cases.run;
    let unit = counterpart.picture.map_or_else(|| "ms".to_string(), |picture| picture.y_unit.clone());
    let size = unit_size(&unit).unwrap_or(Unit::MILLIS.size);
    let (label, called) = (run.label_of(entry), context.source.called(curves.product));
    let x = |number: f64, most: f64| if curves.is_full() { number } else { number / most * 100.0 };
    let colours = |colour: &str, place: usize| {
        lighter(colour, shade(PALEST, curves.metrics.len() - 1 - place, curves.metrics.len()))
    };
    let published = |(place, metric): (usize, &String)| {
        let point = |(variant, number): &(&str, f64)| {
            let figure = context.source.result(curves.case.name, curves.product, variant, metric)?;
            let y = figure.value * unit_size(&figure.unit)? / size;
            Some(CurvePoint { x: x(*number, curves.most), y, interval: None, hollow: false })
        };
        let points = curves.points.iter().filter_map(point).collect();
        let name = format!("published {}", metric.trim_start_matches("latency-"));
        Curve { name, colour: colours(GREY, place), dash: Dash::Dotted, points, knee: None }
    };
    let measured = |(place, metric): (usize, &String)| {
        let point = |(variant, number)| {
            let estimate = context.cases.estimate(curves.case, variant, entry, metric)?;
            let point = CurvePoint::of(x(number, curves.own_most), &estimate, size);
            Some(CurvePoint { hollow: curves.case.invalid(entry), ..point })
        };
        let points = curves.measured_at(entry).into_iter().filter_map(point).collect();
        let name = format!("here {}", metric.trim_start_matches("latency-"));
        Curve { name, colour: colours(&style(run, entry).colour, place), dash: Dash::Solid, points, knee: None }
    };
    let metrics = || curves.metrics.iter().enumerate();
    let series: Vec<Curve> = metrics().map(published).chain(metrics().map(measured)).collect();
    let what = match curves.across {
        Across::Connections => "Connections",
        Across::Rates => "Offered rate",
    };
    let axis = match (curves.is_full(), curves.across) {
        (false, _) => Axis::linear(&format!("{what}, share of the most"), "%"),
        (true, Across::Connections) => Axis::linear(what, ""),
        (true, Across::Rates) => Axis::linear(what, Unit::PER_SECOND.name),
    };
    Chart {
        name: format!("{}-{}-{}", counterpart.name(), slug(&entry.product), slug(&entry.profile)),
        title: format!("{}: {called} as published, {label} here", counterpart.title()),
        subtitle: counterpart.subtitle("Less is better. Dotted: as published."),
        alt: format!("Percentiles of latency over {} of {called} and {label}.", curves.across.unit()),
        notes: vec![
            curves.case.section.workload_title.clone() + ".",
            curves.words(context),
            "The original's vertical axis is linear; on this one curves of the same shape are alike at any height."
                .to_string(),
            context.scaled.to_string(),
        ],
        kind: ChartKind::Curves(Curves {
            x: axis,
            y: Axis { scale: Scale::Log, ..Axis::linear("Latency", &unit) },
            series,
            csv_only: Vec::new(),
            ideal: None,
        }),
    }
}
