//! A document's curves with this run's numbers: latency by percentile, and a metric round after round.

use weir_model::suite::Entry;

use super::{Original, Originals};
use crate::document::places;
use crate::layout::tail;
use crate::ours::OwnCase;
use crate::quantity::{COMPARED, size_of};
use crate::variant::Variant;
use weir_model::text::Unit;
use weir_report::chart::axis::{Axis, Scale};
use weir_report::chart::{Chart, Curve, CurvePoint, Curves, Dash, Kind, Line, Lines};
use weir_report::charts::style;
use weir_report::charts::told;
use weir_report::charts::{curve, merged};
use weir_report::palette::lighter;
use weir_report::run::{BASELINE, Broken};

/// How much white the last case of a product has in it, where several are drawn.
const PALEST: f64 = 0.65;

/// Latency by percentile, a line an entry; of several cases a line an entry and case, and then of the first profile alone:
/// twice as many lines would be told apart by nobody.
pub(super) fn percentiles(
    originals: &Originals<'_>,
    original: Original<'_>,
    broken: &mut Vec<Broken>,
) -> Option<Chart> {
    let (ours, layout) = (originals.ours, original.layout);
    let all = places(ours, originals.source, layout.order, &|case| layout.holds(case));
    let mut cases: Vec<&str> = Vec::new();
    for (case, _) in &all {
        if !cases.contains(&case.name) {
            cases.push(case.name);
        }
    }
    let one_profile = cases.len() > 1 && ours.profiles.len() > 1;
    let first = |entry: &Entry| ours.profiles.first().and_then(|p| ours.entry(&entry.product, p)) == Some(entry);
    let size = original.picture.and_then(|picture| size_of(&picture.y_unit)).unwrap_or(Unit::MILLIS.size);
    let mut series = Vec::new();
    for (case, entry) in all.into_iter().filter(|(_, entry)| !one_profile || first(entry)) {
        if let Some((histogram, us)) = merged(ours.run, case.section, entry, broken) {
            let points = curve(&histogram, us).into_iter().map(|(p, us)| (p, us / size)).collect();
            let place = cases.iter().position(|name| *name == case.name).unwrap_or(0);
            series.push(line(originals, case, entry, (place, cases.len()), points));
        }
    }
    let unit = original.picture.map_or_else(|| "ms".to_string(), |picture| picture.y_unit.clone());
    let mut notes = vec![
        "Latency is due to answered. Histograms of all blocks that count, added up; a curve ends where fewer than ten samples \
         lie beyond."
            .to_string(),
    ];
    if let (true, Some(profile)) = (one_profile, ours.profiles.first()) {
        notes.push(format!("Of the profile {profile}; the others are in the pictures of one case."));
    }
    notes.push(originals.scaled.to_string());
    (!series.is_empty()).then(|| Chart {
        name: original.name(),
        title: format!("{}: this run", original.title()),
        subtitle: original.subtitle("Less is better."),
        alt: format!(
            "Latency over percentile of {}.",
            series.iter().map(|line| line.name.as_str()).collect::<Vec<_>>().join(", ")
        ),
        notes,
        kind: Kind::Lines(Lines {
            x: Axis {
                label: "Share of requests answered within".to_string(),
                unit: String::new(),
                scale: Scale::Percentile,
            },
            y: Axis { label: "Latency".to_string(), unit, scale: original.scale() },
            series,
            rules: Vec::new(),
        }),
    })
}

fn line(
    originals: &Originals<'_>,
    case: &OwnCase<'_>,
    entry: &Entry,
    (place, of): (usize, usize),
    points: Vec<(f64, f64)>,
) -> Line {
    let run = originals.ours.run;
    let (look, dash) = style(run, entry);
    let shade = if of < 2 { 0.0 } else { PALEST * place as f64 / (of - 1) as f64 };
    Line {
        // Of several cases there is one profile alone, which the notes name.
        name: if of < 2 {
            run.label_of(entry)
        } else {
            format!("{} {}", run.title_of(&entry.product), tail(case.name))
        },
        part: String::new(),
        colour: lighter(&look.colour, shade),
        // Every other case is dashed, so that a product's lines are told apart by more than their shade.
        dash: if of > 1 && place % 2 == 1 { Dash::Dotted } else { dash },
        pieces: vec![points],
    }
}

/// A metric as an axis has it.
fn words(metric: &str) -> String {
    let known = COMPARED.iter().find(|compared| compared.metric == metric);
    known.map_or_else(|| metric.to_string(), |compared| compared.heading.to_string())
}

/// A metric against the round, a line an entry: medians over blocks.
pub(super) fn rounds(originals: &Originals<'_>, original: Original<'_>) -> Option<Chart> {
    let (ours, layout) = (originals.ours, original.layout);
    let metric = layout.metrics.first()?;
    let unit = originals.source.results(metric).next()?.unit.clone();
    let size = size_of(&unit)?;
    let mut curves = Vec::new();
    for (case, entry) in places(ours, originals.source, layout.order, &|case| layout.holds(case)) {
        let (look, dash) = style(ours.run, entry);
        let point = |round: u32| {
            let estimate = ours.estimate(case, Variant::Round(round), entry, metric)?;
            let interval = (estimate.n > 1).then_some((estimate.low / size, estimate.high / size));
            Some(CurvePoint { x: f64::from(round), y: estimate.value / size, interval, hollow: false })
        };
        let points: Vec<CurvePoint> = (1..=case.rounds()).filter_map(point).collect();
        if !points.is_empty() {
            let curve = Curve { name: ours.run.label_of(entry), colour: look.colour, dash, points, knee: None };
            curves.push((entry.product == BASELINE, curve));
        }
    }
    let told = told(curves, Scale::Linear, &unit);
    if told.drawn.is_empty() {
        return None;
    }
    let names: Vec<&str> = told.drawn.iter().map(|curve| curve.name.as_str()).collect();
    let mut notes = vec![
        "Each point is one load; between them the product was not restarted. Medians over blocks, whiskers their intervals."
            .to_string(),
    ];
    notes.extend(told.notes);
    notes.push(originals.scaled.to_string());
    Some(Chart {
        name: original.name(),
        title: original.title(),
        subtitle: original.subtitle("A product that warms up carries more from round to round."),
        alt: format!("{metric} over rounds of {}.", names.join(", ")),
        notes,
        kind: Kind::Curves(Curves {
            x: Axis { label: "Round".to_string(), unit: String::new(), scale: Scale::Linear },
            y: Axis { label: words(metric), unit, scale: Scale::Linear },
            series: told.drawn,
            apart: told.apart,
            ideal: None,
        }),
    })
}
