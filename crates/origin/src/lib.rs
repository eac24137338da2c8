//! The origin: the server behind the proxy, and its own counters of what reached it.
//!
//! The CLI and the lab start one ([`Origin::start`]). It responds from memory, exactly and quickly, so that what is
//! measured is the proxy: bodies of any size, delays, echoes, statuses, or keys and values. What it serves of HTTP is
//! listed at its `/` ([`INDEX_PAGE`]); what it counts is in [`weir_model::counters::OriginCounters`], and the module
//! `counters` says when.
//!
//! One thread owns its connections outright. Bytes pass `worker` (the driver), `tls_layer` where there is TLS, and
//! the `session` of a protocol. Of HTTP that is `http1` or `http2`; then come `resolve` (a target, prepared, with `head`),
//! `pipeline` (HTTP/1: order, delays, ends), `response` (bytes to the driver) and `in_flight` (what the kernel has
//! taken of them). The messages of a response that is a stream are written by `stream`.
//!
//! Of the key-value protocols, `keyvalue` is the session and the store, and each protocol is a `Dialect` of it.
//!
//! # HTTP
//! HTTP/1.1 and HTTP/1.0 with keep-alive, pipelining, HEAD, `100-continue`, bodies with `Content-Length` or chunked;
//! HTTP/2 with prior knowledge or by ALPN. Any method may be used on any path; only HEAD differs. The response to a
//! request comes when the request is complete, body included; a delay counts from there.
//!
//! This crate does not know the client, or what is between it and the origin.

mod counters;
mod driver;
mod fault;
mod head;
mod held;
mod http;
mod http1;
mod http2;
mod http3;
mod idle;
mod in_flight;
mod keyvalue;
mod member_faults;
mod options;
mod origin;
mod paced;
mod page;
mod pause;
mod payload;
mod pipeline;
mod random;
mod request_check;
mod request_ids;
mod resolve;
mod response;
mod response_faults;
mod route;
mod sends;
mod session;
mod spec;
mod stall_watch;
mod state;
mod stream;
mod tasks;
mod tls_layer;
mod transport;
mod value;
mod websocket;
mod worker;

pub use fault::{Fault, Faults};
pub use held::MAX_HELD;
pub use options::{Options, OriginError, ResponseOptions};
pub use origin::Origin;
pub use page::INDEX_PAGE;
pub use tasks::{OriginHandle, OriginTasks};
/// TLS, for [`Options::tls`].
pub use weir_wire::tls;

pub use payload::{MAX_PAYLOAD, payload, payload_hash};
