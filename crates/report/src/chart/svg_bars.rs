//! Horizontal bars with intervals. Horizontal, because names of products are words and words run from left to right.

use svg::node::element::Group;

use super::axis::Span;
use super::measure::{fit, width};
use super::svg::Plot;
use super::svg_parts::{Anchor, FAINT, GRID, INK, SIZE, Style, group, line, rectangle, text, text_on_paper};
use super::{Bar, Bars};

const BAR: f64 = 20.0;
const GAP: f64 = 10.0;
const LEGEND_LINE: f64 = 20.0;

pub(super) fn draw(bars: &Bars, left: f64, top: f64, room: f64) -> Plot {
    let labels = bars.groups.iter().map(|g| width(&g.label, SIZE, false)).fold(40.0, f64::max).min(room * 0.3);
    let texts = bars.groups.iter().flat_map(|g| &g.bars).map(|b| width(&b.text, SIZE, false)).fold(0.0, f64::max);
    let (x0, x1) = (left + labels + 12.0, left + room - texts - 14.0);
    let span = Span::of(bars.value.scale, bars.groups.iter().flat_map(|g| lengths(bars, &g.bars)));
    let place = |value: f64| x0 + span.place(value).clamp(0.0, 1.0) * (x1 - x0);
    let (legend, legend_height) = legend(bars, left + labels + 12.0, top + 14.0, room - labels - 12.0);
    let rows_top = top + legend_height;
    let heights: Vec<f64> = bars.groups.iter().map(|g| group_height(bars, g.bars.len())).collect();
    let rows_height: f64 = heights.iter().sum::<f64>() + GAP;

    let mut plot = legend;
    for tick in span.ticks() {
        let x = place(tick.value);
        plot = plot.add(line((x, rows_top), (x, rows_top + rows_height), GRID, 1.0));
        plot = plot.add(text(
            x,
            rows_top + rows_height + 17.0,
            &tick.text,
            Style::PLAIN.faint().sized(12.0).at(Anchor::Middle),
        ));
    }
    let mut y = rows_top + GAP;
    for (bar_group, height) in bars.groups.iter().zip(&heights) {
        let middle = y + (height - GAP) / 2.0;
        let label = fit(&bar_group.label, SIZE, labels + 2.0);
        plot = plot.add(text(x0 - 10.0, middle + 4.5, &label, Style::PLAIN.at(Anchor::End)));
        plot = if bars.stacked {
            stacked(plot, &bar_group.bars, y, &place)
        } else {
            below(plot, &bar_group.bars, y, &place)
        };
        y += height;
        if bar_group.baseline {
            plot =
                plot.add(line((left, y - GAP / 2.0), (x1, y - GAP / 2.0), FAINT, 1.0).set("stroke-dasharray", "2 3"));
        }
    }
    plot = plot.add(line((x0, rows_top), (x0, rows_top + rows_height), INK, 1.2));
    let axis_y = rows_top + rows_height + 36.0;
    plot = plot.add(text((x0 + x1) / 2.0, axis_y, &bars.value.words(), Style::PLAIN.at(Anchor::Middle)));
    Plot { group: plot, height: axis_y - top + 4.0 }
}

/// Where a group's bars and whiskers end.
fn lengths(bars: &Bars, group: &[Bar]) -> Vec<f64> {
    if bars.stacked {
        return vec![group.iter().map(|bar| bar.value).sum()];
    }
    group.iter().flat_map(|bar| [bar.value, bar.interval.map_or(bar.value, |(_, high)| high)]).collect()
}

fn group_height(bars: &Bars, n: usize) -> f64 {
    let rows = if bars.stacked { 1 } else { n.max(1) };
    rows as f64 * BAR + GAP
}

fn below(mut plot: Group, bars: &[Bar], top: f64, place: &dyn Fn(f64) -> f64) -> Group {
    for (row, bar) in bars.iter().enumerate() {
        let y = top + row as f64 * BAR;
        plot = one_bar(plot, bar, (place(0.0), place(bar.value)), y);
        let mut end = place(bar.value);
        if let Some((low, high)) = bar.interval {
            let (low, high, middle) = (place(low), place(high), y + (BAR - 3.0) / 2.0);
            plot = plot.add(line((low, middle), (high, middle), INK, 1.6));
            for x in [low, high] {
                plot = plot.add(line((x, middle - 5.0), (x, middle + 5.0), INK, 1.6));
            }
            end = end.max(high);
        }
        plot = plot.add(text_on_paper(end + 8.0, y + 13.5, &bar.text, Style::PLAIN));
    }
    plot
}

fn stacked(mut plot: Group, bars: &[Bar], y: f64, place: &dyn Fn(f64) -> f64) -> Group {
    let mut from = 0.0;
    for bar in bars {
        plot = one_bar(plot, bar, (place(from), place(from + bar.value)), y);
        from += bar.value;
    }
    match bars.last() {
        Some(last) => plot.add(text_on_paper(place(from) + 8.0, y + 13.5, &last.text, Style::PLAIN)),
        None => plot,
    }
}

fn one_bar(plot: Group, bar: &Bar, (x0, x1): (f64, f64), y: f64) -> Group {
    let shape = rectangle(x0, y, x1 - x0, BAR - 3.0, if bar.hollow { "none" } else { &bar.colour });
    plot.add(if bar.hollow {
        shape.set("stroke", bar.colour.as_str()).set("stroke-width", 1.5).set("stroke-dasharray", "4 3")
    } else {
        shape
    })
}

/// The names of the series, on as many lines as they need, and how high that is.
fn legend(bars: &Bars, left: f64, top: f64, room: f64) -> (Group, f64) {
    let mut plot = group();
    if bars.series.len() < 2 {
        return (plot, 0.0);
    }
    let (mut x, mut y) = (left, top);
    for series in &bars.series {
        if x > left && x + 17.0 + width(&series.name, SIZE, false) > left + room {
            (x, y) = (left, y + LEGEND_LINE);
        }
        plot = plot.add(rectangle(x, y - 10.0, 12.0, 12.0, &series.colour));
        plot = plot.add(text(x + 17.0, y, &series.name, Style::PLAIN));
        x += 17.0 + width(&series.name, SIZE, false) + 20.0;
    }
    (plot, y - top + 26.0)
}
