//! weir in a simulated world: exact numbers, on virtual time.

mod faults;
mod omission;
mod seeds;
mod waits;
