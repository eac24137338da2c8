//! Plans, trials, blocks and the journal: everything between a parsed suite and the files of a finished run.
//!
//! [`run::Run`] runs a suite: it plans the trials ([`plan`]), runs each ([`trial`]), audits its measurement (`weir-audit`) and
//! records it ([`journal`]). [`duet::Duet`] measures two products in turn. `weir-host` and `weir-product` start the processes of client, origin and product. `weir run` calls
//! this crate.
//!
//! This crate does not know how a product is installed, how a process is supervised, or how a table looks.

pub mod duet;
#[cfg(test)]
mod fixture;
pub mod hosts;
pub mod journal;
mod kept;
pub mod network;
pub mod plan;
pub mod preflight;
pub mod progress;
pub mod rates;
pub mod run;
pub mod skipped;
pub mod trial;
