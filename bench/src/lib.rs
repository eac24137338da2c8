//! What weir's client and origin cost, beside their peers and beside the floor.
//!
//! [`null`] is the floor: a client and an origin that do what the kernel needs and almost nothing else. [`peers`]
//! runs load generators and origins in turn and compares what they cost. Two programs: `null` and `peers`; and an
//! example `hot_path` for counting instructions. `README.md` beside this says how to use them.
//!
//! No crate depends on this one. It starts weir's programs like those of others, and uses weir's crates for what surrounds a
//! measurement: supervisor, CPU accounting, statistics. The floor uses nothing of weir's.

pub mod null;
pub mod peers;

/// Raises the limit of open descriptors as far as the kernel lets it; children inherit it.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
