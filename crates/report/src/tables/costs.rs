//! Tables of what a product costs (CPU time, memory, time to warm up), of what each of its parts costs, and of the points of a series.

use weir_model::metric::{Quantity, Window};
use weir_model::record::Role;
use weir_model::suite::Series;
use weir_model::text::{Unit, percent, short, unique};
use weir_stats::{Estimate, median_interval};

use super::products::{add_product, estimate_cell, marked, metric_cell, row_kind, usage_cell};
use super::{Cell, Column, RowKind, Table, TableOf};
use crate::run::{Run, Trial, displayed};
use crate::summary::{LEVEL, Metric, PointRow, Row, SEED, Section, Standing, window_of};

/// The cost table of one section; `None` if no usage was recorded.
pub fn cost(section: &Section) -> Option<Table> {
    let known = |row: &Row| row.of(Metric::Cpu).or(row.of(Metric::ClientCpu)).is_some();
    if !section.all_rows().any(known) {
        return None;
    }
    let mut table = TableOf::<Row>::new();
    add_product(&mut table, section.tells_profiles_apart(), 2);
    for metric in Metric::ALL.iter().copied() {
        let (entry, unit) = (metric.entry(), metric.entry().quantity.unit(1.0));
        let Some(order) = entry.columns.cost else { continue };
        let proxy = metric == Metric::Cpu;
        let column = Column::number(if proxy { "Proxy CPU" } else { entry.title }, unit.name).with_details_if(proxy);
        table.add(column.dispensable(order).help(entry.help), move |row| metric_cell(row, metric, unit));
    }
    let memory = Column::number("Memory", Unit::MEBIBYTES.name).help("Largest memory of the proxy's processes.");
    table.add(memory, |row| usage_cell(row, row.memory.map(|memory| memory.bytes), Unit::MEBIBYTES));
    let memory = Column::number("Memory", "KiB/connection").help("The same by the client's connections.");
    table.add(memory, |row| estimate_cell(row.memory.and_then(|memory| memory.by_connection), Unit::KIBIBYTES));
    let measure = Column::text("Memory is").dispensable(4).help("Which measure of memory the kernel gave.");
    table.add(measure, |row| Some(Cell::from(if row.memory?.proportional { "PSS" } else { "RSS" })));
    let with_warmup = section.all_rows().any(|row| row.warmup.is_some());
    if with_warmup {
        add_warmup(&mut table, 0);
    }
    let table = table.table(
        format!("costs-{}", section.slug()),
        format!("Cost: {}", section.heading()),
        section.all_rows(),
        |row| row_kind(row),
    );
    let with_speed = section.all_rows().any(|row| row.of(Metric::RateBySpeed).is_some());
    Some(
        table
            .with_notes(NOTES)
            .with_notes(with_speed.then_some(SPEED_NOTE))
            .with_notes(with_warmup.then_some(WARMUP_NOTE)),
    )
}

const NOTES: [&str; 2] = [
    "CPU: user and system time of a role's processes in the window, by the responses that the client got in the window. Per core: \
     responses/s of the proxy's CPU time.",
    "Memory: the largest in the window. PSS counts a page that several processes share once, RSS once for each of them, so that RSS \
     is too much where a product has many processes. By connection: all of it over the client's connections, the product's own \
     needs included.",
];

const SPEED_NOTE: &str = "Calc: a calculation of a fixed length, by which runs on machines, or days, of another speed compare better than by \
                          time. The speed is the mean of the block.";

const WARMUP_NOTE: &str = "Warm-up: how long the product was kept busy until what it carried each second kept its level; \
                           \u{201c}never\u{201d}: it had not when the time allowed was over, and what was measured then is of a \
                           product that was still changing.";

/// Adds the time to warm up: "4.0", "never (in 30 s)".
pub(super) fn add_warmup(table: &mut TableOf<'_, Row>, order: u8) {
    let column = Column::number("Warm-up", "s").with_details().dispensable(order);
    table.add(column.help("Until what it carried each second kept its level."), |row| {
        let warmup = row.warmup?;
        if warmup.never == warmup.of {
            return Some(Cell::number("never", f64::MAX).detail(format!("in {} s", short(warmup.seconds.value))));
        }
        let seconds = estimate_cell(Some(warmup.seconds), Unit::SECONDS);
        let never = format!("never in {} of {} trials", warmup.never, warmup.of);
        Some(if warmup.never > 0 { seconds.detail(never) } else { seconds })
    });
}

/// One part of a product.
struct PartRow<'a> {
    row: &'a Row,
    part: &'a str,
    cpu_us: Option<Estimate>,
    cores_busy: Option<Estimate>,
    /// The share of the CPU time of all parts, 0 to 1.
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

const INTERVALS: &str = "Medians over blocks with their intervals.";

/// Tables with the products side by side and one point of the series per row: rate, then p99. Empty if the load is not a series.
pub fn side_by_side(section: &Section) -> Vec<Table> {
    if section.series == Series::Once || section.all_rows().all(|row| row.points.is_empty()) {
        return Vec::new();
    }
    vec![one(section, "rates", Metric::Rate), one(section, "p99", Metric::P99)]
}

fn one(section: &Section, id: &str, metric: Metric) -> Table {
    let unit = point_unit(section, metric);
    let longest = section.all_rows().map(|row| row.points.len()).max().unwrap_or(0);
    let mut table = TableOf::<usize>::new();
    table.add(place_column(section), |place| place_cell(section, *place));
    for row in section.all_rows().filter(|row| !row.points.is_empty()) {
        table.add(Column::number(&row.label, unit.name).with_details(), move |place| {
            let mut cell = estimate_cell(row.points.get(*place).and_then(|point| point.of(metric)), unit);
            if row.knee == Some(*place) {
                cell.main.push_str(KNEE);
            }
            cell
        });
    }
    let (id, title) = (format!("{id}-{}", section.slug()), format!("{}: {}", metric.entry().name, section.heading()));
    let table = table.table(id, title, &(0..longest).collect::<Vec<_>>(), |_| RowKind::Plain);
    table.with_notes([INTERVALS]).with_notes(knee_words(section, KNEE.trim()))
}

/// The unit of a metric for all points of a section. Latencies share one.
fn point_unit(section: &Section, metric: Metric) -> Unit {
    let points = section.all_rows().flat_map(|row| &row.points);
    match metric.entry().quantity {
        Quantity::Latency => Unit::for_times(points.filter_map(|point| point.of(Metric::P99)).map(|p99| p99.value)),
        other => other.unit(1.0),
    }
}

/// The mark of the point at which a curve bends.
pub(crate) const KNEE: &str = " \u{25c6}";

/// Explains the mark, and how its point was found. The font of a chart may lack the mark of the table, so both name their own.
pub(crate) fn knee_words(section: &Section, mark: &str) -> Option<String> {
    let what = match section.series {
        Series::Shares(_) => "from which p99 climbs in its order of magnitude",
        Series::Connections(_) => "from which more connections bring little more",
        Series::Rounds(_) | Series::Once => return None,
    };
    let found = section.all_rows().any(|row| row.knee.is_some());
    Some(if found {
        format!(
            "{mark} is the knee: the point measured {what} (Kneedle, Satop\u{e4}\u{e4} et al. 2011). A curve may have none."
        )
    } else {
        "No curve bends plainly enough to have a knee (Kneedle, Satop\u{e4}\u{e4} et al. 2011).".to_string()
    })
}

fn place_column(section: &Section) -> Column {
    match section.series {
        Series::Shares(_) if section.own_rates => Column::text("Of its own capacity"),
        Series::Shares(_) => Column::number("Offered", Unit::PER_SECOND.name),
        Series::Connections(_) => Column::number("Connections", ""),
        Series::Rounds(_) | Series::Once => Column::number("Round", ""),
    }
}

fn place_cell(section: &Section, place: usize) -> Cell {
    let first = section.all_rows().find_map(|row| row.points.get(place));
    match (&section.series, first) {
        (Series::Shares(shares), _) if section.own_rates => {
            shares.get(place).map(|share| Cell::number(percent(*share), *share)).into()
        }
        (Series::Shares(_), Some(PointRow { offered: Some(rate), .. })) => Cell::short(*rate),
        (Series::Connections(_), Some(point)) => Cell::count(point.connections),
        _ => Cell::count(place as u64 + 1),
    }
}

/// A point of a product.
struct Measured<'a> {
    row: &'a Row,
    place: usize,
    point: &'a PointRow,
}

impl std::ops::Deref for Measured<'_> {
    type Target = Standing;

    fn deref(&self) -> &Standing {
        self.row
    }
}

/// Every point of every product, a row each.
pub fn every<'s>(section: &'s Section) -> Table {
    let mut table = TableOf::<Measured<'_>>::new();
    add_product(&mut table, section.tells_profiles_apart(), 2);
    table.add(Column::number("Point", ""), |of| Cell::count(of.point.point));
    table.add(Column::number("Offered", Unit::PER_SECOND.name), |of| of.point.offered.map(Cell::short));
    table.add(Column::number("Connections", ""), |of| Cell::count(of.point.connections));
    for metric in Metric::ALL.iter().copied().filter(|metric| metric.entry().columns.points) {
        let unit = point_unit(section, metric);
        let column = Column::number(metric.entry().title, unit.name);
        table.add(column, move |of| estimate_cell(of.point.of(metric), unit));
    }
    table.add(Column::number("Due", "requests"), |of| Cell::count(of.point.requests));
    table.add(Column::number("Errors", "requests"), |of| Cell::count(of.point.errors));
    table.add(Column::text("Remarks"), |of| {
        let knee = (of.row.knee == Some(of.place)).then(|| "knee".to_string());
        let invalid = (of.point.invalid > 0).then(|| format!("invalid in {} blocks", of.point.invalid));
        knee.into_iter().chain(invalid).collect::<Vec<_>>().join(", ")
    });
    let numbered =
        |row: &'s Row| row.points.iter().enumerate().map(move |(place, point)| Measured { row, place, point });
    let rows: Vec<Measured<'_>> = section.all_rows().flat_map(numbered).collect();
    let (id, title) = (format!("points-{}", section.slug()), format!("Every point: {}", section.heading()));
    let kind = |of: &Measured<'_>| if of.point.invalid > 0 { RowKind::Unranked } else { RowKind::Plain };
    table.table(id, title, &rows, kind).with_notes([INTERVALS])
}
