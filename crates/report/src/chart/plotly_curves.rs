//! Describes curves of measured points for Plotly.js. Knows charts, nothing of runs.

use plotly::common::{DashType, ErrorData, ErrorType, HoverInfo, Line as Stroke, Marker, MarkerSymbol, Mode};
use plotly::layout::HoverMode;
use plotly::{Plot, Scatter};

use super::axis::Scale;
use super::plotly::{LINES_HEIGHT, axis, escape, layout};
use super::{Curve, Curves, Dash};

/// A trace for each curve, its place among them being its group; what was asked for comes last and has none.
pub(super) fn add(plot: &mut Plot, curves: &Curves) {
    for (group, curve) in curves.series.iter().enumerate() {
        plot.add_trace(trace(curve, curves, group));
        let knee = curve.knee.and_then(|knee| curve.points.get(knee)).into_iter().collect();
        add_marks(plot, curve, group, knee, MarkerSymbol::Diamond, "knee");
        let invalid = curve.points.iter().filter(|point| point.hollow).collect();
        add_marks(plot, curve, group, invalid, MarkerSymbol::X, "invalid");
    }
    let points = || curves.series.iter().flat_map(|curve| &curve.points);
    let most = |pick: fn(&super::CurvePoint) -> f64| points().map(pick).fold(0.0, f64::max);
    if let Some(name) = &curves.ideal {
        let end = most(|point| point.x).min(most(|point| point.y) * 1.1);
        let stroke = Stroke::new().color("#8c959f").dash(DashType::Dot).width(1.5);
        let line = Scatter::new(vec![0.0, end], vec![0.0, end]).mode(Mode::Lines).line(stroke).name(escape(name));
        plot.add_trace(line.hover_info(HoverInfo::Skip));
    }
    let x = axis(&curves.x, points().map(|point| point.x));
    let y = axis(&curves.y, points().flat_map(|point| [point.y, point.interval.map_or(point.y, |(_, high)| high)]));
    let one_value_each = curves.x.scale == Scale::Log || curves.ideal.is_none();
    let hover = if one_value_each { HoverMode::XUnified } else { HoverMode::Closest };
    plot.set_layout(layout(x, y, LINES_HEIGHT).hover_mode(hover));
}

fn trace(curve: &Curve, curves: &Curves, group: usize) -> Box<Scatter<f64, f64>> {
    let (x, y) = curve.points.iter().map(|point| (point.x, point.y)).unzip();
    let interval = |point: &super::CurvePoint| point.interval.unwrap_or((point.y, point.y));
    let above: Vec<f64> = curve.points.iter().map(|point| interval(point).1 - point.y).collect();
    let below: Vec<f64> = curve.points.iter().map(|point| point.y - interval(point).0).collect();
    let dash = match curve.dash {
        Dash::Solid => DashType::Solid,
        Dash::Dashed => DashType::Dash,
        Dash::Dotted => DashType::Dot,
    };
    let marker = Marker::new().color(curve.colour.clone()).size(7);
    let hover = format!("%{{y:,.3r}} {}<extra>%{{fullData.name}}</extra>", escape(&curves.y.unit));
    let trace = Scatter::new(x, y)
        .name(escape(&curve.name))
        .legend_group(group.to_string())
        .mode(Mode::LinesMarkers)
        .line(Stroke::new().color(curve.colour.clone()).dash(dash).width(2.0))
        .marker(marker)
        .hover_template(hover);
    if !above.iter().chain(&below).any(|length| *length > 0.0) {
        return trace;
    }
    let whiskers = ErrorData::new(ErrorType::Data).symmetric(false).array(above).array_minus(below);
    trace.error_y(whiskers.thickness(1.4).width(4).color(curve.colour.clone()))
}

/// Points of a curve that are marked: traces of their own, which come and go with it.
fn add_marks(
    plot: &mut Plot,
    curve: &Curve,
    group: usize,
    points: Vec<&super::CurvePoint>,
    symbol: MarkerSymbol,
    what: &str,
) {
    if points.is_empty() {
        return;
    }
    let (x, y) = points.iter().map(|point| (point.x, point.y)).unzip();
    let marker = Marker::new().color(curve.colour.clone()).symbol(symbol).size(14);
    let name = escape(&format!("{} {what}", curve.name));
    let marks: Box<Scatter<f64, f64>> = Scatter::new(x, y).mode(Mode::Markers).marker(marker).name(name);
    plot.add_trace(marks.legend_group(group.to_string()).hover_info(HoverInfo::Skip));
}
