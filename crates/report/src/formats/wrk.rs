//! Prints a result as `wrk --latency` and `wrk2 --latency` do, with their units. Those tools count `Req/Sec` of each thread in steps of a
//! tenth of a second; weir counts the correct responses of all threads together in such steps, and divides by the number of threads.

use askama::Template;
use weir_model::load::{ErrorKind, LoadResult};

use super::{Account, hgrm, percentile_us};

#[derive(Template)]
#[template(path = "formats/wrk.txt", escape = "none")]
struct Wrk<'a> {
    account: Account<'a>,
    result: &'a LoadResult,
    /// As wrk2 prints it, with all percentiles.
    wrk2: bool,
}

/// wrk.
pub fn wrk(account: Account<'_>) -> String {
    format!("{}\n", Wrk { account, result: account.result, wrk2: false })
}

/// wrk2.
pub fn wrk2(account: Account<'_>) -> String {
    format!("{}\n", Wrk { account, result: account.result, wrk2: true })
}

impl Wrk<'_> {
    /// Mean, standard deviation and maximum of the latency, and the share within one deviation of the mean.
    fn latency(&self) -> String {
        let (latency, histo) = (&self.result.latency, self.account.latency);
        let nanos = |us: f64| (us.max(0.0) * 1e3) as u64;
        let (low, high) = (latency.mean_us - latency.stdev_us, latency.mean_us + latency.stdev_us);
        let within = histo.count_between(nanos(low), nanos(high)) as f64 / histo.len().max(1) as f64;
        row([latency.mean_us, latency.stdev_us, latency.max_us], within, time_us)
    }

    /// The same of a thread's requests a second.
    fn rates(&self) -> String {
        let ThreadRates { mean, stdev, max, within_stdev } = thread_rates(self.result).unwrap_or_default();
        row([mean, stdev, max], within_stdev, metric)
    }

    /// Percentages, and the times within which so many were answered.
    fn percentiles(&self) -> Vec<(f64, String)> {
        let shown: &[f64] =
            if self.wrk2 { &[50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0] } else { &[50.0, 75.0, 90.0, 99.0] };
        let of = |percent: &f64| (*percent, cell(&time_us(percentile_us(self.account.latency, *percent)), 10));
        shown.iter().map(of).collect()
    }

    fn seconds(&self) -> String {
        time_s(self.result.window_s)
    }

    /// Bytes read, in all and a second.
    fn read(&self) -> (String, String) {
        let bytes = self.result.window.plaintext_in as f64;
        (binary(bytes), binary(bytes / self.account.seconds()))
    }

    /// Failed requests: connecting, reading, and those that took too long.
    fn failed(&self) -> (u64, u64, u64) {
        let (connect, timeout) = (self.account.sum(ErrorKind::is_connect), self.account.errors_of(ErrorKind::Timeout));
        (connect, self.account.unanswered() - connect - timeout, timeout)
    }
}

/// Requests a second of one of the client's threads, from step to step of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ThreadRates {
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub stdev: f64,
    /// The most.
    pub max: f64,
    /// The share of steps within one deviation of the mean, 0 to 1.
    pub within_stdev: f64,
}

/// The rates of a thread: those of all threads, divided by their number. `None` where neither tenths nor seconds were recorded.
pub fn thread_rates(result: &LoadResult) -> Option<ThreadRates> {
    let threads = f64::from(result.threads.max(1));
    let seconds = result.series.iter().filter(|row| row.length_s > 0.0);
    let rates: Vec<f64> = match result.tenths.as_slice() {
        [] => seconds.map(|row| (row.successful + row.errors) as f64 / row.length_s / threads).collect(),
        tenths => tenths.iter().map(|successful| *successful as f64 * 10.0 / threads).collect(),
    };
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n;
    // Of a sample, as the tools have it: by n - 1.
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let stdev = (squares / (n - 1.0).max(1.0)).sqrt();
    let within = rates.iter().filter(|rate| (**rate - mean).abs() <= stdev).count() as f64;
    let max = rates.iter().copied().fold(0.0, f64::max);
    (n > 0.0).then(|| ThreadRates { mean, stdev, max, within_stdev: within / n })
}

fn row([mean, stdev, max]: [f64; 3], within: f64, unit: fn(f64) -> String) -> String {
    let cells = [(mean, 8), (stdev, 10), (max, 9)].map(|(value, width)| cell(&unit(value), width));
    format!("{}{:>8.2}%", cells.concat(), within * 100.0)
}

/// Microseconds: `231.94us`, `3.65ms`, `1.20s`, `1.50m`.
pub fn time_us(us: f64) -> String {
    if us >= 1e6 { scaled(us / 1e6, 60.0, "s", &["m"], 2) } else { scaled(us, 1e3, "us", &["ms"], 2) }
}

/// Seconds as a whole number: `10s`, `2m`.
pub fn time_s(seconds: f64) -> String {
    scaled(seconds, 60.0, "s", &["m"], 0)
}

/// A count in thousands: `78.36k`.
pub fn metric(n: f64) -> String {
    scaled(n, 1e3, "", &["k", "M", "G", "T"], 2)
}

/// A count in powers of 1024: `34.08M`.
pub fn binary(n: f64) -> String {
    scaled(n, 1024.0, "", &["K", "M", "G", "T"], 2)
}

fn scaled(mut n: f64, scale: f64, base: &str, units: &[&str], decimals: usize) -> String {
    let mut unit = base;
    for next in units {
        if n < scale * 0.85 {
            break;
        }
        n /= scale;
        unit = next;
    }
    format!("{n:.decimals$}{unit}")
}

/// A figure in a column: right-aligned, with a unit of less than two letters padded behind, so that points align.
pub fn cell(text: &str, width: usize) -> String {
    let letters = text.bytes().rev().take(2).filter(u8::is_ascii_alphabetic).count();
    let pad = 2 - letters;
    format!("{text:>w$}{:pad$}", "", w = width - pad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_where_wrk_changes_them() {
        assert_eq!([time_us(231.94), time_us(849.0), time_us(850.0)], ["231.94us", "849.00us", "0.85ms"]);
        assert_eq!([time_us(999_999.0), time_us(1.2e6), time_us(60e6)], ["1000.00ms", "1.20s", "1.00m"]);
        assert_eq!([time_s(1.0), time_s(30.0), time_s(90.0), time_s(120.0)], ["1s", "30s", "2m", "2m"]);
        assert_eq!([metric(849.0), metric(78_360.0), metric(2e6)], ["849.00", "78.36k", "2.00M"]);
        assert_eq!([binary(1023.0), binary(870.0), binary(35_735_470.0)], ["1.00K", "870.00", "34.08M"]);
    }

    #[test]
    fn cells_align_by_their_points() {
        assert_eq!(
            [cell("67.00us", 10), cell("3.65s", 10), cell("12.00", 10)],
            ["   67.00us", "    3.65s ", "   12.00  "]
        );
    }
}
