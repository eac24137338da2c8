//! Curves over the number of routes: the workloads of a suite that differ in it alone, under one load.

use weir_model::gateway::RouteKey;
use weir_model::suite::Workload;
use weir_model::text::{Unit, grouped, short};
use weir_stats::Estimate;

use super::products::better;
use super::style;
use crate::charts::axis::{Axis, Scale};
use crate::charts::{Chart, ChartKind, CurvePoint, Line, Lines};
use crate::palette::Style;
use crate::run::Run;
use crate::summary::{Metric, Row, Section, Summary};

/// A quantity over the number of routes: stem of the file, name, unit, and the estimate of a row.
type Drawn = (&'static str, &'static str, Unit, fn(&Row) -> Option<Estimate>);

const DRAWN: [Drawn; 3] = [
    ("rate", "Requests a second", Unit::PER_SECOND, |row| row.of(Metric::Rate)),
    ("cost", "CPU time of the proxy", Unit::MICROS_PER_REQUEST, |row| row.of(Metric::Cpu)),
    ("memory", "Memory of the proxy", Unit::MEBIBYTES, |row| row.memory.map(|memory| memory.bytes)),
];

/// A chart of each kind for each load and kind of route, where workloads have different numbers of routes.
pub fn over_routes(run: &Run, summary: &Summary) -> Vec<Chart> {
    let of_routes = summary.sections.iter().filter_map(|section| {
        let workload = run.suite.workload(&section.workload).filter(|workload| is_uniform(workload))?;
        let routes = workload.gateway.routes?;
        Some(((section.load.as_str(), workload.gateway.route_by.unwrap_or_default()), (routes, section)))
    });
    let mut charts = Vec::new();
    for ((load, key), mut sections) in grouped(of_routes) {
        sections.sort_by_key(|(routes, _)| *routes);
        if sections.len() > 1 {
            charts.extend(DRAWN.iter().map(|drawn| chart(run, load, key, &sections, drawn)));
        }
    }
    charts.retain(|chart| !chart.is_empty());
    charts
}

/// True if its requests reach the origin, by any route as often as by any other.
fn is_uniform(workload: &Workload) -> bool {
    workload.gateway.route_choice.is_none() && !workload.by_product
}

fn chart(run: &Run, load: &str, key: RouteKey, sections: &[(u32, &Section)], drawn: &Drawn) -> Chart {
    let (stem, name, unit, of) = drawn;
    let by = match key {
        RouteKey::Path => "path",
        RouteKey::Host => "host",
    };
    let rows = || sections.iter().flat_map(|(_, section)| &section.rows);
    let entries = grouped(rows().map(|row| (&row.entry, row))).into_iter();
    let lines: Vec<Line> = entries
        .map(|(entry, rows)| {
            let Style { colour, dash } = style(run, entry);
            let point = |(routes, section): &(u32, &Section)| {
                let row = section.rows.iter().find(|row| row.entry == *entry)?;
                let point = CurvePoint::of(f64::from(*routes), &of(row)?, unit.size);
                Some(CurvePoint { hollow: row.rank.is_none(), ..point })
            };
            let label = rows[0].label.clone();
            Line { name: label, colour, dash, points: sections.iter().filter_map(point).collect(), ..Line::default() }
        })
        .filter(|line| !line.points.is_empty())
        .collect();
    let direction = if *stem == "rate" { better(Metric::Rate) } else { better(Metric::Cpu) };
    Chart {
        name: format!("routes-{by}-{load}-{stem}"),
        title: format!("{name} over routes by {by}"),
        subtitle: format!("{direction} {}", sections[0].1.load_title),
        alt: format!("{name} over routes by {by}: {}.", words(&lines, *unit)),
        notes: vec![
            "Points are medians over blocks, whiskers their intervals; an empty point is not ranked.".to_owned(),
            "Each request takes a route at random, so with more routes fewer requests take the same one.".to_owned(),
        ],
        kind: ChartKind::Lines(Lines {
            x: Axis { scale: Scale::Log, ..Axis::linear("Routes", "") },
            // Some products need fifty times the CPU time and memory of others.
            y: Axis {
                scale: if *stem == "rate" { Scale::Linear } else { Scale::Log },
                ..Axis::linear(name, unit.name)
            },
            series: lines,
            rules: Vec::new(),
            csv_only: Vec::new(),
            ideal: None,
        }),
    }
}

/// "nginx 41,000 requests/s at first, 12,000 at last".
fn words(lines: &[Line], unit: Unit) -> String {
    let of_line = |line: &Line| {
        let (first, last) = line.points.first().zip(line.points.last())?;
        Some(format!("{} {} {} at first, {} at last", line.name, short(first.y), unit.name, short(last.y)))
    };
    lines.iter().filter_map(of_line).collect::<Vec<_>>().join("; ")
}
