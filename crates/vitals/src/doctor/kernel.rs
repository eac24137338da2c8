//! The kernel: its version, its clock, and what it lets weir use.

use super::{Check, Status};
use crate::environment::kernel_version;
use crate::sys::{sysctl, text};

pub(super) fn checks() -> Vec<Check> {
    let uname = rustix::system::uname();
    let setting = |name: &str| sysctl(name)?.parse().ok();
    let root = rustix::process::geteuid().is_root();
    vec![
        judge_version(&uname.release().to_string_lossy()),
        judge_io_uring(setting("kernel.io_uring_disabled"), root),
        judge_clock(text("/sys/devices/system/clocksource/clocksource0/current_clocksource").as_deref()),
        judge_perf(sysctl("kernel.perf_event_paranoid").and_then(|v| v.parse().ok()), root),
    ]
}

/// 6.0 has multishot receive, which weir's io_uring driver rests on; before 5.15 nothing was tried.
pub(super) fn judge_version(release: &str) -> Check {
    let name = "kernel";
    match kernel_version(release) {
        None => Check::unknown(name, release, "Not a version that weir can read."),
        Some(version) if version < (5, 15) => Check::bad(name, release, "weir needs Linux 5.15 or later."),
        Some(version) if version < (6, 0) => Check::warn(
            name,
            release,
            "Before 6.0 io_uring has no multishot receive: weir uses epoll, and its client carries less.",
        ),
        Some(_) => Check::ok(name, release, "Has everything weir uses."),
    }
}

/// Whether the setting lets this process use io_uring.
pub(super) fn io_uring_allowed() -> bool {
    let root = rustix::process::geteuid().is_root();
    let disabled = sysctl("kernel.io_uring_disabled").and_then(|mode| mode.parse().ok());
    judge_io_uring(disabled, root).status == Status::Ok
}

/// The setting exists since 6.6: 0 allows all, 1 only privileged processes, 2 nobody.
pub(super) fn judge_io_uring(disabled: Option<u64>, root: bool) -> Check {
    let name = "io-uring";
    let why = "weir uses epoll, and its client carries less.";
    let mend = "sysctl -w kernel.io_uring_disabled=0";
    match (disabled, root) {
        (None, _) => Check::ok(name, "no setting forbids it", "weir tries it when it starts."),
        (Some(0), _) => Check::ok(name, "io_uring_disabled 0", "Everybody may use it."),
        (Some(1), true) => Check::ok(name, "io_uring_disabled 1", "Root may use it."),
        (Some(mode), _) => Check::warn(name, format!("io_uring_disabled {mode}"), why).mend(mend),
    }
}

/// Reading tsc and kvm-clock takes tens of nanoseconds without a system call, any other up to microseconds with one.
pub(super) fn judge_clock(current: Option<&str>) -> Check {
    let name = "clock-source";
    match current {
        None => Check::unknown(name, "the kernel does not say", "Reading the time may be slow."),
        Some(source @ ("tsc" | "kvm-clock" | "arch_sys_counter")) => {
            Check::ok(name, source, "Reading the time takes no system call.")
        }
        Some(source) => {
            let why = "Reading the time takes a system call: products that do so for every request look slower, and so \
                       does weir.";
            Check::warn(name, source, why)
                .mend("echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource")
        }
    }
}

/// Noted only: weir measures without it; profiles need it.
pub(super) fn judge_perf(paranoid: Option<i64>, root: bool) -> Check {
    let name = "perf-events";
    let Some(level) = paranoid else {
        return Check::ok(name, "not in this kernel", "Noted: CPU profiles are not possible.");
    };
    let seen = format!("perf_event_paranoid {level}");
    if root || level <= 1 {
        return Check::ok(name, seen, "CPU profiles are possible.");
    }
    Check::ok(name, seen, "Noted: CPU profiles need root, or a level of 1 or less.")
}
