//! Measures how much memory two processes and the kernel use at one moment.

use std::fs;
use std::io;
use std::time::Duration;

/// Memory at one moment, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Memory {
    /// Since the client's start, s.
    pub at_s: f64,
    /// Of client and origin: what is theirs alone, in memory.
    pub private: [u64; 2],
    /// What the kernel keeps for itself: slabs, page tables, stacks.
    pub kernel: u64,
    /// What the kernel counts as buffers of TCP.
    pub tcp: u64,
    /// TCP sockets of the whole machine that are in use.
    pub sockets: u64,
}

/// Samples two processes and the kernel.
///
/// # Errors
/// When a process is gone.
pub fn sample(at: Duration, pids: [u32; 2]) -> io::Result<Memory> {
    let rollup = |pid: u32| fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
    let rollups = [rollup(pids[0])?, rollup(pids[1])?];
    let private = |text: &str| kib(text, "Private_Clean:") + kib(text, "Private_Dirty:");
    let meminfo = fs::read_to_string("/proc/meminfo")?;
    let sockstat = fs::read_to_string("/proc/net/sockstat")?;
    Ok(Memory {
        at_s: at.as_secs_f64(),
        private: [private(&rollups[0]), private(&rollups[1])],
        kernel: ["Slab:", "PageTables:", "KernelStack:"].map(|name| kib(&meminfo, name)).iter().sum(),
        tcp: tcp(&sockstat, "mem") * rustix::param::page_size() as u64,
        sockets: tcp(&sockstat, "inuse"),
    })
}

/// A value of a `Name:   N kB` line, in bytes; 0 when there is no such line.
fn kib(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok());
    value.unwrap_or(0) * 1024
}

/// A value of the line `TCP: inuse 5 orphan 0 tw 1 alloc 7 mem 2`.
fn tcp(sockstat: &str, name: &str) -> u64 {
    let line = sockstat.lines().find(|line| line.starts_with("TCP:")).unwrap_or_default();
    let mut words = line.split(' ').skip_while(|word| *word != name);
    words.nth(1).and_then(|value| value.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_are_read() {
        assert_eq!(kib("Rss:  12 kB\nPrivate_Dirty:        4 kB\n", "Private_Dirty:"), 4_096);
        assert_eq!(kib("", "Rss:"), 0);
        let sockstat = "sockets: used 1\nTCP: inuse 5 orphan 0 tw 1 alloc 7 mem 2\nUDP: inuse 9 mem 9\n";
        assert_eq!((tcp(sockstat, "inuse"), tcp(sockstat, "mem"), tcp("", "mem")), (5, 2, 0));
    }

    #[test]
    fn this_process_has_memory() {
        let own = std::process::id();
        let found = sample(Duration::ZERO, [own, own]).unwrap();
        assert!(found.private[0] > 0 && found.kernel > 0, "{found:?}");
    }
}
