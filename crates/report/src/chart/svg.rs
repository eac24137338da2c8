//! Draws a chart as SVG: title, plot, notes, on white paper, so that it reads alike in a README, a slide and print.
//! Knows charts, nothing of runs.

use svg::node::element::{Description, Group, Title};
use svg::{Document, Node};

use super::measure::wrap;
use super::svg_parts::{PAPER, Style, rectangle, text};
use super::{Chart, Kind, svg_bars, svg_curves, svg_lines};

/// Width of every picture, pixels.
pub const WIDTH: f64 = 960.0;

const MARGIN: f64 = 20.0;

/// A drawn plot and how high it is.
pub(super) struct Plot {
    pub group: Group,
    pub height: f64,
}

/// The picture as an SVG document.
pub fn draw(chart: &Chart) -> String {
    let mut top = MARGIN + 16.0;
    let mut page = Group::new();
    for line in wrap(&chart.title, 19.0, WIDTH - 2.0 * MARGIN) {
        page = page.add(text(MARGIN, top, &line, Style::PLAIN.bold().sized(18.0)));
        top += 23.0;
    }
    for line in wrap(&chart.subtitle, 13.0, WIDTH - 2.0 * MARGIN) {
        page = page.add(text(MARGIN, top - 3.0, &line, Style::PLAIN.faint()));
        top += 18.0;
    }
    top += 6.0;
    let plot = match &chart.kind {
        Kind::Bars(bars) => svg_bars::draw(bars, MARGIN, top, WIDTH - 2.0 * MARGIN),
        Kind::Lines(lines) => svg_lines::draw(lines, MARGIN, top, WIDTH - 2.0 * MARGIN),
        Kind::Curves(curves) => svg_curves::draw(curves, MARGIN, top, WIDTH - 2.0 * MARGIN),
    };
    page = page.add(plot.group);
    let mut bottom = top + plot.height + 20.0;
    for line in wrap(&chart.notes.join(" "), 11.5, WIDTH - 2.0 * MARGIN) {
        page = page.add(text(MARGIN, bottom, &line, Style::PLAIN.faint().sized(11.0)));
        bottom += 15.0;
    }
    let height = bottom + 4.0;
    let mut document = Document::new()
        .set("viewBox", (0, 0, WIDTH as i64, height.ceil() as i64))
        .set("width", WIDTH as i64)
        .set("height", height.ceil() as i64)
        .set("role", "img")
        .set("font-family", "Noto Sans, DejaVu Sans, Verdana, Arial, sans-serif");
    document.append(Title::new(clean(&chart.title)));
    document.append(Description::new().add(svg::node::Text::new(clean(&chart.alt))));
    document.append(rectangle(0.0, 0.0, WIDTH, height.ceil(), PAPER));
    document.append(page);
    document.to_string()
}

fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
