//! Writes `MANY.md` from the results of the loads.

use std::fmt::Write as _;

use weir_model::load::LoadResult;
use weir_model::protocol::Protocol;
use weir_model::text::count;

use super::memory::Memory;
use super::{FEW, Loaded, WARMUP_S};
use crate::peers::Fact;

/// What stands in the page where a target was missed.
pub const MISSED: &str = "**not reached**";

/// From how long a load on memory has to stay flat, s: buffers and heaps reach their sizes in the first minutes.
const LONG_S: f64 = 600.0;

/// By how much it may grow even then, as a share.
const FLAT: f64 = 0.02;

/// The two loads with one protocol.
#[derive(Debug)]
pub struct Pair {
    /// What was spoken.
    pub protocol: Protocol,
    /// How many the many were.
    pub connections: u32,
    /// Requests a second.
    pub rate: u32,
    /// With few connections.
    pub few: Loaded,
    /// With many.
    pub many: Loaded,
}

/// The whole page.
pub fn markdown(facts: &[Fact], busy: &[String], pairs: &[Pair]) -> String {
    let mut out = String::from(
        "# Very many connections\n\nWritten by `make bench-many`: one client process and one origin process on one machine. User memory of a\n\
         connection is the most private memory of a process (`smaps_rollup`), less the same with 64 connections, divided by the additional\n\
         connections. Kernel memory is what slabs, page tables and stacks of the whole machine grew; it holds two sockets a connection.\n",
    );
    super::super::described(&mut out, facts, busy);
    ends(&mut out, pairs);
    for pair in pairs {
        section(&mut out, pair);
    }
    out
}

/// What a connection costs at its end should not depend on how many there are.
fn ends(out: &mut String, pairs: &[Pair]) {
    out.push_str("\n| | connections | CPU of the client to end them, s | a connection, µs |\n|---|---|---|---|\n");
    for pair in pairs {
        let (connections, cpu_us) = (pair.connections, pair.many.end_cpu_us);
        let (title, all, each) = (pair.protocol.title(), count(connections.into()), cpu_us / f64::from(connections));
        let _ = writeln!(out, "| {title} | {all} | {:.2} | {each:.1} |", cpu_us / 1e6);
    }
}

fn section(out: &mut String, pair: &Pair) {
    let _ = write!(
        out,
        "\n## {}: {} connections, {} requests/s\n\n| what | | target | |\n|---|---|---|---|\n",
        pair.protocol.title(),
        count(pair.connections.into()),
        count(pair.rate.into())
    );
    rows(out, pair);
    over_time(out, &pair.many.samples);
    let [client, origin] = &pair.many.commands;
    let _ = write!(out, "\n`{origin}`\n\n`{client}`\n");
}

fn rows(out: &mut String, pair: &Pair) {
    let (few, many) = (highest(&pair.few.samples), highest(&pair.many.samples));
    let more = f64::from(pair.connections.saturating_sub(FEW).max(1));
    let of_each = |many: u64, few: u64| many.saturating_sub(few) as f64 / more;
    let most_bytes = if pair.protocol.is_tls() { 24.0 * 1_024.0 } else { 1_024.0 };
    let report = &pair.many.report;
    let all = u64::from(pair.connections);
    let mut row = |what: &str, value: String, target: &str, reached: Option<bool>| {
        let judged = reached.map_or("", |reached| if reached { "reached" } else { MISSED });
        let _ = writeln!(out, "| {what} | {value} | {target} | {judged} |");
    };
    let (used, open) = (report.connections_used, u64::from(report.most_open));
    row("open at a time", count(open), &count(all), Some(open == all));
    // In a short load not every connection has its turn.
    let turns = all.min(report.total.due);
    row("carried a response", count(used), &count(turns), Some(used >= turns));
    row("set up in", format!("{:.1} s", pair.many.set_up_s), "< 60 s", Some(pair.many.set_up_s < 60.0));
    for (at, who) in ["client", "origin"].into_iter().enumerate() {
        let bytes = of_each(many.private[at], few.private[at]);
        let (value, target) = (format!("{bytes:.0} B"), format!("<= {most_bytes:.0} B"));
        row(&format!("user memory of a connection, {who}"), value, &target, Some(bytes <= most_bytes));
    }
    if let Some(growth) = growth(&pair.many) {
        for (share, who) in growth.into_iter().zip(["client", "origin"]) {
            let (value, target) = (format!("{:+.2} %", share * 100.0), format!("<= {:.0} %", FLAT * 100.0));
            row(&format!("memory grew from the first tenth to the last, {who}"), value, &target, Some(share <= FLAT));
        }
    }
    // Not the highest with few: sockets of a run before may still have been closing then.
    let samples = pair.few.samples.iter().chain(&pair.many.samples);
    let least = samples.map(|sample| sample.kernel).min().unwrap_or(0);
    row("kernel memory of a connection, both ends", format!("{:.0} B", of_each(many.kernel, least)), "", None);
    row("buffers of TCP at most", format!("{:.1} MiB", mib(many.tcp)), "", None);
    let carried = report.rate >= 0.99 * f64::from(pair.rate);
    row("successful responses/s", count(report.rate as u64), &count(pair.rate.into()), Some(carried));
    let (wrong, unsent) = (report.total.error_count(), report.total.unsent);
    let counts = format!("{}, {wrong}, {unsent}", count(report.total.successful));
    row("right, wrong, unsent", counts, "all right", Some(wrong + unsent == 0));
    let LoadResult { latency, lag, connect, handshake, .. } = report;
    for (times, name) in [(latency, "latency"), (lag, "lag"), (connect, "connecting"), (handshake, "handshake")] {
        if times.max_us > 0.0 {
            let text = format!("{:.0}, {:.0}, {:.0} µs", times.p50_us, times.p99_us, times.p999_us);
            row(&format!("{name}: p50, p99, p99.9"), text, "", None);
        }
    }
}

fn over_time(out: &mut String, samples: &[Memory]) {
    out.push_str(
        "\n| s | TCP sockets | client, MiB | origin, MiB | kernel, MiB | TCP buffers, MiB |\n|---|---|---|---|---|---|\n",
    );
    // About twenty lines, and the last.
    let step = samples.len().div_ceil(20).max(1);
    for (at, sample) in samples.iter().enumerate() {
        if at % step == 0 || at + 1 == samples.len() {
            let Memory { at_s, private, kernel, tcp, sockets, .. } = *sample;
            let _ = writeln!(
                out,
                "| {at_s:.1} | {} | {:.1} | {:.1} | {:.1} | {:.1} |",
                count(sockets),
                mib(private[0]),
                mib(private[1]),
                mib(kernel),
                mib(tcp)
            );
        }
    }
}

/// By what share the memory of client and origin is more in the last tenth of a long load than in the first, once all are connected.
fn growth(many: &Loaded) -> Option<[f64; 2]> {
    let (from, long) = (many.set_up_s + WARMUP_S as f64, many.report.window_s);
    let mean = |from: f64, who: usize| {
        let samples = many.samples.iter().filter(|sample| (from..from + long / 10.0).contains(&sample.at_s));
        let (sum, count) = samples.fold((0.0, 0), |(sum, n), sample| (sum + sample.private[who] as f64, n + 1));
        sum / f64::from(count)
    };
    (long >= LONG_S).then(|| [0, 1].map(|who| mean(from + 0.9 * long, who) / mean(from, who) - 1.0))
}

/// Every value at its highest, whenever that was.
fn highest(samples: &[Memory]) -> Memory {
    samples.iter().fold(Memory::default(), |most, sample| Memory {
        at_s: most.at_s.max(sample.at_s),
        private: [most.private[0].max(sample.private[0]), most.private[1].max(sample.private[1])],
        kernel: most.kernel.max(sample.kernel),
        tcp: most.tcp.max(sample.tcp),
        sockets: most.sockets.max(sample.sockets),
    })
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use weir_model::load::{Counts, Quantiles};

    use super::*;

    fn done(private: u64, connections: u64) -> Loaded {
        let sample = Memory { private: [private, 2 * private], kernel: 10 * private, ..Memory::default() };
        let report = LoadResult {
            connections_used: connections,
            most_open: connections as u32,
            rate: 15_000.0,
            total: Counts { due: 20_000, successful: 5, ..Counts::default() },
            latency: Quantiles { p50_us: 50.0, max_us: 60.0, ..Quantiles::default() },
            ..LoadResult::default()
        };
        Loaded {
            commands: ["weir load".to_owned(), "weir origin".to_owned()],
            set_up_s: 12.0,
            end_cpu_us: 1_064.0,
            samples: vec![sample],
            report,
        }
    }

    #[test]
    fn memory_that_grows_in_a_long_load_is_seen() {
        let loaded = |long: f64, more: u64| {
            let mut loaded = done(0, 1_000);
            loaded.report.window_s = long;
            let at = |n: u64| Memory {
                at_s: 12.0 + n as f64,
                private: [1_000_000, 1_000_000 + n * more],
                ..Memory::default()
            };
            loaded.samples = (0..long as u64).map(at).collect();
            loaded
        };
        assert_eq!(growth(&loaded(599.0, 100)), None, "too short to judge");
        assert_eq!(growth(&loaded(1_000.0, 0)), Some([0.0, 0.0]));
        let [client, origin] = growth(&loaded(1_000.0, 100)).unwrap();
        assert!(client == 0.0 && (0.088..0.092).contains(&origin), "{client}, {origin}");
        let pair = Pair {
            protocol: Protocol::Http11,
            connections: 1_000,
            rate: 15_000,
            few: done(0, 64),
            many: loaded(1_000.0, 100),
        };
        assert!(markdown(&[], &[], &[pair]).contains("to the last, origin | +8.95 % | <= 2 % | **not reached** |"));
    }

    #[test]
    fn a_connections_share_is_what_was_more() {
        let connections = 1_064;
        let pair = |many| Pair { protocol: Protocol::Http11, connections, rate: 15_000, few: done(1_000, 64), many };
        let whole = markdown(&[], &[], &[pair(done(1_000 + 500_000, 1_064))]);
        assert!(whole.contains("| plain HTTP/1.1 | 1,064 | 0.00 | 1.0 |"), "{whole}");
        assert!(whole.contains("connection, client | 500 B | <= 1024 B | reached |"), "{whole}");
        assert!(whole.contains("connection, origin | 1000 B | <= 1024 B | reached |"), "{whole}");
        assert!(
            whole.contains("| latency: p50, p99, p99.9 | 50, 0, 0 µs |") && !whole.contains("not reached"),
            "{whole}"
        );
        let whole = markdown(&[], &[], &[pair(done(10_000_000, 1_000))]);
        assert!(whole.contains("| carried a response | 1,000 | 1,064 | **not reached** |"), "{whole}");
        assert!(whole.contains("connection, client | 9999 B | <= 1024 B | **not reached** |"), "{whole}");
    }
}
