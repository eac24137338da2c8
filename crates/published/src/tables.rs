//! The tables that compare published figures with a run: ratios, how far the orders of products agree, which pairs of products
//! stand in another order and why, and the connections that products opened to the origin. [`sections`](crate::sections) puts
//! them into the report.

use weir_model::text::short;
use weir_report::run::BASELINE;
use weir_report::tables::{Cell, Column, RowKind, Table, TableRow};

use super::causes::{CAUSES, Cause, opens, published_errors, was_offered};
use super::context::Context;
use super::facts::{self, MeasuredFacts, Pair};
use super::format::{interval, range};
use super::metrics::{METRICS, Metric, unit_size};
use super::ratios::{Comparison, ComparisonRow, MeasuredFigure, excludes_one};
use super::variant::Variant;

/// What a pair shows for which no cause was found.
const NO_CAUSE: &str = "nothing recorded explains it";

/// Each product of each case under each profile: the published figure, the measured one, and both divided by the best. `None`
/// when nothing was published of the metric.
pub(super) fn ratios(context: &Context<'_>, metric: Metric, all: &[Comparison]) -> Option<Table> {
    let of_metric = || all.iter().filter(|comparison| comparison.metric == metric);
    let unit = of_metric().next()?.rows.first()?.figure.unit.clone();
    let size = unit_size(&unit)?;
    let best = if metric.higher_is_better { "highest" } else { "lowest" };
    let mut columns = vec![
        Column::text("Case"),
        Column::text("Product"),
        Column::text("Profile"),
        Column::number("Published", &unit),
        Column::number("Measured", &unit).with_details(),
        Column::number("Measured / published", "").with_details(),
        Column::number("Published / best", ""),
        Column::number("Measured / best", "").with_details(),
        Column::text("Remark"),
    ];
    let mut rows = Vec::new();
    for comparison in of_metric() {
        for row in &comparison.rows {
            let mut remark = published_remark(context, comparison, row);
            let mut shown: Vec<&MeasuredFigure> = Vec::new();
            for (profile, measured) in context.cases.profiles.iter().zip(&row.measured) {
                let Some(figure) = measured else { continue };
                // A product of one profile stands beside those of each: once is enough where its ratio is the same.
                if !shown.iter().any(|other| other.entry == figure.entry && other.ratio == figure.ratio) {
                    let profile = if row.product == BASELINE { "no proxy" } else { profile };
                    rows.push(ratio_row(comparison, row, Some((profile, figure)), size, std::mem::take(&mut remark)));
                    shown.push(figure);
                }
            }
            if shown.is_empty() {
                rows.push(ratio_row(comparison, row, None, size, remark));
            }
        }
    }
    let unused = |column: usize, empty: &str| rows.iter().all(|row: &TableRow| row.cells[column].main == empty);
    // From the right, so that the places of the others stay.
    let superfluous = [(8, unused(8, "")), (2, context.cases.profiles.len() < 2)];
    for (column, _) in superfluous.into_iter().filter(|(_, superfluous)| *superfluous) {
        columns.remove(column);
        rows.iter_mut().for_each(|row| drop(row.cells.remove(column)));
    }
    Some(Table {
        id: format!("published-{}", metric.name),
        title: format!("{}: published and measured", metric.heading),
        columns,
        rows,
        notes: vec![
            format!(
                "The published figures were measured once each, on other machines, so compare the ratios to the best: the \
                 product with the {best} published figure of the case among those that were run. Measured figures are medians \
                 over blocks and ratios are medians of ratios within blocks, with their intervals."
            ),
            context.scaled.to_string(),
        ],
    })
}

fn ratio_row(
    comparison: &Comparison,
    row: &ComparisonRow,
    measured: Option<(&str, &MeasuredFigure)>,
    size: f64,
    remark: String,
) -> TableRow {
    let estimate = |value: f64, detail: String, mark: &str| Cell {
        detail,
        ..Cell::number(format!("{}{mark}", short(value)), value)
    };
    let mut cells = vec![
        Cell::text(comparison.label()),
        Cell::text(&row.title),
        measured.map_or_else(Cell::none, |(profile, _)| Cell::text(profile)),
        Cell::number(short(row.published / size), row.published),
    ];
    cells.extend(match measured {
        None => [Cell::none(), Cell::none()],
        Some((_, figure)) => {
            let of = &figure.estimate;
            let mark = if figure.invalid { " invalid" } else { "" };
            [
                estimate(of.value / size, interval(of, size), mark),
                estimate(of.value / row.published, interval(of, row.published), ""),
            ]
        }
    });
    cells.push(row.published_ratio.map_or_else(Cell::none, |ratio| Cell::number(short(ratio), ratio)));
    let ratio = measured.and_then(|(_, figure)| figure.ratio);
    cells.push(ratio.map_or_else(Cell::none, |ratio| estimate(ratio.value, interval(&ratio, 1.0), "")));
    cells.push(Cell::text(remark));
    let invalid = measured.is_some_and(|(_, figure)| figure.invalid);
    TableRow { kind: if invalid { RowKind::Unranked } else { RowKind::Plain }, cells }
}

/// What the document says that makes a figure no measure of the product, or that a reader must know.
fn published_remark(context: &Context<'_>, comparison: &Comparison, row: &ComparisonRow) -> String {
    let facts = facts::published(context.source, &comparison.case, &row.product, &comparison.variant);
    let offered = was_offered(&facts).filter(|_| comparison.metric == METRICS[0]);
    let parts = [
        offered.map(|rate| format!("only {}/s were offered", short(rate))),
        published_errors(&facts),
        facts.nice.map(|nice| format!("lower scheduling priority (nice {nice})")),
        Some(row.figure.remark.clone()).filter(|remark| !remark.is_empty()),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join("; ")
}

/// Kendall's tau of each metric and case.
pub(super) fn agreement(context: &Context<'_>, all: &[Comparison]) -> Option<Table> {
    let profiles = &context.cases.profiles;
    let mut columns = vec![Column::text("Metric"), Column::text("Case"), Column::number("Products", "")];
    columns.extend(profiles.iter().map(|name| Column::number(&format!("Kendall's tau, {name}"), "").with_details()));
    let mut rows = Vec::new();
    for metric in METRICS {
        // Of each profile: pairs, those in another order, and of these those that an interval is sure of.
        let mut sums = vec![(0, 0, 0); profiles.len()];
        let before = rows.len();
        for comparison in all.iter().filter(|comparison| comparison.metric == metric) {
            let agreements: Vec<_> = (0..profiles.len()).map(|profile| comparison.agreement(profile)).collect();
            if agreements.iter().all(|agreement| agreement.tau.is_none()) {
                continue;
            }
            let products = agreements.iter().map(|agreement| agreement.products).max().unwrap_or(0);
            let count = Cell::number(products.to_string(), products as f64);
            let mut cells = vec![Cell::text(metric.heading), Cell::text(comparison.label()), count];
            for ((profile, agreement), sum) in agreements.iter().enumerate().zip(&mut sums) {
                let sure = |rows: &&(usize, usize)| comparison.ratio(profile, **rows).is_some_and(|r| excludes_one(&r));
                let (pairs, opposite) = (agreement.pairs, agreement.opposite.len());
                let sure = agreement.opposite.iter().filter(sure).count();
                cells.push(tau_cell(agreement.tau, (pairs, opposite, sure)));
                *sum = (sum.0 + pairs, sum.1 + opposite, sum.2 + sure);
            }
            rows.push(TableRow { kind: RowKind::Plain, cells });
        }
        if rows.len() > before + 1 {
            let mut cells = vec![Cell::text(metric.heading), Cell::text("all of them"), Cell::none()];
            cells.extend(sums.into_iter().map(|sum| {
                // Over the pairs within all cases together: products of different cases are no pair.
                let tau = (sum.0 > 0).then(|| (sum.0 as f64 - 2.0 * sum.1 as f64) / sum.0 as f64);
                tau_cell(tau, sum)
            }));
            rows.push(TableRow { kind: RowKind::Plain, cells });
        }
    }
    (!rows.is_empty()).then(|| Table {
        id: "published-agreement".to_string(),
        title: "How far the order of products agrees with the published one".to_string(),
        columns,
        rows,
        notes: vec![
            "Kendall's tau is 1 where products stand in the published order and -1 where they stand in the reverse order. In \
             brackets: the pairs of products in the published order, of all pairs, and how many of the others have an interval \
             that excludes the published order. The direct path and what is invalid are left out; only products of the same \
             case are a pair."
                .to_string(),
            context.scaled.to_string(),
        ],
    })
}

/// "-0.333 (1 of 3, 2 excluded)".
fn tau_cell(tau: Option<f64>, (pairs, opposite, sure): (usize, usize, usize)) -> Cell {
    let Some(tau) = tau else { return Cell::none() };
    let excluded = if opposite > 0 { format!(", {sure} excluded") } else { String::new() };
    Cell { detail: format!("{} of {pairs}{excluded}", pairs - opposite), ..Cell::number(short(tau), tau) }
}

/// Each pair of products that stands in another order than published, with its ratios and what is recorded of why; those first
/// that an interval is sure of.
pub(super) fn other_order(context: &Context<'_>, all: &[Comparison]) -> Vec<Table> {
    let several = context.cases.profiles.len() > 1;
    let mut columns = vec![
        Column::text("Published ahead"),
        Column::text("Published behind"),
        Column::text("Metric"),
        Column::text("Case"),
        Column::text("Profile"),
        Column::number("Published ratio", ""),
        Column::number("Measured ratio", "").with_details(),
        Column::text("Published order excluded"),
        Column::text("Causes"),
    ];
    let mut rows = Vec::new();
    let mut used = [false; CAUSES.len()];
    for comparison in all {
        for (number, profile) in context.cases.profiles.iter().enumerate() {
            for places in comparison.agreement(number).opposite {
                // Products that both ran under another profile only are listed with that one.
                let pair = facts::pair(context, comparison, number, places);
                let Some(pair) = pair.filter(|pair| pair.has_profile(profile)) else { continue };
                rows.push((pair.is_sure(), pair_row(&pair, comparison, profile, &mut used)));
            }
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    rows.sort_by_key(|(sure, _)| !sure);
    let mut rows: Vec<TableRow> = rows.into_iter().map(|(_, row)| row).collect();
    if !several {
        columns.remove(4);
        rows.iter_mut().for_each(|row| drop(row.cells.remove(4)));
    }
    let causes = CAUSES.iter().zip(used).filter(|(_, used)| *used);
    let meaning = |cause: &Cause| vec![Cell::text(cause.id), Cell::text(cause.meaning)];
    let pairs = Table {
        id: "published-other-order".to_string(),
        title: "Pairs of products in another order than published".to_string(),
        columns,
        rows,
        notes: vec![
            "Ratios are of the product published ahead to the one behind. The published order is excluded where the interval of \
             the measured ratio does not include it. Causes are what the document or the records of this run show, with the \
             evidence in brackets; they need not be the whole reason."
                .to_string(),
            context.scaled.to_string(),
        ],
    };
    let meanings = Table {
        id: "published-causes".to_string(),
        title: "What the causes mean".to_string(),
        columns: vec![Column::text("Cause"), Column::text("Meaning")],
        rows: causes.map(|(cause, _)| TableRow { kind: RowKind::Plain, cells: meaning(cause) }).collect(),
        notes: Vec::new(),
    };
    if meanings.rows.is_empty() { vec![pairs] } else { vec![pairs, meanings] }
}

fn pair_row(pair: &Pair, comparison: &Comparison, profile: &str, used: &mut [bool; CAUSES.len()]) -> TableRow {
    let mut causes: Vec<String> = Vec::new();
    for (cause, used) in CAUSES.iter().zip(used) {
        if let Some(evidence) = (cause.find)(pair) {
            *used = true;
            causes.push(if evidence.is_empty() { cause.id.to_string() } else { format!("{} ({evidence})", cause.id) });
        }
    }
    let measured = pair.measured_ratio.map_or_else(Cell::none, |ratio| Cell {
        detail: interval(&ratio, 1.0),
        ..Cell::number(short(ratio.value), ratio.value)
    });
    let cells = vec![
        Cell::text(&pair.ahead.title),
        Cell::text(&pair.behind.title),
        Cell::text(pair.metric.heading),
        Cell::text(comparison.label()),
        Cell::text(profile),
        Cell::number(short(pair.published_ratio), pair.published_ratio),
        measured,
        Cell::text(if pair.is_sure() { "yes" } else { "no" }),
        Cell::text(if causes.is_empty() { NO_CAUSE.to_string() } else { causes.join("; ") }),
    ];
    TableRow { kind: RowKind::Plain, cells }
}

/// How often each product opened a connection to the origin, from the origin's counters, and what a request cost it; `None`
/// where no product opened connections for requests.
pub(super) fn origin_connections(context: &Context<'_>) -> Option<Table> {
    let mut rows = Vec::new();
    let mut any = false;
    for product in context.source.products.iter().filter(|product| product.product != BASELINE) {
        for entry in context.cases.entries(&product.product) {
            let measured = |case| facts::measured(case, Variant::Whole, entry);
            let of_cases: Vec<MeasuredFacts> = context.cases.cases().iter().filter_map(measured).collect();
            let values = |value: &dyn Fn(&MeasuredFacts) -> Option<f64>| {
                let values: Vec<f64> = of_cases.iter().filter_map(value).collect();
                let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                if values.is_empty() { Cell::none() } else { Cell::number(range(&values), most) }
            };
            let opened = |facts: &MeasuredFacts| facts.connections_per_request.map(|each| (each * 100.0).min(100.0));
            let often = of_cases.iter().any(|facts| opens(facts).is_some());
            any |= often;
            if of_cases.iter().any(|facts| opened(facts).is_some()) {
                let cells = vec![
                    Cell::text(context.cases.run.title_of(&product.product)),
                    Cell::text(&entry.profile),
                    values(&opened),
                    values(&|facts| facts.cpu_us),
                    values(&|facts| facts.cores_busy),
                ];
                rows.push(TableRow { kind: if often { RowKind::Marked } else { RowKind::Plain }, cells });
            }
        }
    }
    any.then(|| Table {
        id: "published-origin-connections".to_string(),
        title: "Connections that products opened to the origin".to_string(),
        columns: vec![
            Column::text("Product"),
            Column::text("Profile"),
            Column::number("Connections", "per 100 requests"),
            Column::number("CPU", "\u{b5}s/request"),
            Column::number("Cores busy", ""),
        ],
        rows,
        notes: vec![
            "From the origin's own counters; from the least to the most of all cases. A product that opens a connection for a \
             request pays for it in CPU time, and so does the origin. Where cores were left idle, the rate does not show that \
             price, and the CPU time does. Profiles may differ in more than this, see the configurations."
                .to_string(),
            context.scaled.to_string(),
        ],
    })
}
