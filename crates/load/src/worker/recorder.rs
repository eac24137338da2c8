//! Records the counts and samples of one worker, second by second and phase by phase. It does not know connections.

use std::sync::mpsc::{Receiver, Sender};

use weir_model::load::ErrorKind;
use weir_net::{CpuTime, Io};

use super::pool::Stream;
use crate::clock::{NEVER, SECOND};
use crate::counts::RequestCounts;
use crate::interval::{EventCounts, Interval, Kinds, Phase, StatusLatency, USUAL_STATUS};
use crate::plan::Plan;
use crate::shared::Message;

/// See the module.
#[derive(Debug)]
pub(super) struct Recorder {
    thread: u32,
    messages: Sender<Message>,
    spares: Receiver<Box<Interval>>,
    warmup: u64,
    timeout: u64,
    /// The second, or the part of one, that is under way, and when it is over.
    interval: Box<Interval>,
    interval_end: u64,
    histograms: Kinds,
    /// Warm-up's end, which is the window's start; and the window's end.
    window: u64,
    end: u64,
    /// Requests due before the window, and in it.
    pub before: RequestCounts,
    pub inside: RequestCounts,
    /// Where the protocol has statuses.
    pub by_status: Option<StatusLatency>,
    /// When the last request ended.
    pub last: u64,
    /// At the window's start and its end: CPU, when, and nanoseconds of the CPU that were spent on busy-polling.
    cpu: [Option<(CpuTime, u64, u64)>; 2],
}

impl Recorder {
    pub(super) fn new(
        plan: &Plan,
        thread: u32,
        now: u64,
        messages: Sender<Message>,
        spares: Receiver<Box<Interval>>,
    ) -> Recorder {
        let counts = || RequestCounts::new(plan.recorded().requests);
        let mut interval = Interval::new(plan.recorded());
        interval.start = now;
        Recorder {
            thread,
            messages,
            spares,
            warmup: plan.warmup,
            timeout: plan.timeout,
            interval,
            histograms: plan.recorded(),
            interval_end: NEVER,
            window: NEVER,
            end: NEVER,
            before: counts(),
            inside: counts(),
            by_status: plan.spec.keyvalue.is_none().then(StatusLatency::new),
            last: 0,
            cpu: [None; 2],
        }
    }

    #[inline]
    pub(super) fn phase(&self) -> Phase {
        self.interval.phase
    }

    /// When the interval under way began.
    pub(super) fn interval_start(&self) -> u64 {
        self.interval.start
    }

    /// Length of the window.
    pub(super) fn window_length(&self) -> u64 {
        self.end.saturating_sub(self.window)
    }

    #[inline]
    pub(super) fn interval_end(&self) -> u64 {
        self.interval_end
    }

    /// What happened in the interval under way.
    #[inline]
    pub(super) fn counts(&mut self) -> &mut EventCounts {
        &mut self.interval.counts
    }

    pub(super) fn send(&self, message: Message) {
        // The calling thread receives until all workers are done; if it is gone, the message is not needed.
        let _ = self.messages.send(message);
    }

    /// The load starts.
    pub(super) fn begin(&mut self, start: u64, end: u64) {
        self.end = end;
        self.window = start.saturating_add(self.warmup).min(end);
        self.interval_end = start;
    }

    /// The end moves, if it is earlier than it was.
    pub(super) fn end_at(&mut self, end: u64) -> bool {
        if end >= self.end {
            return false;
        }
        self.end = end;
        self.window = self.window.min(end);
        self.interval_end = self.end_of_interval(self.phase(), self.interval.start);
        true
    }

    /// When the interval that began at `start` is over.
    fn end_of_interval(&self, phase: Phase, start: u64) -> u64 {
        match phase {
            Phase::Connect => start,
            Phase::Warmup => self.window.min(start + SECOND).max(start),
            Phase::Window => self.end.min(start + SECOND).max(start),
            Phase::Drain => start + self.timeout,
        }
    }

    /// Hands over the finished interval and begins the next. `open`: connections; `busy_polled`: nanoseconds so far.
    pub(super) fn next_interval(&mut self, io: &impl Io, open: u32, busy_polled: u64) {
        let at = self.interval_end;
        let phase = if at < self.window {
            Phase::Warmup
        } else if at < self.end {
            Phase::Window
        } else {
            Phase::Drain
        };
        let was = self.phase();
        if phase != was && (phase == Phase::Window || was == Phase::Window) {
            let reading = (io.cpu_time(), io.now(), busy_polled);
            self.cpu[usize::from(was == Phase::Window)] = Some(reading);
        }
        // The calling thread gives intervals back within milliseconds. If it is more than a second behind, paying for
        // a new one is better than mixing two seconds in one.
        let mut next = self.spares.try_recv().unwrap_or_else(|_| Interval::new(self.histograms));
        next.second = if phase == was { self.interval.second + 1 } else { 0 };
        next.phase = phase;
        next.start = at;
        self.interval.end = at;
        self.interval.open = Some(open);
        let full = std::mem::replace(&mut self.interval, next);
        self.send(Message::Interval(self.thread, full));
        self.interval_end = self.end_of_interval(phase, at);
    }

    /// Hands over the last interval.
    pub(super) fn finish(&mut self, now: u64) {
        self.interval.end = now.max(self.interval.start);
        let last = std::mem::replace(&mut self.interval, Interval::new(Kinds::default()));
        self.send(Message::Interval(self.thread, last));
    }

    /// The window's CPU time, of it the microseconds that were spent on busy-polling, and the share of the window that the
    /// thread was at work.
    pub(super) fn cpu(&self) -> (CpuTime, u64, f64) {
        match self.cpu {
            [Some((from, start, polled)), Some((to, end, polled_after))] if end > start => {
                let used = to.since(from);
                let busy_poll_us = ((polled_after - polled) / 1_000).min(used.total_us());
                let busy = (used.total_us() - busy_poll_us) as f64 * 1e3 / (end - start) as f64;
                (used, busy_poll_us, busy)
            }
            _ => (CpuTime::default(), 0, 0.0),
        }
    }

    /// The counts that a request due then belongs to.
    #[inline]
    fn counts_of(&mut self, due: u64) -> &mut RequestCounts {
        if due < self.window { &mut self.before } else { &mut self.inside }
    }

    /// So many requests of one phase became due, the first of them then.
    #[inline]
    pub(super) fn due(&mut self, first: u64, n: u64) {
        self.interval.counts.due += n;
        self.counts_of(first).due += n;
    }

    /// It was sent.
    #[inline]
    pub(super) fn sent(&mut self, due: u64, request: u32) {
        self.interval.counts.sent += 1;
        let counts = self.counts_of(due);
        counts.sent += 1;
        if let Some(of_request) = counts.of_request(request) {
            of_request.sent += 1;
        }
    }

    /// It was sent and certainly not processed: it counts as not sent. (The second in which it left keeps it: then it was.)
    pub(super) fn not_sent(&mut self, due: u64, request: u32) {
        let counts = self.counts_of(due);
        counts.sent -= 1;
        if let Some(of_request) = counts.of_request(request) {
            of_request.sent -= 1;
        }
    }

    /// Its response is complete, and right or wrong.
    #[inline]
    pub(super) fn response(&mut self, stream: &Stream, verdict: Result<(), ErrorKind>, now: u64) {
        let (due, size) = (stream.due, stream.response.size());
        let counts = self.counts_of(due);
        counts.status(stream.response.status());
        counts.body_bytes += size;
        match verdict {
            Ok(()) => {
                counts.successful += 1;
                counts.early += u64::from(stream.response.is_early());
                if let Some(of_request) = counts.of_request(stream.request) {
                    of_request.successful += 1;
                }
                self.interval.successful(now);
                self.interval.counts.successful_body_bytes += size;
            }
            Err(kind) => self.count_error(due, Some(stream.request), kind),
        }
        let first = if stream.first == 0 { now } else { stream.first };
        self.sample(stream, first, now);
        if stream.response.status() != USUAL_STATUS {
            self.unusual(Some(stream.response.status()), due, 1, now);
        }
    }

    /// It was sent and ended without a response.
    pub(super) fn failed(&mut self, stream: &Stream, kind: ErrorKind, now: u64) {
        self.sample(stream, stream.first, now);
        self.unusual(None, stream.due, 1, now);
        self.count_error(stream.due, Some(stream.request), kind);
    }

    /// It ended before it could be sent, for want of a connection.
    pub(super) fn failed_unsent(&mut self, due: u64, kind: ErrorKind, now: u64) {
        self.sample_unsent(due, 1, now);
        self.count_error(due, None, kind);
        self.last = now;
    }

    /// So many will never be sent, which became due then, or so little later that their samples are the same: [`Recorder::last_like`].
    pub(super) fn unsent(&mut self, due: u64, n: u64, now: u64) {
        self.sample_unsent(due, n, now);
        self.counts_of(due).unsent += n;
    }

    /// The last due time of requests that are counted and recorded now as one that became due at `due`.
    pub(super) fn last_like(&self, due: u64, now: u64) -> u64 {
        let last = now - self.interval.least_alike(now.saturating_sub(due));
        if due < self.window { last.min(self.window - 1) } else { last }
    }

    /// When the window begins.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    fn count_error(&mut self, due: u64, request: Option<u32>, kind: ErrorKind) {
        self.counts_of(due).error(request, kind);
        self.interval.counts.error(kind);
    }

    /// Whether a request leaves a sample now: one that was due in the warm-up leaves none in the window.
    #[inline]
    fn is_sampled(&self, due: u64) -> bool {
        due >= self.window || self.phase() == Phase::Warmup
    }

    /// Records a request that ended, and of whose response the first byte came at `first` (0: none came).
    #[inline]
    fn sample(&mut self, stream: &Stream, first: u64, now: u64) {
        self.last = now;
        if self.is_sampled(stream.due) {
            self.interval.sample(stream.request, stream.due, stream.sent, now, stream.waited);
            if first != now {
                self.interval.first_byte(stream.sent, first, now);
            }
        }
    }

    fn sample_unsent(&mut self, due: u64, n: u64, now: u64) {
        if self.is_sampled(due) {
            self.interval.sample_unsent(due, n, now);
        }
        self.unusual(None, due, n, now);
    }

    /// Records requests of the window that ended otherwise than with the usual status, if they are of the window's samples.
    #[cold]
    fn unusual(&mut self, status: Option<u16>, due: u64, n: u64, now: u64) {
        let measured = due >= self.window && self.phase() > Phase::Warmup;
        if let Some(by_status) = self.by_status.as_mut().filter(|_| measured) {
            by_status.record(status, n, now.saturating_sub(due));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::plan::tests::spec;

    #[test]
    fn a_request_belongs_to_the_phase_in_which_it_was_due() {
        let spec = weir_model::load::LoadSpec { warmup_s: 1.0, duration_s: 1.0, ..spec() };
        let plan = Plan::new(&spec, &crate::capacity::Resources::unlimited()).unwrap();
        let ((messages, received), (_spare, spares)) = (channel(), channel());
        let driver = weir_net::sim::World::new(1).driver("client");
        let mut recorder = Recorder::new(&plan, 0, 0, messages, spares);
        recorder.begin(SECOND, 3 * SECOND);
        let warm = Stream { due: SECOND, sent: SECOND, ..Stream::default() };
        let measured = Stream { due: 2 * SECOND, sent: 2 * SECOND, ..Stream::default() };
        for (edge, phase) in [(SECOND, Phase::Warmup), (2 * SECOND, Phase::Window), (3 * SECOND, Phase::Drain)] {
            assert_eq!(recorder.interval_end(), edge);
            recorder.next_interval(&driver, 1, 0);
            assert_eq!(recorder.phase(), phase);
            if phase == Phase::Window {
                // One of the warm-up that took until now, and one of now.
                recorder.response(&warm, Ok(()), 2 * SECOND + 5);
                recorder.due(measured.due, 1);
                recorder.sent(measured.due, 0);
                recorder.failed(&measured, ErrorKind::Timeout, 2 * SECOND + 6);
            }
        }
        assert_eq!((recorder.before.successful, recorder.inside.successful, recorder.inside.sent), (1, 0, 1));
        let intervals: Vec<_> = received
            .try_iter()
            .map(|message| match message {
                Message::Interval(0, interval) => (interval.phase, interval.counts.successful, interval.counts.errors),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(intervals, [(Phase::Connect, 0, 0), (Phase::Warmup, 0, 0), (Phase::Window, 1, 1)]);
    }

    #[test]
    fn a_thread_that_polls_is_not_at_work() {
        let plan = Plan::new(&spec(), &crate::capacity::Resources::unlimited()).unwrap();
        let ((messages, _received), (_spare, spares)) = (channel(), channel());
        let mut recorder = Recorder::new(&plan, 0, 0, messages, spares);
        assert_eq!(recorder.cpu(), (CpuTime::default(), 0, 0.0), "no window");
        let used = CpuTime { user_us: 700, system_us: 300 };
        // In 2 ms the thread used 1 ms, 0.4 of them for polling.
        recorder.cpu = [Some((CpuTime::default(), 0, 1_000_000)), Some((used, 2_000_000, 1_400_000))];
        assert_eq!(recorder.cpu(), (used, 400, 0.3));
    }
}
