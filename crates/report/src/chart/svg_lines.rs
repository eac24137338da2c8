//! Lines over an axis, with a legend on the right in the order of the series.

use svg::node::element::Group;

use super::axis::{Axis, Scale, Span};
use super::measure::{fit, width};
use super::svg::Plot;
use super::svg_parts::{Anchor, FAINT, GRID, INK, SIZE, Style, group, line, path, text};
use super::{Dash, Line, Lines};

const PLOT_HEIGHT: f64 = 330.0;

/// Where the plot stands.
pub(super) struct Frame {
    pub x0: f64,
    pub x1: f64,
    pub y0: f64,
    pub y1: f64,
    pub x: Span,
    pub y: Span,
}

impl Frame {
    pub fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let across = self.x.place(x).clamp(0.0, 1.0);
        let up = self.y.place(y).clamp(0.0, 1.0);
        (self.x0 + across * (self.x1 - self.x0), self.y1 - up * (self.y1 - self.y0))
    }
}

/// Paper for a plot: axes, grid and legend.
pub(super) struct Paper<'a> {
    pub x: &'a Axis,
    pub y: &'a Axis,
    pub spans: (Span, Span),
    /// Name, colour and dash of each entry of the legend.
    pub names: Vec<(&'a str, &'a str, Dash)>,
    /// Room above the plot, for the names of rules.
    pub head: f64,
}

impl Paper<'_> {
    /// What lies below the lines, and where they go.
    pub fn below(&self, left: f64, top: f64, room: f64) -> (Group, Frame) {
        let (x, y) = self.spans;
        let longest = self.names.iter().map(|(name, ..)| width(name, SIZE, false)).fold(0.0, f64::max);
        let legend_width = longest.min(190.0) + 38.0;
        let ticks = y.ticks();
        let tick_width = ticks.iter().map(|tick| width(&tick.text, 12.0, false)).fold(0.0, f64::max);
        let frame = Frame {
            x0: left + tick_width + 10.0,
            x1: left + room - legend_width - 18.0,
            y0: top + self.head,
            y1: top + self.head + PLOT_HEIGHT,
            x,
            y,
        };
        let mut plot = group().add(text(left, top + 8.0, &self.y.words(), Style::PLAIN));
        for tick in &ticks {
            let (_, at) = frame.place((0.0, tick.value));
            plot = plot.add(line((frame.x0, at), (frame.x1, at), GRID, 1.0));
            plot =
                plot.add(text(frame.x0 - 7.0, at + 4.0, &tick.text, Style::PLAIN.faint().sized(12.0).at(Anchor::End)));
        }
        (x_ticks(plot, &frame), frame)
    }

    /// What lies above them.
    pub fn above(&self, plot: Group, frame: &Frame, top: f64) -> Plot {
        let mut plot = plot.add(line((frame.x0, frame.y1), (frame.x1, frame.y1), INK, 1.2));
        let middle = (frame.x0 + frame.x1) / 2.0;
        plot = plot.add(text(middle, frame.y1 + 37.0, &self.x.words(), Style::PLAIN.at(Anchor::Middle)));
        plot = legend(plot, &self.names, frame.x1 + 18.0, frame.y0 + 8.0);
        let legend_height = self.names.len() as f64 * 20.0 + 22.0;
        Plot { group: plot, height: (frame.y1 + 41.0 - top).max(legend_height) }
    }
}

pub(super) fn draw(lines: &Lines, left: f64, top: f64, room: f64) -> Plot {
    let points = || lines.series.iter().flat_map(|line| line.pieces.iter().flatten().copied());
    let y = Span::of(lines.y.scale, points().map(|(_, y)| y));
    let x = match lines.x.scale {
        // Time ends with the last second, not at the next round number.
        Scale::Linear => Span::exact(points().map(|(x, _)| x).fold(0.0, f64::max).ceil()),
        scale => Span::of(scale, points().map(|(x, _)| x)),
    };
    // The axis' name stands above the axis, and the names of rules between the two.
    let head = if lines.rules.is_empty() { 20.0 } else { 34.0 };
    let paper = Paper { x: &lines.x, y: &lines.y, spans: (x, y), names: legend_names(lines), head };
    let (plot, frame) = paper.below(left, top, room);
    let mut plot = rules(plot, lines, &frame);
    for series in &lines.series {
        for piece in &series.pieces {
            plot = draw_piece(plot, series, piece, &frame);
        }
    }
    paper.above(plot, &frame, top)
}

fn x_ticks(mut plot: Group, frame: &Frame) -> Group {
    let mut free_from = f64::NEG_INFINITY;
    for tick in frame.x.ticks() {
        let (at, _) = frame.place((tick.value, 0.0));
        plot = plot.add(line((at, frame.y0), (at, frame.y1), GRID, 1.0));
        let half = width(&tick.text, 12.0, false) / 2.0;
        if at - half > free_from {
            plot = plot.add(text(at, frame.y1 + 18.0, &tick.text, Style::PLAIN.faint().sized(12.0).at(Anchor::Middle)));
            free_from = at + half + 6.0;
        }
    }
    plot
}

fn rules(mut plot: Group, lines: &Lines, frame: &Frame) -> Group {
    let mut free_from = f64::NEG_INFINITY;
    for (value, label) in &lines.rules {
        let (at, _) = frame.place((*value, 0.0));
        plot = plot.add(line((at, frame.y0 - 4.0), (at, frame.y1), FAINT, 1.0).set("stroke-dasharray", "4 4"));
        if at > free_from {
            plot = plot.add(text(at + 4.0, frame.y0 - 4.0, label, Style::PLAIN.faint().sized(11.0)));
            free_from = at + width(label, 11.0, false) + 12.0;
        }
    }
    plot
}

fn draw_piece(plot: Group, series: &Line, piece: &[(f64, f64)], frame: &Frame) -> Group {
    let placed: Vec<(f64, f64)> = piece.iter().map(|point| frame.place(*point)).collect();
    match placed.as_slice() {
        [] => plot,
        // A line through one point would be invisible: a run of one second is still seen.
        [(x, y)] => plot.add(line((x - 3.0, *y), (x + 3.0, *y), &series.colour, 3.0)),
        points => plot.add(path(points, &series.colour, 2.0, pattern(series.dash))),
    }
}

pub(super) fn pattern(dash: Dash) -> &'static str {
    match dash {
        Dash::Solid => "",
        Dash::Dashed => "8 5",
        Dash::Dotted => "1.5 4.5",
    }
}

/// One line a name: the first, which carries the name's look.
fn legend_names(lines: &Lines) -> Vec<(&str, &str, Dash)> {
    let mut names: Vec<(&str, &str, Dash)> = Vec::new();
    for series in &lines.series {
        if !names.iter().any(|(known, ..)| *known == series.name) {
            names.push((&series.name, &series.colour, series.dash));
        }
    }
    names
}

fn legend(mut plot: Group, names: &[(&str, &str, Dash)], x: f64, top: f64) -> Group {
    for (row, (name, colour, dash)) in names.iter().enumerate() {
        let y = top + row as f64 * 20.0;
        plot = plot.add(path(&[(x, y), (x + 24.0, y)], colour, 3.0, pattern(*dash)));
        plot = plot.add(text(x + 31.0, y + 4.5, &fit(name, SIZE, 190.0), Style::PLAIN));
    }
    plot
}
