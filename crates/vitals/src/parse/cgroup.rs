//! Files of control groups, of both versions.

use super::{keyed, number, words};

/// CPU time so far, ns, and its user and kernel part, good for a proportion only. Of `cpu.stat`, version 2.
pub(crate) fn cpu_stat(text: &[u8]) -> Option<(u64, (u64, u64))> {
    let us = keyed(text, b"usage_usec ")?;
    Some((us.checked_mul(1000)?, (keyed(text, b"user_usec ")?, keyed(text, b"system_usec ")?)))
}

/// User and kernel ticks of `cpuacct.stat`, version 1.
pub(crate) fn cpuacct_stat(text: &[u8]) -> Option<(u64, u64)> {
    Some((keyed(text, b"user ")?, keyed(text, b"system ")?))
}

/// Bytes of anonymous and mapped pages, each counted once, of `memory.stat`: with all groups below it.
pub(crate) fn memory_stat(text: &[u8], version: u8) -> Option<u64> {
    let (anonymous, mapped): (&[u8], &[u8]) =
        if version == 1 { (b"total_rss ", b"total_mapped_file ") } else { (b"anon ", b"file_mapped ") };
    keyed(text, anonymous)?.checked_add(keyed(text, mapped)?)
}

/// A file with one number.
pub(crate) fn single(text: &[u8]) -> Option<u64> {
    number(words(text).next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions() {
        let stat = b"usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\nnr_periods 0\n";
        assert_eq!(cpu_stat(stat), Some((1_234_567_000, (1_000_000, 234_567))));
        assert_eq!(cpuacct_stat(b"user 12\nsystem 3\n"), Some((12, 3)));
        let one = b"cache 9\nrss 1\nmapped_file 2\ntotal_cache 900\ntotal_rss 4096\ntotal_rss_huge 0\ntotal_mapped_file 8192\n";
        assert_eq!(memory_stat(one, 1), Some(12_288));
        let two = b"anon 4096\nfile 99999\nkernel_stack 5\nfile_mapped 100\nanon_thp 0\n";
        assert_eq!(memory_stat(two, 2), Some(4_196));
        assert_eq!(single(b"77\n"), Some(77));
    }

    #[test]
    fn what_is_missing_or_too_large_is_no_number() {
        assert_eq!(cpu_stat(b"nr_periods 0\n"), None);
        assert_eq!(cpu_stat(b"usage_usec 18446744073709551615\nuser_usec 1\nsystem_usec 1\n"), None);
        assert_eq!(cpuacct_stat(b"user 12\n"), None);
        assert_eq!(memory_stat(b"anon 18446744073709551615\nfile_mapped 1\n", 2), None);
        assert_eq!(memory_stat(b"anon 1\nfile_mapped 1\n", 1), None);
        assert_eq!(single(b"max\n"), None);
        assert_eq!(single(b""), None);
    }
}
