//! The page that tells of very many connections.

use std::fmt::Write as _;

use serde_json::Value;

use super::memory::Memory;
use super::{Done, FEW, Spoken};
use crate::peers::cases::grouped;

/// The two loads with one protocol.
#[derive(Debug)]
pub struct Part {
    /// What was spoken.
    pub spoken: Spoken,
    /// How many the many were.
    pub connections: u32,
    /// Requests a second.
    pub rate: u32,
    /// With few connections.
    pub few: Done,
    /// With many.
    pub many: Done,
}

/// The whole page.
pub fn markdown(facts: &[(String, String)], busy: &[String], parts: &[Part]) -> String {
    let mut out = String::from(
        "# Very many connections\n\nWritten by `peers many` (`make bench-many`). One client process and one origin process on one machine.\n\
         User memory of a connection is what a process has for itself alone (`smaps_rollup`: private, in memory) at its highest, less the\n\
         same with 64 connections, by the connections that were more. The kernel's is what slabs, page tables and stacks of\n\
         the whole machine grew, and holds two sockets a connection.\n",
    );
    if !busy.is_empty() {
        let _ =
            write!(out, "\n**The machine was busy when this was measured: {}.** Take it as a hint.\n", busy.join("; "));
    }
    out.push_str("\n| | |\n|---|---|\n");
    for (name, value) in facts {
        let _ = writeln!(out, "| {name} | {} |", value.replace('|', "\\|"));
    }
    for part in parts {
        one(&mut out, part);
    }
    out
}

/// What was to be reached, of all protocols, as one table.
pub fn targets(parts: &[Part]) -> String {
    let mut out = String::from("| what | | to reach | |\n|---|---|---|---|\n");
    for part in parts {
        for row in rows(part).iter().filter(|row| row.reached.is_some()) {
            let _ =
                writeln!(out, "| {}, {} | {} | {} | {} |", part.name(), row.what, row.value, row.target, row.judged());
        }
    }
    out
}

/// A line of the table.
struct Row {
    what: String,
    value: String,
    target: String,
    reached: Option<bool>,
}

impl Row {
    fn judged(&self) -> &'static str {
        self.reached.map_or("", |reached| if reached { "reached" } else { "**not reached**" })
    }
}

impl Part {
    fn name(&self) -> &'static str {
        match self.spoken {
            Spoken::Plain => "HTTP/1.1",
            Spoken::Tls => "HTTP/1.1 over TLS 1.3",
        }
    }
}

fn one(out: &mut String, part: &Part) {
    let _ = write!(
        out,
        "\n## {}: {} connections, {} requests/s\n\n| what | | to reach | |\n|---|---|---|---|\n",
        part.name(),
        grouped(part.connections.into()),
        grouped(part.rate.into())
    );
    for row in rows(part) {
        let _ = writeln!(out, "| {} | {} | {} | {} |", row.what, row.value, row.target, row.judged());
    }
    over_time(out, &part.many.samples);
    let [client, origin] = &part.many.commands;
    let _ = write!(out, "\n`{origin}`\n\n`{client}`\n");
}

fn rows(part: &Part) -> Vec<Row> {
    let (few, many) = (highest(&part.few.samples), highest(&part.many.samples));
    let more = f64::from(part.connections.saturating_sub(FEW).max(1));
    let of_each = |many: u64, few: u64| many.saturating_sub(few) as f64 / more;
    let most_bytes = match part.spoken {
        Spoken::Plain => 1_024.0,
        Spoken::Tls => 24.0 * 1_024.0,
    };
    let told = &part.many.told;
    let number = |of: &str| told[of].as_u64().unwrap_or(0);
    let total = |of: &str| told["total"][of].as_u64().unwrap_or(0);
    let all = u64::from(part.connections);
    let mut rows = Vec::new();
    let mut row = |what: &str, value: String, target: &str, reached| {
        rows.push(Row { what: what.to_owned(), value, target: target.to_owned(), reached });
    };
    let (used, open) = (number("connections_used"), number("most_open"));
    row("open at a time", grouped(open), &grouped(all), Some(open == all));
    row("brought an answer", grouped(used), &grouped(all), Some(used >= all));
    row("set up in", format!("{:.1} s", part.many.set_up_s), "< 60 s", Some(part.many.set_up_s < 60.0));
    for (at, who) in ["client", "origin"].into_iter().enumerate() {
        let bytes = of_each(many.private[at], few.private[at]);
        let (value, target) = (format!("{bytes:.0} B"), format!("<= {most_bytes:.0} B"));
        row(&format!("user memory of a connection, {who}"), value, &target, Some(bytes <= most_bytes));
    }
    // Not the highest with few: sockets of a run before may still have been closing then.
    let samples = part.few.samples.iter().chain(&part.many.samples);
    let least = samples.map(|sample| sample.kernel).min().unwrap_or(0);
    row("kernel memory of a connection, both ends", format!("{:.0} B", of_each(many.kernel, least)), "", None);
    row("buffers of TCP at most", format!("{:.1} MiB", mib(many.tcp)), "", None);
    let rate = told["rate"].as_f64().unwrap_or(f64::NAN);
    let carried = rate >= 0.99 * f64::from(part.rate);
    row("right answers a second", grouped(rate as u64), &grouped(part.rate.into()), Some(carried));
    let wrong: u64 = told["total"]["errors"].as_object().map_or(0, |all| all.values().filter_map(Value::as_u64).sum());
    let counts = format!("{}, {wrong}, {}", grouped(total("right")), total("unsent"));
    row("right, wrong, unsent", counts, "all right", Some(wrong + total("unsent") == 0));
    for (of, name) in [("latency", "latency"), ("lag", "lag"), ("connect", "connecting"), ("handshake", "handshake")] {
        let us = |quantile: &str| told[of][quantile].as_f64().unwrap_or(0.0);
        if us("max_us") > 0.0 {
            let text = format!("{:.0}, {:.0}, {:.0} us", us("p50_us"), us("p99_us"), us("p999_us"));
            row(&format!("{name}: p50, p99, p99.9"), text, "", None);
        }
    }
    rows
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
                grouped(sockets),
                mib(private[0]),
                mib(private[1]),
                mib(kernel),
                mib(tcp)
            );
        }
    }
}

/// Every value at its highest, whenever that was.
fn highest(samples: &[Memory]) -> Memory {
    samples.iter().fold(Memory::default(), |most, sample| Memory {
        at_s: most.at_s.max(sample.at_s),
        private: [most.private[0].max(sample.private[0]), most.private[1].max(sample.private[1])],
        resident: [most.resident[0].max(sample.resident[0]), most.resident[1].max(sample.resident[1])],
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
    use serde_json::json;

    use super::*;

    fn done(private: u64, connections: u64) -> Done {
        let sample = Memory { private: [private, 2 * private], kernel: 10 * private, ..Memory::default() };
        let told = json!({
            "connections_used": connections, "most_open": connections, "rate": 15_000.0,
            "total": {"right": 5, "unsent": 0, "errors": {}}, "latency": {"p50_us": 50.0, "max_us": 60.0}
        });
        Done {
            commands: ["weir load".to_owned(), "weir origin".to_owned()],
            set_up_s: 12.0,
            samples: vec![sample],
            told,
        }
    }

    #[test]
    fn a_connections_share_is_what_was_more() {
        let connections = 1_064;
        let part = |many| Part { spoken: Spoken::Plain, connections, rate: 15_000, few: done(1_000, 64), many };
        let whole = markdown(&[], &[], &[part(done(1_000 + 500_000, 1_064))]);
        assert!(whole.contains("connection, client | 500 B | <= 1024 B | reached |"), "{whole}");
        assert!(whole.contains("connection, origin | 1000 B | <= 1024 B | reached |"), "{whole}");
        assert!(
            whole.contains("| latency: p50, p99, p99.9 | 50, 0, 0 us |") && !whole.contains("not reached"),
            "{whole}"
        );
        let whole = markdown(&[], &[], &[part(done(10_000_000, 1_000))]);
        assert!(whole.contains("| brought an answer | 1,000 | 1,064 | **not reached** |"), "{whole}");
        assert!(whole.contains("connection, client | 9999 B | <= 1024 B | **not reached** |"), "{whole}");
    }
}
