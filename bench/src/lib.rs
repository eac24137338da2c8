//! What weir's client and origin cost, beside their peers and beside the floor.
//!
//! [`null`] is the floor: a client and an origin that do what the kernel needs and almost nothing else. [`peers`]
//! runs load generators and origins in turn and compares what they cost. Two programs: `null` and `peers`; and an
//! example `hot_path` for counting instructions. `README.md` beside this says how to use them.
//!
//! Nothing here is part of weir, and the floor uses nothing of weir's, so that it is no judge in its own case.

pub mod null;
pub mod peers;
