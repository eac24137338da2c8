//! The simulated world of weir's tests: client, product, origin and lab in one thread, on virtual time ([`weir_net::sim`]).
//!
//! [`product`] is the product, which is honest or misbehaves as [`misbehaviour`] says; [`relay`] is one for streams. This crate does not know real sockets, clocks or processes.

pub mod engine;
pub mod faults;
pub mod host;
pub mod misbehaviour;
pub mod product;
pub mod quantiles;
pub mod relay;
pub mod scenario;
pub mod seeds;
