//! Draws a document's curves with this run's numbers: latency by percentile, a metric by round, and percentiles over connections or rates
//! with the published ones behind them.

use weir_model::suite::Entry;
use weir_model::text::{Unit, unique};
use weir_report::charts::axis::{Axis, Scale};
use weir_report::charts::{
    Chart, ChartKind, CurvePoint, Dash, Line, Lines, PERCENTILES_NOTE, percentile_curve, separate, style,
};
use weir_report::palette::{Style, lighter};
use weir_report::run::{BASELINE, Broken};

use super::{Counterpart, shade, slug};
use crate::figures::Variant;
use crate::layout::{holds, tail};
use crate::numbers::{axis_label, unit_size};
use crate::points::{Across, Published};
use crate::run_cases::{Context, RunCase};

/// The share of white in the last of several cases of a product.
const PALEST: f64 = 0.65;

/// The percentiles of each product in a picture of its own.
pub(super) fn percentiles_of_each(counterpart: Counterpart<'_>, broken: &mut Vec<Broken>) -> Vec<Chart> {
    let products = counterpart.context.source.products.iter().filter(|measured| measured.product != BASELINE);
    let names = unique(products.map(|measured| measured.product.as_str()));
    names.into_iter().filter_map(|product| percentiles(counterpart, Some(product), broken)).collect()
}

/// Latency by percentile, one line for each entry, of one product or of all. With several cases, one line for each entry and case, of
/// the first profile only: twice as many lines would be unreadable.
pub(super) fn percentiles(
    counterpart: Counterpart<'_>,
    product: Option<&str>,
    broken: &mut Vec<Broken>,
) -> Option<Chart> {
    let Counterpart { context, layout, .. } = counterpart;
    let run_cases = context.cases;
    let mut all = context.document_order(layout.order, |case| holds(&layout.cases, case));
    all.retain(|(_, entry)| product.is_none_or(|product| entry.product == product));
    let cases = unique(all.iter().map(|(case, _)| case.name));
    let one_profile = cases.len() > 1 && run_cases.profiles.len() > 1;
    let first =
        |entry: &Entry| run_cases.profiles.first().and_then(|p| run_cases.entry(&entry.product, p)) == Some(entry);
    let size = counterpart.picture.and_then(|picture| unit_size(&picture.y_unit)).unwrap_or(Unit::MILLIS.size);
    let mut series = Vec::new();
    for (case, entry) in all.into_iter().filter(|(_, entry)| !one_profile || first(entry)) {
        if let Some(curve) = percentile_curve(run_cases.run, case.section, entry, broken) {
            let points = curve.into_iter().map(|(p, us)| (p, us / size)).collect();
            let place = cases.iter().position(|name| *name == case.name).unwrap_or(0);
            series.push(line(context, case, entry, (place, cases.len()), points));
        }
    }
    let unit = counterpart.picture.map_or_else(|| "ms".to_string(), |picture| picture.y_unit.clone());
    let mut notes = vec![PERCENTILES_NOTE.to_string()];
    if let (true, Some(profile)) = (one_profile, run_cases.profiles.first()) {
        notes.push(format!("Of the profile {profile}; the others are in the pictures of one case."));
    }
    notes.push(context.scaled.to_string());
    let of_product =
        product.map(|product| (format!("-{}", slug(product)), format!(", {}", run_cases.run.title_of(product))));
    let (name, title) = of_product.unwrap_or_default();
    (!series.is_empty()).then(|| Chart {
        name: counterpart.name() + &name,
        title: format!("{}{title}: this run", counterpart.title()),
        subtitle: counterpart.subtitle("Less is better."),
        alt: format!(
            "Latency over percentile of {}.",
            series.iter().map(|line| line.name.as_str()).collect::<Vec<_>>().join(", ")
        ),
        notes,
        kind: ChartKind::lines(
            Axis::percentiles(),
            Axis { scale: counterpart.scale(), ..Axis::linear("Latency", &unit) },
            series,
            Vec::new(),
        ),
    })
}

fn line(
    context: &Context<'_>,
    case: &RunCase<'_>,
    entry: &Entry,
    (place, of): (usize, usize),
    points: Vec<(f64, f64)>,
) -> Line {
    let run = context.cases.run;
    let Style { colour, dash } = style(run, entry);
    Line {
        // With several cases only one profile is drawn, and the notes name it.
        name: if of < 2 {
            run.label_of(entry)
        } else {
            format!("{} {}", run.title_of(&entry.product), tail(case.name))
        },
        colour: lighter(&colour, shade(PALEST, place, of)),
        // Every other case is dashed, so that a product's lines differ by more than their shade.
        dash: if of > 1 && place % 2 == 1 { Dash::Dotted } else { dash },
        pieces: vec![points],
        ..Line::default()
    }
}

/// A metric by round, a line for each entry: medians over blocks.
pub(super) fn rounds(counterpart: Counterpart<'_>) -> Option<Chart> {
    let Counterpart { context, layout, .. } = counterpart;
    let cases = context.cases;
    let metric = layout.metrics.first()?;
    let unit = context.source.results(metric).next()?.unit.clone();
    let size = unit_size(&unit)?;
    let mut curves = Vec::new();
    for (case, entry) in context.document_order(layout.order, |case| holds(&layout.cases, case)) {
        let Style { colour, dash } = style(cases.run, entry);
        let point = |round: u32| {
            Some(CurvePoint::of(f64::from(round), &cases.estimate(case, Variant::Round(round), entry, metric)?, size))
        };
        let points: Vec<CurvePoint> = (1..=case.rounds()).filter_map(point).collect();
        if !points.is_empty() {
            let curve = Line { name: cases.run.label_of(entry), colour, dash, points, ..Line::default() };
            curves.push((entry.product == BASELINE, curve));
        }
    }
    let separated = separate(curves, Scale::Linear, &unit);
    if separated.drawn.is_empty() {
        return None;
    }
    let names: Vec<&str> = separated.drawn.iter().map(|curve| curve.name.as_str()).collect();
    let mut notes = vec![
        "Each point is one load; between them the product was not restarted. Medians over blocks, whiskers their intervals."
            .to_string(),
    ];
    notes.extend(separated.notes);
    notes.push(context.scaled.to_string());
    Some(Chart {
        name: counterpart.name(),
        title: counterpart.title(),
        subtitle: counterpart.subtitle("A product that warms up carries more from round to round."),
        alt: format!("{metric} over rounds of {}.", names.join(", ")),
        notes,
        kind: ChartKind::Lines(Lines {
            x: Axis::linear("Round", ""),
            y: Axis::linear(axis_label(metric), &unit),
            series: separated.drawn,
            rules: Vec::new(),
            csv_only: separated.csv_only,
            ideal: None,
        }),
    })
}

/// The share of white in the lowest percentile.
const PALEST_PERCENTILE: f64 = 0.55;

/// The published curves' colour.
const GREY: &str = "#57606a";

/// One chart for each product under the first profile that has points; the table beside them has all profiles.
pub(super) fn points(counterpart: Counterpart<'_>) -> Vec<Chart> {
    let context = counterpart.context;
    let Some(curves) = Published::of(context, counterpart.layout) else { return Vec::new() };
    let drawn = curves.entries(context);
    let of_product = |entry: &Entry| context.cases.entries(&entry.product).into_iter().find(|own| drawn.contains(own));
    drawn
        .iter()
        .copied()
        .filter(|entry| of_product(entry) == Some(entry))
        .map(|entry| points_chart(counterpart, &curves, entry))
        .collect()
}

fn points_chart(counterpart: Counterpart<'_>, curves: &Published<'_>, entry: &Entry) -> Chart {
    let context = counterpart.context;
    let run = context.cases.run;
    let unit = counterpart.picture.map_or_else(|| "ms".to_string(), |picture| picture.y_unit.clone());
    let size = unit_size(&unit).unwrap_or(Unit::MILLIS.size);
    let (label, called) = (run.label_of(entry), context.source.called(curves.product));
    let x = |number: f64, most: f64| if curves.is_full() { number } else { number / most * 100.0 };
    let colours = |colour: &str, place: usize| {
        lighter(colour, shade(PALEST_PERCENTILE, curves.metrics.len() - 1 - place, curves.metrics.len()))
    };
    let published = |(place, metric): (usize, &String)| {
        let point = |(variant, number): &(&str, f64)| {
            let figure = context.source.result(curves.case.name, curves.product, variant, metric)?;
            let y = figure.value * unit_size(&figure.unit)? / size;
            Some(CurvePoint { x: x(*number, curves.most), y, interval: None, hollow: false })
        };
        let points = curves.points.iter().filter_map(point).collect();
        let name = format!("published {}", metric.trim_start_matches("latency-"));
        Line { name, colour: colours(GREY, place), dash: Dash::Dotted, points, ..Line::default() }
    };
    let measured = |(place, metric): (usize, &String)| {
        let point = |(variant, number)| {
            let estimate = context.cases.estimate(curves.case, variant, entry, metric)?;
            let point = CurvePoint::of(x(number, curves.own_most), &estimate, size);
            Some(CurvePoint { hollow: curves.case.invalid(entry), ..point })
        };
        let points = curves.measured_at(entry).into_iter().filter_map(point).collect();
        let name = format!("here {}", metric.trim_start_matches("latency-"));
        Line { name, colour: colours(&style(run, entry).colour, place), points, ..Line::default() }
    };
    let metrics = || curves.metrics.iter().enumerate();
    let series: Vec<Line> = metrics().map(published).chain(metrics().map(measured)).collect();
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
        kind: ChartKind::lines(axis, Axis { scale: Scale::Log, ..Axis::linear("Latency", &unit) }, series, Vec::new()),
    }
}
