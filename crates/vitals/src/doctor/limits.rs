//! What one process may have.

use rustix::process::Resource;

use weir_model::units::human_bytes;

use super::{Check, Status};
use crate::environment::most_descriptors;
use crate::sys::limits;

pub(super) fn checks() -> Vec<Check> {
    vec![
        judge_descriptors(limits(Resource::Nofile).1.min(most_descriptors().unwrap_or(u64::MAX))),
        judge_memlock(limits(Resource::Memlock).0),
    ]
}

/// A proxy needs two descriptors a connection, and some of its own. The published suites go to 10,000 connections.
pub(super) fn judge_descriptors(hard: u64) -> Check {
    let connections = hard.saturating_sub(256) / 2;
    let seen = format!("at most {hard} a process, which allows {connections} proxied connections");
    if connections >= 10_000 {
        return Check::new("descriptors", Status::Ok, seen, "weir raises the soft limit itself.");
    }
    let why = "A proxy takes two a connection. Beyond that connections fail, and look like the product's errors.";
    Check::new("descriptors", Status::Warn, seen, why).mend("ulimit -Hn 1048576")
}

/// Noted only: since Linux 5.12 rings are charged to the memory cgroup, and only registered buffers to this limit.
pub(super) fn judge_memlock(soft: u64) -> Check {
    let (seen, why) = match soft {
        u64::MAX => ("unlimited".to_owned(), "io_uring may lock what it needs."),
        _ => (human_bytes(soft as f64), "Noted: kernels before 5.12 charge io_uring's rings to this limit."),
    };
    Check::new("locked-memory", Status::Ok, seen, why)
}
