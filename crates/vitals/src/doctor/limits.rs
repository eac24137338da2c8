//! Memory: whether there is enough, and whether it stays resident; and the limits of one process.

use rustix::process::Resource;

use weir_model::text::human_bytes;

use super::{Check, bytes, judge, judge_word};
use crate::environment::{meminfo, most_descriptors};
use crate::sys::{limits, text};

pub(super) fn checks() -> Vec<Check> {
    let swap = meminfo("SwapTotal").zip(meminfo("SwapFree")).map(|(total, free)| total.saturating_sub(free));
    vec![
        judge_available(meminfo("MemAvailable")),
        judge_swap(swap),
        judge_hugepages(text("/sys/kernel/mm/transparent_hugepage/enabled").as_deref()),
        judge_descriptors(limits(Resource::Nofile).0, most_a_process(), may_raise()),
        judge_memlock(limits(Resource::Memlock).0),
    ]
}

pub(super) fn judge_available(available: Option<u64>) -> Check {
    judge("memory", bytes(available, " available"))
}

pub(super) fn judge_swap(used: Option<u64>) -> Check {
    let none = (used == Some(0)).then(|| (0.0, "none in use".to_owned()));
    judge("swap", none.or(bytes(used, " in use")))
}

pub(super) fn judge_hugepages(enabled: Option<&str>) -> Check {
    judge_word("transparent-hugepages", enabled.and_then(|text| text.split(['[', ']']).nth(1)))
}

/// Descriptors that one process may have: the hard limit, and the kernel's maximum.
pub(super) fn most_a_process() -> u64 {
    limits(Resource::Nofile).1.min(most_descriptors().unwrap_or(u64::MAX))
}

/// Whether this process may raise its hard limit: it has `CAP_SYS_RESOURCE`, which root lacks in many containers.
fn may_raise() -> bool {
    const CAP_SYS_RESOURCE: u64 = 24;
    let effective = text("/proc/self/status").and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:").map(str::trim).map(str::to_owned))?;
        u64::from_str_radix(&line, 16).ok()
    });
    effective.is_some_and(|set| set >> CAP_SYS_RESOURCE & 1 == 1)
}

/// A proxy needs two descriptors a connection, and some of its own. The published suites go to 10,000 connections.
pub(super) fn judge_descriptors(now: u64, hard: u64, may_raise: bool) -> Check {
    let connections = hard.saturating_sub(256) / 2;
    let seen = format!("{now} a process, at most {hard}, which allows {connections} proxied connections");
    if connections >= 10_000 {
        return Check::ok("descriptors", seen, "weir raises the soft limit itself.");
    }
    if may_raise {
        let why = "A proxy takes two a connection. Beyond that connections fail, and look like the product's errors.";
        return Check::warn("descriptors", seen, why).mend("ulimit -Hn 1048576");
    }
    let why = "A proxy takes two a connection. Beyond that connections fail, and look like the product's errors. It \
               cannot be raised from here: whoever starts this shell, service or container sets it (nofile).";
    Check::warn("descriptors", seen, why)
}

/// Noted only: since Linux 5.12 rings are charged to the memory cgroup, and only registered buffers to this limit.
pub(super) fn judge_memlock(soft: u64) -> Check {
    let (seen, why) = match soft {
        u64::MAX => ("unlimited".to_owned(), "io_uring may lock what it needs."),
        _ => (human_bytes(soft as f64), "Noted: kernels before 5.12 charge io_uring's rings to this limit."),
    };
    Check::ok("locked-memory", seen, why)
}
