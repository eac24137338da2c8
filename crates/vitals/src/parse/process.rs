//! `/proc/<pid>/task/<tid>/status`, `schedstat` and `children` (proc_pid_status(5)). The samplers of threads call it.

use super::{lines, number, words};

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

/// A thread's `schedstat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SchedStat {
    /// CPU time, ns.
    pub ran_ns: u64,
    /// How long it was ready to run and had no CPU, ns.
    pub delay_ns: u64,
    /// How often it was put on a CPU.
    pub runs: u64,
}

pub(crate) fn schedstat(text: &[u8]) -> Option<SchedStat> {
    let mut numbers = words(text).map(number);
    let mut next = || numbers.next().flatten();
    Some(SchedStat { ran_ns: next()?, delay_ns: next()?, runs: next()? })
}

/// A process's `statm`: pages of its address space, of its resident set, and of that part of it which files and shared memory back.
pub(crate) fn memory_pages(text: &[u8]) -> Option<[u64; 3]> {
    let mut numbers = words(text).map(number);
    let mut next = || numbers.next().flatten();
    Some([next()?, next()?, next()?])
}

/// The CPUs on which a task may run, as its `status` lists them.
pub(crate) fn allowed_cpus(status: &[u8]) -> Option<&[u8]> {
    lines(status).rev().find_map(|line| Some(line.strip_prefix(b"Cpus_allowed_list:")?.trim_ascii()))
}

/// The process ids in a `children` file.
pub(crate) fn children(text: &[u8]) -> impl Iterator<Item = u32> {
    words(text).filter_map(|word| u32::try_from(number(word)?).ok())
}

/// Whether a `maps` file has a file on disk that is mapped to be written to and shared.
pub(crate) fn shares_a_file(maps: &[u8]) -> bool {
    lines(maps).any(|line| {
        let mut words = words(line).skip(1);
        let shared = words.next().is_some_and(|rights| rights.get(1) == Some(&b'w') && rights.get(3) == Some(&b's'));
        // Offset, device and inode stand between. A file in memory has no path on disk, or none any more.
        let path = words.nth(3).unwrap_or_default();
        let memory: [&[u8]; 3] = [b"/dev/", b"/memfd:", b"/SYSV"];
        shared
            && path.starts_with(b"/")
            && !memory.iter().any(|of| path.starts_with(of))
            && !line.ends_with(b"(deleted)")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn switches_of_a_status() {
        let text = b"Name:\tvoluntary_ctxt_switches: 9\nThreads:\t1\nvoluntary_ctxt_switches:\t41\n\
            nonvoluntary_ctxt_switches:\t7\nx86_Thread_features:\t\n";
        assert_eq!(switches(text), Some((41, 7)));
        assert_eq!(switches(b"voluntary_ctxt_switches:\t41\n"), None);
        assert_eq!(switches(b""), None);
    }

    #[test]
    fn files_that_are_shared_memory() {
        let anonymous = b"7f0-7f1 rw-s 00000000 00:01 1031 /dev/zero (deleted)\n\
            7f1-7f2 rw-s 00000000 00:01 7 /memfd:x\n7f2-7f3 rw-p 00000000 fe:00 9 /lib/libc.so\n7f3-7f4 rw-s 0 00:01 0\n";
        assert!(!shares_a_file(anonymous));
        assert!(!shares_a_file(b"7f1-7f2 r--s 00000000 fe:00 7 /usr/lib/gconv-modules.cache\n"), "read only");
        assert!(shares_a_file(b"7f1-7f2 rw-s 00000000 fe:00 7      /run/work/_.vsm_child/_.Arg\n"));
    }

    #[test]
    fn times_a_thread_ran_and_waited() {
        let times = SchedStat { ran_ns: 136_974, delay_ns: 426_282, runs: 6 };
        assert_eq!(schedstat(b"136974 426282 6\n"), Some(times));
        assert_eq!(schedstat(b"136974 426282\n"), None);
    }

    #[test]
    fn pages_of_a_process() {
        assert_eq!(memory_pages(b"14036 1574 1053 200 0 300 0\n"), Some([14_036, 1574, 1053]));
        assert_eq!(memory_pages(b"14036 1574\n"), None);
    }

    #[test]
    fn where_a_thread_may_run() {
        let text = b"Cpus_allowed:\t3\nCpus_allowed_list:\t0-1,4\nMems_allowed:\t1\nMems_allowed_list:\t0\n";
        assert_eq!((allowed_cpus(text), allowed_cpus(b"Cpus_allowed:\t3\n")), (Some(&b"0-1,4"[..]), None));
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
            let _ = (switches(&text), children(&text).count(), schedstat(&text), allowed_cpus(&text));
        }

        #[test]
        fn no_likely_bytes_panic(text in "[0-9 ():\n-]{0,200}|(non)?voluntary_ctxt_switches:[0-9\t]{0,30}") {
            let _ = (switches(text.as_bytes()), children(text.as_bytes()).count(), schedstat(text.as_bytes()));
        }
    }
}
