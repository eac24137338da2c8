//! The origin: the server behind the proxy, and its own accounts of what reached it.
//!
//! It answers from memory, exactly and quickly, so that what is measured is the proxy: bodies of any size, delays,
//! echoes, statuses. What it serves is listed at its `/` ([`INDEX`]); what it counts is in
//! [`weir_model::counters::OriginCounters`], and the module `counters` says when.
//!
//! One thread owns its connections outright. A request passes `worker` (driver and parser), `flow` (order, delays,
//! ends), `resolve` (what a target means, prepared), `answer` (bytes to the driver) and `handed` (what the kernel
//! has taken of them).
//!
//! # HTTP
//! HTTP/1.1 and HTTP/1.0 with keep-alive, pipelining, HEAD, `100-continue`, bodies with `Content-Length` or
//! chunked. Any method may be used on any path; only HEAD differs. The answer to a request comes when the
//! request is complete, body included; a delay counts from there.
//!
//! This crate does not know the client, nor what stands between.

mod answer;
mod chance;
mod choose;
mod counters;
mod desk;
mod fault;
mod flow;
mod handed;
mod line;
mod one;
mod options;
mod origin;
mod page;
mod payload;
mod resolve;
mod route;
mod secure;
mod spoil;
mod talk;
mod timers;
mod two;
mod value;
mod wheel;
mod worker;

pub use fault::{Fault, Faults};
pub use options::{Manner, Options, OriginError};
pub use origin::Origin;
pub use page::INDEX;
/// TLS, as [`Options::tls`] orders it.
pub use weir_wire::tls;

pub use payload::{MAX_PAYLOAD, payload, payload_hash};
