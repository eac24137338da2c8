//! Curves over the number of routes: the workloads of a suite that differ in it alone, under one load.

use weir_model::gateway::RouteKey;
use weir_model::suite::{Entry, Workload};
use weir_model::text::{Unit, grouped, short};
use weir_stats::Estimate;

use super::products::better;
use super::style;
use crate::charts::axis::{Axis, Scale};
use crate::charts::{Chart, ChartKind, CurvePoint, Line, Lines};
use crate::palette::Style;
use crate::run::Run;
use crate::summary::{Metric, Row, Section, Summary};

/// A quantity that is drawn over the number of routes.
struct Quantity {
    /// The end of the file's name.
    stem: &'static str,
    name: &'static str,
    unit: Unit,
    /// A metric of which as much or as little is better.
    like: Metric,
    scale: Scale,
    of: fn(&Row) -> Option<Estimate>,
}

const QUANTITIES: [Quantity; 3] = [
    Quantity {
        stem: "rate",
        name: "Requests a second",
        unit: Unit::PER_SECOND,
        like: Metric::Rate,
        scale: Scale::Linear,
        of: |row| row.of(Metric::Rate),
    },
    // Some products need fifty times the CPU time and memory of others.
    Quantity {
        stem: "cost",
        name: "CPU time of the proxy",
        unit: Unit::MICROS_PER_REQUEST,
        like: Metric::Cpu,
        scale: Scale::Log,
        of: |row| row.of(Metric::Cpu),
    },
    Quantity {
        stem: "memory",
        name: "Memory of the proxy",
        unit: Unit::MEBIBYTES,
        like: Metric::Cpu,
        scale: Scale::Log,
        of: |row| row.memory.map(|memory| memory.bytes),
    },
];

/// A chart of each kind for each load and kind of route, where workloads have different numbers of routes.
pub fn over_routes(run: &Run, summary: &Summary) -> Vec<Chart> {
    let of_routes = summary.sections.iter().filter_map(|section| {
        let workload = run.suite.workload(&section.workload).filter(|workload| is_uniform(workload))?;
        let (routes, key) = workload.gateway.routes.zip(workload.gateway.route_key())?;
        Some(((section.load.as_str(), key), (routes, section)))
    });
    let mut charts = Vec::new();
    for ((load, key), mut sections) in grouped(of_routes) {
        sections.sort_by_key(|(routes, _)| *routes);
        if sections.len() > 1 {
            charts.extend(QUANTITIES.iter().map(|quantity| chart(run, load, key, &sections, quantity)));
        }
    }
    charts.retain(|chart| !chart.is_empty());
    charts
}

/// True if its requests reach the origin, by any route as often as by any other.
fn is_uniform(workload: &Workload) -> bool {
    workload.gateway.route_choice.is_none() && !workload.by_product
}

fn chart(run: &Run, load: &str, key: RouteKey, sections: &[(u32, &Section)], quantity: &Quantity) -> Chart {
    let Quantity { stem, name, unit, like, scale, of } = quantity;
    let by = match key {
        RouteKey::Path => "path",
        RouteKey::Host => "host",
    };
    let rows = sections.iter().flat_map(|(routes, section)| section.rows.iter().map(|row| (*routes, row)));
    let line = |(entry, rows): (&Entry, Vec<(u32, &Row)>)| {
        let Style { colour, dash } = style(run, entry);
        let point = |(routes, row): &(u32, &Row)| {
            let point = CurvePoint::of(f64::from(*routes), &of(row)?, unit.size);
            Some(CurvePoint { hollow: row.rank.is_none(), ..point })
        };
        let points = rows.iter().filter_map(point).collect();
        Line { name: rows[0].1.label.clone(), colour, dash, points, ..Line::default() }
    };
    let mut lines: Vec<Line> =
        grouped(rows.map(|(routes, row)| (&row.entry, (routes, row)))).into_iter().map(line).collect();
    lines.retain(|line| !line.points.is_empty());
    Chart {
        name: format!("routes-{by}-{load}-{stem}"),
        title: format!("{name} over routes by {by}"),
        subtitle: format!("{} {}", better(*like), sections[0].1.load_title),
        alt: format!("{name} over routes by {by}: {}.", words(&lines, *unit)),
        notes: vec![
            "Points are medians over blocks, whiskers their intervals; an empty point is not ranked.".to_owned(),
            "Each request takes a route at random, so with more routes fewer requests take the same one.".to_owned(),
        ],
        kind: ChartKind::Lines(Lines {
            x: Axis { scale: Scale::Log, ..Axis::linear("Routes", "") },
            y: Axis { scale: *scale, ..Axis::linear(name, unit.name) },
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
