//! Supplies the next request of a free stream and its due time. It does not know connections.
//!
//! *Closed* and *counted* loads: a stream's next request is due when the stream is free, or when its think time is
//! over; in a load of bursts also not before the next burst. *Open* loads: requests become due by the schedule and wait for a
//! stream. In all loads, a request that could not be sent may come back; it is then next.

use std::collections::VecDeque;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_model::load::RandomDuration;
use weir_model::suite::LoadKind;
use weir_net::TimerQueue;

use super::pool::StreamId;
use crate::backlog::Backlog;
use crate::clock::{NEVER, from_secs};
use crate::plan::{Plan, Share};
use crate::schedule::Bursts;

/// Streams of random numbers below are for arrivals, one a thread.
const THINK_STREAM: u64 = 1 << 32;

/// See the module.
#[derive(Debug)]
pub(super) struct Pacing {
    source: Source,
    /// Due times of requests that came back.
    returned: VecDeque<u64>,
    /// `None`: streams are never at rest.
    rest: Option<Rest>,
    /// The number of requests is fixed.
    is_finite: bool,
    /// From here on nothing becomes due; 0 before the start.
    end: u64,
    /// Waiting requests are not handed out any more.
    stopped: bool,
    /// Streams whose think time is over, and whose requests are to be sent.
    pub ready: Vec<StreamId>,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a worker has one")]
enum Source {
    Closed,
    /// The number of requests left.
    Counted(u64),
    Open(Backlog),
}

/// Rests of streams in closed and counted loads, between a response and the next request.
#[derive(Debug)]
struct Rest {
    think: Option<RandomDuration>,
    random: ChaCha8Rng,
    bursts: Option<Bursts>,
    /// When the load started.
    start: u64,
    /// Streams at rest, by the end of it.
    until: TimerQueue<u32>,
}

impl Rest {
    /// Until when a stream rests from `now` on; `None`: not at all.
    fn until(&mut self, now: u64) -> Option<u64> {
        let thought = self.think.map(|time| now.saturating_add(from_secs(time.at(self.random.random::<f64>()))));
        let ready = thought.unwrap_or(now);
        let next = self.bursts.and_then(|bursts| bursts.next(ready - self.start.min(ready)));
        next.map(|next| self.start + next).or(thought)
    }
}

/// A request to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    pub at: u64,
    /// It becomes due by being handed out, and was not counted yet.
    pub new: bool,
}

impl Pacing {
    /// Nothing is due until [`Pacing::begin`].
    pub(super) fn new(plan: &Plan, share: &Share) -> Pacing {
        let source = match (&plan.timetable, &plan.spec.kind) {
            (Some(timetable), _) => {
                let schedule = timetable.schedule(plan.spec.seed, share.thread, plan.all_threads);
                Source::Open(Backlog::new(schedule.in_bursts(plan.bursts)))
            }
            (None, LoadKind::Count { .. }) => Source::Counted(share.requests),
            (None, _) => Source::Closed,
        };
        let streams = (share.connections * plan.streams) as usize;
        let (think, bursts) = (plan.spec.think, plan.bursts);
        let rests = (think.is_some() || bursts.is_some()) && plan.timetable.is_none();
        let rest = rests.then(|| {
            let mut random = ChaCha8Rng::seed_from_u64(plan.spec.seed);
            random.set_stream(THINK_STREAM + u64::from(share.thread));
            Rest { think, random, bursts, start: 0, until: TimerQueue::with_capacity(streams) }
        });
        let ready = Vec::with_capacity(if rest.is_some() { streams } else { 0 });
        Pacing {
            source,
            returned: VecDeque::new(),
            rest,
            is_finite: plan.spec.kind.is_finite(),
            end: 0,
            stopped: false,
            ready,
        }
    }

    /// The load starts, and ends.
    pub(super) fn begin(&mut self, start: u64, end: u64) {
        self.end = end;
        if let Source::Open(backlog) = &mut self.source {
            backlog.begin(start, end);
        }
        if let Some(rest) = &mut self.rest {
            rest.start = start;
        }
    }

    /// The end moves to an earlier time.
    pub(super) fn end_at(&mut self, end: u64) {
        self.end = end;
        if let Source::Open(backlog) = &mut self.source {
            backlog.end_at(end);
        }
    }

    /// Nothing is handed out any more.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether requests become due by themselves.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        matches!(self.source, Source::Open(_))
    }

    /// True when each stream has its next request at once, until the window ends.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.source, Source::Closed) && self.rest.is_none()
    }

    /// All requests of a load of a fixed number of them became due.
    pub(super) fn all_counted(&self) -> bool {
        self.is_finite
            && match &self.source {
                Source::Counted(left) => *left == 0,
                Source::Open(backlog) => backlog.next_due() == NEVER,
                Source::Closed => false,
            }
    }

    /// The next request for a stream that is free at `now`.
    #[inline]
    pub(super) fn next(&mut self, now: u64) -> Option<Due> {
        if self.stopped {
            return None;
        }
        if !self.returned.is_empty() || self.is_open() {
            return self.oldest().map(|at| Due { at, new: false });
        }
        if now >= self.end {
            return None;
        }
        if let Source::Counted(left) = &mut self.source {
            *left = left.checked_sub(1)?;
        }
        Some(Due { at: now, new: true })
    }

    /// Takes the oldest request that waits for a stream, as its due time.
    pub(super) fn oldest(&mut self) -> Option<u64> {
        if let Some(due) = self.returned.pop_front() {
            return Some(due);
        }
        match &mut self.source {
            Source::Open(backlog) => backlog.pop(),
            Source::Closed | Source::Counted(_) => None,
        }
    }

    /// Takes those that wait for a stream and became due up to then, where that needs no walk through them; their number.
    pub(super) fn pop_until(&mut self, at: u64) -> u64 {
        match &mut self.source {
            Source::Open(backlog) if self.returned.is_empty() => backlog.pop_until(at),
            _ => 0,
        }
    }

    /// Which request is due then, in a replay of recorded requests; `None`: it is to be chosen.
    #[inline]
    pub(super) fn recorded(&self, due: u64) -> Option<u32> {
        match &self.source {
            Source::Open(backlog) => backlog.request_at(due),
            Source::Closed | Source::Counted(_) => None,
        }
    }

    /// The number of requests that wait for a stream.
    #[inline]
    pub(super) fn waiting(&self) -> u64 {
        let backlog = match &self.source {
            Source::Open(backlog) => backlog.waiting(),
            Source::Closed | Source::Counted(_) => 0,
        };
        backlog + self.returned.len() as u64
    }

    /// Drops all waiting requests, and returns their number.
    pub(super) fn drop_waiting(&mut self) -> u64 {
        let returned = std::mem::take(&mut self.returned).len() as u64;
        match &mut self.source {
            Source::Open(backlog) => returned + backlog.forget(),
            Source::Closed | Source::Counted(_) => returned,
        }
    }

    /// Nothing is left to be sent.
    pub(super) fn is_done(&self) -> bool {
        self.stopped || self.waiting() == 0
    }

    /// A request that its connection did not take waits for the next free stream.
    pub(super) fn give_back(&mut self, due: u64) {
        self.returned.push_back(due);
    }

    /// Counts the requests of an open load that became due up to `now`: when the first did, and how many.
    #[inline]
    pub(super) fn count_due(&mut self, now: u64) -> Option<(u64, u64)> {
        match &mut self.source {
            Source::Open(backlog) => backlog.count_due(now),
            Source::Closed | Source::Counted(_) => None,
        }
    }

    /// The due time of the next request that could be sent then; [`NEVER`] when there is none. `free`: a stream is
    /// free, or may be made.
    #[inline]
    pub(super) fn next_due(&self, free: bool) -> u64 {
        match &self.source {
            // Without a free stream, counting due requests can wait.
            Source::Open(backlog) if free => backlog.next_due(),
            Source::Open(_) => NEVER,
            Source::Closed | Source::Counted(_) => {
                self.rest.as_ref().and_then(|rest| rest.until.next()).unwrap_or(NEVER)
            }
        }
    }

    /// A stream has its response. Returns whether it is at rest now; otherwise its next request is due.
    #[inline]
    pub(super) fn rest(&mut self, stream: StreamId, now: u64) -> bool {
        let Some(rest) = &mut self.rest else { return false };
        let until = rest.until(now);
        until.map(|until| rest.until.push(until, stream)).is_some()
    }

    /// A stream whose rest is over, and when it ended.
    pub(super) fn end_of_rest(&mut self, now: u64) -> Option<(u64, StreamId)> {
        self.rest.as_mut()?.until.pop(now)
    }
}

#[cfg(test)]
mod tests {
    use weir_model::load::{LoadSpec, OfferedRate};
    use weir_model::suite::Arrivals;

    use super::*;
    use crate::clock::SECOND;
    use crate::plan::tests::spec;

    fn pacing(kind: LoadKind<OfferedRate>, think: Option<RandomDuration>) -> Pacing {
        pacing_of(LoadSpec { kind, think, ..spec() })
    }

    fn pacing_of(spec: LoadSpec) -> Pacing {
        let plan = Plan::new(&spec, &crate::capacity::Resources::unlimited()).unwrap();
        let mut pacing = Pacing::new(&plan, &plan.shares[0]);
        assert_eq!(pacing.next(5), None, "nothing before the start");
        pacing.begin(SECOND, 2 * SECOND);
        pacing
    }

    #[test]
    fn a_closed_load_is_due_at_once_until_the_end() {
        let mut pacing = pacing(LoadKind::Closed, None);
        let at = SECOND + 7;
        assert_eq!(pacing.next(at), Some(Due { at, new: true }));
        assert_eq!(pacing.next(2 * SECOND), None);
        pacing.give_back(at);
        assert_eq!(pacing.next(3 * SECOND), Some(Due { at, new: false }), "what came back is sent after the end, too");
    }

    #[test]
    fn a_counted_load_ends_with_its_last_request() {
        let mut pacing = pacing(LoadKind::Count { requests: 2 }, None);
        assert!(pacing.next(SECOND).is_some() && !pacing.all_counted());
        assert!(pacing.next(SECOND).is_some() && pacing.all_counted());
        assert_eq!(pacing.next(SECOND), None);
    }

    #[test]
    fn an_open_load_is_due_by_itself_and_waits() {
        let mut pacing = pacing(LoadKind::open(10.0, Arrivals::Constant), None);
        assert_eq!((pacing.next_due(true), pacing.next_due(false)), (SECOND, NEVER));
        assert_eq!(pacing.next(SECOND), None, "not counted yet");
        assert_eq!((pacing.count_due(SECOND + SECOND / 4), pacing.waiting()), (Some((SECOND, 3)), 3));
        assert_eq!(pacing.next(SECOND + SECOND / 4), Some(Due { at: SECOND, new: false }));
        assert_eq!(pacing.drop_waiting(), 2);
        pacing.stop();
        assert!(pacing.next(SECOND + SECOND / 4).is_none() && pacing.is_done());
    }

    #[test]
    fn a_stream_is_due_when_its_think_time_is_over() {
        let mut pacing = pacing(LoadKind::Closed, Some(RandomDuration::Constant { s: 0.001 }));
        assert!(pacing.rest(3, SECOND));
        assert_eq!(pacing.next_due(false), SECOND + 1_000_000);
        assert_eq!(pacing.end_of_rest(SECOND), None);
        assert_eq!(pacing.end_of_rest(SECOND + 2_000_000), Some((SECOND + 1_000_000, 3)));
    }

    #[test]
    fn between_bursts_a_stream_rests_until_the_next() {
        let in_bursts = LoadSpec { bursts: Some(weir_model::load::Bursts { on_s: 0.020, off_s: 0.030 }), ..spec() };
        let mut bursts = pacing_of(in_bursts.clone());
        let at = |ms: u64| SECOND + ms * 1_000_000;
        for on in [0, 19, 50, 69, 100] {
            assert!(!bursts.rest(3, at(on)), "{on} ms");
        }
        for (off, next) in [(20, 50), (49, 50), (70, 100)] {
            assert!(bursts.rest(3, at(off)), "{off} ms");
            assert_eq!(bursts.end_of_rest(at(200)), Some((at(next), 3)));
        }
        // A thought that ends between two bursts ends with the next one.
        let think = Some(RandomDuration::Constant { s: 0.015 });
        let mut both = pacing_of(LoadSpec { think, ..in_bursts });
        assert!(both.rest(3, at(1)) && both.rest(4, at(10)));
        assert_eq!([both.end_of_rest(at(200)), both.end_of_rest(at(200))], [Some((at(16), 3)), Some((at(50), 4))]);
    }
}
