//! Products: their files, how each is configured and started, and whether it works.
//!
//! [`catalogue`] reads all products and suites. [`launch`] renders a product's configuration ([`render`]) and starts it. It returns
//! a [`running::Running`] that can be waited for, verified ([`verify`]), reloaded and ended. [`requester`] sends weir's own requests
//! from the host that they must come from, by [`http`] over the small HTTP client [`client`]. [`tls`] is the certificate of the run.
//! [`consumers`] has the keys that a gateway lets pass.
//! `weir-lab` and `weir-conformance` call this crate.
//!
//! This crate knows no product by name, does not know how a product is installed, and does not know what a trial is.

mod access_log;
pub mod catalogue;
pub mod client;
pub mod consumers;
pub mod expiry;
pub mod failure;
pub mod http;
pub mod launch;
mod monitor;
pub mod render;
pub mod requester;
pub mod running;
pub mod tls;
pub mod verify;
