//! What became of each operation of a key-value load, for the formats of tools that have a row for each. Used by `junoload`
//! and `memtier`.

use weir_model::keyvalue::Operation;
use weir_model::load::Quantiles;

use super::Account;

/// One kind of request.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name, the first letter large: `Create`.
    pub name: String,
    /// Due to answered.
    pub latency: Quantiles,
    /// Those without a right answer.
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
