//! How much CPU a tree of processes has used, including those that ended between two samples. [`crate::tree`] calls it.
//!
//! It is pure: it takes the numbers of two samples. It does not know where they come from.
//!
//! A process's own time is read from its CPU clock, in nanoseconds, threads that ended included. When it ends and
//! its parent waits for it, the kernel adds its time, and that of the children it had waited for itself, to the
//! *parent's* children times (`cutime`, `cstime`). So of a tree, the sum of all own times and all children times
//! loses nothing and counts nothing twice, and that is what is kept here, step by step:
//!
//! - what living processes added to their own time, plus
//! - what living processes added to their children times, less what the processes that vanished had already been
//!   counted for.
//!
//! The second line is what processes used after the last sample of them. A process that was born and ended between two
//! samples shows up only there. Resolution: own times are exact; children times are in clock ticks (10 ms), each
//! parent's rounded down, so that the time of ended processes is uncertain by up to 20 ms a parent that waited for
//! some.
//!
//! One gap remains, and it is the kernel's: when a parent ignores SIGCHLD, its children's times are added nowhere. Of
//! such a child only what the last sample saw is counted, and its last second is lost.

/// Nanoseconds of a clock tick. `USER_HZ` is 100 on every architecture that weir runs on.
pub(crate) const TICK_NS: u64 = 10_000_000;

/// What one process has used, as the kernel reports it at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// Own time, ns; all threads, ended ones too.
    pub own_ns: u64,
    /// Own user time, ticks.
    pub user: u64,
    /// Own kernel time, ticks.
    pub system: u64,
    /// User time of children waited for, ticks.
    pub children_user: u64,
    /// Kernel time of children waited for, ticks.
    pub children_system: u64,
    /// Disk traffic, with that of children waited for; `None` where the kernel would not say.
    pub disk: Option<Disk>,
}

/// Disk traffic, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Disk {
    /// Read from disk: what was in memory already does not count.
    pub read: u64,
    /// Of pages of files that were made dirty, which will be written. Sockets, pipes and files in memory do not count.
    pub written: u64,
}

impl Used {
    fn children_ns(&self) -> u64 {
        self.children_user.saturating_add(self.children_system).saturating_mul(TICK_NS)
    }
}

/// What a tree has used since the account was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Account {
    living_ns: u64,
    /// What came through children times, less what had been counted before. Below 0 by rounding.
    ended_ns: i64,
    total_ns: u64,
    user_ticks: i64,
    system_ticks: i64,
    /// Read and written. As with times, a parent takes over what a child had that it waited for.
    disk: (i64, i64),
    disk_unknown: bool,
}

/// The differences of this crate fit easily: 2^63 ns are 292 years.
fn signed(x: u64) -> i64 {
    i64::try_from(x).unwrap_or(i64::MAX)
}

impl Account {
    /// Adds one sample: of each living process what it had used at the last sample (all zero when it is new) and now,
    /// and of each process that vanished what it had used at the last sample.
    pub fn sample(&mut self, living: impl Iterator<Item = (Used, Used)>, vanished: impl Iterator<Item = Used>) {
        let mut rounding = signed(TICK_NS) * 2;
        for (before, now) in living {
            self.living_ns += now.own_ns.saturating_sub(before.own_ns);
            self.ended_ns += signed(now.children_ns()) - signed(before.children_ns());
            self.user_ticks += signed(now.user + now.children_user) - signed(before.user + before.children_user);
            self.system_ticks +=
                signed(now.system + now.children_system) - signed(before.system + before.children_system);
            rounding += 2 * signed(TICK_NS);
            self.disk_unknown |= now.disk.is_none();
            self.disk(now.disk, 1);
            self.disk(before.disk, -1);
        }
        for last in vanished {
            self.disk(last.disk, -1);
            self.ended_ns -= signed(last.own_ns) + signed(last.children_ns());
            self.user_ticks -= signed(last.user + last.children_user);
            self.system_ticks -= signed(last.system + last.children_system);
        }
        if self.ended_ns < -rounding {
            // More than rounding explains: a process ignored SIGCHLD. The difference is dropped, or it would hide
            // what others use.
            self.ended_ns = 0;
        }
        let now = self.living_ns + u64::try_from(self.ended_ns).unwrap_or(0);
        self.total_ns = self.total_ns.max(now);
    }

    fn disk(&mut self, disk: Option<Disk>, sign: i64) {
        let Disk { read, written } = disk.unwrap_or_default();
        self.disk.0 += sign * signed(read);
        self.disk.1 += sign * signed(written);
    }

    /// Disk traffic since the account was opened; `None` when that of some process is not known.
    pub fn disk_traffic(&self) -> Option<Disk> {
        let bytes = |signed| u64::try_from(signed).unwrap_or(0);
        (!self.disk_unknown).then(|| Disk { read: bytes(self.disk.0), written: bytes(self.disk.1) })
    }

    /// CPU time since the account was opened, ns. Never falls.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// User and kernel ticks since the account was opened. Only their ratio is meaningful.
    pub fn ticks(&self) -> (u64, u64) {
        (u64::try_from(self.user_ticks).unwrap_or(0), u64::try_from(self.system_ticks).unwrap_or(0))
    }
}

/// Divides a total in the proportion of two numbers; all to the first when both are 0.
pub(crate) fn split(total: u64, first: u64, second: u64) -> (u64, u64) {
    let sum = u128::from(first) + u128::from(second);
    if sum == 0 {
        return (total, 0);
    }
    let share = (u128::from(total) * u128::from(second) + sum / 2) / sum;
    // `share` is at most `total`, as `second` is at most `sum`.
    let share = u64::try_from(share).unwrap_or(total).min(total);
    (total - share, share)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn own(ms: u64) -> Used {
        Used { own_ns: ms * MS, user: ms / 10, ..Used::default() }
    }

    fn with_children(ms: u64, children_ms: u64) -> Used {
        Used { children_user: children_ms / 10, ..own(ms) }
    }

    #[test]
    fn living_processes_add_their_differences() {
        let mut account = Account::default();
        account.sample([(own(100), own(150)), (own(0), own(7))].into_iter(), [].into_iter());
        account.sample([(own(150), own(151)), (own(7), own(7))].into_iter(), [].into_iter());
        assert_eq!(account.total_ns(), 58 * MS);
    }

    #[test]
    fn a_child_that_ends_between_samples_is_counted_once() {
        let mut account = Account::default();
        // Parent idle, child at 400 ms.
        account.sample([(own(5), own(5)), (own(0), own(400))].into_iter(), [].into_iter());
        assert_eq!(account.total_ns(), 400 * MS);
        // The child used 250 ms more, ended, and was waited for.
        account.sample([(own(5), with_children(5, 650))].into_iter(), [own(400)].into_iter());
        assert_eq!(account.total_ns(), 650 * MS);
        assert_eq!(account.ticks(), (65, 0));
    }

    #[test]
    fn disk_traffic_of_a_child_passes_to_its_parent_once() {
        let wrote = |written| Used { disk: Some(Disk { read: 0, written }), ..Used::default() };
        let mut account = Account::default();
        account.sample([(wrote(5), wrote(5)), (wrote(0), wrote(400))].into_iter(), [].into_iter());
        assert_eq!(account.disk_traffic(), Some(Disk { read: 0, written: 400 }));
        account.sample([(wrote(5), wrote(655))].into_iter(), [wrote(400)].into_iter());
        assert_eq!(account.disk_traffic(), Some(Disk { read: 0, written: 650 }));
        account.sample([(wrote(655), Used::default())].into_iter(), [].into_iter());
        assert_eq!(account.disk_traffic(), None, "not known of one process");
    }

    #[test]
    fn a_child_between_two_samples_is_counted() {
        let mut account = Account::default();
        account.sample([(own(5), with_children(5, 300))].into_iter(), [].into_iter());
        assert_eq!(account.total_ns(), 300 * MS);
    }

    #[test]
    fn an_orphan_waited_for_by_the_root_is_counted_once() {
        // Grandchild at 500 ms, its parent at 20 ms; both end, the root waits for both.
        let mut account = Account::default();
        account.sample([(own(0), own(0)), (own(0), own(20)), (own(0), own(500))].into_iter(), [].into_iter());
        account.sample([(own(0), with_children(0, 540))].into_iter(), [own(20), own(500)].into_iter());
        assert_eq!(account.total_ns(), 540 * MS);
    }

    #[test]
    fn a_child_without_a_waiting_parent_keeps_its_sampled_time() {
        let mut account = Account::default();
        account.sample([(own(0), own(0)), (own(0), own(900))].into_iter(), [].into_iter());
        account.sample([(own(0), own(0))].into_iter(), [own(900)].into_iter());
        assert_eq!(account.total_ns(), 900 * MS);
        // A later child, never seen, of 300 ms.
        account.sample([(own(0), with_children(0, 300))].into_iter(), [].into_iter());
        assert_eq!(account.total_ns(), 1200 * MS);
    }

    #[test]
    fn rounding_of_ticks_does_not_pile_up() {
        // A hundred children of 14 ms each, of which the kernel shows only whole ticks of the sum.
        let mut account = Account::default();
        let mut before = own(0);
        for k in 1..=100_u64 {
            account.sample([(before, before), (own(0), own(14))].into_iter(), [].into_iter());
            let now = with_children(0, 14 * k / 10 * 10);
            account.sample([(before, now)].into_iter(), [own(14)].into_iter());
            before = now;
        }
        let off = account.total_ns().abs_diff(1400 * MS);
        assert!(off <= 20 * MS, "off by {off} ns");
    }

    #[test]
    fn split_in_proportion() {
        assert_eq!(split(100, 3, 1), (75, 25));
        assert_eq!(split(100, 0, 0), (100, 0));
        assert_eq!(split(100, 0, 9), (0, 100));
        assert_eq!(split(u64::MAX, 1, 1).0.abs_diff(u64::MAX / 2), 0);
    }

    proptest! {
        #[test]
        fn split_keeps_the_total(total: u64, first: u64, second: u64) {
            let (a, b) = split(total, first, second);
            prop_assert_eq!(a + b, total);
        }

        #[test]
        fn totals_never_fall(steps in prop::collection::vec((0_u64..1 << 40, 0_u64..1 << 40, 0_u64..1 << 40), 0..20)) {
            let mut account = Account::default();
            let mut last = 0;
            for (a, b, gone) in steps {
                account.sample([(own(a), with_children(b, a))].into_iter(), [own(gone)].into_iter());
                prop_assert!(account.total_ns() >= last);
                last = account.total_ns();
            }
        }
    }
}
