//! The load generator.
//!
//! [`run`] takes a [`LoadSpec`](weir_model::load::LoadSpec) and returns a [`LoadResult`](weir_model::load::LoadResult). Worker
//! threads make the load, each with its own connections and I/O driver; on the path of a request nothing is shared, locked or
//! allocated. `docs/engine.md` names the pieces of a worker.
//!
//! # Connections and streams
//!
//! A stream carries one request at a time. An HTTP/1.1 connection has one stream, or as many as it pipelines; an HTTP/2 connection
//! has as many as the load asks for and the peer allows. TLS may lie under either. A connection is *up* when TLS is negotiated
//! and, with HTTP/2, the peer's SETTINGS have come. Connection k goes to target k modulo their number and sends that target's
//! requests, chosen by weight.
//!
//! # When requests are due
//!
//! In *closed* and *counted* loads a stream's first request is due at the start, the next when the response has come and the
//! think time is over. If the connection failed, it is due when the connection may be made again. In *open* loads
//! requests are due at times fixed beforehand (constant, Poisson, ramp, steps, replay). A due request goes to the connection that
//! has been free longest, or waits in order. A load may allow more connections than it begins with; one is made for each
//! connection's worth of waiting requests.
//!
//! A connection that has carried a request and ended, whoever ended it, is made again when a request is due for it. The request is due
//! first, then connecting begins, and it is sent when the connection is up.
//!
//! Three kinds of connections are made ahead of their requests. The first ones are made before the load begins, unless each connection
//! carries one request. Recycled ones are replaced at once. One whose last attempt brought no response is tried again by itself:
//! requests do not wait for it, because the target may take fewer connections.
//!
//! Every request has four times: due, sent, first byte, answered. Latency is due to answered, service time sent to answered, lag
//! due to sent. *Sent* is when the worker hands the request to its driver, which passes it to the kernel in the same turn (of a
//! body larger than the peer's window: its beginning). *Answered* is when the worker sees the response's last byte. Times are
//! read from `CLOCK_MONOTONIC`, once an event.
//!
//! # What counts where
//!
//! The load starts when all connections are up (where each carries one request: one, which is closed again), or none has come up for a
//! timeout. Then come the warm-up, the window `[start, start + duration)`, and a drain of at most the timeout, in which nothing new
//! becomes due. A load of a fixed number of requests (counted, replay) ends with its last response; for that a replay's window may
//! last a timeout longer. With `leave_queue`, requests that wait for a connection at the end of the warm-up or window stay unsent.
//!
//! - *By due time*: a request belongs to the window in which it was due, whenever it ends. So go `due`, `sent`, `unsent`,
//!   `successful`, `errors`, `statuses` and `body_bytes` of the window's counts, the counts by request, and the histograms.
//! - *By moment*: `successful_in_window` and with it `rate`, `successful_body_bytes_in_window`, `bytes_in`, `bytes_out`, `connections`,
//!   `closed_by_peer`, `connect_failures` and all counts of the series. A successful response to a request of the warm-up counts for
//!   the rate and leaves no sample.
//! - *Of the whole life*: `connect`, `handshake`, `tls`, `most_open`, `connections_used`, and `streams`, the fewest that a peer
//!   allowed.
//! - Every due request ends as exactly one of: a successful response, an error, or unsent. `due = successful + errors + unsent`, for the
//!   window and for the total.
//! - A request that is never answered is an error (`timeout`, or how its connection ended); its latency is the time until it was
//!   given up. One that is never sent is `unsent` with that time as latency and lag, except that it is an error of kind
//!   `connect_...` or `tls` if its connection could not be made.
//! - What ends a connection ends all that is in flight on it, by the same kind; but a response of HTTP that has begun is `truncated`. With
//!   pipelining so does a timeout; HTTP/2 gives up the stream and keeps the connection. A stream that the peer resets is
//!   `stream_reset`, or `truncated`. One that its GOAWAY turns away counts
//!   as not sent and is sent elsewhere, unless the connection brought no response at all, when it is `closed_early`.
//! - `connections` counts those made, before TLS and HTTP/2; one on which these fail is also among `connect_failures`.
//!   `closed_by_peer` counts connections lost while no request was in flight, and those that the peer ended in its response or by
//!   GOAWAY. Nothing is sent twice: a request sent into a connection that the peer was closing is an error.
//! - `bytes_in` and `bytes_out` are those of the connection: under TLS, records and handshakes. `plaintext_in` is what
//!   was in them.
//!
//! Timeouts run from the moment of sending, those of connections from the attempt until they are up. They may be late by 10 ms.
//!
//! This crate does not know products, suites, cases or trials.

mod aggregate;
mod backlog;
mod capacity;
mod changes;
mod clock;
mod codings;
mod controller;
mod counts;
mod detail;
mod error;
mod gate;
mod generator;
mod headers;
mod interval;
mod keyvalue;
mod merge;
mod messages;
mod output;
mod plan;
mod preload;
mod progress;
mod protocol;
mod quic;
mod reasons;
mod request_ids;
mod response_check;
mod result;
mod run;
mod schedule;
mod shared;
mod slow_clients;
mod spec_check;
mod stop;
#[cfg(test)]
mod tests;
mod threads;
mod tls;
mod worker;

pub use capacity::{probe, threads_of_clients};
pub use controller::{Controller, LoadTasks};
pub use detail::{BUCKETS_S, Buckets, Detail, Distributions, buckets};
pub use error::{LoadError, SpecError};
pub use gate::Gate;
pub use merge::{ClientOutput, merge};
pub use output::Outputs;
pub use preload::{add_preload, check_preload, preload_spec};
pub use progress::Progress;
pub use run::{load_tasks, run, run_gated};
pub use stop::StopFlag;
