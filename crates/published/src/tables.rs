//! Published figures and ours side by side, and how far their orders agree, as tables. Knows comparisons, no document.

use super::agree::pooled;
use super::compare::{Comparison, OwnFigure};
use super::ours::Ours;
use super::quantity::{COMPARED, Compared, size_of};
use super::words::interval;
use weir_model::text::short;
use weir_report::tables::{Cell, Column, RowKind, Table, TableRow};

/// One table a metric: each product in each case, as published and as measured here. `None` when there is none.
pub(super) fn side_by_side(ours: &Ours<'_>, compared: Compared, all: &[Comparison], scaled: &str) -> Option<Table> {
    let own: Vec<&Comparison> = all.iter().filter(|comparison| comparison.compared == compared).collect();
    let unit = own.first()?.rows.first()?.figure.unit.clone();
    let size = size_of(&unit)?;
    let base_words =
        format!("Over the published best of the case ({}).", if compared.higher_is_better { "most" } else { "least" });
    let mut columns = vec![
        Column::text("Case"),
        Column::text("Product"),
        Column::number("Published", &unit),
        Column::number("Published, to the best", "ratio").help(&base_words),
    ];
    for profile in &ours.profiles {
        columns.push(Column::number(&format!("Here ({profile})"), &unit).with_details());
        let ratio = Column::number(&format!("Here ({profile}), to the same"), "ratio").with_details();
        columns
            .push(ratio.help("The median of ratios within blocks, over the same product as in the published ratio."));
    }
    let mut rows = Vec::new();
    for comparison in &own {
        for row in &comparison.rows {
            let mut cells = vec![
                Cell::text(comparison.label()),
                Cell::text(&row.title),
                Cell::number(short(row.published / size), row.published),
                row.published_ratio.map_or_else(Cell::none, |ratio| Cell::number(short(ratio), ratio)),
            ];
            for own in &row.ours {
                cells.extend(own_cells(own.as_ref(), size));
            }
            let invalid = row.ours.iter().flatten().any(|own| own.invalid);
            rows.push(TableRow { kind: if invalid { RowKind::Unranked } else { RowKind::Plain }, cells });
        }
    }
    let better = if compared.higher_is_better { "highest" } else { "lowest" };
    Some(Table {
        id: format!("published-{}", compared.metric),
        title: format!("{}: published and here", compared.heading),
        columns,
        rows,
        notes: vec![
            format!(
                "Published figures were measured once, on other machines: compare the ratios. Each is over the product with \
                 the {better} published figure of its case of those that were run here; ours are medians of ratios within \
                 blocks, with their intervals."
            ),
            scaled.to_string(),
        ],
    })
}

fn own_cells(own: Option<&OwnFigure>, size: f64) -> [Cell; 2] {
    let Some(own) = own else { return [Cell::none(), Cell::none()] };
    let mark = if own.invalid { " invalid" } else { "" };
    let mut value = Cell::number(format!("{}{mark}", short(own.estimate.value / size)), own.estimate.value);
    value.detail = interval(&own.estimate, size);
    let ratio = own.ratio.map_or_else(Cell::none, |ratio| {
        let mut cell = Cell::number(short(ratio.value), ratio.value);
        cell.detail = interval(&ratio, 1.0);
        cell
    });
    [value, ratio]
}

/// Kendall's tau of each metric and case.
pub(super) fn agreement(ours: &Ours<'_>, all: &[Comparison], scaled: &str) -> Option<Table> {
    let mut columns = vec![Column::text("Metric"), Column::text("Case"), Column::number("Products", "")];
    for profile in &ours.profiles {
        columns.push(Column::number(&format!("Kendall's tau, {profile}"), "").with_details());
    }
    let mut rows = Vec::new();
    for compared in COMPARED {
        let own: Vec<&Comparison> = all.iter().filter(|comparison| comparison.compared == compared).collect();
        let before = rows.len();
        for comparison in &own {
            let agreements: Vec<_> = (0..ours.profiles.len()).map(|profile| comparison.agreement(profile)).collect();
            let products = agreements.iter().map(|agreement| agreement.products).max().unwrap_or(0);
            if agreements.iter().all(|agreement| agreement.tau.is_none()) {
                continue;
            }
            let taus = agreements.iter().map(|a| tau_cell(a.tau, a.pairs, a.opposite.len()));
            let head = [Cell::text(compared.heading), Cell::text(comparison.label())];
            let count = Cell::number(products.to_string(), products as f64);
            rows.push(TableRow { kind: RowKind::Plain, cells: head.into_iter().chain([count]).chain(taus).collect() });
        }
        if rows.len() > before + 1 {
            let taus = (0..ours.profiles.len()).map(|profile| {
                let all = own.iter().map(|comparison| comparison.agreement(profile));
                let (pairs, opposite) = all.fold((0, 0), |sum, a| (sum.0 + a.pairs, sum.1 + a.opposite.len()));
                tau_cell(pooled(pairs, opposite), pairs, opposite)
            });
            let head = [Cell::text(compared.heading), Cell::text("all of them"), Cell::none()];
            rows.push(TableRow { kind: RowKind::Plain, cells: head.into_iter().chain(taus).collect() });
        }
    }
    (!rows.is_empty()).then(|| Table {
        id: "published-agreement".to_string(),
        title: "How far the order of products here agrees with the published one".to_string(),
        columns,
        rows,
        notes: vec![
            "Kendall's tau is 1 where products stand in the same order, -1 where one order is the reverse of the other; in \
             brackets the pairs of products in the same order, of all. The direct path, and what is invalid, is left out. Of \
             all cases together only pairs within a case count."
                .to_string(),
            scaled.to_string(),
        ],
    })
}

fn tau_cell(tau: Option<f64>, pairs: usize, opposite: usize) -> Cell {
    let Some(tau) = tau else { return Cell::none() };
    let mut cell = Cell::number(short(tau), tau);
    cell.detail = format!("{} of {pairs}", pairs - opposite);
    cell
}
