//! Builds the tables that compare published figures with a run: ratios, how far the orders of products agree, pairs of
//! products in another order with possible causes, and the connections that products opened to the origin.
//! [`sections`](crate::sections) calls it.

use weir_model::metric::Metric;
use weir_model::text::short;
use weir_report::run::BASELINE;
use weir_report::tables::{Cell, Column, RowKind, Table, TableRow};
use weir_stats::Estimate;

use super::causes::{CAUSES, Cause, opens, published_errors, was_offered};
use super::context::Context;
use super::facts::{self, MeasuredFacts, Pair};
use super::format::{estimate_cell, range};
use super::metrics::{METRICS, heading, name, unit_size};
use super::ratios::{Comparison, ComparisonRow, excludes_one, ratio};
use super::variant::Variant;

/// The text for a pair without a known cause.
const NO_CAUSE: &str = "nothing recorded explains it";

/// Each product of each case under each profile: the published figure, the measured one, and both divided by the best.
/// `None` when no figure of the metric was published.
pub(super) fn ratios(context: &Context<'_>, metric: Metric, all: &[Comparison]) -> Option<Table> {
    let of_metric = || all.iter().filter(|comparison| comparison.metric == metric);
    let unit = of_metric().next()?.rows.first()?.figure.unit.clone();
    let size = unit_size(&unit)?;
    let best = if metric.higher_is_better() { "highest" } else { "lowest" };
    let rows = of_metric().flat_map(|comparison| {
        comparison.rows.iter().map(move |row| {
            let ratio = |ratio: Option<Estimate>| ratio.map_or_else(Cell::none, |ratio| estimate_cell(&ratio, 1.0));
            let estimate = row.measured.as_ref().map(|own| own.estimate);
            let in_units = |size: f64| estimate.map_or_else(Cell::none, |estimate| estimate_cell(&estimate, size));
            let invalid = row.measured.as_ref().is_some_and(|own| own.invalid);
            let mut measured = in_units(size);
            measured.main.push_str(if invalid { " invalid" } else { "" });
            let profile = if row.product == BASELINE { "no proxy" } else { &comparison.profile };
            let cells = vec![
                Cell::text(comparison.label()),
                Cell::text(profile),
                Cell::text(&row.title),
                Cell::number(short(row.published / size), row.published),
                measured,
                in_units(row.published),
                row.published_ratio.map_or_else(Cell::none, |ratio| Cell::number(short(ratio), ratio)),
                ratio(row.measured.as_ref().and_then(|own| own.ratio)),
                Cell::text(published_remark(context, comparison, row)),
            ];
            TableRow { kind: if invalid { RowKind::Unranked } else { RowKind::Plain }, cells }
        })
    });
    Some(Table {
        id: format!("published-{}", name(metric)),
        title: format!("{}: published and measured", heading(metric)),
        columns: vec![
            Column::text("Case"),
            Column::text("Profile"),
            Column::text("Product"),
            Column::number("Published", &unit),
            Column::number("Measured", &unit).with_details(),
            Column::number("Measured / published", "").with_details(),
            Column::number("Published / best", ""),
            Column::number("Measured / best", "").with_details(),
            Column::text("Remark"),
        ],
        rows: rows.collect(),
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

/// A remark of the document that the figure does not measure the product, or that a reader must know.
fn published_remark(context: &Context<'_>, comparison: &Comparison, row: &ComparisonRow) -> String {
    let facts = facts::published(context.source, &comparison.case, &row.product, &comparison.variant);
    let offered = was_offered(&facts).filter(|_| comparison.metric == Metric::Rate);
    let parts = [
        offered.map(|rate| format!("only {}/s were offered", short(rate))),
        published_errors(&facts),
        facts.nice.map(|nice| format!("lower scheduling priority (nice {nice})")),
        Some(row.figure.remark.clone()).filter(|remark| !remark.is_empty()),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join("; ")
}

/// Kendall's tau of each metric, case and profile.
pub(super) fn agreement(context: &Context<'_>, all: &[Comparison]) -> Option<Table> {
    let row = |metric: Metric, case: String, profile: &str, products: Cell, tau: Option<f64>, sum: [usize; 3]| {
        let [pairs, opposite, sure] = sum;
        let cells = vec![
            Cell::text(heading(metric)),
            Cell::text(case),
            Cell::text(profile),
            products,
            tau.map_or_else(Cell::none, |tau| Cell::number(short(tau), tau)),
            Cell::number(format!("{} of {pairs}", pairs - opposite), (pairs - opposite) as f64),
            Cell::number(format!("{sure} of {opposite}"), sure as f64),
        ];
        TableRow { kind: RowKind::Plain, cells }
    };
    let mut rows = Vec::new();
    for metric in METRICS {
        let mut totals = Vec::new();
        for profile in &context.cases.profiles {
            // Only pairs within a case are counted.
            let (mut sum, mut cases) = ([0; 3], 0);
            for comparison in all.iter().filter(|other| other.metric == metric && other.profile == *profile) {
                let agreement = comparison.agreement();
                let sure = |(a, b): &&(&_, &_)| ratio(a, b).is_some_and(|ratio| excludes_one(&ratio));
                let own = [agreement.pairs, agreement.opposite.len(), agreement.opposite.iter().filter(sure).count()];
                if agreement.tau.is_some() {
                    let products = Cell::number(agreement.products.to_string(), agreement.products as f64);
                    rows.push(row(metric, comparison.label(), profile, products, agreement.tau, own));
                    sum = std::array::from_fn(|i| sum[i] + own[i]);
                    cases += 1;
                }
            }
            if cases > 1 {
                let tau = (sum[0] > 0).then(|| (sum[0] as f64 - 2.0 * sum[1] as f64) / sum[0] as f64);
                totals.push(row(metric, "all of them".to_string(), profile, Cell::none(), tau, sum));
            }
        }
        rows.extend(totals);
    }
    (!rows.is_empty()).then(|| Table {
        id: "published-agreement".to_string(),
        title: "How far the order of products agrees with the published one".to_string(),
        columns: vec![
            Column::text("Metric"),
            Column::text("Case"),
            Column::text("Profile"),
            Column::number("Products", ""),
            Column::number("Kendall's tau", ""),
            Column::number("Pairs in the published order", ""),
            Column::number("Other pairs, published order excluded", ""),
        ],
        rows,
        notes: vec![
            "Kendall's tau is 1 where products stand in the published order and -1 where they stand in the reverse order. The \
             published order of a pair is excluded where the interval of the measured ratio does not include it. The direct \
             path and what is invalid are left out; only products of the same case are a pair."
                .to_string(),
            context.scaled.to_string(),
        ],
    })
}

/// Each pair of products in another order than published, with its ratios and possible causes. Pairs whose order an
/// interval confirms are first.
pub(super) fn other_order(context: &Context<'_>, all: &[Comparison]) -> Vec<Table> {
    let columns = vec![
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
        for opposite in comparison.agreement().opposite {
            // Products that both ran under another profile only are listed with that profile.
            let pair = facts::pair(context, comparison, opposite);
            let Some(pair) = pair.filter(|pair| pair.has_profile(&comparison.profile)) else { continue };
            rows.push((pair.is_sure(), pair_row(&pair, comparison, &mut used)));
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    rows.sort_by_key(|(sure, _)| !sure);
    let causes = CAUSES.iter().zip(used).filter(|(_, used)| *used);
    let meaning = |cause: &Cause| vec![Cell::text(cause.id), Cell::text(cause.meaning)];
    let pairs = Table {
        id: "published-other-order".to_string(),
        title: "Pairs of products in another order than published".to_string(),
        columns,
        rows: rows.into_iter().map(|(_, row)| row).collect(),
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

fn pair_row(pair: &Pair, comparison: &Comparison, used: &mut [bool; CAUSES.len()]) -> TableRow {
    let mut causes: Vec<String> = Vec::new();
    for (cause, used) in CAUSES.iter().zip(used) {
        if let Some(evidence) = (cause.find)(pair) {
            *used = true;
            causes.push(if evidence.is_empty() { cause.id.to_string() } else { format!("{} ({evidence})", cause.id) });
        }
    }
    let cells = vec![
        Cell::text(&pair.ahead.title),
        Cell::text(&pair.behind.title),
        Cell::text(heading(pair.metric)),
        Cell::text(comparison.label()),
        Cell::text(&comparison.profile),
        Cell::number(short(pair.published_ratio), pair.published_ratio),
        pair.measured_ratio.map_or_else(Cell::none, |ratio| estimate_cell(&ratio, 1.0)),
        Cell::text(if pair.is_sure() { "yes" } else { "no" }),
        Cell::text(if causes.is_empty() { NO_CAUSE.to_string() } else { causes.join("; ") }),
    ];
    TableRow { kind: RowKind::Plain, cells }
}

/// How often each product opened a connection to the origin, from the origin's counters, and the cost per request.
/// `None` where no product opened connections for requests.
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
