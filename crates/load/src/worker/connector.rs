//! Decides which slot connects next and when: it has the queue, the limits on number and rate, the timeouts, and the
//! backoff after failures. It does not touch sockets.

use std::collections::VecDeque;

use weir_model::load::ErrorKind;
use weir_net::TimerQueue;

use super::pool::SlotId;
use super::timer_wheel::TimerWheel;
use crate::clock::{MILLI, SECOND};
use crate::interval::{Histo, histo};
use crate::plan::{Plan, Share};

/// The first backoff, and the longest.
const BACKOFF: u64 = 10 * MILLI;
const LONGEST_BACKOFF: u64 = 500 * MILLI;

/// Where no connection can be had for a reason that lasts, trying goes on for no longer than this.
const REFUSED_FOR: u64 = 2 * SECOND;

/// See the module.
#[derive(Debug)]
pub(super) struct Connector {
    queue: VecDeque<SlotId>,
    /// Slots that are connecting, by when that is overdue.
    pub timeouts: TimerWheel,
    /// Slots that may try again, by when.
    pub backoffs: TimerQueue<u32>,
    /// Slots that are up, by when their connection is too old; `None`: none ever is.
    pub ages: Option<TimerWheel>,
    at_once: u32,
    /// Nanoseconds between attempts while the first connections are made.
    gap: Option<f64>,
    first_connections: u64,
    timeout: u64,

    /// Attempts so far.
    pub attempts: u64,
    /// Slots that are connecting or negotiating, and that are up.
    pub connecting: u32,
    pub up: u32,
    /// Sockets that are connected, negotiated or not.
    pub open: u32,
    /// Connections that brought a response.
    pub used: u64,
    pub times: Histo,
    /// Most connections up at a time so far, and when the last of them came up (or was first tried, if they are made at a
    /// rate). A peer that ends connections as fast as they are made gets nowhere.
    max_up: u32,
    last_progress: u64,
    /// The last failure before the start, and whether all were of kinds that trying again does not mend.
    pub failure: Option<(ErrorKind, String)>,
    only_lasting_failures: bool,
}

impl Connector {
    pub(super) fn new(plan: &Plan, share: &Share, now: u64) -> Connector {
        let most = share.connections + share.more;
        Connector {
            queue: VecDeque::with_capacity(most as usize),
            timeouts: TimerWheel::new(most, now),
            backoffs: TimerQueue::with_capacity(most as usize),
            ages: plan.recycle.map(|_| TimerWheel::new(most, now)),
            at_once: plan.connecting_at_once,
            gap: plan.connect_gap,
            first_connections: share.connections.into(),
            timeout: plan.connect_timeout,
            attempts: 0,
            connecting: 0,
            up: 0,
            open: 0,
            used: 0,
            times: histo(),
            max_up: 0,
            last_progress: 0,
            failure: None,
            only_lasting_failures: true,
        }
    }

    /// There is one more slot.
    pub(super) fn grow(&mut self) {
        self.timeouts.grow(1);
        if let Some(ages) = &mut self.ages {
            ages.grow(1);
        }
    }

    /// A slot wants to connect.
    pub(super) fn enqueue(&mut self, id: SlotId) {
        self.queue.push_back(id);
    }

    /// Whether a slot could begin to connect, if it is time.
    pub(super) fn has_next(&self) -> bool {
        self.connecting < self.at_once && !self.queue.is_empty()
    }

    /// The next slot to connect now. `first_since`: the first connections are being made since then.
    pub(super) fn next(&mut self, first_since: Option<u64>, now: u64) -> Option<SlotId> {
        if !self.has_next() || now < self.next_attempt(first_since) {
            return None;
        }
        self.queue.pop_front()
    }

    /// When the next attempt may be made: the load may set a rate for the first connections.
    pub(super) fn next_attempt(&self, first_since: Option<u64>) -> u64 {
        match (self.gap, first_since) {
            (Some(gap), Some(since)) => since + (self.attempts as f64 * gap) as u64,
            _ => 0,
        }
    }

    /// An attempt is made.
    pub(super) fn attempt(&mut self, now: u64) {
        self.attempts += 1;
        if self.gap.is_some() && self.attempts <= self.first_connections {
            self.last_progress = now;
        }
    }

    /// A slot is connecting.
    pub(super) fn begin(&mut self, id: SlotId, now: u64) {
        self.connecting += 1;
        self.timeouts.watch(id, now + self.timeout);
    }

    /// A connection is ready.
    pub(super) fn ready(&mut self, now: u64) {
        self.connecting -= 1;
        self.up += 1;
        if self.up > self.max_up {
            self.max_up = self.up;
            self.last_progress = now;
        }
    }

    /// Makes a note of why an attempt before the start failed.
    pub(super) fn note_failure(&mut self, kind: ErrorKind, detail: String) {
        self.only_lasting_failures &= matches!(kind, ErrorKind::ConnectRefused | ErrorKind::Tls | ErrorKind::Protocol);
        self.failure = Some((kind, detail));
    }

    /// A slot waits before it tries again, longer with each failure in a row.
    pub(super) fn back_off(&mut self, id: SlotId, fails: u8, now: u64) {
        self.backoffs.push(now + backoff(fails), id);
    }

    /// Connections that are queued or being made.
    pub(super) fn under_way(&self) -> u64 {
        self.queue.len() as u64 + u64::from(self.connecting)
    }

    /// All `wanted` connections are up, or no more can be hoped for; connecting began at `begun`.
    pub(super) fn is_ready(&self, wanted: u32, begun: u64, now: u64) -> bool {
        // As long as more come up others may.
        let without_progress = now.saturating_sub(begun.max(self.last_progress));
        let refused = self.up == 0 && self.only_lasting_failures && self.failure.is_some();
        self.up == wanted || without_progress >= self.timeout || (refused && now - begun >= REFUSED_FOR)
    }
}

fn backoff(fails: u8) -> u64 {
    let doublings = u32::from(fails.saturating_sub(1)).min(6);
    (BACKOFF << doublings).min(LONGEST_BACKOFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::spec;

    fn connector(change: impl FnOnce(&mut Plan)) -> Connector {
        let mut spec = spec();
        spec.connections = 3;
        let mut plan = Plan::new(&spec, &crate::capacity::Resources::unlimited()).unwrap();
        change(&mut plan);
        let mut connector = Connector::new(&plan, &plan.shares[0], 0);
        (0..3).for_each(|id| connector.enqueue(id));
        (0..3).for_each(|_| connector.grow());
        connector
    }

    #[test]
    fn backoffs_double_up_to_half_a_second() {
        let ms: Vec<u64> = [1, 2, 3, 6, 7, 255].map(|fails| backoff(fails) / MILLI).to_vec();
        assert_eq!(ms, [10, 20, 40, 320, 500, 500]);
    }

    #[test]
    fn no_more_connect_at_a_time_than_may() {
        let mut connector = connector(|plan| plan.connecting_at_once = 2);
        for id in [0, 1] {
            assert_eq!(connector.next(None, 0), Some(id));
            connector.begin(id, 0);
        }
        assert_eq!(connector.next(None, 0), None);
        connector.ready(1);
        assert_eq!(connector.next(None, 1), Some(2));
    }

    #[test]
    fn the_first_connections_are_made_at_their_rate() {
        let mut connector = connector(|plan| plan.connect_gap = Some(1_000.0));
        assert_eq!(connector.next(Some(500), 500), Some(0));
        connector.attempt(500);
        assert_eq!((connector.next(Some(500), 1_499), connector.next_attempt(Some(500))), (None, 1_500));
        assert_eq!(connector.next(Some(500), 1_500), Some(1));
        assert_eq!(connector.next(None, 1_500), Some(2), "later there is no rate");
    }

    #[test]
    fn refusals_end_the_wait_and_other_failures_do_not() {
        for (kind, ends) in [(ErrorKind::ConnectRefused, true), (ErrorKind::ConnectTimeout, false)] {
            let mut connector = connector(|_| ());
            assert!(!connector.is_ready(3, 0, REFUSED_FOR), "nothing failed");
            connector.note_failure(kind, String::new());
            assert_eq!(connector.is_ready(3, 0, REFUSED_FOR), ends, "{kind:?}");
            assert!(connector.is_ready(3, 0, connector.timeout));
        }
    }
}
