//! Draws a chart as SVG. `page` embeds the plot, which the script of the page can change; `make` writes it to a file. A
//! file has title, legend and notes around the plot, on white, so that it looks the same in a README, a slide and
//! print. Templates escape all text that comes from a run. The module knows charts, but no runs.

mod bars;
mod lines;
pub(crate) mod text;

use askama::Template;

use super::axis::{Axis, Span};
use super::{Chart, ChartKind, Dash};
use text::{width, wrap};

/// Width of every file, pixels.
const WIDTH: f64 = 960.0;

const MARGIN: f64 = 20.0;

/// Size of ordinary text and of ticks, pixels.
const SIZE: f64 = 13.0;
const TICK_SIZE: f64 = 12.0;

/// How much wider the page's font may be than the one that texts are measured in.
const WIDER: f64 = 1.12;

/// How drawings look. The page has these rules with its own colours, which change in the dark.
const STYLE: &str = include_str!("../../assets/drawing.css");

/// Colours of a file, by the page's names for them.
const COLOURS: [(&str, &str); 4] =
    [("var(--ink)", "#1b1f24"), ("var(--faint)", "#57606a"), ("var(--rule)", "#d8dee4"), ("var(--paper)", "#ffffff")];

/// A drawn plot: what goes into an `<svg>` element of this size.
pub(crate) struct Plot {
    pub markup: String,
    pub width: f64,
    pub height: f64,
}

/// A line of text with its baseline.
struct TextLine {
    y: f64,
    text: String,
}

#[derive(Template)]
#[template(path = "drawing.svg")]
struct Document<'a> {
    width: f64,
    height: f64,
    margin: f64,
    style: String,
    alt: String,
    title: Vec<TextLine>,
    subtitle: Vec<TextLine>,
    notes: Vec<TextLine>,
    plot: &'a str,
    plot_top: f64,
    name: String,
}

/// An axis as it is drawn, and as the page's script reads it.
struct DrawnAxis {
    name: String,
    /// Scale, values and pixels of both ends, unit.
    data: String,
    ticks: Vec<DrawnTick>,
}

/// A tick in pixels; without a text where there is no room for it.
struct DrawnTick {
    at: f64,
    text: String,
}

/// An entry of a file's legend.
struct LegendEntry<'a> {
    x: f64,
    y: f64,
    colour: &'a str,
    dash: Dash,
    name: String,
}

impl DrawnAxis {
    fn new(axis: &Axis, span: &Span, (from, to): (f64, f64)) -> DrawnAxis {
        let ticks = span.ticks().into_iter();
        DrawnAxis {
            name: clean(&axis.title()),
            data: format!("{} {} {} {}", span.data(), round(from), round(to), clean(&axis.unit)),
            ticks: ticks
                .map(|tick| DrawnTick { at: round(from + span.place(tick.value) * (to - from)), text: tick.text })
                .collect(),
        }
    }

    /// Drops texts that would touch the one before.
    fn spaced(mut self) -> DrawnAxis {
        let mut free_from = f64::NEG_INFINITY;
        for tick in &mut self.ticks {
            let half = width(&tick.text, TICK_SIZE, false) / 2.0;
            if tick.at - half > free_from {
                free_from = tick.at + half + 6.0;
            } else {
                tick.text.clear();
            }
        }
        self
    }
}

/// The plot alone, with a legend if it is to stand for itself.
///
/// # Errors
///
/// Only when a template is wrong.
pub(crate) fn plot(chart: &Chart, legend: bool) -> askama::Result<Plot> {
    let room = WIDTH - 2.0 * MARGIN;
    let (markup, height) = match &chart.kind {
        ChartKind::Bars(bars) => bars::draw(bars, room, legend),
        ChartKind::Lines(lines) => lines::draw(lines, room, legend),
    }?;
    Ok(Plot { markup, width: room, height: height.ceil() })
}

/// The picture as a file.
///
/// # Errors
///
/// Only when a template is wrong.
pub fn svg(chart: &Chart) -> askama::Result<String> {
    let plot = plot(chart, true)?;
    let mut top = MARGIN + 16.0;
    let title = paragraph(&chart.title, 19.0, 23.0, &mut top);
    top -= 3.0;
    let subtitle = paragraph(&chart.subtitle, SIZE, 18.0, &mut top);
    let plot_top = top + 9.0;
    top = plot_top + plot.height + 20.0;
    let notes = paragraph(&chart.drawn_notes(), 11.5, 15.0, &mut top);
    let style = COLOURS.iter().fold(STYLE.to_string(), |style, (name, colour)| style.replace(name, colour));
    let document = Document {
        width: WIDTH,
        height: (top + 4.0).ceil(),
        margin: MARGIN,
        style,
        alt: clean(&chart.alt),
        title,
        subtitle,
        notes,
        plot: &plot.markup,
        plot_top,
        name: clean(&chart.title),
    };
    document.render()
}

/// Lines of text from `top` on, which goes below them.
fn paragraph(text: &str, size: f64, step: f64, top: &mut f64) -> Vec<TextLine> {
    let lines = wrap(&clean(text), size, WIDTH - 2.0 * MARGIN).into_iter();
    let placed = lines.map(|text| {
        *top += step;
        TextLine { y: *top - step, text }
    });
    placed.collect()
}

/// Control characters are not allowed in XML, even escaped.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Rounds to a tenth of a pixel, which is precise enough and keeps files small.
fn round(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}
