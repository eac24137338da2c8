//! The summary of a load on one screen of 80 x 24: the specification, counts, times, and what limited the rate. `weir
//! load` prints it.

mod by_kind;
mod limit;
mod streams;

use std::collections::BTreeMap;

use weir_model::coding::Coding;
use weir_model::load::{
    CodedResponses, ConnectionSpread, Counts, ErrorKind, ErrorReason, LoadResult, LoadSpec, Quantiles, QuicResult,
    RequestResult, TlsResult,
};
use weir_model::text::{count, counted, fixed_us, full_rate, human_bytes, human_us, list};

use super::describe::{describe, keyvalue, percentiles, protocol};
use super::format::Outcome;
use super::remarks::remarks;

/// Rows of a terminal, less the one that the prompt needs.
const ROWS: usize = 23;

/// Columns.
const WIDTH: usize = 80;

/// Columns before figures.
const LABEL: usize = 12;

/// Columns behind a figure.
const REST: usize = WIDTH - LABEL - 13 - 2;

/// With more kinds of requests there is no table of them on the screen.
const MOST_KINDS: usize = 10;

/// More reasons of errors are in the JSON alone.
const MOST_REASONS: usize = 3;

/// Lines that are left out first where latency by operation or kind needs the room; the JSON has them.
const SAY_LEAST: [&str; 4] = ["first byte", "service", "transfer", "handshake"];

/// The whole screen.
pub fn summary(outcome: Outcome<'_>) -> String {
    let tables =
        [Tables::All, Tables::Requests, Tables::None].into_iter().filter(|tables| tables.is_short(outcome.result));
    let mut fitting = tables.map(|tables| finished(lines(outcome, tables))).filter(|lines| lines.len() <= ROWS);
    joined(&fitting.next().unwrap_or_else(|| finished(lines(outcome, Tables::None))))
}

/// The same with every kind of request and every status, however long.
pub fn full(outcome: Outcome<'_>) -> String {
    joined(&lines(outcome, Tables::All))
}

/// Which tables of latency by kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tables {
    All,
    Requests,
    None,
}

impl Tables {
    /// Whether they belong on the one screen.
    fn is_short(self, result: &LoadResult) -> bool {
        self == Tables::None || result.by_request.len() <= MOST_KINDS
    }
}

fn lines(outcome: Outcome<'_>, tables: Tables) -> Vec<String> {
    let (result, spec) = (outcome.result, outcome.spec);
    let mut lines = vec![outcome.title.to_owned(), describe(spec)];
    lines.extend(protocol(spec, result.streams));
    lines.extend(keyvalue(spec));
    lines.push(String::new());
    if result.cut_short && result.window_s <= 0.0 {
        lines.push("stopped before anything was measured".to_owned());
        return lines;
    }
    lines.extend(counts(outcome, tables));
    lines.push(String::new());
    lines.extend(times(result, spec));
    if spec.keyvalue.is_none() {
        lines.extend(by_kind::table(result, tables != Tables::None, tables == Tables::All));
    }
    lines.extend(result.by_connection.as_ref().filter(|spread| spread.is_uneven()).map(uneven));
    lines.push(String::new());
    lines.push(format!("{:<LABEL$}{}", "client", client(result)));
    lines.extend(labelled("remark", remarks(outcome)));
    // The pace of a stream is its sender's.
    if spec.stream.is_none() {
        lines.extend(labelled("limit", limit::limit(outcome)));
    }
    lines
}

/// Lines of text, of which the first has a label.
fn labelled(label: &str, lines: Vec<String>) -> impl Iterator<Item = String> {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    lines.into_iter().zip(labels).map(|(line, label)| format!("{label:<LABEL$}{line}"))
}

/// How unevenly connections were served.
fn uneven(spread: &ConnectionSpread) -> String {
    let [fast, slow] = [spread.p10_us, spread.p90_us].map(human_us);
    format!("{:<LABEL$}the slowest tenth of connections took {slow} in the mean, the fastest {fast}", "uneven")
}

/// Removes empty lines where there are too many lines, then those that say least.
fn finished(mut lines: Vec<String>) -> Vec<String> {
    let says_least = |lines: &[String]| {
        let begins = |name: &&str| lines.iter().position(|line| line.starts_with(*name));
        lines.iter().position(String::is_empty).or_else(|| SAY_LEAST.iter().find_map(begins))
    };
    while lines.len() > ROWS
        && let Some(line) = says_least(&lines)
    {
        lines.remove(line);
    }
    lines
}

/// The text, with long titles cut.
fn joined(lines: &[String]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| console::truncate_str(line, WIDTH, "…")).collect();
    format!("{}\n", lines.join("\n"))
}

/// Counts. Of key-value servers wrong data and failures to connect stand apart, and operations with their latencies.
fn counts(outcome: Outcome<'_>, tables: Tables) -> Vec<String> {
    let (result, spec) = (outcome.result, outcome.spec);
    let (window, keyvalue) = (&result.window, spec.keyvalue.is_some());
    let mut lines = Vec::new();
    let line =
        |name: &str, figure: String, rest: String| format!("{name:<LABEL$}{figure:>13}  {rest}").trim_end().to_owned();
    let cut = if result.cut_short { ", cut short" } else { "" };
    lines.push(line(
        "rate",
        full_rate(result.rate),
        format!("successful responses in {}{cut}", human_us(result.window_s * 1e6)),
    ));
    if let Some(offered) = result.offered_rate {
        // The window of a replay lasts until its last response.
        let in_time = if spec.kind.is_finite() { "" } else { " in time" };
        let share = format!("{:.1} % of it got successful responses{in_time}", limit::carried(result) * 100.0);
        lines.push(line("offered", full_rate(offered), share));
    }
    lines.push(line("requests", count(window.due), requests(window)));
    if keyvalue && let Some(wrong) = wrong_data(window) {
        lines.push(wrong);
    }
    if let [first, second, rest @ ..] = result.by_request.as_slice()
        && !keyvalue
        && tables == Tables::None
    {
        lines.push(format!("{:<LABEL$}{}", "of them", kinds(first, second, rest.len())));
    }
    let per_second = |bytes: u64| human_bytes(bytes as f64 / result.window_s.max(1e-6));
    let wire =
        format!("of successful bodies; {}/s in, {}/s out", per_second(window.bytes_in), per_second(window.bytes_out));
    lines.push(line("transfer", format!("{}/s", human_bytes(result.body_bytes_per_s)), wire));
    lines.push(line("connections", count(result.total.connections), connections(result)));
    if let Some(tls) = &result.tls {
        lines.push(format!("{:<LABEL$}{}", "tls", handshakes(tls)));
    }
    lines.extend(result.quic.iter().flat_map(|quic| labelled("quic", datagrams(quic, result.total.sent))));
    if let Some(codings) = &result.codings {
        lines.push(format!("{:<LABEL$}{}", "coded", coded(result, codings)));
    }
    if !window.statuses.is_empty() && !keyvalue {
        lines.push(line("statuses", String::new(), listed(window.statuses.iter().map(|(s, n)| (s.to_string(), *n)))));
    }
    let apart = |kind: ErrorKind| keyvalue && (kind.is_connect() || kind.is_wrong_data());
    let set_up = of_kinds(window, |kind| keyvalue && kind.is_connect());
    let others = of_kinds(window, |kind| !apart(kind));
    for (name, kinds) in [("set-up", set_up), ("errors", others)] {
        if !kinds.is_empty() {
            lines.push(line(name, String::new(), listed(kinds.into_iter())));
        }
    }
    lines.extend(labelled("reasons", reasons(result)));
    if let Some(ids) = &result.request_ids {
        let others: Vec<_> = ids.wrong().map(|(what, n)| (what.to_owned(), n)).collect();
        let (name, n, rest) = match others.is_empty() {
            true => ("request IDs", ids.own, format!("returned rightly; {} responses without one", count(ids.missing))),
            false => ("WRONG IDS", others.iter().map(|(_, n)| n).sum(), listed(others.into_iter())),
        };
        lines.push(line(name, count(n), rest));
    }
    for (name, figure, rest) in result.messages.iter().flat_map(|messages| streams::counts(messages, result.window_s)) {
        lines.push(line(name, figure, rest));
    }
    if let Some(preload) = &result.preload {
        let errors = format!("keys written before, {} failed", count(preload.error_count()));
        lines.push(line("preload", count(preload.successful), errors));
    }
    lines
}

/// Why requests failed, where that is known: the most frequent reasons.
fn reasons(result: &LoadResult) -> Vec<String> {
    let line = |reason: &ErrorReason| {
        let (kind, n) = (reason.kind.as_str().replace('_', " "), format!(" ({})", count(reason.window)));
        let room = (WIDTH - LABEL).saturating_sub(kind.len() + ": ".len() + n.len());
        format!("{kind}: {}{n}", console::truncate_str(&reason.reason, room, "…"))
    };
    result.reasons.iter().filter(|reason| reason.window > 0).take(MOST_REASONS).map(line).collect()
}

/// Errors of these kinds, by name.
fn of_kinds(window: &Counts, wanted: impl Fn(ErrorKind) -> bool) -> Vec<(String, u64)> {
    let kinds = window.errors.iter().filter(|(kind, _)| wanted(**kind));
    kinds.map(|(kind, n)| (kind.as_str().replace('_', " "), *n)).collect()
}

/// What was read and cannot be: the line that nobody must overlook.
fn wrong_data(window: &Counts) -> Option<String> {
    let kinds = of_kinds(window, ErrorKind::is_wrong_data);
    let all: u64 = kinds.iter().map(|(_, n)| n).sum();
    (all > 0).then(|| format!("{:<LABEL$}{:>13}  {}", "WRONG DATA", count(all), listed(kinds.into_iter())))
}

fn requests(window: &Counts) -> String {
    let unsent = if window.unsent > 0 { format!(", {} never sent", count(window.unsent)) } else { String::new() };
    format!("due: {} successful, {} failed{unsent}", count(window.successful), count(window.error_count()))
}

/// The first two kinds of request; the JSON has all.
fn kinds(first: &RequestResult, second: &RequestResult, more: usize) -> String {
    let one = |kind: &RequestResult| {
        let failed = if kind.errors > 0 { format!(" ({} failed)", count(kind.errors)) } else { String::new() };
        format!("{} {}{failed}", console::truncate_str(&kind.name, 20, "…"), count(kind.sent))
    };
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    format!("{}, {}{more}", one(first), one(second))
}

fn connections(result: &LoadResult) -> String {
    let total = &result.total;
    let failed = match total.connect_failures {
        0 => String::new(),
        n => format!(", {} failed", count(n)),
    };
    // Records from before these were counted have 0.
    let idle = match total.connections.saturating_sub(result.connections_used) {
        0 => String::new(),
        _ if result.connections_used == 0 => String::new(),
        n => format!(", {} idle", count(n)),
    };
    format!("opened, {} closed by the target{failed}{idle}", count(total.closed_by_peer))
}

/// The lines about UDP: datagrams a request and a system call, lost packets, and requests that waited in the client.
fn datagrams(quic: &QuicResult, requests: u64) -> Vec<String> {
    let per = |n: u64, of: u64| format!("{:.2}", n as f64 / of.max(1) as f64);
    let mut lines = vec![
        format!(
            "in {} datagrams a request, {} a system call; out {}, {}",
            per(quic.datagrams_in, requests),
            per(quic.datagrams_in, quic.receive_calls),
            per(quic.datagrams_out, requests),
            per(quic.datagrams_out, quic.send_calls)
        ),
        format!(
            "{} of {} packets lost, round trip {}, datagrams of {} B",
            count(quic.packets_lost),
            count(quic.packets_out),
            human_us(quic.rtt_us),
            count(quic.mtu.into())
        ),
    ];
    if quic.waited > 0 {
        lines.push(format!(
            "{} waited for a free stream of the target: {}, at most {}",
            counted(quic.waited, "request"),
            human_us(quic.waited_us),
            human_us(quic.longest_wait_us)
        ));
    }
    lines
}

/// What was negotiated, or how many where there was more than one; and how many handshakes were resumed or failed.
fn handshakes(tls: &TlsResult) -> String {
    let names = |names: &BTreeMap<String, u64>, what: &str| match names.len() {
        0 => String::new(),
        1 => names.keys().next().cloned().unwrap_or_default(),
        n => format!("{n} {what}"),
    };
    let agreed = [names(&tls.versions, "versions"), names(&tls.suites, "suites"), names(&tls.groups, "groups")];
    let agreed: Vec<String> = agreed.into_iter().filter(|name| !name.is_empty()).collect();
    let resumed = match tls.resumed {
        0 => String::new(),
        n => format!(", {} of {} resumed", count(n), count(tls.handshakes)),
    };
    let failed = if tls.failed > 0 { format!(", {} failed", count(tls.failed)) } else { String::new() };
    format!("{}{resumed}{failed}", agreed.join(" "))
}

/// How many successful responses came coded, of how many, and what that saved.
fn coded(result: &LoadResult, codings: &BTreeMap<Coding, CodedResponses>) -> String {
    let responses = result.total.successful;
    let one = |(coding, coded): (&Coding, &CodedResponses)| {
        let (bytes, decoded) = (human_bytes(coded.bytes as f64), human_bytes(coded.decoded_bytes as f64));
        format!(
            "{} of {} responses in {}: {bytes} for {decoded}",
            count(coded.responses),
            count(responses),
            coding.as_str()
        )
    };
    let all: Vec<String> = codings.iter().map(one).collect();
    if all.is_empty() { format!("none of {} responses", count(responses)) } else { all.join("; ") }
}

/// Most frequent first, as many as fit; the rest is counted.
fn listed(items: impl Iterator<Item = (String, u64)>) -> String {
    let mut items: Vec<(String, u64)> = items.collect();
    items.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let words: Vec<String> = items.iter().map(|(name, n)| format!("{name} ({})", count(*n))).collect();
    let some = |shown: usize| {
        let rest = words.len() - shown;
        let more = (rest > 0).then(|| format!("{rest} more"));
        list(&words[..shown].iter().cloned().chain(more).collect::<Vec<_>>())
    };
    (1..=words.len())
        .rev()
        .map(some)
        .find(|text| text.chars().count() <= REST)
        .unwrap_or_else(|| some(words.len().min(1)))
}

/// A closed load has lag only when a connection is lost, and its service time is its latency.
fn times(result: &LoadResult, spec: &LoadSpec) -> Vec<String> {
    let (open, keyvalue) = (spec.kind.is_open(), spec.keyvalue.is_some());
    let kind = spec.stream.map(|stream| stream.kind);
    let heads = percentiles().into_iter().chain(["p99.99", "max", "mean"]).map(|head| format!("{head:>8}"));
    let mut lines = vec![format!("{:LABEL$}{}", "", heads.collect::<Vec<_>>().join(" "))];
    let mut row = |name: &str, q: &Quantiles| lines.push(format!("{name:<LABEL$}{}", quantiles(q)));
    row("latency", &result.latency);
    for operation in result.by_request.iter().filter(|_| keyvalue) {
        row(&format!("  {}", operation.name), &operation.latency);
    }
    if open {
        row("service", &result.service);
        row("lag", &result.lag);
    }
    for (name, times) in result.messages.iter().flat_map(|messages| streams::times(messages, kind)) {
        row(name, times);
    }
    if result.first_byte.count > 0 {
        row("first byte", &result.first_byte);
    }
    row("connect", &result.connect);
    if result.tls.is_some() {
        row("handshake", &result.handshake);
    }
    lines
}

fn quantiles(q: &Quantiles) -> String {
    if q.count == 0 {
        return " no samples".to_owned();
    }
    [q.p50_us, q.p90_us, q.p99_us, q.p999_us, q.p9999_us, q.max_us, q.mean_us]
        .iter()
        .map(|us| format!("{:>8}", fixed_us(*us)))
        .collect::<Vec<_>>()
        .join(" ")
}

fn client(result: &LoadResult) -> String {
    let each = limit::cpu_us_of_request(result).map(|us| format!(", {} of CPU a request", fixed_us(us)));
    let which = if result.threads == 1 { "" } else { "the busiest " };
    format!(
        "{}, {}, {which}{:.0} % busy{}",
        result.driver,
        counted(result.threads.into(), "thread"),
        limit::busiest(result) * 100.0,
        each.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use weir_model::load::{HeaderSamples, LoadProtocol, RequestIdCounts};

    use super::*;
    use crate::load::sample::{self, kept};

    #[test]
    fn summaries_are_as_kept_and_fit_the_screen() {
        let mut pipelined = sample::plain();
        pipelined.spec.protocol = LoadProtocol::Http1 { pipeline: 16 };
        let mut redirects = sample::plain();
        redirects.result.window.statuses = [(301, 20_000)].into();
        let location = Some("https://shop.example/index.html".to_owned());
        redirects.result.headers = Some(HeaderSamples { sampled: 20, location, ..HeaderSamples::default() });
        let mut reasons = sample::failing();
        reasons.spec.protocol = LoadProtocol::Http2 { streams: 500 };
        reasons.result.streams = 128;
        reasons.result.window.errors = [(ErrorKind::Protocol, 4), (ErrorKind::Refused, 896)].into();
        let reason = |kind, reason: &str, window| ErrorReason { kind, reason: reason.into(), window, total: window };
        reasons.result.reasons = vec![
            reason(ErrorKind::Refused, "OOM command not allowed when used memory > 'maxmemory'. And more of it", 896),
            reason(ErrorKind::Protocol, "more than 128 headers", 4),
            reason(ErrorKind::Protocol, "of the warm-up alone", 0),
        ];
        let mut cannot = sample::everything();
        cannot.result.offered_rate = Some(1e9);
        for (name, sample) in [
            ("plain", sample::plain()),
            ("failing", sample::failing()),
            ("everything", sample::everything()),
            ("pipelined", pipelined),
            ("redirects", redirects),
            ("reasons", reasons),
            ("cannot", cannot),
            ("keyvalue", sample::keyvalue()),
            ("kinds", sample::kinds()),
            ("streams", sample::streams()),
        ] {
            let text = summary(sample.outcome());
            assert!(text.lines().count() <= ROWS, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
            kept(&format!("summary-{name}"), &text);
        }
        kept("summary-full", &full(sample::kinds().outcome()));
    }

    #[test]
    fn many_kinds_are_a_line_on_the_screen_and_a_table_in_full() {
        let mut sample = sample::kinds();
        let kind = sample.result.by_request[0].clone();
        sample.result.by_request = vec![kind; 11];
        let text = summary(sample.outcome());
        assert!(text.contains("of them") && !text.contains("by request"), "{text}");
        assert_eq!(full(sample.outcome()).matches("GET /bytes/128").count(), 11);
    }

    #[test]
    fn responses_with_the_id_of_another_request_have_a_line_in_text_and_json() {
        let mut sample = sample::plain();
        let mut line = |names: RequestIdCounts| {
            sample.result.request_ids = Some(names);
            let json = serde_json::to_value(&sample.result).expect("JSON");
            assert_eq!(json["request_ids"]["coalesced"], names.coalesced);
            let text = summary(sample.outcome());
            let found = text.lines().find(|line| line.contains("IDs") || line.contains("IDS"));
            found.expect("a line").to_owned()
        };
        let own = RequestIdCounts { own: 9_728, ..RequestIdCounts::default() };
        assert_eq!(line(own), "request IDs         9,728  returned rightly; 0 responses without one");
        let wrong = RequestIdCounts { coalesced: 200, cached: 72, ..own };
        assert_eq!(line(wrong), "WRONG IDS             272  coalesced (200) and cached (72)");
    }

    #[test]
    fn a_load_stopped_at_once_has_no_figures() {
        let mut sample = sample::plain();
        sample.result = LoadResult { cut_short: true, ..LoadResult::default() };
        assert!(summary(sample.outcome()).ends_with("stopped before anything was measured\n"));
    }
}
