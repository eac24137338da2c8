//! Histograms, and the intervals in which a worker hands over the samples of one second. `worker::recorder` fills intervals;
//! `aggregate` and `output` read them.
//!
//! **Values are nanoseconds**, in histograms from 1 µs to 1 h with 3 significant digits; longer times count as 1 h.
//! Nanoseconds were chosen over microseconds because recording then needs no division, because HdrHistogram's own tools
//! assume them, and because the array is hardly larger: it begins with steps of 512 ns (the power of two below the requested
//! 1 µs) and is relative from 1 ms on.
//!
//! **Three times, few records.** A request that is sent at its due time has a latency equal to its service time, and a lag
//! of 0. In a closed load this is always so, unless a connection was lost. Such a request is recorded once, in
//! [`Interval::prompt`]; [`Merged`] adds it to all three distributions.
//!
//! A request that waited for a free connection was late because of the product. In open loads [`Waited`] has the times of those
//! once more, so that [`Own`] can tell the client's own lateness from theirs.
//!
//! The time to the first byte is recorded only where it differs from the time to the last byte. A response that arrives at
//! once has a service time equal to both. [`Interval::first_byte`] records the others, together with the service time that
//! [`Merged`] then removes from the distribution of first bytes.

use hdrhistogram::Histogram;
use weir_model::load::{ErrorKind, Lateness, Quantiles, Stalls};

use crate::clock::SECOND;
use crate::counts::{ErrorCounts, or_last};

/// A histogram of nanoseconds.
pub(crate) type Histo = Histogram<u64>;

const LOWEST: u64 = 1_000;
const HIGHEST: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

/// An empty histogram. Every page of it has been written, so that recording never faults one in.
pub(crate) fn histo() -> Histo {
    let mut histo = Histo::new_with_bounds(LOWEST, HIGHEST, DIGITS).expect("the bounds are constants in range");
    histo.reset();
    histo
}

/// Adds `from` to `to`. Both have the bounds of [`histo`], so nothing can fall outside.
pub(crate) fn add(to: &mut Histo, from: &Histo) {
    to.add(from).expect("both have the same bounds");
}

/// Percentiles for people, in microseconds. A percentile is the upper end of its step; the lowest step, below half a
/// microsecond, becomes 0.
pub(crate) fn quantiles(histo: &Histo) -> Quantiles {
    if histo.is_empty() {
        return Quantiles::default();
    }
    let lowest = histo.highest_equivalent(0);
    let us = |nanos: u64| {
        if nanos <= lowest { 0.0 } else { nanos as f64 / 1e3 }
    };
    let at = |q: f64| us(histo.value_at_quantile(q));
    // The mean uses the middle of each step, including the lowest.
    let share_of_lowest = histo.count_at(0) as f64 / histo.len() as f64;
    let excess = share_of_lowest * histo.median_equivalent(0) as f64;
    Quantiles {
        count: histo.len(),
        min_us: us(histo.min()),
        mean_us: ((histo.mean() - excess) / 1e3).max(0.0),
        stdev_us: histo.stdev() / 1e3,
        p50_us: at(0.50),
        p75_us: at(0.75),
        p90_us: at(0.90),
        p95_us: at(0.95),
        p99_us: at(0.99),
        p999_us: at(0.999),
        p9999_us: at(0.9999),
        max_us: us(histo.max()),
    }
}

/// The status that almost all responses have, and which is not recorded by itself: what it has is the rest.
pub(crate) const USUAL_STATUS: u16 = 200;

/// What stands for a status where no response came, and for all statuses that have no histogram of their own.
const NO_RESPONSE: u16 = 0;
const OTHERS: u16 = u16::MAX;

/// Histograms of statuses: for no response, the first others that come, and all that come after these.
const STATUSES: usize = 8;

/// The latency of one worker's requests of the window that were not answered with [`USUAL_STATUS`], by status. They are in the
/// intervals as well.
#[derive(Debug, Clone)]
pub(crate) struct StatusLatency {
    /// The statuses seen, in the order of their histograms; the last histogram is for the others.
    statuses: [u16; STATUSES],
    seen: usize,
    histos: Box<[Histo]>,
}

impl StatusLatency {
    pub(crate) fn new() -> StatusLatency {
        let mut statuses = [OTHERS; STATUSES];
        statuses[0] = NO_RESPONSE;
        StatusLatency { statuses, seen: 1, histos: (0..STATUSES).map(|_| histo()).collect() }
    }

    /// Requests ended, so many; `None`: without a response.
    #[inline(never)]
    pub(crate) fn record(&mut self, status: Option<u16>, n: u64, latency: u64) {
        let status = status.unwrap_or(NO_RESPONSE);
        let known = self.statuses[..self.seen].iter().position(|other| *other == status);
        let at = known.unwrap_or_else(|| {
            if self.seen < STATUSES - 1 {
                self.statuses[self.seen] = status;
                self.seen += 1;
                self.seen - 1
            } else {
                STATUSES - 1
            }
        });
        self.histos[at].saturating_record_n(latency, n);
    }

    /// Those with samples, by the name of the status.
    pub(crate) fn by_name(&self) -> impl Iterator<Item = (String, &Histo)> {
        let named = self.statuses.iter().zip(&self.histos).filter(|(_, histo)| !histo.is_empty());
        named.map(|(status, histo)| match *status {
            NO_RESPONSE => ("none".to_owned(), histo),
            OTHERS => ("others".to_owned(), histo),
            status => (status.to_string(), histo),
        })
    }
}

/// The phase of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Connections are being made; nothing is due.
    Connect,
    /// Load, not measured.
    Warmup,
    /// Measured.
    Window,
    /// Nothing new is due; what is in flight is waited for.
    Drain,
}

/// Counts of events by the moment at which they happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EventCounts {
    pub due: u64,
    pub sent: u64,
    pub successful: u64,
    pub errors: u64,
    /// The errors by kind, in the order of the kinds' discriminants.
    pub by_kind: ErrorCounts,
    pub successful_body_bytes: u64,
    pub bytes_in: u64,
    pub plaintext_in: u64,
    pub bytes_out: u64,
    pub connections: u64,
    pub closed_by_peer: u64,
    pub connect_failures: u64,
    pub stalls: Stalls,
}

impl EventCounts {
    /// A request failed.
    pub(crate) fn error(&mut self, kind: ErrorKind) {
        self.errors += 1;
        self.by_kind[kind as usize] += 1;
    }

    pub(crate) fn add(&mut self, other: &EventCounts) {
        self.due += other.due;
        self.sent += other.sent;
        self.successful += other.successful;
        self.errors += other.errors;
        self.by_kind.iter_mut().zip(other.by_kind).for_each(|(sum, n)| *sum += n);
        self.successful_body_bytes += other.successful_body_bytes;
        self.bytes_in += other.bytes_in;
        self.plaintext_in += other.plaintext_in;
        self.bytes_out += other.bytes_out;
        self.connections += other.connections;
        self.closed_by_peer += other.closed_by_peer;
        self.connect_failures += other.connect_failures;
        self.stalls.add(&other.stalls);
    }
}

/// Tenths of a second in an interval, and the length of one, nanoseconds.
pub(crate) const TENTHS: usize = 10;
pub(crate) const TENTH: u64 = SECOND / TENTHS as u64;

/// The counts and samples of one worker for a second, or less at the end of a phase.
#[derive(Debug)]
pub(crate) struct Interval {
    pub phase: Phase,
    /// Seconds since the phase's start, 0-based.
    pub second: u32,
    /// First and last moment, of the run's clock.
    pub start: u64,
    pub end: u64,
    pub counts: EventCounts,
    /// Successful responses by the tenth of a second in which they came.
    pub tenths: [u32; TENTHS],
    /// The worker's open connections at the end; `None` for an interval that ended with its load.
    pub open: Option<u32>,
    /// The latency of requests sent at their due time. It is also their service time, and their lag is 0. One for each kind
    /// of request, or one for all.
    prompt: Box<[Histo]>,
    latency: Histo,
    service: Histo,
    lag: Histo,
    /// Times to the first byte of responses that did not arrive at once; and the service times of these, and of
    /// requests without any byte of a response.
    first: Histo,
    late_service: Histo,
    /// The latency of requests that were sent late, for each kind of request; empty where all kinds are recorded as one.
    late: Box<[Histo]>,
    /// Of requests that waited for a free connection, in open loads.
    waited: Option<Box<Waited>>,
}

/// The times of requests that waited for a free connection. The lag of one that was never sent is its latency, and it has no
/// service time.
#[derive(Debug)]
struct Waited {
    lag: Histo,
    service: Histo,
    latency: Histo,
}

impl Waited {
    fn all(&mut self) -> [&mut Histo; 3] {
        [&mut self.lag, &mut self.service, &mut self.latency]
    }
}

/// Which histograms an interval has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kinds {
    /// So many kinds of requests have a histogram of their own.
    pub requests: usize,
    /// The load is open: what waited for a connection is recorded.
    pub open: bool,
}

impl Interval {
    /// An empty one.
    pub(crate) fn new(kinds: Kinds) -> Box<Interval> {
        let Kinds { requests, open } = kinds;
        Box::new(Interval {
            phase: Phase::Connect,
            second: 0,
            start: 0,
            end: 0,
            counts: EventCounts::default(),
            tenths: [0; TENTHS],
            open: None,
            prompt: (0..requests.max(1)).map(|_| histo()).collect(),
            latency: histo(),
            service: histo(),
            lag: histo(),
            first: histo(),
            late_service: histo(),
            late: (0..requests).map(|_| histo()).collect(),
            waited: open.then(|| Box::new(Waited { lag: histo(), service: histo(), latency: histo() })),
        })
    }

    /// Clears an interval for reuse. The thread that read it does this.
    pub(crate) fn clear(&mut self) {
        self.counts = EventCounts::default();
        self.tenths = [0; TENTHS];
        self.open = None;
        let all = [&mut self.latency, &mut self.service, &mut self.lag, &mut self.first, &mut self.late_service];
        let waited = self.waited.iter_mut().flat_map(|waited| waited.all());
        for histo in all.into_iter().chain(&mut self.prompt).chain(&mut self.late).chain(waited) {
            if !histo.is_empty() {
                histo.reset();
            }
        }
    }

    /// A successful response came.
    #[inline]
    pub(crate) fn successful(&mut self, now: u64) {
        self.counts.successful += 1;
        let tenth = now.saturating_sub(self.start) / TENTH;
        self.tenths[(tenth as usize).min(TENTHS - 1)] += 1;
    }

    /// Records one request, of that kind, that ended at `now`, or was given up then. `waited`: for a free connection.
    #[inline]
    pub(crate) fn sample(&mut self, kind: u32, due: u64, sent: u64, now: u64, waited: bool) {
        let latency = now.saturating_sub(due);
        if sent == due {
            if let Some(prompt) = or_last(&mut self.prompt, kind) {
                prompt.saturating_record(latency);
            }
            return;
        }
        self.latency.saturating_record(latency);
        self.service.saturating_record(now.saturating_sub(sent));
        self.lag.saturating_record(sent.saturating_sub(due));
        if let Some(of_kind) = or_last(&mut self.late, kind) {
            of_kind.saturating_record(latency);
        }
        if waited && let Some(waited) = &mut self.waited {
            waited.lag.saturating_record(sent.saturating_sub(due));
            waited.service.saturating_record(now.saturating_sub(sent));
            waited.latency.saturating_record(latency);
        }
    }

    /// The least time that its histograms do not tell from this one.
    pub(crate) fn least_alike(&self, nanos: u64) -> u64 {
        self.latency.lowest_equivalent(nanos)
    }

    /// Records so many requests that were never sent until `now`. They waited all their time to be sent: their latency equals their
    /// lag, and they have no service time.
    pub(crate) fn sample_unsent(&mut self, due: u64, n: u64, now: u64) {
        let latency = now.saturating_sub(due);
        self.latency.saturating_record_n(latency, n);
        self.lag.saturating_record_n(latency, n);
        if let Some(waited) = &mut self.waited {
            waited.lag.saturating_record_n(latency, n);
            waited.latency.saturating_record_n(latency, n);
        }
    }

    /// Adds the latency of requests that were sent, by kind, where kinds are recorded.
    pub(crate) fn add_kinds(&self, to: &mut Vec<Histo>) {
        to.resize_with(to.len().max(self.late.len()), histo);
        for (sum, (prompt, late)) in to.iter_mut().zip(self.prompt.iter().zip(&self.late)) {
            [prompt, late].into_iter().filter(|histo| !histo.is_empty()).for_each(|histo| add(sum, histo));
        }
    }

    /// Records the first byte of a request that ended at `now` and was recorded with [`Interval::sample`], if it did
    /// not arrive then but at `first`, or not at all (0).
    #[inline(never)]
    pub(crate) fn first_byte(&mut self, sent: u64, first: u64, now: u64) {
        self.late_service.saturating_record(now.saturating_sub(sent));
        if first != 0 {
            self.first.saturating_record(first.saturating_sub(sent));
        }
    }
}

/// What the client itself was late, and the latency without that. Only of open loads.
#[derive(Debug)]
pub(crate) struct Own {
    pub lag: Histo,
    pub latency: Histo,
}

impl Own {
    pub(crate) fn new() -> Own {
        Own { lag: histo(), latency: histo() }
    }

    /// Adds an interval.
    pub(crate) fn take(&mut self, interval: &Interval) {
        add(&mut self.lag, &interval.lag);
        add(&mut self.latency, &interval.service);
        for prompt in interval.prompt.iter().filter(|prompt| !prompt.is_empty()) {
            self.lag.saturating_record_n(0, prompt.len());
            add(&mut self.latency, prompt);
        }
        if let Some(waited) = interval.waited.as_ref().filter(|waited| !waited.lag.is_empty()) {
            let within = "what waited is in the interval too";
            self.lag.subtract(&waited.lag).expect(within);
            self.lag.saturating_record_n(0, waited.lag.len());
            self.latency.subtract(&waited.service).expect(within);
            add(&mut self.latency, &waited.latency);
        }
    }

    /// For people.
    pub(crate) fn quantiles(&self) -> Lateness {
        Lateness {
            lag: quantiles(&self.lag),
            latency: quantiles(&self.latency),
            p99_to_us: quantile_to(&self.latency, 0.99) / 1e3,
        }
    }
}

/// The upper end of the 95 % interval of a quantile, in the histogram's unit: the value at the highest rank that a quantile of so many
/// independent samples has, by the normal approximation to the binomial distribution (Conover, *Practical Nonparametric Statistics*,
/// 3rd edition, section 3.2). Samples that are late together make the true interval wider.
fn quantile_to(histo: &Histo, q: f64) -> f64 {
    if histo.is_empty() {
        return 0.0;
    }
    let deviation = (q * (1.0 - q) / histo.len() as f64).sqrt();
    histo.value_at_quantile((q + 1.96 * deviation).min(1.0)) as f64
}

/// The complete histograms of any number of intervals.
#[derive(Debug)]
pub(crate) struct Merged {
    pub latency: Histo,
    pub service: Histo,
    pub lag: Histo,
    /// From sent to the response's first byte, for requests that got one.
    pub first_byte: Histo,
}

impl Merged {
    pub(crate) fn new() -> Merged {
        Merged { latency: histo(), service: histo(), lag: histo(), first_byte: histo() }
    }

    /// Its histograms, in the order of [`crate::output::TAGS`].
    pub(crate) fn by_tag(&self) -> [&Histo; 4] {
        [&self.latency, &self.service, &self.lag, &self.first_byte]
    }

    /// The same, to be changed.
    pub(crate) fn by_tag_mut(&mut self) -> [&mut Histo; 4] {
        [&mut self.latency, &mut self.service, &mut self.lag, &mut self.first_byte]
    }

    /// Adds an interval.
    pub(crate) fn take(&mut self, interval: &Interval) {
        add(&mut self.latency, &interval.latency);
        add(&mut self.service, &interval.service);
        add(&mut self.lag, &interval.lag);
        add(&mut self.first_byte, &interval.service);
        for prompt in interval.prompt.iter().filter(|prompt| !prompt.is_empty()) {
            add(&mut self.latency, prompt);
            add(&mut self.service, prompt);
            add(&mut self.first_byte, prompt);
            self.lag.saturating_record_n(0, prompt.len());
        }
        if !interval.late_service.is_empty() {
            self.first_byte
                .subtract(&interval.late_service)
                .expect("what is in `late_service` is in `service` or `prompt` too");
            add(&mut self.first_byte, &interval.first);
        }
    }

    /// Adds another.
    pub(crate) fn add(&mut self, other: &Merged) {
        add(&mut self.latency, &other.latency);
        add(&mut self.service, &other.service);
        add(&mut self.lag, &other.lag);
        add(&mut self.first_byte, &other.first_byte);
    }

    /// Empties.
    pub(crate) fn clear(&mut self) {
        self.latency.reset();
        self.service.reset();
        self.lag.reset();
        self.first_byte.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_their_latency_and_rare_ones_share_one() {
        let mut statuses = StatusLatency::new();
        for status in [404, 503, 404, 500, 501, 502, 504, 505, 301] {
            statuses.record(Some(status), 1, u64::from(status) * 1_000);
        }
        statuses.record(None, 1, 7_000_000);
        let counted: Vec<(String, u64)> = statuses.by_name().map(|(name, histo)| (name, histo.len())).collect();
        let expected =
            [("none", 1), ("404", 2), ("503", 1), ("500", 1), ("501", 1), ("502", 1), ("504", 1), ("others", 2)];
        assert_eq!(counted, expected.map(|(name, n)| (name.to_owned(), n)));
    }

    #[test]
    fn further_kinds_are_recorded_as_the_last() {
        let mut interval = Interval::new(Kinds { requests: 3, open: false });
        for kind in 0..6 {
            interval.sample(kind, 100, 100, 2_000_100, false);
            interval.sample(kind, 0, 1_000_000, 3_000_000, false);
        }
        let mut kinds = Vec::new();
        interval.add_kinds(&mut kinds);
        assert_eq!(kinds.iter().map(Histo::len).collect::<Vec<_>>(), [2, 2, 8]);
    }

    #[test]
    fn prompt_requests_count_in_all_three() {
        let mut interval = Interval::new(Kinds::default());
        interval.sample(0, 100, 100, 2_000_100, false);
        interval.sample(0, 0, 1_000_000, 3_000_000, false);
        interval.sample_unsent(0, 1, 5_000_000);
        let mut merged = Merged::new();
        merged.take(&interval);
        assert_eq!(merged.latency.len(), 3);
        assert_eq!(merged.service.len(), 2);
        assert_eq!(merged.lag.len(), 3);
        let near = |got: f64, us: f64| assert!((got - us).abs() <= us * 0.001 + 0.6, "{got} {us}");
        near(quantiles(&merged.latency).max_us, 5_000.0);
        near(quantiles(&merged.latency).min_us, 2_000.0);
        near(quantiles(&merged.service).min_us, 2_000.0);
        near(quantiles(&merged.service).max_us, 2_000.0);
        near(quantiles(&merged.lag).min_us, 0.0);
        near(quantiles(&merged.lag).p50_us, 1_000.0);
        near(quantiles(&merged.lag).max_us, 5_000.0);
    }

    #[test]
    fn first_bytes_are_those_of_the_service_unless_told_apart() {
        let mut interval = Interval::new(Kinds::default());
        // At once; in pieces, sent when due and late; and not at all.
        interval.sample(0, 0, 0, 1_000_000, false);
        interval.sample(0, 0, 0, 9_000_000, false);
        interval.first_byte(0, 2_000_000, 9_000_000);
        interval.sample(0, 0, 1, 9_000_001, false);
        interval.first_byte(1, 3_000_001, 9_000_001);
        interval.sample(0, 0, 0, 9_000_000, false);
        interval.first_byte(0, 0, 9_000_000);
        let mut merged = Merged::new();
        merged.take(&interval);
        let first = quantiles(&merged.first_byte);
        assert_eq!((first.count, merged.service.len()), (3, 4));
        for (got, ms) in [(first.min_us, 1.0), (first.p50_us, 2.0), (first.max_us, 3.0), (first.mean_us, 2.0)] {
            assert!((got - ms * 1e3).abs() < 2.0, "{first:?}");
        }
    }

    #[test]
    fn a_lag_of_zero_reads_as_zero() {
        let mut interval = Interval::new(Kinds::default());
        interval.sample(0, 5, 5, 1_000_005, false);
        let mut merged = Merged::new();
        merged.take(&interval);
        let lag = quantiles(&merged.lag);
        assert_eq!((lag.count, lag.p50_us, lag.mean_us, lag.max_us), (1, 0.0, 0.0, 0.0));
    }

    #[test]
    fn three_digits_from_a_microsecond_to_an_hour_and_no_further() {
        let mut histo = histo();
        for value in [1_000u64, 123_456, 98_765_432, 3_599_000_000_000] {
            histo.reset();
            histo.saturating_record(value);
            let got = quantiles(&histo).p50_us * 1e3;
            let error = (got - value as f64).abs();
            assert!(error <= (value as f64 * 0.001).max(512.0), "{value}: {got}");
        }
        histo.reset();
        histo.saturating_record(u64::MAX);
        let hour = quantiles(&histo).max_us / 3.6e9;
        assert!((1.0..1.3).contains(&hour), "{hour}");
    }

    #[test]
    fn a_quantile_is_better_known_from_more_samples() {
        let of = |n: u64| {
            let mut histo = histo();
            (1..=n).for_each(|rank| histo.saturating_record(rank * 1_000_000));
            quantile_to(&histo, 0.99) / 1e6 / n as f64
        };
        // 1.96 standard deviations of a rank: 1.95 % of 100, 0.62 % of 1,000, 0.195 % of 10,000.
        for (n, share) in [(100, 1.0), (1_000, 0.997), (10_000, 0.992)] {
            assert!((of(n) - share).abs() < 0.002, "{n}: {}", of(n));
        }
        assert_eq!(quantile_to(&histo(), 0.99), 0.0);
    }

    #[test]
    fn what_waited_for_a_connection_is_not_the_clients_lateness() {
        let mut interval = Interval::new(Kinds { requests: 0, open: true });
        // At its due time; 1 ms late by itself; 8 ms late for want of a connection; never sent.
        interval.sample(0, 0, 0, 2_000_000, false);
        interval.sample(0, 0, 1_000_000, 3_000_000, false);
        interval.sample(0, 0, 8_000_000, 10_000_000, true);
        interval.sample_unsent(0, 1, 20_000_000);
        let mut own = Own::new();
        own.take(&interval);
        let Lateness { lag, latency, .. } = own.quantiles();
        assert_eq!((lag.count, latency.count), (4, 4));
        let ms = |us: f64| (us / 100.0).round() / 10.0;
        assert_eq!((ms(lag.p75_us), ms(lag.max_us)), (0.0, 1.0), "{lag:?}");
        assert_eq!((ms(latency.p50_us), ms(latency.p75_us), ms(latency.max_us)), (2.0, 10.0, 20.0), "{latency:?}");
        interval.clear();
        own.take(&interval);
        assert_eq!(own.lag.len(), 4);
    }

    #[test]
    fn a_cleared_slab_is_as_new() {
        let mut interval = Interval::new(Kinds::default());
        interval.counts.successful = 1;
        interval.open = Some(7);
        interval.sample(0, 1, 2, 3, false);
        interval.sample(0, 1, 1, 3, false);
        interval.clear();
        let mut merged = Merged::new();
        merged.take(&interval);
        assert_eq!((interval.counts, interval.open), (EventCounts::default(), None));
        assert!(merged.latency.is_empty() && merged.service.is_empty() && merged.lag.is_empty());
    }
}
