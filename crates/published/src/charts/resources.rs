//! Draws a document's pictures of what a process used during the benchmark, for proxy, client and origin: CPU, memory, TCP connections and
//! threads on one axis, and each on an axis of its own.

use weir_model::record::{ResourceSecond, Role};
use weir_model::suite::Entry;

use super::{Counterpart, folded, shown, slug};
use crate::layout::holds;
use crate::run_cases::{Context, RunCase};
use weir_report::charts::axis::{Axis, Scale};
use weir_report::charts::{Chart, ChartKind, Line, Points, note_broken, placed};
use weir_report::extra::Item;
use weir_report::run::{BASELINE, Broken, Trial};
use weir_report::series;

/// Seconds between two starts of a product on the joined axis.
const GAP_S: f64 = 1.0;

/// The rows of one case, and its start on the joined axis.
struct Stretch {
    case: String,
    start: f64,
    /// Seconds since the window began, and the row; the host's rows too.
    rows: Vec<(f64, ResourceSecond)>,
}

/// The cases of an entry in time.
struct Course {
    stretches: Vec<Stretch>,
    /// One start of the product for all of them.
    kept: bool,
}

/// What a process used, one thing at a time: its name, the unit, and its colour.
const MEASURES: [(&str, &str, &str); 4] = [
    ("CPU", "%", "#0072b2"),
    ("Memory", "%", "#d55e00"),
    ("TCP connections", "", "#009e73"),
    ("Threads", "", "#cc79a7"),
];

/// A measure of a row; `None` where it was not recorded.
type Value<'v> = &'v dyn Fn(&ResourceSecond) -> Option<f64>;

/// For each role of each product as the document configured it: one chart with everything, and one for each thing.
pub(super) fn draw(counterpart: Counterpart<'_>, broken: &mut Vec<Broken>) -> Vec<Item> {
    let Counterpart { context, layout, .. } = counterpart;
    let cases = context.cases;
    let all = context.document_order(layout.order, |case| holds(&layout.cases, case));
    let mut charts = Vec::new();
    let mut single = Vec::new();
    for measured in context.source.products.iter().filter(|measured| measured.product != BASELINE) {
        let first = cases.profiles.first().and_then(|profile| cases.entry(&measured.product, profile));
        let Some(entry) = first else { continue };
        let cases: Vec<&RunCase<'_>> = all.iter().filter(|(_, other)| *other == entry).map(|(case, _)| *case).collect();
        let course = course(context, entry, &cases, broken);
        for role in [Role::Proxy, Role::Client, Role::Origin] {
            let own = Own::of(context, entry, role, &course);
            charts.push(own.together(counterpart));
            single.extend((0..MEASURES.len()).map(|place| own.alone(counterpart, place)));
        }
    }
    let each = "CPU, memory, TCP connections and threads of each role and product, each in a picture of its own";
    shown(charts).into_iter().chain(folded(each.to_string(), single)).collect()
}

/// One trial of each case: of the start that most of them share, where products were kept, else the first.
fn trial_of_each<'a>(entry: &Entry, cases: &[&'a RunCase<'a>]) -> Vec<(&'a str, &'a Trial)> {
    let since = |trial: &Trial| trial.measurement.kept.map(|kept| kept.since);
    let starts: Vec<Option<u32>> = cases.iter().flat_map(|case| case.usable_trials(entry)).map(since).collect();
    let often = |start: &Option<u32>| starts.iter().filter(|other| *other == start).count();
    // Of several the first.
    let common = starts.iter().copied().flatten().rev().max_by_key(|start| often(&Some(*start)));
    let trial = |case: &&'a RunCase<'a>| {
        let shown = case.usable_trials(entry);
        let of_common = shown.iter().copied().find(|trial| common.is_some() && since(trial) == common);
        Some((case.name, of_common.or_else(|| shown.first().copied())?))
    };
    cases.iter().filter_map(trial).collect()
}

/// The cases in time: those of one start as they came, starts end to end.
fn course<'a>(context: &Context<'_>, entry: &Entry, cases: &[&'a RunCase<'a>], broken: &mut Vec<Broken>) -> Course {
    let trials = trial_of_each(entry, cases);
    let mut stretches = Vec::new();
    let mut end = 0.0;
    let mut before: Option<(u32, u64, f64)> = None;
    let since = |trial: &Trial| trial.measurement.kept.map(|kept| kept.since);
    let kept = trials.len() > 1
        && trials.windows(2).all(|two| since(two[0].1).is_some() && since(two[0].1) == since(two[1].1));
    for (case, trial) in trials {
        let Some(load) = trial.measurement.load.as_ref() else { continue };
        let start = match (before, since(trial)) {
            (Some((start, begun_ms, at)), Some(own)) if start == own && load.window_start_ms >= begun_ms => {
                at + (load.window_start_ms - begun_ms) as f64 / 1_000.0
            }
            _ => end,
        };
        match series::resource_seconds(context.cases.run, trial) {
            Ok(rows) => {
                stretches.push(Stretch { case: case.to_string(), start, rows: placed(trial, rows) });
                end = start + load.window_s + GAP_S;
                before = since(trial).map(|since| (since, load.window_start_ms, start));
            }
            Err(one) => note_broken(broken, one),
        }
    }
    Course { stretches, kept }
}

/// What one role used.
struct Own<'a> {
    context: &'a Context<'a>,
    entry: &'a Entry,
    role: Role,
    course: &'a Course,
    /// In the order of [`MEASURES`].
    lines: Vec<Line>,
}

impl<'a> Own<'a> {
    fn of(context: &'a Context<'a>, entry: &'a Entry, role: Role, course: &'a Course) -> Own<'a> {
        let environment = context.cases.run.environment.as_ref();
        let memory = environment.map(|environment| environment.memory_bytes as f64).filter(|bytes| *bytes > 0.0);
        let values: [Value<'_>; 4] = [
            &|row| Some((row.cpu_user? + row.cpu_system?) * 100.0),
            &|row| Some(row.rss_bytes? as f64 / memory? * 100.0),
            &|row| row.connections_open.map(|n| n as f64),
            &|row| row.threads.map(|n| n as f64),
        ];
        let lines = values.iter().zip(MEASURES).map(|(value, measure)| line(&course.stretches, role, measure, value));
        Own { context, entry, role, course, lines: lines.collect() }
    }

    /// Everything on one axis, as the document has it.
    fn together(&self, counterpart: Counterpart<'_>) -> Chart {
        let mut series: Vec<Line> = self.lines.iter().filter(|line| !line.pieces.is_empty()).cloned().collect();
        for line in &mut series {
            let unit = MEASURES.iter().find(|(name, ..)| *name == line.name).map_or("", |(_, unit, _)| unit);
            line.name.push_str(if unit.is_empty() { "" } else { ", " });
            line.name.push_str(unit);
            line.pieces.iter_mut().for_each(|piece| piece.retain(|(_, value)| *value > 0.0));
        }
        let how =
            "CPU in per cent of a core, memory (resident) of the machine's; values of 0 have no place on this axis.";
        Chart {
            name: self.name(&counterpart.name()),
            title: format!("Performance metrics of process {}", self.process()),
            subtitle: counterpart.subtitle("The original has a linear axis, on which only the connections are seen."),
            alt: format!("CPU, memory, TCP connections and threads of the {} over time.", self.role.as_str()),
            notes: self.notes(&[how, sockets(self.role)]),
            kind: self.over_time(
                Axis { scale: Scale::Log, ..Axis::linear("CPU and memory in %, connections, threads", "") },
                series,
            ),
        }
    }

    /// One thing alone, from 0.
    fn alone(&self, counterpart: Counterpart<'_>, place: usize) -> Chart {
        let (what, unit, _) = MEASURES[place];
        let how = match place {
            0 => "In per cent of a core.",
            1 => "Resident, in per cent of the machine's.",
            2 => sockets(self.role),
            _ => "All processes of the role together.",
        };
        let series = Some(self.lines[place].clone()).filter(|line| !line.pieces.is_empty());
        Chart {
            name: self.name(&format!("{}-{}", counterpart.name(), slug(what))),
            title: format!("{what} of process {}", self.process()),
            subtitle: String::new(),
            alt: format!("{what} of the {} over time.", self.role.as_str()),
            notes: self.notes(&[how]),
            kind: self.over_time(Axis::linear(what, unit), series.into_iter().collect()),
        }
    }

    fn over_time(&self, y: Axis, series: Vec<Line>) -> ChartKind {
        let rules = self.course.stretches.iter().map(|stretch| (stretch.start, stretch.case.clone())).collect();
        ChartKind::lines(Axis::time(), y, series, rules)
    }

    fn name(&self, stem: &str) -> String {
        format!("{stem}-{}-{}-{}", slug(&self.entry.product), slug(&self.entry.profile), self.role.as_str())
    }

    fn process(&self) -> String {
        let title = self.context.cases.run.title_of(&self.entry.product);
        match self.role {
            Role::Proxy => format!("{title}, {}", self.entry.profile),
            Role::Client | Role::Origin => format!("{} of {title}, {}", self.role.as_str(), self.entry.profile),
        }
    }

    fn notes(&self, own: &[&str]) -> Vec<String> {
        let windows = if self.course.kept {
            "The measured windows of one start of product and origin, which were kept from case to case, as they came: what lies \
             between them, the warm-up too, is not drawn."
        } else {
            "The measured windows of the first block's cases, joined end to end; the product was started for each."
        };
        [windows].iter().chain(own).map(|text| (*text).to_string()).chain([self.context.scaled.to_string()]).collect()
    }
}

/// How the connections drawn were counted.
fn sockets(role: Role) -> &'static str {
    match role {
        Role::Client => {
            "TCP connections are the client's own, as its threads count what they open and close, at each second's end."
        }
        Role::Origin => {
            "TCP connections are the origin's own: it was asked how many it has open when each second ended."
        }
        Role::Proxy => {
            "TCP connections are those that client and origin said that they have open with the proxy, added up, at each \
             second's end."
        }
    }
}

/// A role's use of a thing of [`MEASURES`], as a line with a piece for each case.
fn line(stretches: &[Stretch], role: Role, (name, _, colour): (&str, &str, &str), value: Value<'_>) -> Line {
    let mut pieces: Vec<Points> = Vec::new();
    for stretch in stretches {
        let own = stretch.rows.iter().filter(|(_, row)| row.who == role.as_str());
        pieces.push(own.filter_map(|(at, row)| Some((stretch.start + at, value(row)?))).collect());
    }
    pieces.retain(|piece| !piece.is_empty());
    Line { name: name.to_string(), colour: colour.to_string(), pieces, ..Line::default() }
}
