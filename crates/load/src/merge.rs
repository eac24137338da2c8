//! Merges what the clients of one load found, each of which made a part of it, into the result that a single client would have
//! had. The lab calls it, once all clients' files are on its machine.
//!
//! Histograms are added bucket by bucket, so that no percentile is a mean of percentiles. They come from the clients' logs
//! (`output`), one second at a time: thousands of clients take the memory of their logs, not of their histograms. What cannot be
//! added exactly says so where it is declared ([`LoadResult::most_open`]). This module does not know how the clients were started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogHistogram, IntervalLogIterator, LogEntry};
use weir_model::change::ChangeSeen;
use weir_model::load::{
    Bursts, ClientOfHost, ConnectionSpread, Counts, ErrorReason, HeaderSamples, LoadResult, LoadSecond, Quantiles,
    QuicResult, RequestIdCounts,
};

use crate::aggregate::in_flight;
use crate::clock::MILLI;
use crate::error::LoadError;
use crate::interval::{Histo, Merged, Own, USUAL_STATUS, add, histo, quantiles};
use crate::messages::{self, Times};
use crate::output::{self, LogInterval, Outputs, TAGS};
use crate::preload::add_tls;
use crate::result::{
    BY_CONNECTION, OWN_LAG, OWN_LATENCY, STATUS_TAG, add_codings, request_tag, status_tag, sum_of, with_latencies,
    with_usual,
};

/// What one of the clients left.
#[derive(Debug, Clone)]
pub struct ClientOutput {
    /// Its host's name.
    pub host: String,
    /// What it reported when it was done.
    pub result: LoadResult,
    /// Its interval log, here.
    pub log: PathBuf,
}

/// Merges the outputs of all clients of a load, and writes the files that a single client would have written. Clients are those
/// of one start, so that their seconds are the same.
///
/// # Errors
/// [`LoadError::Merge`] when a log cannot be read, has not all samples that its client counted, or is of another load;
/// [`LoadError::Output`] when a file cannot be written.
pub fn merge(clients: &[ClientOutput], outputs: &Outputs) -> Result<LoadResult, LoadError> {
    let mut sinks = outputs.open()?;
    let mut result = counts(clients)?;
    let logs: Vec<Vec<u8>> = clients.iter().map(read).collect::<Result<_, _>>()?;
    let mut distributions = Distributions::new(&result);
    let mut seconds = BTreeMap::new();
    for (number, (client, log)) in clients.iter().zip(&logs).enumerate() {
        distributions.begin_client();
        for (key, interval) in intervals(client, log)? {
            match tag_of(interval.tag().map_or("", |tag| tag.as_str())) {
                Some(tag) => seconds.entry(key).or_insert_with(Vec::new).push((number, tag, interval)),
                None => distributions.take_whole(client, &interval)?,
            }
        }
        distributions.check_client(client)?;
    }

    let mut rows = rows(clients);
    let mut log = Vec::new();
    let mut counted = vec![[0; TAGS.len()]; clients.len()];
    for (key, intervals) in seconds {
        let mut second = Merged::new();
        let mut end = key.start_ms;
        for (number, tag, interval) in intervals {
            let part = decode(&clients[number], &interval)?;
            counted[number][tag] += part.len();
            add(second.by_tag_mut()[tag], &part);
            end = end.max(key.start_ms + millis(interval.duration()));
        }
        distributions.samples.add(&second);
        log.push(LogInterval::new(key.start_ms * MILLI, end * MILLI, &second));
        if let Some(row) = key.row.and_then(|second| rows.get_mut(&second)) {
            let latencies = quantiles(&second.latency);
            row.in_flight = in_flight(&latencies, row.length_s);
            (row.p50_us, row.p99_us, row.max_us) = latency(&latencies);
            row.lag_max_us = quantiles(&second.lag).max_us;
        }
    }
    check_counts(clients, &counted)?;

    result.series = rows.into_values().collect();
    distributions.give(&mut result);
    if let Some(sink) = &mut sinks.hlog {
        output::write_log(sink, &log, 0, result.window_start_ms * MILLI)?;
    }
    if let Some(sink) = &mut sinks.series {
        output::write_series(sink, &result.series)?;
    }
    Ok(result)
}

/// An interval of a log, in order: a second of the window with a row, or what came after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Since the window's start.
    start_ms: u64,
    /// `None` is after every row that begins then.
    after: bool,
    row: Option<u32>,
}

/// The sums of everything but distributions and rows.
fn counts(clients: &[ClientOutput]) -> Result<LoadResult, LoadError> {
    let Some((first, others)) = clients.split_first() else {
        return Err(LoadError::InvalidSpec("no client's output to merge; expected: one at least".into()));
    };
    let mut sum = first.result.clone();
    for other in others {
        if !of_one_load(&sum, &other.result) {
            return Err(wrong(other, "it is of another load than the first client's"));
        }
        add_counts(&mut sum, &other.result);
    }
    let drivers: BTreeSet<&str> = clients.iter().map(|client| client.result.driver.as_str()).collect();
    sum.driver = drivers.into_iter().collect::<Vec<_>>().join(", ");
    let on_s = sum.window_s * sum.bursts.map_or(1.0, Bursts::share);
    let each_second = |n: u64| if on_s > 0.0 { n as f64 / on_s } else { 0.0 };
    sum.rate = each_second(sum.window.successful_in_window);
    sum.body_bytes_per_s = each_second(sum.window.successful_body_bytes_in_window);
    sum.hosts = clients.iter().map(of_host).collect();
    Ok(sum)
}

fn of_one_load(a: &LoadResult, b: &LoadResult) -> bool {
    let names = |result: &LoadResult| result.by_request.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    a.protocol == b.protocol && a.offered_rate == b.offered_rate && names(a) == names(b)
}

fn add_counts(sum: &mut LoadResult, other: &LoadResult) {
    sum.threads += other.threads;
    sum.streams = sum.streams.min(other.streams);
    sum.tls = sum_of(sum.tls.iter().chain(&other.tls), add_tls);
    for (sum, more) in sum.by_request.iter_mut().zip(&other.by_request) {
        sum.sent += more.sent;
        sum.successful += more.successful;
        sum.errors += more.errors;
        more.errors_by_kind.iter().for_each(|(kind, n)| *sum.errors_by_kind.entry(*kind).or_default() += n);
    }
    sum.most_open += other.most_open;
    sum.connections_used += other.connections_used;
    sum.window_start_ms = sum.window_start_ms.min(other.window_start_ms);
    sum.window_s = sum.window_s.max(other.window_s);
    sum.window.add(&other.window);
    sum.total.add(&other.total);
    sum.request_body_bytes = sum.request_body_bytes.zip(other.request_body_bytes).map(|(a, b)| a + b);
    sum.preload = sum_of(sum.preload.iter().chain(&other.preload), Counts::add);
    ErrorReason::add(&mut sum.reasons, &other.reasons);
    for (second, errors) in &other.errors_by_second {
        let sum = sum.errors_by_second.entry(*second).or_default();
        errors.iter().for_each(|(kind, n)| *sum.entry(*kind).or_default() += n);
    }
    sum.tenths.truncate(other.tenths.len());
    sum.tenths.iter_mut().zip(&other.tenths).for_each(|(sum, n)| *sum += n);
    sum.headers = sum_of(sum.headers.iter().chain(&other.headers), HeaderSamples::add);
    sum.request_ids = sum_of(sum.request_ids.iter().chain(&other.request_ids), RequestIdCounts::add);
    ChangeSeen::add(&mut sum.changes, &other.changes);
    sum.quic = sum_of(sum.quic.iter().chain(&other.quic), QuicResult::add);
    sum.messages = sum_of(sum.messages.iter().chain(&other.messages), messages::add_result);
    sum.codings = sum_of(sum.codings.iter().chain(&other.codings), add_codings);
    sum.real_time &= other.real_time;
    sum.by_connection = sum_of(sum.by_connection.iter().chain(&other.by_connection), ConnectionSpread::add);
    sum.stalls.add(&other.stalls);
    sum.thread_busy.extend(&other.thread_busy);
    sum.coalescing_us.extend(&other.coalescing_us);
    sum.cpu_us = (sum.cpu_us.0 + other.cpu_us.0, sum.cpu_us.1 + other.cpu_us.1);
    sum.busy_poll_us += other.busy_poll_us;
    sum.cut_short |= other.cut_short;
}

fn of_host(client: &ClientOutput) -> ClientOfHost {
    let result = &client.result;
    ClientOfHost {
        host: client.host.clone(),
        lag: result.lag.clone(),
        stalls: result.stalls,
        thread_busy: result.thread_busy.clone(),
        sent: result.window.sent,
        successful: result.window.successful,
        connections: result.total.connections,
    }
}

/// The rows of the window by second, summed up but for latency and lag.
fn rows(clients: &[ClientOutput]) -> BTreeMap<u32, LoadSecond> {
    let mut rows: BTreeMap<u32, LoadSecond> = BTreeMap::new();
    for row in clients.iter().flat_map(|client| &client.result.series) {
        let sum = rows.entry(row.second).or_default();
        sum.second = row.second;
        sum.length_s = sum.length_s.max(row.length_s);
        sum.due += row.due;
        sum.sent += row.sent;
        sum.successful += row.successful;
        sum.errors += row.errors;
        sum.bytes_in += row.bytes_in;
        sum.stalled_us += row.stalled_us;
    }
    for row in rows.values_mut() {
        let open = |client| row_of(client, row.second).and_then(|row| row.connections_open);
        row.connections_open = clients.iter().map(open).sum();
    }
    rows
}

fn row_of(client: &ClientOutput, second: u32) -> Option<&LoadSecond> {
    let rows = &client.result.series;
    rows.binary_search_by_key(&second, |row| row.second).ok().map(|at| &rows[at])
}

fn latency(of: &Quantiles) -> (f64, f64, f64) {
    (of.p50_us, of.p99_us, of.max_us)
}

/// The distributions of the whole load.
struct Distributions {
    samples: Merged,
    connect: Histo,
    handshake: Histo,
    /// Mean latencies of connections.
    by_connection: Histo,
    by_request: Vec<Histo>,
    /// But for the usual status.
    by_status: BTreeMap<String, Histo>,
    /// Of an open load.
    own: Option<Own>,
    /// Of streams.
    messages: Option<Box<Times>>,
    /// What came of them from the client under way.
    of_client: BTreeMap<String, u64>,
}

impl Distributions {
    fn new(counted: &LoadResult) -> Distributions {
        Distributions {
            samples: Merged::new(),
            connect: histo(),
            handshake: histo(),
            by_connection: histo(),
            by_request: counted.by_request.iter().map(|_| histo()).collect(),
            by_status: BTreeMap::new(),
            own: counted.lateness.is_some().then(Own::new),
            messages: counted.messages.as_ref().map(|_| Box::new(messages::no_times())),
            of_client: BTreeMap::new(),
        }
    }

    fn begin_client(&mut self) {
        self.of_client.clear();
    }

    /// Takes a histogram that is not of one second.
    fn take_whole(&mut self, client: &ClientOutput, interval: &IntervalLogHistogram<'_>) -> Result<(), LoadError> {
        let tag = interval.tag().map_or("", |tag| tag.as_str());
        let sum = match tag {
            "connect" => Some(&mut self.connect),
            "handshake" => Some(&mut self.handshake),
            BY_CONNECTION => Some(&mut self.by_connection),
            OWN_LAG => self.own.as_mut().map(|own| &mut own.lag),
            OWN_LATENCY => self.own.as_mut().map(|own| &mut own.latency),
            _ if let Some(at) = messages::TAGS.iter().position(|one| *one == tag) => {
                self.messages.as_mut().map(|times| &mut times[at])
            }
            _ if tag.starts_with(STATUS_TAG) => {
                Some(self.by_status.entry(tag[STATUS_TAG.len()..].to_owned()).or_insert_with(histo))
            }
            _ => (0..).zip(&mut self.by_request).find(|(n, _)| request_tag(*n) == tag).map(|(_, histo)| histo),
        };
        let Some(sum) = sum else { return Err(wrong(client, &format!("it has a tag \"{tag}\""))) };
        let part = decode(client, interval)?;
        *self.of_client.entry(tag.to_owned()).or_default() += part.len();
        add(sum, &part);
        Ok(())
    }

    /// Whether as many samples came from the client as it counted.
    fn check_client(&self, client: &ClientOutput) -> Result<(), LoadError> {
        let result = &client.result;
        let whole = [("connect".to_owned(), &result.connect), ("handshake".to_owned(), &result.handshake)];
        let by_request = (0..).zip(&result.by_request).map(|(n, one)| (request_tag(n), &one.latency));
        let own = result.lateness.iter().flat_map(|late| [(OWN_LAG, &late.lag), (OWN_LATENCY, &late.latency)]);
        let own = own.map(|(tag, counted)| (tag.to_owned(), counted));
        let unusual = result.by_status.iter().filter(|(status, _)| **status != USUAL_STATUS.to_string());
        let by_status = unusual.map(|(status, counted)| (status_tag(status), counted));
        if let Some(spread) = &result.by_connection {
            let counted = Quantiles { count: spread.connections, ..Quantiles::default() };
            let read = self.of_client.get(BY_CONNECTION).copied().unwrap_or_default();
            same(client, BY_CONNECTION, read, &counted)?;
        }
        let of_messages = result.messages.iter().map(messages::quantiles_of);
        let of_messages = of_messages.flat_map(|counted| messages::TAGS.map(str::to_owned).into_iter().zip(counted));
        let all = whole.into_iter().chain(by_request).chain(own).chain(by_status).chain(of_messages);
        all.into_iter().try_for_each(|(tag, counted)| {
            same(client, &tag, self.of_client.get(&tag).copied().unwrap_or_default(), counted)
        })
    }

    fn give(&self, result: &mut LoadResult) {
        result.latency = quantiles(&self.samples.latency);
        result.by_status = with_usual(&self.samples, &self.by_status);
        result.service = quantiles(&self.samples.service);
        result.lag = quantiles(&self.samples.lag);
        result.lateness = self.own.as_ref().map(Own::quantiles);
        result.first_byte = quantiles(&self.samples.first_byte);
        if let (Some(counted), Some(times)) = (&mut result.messages, &self.messages) {
            *counted = messages::with_times(times, counted.clone());
        }
        result.connect = quantiles(&self.connect);
        result.handshake = quantiles(&self.handshake);
        result.by_connection =
            result.by_connection.take().and_then(|spread| with_latencies(spread, &self.by_connection));
        for (one, latency) in result.by_request.iter_mut().zip(&self.by_request) {
            one.latency = quantiles(latency);
        }
    }
}

/// Whether the seconds of each client have as many samples as it counted.
fn check_counts(clients: &[ClientOutput], read: &[[u64; TAGS.len()]]) -> Result<(), LoadError> {
    for (client, read) in clients.iter().zip(read) {
        let LoadResult { latency, service, lag, first_byte, .. } = &client.result;
        for (tag, counted) in [latency, service, lag, first_byte].into_iter().enumerate() {
            same(client, TAGS[tag], read[tag], counted)?;
        }
    }
    Ok(())
}

fn same(client: &ClientOutput, tag: &str, read: u64, counted: &Quantiles) -> Result<(), LoadError> {
    match read == counted.count {
        true => Ok(()),
        false => {
            Err(wrong(client, &format!("it has {read} samples of {tag}, and the client counted {}", counted.count)))
        }
    }
}

fn read(client: &ClientOutput) -> Result<Vec<u8>, LoadError> {
    fs::read(&client.log).map_err(|error| wrong(client, &error.to_string()))
}

/// The intervals of a log, each with its place.
fn intervals<'a>(client: &ClientOutput, log: &'a [u8]) -> Result<Vec<(Key, IntervalLogHistogram<'a>)>, LoadError> {
    let mut intervals = Vec::new();
    for entry in IntervalLogIterator::new(log) {
        match entry {
            Ok(LogEntry::Interval(interval)) => intervals.push((key(client, &interval), interval)),
            Ok(_) => {}
            Err(_) => return Err(wrong(client, &format!("it is broken after {} intervals", intervals.len()))),
        }
    }
    Ok(intervals)
}

fn key(client: &ClientOutput, interval: &IntervalLogHistogram<'_>) -> Key {
    let start_ms = millis(interval.start_timestamp());
    let second = u32::try_from(start_ms / 1_000).ok().filter(|_| start_ms.is_multiple_of(1_000));
    let row = second.filter(|second| row_of(client, *second).is_some());
    Key { start_ms, after: row.is_none(), row }
}

/// To the nearest, because logs have milliseconds as fractions of seconds.
fn millis(time: Duration) -> u64 {
    (time.as_secs_f64() * 1e3).round() as u64
}

fn tag_of(tag: &str) -> Option<usize> {
    TAGS.iter().position(|one| *one == tag)
}

fn decode(client: &ClientOutput, interval: &IntervalLogHistogram<'_>) -> Result<Histo, LoadError> {
    let broken = |error: &dyn std::fmt::Display| wrong(client, &format!("a histogram in it is broken: {error}"));
    let bytes = STANDARD.decode(interval.encoded_histogram()).map_err(|error| broken(&error))?;
    let part: Histo = Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| broken(&error))?;
    let bounds = |histo: &Histo| (histo.low(), histo.high(), histo.sigfig());
    match bounds(&part) == bounds(&histo()) {
        true => Ok(part),
        false => Err(broken(&"its bounds are not those of weir")),
    }
}

fn wrong(client: &ClientOutput, detail: &str) -> LoadError {
    LoadError::Merge { host: client.host.clone(), path: client.log.clone(), detail: detail.to_owned() }
}

#[cfg(test)]
mod tests;
