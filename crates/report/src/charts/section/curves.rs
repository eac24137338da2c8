//! Builds the charts of a series: latency and rate by offered rate, by connections, or by round.
//! Called by `of_section` in `section`.

use weir_model::suite::Series;
use weir_stats::Estimate;

use super::baseline::separate;
use super::style;
use crate::charts::axis::{Axis, Scale};
use crate::charts::{Chart, ChartKind, Curve, CurvePoint, Curves};
use crate::run::{BASELINE, Run};
use crate::summary::{Metric, PointRow, Row, Section};
use crate::tables::knee_words;
use weir_model::text::{Unit, short};

/// One quantity of the points.
struct Quantity {
    stem: &'static str,
    title: &'static str,
    label: &'static str,
    /// `None`: fit for the values.
    unit: Option<Unit>,
    scale: Scale,
    pick: fn(&PointRow) -> Option<Estimate>,
}

const RATE: Quantity = Quantity {
    stem: "goodput",
    title: "Right answers a second",
    label: "Right answers a second",
    unit: Some(Unit::PER_SECOND),
    scale: Scale::Linear,
    pick: |point| point.of(Metric::Rate),
};

const fn latency(stem: &'static str, title: &'static str, pick: fn(&PointRow) -> Option<Estimate>) -> Quantity {
    Quantity { stem, title, label: title, unit: None, scale: Scale::Log, pick }
}

const P50: Quantity = latency("p50", "Median latency", |point| point.of(Metric::P50));
const P99: Quantity = latency("p99", "99th percentile of latency", |point| point.of(Metric::P99));
const P999: Quantity = latency("p999", "99.9th percentile of latency", |point| point.of(Metric::P999));

/// The charts of a series: the main ones, and other percentiles. Both are empty if the load is not a series.
pub(super) fn of_section(run: &Run, section: &Section) -> (Vec<Chart>, Vec<Chart>) {
    let draw = |quantity: &Quantity| chart(run, section, quantity);
    match section.series {
        Series::Once => (Vec::new(), Vec::new()),
        Series::Shares(_) => (vec![draw(&P99), draw(&RATE)], vec![draw(&P50), draw(&P999)]),
        Series::Connections(_) | Series::Rounds(_) => (vec![draw(&RATE), draw(&P99)], vec![draw(&P50), draw(&P999)]),
    }
}

fn chart(run: &Run, section: &Section, quantity: &Quantity) -> Chart {
    let estimates = section.all_rows().flat_map(|row| row.points.iter().filter_map(quantity.pick));
    let unit = quantity.unit.unwrap_or_else(|| Unit::for_times(estimates.map(|estimate| estimate.value)));
    let curves =
        section.all_rows().map(|row| (row.entry.product == BASELINE, curve(run, section, row, quantity, unit)));
    let separated = separate(curves.filter(|(_, curve)| !curve.points.is_empty()).collect(), quantity.scale, unit.name);
    let against = against(section);
    let offered = matches!(section.series, Series::Shares(_));
    let mut notes = vec![
        section.how.first().cloned().unwrap_or_default(),
        "Points are medians over blocks, whiskers their intervals; an empty point is invalid.".to_string(),
    ];
    notes.extend(separated.notes);
    notes.extend(knee_words(section, "A diamond"));
    Chart {
        name: format!("{}-{}", section.slug(), quantity.stem),
        title: format!("{} {}: {}", quantity.title, against.0, section.heading()),
        subtitle: match (quantity.stem, section.series.clone()) {
            ("goodput", Series::Shares(_)) => "More is better. Where a curve leaves the dotted line, the product \
                                               no longer carries what is offered."
                .to_string(),
            ("goodput", Series::Rounds(_)) => {
                "More is better. A curve that still climbs had not warmed up when measuring began.".to_string()
            }
            ("goodput", _) => "More is better.".to_string(),
            _ => "Less is better. Latency is due to answered.".to_string(),
        },
        alt: format!("{} {}: {}.", quantity.title, against.0, alt_text(section, quantity, unit)),
        notes,
        kind: ChartKind::Curves(Curves {
            x: against.1,
            y: Axis { label: quantity.label.to_string(), unit: unit.name.to_string(), scale: quantity.scale },
            series: separated.drawn,
            csv_only: separated.csv_only,
            ideal: (offered && quantity.stem == "goodput").then(|| "offered".to_string()),
        }),
    }
}

fn curve(run: &Run, section: &Section, row: &Row, quantity: &Quantity, unit: Unit) -> Curve {
    let (look, dash) = style(run, &row.entry);
    let mut knee = None;
    let mut points = Vec::new();
    for (place, point) in row.points.iter().enumerate() {
        let (Some(estimate), Some(x)) = ((quantity.pick)(point), across(section, point)) else { continue };
        if row.knee == Some(place) {
            knee = Some(points.len());
        }
        points.push(CurvePoint {
            x,
            y: estimate.value / unit.size,
            interval: (estimate.n > 1).then_some((estimate.low / unit.size, estimate.high / unit.size)),
            hollow: point.invalid > 0,
        });
    }
    Curve { name: row.label.clone(), colour: look.colour, dash, points, knee }
}

/// Where a point stands on the horizontal axis.
fn across(section: &Section, point: &PointRow) -> Option<f64> {
    match section.series {
        Series::Shares(_) => point.offered,
        Series::Connections(_) => Some(f64::from(point.connections)),
        Series::Rounds(_) | Series::Once => Some(f64::from(point.point)),
    }
}

/// The rest of a title, and the horizontal axis.
fn against(section: &Section) -> (&'static str, Axis) {
    let (words, label, unit, scale) = match section.series {
        Series::Shares(_) => ("against the offered rate", "Offered", Unit::PER_SECOND.name, Scale::Linear),
        Series::Connections(_) => ("against connections", "Connections", "", Scale::Log),
        Series::Rounds(_) | Series::Once => ("round by round", "Round", "", Scale::Linear),
    };
    (words, Axis { label: label.to_string(), unit: unit.to_string(), scale })
}

/// "haproxy 0.61 ms at first, 12 ms at last, knee at point 4".
fn alt_text(section: &Section, quantity: &Quantity, unit: Unit) -> String {
    let words = section.all_rows().filter_map(|row| {
        let first = (quantity.pick)(row.points.first()?)?.value / unit.size;
        let last = (quantity.pick)(row.points.last()?)?.value / unit.size;
        let knee = row.knee.map(|knee| format!(", knee at point {}", knee + 1)).unwrap_or_default();
        Some(format!("{} {} {} at first, {} at last{knee}", row.label, short(first), unit.name, short(last)))
    });
    words.collect::<Vec<_>>().join("; ")
}
