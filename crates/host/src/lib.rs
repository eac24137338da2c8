//! Processes on a host: starting, feeding, watching and ending them.
//!
//! A product runs below a supervisor that leaves no process behind ([`supervisor`]). The client and the origin are weir's own
//! processes ([`role`]). [`placement`] keeps each on its CPUs, [`ports`] finds free ports, and [`netns`] makes a network of
//! namespaces on this machine, and [`kubernetes`] makes pods.
//! `weir-product`, `weir-install`, `weir-conformance` and `weir-lab` call this crate.
//!
//! This crate does not know products, suites or trials.

pub mod agent;
mod clock;
pub mod files;
mod host;
pub mod kubernetes;
mod local;
mod lock;
pub mod netns;
pub mod placement;
pub mod ports;
pub mod role;
pub mod stop;
mod storage;
pub mod supervisor;
pub mod tail;
pub mod threads;
pub mod transport;
pub mod umask;

pub use clock::{Clock, SystemClock};
pub use host::{
    Confined, Disk, Disturbance, Ended, Host, HostError, HostFacts, Process, ProgramSpec, ReceiveError, RoleProcess,
    RoleSpec, Sampler,
};
pub use local::{LocalHost, Offer};
pub use storage::{LocalStorage, Storage};
