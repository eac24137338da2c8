//! Writes numbers as `github-action-benchmark` reads them: its tools `customBiggerIsBetter` and `customSmallerIsBetter` each take a list of
//! names, values and units, so that a load or a run has one file of either kind.

use serde::Serialize;
use weir_model::metric::{Metric, Quantity};
use weir_model::text::significant;
use weir_stats::Estimate;

use super::Account;
use crate::summary::{Row, Section, Summary, Verdicts};

/// What is better of the numbers in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// `customBiggerIsBetter`
    Bigger,
    /// `customSmallerIsBetter`
    Smaller,
}

/// One number, as the action names its fields.
#[derive(Debug, Serialize)]
struct Bench {
    name: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    extra: String,
}

/// The numbers of one load: its rate, or its latencies and errors.
pub fn github(account: Account<'_>, better: Better) -> String {
    let (result, title) = (account.result, account.title);
    let bench = |what: &str, unit, value| Bench {
        name: format!("{title}: {what}"),
        unit,
        value,
        range: None,
        extra: format!("one load of {} s, {} connections", result.window_s, account.connections),
    };
    let latency = &result.latency;
    let failed = result.window.error_count() + result.window.unsent;
    let failed = 100.0 * failed as f64 / result.window.due.max(1) as f64;
    let benches = match better {
        Better::Bigger => vec![bench("successful responses", "requests/s", result.rate)],
        Better::Smaller if latency.count == 0 => vec![bench("without a successful response", "%", failed)],
        Better::Smaller => vec![
            bench("p50", "µs", latency.p50_us),
            bench("p90", "µs", latency.p90_us),
            bench("p99", "µs", latency.p99_us),
            bench("p99.9", "µs", latency.p999_us),
            bench("without a successful response", "%", failed),
        ],
    };
    text(&benches)
}

/// The numbers of a run: of each product in each section those that the section is about.
pub fn github_of_run(summary: &Summary, better: Better) -> String {
    let rows = |section: &'_ Section| -> Vec<Bench> {
        let all = section.baseline.iter().chain(&section.rows);
        all.flat_map(|row| metrics(section, better).filter_map(|metric| bench(section, row, metric))).collect()
    };
    text(&summary.sections.iter().flat_map(rows).collect::<Vec<_>>())
}

/// A fixed rate is what was ordered, and no result.
fn metrics(section: &Section, better: Better) -> impl Iterator<Item = Metric> + use<> {
    let capacity = section.ranked_by.higher_is_better();
    let of: &[Metric] = match better {
        Better::Bigger if capacity => &[Metric::Rate],
        Better::Bigger => &[],
        Better::Smaller => &[Metric::P50, Metric::P99, Metric::Cpu, Metric::Rss],
    };
    of.iter().copied()
}

fn bench(section: &Section, row: &Row, metric: Metric) -> Option<Bench> {
    let Estimate { value, low, high, n, level } = row.of(metric)?;
    // One block has no spread to speak of.
    let range = (n > 1 && (low..=high).contains(&value)).then(|| format!("± {:.4}", (high - value).max(value - low)));
    let name = format!("{}, {}, {}: {}", row.label, section.workload, section.load, metric.compared_name());
    let of = match n {
        1 => "one block, which has no spread".to_owned(),
        _ => format!("median of {n} blocks, range at {} %", significant(level * 100.0, 3)),
    };
    let Verdicts { valid, suspect, invalid, error } = row.verdicts;
    let extra = format!("{of}; trials: {valid} valid, {suspect} suspect, {invalid} invalid, {error} failed");
    Some(Bench { name, unit: unit(metric), value, range, extra })
}

fn unit(metric: Metric) -> &'static str {
    match metric.entry().quantity {
        Quantity::Rate => "requests/s",
        Quantity::Latency => "µs",
        Quantity::CpuTime => "µs/request",
        _ => "bytes",
    }
}

fn text(benches: &[Bench]) -> String {
    // Texts and numbers always have a JSON.
    serde_json::to_string_pretty(benches).unwrap_or_default() + "\n"
}
