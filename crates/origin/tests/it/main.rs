//! The origin in a simulated world, as a whole: what it answers, byte for byte, when, and what it counts. `real` has what only a kernel
//! shows.

#[path = "../common/mod.rs"]
mod common;
mod contents;
mod ends;
mod faults;
mod h2;
mod hostile;
mod http2;
mod juno;
mod memcached;
mod order;
mod pages;
mod real;
mod records;
mod redis;
mod sim;
mod tls;
