//! The table of latency by kind of request and by status. Called by `verbs::load::summary`.

use weir_model::load::{LoadResult, Quantiles};
use weir_model::text::{count, fixed_us};

/// Columns of the name.
const NAME: usize = 34;

/// Rows of each kind of request, where there are several, and of each status.
pub fn table(result: &LoadResult, requests: bool, statuses: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if requests && !result.by_request.is_empty() {
        lines.push(row("by request", "sent", "failed", ["p50", "p99", "max"].map(str::to_owned)));
        let rows = result.by_request.iter();
        lines.extend(rows.map(|kind| {
            row(&format!("  {}", kind.name), &count(kind.sent), &count(kind.errors), times(&kind.latency))
        }));
    }
    if statuses && !result.by_status.is_empty() {
        lines.push(row("by status", "requests", "", ["p50", "p99", "max"].map(str::to_owned)));
        let rows = result.by_status.iter();
        lines.extend(rows.map(|(status, latency)| row(&name(status), &count(latency.count), "", times(latency))));
    }
    lines
}

fn name(status: &str) -> String {
    match status {
        "none" => "  no response".to_owned(),
        "others" => "  other statuses".to_owned(),
        status => format!("  {status}"),
    }
}

fn times(latency: &Quantiles) -> [String; 3] {
    [latency.p50_us, latency.p99_us, latency.max_us]
        .map(|us| if latency.count == 0 { "-".to_owned() } else { fixed_us(us) })
}

fn row(name: &str, n: &str, failed: &str, [p50, p99, max]: [String; 3]) -> String {
    let name = console::truncate_str(name, NAME, "…");
    format!("{name:<NAME$}{n:>11}{failed:>8} {p50:>8} {p99:>8} {max:>8}")
}
