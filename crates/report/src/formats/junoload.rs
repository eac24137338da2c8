//! Prints a result as junoload does, with a row for each operation. Its requests a second are the inverse of the mean latency; a column of
//! ours behind it has those that ended in one.

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

/// junoload's final table, with the operations in its order. `only` names the operation where there is one alone.
pub fn junoload(account: Account<'_>, only: &str) -> String {
    let (result, errors) = (account.result, account.result.window.error_count());
    let mut rows: Vec<Row> =
        result.by_request.iter().map(|kind| Row::new(account, &kind.name, &kind.latency, kind.errors)).collect();
    if rows.is_empty() {
        rows.push(Row::new(account, only, &result.latency, errors));
    }
    rows.sort_by_key(|row| row.name.parse::<Operation>().ok());
    format!("{}\n", Junoload { rows, all: Row::new(account, "All", &result.latency, errors) })
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

/// One kind of request.
struct Row {
    /// Its name, the first letter large: `Create`.
    name: String,
    /// Due to answered.
    latency: Quantiles,
    /// Those without a successful response.
    errors: u64,
    /// Requests that ended, a second.
    rate: f64,
}

impl Row {
    fn new(account: Account<'_>, name: &str, latency: &Quantiles, errors: u64) -> Row {
        let (first, rest) = name.split_at(name.len().min(1));
        let name = format!("{}{rest}", first.to_uppercase());
        Row { name, latency: latency.clone(), errors, rate: latency.count as f64 / account.seconds() }
    }
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
