//! The kernel: its version, its clock, and what it lets weir use.

use super::{Check, Status, judge, judge_word};
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

pub(super) fn judge_version(release: &str) -> Check {
    match kernel_version(release) {
        Some((major, minor)) => judge("kernel", Some((f64::from(major * 1000 + minor), release.to_owned()))),
        None => Check { seen: release.to_owned(), ..judge("kernel", None) },
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

pub(super) fn judge_clock(current: Option<&str>) -> Check {
    judge_word("clock-source", current)
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
