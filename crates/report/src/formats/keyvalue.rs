//! Prints a result as tools for key-value servers do, with a row for each operation. junoload's requests a second are the inverse of the
//! mean latency; a column of ours behind it has those that ended in one. weir waits for replicas as part of a write, and counts bytes of
//! all operations together, so these fields of memtier_benchmark are empty.

use askama::Template;
use weir_model::keyvalue::Operation;
use weir_model::load::Quantiles;

use super::Account;

#[derive(Template)]
#[template(path = "formats/junoload.txt", escape = "none")]
struct Junoload {
    rows: Vec<Row>,
    all: Row,
}

/// junoload's final table. `only` names the operation where there is one alone.
pub fn junoload(account: Account<'_>, only: &str) -> String {
    format!("{}\n", Junoload { rows: rows(account, only), all: all(account, "All") })
}

impl Junoload {
    fn row(&self, row: &Row) -> String {
        let q = &row.latency;
        let rate = if q.mean_us > 0.0 { 1e6 / q.mean_us } else { 0.0 };
        let times = [q.mean_us, q.min_us, q.max_us, q.p50_us, q.p95_us, q.p99_us, q.p9999_us];
        let times = times.map(|us| format!("{:>12}", duration(us))).join(" ");
        let share = 100.0 * q.count as f64 / self.all.latency.count.max(1) as f64;
        let (name, errors, ended) = (&row.name, row.errors, row.rate);
        format!("{rate:>12.2} {times} {:>12} {share:>12.2} {name:>12} {errors:>12} {ended:>15.2}", q.count)
    }
}

/// A time as Go prints it, to the microsecond: `0s`, `250µs`, `1.04ms`, `2.5s`, `1m1.5s`.
fn duration(us: f64) -> String {
    let us = us.round() as u64;
    let decimal = |unit: u64| {
        let text = format!("{}.{:0width$}", us / unit, us % unit, width = unit.ilog10() as usize);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match us {
        0 => "0s".to_owned(),
        1..1_000 => format!("{us}µs"),
        1_000..1_000_000 => format!("{}ms", decimal(1_000)),
        1_000_000..60_000_000 => format!("{}s", decimal(1_000_000)),
        _ => {
            let (minutes, rest) = (us / 60_000_000, us % 60_000_000);
            // Less than a second has a unit of its own otherwise.
            let seconds = match rest {
                1..1_000_000 => format!("0.{}s", format!("{rest:06}").trim_end_matches('0')),
                _ => duration(rest as f64),
            };
            match minutes {
                0..60 => format!("{minutes}m{seconds}"),
                _ => format!("{}h{}m{seconds}", minutes / 60, minutes % 60),
            }
        }
    }
}

/// What stands where there is nothing to tell.
const NOTHING: &str = "---";

#[derive(Template)]
#[template(path = "formats/memtier.txt", escape = "none")]
struct Memtier {
    /// Columns of the names.
    width: usize,
    lines: Vec<String>,
}

/// memtier_benchmark's table. `only` names the operation where there is one alone.
pub fn memtier(account: Account<'_>, only: &str) -> String {
    let rows = rows(account, only);
    let named = |name: &str| rows.iter().find(|row| row.name == name);
    let found = found(account, &rows);
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max(6) + 1;
    let line = |name: &str, row, found, kib| line(&format!("{name:<width$}"), row, found, kib);
    let mut lines = vec![line("Sets", named("Set"), None, None), line("Gets", named("Get"), found, None)];
    let others = rows.iter().filter(|row| !matches!(row.name.as_str(), "Set" | "Get"));
    lines.extend(others.map(|row| line(&format!("{}s", row.name), Some(row), None, None)));
    lines.push(line("Waits", None, None, None));
    let (window, seconds) = (&account.result.window, account.seconds());
    let kib = (window.bytes_in + window.bytes_out) as f64 / 1024.0 / seconds;
    lines.push(line("Totals", Some(&all(account, "Totals")), found, Some(kib)));
    format!("{}\n", Memtier { width, lines })
}

impl Memtier {
    /// The heading of the names.
    fn heading(&self) -> String {
        format!("{:<1$}", "Type", self.width)
    }

    /// A rule as wide as the table, of one character.
    fn rule(&self, of: &str) -> String {
        of.repeat(self.width + 1 + 4 * 13 + 4 * 16)
    }
}

/// Gets that found their key and that did not, a second. A response's status does not tell of which operation it is, so this is
/// known only where no other than a get can find nothing.
fn found(account: Account<'_>, rows: &[Row]) -> Option<(f64, f64)> {
    let get = rows.iter().find(|row| row.name == "Get")?;
    if rows.iter().any(|row| !matches!(row.name.as_str(), "Set" | "Get")) {
        return None;
    }
    let missed = account.statuses_from(1) as f64 / account.seconds();
    Some(((get.rate - missed).max(0.0), missed))
}

fn line(name: &str, row: Option<&Row>, found: Option<(f64, f64)>, kib: Option<f64>) -> String {
    let rate = row.map_or(0.0, |row| row.rate);
    let count = |value: Option<f64>| value.map_or(NOTHING.to_owned(), |value| format!("{value:.2}"));
    let (hits, misses) = (count(found.map(|found| found.0)), count(found.map(|found| found.1)));
    let latency = row.map(|row| &row.latency).filter(|latency| latency.count > 0);
    let ms = |value: fn(&Quantiles) -> f64| {
        latency.map_or(NOTHING.to_owned(), |latency| format!("{:.5}", value(latency) / 1e3))
    };
    let times = [ms(|q| q.mean_us), ms(|q| q.p50_us), ms(|q| q.p99_us), ms(|q| q.p999_us)];
    let times = times.map(|time| format!("{time:>15}")).join(" ");
    format!("{name} {rate:>12.2} {hits:>12} {misses:>12} {times} {:>12} ", count(kib))
}

/// One kind of request.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name, the first letter large: `Create`.
    pub name: String,
    /// Due to answered.
    pub latency: Quantiles,
    /// Those without a successful response.
    pub errors: u64,
    /// Requests that ended, a second.
    pub rate: f64,
}

/// A row for each operation of the load, in the order in which tools have them. `only` names it where there is one kind alone.
pub fn rows(account: Account<'_>, only: &str) -> Vec<Row> {
    let result = account.result;
    let row = |name: &str, latency: &Quantiles, errors| {
        let (first, rest) = name.split_at(name.len().min(1));
        let name = format!("{}{rest}", first.to_uppercase());
        Row { name, latency: latency.clone(), errors, rate: latency.count as f64 / account.seconds() }
    };
    if result.by_request.is_empty() {
        return vec![row(only, &result.latency, result.window.error_count())];
    }
    let mut rows: Vec<Row> = result.by_request.iter().map(|kind| row(&kind.name, &kind.latency, kind.errors)).collect();
    rows.sort_by_key(|row| row.name.parse::<Operation>().ok());
    rows
}

/// All operations together.
pub fn all(account: Account<'_>, name: &str) -> Row {
    let latency = account.result.latency.clone();
    let rate = latency.count as f64 / account.seconds();
    Row { name: name.to_owned(), latency, errors: account.result.window.error_count(), rate }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_go_does() {
        for (us, text) in [
            (0.0, "0s"),
            (0.4, "0s"),
            (250.4, "250µs"),
            (999.6, "1ms"),
            (1_040.0, "1.04ms"),
            (12_345.0, "12.345ms"),
            (100_000.0, "100ms"),
            (2_500_000.0, "2.5s"),
            (10_000_000.0, "10s"),
            (61_500_000.0, "1m1.5s"),
            (60_250_000.0, "1m0.25s"),
            (60_000_000.0, "1m0s"),
            (3_600_000_000.0, "1h0m0s"),
        ] {
            assert_eq!(duration(us), text);
        }
    }
}
