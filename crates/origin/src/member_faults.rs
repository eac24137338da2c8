//! Faults of members of a pool: what goes wrong at one of the origin's addresses, for a while. They are planned before the origin starts,
//! and their times count from a moment that comes later, the start of a measured window. [`crate::worker`] takes addresses down and up;
//! responses ask for the others. This module does not know sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_model::fault::{Fault, FaultKind};

/// The moment from which the times count, by the driver's clock; [`u64::MAX`] before it is known. All workers share it.
pub(crate) type FaultClock = Arc<AtomicU64>;

/// The faults of an origin's addresses.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemberFaults {
    faults: Vec<Fault>,
    begin: Option<u64>,
    clock: FaultClock,
}

/// What a fault does to a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It is sent so much later, nanoseconds.
    Slow(u64),
    /// It is sent then.
    Held(u64),
    /// The connection is reset instead.
    Reset,
    /// 503 instead.
    Unavailable,
}

impl MemberFaults {
    /// These, of which `member` counts the origin's addresses from 1.
    pub(crate) fn new(faults: Vec<Fault>, clock: FaultClock) -> MemberFaults {
        MemberFaults { faults, begin: None, clock }
    }

    /// Whether there is none, ever.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// Looks whether the moment is known by now.
    pub(crate) fn look(&mut self) {
        let begin = self.clock.load(Ordering::Acquire);
        self.begin = (begin != u64::MAX).then_some(begin);
    }

    /// The faults of an address at this time, each with its end.
    fn at(&self, address: usize, now: u64) -> impl Iterator<Item = (&Fault, u64)> {
        let since = self.begin.and_then(|begin| Some((begin, now.checked_sub(begin)?)));
        let of_address = move |fault: &&Fault| fault.member == Some(address as u32 + 1);
        self.faults.iter().filter(of_address).filter_map(move |fault| {
            let (begin, since) = since?;
            let (_, end) = fault.spans().find(|(from, to)| (*from..*to).contains(&since))?;
            Some((fault, begin + end))
        })
    }

    /// Whether the address is down: it refuses connections.
    pub(crate) fn is_down(&self, address: usize, now: u64) -> bool {
        self.at(address, now).any(|(fault, _)| fault.what == FaultKind::Kill)
    }

    /// What happens to a response of the address.
    pub(crate) fn effect(&self, address: usize, now: u64) -> Option<Effect> {
        self.at(address, now).find_map(|(fault, end)| match fault.what {
            FaultKind::Slow => Some(Effect::Slow(fault.delay.unwrap_or_default().as_nanos() as u64)),
            FaultKind::Freeze => Some(Effect::Held(end)),
            FaultKind::Reset => Some(Effect::Reset),
            FaultKind::Unavailable => Some(Effect::Unavailable),
            FaultKind::Kill | FaultKind::DiskFull | FaultKind::SlowReaders | FaultKind::SlowWriters => None,
        })
    }

    /// When an address next goes down or up.
    pub(crate) fn next_change(&self, now: u64) -> Option<u64> {
        let begin = self.begin?;
        let kills = self.faults.iter().filter(|fault| fault.what == FaultKind::Kill);
        let times = kills.flat_map(Fault::spans).flat_map(|(from, to)| [begin + from, begin + to]);
        times.filter(|time| *time > now).min()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn fault(what: FaultKind, member: u32, at: u64, lasts: u64, every: Option<u64>) -> Fault {
        Fault {
            what,
            member: Some(member),
            at: Duration::from_secs(at),
            lasts: Duration::from_secs(lasts),
            every: every.map(Duration::from_secs),
            delay: (what == FaultKind::Slow).then_some(Duration::from_millis(200)),
            ..Fault::default()
        }
    }

    #[test]
    fn faults_count_from_the_moment_that_is_given_and_are_of_their_address_alone() {
        let clock = FaultClock::new(AtomicU64::new(u64::MAX));
        let all = [
            fault(FaultKind::Slow, 1, 1, 2, None),
            fault(FaultKind::Kill, 2, 1, 8, Some(4)),
            fault(FaultKind::Freeze, 3, 0, 5, None),
        ];
        let mut faults = MemberFaults::new(all.to_vec(), Arc::clone(&clock));
        faults.look();
        assert_eq!((faults.effect(2, SECOND), faults.next_change(0)), (None, None), "nobody knows when");
        clock.store(100 * SECOND, Ordering::Release);
        faults.look();
        let effect = |address, at| faults.effect(address, (100 * SECOND).wrapping_add(at));
        assert_eq!(effect(0, 0), None);
        assert_eq!(effect(0, SECOND), Some(Effect::Slow(SECOND / 5)));
        assert_eq!(effect(0, 3 * SECOND), None, "it is over");
        assert_eq!(effect(1, 2 * SECOND), None, "it is down");
        assert_eq!(effect(2, 2 * SECOND), Some(Effect::Held(105 * SECOND)));
        assert_eq!(effect(3, 2 * SECOND), None, "another address");
        assert_eq!(faults.effect(2, 99 * SECOND), None, "before");

        // Two seconds down, two up, twice.
        let down: Vec<bool> = (0..10).map(|s| faults.is_down(1, (100 + s) * SECOND)).collect();
        assert_eq!(down, [false, true, true, false, false, true, true, false, false, false]);
        let mut changes = Vec::new();
        while let Some(next) = faults.next_change(changes.last().copied().unwrap_or(0)) {
            changes.push(next);
        }
        assert_eq!(changes, [101, 103, 105, 107].map(|s| s * SECOND));
    }
}
