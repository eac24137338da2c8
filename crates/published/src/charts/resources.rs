//! Draws a document's picture of what a process used during the benchmark: CPU, memory, TCP connections and threads on
//! one axis, for proxy, client and origin. `charts` calls it.

use weir_model::record::{ResourceSecond, Role};
use weir_model::suite::Entry;

use super::{Counterpart, slug};
use crate::context::Context;
use crate::run_cases::RunCase;
use weir_report::charts::axis::{Axis, Scale};
use weir_report::charts::{Chart, ChartKind, Dash, Line, Lines, Points, note_broken, placed};
use weir_report::run::{BASELINE, Broken};
use weir_report::series;

/// Seconds between two cases on the joined axis.
const GAP_S: f64 = 1.0;

/// The rows of one case, and its start on the joined axis.
struct Stretch {
    case: String,
    start: f64,
    /// Seconds since the window began, and the row; the host's rows too.
    rows: Vec<(f64, ResourceSecond)>,
}

/// One chart for each role of each product as the document configured it.
pub(super) fn draw(context: &Context<'_>, counterpart: Counterpart<'_>, broken: &mut Vec<Broken>) -> Vec<Chart> {
    let (cases, layout) = (context.cases, counterpart.layout);
    let all = context.document_order(layout.order, |case| layout.holds(case));
    let mut charts = Vec::new();
    for measured in context.source.products.iter().filter(|measured| measured.product != BASELINE) {
        let first = cases.profiles.first().and_then(|profile| cases.entry(&measured.product, profile));
        let Some(entry) = first else { continue };
        let cases = all.iter().filter(|(_, other)| *other == entry).map(|(case, _)| *case);
        let stretches = stretches(context, entry, cases, broken);
        for role in [Role::Proxy, Role::Client, Role::Origin] {
            charts.push(chart(context, counterpart, entry, role, &stretches));
        }
    }
    charts
}

/// The first trial of each case, end to end.
fn stretches<'a>(
    context: &Context<'_>,
    entry: &Entry,
    cases: impl Iterator<Item = &'a RunCase<'a>>,
    broken: &mut Vec<Broken>,
) -> Vec<Stretch> {
    let mut all = Vec::new();
    let mut start = 0.0;
    for case in cases {
        let shown = case.usable_trials(entry);
        let Some((trial, load)) = shown.first().and_then(|trial| Some((trial, trial.measurement.load.as_ref()?)))
        else {
            continue;
        };
        match series::resource_seconds(context.cases.run, trial) {
            Ok(rows) => {
                all.push(Stretch { case: case.name.to_string(), start, rows: placed(trial, rows) });
                start += load.window_s + GAP_S;
            }
            Err(one) => note_broken(broken, one),
        }
    }
    all
}

fn chart(
    context: &Context<'_>,
    counterpart: Counterpart<'_>,
    entry: &Entry,
    role: Role,
    stretches: &[Stretch],
) -> Chart {
    let run = context.cases.run;
    let environment = run.environment.as_ref();
    let memory = environment.map(|environment| environment.memory_bytes as f64).filter(|bytes| *bytes > 0.0);
    let who = role.as_str();
    let rows = || stretches.iter().flat_map(|stretch| &stretch.rows).map(|(_, row)| row);
    let own_sockets = rows().any(|row| row.who == who && row.connections_open.is_some());
    let of_role = |name: &str, colour: &str, value: &dyn Fn(&ResourceSecond) -> Option<f64>| {
        line(stretches, who, name, colour, value)
    };
    let lines = [
        of_role("CPU, %", "#0072b2", &|row| Some((row.cpu_user? + row.cpu_system?) * 100.0)),
        of_role("Memory, %", "#d55e00", &|row| Some(row.rss_bytes? as f64 / memory? * 100.0)),
        if own_sockets {
            of_role("TCP connections", "#009e73", &|row| row.connections_open.map(|n| n as f64))
        } else {
            line(stretches, "host", "TCP connections", "#009e73", &|row| row.tcp_established.map(|n| n as f64))
        },
        of_role("Threads", "#cc79a7", &|row| row.threads.map(|n| n as f64)),
    ];
    // The machine's sockets are shown only beside a role's own lines.
    let seen = [0, 1, 3].iter().any(|place| !lines[*place].pieces.is_empty());
    let series: Vec<Line> = lines.into_iter().filter(|line| seen && !line.pieces.is_empty()).collect();
    let title = run.title_of(&entry.product);
    let of = match role {
        Role::Proxy => format!("{title}, {}", entry.profile),
        Role::Client | Role::Origin => format!("{who} of {title}, {}", entry.profile),
    };
    let first_blocks = "The measured windows of the first block's cases, joined end to end. CPU in per cent of a core, memory \
                        (resident) of the machine's; values of 0 have no place on this axis.";
    Chart {
        name: format!("{}-{}-{}-{who}", counterpart.name(), slug(&entry.product), slug(&entry.profile)),
        title: format!("Performance metrics of process {of}"),
        subtitle: counterpart.subtitle("The original has a linear axis, on which only the connections are seen."),
        alt: format!("CPU, memory, TCP connections and threads of the {who} over time."),
        notes: vec![first_blocks.to_string(), sockets(role, own_sockets).to_string(), context.scaled.to_string()],
        kind: ChartKind::Lines(Lines {
            x: Axis::time(),
            y: Axis { scale: Scale::Log, ..Axis::linear("CPU and memory in %, connections, threads", "") },
            series,
            rules: stretches.iter().map(|stretch| (stretch.start, stretch.case.clone())).collect(),
        }),
    }
}

/// How the connections drawn were counted.
fn sockets(role: Role, own: bool) -> &'static str {
    match role {
        _ if !own => {
            "TCP connections are the machine's, all roles together, both ends of each, as the kernel counts them: this run did \
             not record the role's own."
        }
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

/// What `who` used, as a line with a piece for each case.
fn line(
    stretches: &[Stretch],
    who: &str,
    name: &str,
    colour: &str,
    value: &dyn Fn(&ResourceSecond) -> Option<f64>,
) -> Line {
    let piece = |stretch: &Stretch| -> Points {
        let own = stretch.rows.iter().filter(|(_, row)| row.who == who);
        own.filter_map(|(at, row)| Some((stretch.start + at, value(row).filter(|value| *value > 0.0)?))).collect()
    };
    let pieces = stretches.iter().map(piece).filter(|piece| !piece.is_empty()).collect();
    Line { name: name.to_string(), part: String::new(), colour: colour.to_string(), dash: Dash::Solid, pieces }
}
