//! Prints a result as memtier_benchmark does: the table ALL STATS. Sets and gets have their rows as there; operations that it
//! does not know have rows of their own. weir waits for replicas as part of a write, and counts bytes of all operations
//! together, so these fields are empty. Called by `weir load --format memtier`.

use askama::Template;
use weir_model::load::Quantiles;

use super::Account;
use super::operations::{self, Row};

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
    let rows = operations::rows(account, only);
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
    lines.push(line("Totals", Some(&operations::all(account, "Totals")), found, Some(kib)));
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

/// Gets that found their key and that did not, a second. An answer's status does not tell of which operation it is, so this is
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
