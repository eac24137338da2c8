//! Products: their files, how each is configured and started, and whether it works.
//!
//! [`catalogue`] reads the products and suites there are. [`launch`] renders a product's configuration ([`render`]), starts it,
//! and gives back a [`running::Running`] that can be waited for, verified ([`verify`]), reloaded and ended. [`http`] is the small
//! client for that, [`tls`] the certificate that all of it shares. `weir-lab` and `weir-conformance` call this crate.
//!
//! This crate knows no product by name, does not know how a product is installed, and does not know what a trial is.

pub mod catalogue;
pub mod failure;
pub mod http;
pub mod launch;
pub mod render;
pub mod running;
pub mod tls;
pub mod verify;
