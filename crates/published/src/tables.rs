//! Builds the tables that compare published figures with a run: ratios, how far the orders of products agree, pairs of products in another
//! order with possible causes, and the connections that products opened to the origin.

use weir_model::metric::Metric;
use weir_model::text::{Unit, extremes, short};
use weir_report::run::BASELINE;
use weir_report::tables::{Cell, Column, RowKind, Table, TableOf, estimate_cell};

use crate::figures::Variant;
use crate::numbers::{METRICS, heading, metric_name, unit_size};
use crate::pairs::{self, CAUSES, Cause, MeasuredFacts, Pair, opens, published_errors, was_offered};
use crate::ratios::{Comparison, ComparisonRow, excludes_one, ratio};
use crate::run_cases::Context;

/// Each product of each case under each profile: the published figure, the measured one, and both divided by the best.
/// `None` when no figure of the metric was published.
pub(super) fn ratios(context: &Context<'_>, metric: Metric, all: &[Comparison]) -> Option<Table> {
    let of_metric = || all.iter().filter(|comparison| comparison.metric == metric);
    let unit = of_metric().next()?.rows.first()?.figure.unit.clone();
    let size = unit_size(&unit)?;
    let best = if metric.higher_is_better() { "highest" } else { "lowest" };
    let rows: Vec<(&Comparison, &ComparisonRow)> =
        of_metric().flat_map(|comparison| comparison.rows.iter().map(move |row| (comparison, row))).collect();
    let invalid = |row: &ComparisonRow| row.measured.as_ref().is_some_and(|own| own.invalid);
    let measured = |row: &ComparisonRow, size: f64| {
        estimate_cell(row.measured.as_ref().map(|own| own.estimate), Unit { name: "", size })
    };
    let mut table = TableOf::<(&Comparison, &ComparisonRow)>::new();
    table.add(Column::text("Case"), |(comparison, _)| comparison.label());
    table.add(Column::text("Profile"), |(comparison, row)| {
        if row.product == BASELINE { "no proxy".to_string() } else { comparison.profile.clone() }
    });
    table.add(Column::text("Product"), |(_, row)| row.title.clone());
    table.add(Column::number("Published", &unit), move |(_, row)| {
        Cell::number(short(row.published / size), row.published)
    });
    table.add(Column::number("Measured", &unit).with_details(), move |(_, row)| {
        let mut cell = measured(row, size);
        cell.main.push_str(if invalid(row) { " invalid" } else { "" });
        cell
    });
    let column = Column::number("Measured / published", "").with_details();
    table.add(column, move |(_, row)| measured(row, row.published));
    table.add(Column::number("Published / best", ""), |(_, row)| row.published_ratio.map(Cell::short));
    table.add(Column::number("Measured / best", "").with_details(), |(_, row)| {
        estimate_cell(row.measured.as_ref().and_then(|own| own.ratio), Unit::NONE)
    });
    table.add(Column::text("Remark"), |(comparison, row)| published_remark(context, comparison, row));
    let kind = |(_, row): &(&Comparison, &ComparisonRow)| if invalid(row) { RowKind::Unranked } else { RowKind::Plain };
    let title = format!("{}: published and measured", heading(metric));
    let note = format!(
        "The published figures were measured once each, on other machines, so compare the ratios to the best: the product with the \
         {best} published figure of the case among those that were run. Measured figures are medians over blocks and ratios are \
         medians of ratios within blocks, with their intervals."
    );
    Some(
        table
            .table(format!("published-{}", metric_name(metric)), title, &rows, kind)
            .with_notes([note.as_str(), context.scaled]),
    )
}

/// A remark of the document that the figure does not measure the product, or that a reader must know.
fn published_remark(context: &Context<'_>, comparison: &Comparison, row: &ComparisonRow) -> String {
    let facts = pairs::published(context.source, &comparison.case, &row.product, &comparison.variant);
    let offered = was_offered(&facts).filter(|_| comparison.metric == Metric::Rate);
    let parts = [
        offered.map(|rate| format!("only {}/s were offered", short(rate))),
        published_errors(&facts),
        facts.nice.map(|nice| format!("lower scheduling priority (nice {nice})")),
        Some(row.figure.remark.clone()).filter(|remark| !remark.is_empty()),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join("; ")
}

/// How far the order of the products of a case agrees with the published one, or of all cases together.
struct Agreement<'a> {
    metric: Metric,
    case: String,
    profile: &'a str,
    /// `None` of all cases together.
    products: Option<usize>,
    tau: Option<f64>,
    pairs: usize,
    opposite: usize,
    /// Pairs in opposite order whose published order the measured ratio excludes.
    sure: usize,
}

/// Kendall's tau of each metric, case and profile.
pub(super) fn agreement(context: &Context<'_>, all: &[Comparison]) -> Option<Table> {
    let mut rows: Vec<Agreement<'_>> = Vec::new();
    for metric in METRICS {
        let first = rows.len();
        for comparison in context
            .cases
            .profiles
            .iter()
            .flat_map(|profile| all.iter().filter(move |other| other.metric == metric && other.profile == *profile))
        {
            let own = comparison.agreement();
            let sure = own.opposite.iter().filter(|(a, b)| ratio(a, b).is_some_and(|ratio| excludes_one(&ratio)));
            rows.extend(own.tau.map(|tau| Agreement {
                metric,
                case: comparison.label(),
                profile: &comparison.profile,
                products: Some(own.products),
                tau: Some(tau),
                pairs: own.pairs,
                opposite: own.opposite.len(),
                sure: sure.count(),
            }));
        }
        let totals: Vec<Agreement<'_>> =
            context.cases.profiles.iter().filter_map(|profile| total(metric, profile, &rows[first..])).collect();
        rows.extend(totals);
    }
    let mut table = TableOf::<Agreement<'_>>::new();
    table.add(Column::text("Metric"), |of| heading(of.metric));
    table.add(Column::text("Case"), |of| of.case.clone());
    table.add(Column::text("Profile"), |of| of.profile);
    table.add(Column::number("Products", ""), |of| of.products.map(|n| Cell::count(n as u64)));
    table.add(Column::number("Kendall's tau", ""), |of| of.tau.map(Cell::short));
    table.add(Column::number("Pairs in the published order", ""), |of| {
        let same = of.pairs - of.opposite;
        Cell::number(format!("{same} of {}", of.pairs), same as f64)
    });
    table.add(Column::number("Other pairs, published order excluded", ""), |of| {
        Cell::number(format!("{} of {}", of.sure, of.opposite), of.sure as f64)
    });
    let title = "How far the order of products agrees with the published one";
    let table = table.table("published-agreement", title, &rows, |_| RowKind::Plain);
    (!rows.is_empty()).then(|| {
        table.with_notes([
            "Kendall's tau is 1 where products stand in the published order and -1 where they stand in the reverse order. The \
             published order of a pair is excluded where the interval of the measured ratio does not include it. The direct path \
             and what is invalid are left out; only products of the same case are a pair.",
            context.scaled,
        ])
    })
}

/// The sums over several cases of one profile: only pairs within a case are counted.
fn total<'a>(metric: Metric, profile: &'a str, rows: &[Agreement<'_>]) -> Option<Agreement<'a>> {
    let own: Vec<&Agreement<'_>> = rows.iter().filter(|row| row.profile == profile).collect();
    let sum = |of: fn(&Agreement<'_>) -> usize| own.iter().map(|row| of(row)).sum::<usize>();
    let (pairs, opposite, sure) = (sum(|row| row.pairs), sum(|row| row.opposite), sum(|row| row.sure));
    let tau = (pairs > 0).then(|| (pairs as f64 - 2.0 * opposite as f64) / pairs as f64);
    let case = "all of them".to_string();
    (own.len() > 1).then_some(Agreement { metric, case, profile, products: None, tau, pairs, opposite, sure })
}

/// A pair and the comparison in which it is.
type Placed<'a> = (&'a Comparison, Pair);

/// Each pair of products in another order than published, with its ratios and possible causes: those whose published order an interval
/// excludes, those of which the order may be the published one, and what the causes in both mean.
pub(super) fn other_order(context: &Context<'_>, all: &[Comparison]) -> [Option<Table>; 3] {
    let mut pairs: Vec<Placed<'_>> = Vec::new();
    for comparison in all {
        let found = comparison.agreement().opposite.into_iter().filter_map(|two| pairs::pair(context, comparison, two));
        // Products that both ran under another profile only are listed with that profile.
        pairs.extend(found.filter(|pair| pair.has_profile(&comparison.profile)).map(|pair| (comparison, pair)));
    }
    let found = |cause: &&Cause| pairs.iter().any(|(_, pair)| (cause.find)(pair).is_some());
    let mut meanings = TableOf::<Cause>::new();
    meanings.add(Column::text("Cause"), |cause| cause.id);
    meanings.add(Column::text("Meaning"), |cause| cause.meaning);
    let causes = CAUSES.iter().filter(found);
    let meanings = meanings.table("published-causes", "What the causes mean", causes, |_| RowKind::Plain);
    let (excluded, open): (Vec<Placed<'_>>, Vec<Placed<'_>>) = pairs.into_iter().partition(|(_, pair)| pair.is_sure());
    let title = "Pairs of products in another order than published";
    let open_title = "Pairs in another order than published, which their intervals leave open";
    [
        pairs_table(context, "published-other-order", title, &excluded),
        pairs_table(context, "published-open-order", open_title, &open),
        (!meanings.rows.is_empty()).then_some(meanings),
    ]
}

fn pairs_table(context: &Context<'_>, id: &str, title: &str, pairs: &[Placed<'_>]) -> Option<Table> {
    let mut table = TableOf::<Placed<'_>>::new();
    table.add(Column::text("Published ahead"), |(_, pair)| pair.ahead.title.clone());
    table.add(Column::text("Published behind"), |(_, pair)| pair.behind.title.clone());
    table.add(Column::text("Metric"), |(_, pair)| heading(pair.metric));
    table.add(Column::text("Case"), |(comparison, _)| comparison.label());
    table.add(Column::text("Profile"), |(comparison, _)| comparison.profile.clone());
    table.add(Column::number("Published ratio", ""), |(_, pair)| Cell::short(pair.published_ratio));
    let column = Column::number("Measured ratio", "").with_details();
    table.add(column, |(_, pair)| estimate_cell(pair.measured_ratio, Unit::NONE));
    table.add(Column::text("Causes"), |(_, pair)| causes(pair));
    let table = table.table(id, title, pairs, |_| RowKind::Plain).with_notes([
        "Ratios are of the product published ahead to the one behind; the interval of a measured one decides whether it excludes the \
         published order. Causes are what the document or the records of this run show, with the evidence in brackets; they need not be \
         the whole reason.",
        context.scaled,
    ]);
    (!pairs.is_empty()).then_some(table)
}

/// "interval; origin-connections (Alder 99.8 per 100 requests, Birch 0.200)".
fn causes(pair: &Pair) -> String {
    let found = CAUSES.iter().filter_map(|cause| {
        let evidence = (cause.find)(pair)?;
        Some(if evidence.is_empty() { cause.id.to_string() } else { format!("{} ({evidence})", cause.id) })
    });
    let found: Vec<String> = found.collect();
    if found.is_empty() { "nothing recorded explains it".to_string() } else { found.join("; ") }
}

/// A product under a profile, with the facts about each case.
struct Opened<'a> {
    title: &'a str,
    profile: &'a str,
    cases: Vec<MeasuredFacts>,
}

/// How often each product opened a connection to the origin, from the origin's counters, and the cost per request.
/// `None` where no product opened connections for requests.
pub(super) fn origin_connections(context: &Context<'_>) -> Option<Table> {
    let mut rows: Vec<Opened<'_>> = Vec::new();
    for product in context.source.products.iter().filter(|product| product.product != BASELINE) {
        for entry in context.cases.entries(&product.product) {
            let measured = |case| pairs::measured(case, Variant::Whole, entry);
            let cases = context.cases.cases().iter().filter_map(measured).collect();
            rows.push(Opened { title: context.cases.run.title_of(&product.product), profile: &entry.profile, cases });
        }
    }
    rows.retain(|row| row.cases.iter().any(|facts| facts.connections_per_request.is_some()));
    let often = |row: &Opened<'_>| row.cases.iter().any(|facts| opens(facts).is_some());
    let per_100 = |facts: &MeasuredFacts| facts.connections_per_request.map(|each| (each * 100.0).min(100.0));
    let mut table = TableOf::<Opened<'_>>::new();
    table.add(Column::text("Product"), |row| row.title);
    table.add(Column::text("Profile"), |row| row.profile);
    table
        .add(Column::number("Connections", "per 100 requests"), move |row| range(row.cases.iter().filter_map(per_100)));
    table.add(Column::number("CPU", Unit::MICROS_PER_REQUEST.name), |row| {
        range(row.cases.iter().filter_map(|facts| facts.cpu_us))
    });
    table.add(Column::number("Cores busy", ""), |row| range(row.cases.iter().filter_map(|facts| facts.cores_busy)));
    let kind = |row: &Opened<'_>| if often(row) { RowKind::Marked } else { RowKind::Plain };
    let title = "Connections that products opened to the origin";
    rows.iter().any(often).then(|| {
        table.table("published-origin-connections", title, &rows, kind).with_notes([
            "From the origin's own counters; from the least to the most of all cases. A product that opens a connection for a \
             request pays for it in CPU time, and so does the origin. Where cores were left idle, the rate does not show that price, \
             and the CPU time does. Profiles may differ in more than this, see the configurations.",
            context.scaled,
        ])
    })
}

/// "0.36" or "0.28 to 0.46".
fn range(values: impl Iterator<Item = f64>) -> Option<Cell> {
    let (least, most) = extremes(values)?;
    let words = match (short(least), short(most)) {
        (least, most) if least == most => least,
        (least, most) => format!("{least} to {most}"),
    };
    Some(Cell::number(words, most))
}
