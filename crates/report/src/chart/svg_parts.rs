//! The few shapes that charts are made of, on the `svg` crate's nodes. Text from a run passes through [`text`],
//! which the crate escapes; nothing from a run ever becomes an attribute.

use svg::node::element::{Circle, Group, Line, Path, Rectangle, Text};

pub(super) const INK: &str = "#1b1f24";
pub(super) const FAINT: &str = "#57606a";
pub(super) const GRID: &str = "#d8dee4";
pub(super) const PAPER: &str = "#ffffff";

/// Size of ordinary text, pixels.
pub(super) const SIZE: f64 = 13.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// What a text looks like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub size: f64,
    pub bold: bool,
    pub colour: &'static str,
    pub anchor: Anchor,
}

impl Style {
    pub const PLAIN: Style = Style { size: SIZE, bold: false, colour: INK, anchor: Anchor::Start };

    pub fn faint(self) -> Style {
        Style { colour: FAINT, ..self }
    }

    pub fn bold(self) -> Style {
        Style { bold: true, ..self }
    }

    pub fn at(self, anchor: Anchor) -> Style {
        Style { anchor, ..self }
    }

    pub fn sized(self, size: f64) -> Style {
        Style { size, ..self }
    }
}

/// A text with its baseline at `y`.
pub(super) fn text(x: f64, y: f64, words: &str, style: Style) -> Text {
    // Control characters are not allowed in XML, even escaped.
    let words: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let anchor = match style.anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    let node = Text::new(words)
        .set("x", round(x))
        .set("y", round(y))
        .set("font-size", style.size)
        .set("fill", style.colour)
        .set("text-anchor", anchor);
    if style.bold { node.set("font-weight", "bold") } else { node }
}

/// A text that stays readable where it crosses lines: paper is drawn around its letters.
pub(super) fn text_on_paper(x: f64, y: f64, words: &str, style: Style) -> Text {
    text(x, y, words, style).set("paint-order", "stroke").set("stroke", PAPER).set("stroke-width", 5)
}

/// A straight line.
pub(super) fn line(from: (f64, f64), to: (f64, f64), colour: &str, width: f64) -> Line {
    Line::new()
        .set("x1", round(from.0))
        .set("y1", round(from.1))
        .set("x2", round(to.0))
        .set("y2", round(to.1))
        .set("stroke", colour)
        .set("stroke-width", width)
}

/// A filled rectangle.
pub(super) fn rectangle(x: f64, y: f64, width: f64, height: f64, colour: &str) -> Rectangle {
    Rectangle::new()
        .set("x", round(x))
        .set("y", round(y))
        .set("width", round(width.max(0.0)))
        .set("height", round(height.max(0.0)))
        .set("fill", colour)
}

/// A line through points.
pub(super) fn path(points: &[(f64, f64)], colour: &str, width: f64, dash: &str) -> Path {
    let mut d = String::with_capacity(points.len() * 14);
    for (i, (x, y)) in points.iter().enumerate() {
        d.push_str(if i == 0 { "M" } else { "L" });
        d.push_str(&format!("{} {}", round(*x), round(*y)));
    }
    let node = Path::new()
        .set("d", d)
        .set("fill", "none")
        .set("stroke", colour)
        .set("stroke-width", width)
        .set("stroke-linejoin", "round")
        .set("stroke-linecap", "round");
    if dash.is_empty() { node } else { node.set("stroke-dasharray", dash) }
}

/// A group that holds what `add` puts into it.
pub(super) fn group() -> Group {
    Group::new()
}

/// A tenth of a pixel is more than any eye wants, and keeps files small.
pub(super) fn round(x: f64) -> f64 {
    (x * 10.0).round() / 10.0
}

/// A small disc around a point.
pub(super) fn dot(at: (f64, f64), radius: f64, fill: &str, stroke: &str) -> Circle {
    Circle::new()
        .set("cx", round(at.0))
        .set("cy", round(at.1))
        .set("r", radius)
        .set("fill", fill)
        .set("stroke", stroke)
        .set("stroke-width", 1.4)
}

/// A square on its corner around a point.
pub(super) fn square(at: (f64, f64), half: f64, fill: &str, stroke: &str) -> Path {
    let (x, y) = (round(at.0), round(at.1));
    let d = format!("M{x} {}L{} {y}L{x} {}L{} {y}Z", y - half, x + half, y + half, x - half);
    Path::new().set("d", d).set("fill", fill).set("stroke", stroke).set("stroke-width", 1.4)
}
