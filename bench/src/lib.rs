//! Measures the cost of weir's client and origin compared with their peers and with the floor.
//!
//! [`null`] is the floor: a client and an origin that do what the kernel needs and almost nothing else. [`peers`] runs
//! load generators and origins in turn and compares their cost. The example `hot_path` is for counting instructions.
//! `README.md` beside this explains how to use them.
//!
//! No crate depends on this one. It starts weir's programs like any others, and uses weir's crates only around a
//! measurement: supervisor, CPU accounting, statistics. The floor uses none of weir's code.

pub mod null;
pub mod peers;

/// Raises the limit of open descriptors as far as the kernel lets it; children inherit it.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
