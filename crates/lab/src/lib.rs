//! Products, profiles, hosts, trials, blocks, the journal and the audit: everything between a parsed suite and
//! the files of a finished run.
//!
//! [`run::Run`] carries a suite out: it plans the trials ([`plan`]), runs each ([`trial`]) with its roles placed on
//! CPUs ([`placement`]) and its product under a supervisor that cannot outlive weir ([`supervisor`]), audits what came out
//! ([`audit`]) and writes it down for good ([`journal`]).
//!
//! [`conformance`] asks products what they do with what HTTP asks of a proxy, with the pieces of a trial and a client of its own.
//!
//! This crate does not know how a table looks, and it knows no product by name: those are data ([`catalogue`]).

pub mod audit;
pub mod catalogue;
pub mod conformance;
#[cfg(test)]
mod fixture;
pub mod home;
pub mod http;
pub mod install;
pub mod journal;
pub mod placement;
pub mod plan;
pub mod ports;
pub mod preflight;
pub mod rates;
pub mod render;
pub mod role;
pub mod run;
pub mod skipped;
pub mod stop;
pub mod supervisor;
pub mod tail;
pub mod tls;
pub mod trial;
pub mod verify;
