//! The wheel on a virtual clock, against a plain ordered map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const TICK: u64 = 1 << TICK_BITS;

/// The wheel and what it should hold.
#[derive(Default)]
struct Both {
    wheel: TimerWheel<u32>,
    /// By time, then by number.
    model: BTreeMap<(u64, u32), TimerId>,
    now: u64,
    number: u32,
}

impl Both {
    fn set(&mut self, after: u64) {
        let at = self.now.saturating_add(after).min(LATEST);
        let id = self.wheel.set(at, self.number);
        self.model.insert((at, self.number), id);
        self.number += 1;
    }

    fn cancel(&mut self, which: usize) {
        if self.model.is_empty() {
            return;
        }
        let (&key, &id) = self.model.iter().nth(which % self.model.len()).expect("within its length");
        self.model.remove(&key);
        assert!(self.wheel.cancel(id), "was set");
        assert!(!self.wheel.cancel(id), "was taken back");
    }

    /// Advances the clock, and checks which timers expire: all that were due a tick ago, none that are not due.
    fn advance(&mut self, by: u64) {
        self.now = self.now.saturating_add(by).min(LATEST);
        while let Some(number) = self.wheel.pop(self.now) {
            let key = *self.model.keys().find(|key| key.1 == number).expect("is set, and leaves once");
            assert!(key.0 <= self.now, "{} leaves at {}", key.0, self.now);
            let id = self.model.remove(&key).expect("found above");
            assert!(!self.wheel.cancel(id), "has left");
        }
        let tick = self.now >> TICK_BITS;
        assert!(self.model.keys().all(|key| key.0 >> TICK_BITS >= tick), "late: {:?} at {}", self.model, self.now);
        assert_eq!(self.wheel.is_empty(), self.model.is_empty());
        self.check_next();
    }

    /// The next check is not later than a tick after the first timer.
    fn check_next(&self) {
        match (self.wheel.next(), self.model.keys().next()) {
            (None, None) => {}
            (Some(next), Some(first)) => assert!(next <= first.0.max(self.now) + TICK, "{next} for {}", first.0),
            (next, first) => panic!("{next:?} for {first:?}"),
        }
    }
}

/// Durations of all orders of magnitude.
fn spans() -> impl Strategy<Value = u64> {
    (0u32..50, any::<u64>()).prop_map(|(bits, n)| n & ((1 << bits) - 1))
}

proptest! {
    #[test]
    fn as_an_ordered_map_would(steps in proptest::collection::vec((0u8..10, spans(), any::<usize>()), 0..300)) {
        let mut both = Both::default();
        for (what, span, which) in steps {
            match what {
                0..5 => both.set(span),
                5..7 => both.cancel(which),
                _ => both.advance(span),
            }
        }
        both.advance(LATEST);
        both.advance(LATEST);
        prop_assert!(both.model.is_empty() || both.model.keys().all(|key| key.0 >> TICK_BITS == LATEST >> TICK_BITS));
    }

    #[test]
    fn checking_when_due_finds_all_within_a_tick(spans in proptest::collection::vec(spans(), 1..200)) {
        let mut both = Both::default();
        for span in spans {
            both.set(span & ((1 << 40) - 1));
        }
        let mut looks = 0;
        while let Some(next) = both.wheel.next() {
            both.advance(next.max(both.now) - both.now);
            looks += 1;
            prop_assert!(looks < 200 * LEVELS * 2, "looks too often");
        }
        prop_assert!(both.model.is_empty());
    }
}

#[test]
fn a_few_timers_leave_exactly_when_due() {
    let mut wheel = TimerWheel::default();
    for at in [10_000_000, 10_000_100, 10_000_050, 500] {
        wheel.set(at, at);
    }
    for at in [500, 10_000_000, 10_000_050, 10_000_100] {
        assert_eq!(wheel.next(), Some(at));
        assert_eq!(wheel.pop(at - 1), None);
        assert_eq!(wheel.pop(at), Some(at));
    }
    assert_eq!((wheel.next(), wheel.pop(1 << 40)), (None, None));
}

#[test]
fn many_at_once_leave_in_a_tick_and_in_order_of_setting() {
    let mut wheel = TimerWheel::default();
    for n in 0..100_000u32 {
        wheel.set(7 * TICK + 5, n);
    }
    let next = wheel.next().expect("set");
    assert_eq!(next, 8 * TICK);
    for n in 0..100_000 {
        assert_eq!(wheel.pop(next), Some(n));
    }
    assert!(wheel.is_empty());
    let nodes = wheel.nodes.len();
    wheel.set(1, 1);
    assert_eq!(wheel.nodes.len(), nodes, "nodes are used again");
}

#[test]
fn a_timer_of_the_past_leaves_at_once() {
    let mut wheel = TimerWheel::default();
    assert_eq!(wheel.pop(1 << 30), None);
    wheel.set(5, 'a');
    assert_eq!(wheel.next(), Some(5));
    assert_eq!(wheel.pop(1 << 30), Some('a'));
}

#[test]
fn a_timer_is_small() {
    assert!(size_of::<Node<(weir_net::Conn, u32)>>() <= 40);
}
