//! Measured points with their intervals, joined by lines; a diamond where a curve bends.

use svg::node::element::Group;

use super::axis::{Scale, Span};
use super::svg::Plot;
use super::svg_lines::{Frame, Paper, pattern};
use super::svg_parts::{FAINT, INK, PAPER, dot, line, path, square};
use super::{Curve, Curves, Dash};

pub(super) fn draw(curves: &Curves, left: f64, top: f64, room: f64) -> Plot {
    let points = || curves.series.iter().flat_map(|curve| &curve.points);
    let ends = points().flat_map(|point| {
        let (low, high) = point.interval.unwrap_or((point.y, point.y));
        [low, point.y, high]
    });
    let most = points().map(|point| point.x).fold(0.0, f64::max);
    let x = match curves.x.scale {
        Scale::Linear => Span::exact(most * 1.03),
        scale => Span::of(scale, points().map(|point| point.x)),
    };
    let mut names: Vec<(&str, &str, Dash)> =
        curves.series.iter().map(|curve| (curve.name.as_str(), curve.colour.as_str(), curve.dash)).collect();
    names.extend(curves.ideal.as_deref().map(|name| (name, FAINT, Dash::Dotted)));
    let paper = Paper { x: &curves.x, y: &curves.y, spans: (x, Span::of(curves.y.scale, ends)), names, head: 20.0 };
    let (mut plot, frame) = paper.below(left, top, room);
    if curves.ideal.is_some() {
        plot = plot.add(path(&ideal(&frame, most), FAINT, 1.5, pattern(Dash::Dotted)));
    }
    for curve in &curves.series {
        plot = draw_curve(plot, curve, &frame);
    }
    paper.above(plot, &frame, top)
}

/// From the origin as far as both axes go.
fn ideal(frame: &Frame, most: f64) -> [(f64, f64); 2] {
    // Where the vertical axis ends first, its end is the value at the top of the plot.
    let inside = |value: f64| frame.y.place(value) <= 1.0;
    let mut end = most;
    while end > 0.0 && !inside(end) {
        end *= 0.99;
    }
    [frame.place((0.0, 0.0)), frame.place((end, end))]
}

fn draw_curve(mut plot: Group, curve: &Curve, frame: &Frame) -> Group {
    let placed: Vec<(f64, f64)> = curve.points.iter().map(|point| frame.place((point.x, point.y))).collect();
    if placed.len() > 1 {
        plot = plot.add(path(&placed, &curve.colour, 2.0, pattern(curve.dash)));
    }
    for (place, (point, (x, y))) in curve.points.iter().zip(placed).enumerate() {
        if let Some((low, high)) = point.interval {
            let (bottom, top) = (frame.place((point.x, low)).1, frame.place((point.x, high)).1);
            plot = plot.add(line((x, bottom), (x, top), &curve.colour, 1.4));
            for end in [bottom, top] {
                plot = plot.add(line((x - 4.0, end), (x + 4.0, end), &curve.colour, 1.4));
            }
        }
        let fill = if point.hollow { PAPER } else { &curve.colour };
        plot = plot.add(dot((x, y), 3.6, fill, &curve.colour));
        if curve.knee == Some(place) {
            plot = plot.add(square((x, y), 7.0, &curve.colour, INK));
        }
    }
    plot
}
