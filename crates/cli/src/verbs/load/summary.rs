//! What a load comes to, on one screen of 80 columns: what was ordered, what came of it, how long it took, and where
//! the limit was.

use weir_model::load::{Counts, LoadResult, LoadSpec, Quantiles, Shape};
use weir_model::units::{human_bytes, human_us};

use super::show::describe;
use crate::words::{count, counted, rate, time};

/// A worker busier than this was itself the limit: near it, answers wait for the client.
const BUSY: f64 = 0.9;

/// An open load of which less than this share was answered in its window was not carried.
const CARRIED: f64 = 0.99;

/// So many statuses or kinds of error are listed; the rest is counted.
const LISTED: usize = 4;

/// The whole screen.
pub fn summary(result: &LoadResult, spec: &LoadSpec, url: &str) -> String {
    let head = format!("{url}\n{}\n", describe(spec));
    if result.cut_short && result.window_s <= 0.0 {
        return format!("{head}\nstopped before anything was measured\n");
    }
    let mut lines = vec![String::new()];
    lines.extend(counts(result));
    lines.push(format!("\n{:<12}{HEADINGS}", ""));
    lines.push(format!("{:<12}{}", "latency", quantiles(&result.latency)));
    if result.offered_rate.is_some() {
        lines.push(format!("{:<12}{}", "service", quantiles(&result.service)));
        lines.push(format!("{:<12}{}", "lag", quantiles(&result.lag)));
    }
    lines.push(format!("{:<12}{}\n", "connect", quantiles(&result.connect)));
    lines.push(format!("{:<12}{}", "client", client(result)));
    lines.extend(limit(result, spec).iter().zip(["limit", ""]).map(|(line, name)| format!("{name:<12}{line}")));
    format!("{head}{}\n", lines.join("\n"))
}

fn counts(result: &LoadResult) -> Vec<String> {
    let window = &result.window;
    let mut lines = Vec::new();
    let mut line = |name: &str, figure: String, rest: String| {
        lines.push(format!("{name:<12}{figure:>13}  {rest}").trim_end().to_owned());
    };
    let cut = if result.cut_short { ", cut short" } else { "" };
    line("rate", rate(result.rate), format!("right answers in {}{cut}", human_us(result.window_s * 1e6)));
    if let Some(offered) = result.offered_rate {
        line("offered", rate(offered), format!("{:.1} % of it answered rightly in time", carried(result) * 100.0));
    }
    line("requests", count(window.due), requests(window));
    let per_second = |bytes: u64| human_bytes(bytes as f64 / result.window_s.max(1e-6));
    let wire = format!("of right bodies; {}/s in, {}/s out", per_second(window.bytes_in), per_second(window.bytes_out));
    line("transfer", format!("{}/s", human_bytes(result.body_bytes_per_s)), wire);
    line("connections", count(result.total.connections), connections(&result.total));
    if !window.statuses.is_empty() {
        line("statuses", String::new(), listed(window.statuses.iter().map(|(s, n)| (s.to_string(), *n))));
    }
    if !window.errors.is_empty() {
        let kinds = window.errors.iter().map(|(kind, n)| (kind.as_str().replace('_', " "), *n));
        line("errors", String::new(), listed(kinds));
    }
    lines
}

fn requests(window: &Counts) -> String {
    let unsent = if window.unsent > 0 { format!(", {} never sent", count(window.unsent)) } else { String::new() };
    format!("due: {} right, {} failed{unsent}", count(window.right), count(window.error_count()))
}

fn connections(total: &Counts) -> String {
    let failed = match total.connect_failures {
        0 => String::new(),
        n => format!(", {}", counted(n, "failed attempt")),
    };
    format!("opened, {} closed by the target{failed}", count(total.closed_by_peer))
}

/// The commonest first.
fn listed(items: impl Iterator<Item = (String, u64)>) -> String {
    let mut items: Vec<(String, u64)> = items.collect();
    items.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let rest = items.len().saturating_sub(LISTED);
    let mut words: Vec<String> = items.iter().take(LISTED).map(|(name, n)| format!("{name}: {}", count(*n))).collect();
    if rest > 0 {
        words.push(format!("and {rest} more"));
    }
    words.join(", ")
}

/// Share of what was due in the window that was answered rightly in it.
fn carried(result: &LoadResult) -> f64 {
    if result.window.due == 0 { 1.0 } else { result.window.right_in_window as f64 / result.window.due as f64 }
}

fn busiest(result: &LoadResult) -> f64 {
    result.thread_busy.iter().copied().fold(0.0, f64::max)
}

fn client(result: &LoadResult) -> String {
    let ended: u64 = result.series.iter().map(|row| row.right + row.errors).sum();
    let each = match ended {
        0 => String::new(),
        n => {
            // What it spends awake and waiting for due times is not the price of a request.
            let work = (result.cpu_us.0 + result.cpu_us.1).saturating_sub(result.vigil_us);
            format!(", {} of CPU a request", time(work as f64 / n as f64))
        }
    };
    let which = if result.threads == 1 { "" } else { "the busiest " };
    format!(
        "{}, {}, {which}{:.0} % busy{each}",
        result.driver,
        counted(result.threads.into(), "thread"),
        busiest(result) * 100.0
    )
}

/// What kept the rate where it is, as far as the client can know; at most two lines.
fn limit(result: &LoadResult, spec: &LoadSpec) -> Vec<String> {
    let window = &result.window;
    let open = matches!(spec.shape, Shape::Open { .. });
    let two = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
    if window.right == 0 && window.error_count() > 0 {
        return two("no answer was right: the times are those of failures", "(see statuses and errors)");
    }
    if open && carried(result) >= CARRIED {
        return vec!["none reached: what was offered was carried".to_owned()];
    }
    if busiest(result) > BUSY {
        return two(
            "the client, not the target: a thread of it had no time left;",
            "more threads (-t) on more CPUs would tell",
        );
    }
    if open && window.unsent > 0 {
        return two(
            "the target did not carry what was offered: every connection was busy",
            "and requests queued; more connections (-c) might carry more",
        );
    }
    if open {
        return vec!["some requests got no right answer in time (see errors, and the lag)".to_owned()];
    }
    two("not the client, whose threads had time left: the target, the way", "to it, or too few connections (-c)")
}

const HEADINGS: &str = "     p50      p90      p99    p99.9   p99.99      max     mean";

fn quantiles(q: &Quantiles) -> String {
    if q.count == 0 {
        return " no samples".to_owned();
    }
    [q.p50_us, q.p90_us, q.p99_us, q.p999_us, q.p9999_us, q.max_us, q.mean_us]
        .iter()
        .map(|us| format!("{:>8}", time(*us)))
        .collect::<Vec<_>>()
        .join(" ")
}
