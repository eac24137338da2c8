//! Builds the charts of a series: latency and rate by offered rate, by connections, or by round.
//! Called by `of_section` in `section`.

use weir_model::suite::Series;
use weir_model::text::{Unit, short};

use super::baseline::separate;
use super::style;
use crate::charts::axis::{Axis, Scale};
use crate::charts::{Chart, ChartKind, Curve, CurvePoint, Curves};
use crate::palette::Style;
use crate::run::Run;
use crate::summary::{Metric, PointRow, Row, Section};
use crate::tables::knee_words;

/// The charts of a series: the main ones, and other percentiles. Both are empty if the load is not a series. They are
/// those that the table of metrics names.
pub(super) fn of_section(run: &Run, section: &Section) -> (Vec<Chart>, Vec<Chart>) {
    let mut metrics: Vec<(Metric, &str)> =
        Metric::ALL.iter().filter_map(|metric| Some((*metric, metric.entry().columns.curve?))).collect();
    let main = |(metric, _): &(Metric, &str)| [Metric::Rate, Metric::P99].contains(metric);
    match section.series {
        Series::Once => return (Vec::new(), Vec::new()),
        // Against the offered rate, latency tells more than what was carried.
        Series::Shares(_) => metrics.sort_by_key(|(metric, _)| *metric == Metric::Rate),
        Series::Connections(_) | Series::Rounds(_) => {}
    }
    let (main, more): (Vec<_>, Vec<_>) = metrics.into_iter().partition(main);
    let draw = |(metric, stem): (Metric, &str)| chart(run, section, metric, stem);
    (main.into_iter().map(draw).collect(), more.into_iter().map(draw).collect())
}

fn chart(run: &Run, section: &Section, metric: Metric, stem: &str) -> Chart {
    let (name, rate) = (metric.entry().name, metric == Metric::Rate);
    let estimates = section.all_rows().flat_map(|row| row.points.iter().filter_map(|point| point.of(metric)));
    let unit = if rate { Unit::PER_SECOND } else { Unit::for_times(estimates.map(|estimate| estimate.value)) };
    let scale = if rate { Scale::Linear } else { Scale::Log };
    let curves = section.all_rows().map(|row| (row.is_baseline(), curve(run, section, row, metric, unit)));
    let separated = separate(curves.filter(|(_, curve)| !curve.points.is_empty()).collect(), scale, unit.name);
    let (against, x) = against(section);
    let mut notes = vec![
        section.how.first().cloned().unwrap_or_default(),
        "Points are medians over blocks, whiskers their intervals; an empty point is invalid.".to_string(),
    ];
    notes.extend(separated.notes);
    notes.extend(knee_words(section, "A diamond"));
    let subtitle = match &section.series {
        _ if !rate => "Less is better. Latency is due to answered.",
        Series::Shares(_) => {
            "More is better. Where a curve leaves the dotted line, the product no longer carries what is offered."
        }
        Series::Rounds(_) => "More is better. A curve that still climbs had not warmed up when measuring began.",
        Series::Once | Series::Connections(_) => "More is better.",
    };
    let offered = matches!(section.series, Series::Shares(_));
    Chart {
        name: format!("{}-{stem}", section.slug()),
        title: format!("{name} {against}: {}", section.heading()),
        subtitle: subtitle.to_string(),
        alt: format!("{name} {against}: {}.", alt_text(section, metric, unit)),
        notes,
        kind: ChartKind::Curves(Curves {
            x,
            y: Axis { scale, ..Axis::of_metric(metric, unit) },
            series: separated.drawn,
            csv_only: separated.csv_only,
            ideal: (offered && rate).then(|| "offered".to_string()),
        }),
    }
}

fn curve(run: &Run, section: &Section, row: &Row, metric: Metric, unit: Unit) -> Curve {
    let Style { colour, dash } = style(run, &row.entry);
    let mut knee = None;
    let mut points = Vec::new();
    for (place, point) in row.points.iter().enumerate() {
        let (Some(estimate), Some(x)) = (point.of(metric), across(section, point)) else { continue };
        if row.knee == Some(place) {
            knee = Some(points.len());
        }
        points.push(CurvePoint { hollow: point.invalid > 0, ..CurvePoint::of(x, &estimate, unit.size) });
    }
    Curve { name: row.label.clone(), colour, dash, points, knee }
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
    match section.series {
        Series::Shares(_) => ("against the offered rate", Axis::linear("Offered", Unit::PER_SECOND.name)),
        Series::Connections(_) => {
            ("against connections", Axis { scale: Scale::Log, ..Axis::linear("Connections", "") })
        }
        Series::Rounds(_) | Series::Once => ("round by round", Axis::linear("Round", "")),
    }
}

/// "haproxy 0.61 ms at first, 12 ms at last, knee at point 4".
fn alt_text(section: &Section, metric: Metric, unit: Unit) -> String {
    let words = section.all_rows().filter_map(|row| {
        let shown = |point: Option<&PointRow>| Some(short(point?.of(metric)?.value / unit.size));
        let (first, last) = (shown(row.points.first())?, shown(row.points.last())?);
        let knee = row.knee.map(|knee| format!(", knee at point {}", knee + 1)).unwrap_or_default();
        Some(format!("{} {first} {} at first, {last} at last{knee}", row.label, unit.name))
    });
    words.collect::<Vec<_>>().join("; ")
}
