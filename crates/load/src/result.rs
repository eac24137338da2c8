//! Builds the record of a load from the totals and the final reports of the workers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use weir_model::coding::Coding;
use weir_model::load::{
    Bursts, CodedResponses, ConnectionSpread, Counts, LOAD_SCHEMA, LoadResult, Quantiles, QuicResult, RequestIdCounts,
    RequestResult, RequestSpec,
};
use weir_net::DriverKind;
use weir_requests::template::Template;

use crate::aggregate::Aggregate;
use crate::changes::ChangeWatch;
use crate::clock::{MILLI, from_secs};
use crate::counts::happened;
use crate::headers::HeaderWatch;
use crate::interval::{EventCounts, Histo, Merged, Own, StatusLatency, USUAL_STATUS, add, histo, quantiles};
use crate::messages;
use crate::output::{LogInterval, span_s};
use crate::plan::Plan;
use crate::preload::add_tls;
use crate::reasons::Reasons;
use crate::shared::WorkerResult;

/// The time of the window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// Start and end.
    pub window: u64,
    pub end: u64,
    /// The start as wall time, nanoseconds since the epoch of Unix.
    pub unix_ns: u64,
    pub cut_short: bool,
}

/// Puts the record together.
pub(crate) fn result(
    plan: &Plan,
    driver: DriverKind,
    span: &Span,
    aggregate: Aggregate,
    outcomes: &[WorkerResult],
    most_open: u32,
) -> LoadResult {
    let mut window = moments(&aggregate.window);
    let mut total = moments(&aggregate.total);
    for outcome in outcomes {
        outcome.window.add_to(&mut window);
        outcome.window.add_to(&mut total);
        outcome.before.add_to(&mut total);
    }
    // These two count only inside the window, so the total has the same values.
    total.successful_in_window = aggregate.window.successful;
    total.successful_body_bytes_in_window = aggregate.window.successful_body_bytes;

    let window_s = span_s(span.window, span.end);
    let on_s = window_s * plan.spec.bursts.map_or(1.0, Bursts::share);
    let each_second = |n: u64| if on_s > 0.0 { n as f64 / on_s } else { 0.0 };
    let sum = |f: fn(&WorkerResult) -> u64| outcomes.iter().map(f).sum();
    LoadResult {
        schema: LOAD_SCHEMA,
        driver: driver.to_string(),
        threads: plan.threads,
        protocol: plan.spec.protocol.as_str().to_owned(),
        streams: outcomes.iter().map(|outcome| outcome.min_streams).min().unwrap_or(plan.streams),
        tls: sum_of(outcomes.iter().flat_map(|o| &o.tls).map(|(counters, _)| counters), add_tls),
        by_request: by_request(plan, outcomes, &aggregate.requests),
        by_status: with_usual(&aggregate.samples, &unusual(outcomes)),
        most_open,
        connections_used: sum(|o| o.used),
        handshake: quantiles(&handshakes(outcomes)),
        first_byte: quantiles(&aggregate.samples.first_byte),
        window_start_ms: span.unix_ns / MILLI,
        window_s,
        bursts: plan.spec.bursts,
        offered_rate: plan
            .timetable
            .as_ref()
            .map(|timetable| timetable.mean_rate(plan.warmup, from_secs(plan.spec.duration_s))),
        rate: each_second(aggregate.window.successful),
        body_bytes_per_s: each_second(aggregate.window.successful_body_bytes),
        window,
        request_body_bytes: request_body_bytes(plan, total.sent, outcomes),
        total,
        preload: None,
        // The controller adds them.
        slow_clients: Vec::new(),
        latency: quantiles(&aggregate.samples.latency),
        service: quantiles(&aggregate.samples.service),
        lag: quantiles(&aggregate.samples.lag),
        real_time: outcomes.iter().all(|outcome| outcome.real_time),
        lateness: aggregate.own.as_ref().map(Own::quantiles),
        headers: Some(HeaderWatch::result(outcomes.iter().map(|o| &o.watches.headers), span.window))
            .filter(|h| h.sampled > 0),
        request_ids: sum_of(outcomes.iter().flat_map(|o| &o.watches.ids).map(|ids| &ids.counts), RequestIdCounts::add),
        messages: messages::result(outcomes.iter().flat_map(|o| o.watches.messages.as_deref())),
        changes: ChangeWatch::result(outcomes.iter().flat_map(|o| o.watches.changes.as_deref()), span.window),
        codings: sum_of(outcomes.iter().flat_map(|o| &o.watches.codings).map(|codings| &codings.counts), add_codings),
        quic: sum_of(outcomes.iter().flat_map(|o| &o.quic), QuicResult::add),
        by_connection: by_connection(outcomes),
        stalls: aggregate.window.stalls,
        connect: quantiles(&connects(outcomes)),
        series: aggregate.series,
        tenths: aggregate.tenths,
        reasons: Reasons::sum(outcomes.iter().map(|o| &o.watches.reasons)),
        errors_by_second: aggregate.errors,
        thread_busy: outcomes.iter().map(|outcome| outcome.busy).collect(),
        cpu_us: (sum(|o| o.cpu_us.0), sum(|o| o.cpu_us.1)),
        busy_poll_us: sum(|o| o.busy_poll_us),
        coalescing_us: outcomes.iter().map(|outcome| outcome.coalescing_us).collect(),
        cut_short: span.cut_short,
        hosts: Vec::new(),
    }
}

/// The sum of what some have.
pub(crate) fn sum_of<'a, T: Default + 'a>(parts: impl Iterator<Item = &'a T>, add: impl Fn(&mut T, &T)) -> Option<T> {
    parts.fold(None, |sum, part| {
        let mut sum = sum.unwrap_or_default();
        add(&mut sum, part);
        Some(sum)
    })
}

pub(crate) fn add_codings(sum: &mut BTreeMap<Coding, CodedResponses>, more: &BTreeMap<Coding, CodedResponses>) {
    more.iter().for_each(|(coding, responses)| sum.entry(*coding).or_default().add(responses));
}

/// How evenly all threads' connections were served; `None` where none counts.
fn by_connection(outcomes: &[WorkerResult]) -> Option<ConnectionSpread> {
    let mut spread = ConnectionSpread::default();
    outcomes.iter().for_each(|outcome| spread.add(&outcome.by_connection.0));
    with_latencies(spread, &connection_latencies(outcomes))
}

/// The same with what its histogram says.
pub(crate) fn with_latencies(spread: ConnectionSpread, latencies: &Histo) -> Option<ConnectionSpread> {
    let Quantiles { p50_us, p90_us, max_us, .. } = quantiles(latencies);
    let twice = latencies.value_at_quantile(0.5).saturating_mul(2);
    (spread.connections > 0).then(|| ConnectionSpread {
        p10_us: latencies.value_at_quantile(0.1) as f64 / 1e3,
        p50_us,
        p90_us,
        max_us,
        slow: latencies.count_between(twice + 1, u64::MAX),
        ..spread
    })
}

fn connection_latencies(outcomes: &[WorkerResult]) -> Histo {
    sum(outcomes.iter().map(|outcome| &outcome.by_connection.1))
}

/// What the log of a part has beside what is recorded by second: the histograms behind the rest of its result's distributions.
pub(crate) fn for_the_merge(span: &Span, outcomes: &[WorkerResult], aggregate: &Aggregate) -> LogInterval {
    let unusual = unusual(outcomes);
    let watches = || outcomes.iter().flat_map(|outcome| outcome.watches.messages.as_deref());
    let times = watches().next().map(|_| messages::times(watches()));
    let whole = [
        ("connect".into(), &connects(outcomes)),
        ("handshake".into(), &handshakes(outcomes)),
        (BY_CONNECTION.into(), &connection_latencies(outcomes)),
    ];
    let by_request = (0..).zip(&aggregate.requests).map(|(n, histo)| (request_tag(n).into(), histo));
    let own = aggregate.own.iter().flat_map(|own| [(OWN_LAG.into(), &own.lag), (OWN_LATENCY.into(), &own.latency)]);
    let by_status = unusual.iter().map(|(status, histo)| (status_tag(status).into(), histo));
    let of_messages = times.iter().flat_map(|times| messages::TAGS.map(Cow::Borrowed).into_iter().zip(times));
    let all = whole.into_iter().chain(by_request).chain(own).chain(by_status).chain(of_messages);
    LogInterval::of(span.window, span.end, all)
}

/// The latency of all threads' requests by status, but for the usual one.
fn unusual(outcomes: &[WorkerResult]) -> BTreeMap<String, Histo> {
    let mut sum = BTreeMap::new();
    for (status, latency) in
        outcomes.iter().flat_map(|outcome| outcome.by_status.iter()).flat_map(StatusLatency::by_name)
    {
        add(sum.entry(status).or_insert_with(histo), latency);
    }
    sum
}

/// The latency by status, of which all samples have that of the usual one, too; empty for one status, and where the samples are
/// not those of the statuses.
pub(crate) fn with_usual(samples: &Merged, unusual: &BTreeMap<String, Histo>) -> BTreeMap<String, Quantiles> {
    let mut all: BTreeMap<_, _> =
        unusual.iter().map(|(status, latency)| (status.clone(), quantiles(latency))).collect();
    if all.is_empty() {
        return all;
    }
    let mut usual = samples.latency.clone();
    let parted = unusual.values().try_for_each(|latency| usual.subtract(latency));
    if parted.is_err() {
        return BTreeMap::new();
    }
    if !usual.is_empty() {
        all.insert(USUAL_STATUS.to_string(), quantiles(&usual));
    }
    if all.len() > 1 { all } else { BTreeMap::new() }
}

/// The tag of the latency of one status.
pub(crate) fn status_tag(status: &str) -> String {
    format!("{STATUS_TAG}{status}")
}

/// How such tags begin.
pub(crate) const STATUS_TAG: &str = "status-";

/// The tag of the mean latencies of connections.
pub(crate) const BY_CONNECTION: &str = "by-connection";

/// The tags of [`crate::interval::Own`].
pub(crate) const OWN_LAG: &str = "own-lag";
pub(crate) const OWN_LATENCY: &str = "own-latency";

/// The tag of the latency of one of the load's requests.
pub(crate) fn request_tag(request: usize) -> String {
    format!("request-{request}")
}

fn connects(outcomes: &[WorkerResult]) -> Histo {
    sum(outcomes.iter().map(|outcome| &outcome.connect))
}

fn handshakes(outcomes: &[WorkerResult]) -> Histo {
    sum(outcomes.iter().flat_map(|outcome| &outcome.tls).map(|(_, times)| times))
}

fn sum<'a>(histos: impl Iterator<Item = &'a Histo>) -> Histo {
    let mut all = histo();
    histos.for_each(|histo| add(&mut all, histo));
    all
}

/// The counts of each of the specification's requests, if there are several, and of many those of the last together.
fn by_request(plan: &Plan, outcomes: &[WorkerResult], latency: &[Histo]) -> Vec<RequestResult> {
    let named = |spec: &RequestSpec| RequestResult { name: spec.name(), ..RequestResult::default() };
    // For a single request the workers count nothing, and the load's own counts say it all.
    let kinds = plan.recorded().requests;
    let mut all: Vec<_> = plan.spec.requests.iter().take(kinds).map(named).collect();
    let further = plan.spec.requests.len() - kinds;
    if let Some(last) = all.last_mut().filter(|_| further > 0) {
        last.name = format!("{} others", further + 1);
    }
    for outcome in outcomes {
        for (sum, (of_request, errors)) in all.iter_mut().zip(outcome.window.requests()) {
            sum.sent += of_request.sent;
            sum.successful += of_request.successful;
            for (kind, n) in happened(errors) {
                sum.errors += n;
                *sum.errors_by_kind.entry(kind).or_default() += n;
            }
        }
    }
    for (of_request, latency) in all.iter_mut().zip(latency) {
        of_request.latency = quantiles(latency);
    }
    all
}

/// Body bytes of so many requests. `None` if that does not follow from the counts.
fn request_body_bytes(plan: &Plan, sent: u64, outcomes: &[WorkerResult]) -> Option<u64> {
    let requests = &plan.spec.requests;
    // Messages that are sent one by one end with their stream, however many there were to be.
    if plan.spec.keyvalue.is_some() || !plan.paced.is_empty() {
        return None;
    }
    let lengths: Vec<u64> = requests.iter().map(|request| body_length(plan, request)).collect::<Option<_>>()?;
    let first = *lengths.first()?;
    if lengths.iter().all(|length| *length == first) {
        return Some(sent * first);
    }
    // Further kinds are counted together.
    if plan.recorded().requests < requests.len() {
        return None;
    }
    let counts = outcomes.iter().flat_map(|outcome| [&outcome.before, &outcome.window]);
    let bytes =
        counts.map(|counts| counts.requests().zip(&lengths).map(|((one, _), length)| one.sent * length).sum::<u64>());
    Some(bytes.sum())
}

/// The length of a request's bodies, if they all have the same.
fn body_length(plan: &Plan, request: &RequestSpec) -> Option<u64> {
    let body = &request.request.body;
    if !request.template {
        return Some(body.len() as u64);
    }
    let template = Template::parse_with(body, plan.spec.feed.as_ref()).ok()?;
    template.fixed_len().map(|length| length as u64)
}

/// The counts that go by the moment; those that go by the request are added from the tallies.
fn moments(moments: &EventCounts) -> Counts {
    Counts {
        successful_in_window: moments.successful,
        successful_body_bytes_in_window: moments.successful_body_bytes,
        bytes_in: moments.bytes_in,
        plaintext_in: moments.plaintext_in,
        bytes_out: moments.bytes_out,
        connections: moments.connections,
        closed_by_peer: moments.closed_by_peer,
        connect_failures: moments.connect_failures,
        ..Counts::default()
    }
}
