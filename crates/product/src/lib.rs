//! Products: their files, how each is configured and started, and whether it works.
//!
//! [`catalogue`] reads all products and suites. [`launch`] renders a product's configuration ([`render`]) and starts it. It returns
//! a [`running::Running`] that can be waited for, verified ([`verify`]), reloaded and ended. [`http`] sends weir's own requests
//! over the small HTTP client [`client`], and [`tls`] is the certificate of the run. `weir-lab` and `weir-conformance` call this
//! crate.
//!
//! This crate knows no product by name, does not know how a product is installed, and does not know what a trial is.

pub mod catalogue;
pub mod client;
pub mod failure;
pub mod http;
pub mod launch;
pub mod render;
pub mod running;
pub mod tls;
pub mod verify;
