//! Prints a result as ApacheBench does, in whole milliseconds. The name of the server stays empty: weir does not read it.

use std::collections::BTreeMap;

use askama::Template;
use weir_model::load::{ErrorKind, LoadResult, LoadSpec, Quantiles};

use super::{Account, percentile_us};

#[derive(Template)]
#[template(path = "formats/ab.txt", escape = "none")]
struct Ab<'a> {
    account: Account<'a>,
    result: &'a LoadResult,
    spec: &'a LoadSpec,
    host: &'a str,
    port: &'a str,
}

/// Prints the output of ab, with the request itself, such as the host and the path.
pub fn ab(account: Account<'_>, spec: &LoadSpec) -> String {
    let authority = spec.targets.first().map(|target| target.authority.as_str()).unwrap_or_default();
    let (host, port) = host_and_port(authority, spec.tls.is_some());
    format!("{}\n", Ab { account, result: account.result, spec, host, port })
}

impl Ab<'_> {
    fn path(&self) -> &str {
        self.spec.requests.first().map(|ask| ask.request.path.as_str()).unwrap_or_default()
    }

    fn server_name(&self) -> &str {
        let name = self.spec.tls.as_ref().and_then(|tls| tls.server_name.as_deref());
        name.unwrap_or(self.host)
    }

    fn sends_bodies(&self) -> bool {
        self.spec.requests.iter().any(|ask| !ask.request.body.is_empty())
    }

    /// KiB a second, received and sent.
    fn transfer(&self) -> (f64, f64) {
        let per_second = |bytes: u64| bytes as f64 / 1024.0 / self.account.seconds();
        (per_second(self.result.window.plaintext_in), per_second(self.result.window.bytes_out))
    }

    /// Each row of times: its name and distribution.
    fn times(&self) -> [(&'static str, Quantiles); 4] {
        let result = self.result;
        let first = if result.first_byte.count > 0 { &result.first_byte } else { &result.service };
        [
            ("Connect:", spread_over(&result.connect, self.account.answered())),
            ("Processing:", result.service.clone()),
            ("Waiting:", first.clone()),
            ("Total:", result.latency.clone()),
        ]
    }

    /// Percentages, and the milliseconds within which so many were answered.
    fn percentiles(&self) -> [(u32, f64); 8] {
        let of = |percent| (percent, ms(percentile_us(self.account.latency, f64::from(percent))));
        [50, 66, 75, 80, 90, 95, 98, 99].map(of)
    }

    fn longest_ms(&self) -> f64 {
        ms(self.result.latency.max_us)
    }
}

/// Host and port of an authority, `[::1]:8080` among them.
fn host_and_port(authority: &str, tls: bool) -> (&str, &str) {
    let default = if tls { "443" } else { "80" };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, default),
    };
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

/// The first of the names that were counted.
fn first(names: &BTreeMap<String, u64>) -> String {
    names.keys().next().cloned().unwrap_or_default()
}

/// Half a millisecond is rounded up, as ab does.
fn ms(us: f64) -> f64 {
    (us / 1e3 + 0.5).floor()
}

/// A row of the times to connect, to answer and so on.
fn row(q: &Quantiles) -> String {
    let (min, mean, p50, max) = (ms(q.min_us), ms(q.mean_us), ms(q.p50_us), ms(q.max_us));
    format!("{min:>5.0} {mean:>4.0} {:>5.1} {p50:>6.0} {max:>7.0}", q.stdev_us / 1e3)
}

/// Times to connect, by request instead of by connection: 0 for requests on an existing connection.
fn spread_over(connect: &Quantiles, requests: u64) -> Quantiles {
    if connect.count >= requests {
        return connect.clone();
    }
    let share = connect.count as f64 / requests as f64;
    let mean_us = connect.mean_us * share;
    let squares = (connect.stdev_us.powi(2) + connect.mean_us.powi(2)) * share;
    Quantiles {
        min_us: 0.0,
        mean_us,
        stdev_us: (squares - mean_us.powi(2)).max(0.0).sqrt(),
        p50_us: if share > 0.5 { connect.p50_us } else { 0.0 },
        ..connect.clone()
    }
}
