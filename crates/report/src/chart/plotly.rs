//! Describes a chart for Plotly.js, which draws it in the reader's browser. Colours of paper, ink and grid are left to
//! the page, which knows whether it is dark. Knows charts, nothing of runs.

use plotly::common::{
    DashType, ErrorData, ErrorType, HoverInfo, Line as Stroke, Marker, Mode, Orientation, Pattern, PatternShape,
    Position,
};
use plotly::layout::{Axis as PlotAxis, AxisRange, AxisType, BarMode, HoverMode, Margin, Shape, ShapeLine, ShapeType};
use plotly::{Bar as BarTrace, Configuration, Layout, Plot, Scatter};

use super::axis::{Axis, Scale, Span, percentile_ticks, rarity};
use super::{Bar, Bars, Chart, Dash, Kind, Line, Lines};

/// Height of charts of lines, pixels.
pub(super) const LINES_HEIGHT: usize = 400;

/// Plotly.js itself, as one `<script>` element, to stand once in a page.
pub fn library() -> String {
    let sources = Plot::offline_js_sources();
    // What follows the first script typesets formulas, of which a report has none.
    const END: &str = "</script>";
    let end = sources.find(END).map_or(sources.len(), |at| at + END.len());
    sources[..end].to_string()
}

/// The chart as the JSON object that `Plotly.newPlot` takes: `data`, `layout`, `config`. The `legendgroup` of a trace is
/// the place of its name in [`Chart::toggles`].
pub fn json(chart: &Chart) -> String {
    let mut plot = Plot::new();
    let config = Configuration::new().responsive(true).display_logo(false).plotly_server_url("");
    plot.set_configuration(config);
    let names: Vec<&str> = chart.toggles().into_iter().map(|(name, _)| name).collect();
    match &chart.kind {
        Kind::Bars(bars) => add_bars(&mut plot, bars),
        Kind::Lines(lines) => add_lines(&mut plot, lines, &names),
        Kind::Curves(curves) => super::plotly_curves::add(&mut plot, curves),
    }
    plot.to_json()
}

/// Height of the drawn chart in pixels, so that the page does not jump when it is drawn.
pub fn height(chart: &Chart) -> usize {
    match &chart.kind {
        Kind::Bars(bars) => bars_height(bars),
        Kind::Lines(_) | Kind::Curves(_) => LINES_HEIGHT,
    }
}

fn add_bars(plot: &mut Plot, bars: &Bars) {
    for (index, series) in bars.series.iter().enumerate() {
        plot.add_trace(series_trace(bars, index, &series.name));
    }
    for index in 0..bars.series.len() {
        plot.add_trace(end_texts(bars, index));
    }
    let most = bars.groups.iter().map(|group| {
        let ends = group.bars.iter().map(|bar| bar.interval.map_or(bar.value, |(_, high)| high.max(bar.value)));
        if bars.stacked { group.bars.iter().map(|bar| bar.value).sum() } else { ends.fold(0.0, f64::max) }
    });
    // Room on the right for the numbers at the ends of the bars.
    let most = most.fold(0.0, f64::max);
    let high = most * 1.18;
    let places = Places::of(bars);
    let labels = bars.groups.iter().map(|group| escape(&group.label)).collect();
    let x = PlotAxis::new().title(escape(&bars.value.words())).tick_format(",~r").auto_margin(true);
    let x = match bars.value.scale {
        Scale::Log => logarithmic(x, bars),
        Scale::Linear | Scale::Percentile => x.range(AxisRange::new(0.0, if high > 0.0 { high } else { 1.0 })),
    };
    let y = PlotAxis::new().tick_values(places.middles.clone()).tick_text(labels).auto_margin(true).show_grid(false);
    let y = y.zero_line(false).range(AxisRange::new(places.end, -0.7));
    let mode = if bars.stacked { BarMode::Stack } else { BarMode::Overlay };
    plot.set_layout(layout(x, y, bars_height(bars)).bar_mode(mode).hover_mode(HoverMode::Closest));
}

/// A logarithmic axis for bars: it has no 0, so they begin at a power of ten.
fn logarithmic(axis: PlotAxis, bars: &Bars) -> PlotAxis {
    let all = || bars.groups.iter().flat_map(|group| &group.bars);
    let least = all().map(|bar| bar.value).filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let most = all().map(|bar| bar.interval.map_or(bar.value, |(_, high)| high)).fold(0.0, f64::max);
    let (low, high) = if least <= most { (least.log10().floor(), most.log10()) } else { (0.0, 1.0) };
    // Room on the right for the numbers at the ends of the bars.
    axis.type_(AxisType::Log).range(AxisRange::new(low, high + (high - low) * 0.15)).tick_format(",~r").n_ticks(12)
}

fn bars_height(bars: &Bars) -> usize {
    (Places::of(bars).end * 24.0) as usize + 100
}

/// Where bars stand on the vertical axis, from the top, in bars. Numbers and not names: two groups of one name, or a name
/// that looks like a date, stay two bars; and a bar that is hidden leaves the others where they are.
struct Places {
    /// First bar of each group.
    firsts: Vec<f64>,
    /// Where the group's label stands.
    middles: Vec<f64>,
    /// Below the last.
    end: f64,
}

impl Places {
    fn of(bars: &Bars) -> Places {
        let mut places = Places { firsts: Vec::new(), middles: Vec::new(), end: 0.0 };
        for group in &bars.groups {
            let rows = if bars.stacked { 1 } else { group.bars.len().max(1) } as f64;
            places.firsts.push(places.end);
            places.middles.push(places.end + (rows - 1.0) / 2.0);
            places.end += rows + if rows > 1.0 { 0.6 } else { 0.0 };
        }
        places.end -= 0.3;
        places
    }

    fn place(&self, bars: &Bars, group: usize, row: usize) -> f64 {
        self.firsts[group] + if bars.stacked { 0.0 } else { row as f64 }
    }
}

fn series_trace(bars: &Bars, index: usize, name: &str) -> Box<BarTrace<f64, f64>> {
    let (mut x, mut y, mut colours, mut above, mut below, mut hollow) =
        (vec![], vec![], vec![], vec![], vec![], vec![]);
    let places = Places::of(bars);
    for (place, group) in bars.groups.iter().enumerate() {
        for (row, bar) in group.bars.iter().enumerate().filter(|(_, bar)| bar.series == index) {
            x.push(bar.value);
            y.push(places.place(bars, place, row));
            colours.push(bar.colour.clone());
            let (low, high) = bar.interval.unwrap_or((bar.value, bar.value));
            below.push(bar.value - low);
            above.push(high - bar.value);
            hollow.push(bar.hollow);
        }
    }
    let with_intervals = above.iter().chain(&below).any(|length| *length > 0.0);
    let mut marker = Marker::new().color_array(colours);
    if hollow.iter().any(|hollow| *hollow) {
        let shapes = hollow.iter().map(|h| if *h { PatternShape::RightDiagonalLine } else { PatternShape::None });
        marker = marker.pattern(Pattern::new().shape_array(shapes.collect()));
    }
    let hover = format!("%{{x:,.3r}} {}<extra>%{{fullData.name}}</extra>", escape(&bars.value.unit));
    let trace = BarTrace::new(x, y)
        .orientation(Orientation::Horizontal)
        .name(escape(name))
        .legend_group(index.to_string())
        .width(0.8)
        .marker(marker)
        .hover_template(hover);
    if !with_intervals {
        return trace;
    }
    trace.error_x(
        ErrorData::new(ErrorType::Data).symmetric(false).array(above).array_minus(below).thickness(1.6).width(5),
    )
}

/// The numbers at the ends: texts of their own, because a bar's own text is drawn across its whisker.
fn end_texts(bars: &Bars, index: usize) -> Box<Scatter<f64, f64>> {
    let (mut x, mut y, mut texts) = (vec![], vec![], vec![]);
    let places = Places::of(bars);
    for (place, group) in bars.groups.iter().enumerate() {
        let last = group.bars.len().saturating_sub(1);
        let wanted = |row: usize, bar: &Bar| bar.series == index && (!bars.stacked || row == last);
        for (row, bar) in group.bars.iter().enumerate().filter(|(row, bar)| wanted(*row, bar)) {
            let end = if bars.stacked { group.bars.iter().map(|bar| bar.value).sum() } else { bar.value };
            x.push(bar.interval.map_or(end, |(_, high)| high.max(end)));
            y.push(places.place(bars, place, row));
            texts.push(format!("\u{2002}{}", escape(&bar.text)));
        }
    }
    Scatter::new(x, y)
        .mode(Mode::Text)
        .text_array(texts)
        .text_position(Position::MiddleRight)
        .hover_info(HoverInfo::Skip)
        .legend_group(index.to_string())
        .show_legend(false)
        .clip_on_axis(false)
}

fn add_lines(plot: &mut Plot, lines: &Lines, names: &[&str]) {
    let stride = stride(lines);
    for series in &lines.series {
        let group = names.iter().position(|name| *name == series.name).unwrap_or_default();
        plot.add_trace(line_trace(series, lines, group, stride));
    }
    let points = || lines.series.iter().flat_map(|line| line.pieces.iter().flatten());
    let (x, y) = (axis(&lines.x, points().map(|p| p.0)), axis(&lines.y, points().map(|p| p.1)));
    let mut layout = layout(x, y, LINES_HEIGHT).hover_mode(HoverMode::XUnified);
    for (at, label) in &lines.rules {
        let stroke = ShapeLine::new().width(1.0).dash(DashType::Dash).color("#8c959f");
        let rule = Shape::new().shape_type(ShapeType::Line).x0(*at).x1(*at).y_ref("paper").y0(0.0).y1(1.0).line(stroke);
        layout.add_shape(rule);
        let note =
            plotly::layout::Annotation::new().text(escape(label)).x(*at).y_ref("paper").y(1.06).show_arrow(false);
        layout.add_annotation(note.x_anchor(plotly::common::Anchor::Left));
    }
    plot.set_layout(layout);
}

/// More points than this in one chart are thinned: nobody sees them, and every page would carry them.
const MOST_POINTS: usize = 6_000;

/// Of so many points in a row one is drawn.
fn stride(lines: &Lines) -> usize {
    let all: usize = lines.series.iter().flat_map(|line| &line.pieces).map(Vec::len).sum();
    all.div_ceil(MOST_POINTS).max(1)
}

/// Of each `stride` points the highest, so that what went wrong is still seen.
fn thinned(piece: &[(f64, f64)], stride: usize) -> Vec<(f64, f64)> {
    let highest = |some: &[(f64, f64)]| some.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
    piece.chunks(stride).filter_map(highest).collect()
}

/// Five digits are more than a screen has.
pub(super) fn short(x: f64) -> f64 {
    format!("{x:.4e}").parse().unwrap_or(x)
}

fn line_trace(line: &Line, lines: &Lines, group: usize, stride: usize) -> Box<Scatter<f64, Option<f64>>> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (i, piece) in line.pieces.iter().map(|piece| thinned(piece, stride)).enumerate() {
        // A point without a value is how Plotly is told of a gap.
        if let (true, Some(first)) = (i > 0, piece.first()) {
            x.push(short(place(&lines.x, first.0)));
            y.push(None);
        }
        for point in &piece {
            x.push(short(place(&lines.x, point.0)));
            y.push(Some(short(point.1)));
        }
    }
    let dash = match line.dash {
        Dash::Solid => DashType::Solid,
        Dash::Dashed => DashType::Dash,
        Dash::Dotted => DashType::Dot,
    };
    let name = if line.part.is_empty() { line.name.clone() } else { format!("{} {}", line.name, line.part) };
    let hover = format!("%{{y:,.3r}} {}<extra>%{{fullData.name}}</extra>", escape(&lines.y.unit));
    let alone = line.pieces.iter().all(|piece| piece.len() < 2);
    Scatter::new(x, y)
        .name(escape(&name))
        .legend_group(group.to_string())
        .mode(if alone { Mode::Markers } else { Mode::Lines })
        .line(Stroke::new().color(line.colour.clone()).dash(dash).width(2.0))
        .marker(Marker::new().color(line.colour.clone()))
        .hover_template(hover)
        .connect_gaps(false)
}

/// Percentiles are drawn on a linear axis of rarity: Plotly has no such scale of its own.
fn place(axis: &Axis, value: f64) -> f64 {
    if axis.scale == Scale::Percentile { rarity(value) } else { value }
}

pub(super) fn axis(axis: &Axis, values: impl Iterator<Item = f64>) -> PlotAxis {
    let drawn = PlotAxis::new().title(escape(&axis.words())).auto_margin(true).zero_line(false);
    match axis.scale {
        Scale::Linear => drawn.range_mode(plotly::layout::RangeMode::ToZero).tick_format(",~r"),
        Scale::Log => {
            let span = Span::of(Scale::Log, values);
            let ticks = span.ticks();
            let drawn = drawn.type_(AxisType::Log).tick_values(ticks.iter().map(|tick| tick.value).collect());
            drawn.tick_text(ticks.into_iter().map(|tick| tick.text).collect())
        }
        Scale::Percentile => {
            let ticks = percentile_ticks();
            let drawn = drawn.tick_values(ticks.iter().map(|tick| rarity(tick.value)).collect());
            drawn.tick_text(ticks.into_iter().map(|tick| tick.text).collect())
        }
    }
}

pub(super) fn layout(x: PlotAxis, y: PlotAxis, height: usize) -> Layout {
    let margin = Margin::new().left(60).right(20).top(26).bottom(50);
    Layout::new().x_axis(x).y_axis(y).height(height).margin(margin).show_legend(false).auto_size(true)
}

/// Plotly reads a small subset of HTML in texts; what a run says is text. A lone percent sign starts no template.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace("%{", "% {")
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
        assert_eq!((short(1_234.567_89), short(0.5), short(0.0)), (1_234.6, 0.5, 0.0));
    }
}
