//! Plans, trials, blocks and the journal: everything between a parsed suite and the files of a finished run.
//!
//! [`run::Run`] carries a suite out: it plans the trials ([`plan`]), runs each ([`trial`]), has its measurement audited
//! (`weir-audit`) and writes it down for good ([`journal`]). Client, origin and product are processes that `weir-host` and
//! `weir-product` start. `weir run` calls this crate.
//!
//! This crate does not know how a product is installed, how a process is kept, or how a table looks.

#[cfg(test)]
mod fixture;
pub mod journal;
pub mod plan;
pub mod preflight;
pub mod rates;
pub mod run;
pub mod skipped;
pub mod trial;
