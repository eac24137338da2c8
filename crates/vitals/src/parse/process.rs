//! `/proc/<pid>/stat`, `/proc/<pid>/task/<tid>/status` and `.../children` (proc_pid_stat(5), proc_pid_status(5)).

use super::{lines, number, words};

/// What is needed of `/proc/<pid>/stat`. Times are in clock ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PidStat {
    /// State letter.
    pub state: u8,
    /// Parent.
    pub parent: u32,
    /// User time of the whole process, ended threads included.
    pub user: u64,
    /// Kernel time, same.
    pub system: u64,
    /// User time of children that were waited for, and theirs.
    pub children_user: u64,
    /// Kernel time, same.
    pub children_system: u64,
    /// Threads.
    pub threads: u64,
    /// Resident pages.
    pub resident_pages: u64,
}

impl PidStat {
    /// Ended, and not yet waited for: it still has its times, and nothing else.
    pub fn ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// Parses `/proc/<pid>/stat`. The command stands in parentheses and may hold anything, parentheses and newlines
/// too, so the fields are counted from the last one.
pub(crate) fn pid_stat(text: &[u8]) -> Option<PidStat> {
    let after = text.iter().rposition(|&b| b == b')')? + 1;
    // Numbers as in the manual, which counts from 1 and has the state third.
    let mut at = 3;
    let mut fields = words(&text[after..]);
    let mut field = |wanted: usize| {
        let word = fields.nth(wanted - at);
        at = wanted + 1;
        word
    };
    Some(PidStat {
        state: *field(3)?.first()?,
        parent: u32::try_from(number(field(4)?)?).ok()?,
        user: number(field(14)?)?,
        system: number(field(15)?)?,
        children_user: number(field(16)?)?,
        children_system: number(field(17)?)?,
        threads: number(field(20)?)?,
        resident_pages: number(field(24)?)?,
    })
}

/// Voluntary and involuntary context switches from a task's `status`. They stand near its end.
pub(crate) fn switches(text: &[u8]) -> Option<(u64, u64)> {
    let (mut voluntary, mut involuntary) = (None, None);
    for line in lines(text).rev() {
        if let Some(rest) = line.strip_prefix(b"nonvoluntary_ctxt_switches:") {
            involuntary = words(rest).next().and_then(number);
        } else if let Some(rest) = line.strip_prefix(b"voluntary_ctxt_switches:") {
            voluntary = words(rest).next().and_then(number);
        }
        if voluntary.is_some() && involuntary.is_some() {
            break;
        }
    }
    voluntary.zip(involuntary)
}

/// How often a thread was put on a CPU: the third number of its `schedstat`.
pub(crate) fn times_run(text: &[u8]) -> Option<u64> {
    number(words(text).nth(2)?)
}

/// The process ids in a `children` file.
pub(crate) fn children(text: &[u8]) -> impl Iterator<Item = u32> {
    words(text).filter_map(|word| u32::try_from(number(word)?).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAT: &[u8] = b"17777 (prop) er ties) S 17276 17276 2955 0 -1 4194304 3083 151 0 2 59157 12 34 56 20 0 3 0 \
        38811 144015360 1105 18446744073709551615 1 1 0 0 0 0 0 4096 1088 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn stat_of_a_process_with_an_awkward_name() {
        let stat = PidStat {
            state: b'S',
            parent: 17276,
            user: 59157,
            system: 12,
            children_user: 34,
            children_system: 56,
            threads: 3,
            resident_pages: 1105,
        };
        assert_eq!(pid_stat(STAT), Some(stat));
        assert!(!stat.ended());
        assert!(PidStat { state: b'Z', ..stat }.ended());
    }

    #[test]
    fn stat_cut_short_is_nothing() {
        let end = STAT.windows(5).position(|w| w == b" 1105").expect("is in the text");
        for cut in 0..=end {
            assert_eq!(pid_stat(&STAT[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn switches_of_a_status() {
        let text = b"Name:\tvoluntary_ctxt_switches: 9\nThreads:\t1\nvoluntary_ctxt_switches:\t41\n\
            nonvoluntary_ctxt_switches:\t7\nx86_Thread_features:\t\n";
        assert_eq!(switches(text), Some((41, 7)));
        assert_eq!(switches(b"voluntary_ctxt_switches:\t41\n"), None);
        assert_eq!(switches(b""), None);
    }

    #[test]
    fn times_a_thread_ran() {
        assert_eq!(times_run(b"136974 426282 6\n"), Some(6));
        assert_eq!(times_run(b"136974 426282\n"), None);
    }

    #[test]
    fn children_of_a_task() {
        assert_eq!(children(b"12 345 6 ").collect::<Vec<_>>(), [12, 345, 6]);
        assert_eq!(children(b"").count(), 0);
        assert_eq!(children(b"99999999999 x 7").collect::<Vec<_>>(), [7]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = (pid_stat(&text), switches(&text), children(&text).count(), times_run(&text));
        }

        #[test]
        fn no_likely_bytes_panic(text in "[0-9 ():\n-]{0,200}|(non)?voluntary_ctxt_switches:[0-9\t]{0,30}") {
            let _ = (pid_stat(text.as_bytes()), switches(text.as_bytes()), children(text.as_bytes()).count(), times_run(text.as_bytes()));
        }
    }
}
