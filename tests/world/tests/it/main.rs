//! weir in a simulated world: exact numbers, on virtual time.

mod faults;
mod omission;
mod preload;
mod seeds;
mod waits;
