//! Draws horizontal bars with intervals, or dots on lines. The bars are horizontal because product names are words, which are read from
//! left to right.

use std::collections::BTreeSet;

use askama::Template;

use super::text::{fit, width};
use super::{DrawnAxis, LegendEntry, SIZE, WIDER, clean, round};
use crate::charts::axis::Span;
use crate::charts::{Arrangement, Bar, BarGroup, Bars, Dash};
use weir_model::text::short;

const BAR: f64 = 20.0;
const GAP: f64 = 10.0;
/// Height of a line of dots.
const LINE: f64 = 11.0;
const LEGEND_LINE: f64 = 20.0;

#[derive(Template)]
#[template(path = "bars.svg")]
struct Drawing<'a> {
    x: DrawnAxis,
    x0: f64,
    x1: f64,
    /// Top and bottom of all rows.
    y0: f64,
    y1: f64,
    middle: f64,
    stacked: bool,
    dots: bool,
    /// Where a rule crosses all rows.
    rule: Option<f64>,
    rows: Vec<Row<'a>>,
    legend: Vec<LegendEntry<'a>>,
}

/// A group of bars below its label.
struct Row<'a> {
    y: f64,
    height: f64,
    middle: f64,
    label: String,
    /// As much of the label as fits.
    short_label: String,
    baseline: bool,
    bars: Vec<DrawnBar<'a>>,
}

struct DrawnBar<'a> {
    bar: &'a Bar,
    x: f64,
    y: f64,
    width: f64,
    whisker: Option<(f64, f64)>,
    /// Where the text begins, and the text; none within a stack.
    end: Option<(f64, String)>,
    value: String,
}

pub(super) fn draw(bars: &Bars, room: f64, legend: bool) -> askama::Result<(String, f64)> {
    let labels = bars.groups.iter().map(|group| width(&group.label, SIZE, false)).fold(40.0, f64::max) * WIDER;
    let labels = labels.min(room * 0.3);
    let all = || bars.groups.iter().flat_map(|group| &group.bars);
    let rule = match bars.arrangement {
        Arrangement::Dots { rule } => Some(rule),
        Arrangement::Below | Arrangement::Stacked => None,
    };
    let (stacked, dots) = (bars.arrangement == Arrangement::Stacked, rule.is_some());
    let texts = all().filter(|_| !dots).map(|bar| width(&bar.text, SIZE, false)).fold(0.0, f64::max);
    let (x0, x1) = ((labels + 12.0).ceil(), (room - texts - 14.0).floor());
    let values = bars.groups.iter().flat_map(|group| lengths(stacked, &group.bars));
    let span = Span::of(bars.value.scale, values.chain(rule));
    let place = |value: f64| x0 + span.place(value).clamp(0.0, 1.0) * (x1 - x0);
    let (legend, y0) = if legend { legend_of(bars, x0, room) } else { (Vec::new(), 0.0) };
    let mut y = y0 + GAP;
    let rows = bars.groups.iter().map(|group| {
        let height = match bars.arrangement {
            Arrangement::Stacked => BAR,
            Arrangement::Below => group.bars.len().max(1) as f64 * BAR,
            Arrangement::Dots { .. } => (lines(group).len() as f64 * LINE).max(BAR),
        } + GAP;
        y += height;
        Row {
            y: y - height,
            height,
            middle: (height - GAP) / 2.0 + 4.5,
            label: clean(&group.label),
            short_label: clean(&fit(&group.label, SIZE, labels / WIDER)),
            baseline: group.baseline,
            bars: if dots { dots_of(group, &place) } else { row(stacked, group, &place) },
        }
    });
    let rows: Vec<Row<'_>> = rows.collect();
    let drawing = Drawing {
        x: DrawnAxis::new(&bars.value, &span, (x0, x1)).spaced(),
        x0,
        x1,
        y0,
        y1: y,
        middle: round((x0 + x1) / 2.0),
        stacked,
        dots,
        rule: rule.map(|rule| round(place(rule))),
        rows,
        legend,
    };
    Ok((drawing.render()?, y + 40.0))
}

/// Where a group's bars and whiskers end.
fn lengths(stacked: bool, group: &[Bar]) -> Vec<f64> {
    if stacked {
        return vec![group.iter().map(|bar| bar.value).sum()];
    }
    group.iter().flat_map(|bar| [bar.value, bar.interval.map_or(bar.value, |(_, high)| high)]).collect()
}

/// The series of a group, each of which has a line of its dots.
fn lines(group: &BarGroup) -> Vec<usize> {
    group.bars.iter().map(|bar| bar.series).collect::<BTreeSet<usize>>().into_iter().collect()
}

fn dots_of<'a>(group: &'a BarGroup, place: &dyn Fn(f64) -> f64) -> Vec<DrawnBar<'a>> {
    let lines = lines(group);
    let line = |bar: &Bar| lines.iter().position(|series| *series == bar.series).unwrap_or(0) as f64;
    let drawn = group.bars.iter().map(|bar| DrawnBar {
        bar,
        x: round(place(bar.value)),
        y: (line(bar) + 0.5) * LINE,
        width: 0.0,
        whisker: None,
        end: None,
        value: clean(&bar.text),
    });
    drawn.collect()
}

fn row<'a>(stacked: bool, group: &'a BarGroup, place: &dyn Fn(f64) -> f64) -> Vec<DrawnBar<'a>> {
    let mut from = 0.0;
    let drawn = group.bars.iter().enumerate().map(|(row, bar)| {
        let start = if stacked { from } else { 0.0 };
        from += bar.value;
        let (x, end) = (round(place(start)), place(start + bar.value));
        let last = !stacked || row + 1 == group.bars.len();
        let whisker = bar.interval.map(|(low, high)| (round(place(low)), round(place(high))));
        let interval =
            bar.interval.map(|(low, high)| format!(" ({} to {})", short(low), short(high))).unwrap_or_default();
        DrawnBar {
            bar,
            x,
            y: if stacked { 0.0 } else { row as f64 * BAR },
            width: round((end - x).max(0.0)),
            whisker,
            end: last.then(|| (round(whisker.map_or(end, |(_, high)| high.max(end))), clean(&bar.text))),
            value: clean(&format!("{}{interval}", short(bar.value))),
        }
    });
    drawn.collect()
}

/// The names of the series, on as many lines as they need, and how high that is.
fn legend_of(bars: &Bars, left: f64, room: f64) -> (Vec<LegendEntry<'_>>, f64) {
    if bars.series.len() < 2 {
        return (Vec::new(), 0.0);
    }
    let (mut x, mut y) = (left, 14.0);
    let entries = bars.series.iter().map(|series| {
        let own = 17.0 + width(&series.name, SIZE, false);
        if x > left && x + own > room {
            (x, y) = (left, y + LEGEND_LINE);
        }
        x += own + 20.0;
        LegendEntry {
            x: round(x - own - 20.0),
            y,
            colour: &series.colour,
            dash: Dash::Solid,
            name: clean(&series.name),
        }
    });
    (entries.collect(), y + 12.0)
}
