//! Draws lines, and curves of measured points, over two axes. Lines lie on a fine grid of whole numbers: this keeps pages small, and the
//! script of the page can read the values back. The points of curves carry their values as text.

use std::fmt::Write as _;

use askama::Template;

use super::text::{fit, width};
use super::{DrawnAxis, LegendEntry, SIZE, TICK_SIZE, WIDER, clean, round};
use crate::charts::axis::{Axis, Scale, Span, tick_text};
use crate::charts::{CurvePoint, Dash, Line, Lines, Points};
use weir_model::text::short;

const PLOT_HEIGHT: f64 = 330.0;

/// Steps of the grid in a pixel.
const GRID: f64 = 20.0;

#[derive(Template)]
#[template(path = "lines.svg")]
struct Drawing<'a> {
    x: DrawnAxis,
    y: DrawnAxis,
    x0: f64,
    x1: f64,
    y0: f64,
    y1: f64,
    middle: f64,
    rules: Vec<Rule>,
    /// Lines of the grid, later ones on top.
    paths: Vec<GridPath<'a>>,
    curves: Vec<CurvePoints<'a>>,
    legend: Vec<LegendEntry<'a>>,
}

struct Rule {
    at: f64,
    text: String,
}

struct GridPath<'a> {
    /// Place of its name among the chart's toggles; `None` for what is no data.
    series: Option<usize>,
    part: &'a str,
    colour: &'a str,
    dash: Dash,
    /// Single points, which a line of no length would not show.
    dots: bool,
    d: String,
}

struct CurvePoints<'a> {
    series: usize,
    colour: &'a str,
    points: Vec<DrawnPoint>,
}

struct DrawnPoint {
    x: f64,
    y: f64,
    /// Ends of the whisker, from the point.
    whisker: Option<(f64, f64)>,
    hollow: bool,
    knee: bool,
    /// Its place on the horizontal axis and its value, as the page shows them.
    at: String,
    value: String,
}

/// Where the plot stands.
struct Frame {
    x0: f64,
    x1: f64,
    y0: f64,
    x: Span,
    y: Span,
}

impl Frame {
    fn y1(&self) -> f64 {
        self.y0 + PLOT_HEIGHT
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let across = self.x.place(x).clamp(0.0, 1.0);
        let up = self.y.place(y).clamp(0.0, 1.0);
        (self.x0 + across * (self.x1 - self.x0), self.y1() - up * PLOT_HEIGHT)
    }

    /// Pieces as `M x y l dx dy dx dy ...`, on the grid.
    fn path<'a>(&self, pieces: impl Iterator<Item = &'a [(f64, f64)]>) -> String {
        let mut d = String::new();
        for piece in pieces {
            let mut last = None;
            for point in piece {
                let (x, y) = self.place(*point);
                let now = (((x - self.x0) * GRID).round() as i64, ((y - self.y0) * GRID).round() as i64);
                let _ = match last.replace(now) {
                    None => write!(d, "M{} {}l", now.0, now.1),
                    Some((x, y)) => {
                        let space = if d.ends_with('l') || now.0 < x { "" } else { " " };
                        let between = if now.1 < y { "" } else { " " };
                        write!(d, "{space}{}{between}{}", now.0 - x, now.1 - y)
                    }
                };
            }
            if d.ends_with('l') {
                d.push_str("0 0");
            }
        }
        d
    }
}

/// What lines and curves have in common.
struct Paper<'a> {
    axes: (&'a Axis, &'a Axis),
    spans: (Span, Span),
    /// Name, colour and dash of each entry of the legend.
    names: Vec<(&'a str, &'a str, Dash)>,
    rules: &'a [(f64, String)],
}

type Drawn = askama::Result<(String, f64)>;

impl<'a> Paper<'a> {
    fn frame(&self, room: f64, legend: bool) -> Frame {
        let (x, y) = self.spans;
        let longest = self.names.iter().map(|(name, ..)| width(name, SIZE, false)).fold(0.0, f64::max);
        let right = if legend { longest.min(190.0) + 56.0 } else { 14.0 };
        let ticks = y.ticks();
        let tick_width = ticks.iter().map(|tick| width(&tick.text, TICK_SIZE, false)).fold(0.0, f64::max);
        // The axis' name stands above the axis, and the names of rules between the two.
        let head = if self.rules.is_empty() { 20.0 } else { 34.0 };
        Frame { x0: (tick_width * WIDER + 10.0).ceil(), x1: (room - right).floor(), y0: head, x, y }
    }

    fn draw(self, frame: &Frame, legend: bool, paths: Vec<GridPath<'a>>, curves: Vec<CurvePoints<'a>>) -> Drawn {
        let mut free_from = f64::NEG_INFINITY;
        let rules = self.rules.iter().map(|(value, label)| {
            let at = round(frame.place((*value, 0.0)).0);
            let text = if at > free_from { clean(label) } else { String::new() };
            if !text.is_empty() {
                free_from = at + width(label, 11.0, false) + 12.0;
            }
            Rule { at, text }
        });
        let entries = self.names.iter().enumerate().filter(|_| legend).map(|(row, (name, colour, dash))| LegendEntry {
            x: frame.x1 + 18.0,
            y: frame.y0 + 8.0 + row as f64 * 20.0,
            colour,
            dash: *dash,
            name: clean(&fit(name, SIZE, 190.0)),
        });
        let legend: Vec<LegendEntry<'_>> = entries.collect();
        let height = (frame.y1() + 41.0).max(legend.len() as f64 * 20.0 + 22.0);
        let drawing = Drawing {
            x: DrawnAxis::new(self.axes.0, &self.spans.0, (frame.x0, frame.x1)).spaced(),
            y: DrawnAxis::new(self.axes.1, &self.spans.1, (frame.y1(), frame.y0)),
            x0: frame.x0,
            x1: frame.x1,
            y0: frame.y0,
            y1: frame.y1(),
            middle: round((frame.x0 + frame.x1) / 2.0),
            rules: rules.collect(),
            paths,
            curves,
            legend,
        };
        Ok((drawing.render()?, height))
    }
}

pub(super) fn draw(lines: &Lines, room: f64, legend: bool) -> Drawn {
    let marks = || lines.series.iter().flat_map(|line| &line.points);
    let pieces = || lines.series.iter().flat_map(|line| line.pieces.iter().flatten().copied());
    let ends = marks().flat_map(|point| {
        let (low, high) = point.interval.unwrap_or((point.y, point.y));
        [low, point.y, high]
    });
    let y = Span::of(lines.y.scale, pieces().map(|(_, y)| y).chain(ends));
    let across = || pieces().map(|(x, _)| x).chain(marks().map(|point| point.x));
    let most = across().fold(0.0, f64::max);
    let x = match lines.x.scale {
        // Time ends with the last second, not at the next round number; the last mark is whole.
        Scale::Linear => Span::exact(if marks().next().is_none() { most.ceil() } else { most * 1.03 }),
        scale => Span::of(scale, across()),
    };
    let names = lines.names().into_iter().map(|line| (&*line.name, &*line.colour, line.dash));
    let names = names.chain(lines.ideal.as_deref().map(|name| (name, "", Dash::Dotted))).collect();
    let paper = Paper { axes: (&lines.x, &lines.y), spans: (x, y), names, rules: &lines.rules };
    let frame = paper.frame(room, legend);
    let (mut paths, mut marked) = (Vec::new(), Vec::new());
    if lines.ideal.is_some() {
        // From the origin as far as both axes go.
        let end = most.min(y.high());
        let d = frame.path(std::iter::once([(0.0, 0.0), (end, end)].as_slice()));
        paths.push(GridPath { series: None, part: "", colour: "", dash: Dash::Dotted, dots: false, d });
    }
    let stride = lines.stride();
    for line in &lines.series {
        let series = paper.names.iter().position(|(name, ..)| *name == line.name);
        let mut pieces: Vec<Points> = line.pieces.iter().map(|piece| thinned(piece, stride)).collect();
        // A single mark needs no line.
        pieces.extend((line.points.len() > 1).then(|| line.points.iter().map(|point| (point.x, point.y)).collect()));
        for dots in [false, true] {
            let d = frame.path(pieces.iter().map(Vec::as_slice).filter(|piece| (piece.len() == 1) == dots));
            if !d.is_empty() {
                paths.push(GridPath { series, part: &line.part, colour: &line.colour, dash: line.dash, dots, d });
            }
        }
        if !line.points.is_empty() {
            let points = line.points.iter().enumerate().map(|(place, point)| drawn(line, place, point, &frame));
            let series = series.unwrap_or_default();
            marked.push(CurvePoints { series, colour: &line.colour, points: points.collect() });
        }
    }
    paper.draw(&frame, legend, paths, marked)
}

/// Keeps the highest of each `stride` points, so that outliers stay visible.
fn thinned(piece: &[(f64, f64)], stride: usize) -> Points {
    let highest = |some: &[(f64, f64)]| some.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    piece.chunks(stride).filter_map(highest).collect()
}

fn drawn(line: &Line, place: usize, point: &CurvePoint, frame: &Frame) -> DrawnPoint {
    let (x, y) = frame.place((point.x, point.y));
    let end = |value: f64| round(frame.place((point.x, value)).1 - y);
    let knee = line.knee == Some(place);
    let interval =
        point.interval.map(|(low, high)| format!(" ({} to {})", short(low), short(high))).unwrap_or_default();
    let remark = [(knee, ", knee"), (point.hollow, ", invalid")].map(|(is, words)| if is { words } else { "" });
    DrawnPoint {
        x: round(x),
        y: round(y),
        whisker: point.interval.map(|(low, high)| (end(low), end(high))),
        hollow: point.hollow,
        knee,
        at: tick_text(point.x),
        value: clean(&format!("{}{interval}{}", short(point.y), remark.concat())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_line_keeps_its_peaks() {
        let piece: Vec<(f64, f64)> =
            (0..10).map(|i| (f64::from(i), if i == 7 { 50.0 } else { f64::from(i) })).collect();
        assert_eq!(thinned(&piece, 4), [(3.0, 3.0), (7.0, 50.0), (9.0, 9.0)]);
        assert_eq!(thinned(&piece, 1), piece);
    }

    #[test]
    fn a_path_is_short_and_exact() {
        let frame = Frame { x0: 40.0, x1: 140.0, y0: 20.0, x: Span::exact(10.0), y: Span::exact(PLOT_HEIGHT) };
        let pieces = [vec![(0.0, 0.0), (5.0, 330.0), (6.0, 330.0)], vec![(10.0, 0.0)]];
        assert_eq!(frame.path(pieces.iter().map(Vec::as_slice)), "M0 6600l1000-6600 200 0M2000 6600l0 0");
    }
}
