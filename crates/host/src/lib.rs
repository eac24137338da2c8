//! Processes on a host: what starts, feeds, watches and ends them.
//!
//! A product runs below a supervisor that cannot leave anything behind ([`supervisor`]). The client and the origin are
//! processes of weir's own ([`role`]), on CPUs of their own ([`placement`]) and on free ports ([`ports`]).
//! `weir-product`, `weir-install`, `weir-conformance` and `weir-lab` call this crate.
//!
//! This crate does not know products, suites or trials.

pub mod fake;
pub mod files;
mod host;
mod local;
pub mod placement;
pub mod ports;
pub mod role;
pub mod stop;
pub mod supervisor;
pub mod tail;

pub use host::{Ended, Host, Process, ProcessSpec, RoleProcess, RoleSpec, Sampler, Silence};
pub use local::LocalHost;
