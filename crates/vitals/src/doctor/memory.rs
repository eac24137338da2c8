//! Memory: whether there is enough, and whether it stays resident.

use weir_model::text::human_bytes;

use super::Check;
use crate::environment::meminfo;
use crate::sys::text;

pub(super) fn checks() -> Vec<Check> {
    let swap = meminfo("SwapTotal").zip(meminfo("SwapFree")).map(|(total, free)| total.saturating_sub(free));
    vec![
        judge_available(meminfo("MemAvailable")),
        judge_swap(swap),
        judge_hugepages(text("/sys/kernel/mm/transparent_hugepage/enabled").as_deref()),
    ]
}

/// A JVM product alone takes half a GiB; below a quarter nothing but the smallest products fits beside the client.
pub(super) fn judge_available(bytes: Option<u64>) -> Check {
    let name = "memory";
    match bytes {
        None => Check::unknown(name, "the kernel does not say", "Memory may run out in the middle of a trial."),
        Some(bytes) if bytes < 256 << 20 => Check::bad(
            name,
            format!("{} available", human_bytes(bytes as f64)),
            "Too little for a product, a client and an origin: one of them will be killed.",
        ),
        Some(bytes) if bytes < 1 << 30 => Check::warn(
            name,
            format!("{} available", human_bytes(bytes as f64)),
            "Large products or many connections may not fit.",
        ),
        Some(bytes) => Check::ok(name, format!("{} available", human_bytes(bytes as f64)), "Enough."),
    }
}

pub(super) fn judge_swap(used: Option<u64>) -> Check {
    let name = "swap";
    match used {
        None => Check::unknown(name, "the kernel does not say", "Memory may be on disk."),
        Some(0) => Check::ok(name, "none in use", "No role waits for memory to come back from disk."),
        Some(bytes) => {
            let why = "A role whose memory was swapped out stalls until it is back, and its resident set looks small.";
            Check::warn(name, format!("{} in use", human_bytes(bytes as f64)), why).mend("swapoff -a")
        }
    }
}

/// Noted only: which setting is right depends on the product.
pub(super) fn judge_hugepages(enabled: Option<&str>) -> Check {
    let name = "transparent-hugepages";
    let chosen = enabled.and_then(|text| text.split(['[', ']']).nth(1));
    match chosen {
        None => Check::unknown(name, "the kernel does not say", "Memory use may come in steps of 2 MiB."),
        Some("always") => Check::ok(
            name,
            "always",
            "Noted: memory use comes in steps of 2 MiB, and looks larger than with `madvise`.",
        ),
        Some("never") => Check::ok(name, "never", "Nobody gets large pages."),
        Some(other) => Check::ok(name, other, "Only who asks for large pages gets them."),
    }
}
