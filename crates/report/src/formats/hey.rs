//! Prints a result as hey does. Called by `weir load --format hey` and by `weir-published`. The histogram has eleven
//! marks, from the fastest to the slowest request. Name lookup and the writing of a request are 0: weir resolves names
//! before it starts, and does not time the writing.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::{Account, percentile_us};

/// Marks of the histogram.
const MARKS: usize = 11;

/// Characters of the longest bar.
const BAR: u64 = 40;

/// hey.
pub fn hey(account: Account<'_>) -> String {
    let (result, histo) = (account.result, account.service);
    let latency = &result.service;
    let ended = account.answered() + account.sum(|kind| !kind.is_response());
    let s = |us: f64| us / 1e6;
    let mut out = format!(
        "\nSummary:\n  Total:\t{:.4} secs\n  Slowest:\t{:.4} secs\n  Fastest:\t{:.4} secs\n  Average:\t{:.4} secs\n  \
         Requests/sec:\t{:.4}\n  \n",
        result.window_s,
        s(latency.max_us),
        s(latency.min_us),
        s(latency.mean_us),
        ended as f64 / account.seconds()
    );
    let answers: u64 = result.window.statuses.values().sum();
    if result.window.body_bytes > 0 {
        let each = result.window.body_bytes / answers.max(1);
        out.push_str(&format!("  Total data:\t{} bytes\n  Size/request:\t{each} bytes\n", result.window.body_bytes));
    }
    out.push_str("\nResponse time histogram:\n");
    out.push_str(&histogram(histo, latency.min_us, latency.max_us));
    out.push_str("\n\nLatency distribution:\n");
    if !histo.is_empty() {
        for percent in [10u32, 25, 50, 75, 90, 95, 99] {
            let value = s(percentile_us(histo, f64::from(percent)));
            out.push_str(&format!("  {percent}% in {value:.4} secs\n"));
        }
    }
    out + &details(account) + &distributions(account)
}

fn histogram(histo: &Histogram<u64>, min_us: f64, max_us: f64) -> String {
    if histo.is_empty() {
        return String::new();
    }
    let step = (max_us - min_us) / (MARKS - 1) as f64;
    let marks: Vec<f64> = (0..MARKS).map(|i| if i + 1 == MARKS { max_us } else { min_us + step * i as f64 }).collect();
    let mut counts = [0u64; MARKS];
    for value in histo.iter_recorded() {
        // The beginning of its step: it is printed as the fastest time, and the fastest request counts at the first mark.
        let us = histo.lowest_equivalent(value.value_iterated_to()) as f64 / 1e3;
        let at = marks.iter().position(|mark| us <= *mark).unwrap_or(MARKS - 1);
        counts[at] += value.count_at_value();
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let line = |(mark, n): (&f64, &u64)| {
        let bar = "■".repeat(((n * BAR + most / 2) / most) as usize);
        format!("  {:.3} [{n}]\t|{bar}\n", mark / 1e6)
    };
    marks.iter().zip(&counts).map(line).collect()
}

fn details(account: Account<'_>) -> String {
    let result = account.result;
    let (service, first, connect) = (&result.service, &result.first_byte, &result.connect);
    let s = |us: f64| us / 1e6;
    // Over all requests: those on an existing connection took no time to connect.
    let requests = service.count.max(1);
    let dial = connect.mean_us * connect.count.min(requests) as f64 / requests as f64;
    let fastest = if connect.count < requests { 0.0 } else { connect.min_us };
    let wait = if first.count > 0 { first } else { service };
    let rows = [
        ("DNS+dialup", dial, fastest, connect.max_us),
        ("DNS-lookup", 0.0, 0.0, 0.0),
        ("req write", 0.0, 0.0, 0.0),
        ("resp wait", wait.mean_us, wait.min_us, wait.max_us),
        ("resp read", (service.mean_us - wait.mean_us).max(0.0), 0.0, (service.max_us - wait.max_us).max(0.0)),
    ];
    let mut out = "\nDetails (average, fastest, slowest):\n".to_owned();
    for (name, mean, fastest, slowest) in rows {
        out.push_str(&format!("  {name}:\t{:.4} secs, {:.4} secs, {:.4} secs\n", s(mean), s(fastest), s(slowest)));
    }
    out
}

fn distributions(account: Account<'_>) -> String {
    let window = &account.result.window;
    let mut out = "\nStatus code distribution:\n".to_owned();
    for (status, n) in &window.statuses {
        out.push_str(&format!("  [{status}]\t{n} responses\n"));
    }
    let failed: BTreeMap<_, _> = window.errors.iter().filter(|(kind, _)| !kind.is_response()).collect();
    if failed.is_empty() {
        // As many empty lines as hey leaves.
        return out + "\n\n\n";
    }
    out.push_str("\nError distribution:\n");
    for (kind, n) in failed {
        out.push_str(&format!("  [{n}]\t{}\n", kind.as_str().replace('_', " ")));
    }
    out + "\n"
}
