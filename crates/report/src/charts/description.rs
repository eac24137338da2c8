//! Describes a chart as plain data. `section` and `weir-published` build these types; `draw` and `csv` read them.
//! The module does not know suites or runs.

use weir_model::text::short;
use weir_stats::Estimate;

use super::axis::Axis;

/// One picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Stem of its file names: `[a-z0-9-]+`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// What is needed to read it: which line is which, one short sentence.
    pub subtitle: String,
    /// What a reader who cannot see it should know.
    pub alt: String,
    /// How the numbers were obtained, in sentences.
    pub notes: Vec<String>,
    /// What is drawn.
    pub kind: ChartKind,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum ChartKind {
    /// Horizontal bars.
    Bars(Bars),
    /// Lines over an axis.
    Lines(Lines),
}

impl ChartKind {
    /// Groups of bars.
    pub fn bars(value: Axis, series: Vec<BarSeries>, groups: Vec<BarGroup>, arrangement: Arrangement) -> ChartKind {
        ChartKind::Bars(Bars { value, series, groups, arrangement })
    }

    /// Lines over two axes, with vertical rules.
    pub fn lines(x: Axis, y: Axis, series: Vec<Line>, rules: Vec<(f64, String)>) -> ChartKind {
        ChartKind::Lines(Lines { x, y, series, rules, csv_only: Vec::new(), ideal: None })
    }
}

/// Groups of horizontal bars, from top to bottom.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// The value axis.
    pub value: Axis,
    /// The series of each group, in the order of [`Bar::series`].
    pub series: Vec<BarSeries>,
    /// From top to bottom.
    pub groups: Vec<BarGroup>,
    /// How a group's bars stand.
    pub arrangement: Arrangement,
}

/// How the bars of a group stand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrangement {
    /// Below each other.
    Below,
    /// Behind each other.
    Stacked,
    /// Not as bars but as dots at their values: all of a series on one line, and a rule across all groups.
    Dots {
        /// The value at which the rule stands.
        rule: f64,
    },
}

/// What the bars of one colour or shade stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct BarSeries {
    /// As in the legend; there is no legend for one series.
    pub name: String,
    /// `#rrggbb`, for the legend.
    pub colour: String,
}

/// Bars under one label.
#[derive(Debug, Clone, PartialEq)]
pub struct BarGroup {
    /// What stands left of them.
    pub label: String,
    /// Apart from the others: drawn with a rule below.
    pub baseline: bool,
    /// At most one a series, but of dots any number.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Index into [`Bars::series`].
    pub series: usize,
    /// Length, in the axis' unit.
    pub value: f64,
    /// Ends of the interval, in the axis' unit.
    pub interval: Option<(f64, f64)>,
    /// `#rrggbb`.
    pub colour: String,
    /// Only an outline: shown, not ranked.
    pub hollow: bool,
    /// What stands at its end; of a dot what the page shows when a reader points at it.
    pub text: String,
}

/// Lines over an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    /// Horizontal.
    pub x: Axis,
    /// Vertical.
    pub y: Axis,
    /// What is drawn, later ones on top.
    pub series: Vec<Line>,
    /// Vertical rules with a label to their right, such as where a block begins.
    pub rules: Vec<(f64, String)>,
    /// Lines that are only in the CSV: if they were drawn, the others would look flat.
    pub csv_only: Vec<Line>,
    /// The name of the diagonal on which the measured value equals the offered one; `None` draws no diagonal.
    pub ideal: Option<String>,
}

/// One line: pieces without marks, or measured points, joined and marked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Line {
    /// As in the legend. Lines of one name share an entry of the legend and a toggle.
    pub name: String,
    /// What it is within its name, such as `p99`; empty when a name has one line.
    pub part: String,
    /// `#rrggbb`.
    pub colour: String,
    /// How it is drawn.
    pub dash: Dash,
    /// Pieces with gaps between them.
    pub pieces: Vec<Points>,
    /// Measured points with their intervals, from left to right.
    pub points: Vec<CurvePoint>,
    /// The measured point at which the line bends, by its place.
    pub knee: Option<usize>,
}

/// A piece of a line without gaps: (x, y) in the axes' units.
pub type Points = Vec<(f64, f64)>;

/// A measured point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// In the axis' unit.
    pub x: f64,
    /// In the axis' unit.
    pub y: f64,
    /// Ends of the interval of `y`.
    pub interval: Option<(f64, f64)>,
    /// Only an outline: invalid.
    pub hollow: bool,
}

impl Bar {
    /// An estimate in units of `size`, as a bar of the first series.
    pub fn of(estimate: &Estimate, size: f64, colour: String) -> Bar {
        let CurvePoint { y: value, interval, .. } = CurvePoint::of(0.0, estimate, size);
        Bar { series: 0, value, interval, colour, hollow: false, text: short(value) }
    }
}

impl CurvePoint {
    /// An estimate in units of `size`.
    pub fn of(x: f64, estimate: &Estimate, size: f64) -> CurvePoint {
        let interval = (estimate.n > 1).then_some((estimate.low / size, estimate.high / size));
        CurvePoint { x, y: estimate.value / size, interval, hollow: false }
    }
}

impl From<(&str, &str)> for BarSeries {
    fn from((name, colour): (&str, &str)) -> BarSeries {
        BarSeries { name: name.to_string(), colour: colour.to_string() }
    }
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dash {
    /// Without gaps.
    #[default]
    Solid,
    /// Long dashes.
    Dashed,
    /// Dots.
    Dotted,
}

impl Dash {
    /// As the rules of a drawing's style name it.
    pub fn class(self) -> &'static str {
        match self {
            Dash::Solid => "solid",
            Dash::Dashed => "dashed",
            Dash::Dotted => "dotted",
        }
    }
}

/// More points than this in one chart are thinned: nobody sees them, and every page would carry them.
const MOST_POINTS: usize = 3_000;

impl Lines {
    /// The first line of each name.
    pub fn names(&self) -> Vec<&Line> {
        let mut names: Vec<&Line> = Vec::new();
        for line in &self.series {
            if !names.iter().any(|known| known.name == line.name) {
                names.push(line);
            }
        }
        names
    }

    /// The number of consecutive points of which only the highest is drawn.
    pub fn stride(&self) -> usize {
        let all: usize = self.series.iter().flat_map(|line| &line.pieces).map(Vec::len).sum();
        all.div_ceil(MOST_POINTS).max(1)
    }
}

impl Chart {
    /// The notes, and what the drawing leaves out.
    pub fn drawn_notes(&self) -> String {
        let mut notes = self.notes.join(" ");
        if let ChartKind::Lines(lines) = &self.kind
            && lines.stride() > 1
        {
            let stride = lines.stride();
            notes.push_str(&format!(" Of each {stride} points in a row the highest is drawn; the CSV has all."));
        }
        notes
    }

    /// True when there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        match &self.kind {
            ChartKind::Bars(bars) => bars.groups.iter().all(|group| group.bars.is_empty()),
            ChartKind::Lines(lines) => {
                lines.series.iter().all(|line| line.points.is_empty() && line.pieces.iter().all(Vec::is_empty))
            }
        }
    }

    /// Names of what can be shown and hidden, with their colours: each once, in drawing order.
    pub fn toggles(&self) -> Vec<(&str, &str)> {
        match &self.kind {
            ChartKind::Bars(bars) if bars.series.len() < 2 => Vec::new(),
            ChartKind::Bars(bars) => bars.series.iter().map(|s| (s.name.as_str(), s.colour.as_str())).collect(),
            ChartKind::Lines(lines) => lines.names().into_iter().map(|line| (&*line.name, &*line.colour)).collect(),
        }
    }
}
