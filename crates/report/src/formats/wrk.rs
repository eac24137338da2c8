//! Prints a result as `wrk --latency` and `wrk2 --latency` do. Called by `weir load --format` and by `weir-published`.
//! Those tools count `Req/Sec` in steps of a tenth of a second; weir counts whole seconds.

use weir_model::load::ErrorKind;

use super::units::{binary, cell, metric, time_s, time_us};
use super::{Account, Spread, hgrm, percentile_us};

/// wrk.
pub fn wrk(account: Account<'_>) -> String {
    let mut out = head(account);
    out.push_str("  Latency Distribution\n");
    for percent in [50.0, 75.0, 90.0, 99.0] {
        let value = percentile_us(account.latency, percent);
        out.push_str(&format!("{percent:>7.0}%{}\n", cell(&time_us(value), 10)));
    }
    out + &tail(account)
}

/// wrk2.
pub fn wrk2(account: Account<'_>) -> String {
    let mut out = head(account);
    out.push_str("  Latency Distribution (HdrHistogram - Recorded Latency)\n");
    for percent in [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0] {
        let value = percentile_us(account.latency, percent);
        out.push_str(&format!("{percent:>7.3}%{}\n", cell(&time_us(value), 10)));
    }
    out.push_str("\n  Detailed Percentile spectrum:\n");
    out.push_str(&hgrm::spectrum(account.latency, hgrm::Flavour::Wrk2));
    out.push_str(&format!("{}\n", "-".repeat(58)));
    out + &tail(account)
}

fn head(account: Account<'_>) -> String {
    let result = account.result;
    let latency = &result.latency;
    let threads = f64::from(result.threads.max(1));
    let rates: Vec<f64> = result
        .series
        .iter()
        .filter(|row| row.length_s > 0.0)
        .map(|row| (row.right + row.errors) as f64 / row.length_s / threads)
        .collect();
    let rates = Spread::of(&rates);
    let latency = Spread {
        mean: latency.mean_us,
        stdev: latency.stdev_us,
        max: latency.max_us,
        within: within(account, latency.mean_us, latency.stdev_us),
    };
    format!(
        "Running {} test @ {}\n  {} threads and {} connections\n  Thread Stats{:>6}{:>11}{:>8}{:>12}\n{}{}",
        time_s(result.window_s),
        account.title,
        result.threads,
        account.connections,
        "Avg",
        "Stdev",
        "Max",
        "+/- Stdev",
        row("Latency", latency, time_us),
        row("Req/Sec", rates, metric),
    )
}

fn row(name: &str, spread: Spread, unit: fn(f64) -> String) -> String {
    format!(
        "    {name:<10}{}{}{}{:>8.2}%\n",
        cell(&unit(spread.mean), 8),
        cell(&unit(spread.stdev), 10),
        cell(&unit(spread.max), 9),
        spread.within
    )
}

/// Per cent of the latencies within one standard deviation of the mean.
fn within(account: Account<'_>, mean_us: f64, stdev_us: f64) -> f64 {
    let histo = account.latency;
    if histo.is_empty() {
        return 0.0;
    }
    let nanos = |us: f64| (us.max(0.0) * 1e3) as u64;
    let count = histo.count_between(nanos(mean_us - stdev_us), nanos(mean_us + stdev_us));
    count as f64 / histo.len() as f64 * 100.0
}

fn tail(account: Account<'_>) -> String {
    let (result, seconds) = (account.result, account.seconds());
    let bytes = result.window.bytes_in as f64;
    let answered = account.answered();
    let mut out = format!("  {answered} requests in {}, {}B read\n", time_us(result.window_s * 1e6), binary(bytes));
    let timeout = account.sum(|kind| kind == ErrorKind::Timeout);
    let connect = account.sum(ErrorKind::is_connect);
    let read = account.sum(|kind| !kind.is_response()) - connect - timeout;
    if connect + read + timeout > 0 {
        out.push_str(&format!("  Socket errors: connect {connect}, read {read}, write 0, timeout {timeout}\n"));
    }
    let bad = account.bad_statuses(400);
    if bad > 0 {
        out.push_str(&format!("  Non-2xx or 3xx responses: {bad}\n"));
    }
    out.push_str(&format!("Requests/sec: {:>9.2}\n", answered as f64 / seconds));
    out.push_str(&format!("Transfer/sec: {:>10}B\n", binary(bytes / seconds)));
    out
}
