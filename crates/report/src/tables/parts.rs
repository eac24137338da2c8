//! Builds the table of what each part of a product costs, such as a proxy and its stores: CPU time for one answer.
//! Called by `page` and `markdown`.

use weir_model::metric::Window;
use weir_model::record::Role;
use weir_model::text::{Unit, percent, unique};
use weir_stats::{Estimate, median_interval};

use super::cells::{estimate_cell, marked, row_kind};
use super::{Cell, Column, Table, TableOf};
use crate::run::{Run, Trial, displayed};
use crate::summary::{LEVEL, Row, SEED, Section, window_of};

/// One part of a product.
struct PartRow<'a> {
    row: &'a Row,
    part: &'a str,
    cpu_us: Option<Estimate>,
    cores_busy: Option<Estimate>,
    /// Of the CPU time of all parts, 0 to 1.
    share: Option<Estimate>,
}

/// A row for each part of each product; `None` where no product has several.
pub fn parts(run: &Run, section: &Section) -> Option<Table> {
    let load = run.suite.loads.iter().find(|load| load.name == section.load)?;
    let mut rows: Vec<PartRow<'_>> = Vec::new();
    for row in section.all_rows() {
        let trials: Vec<&Trial> = displayed(section.trials(run).filter(|trial| trial.is_of(&row.entry)));
        let windows: Vec<Window<'_>> = trials.iter().filter_map(|trial| window_of(&trial.measurement, load)).collect();
        let estimate = |value: &dyn Fn(&Window<'_>) -> Option<f64>| {
            let values: Vec<f64> = windows.iter().map(|window| value(window).unwrap_or(f64::NAN)).collect();
            median_interval(&values, LEVEL, SEED)
        };
        let usages = windows.iter().filter_map(|window| window.role(Role::Proxy));
        for part in unique(usages.flat_map(|usage| usage.parts.keys().map(String::as_str))) {
            rows.push(PartRow {
                row,
                part,
                cpu_us: estimate(&|window| window.part_cpu_us(part)),
                cores_busy: estimate(&|window| Some(window.role(Role::Proxy)?.parts.get(part)?.cores_busy)),
                share: estimate(&|window| Some(window.part_cpu_us(part)? / window.all_cpu_us(Role::Proxy)?)),
            });
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mut table = TableOf::<PartRow<'_>>::new();
    table.add(Column::text("Product"), |part| marked(&part.row.label, part.row));
    table.add(Column::text("Part"), |part| part.part.to_owned());
    let hosts = run.environment.as_ref().map(|environment| environment.hosts.as_slice()).unwrap_or_default();
    if hosts.iter().any(|host| !host.parts.is_empty()) {
        let front = hosts.iter().find(|host| host.has(Role::Proxy) && host.parts.is_empty());
        table.add(Column::text("Host"), move |part| {
            let own = hosts.iter().find(|host| host.parts.iter().any(|name| name == part.part));
            own.or(front).map(|host| host.name.clone()).unwrap_or_default()
        });
    }
    let column = Column::number("CPU", Unit::MICROS_PER_REQUEST.name).with_details();
    table.add(column, |part| estimate_cell(part.cpu_us, Unit::MICROS_PER_REQUEST));
    table.add(Column::number("Share", "of the product's CPU"), |part| {
        part.share.map(|share| Cell::number(percent(share.value), share.value))
    });
    table.add(Column::number("Cores busy", ""), |part| estimate_cell(part.cores_busy, Unit::NONE));
    let title = format!("CPU by part: {}", section.heading());
    Some(table.table(format!("parts-{}", section.slug()), title, &rows, |part| row_kind(part.row)))
}
