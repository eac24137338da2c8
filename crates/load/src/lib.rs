//! The load generator: schedules, connections, recorder.
//!
//! [`run`] takes an order ([`weir_model::load::LoadSpec`]) and returns what happened
//! ([`weir_model::load::LoadResult`]). Worker threads do the load, each with its own connections and its own driver;
//! on the path of a request nothing is shared, locked or allocated.
//!
//! # Connections and streams
//!
//! A connection carries requests on *streams*, one at a time on each: HTTP/1.1 has one stream, or as many as requests are
//! pipelined (their answers come in order); HTTP/2 has one for each stream that the order requests for and the peer allows. Under
//! either there may be TLS. A connection is *up* when TLS is agreed and, with HTTP/2, the peer's SETTINGS have come.
//! Connection k goes to target k modulo their number, and sends what is ordered for that target, by weight.
//!
//! # What is due, and when
//!
//! *Closed* and *counted* loads: a stream's next request is due at the moment its last answer came, or when it has finished
//! thinking about it, and the first at the start. A stream that lost its connection, or used it up, has its next request due
//! when the connection may be made again. *Open* loads: requests are due at times fixed beforehand (constant, Poisson, ramp,
//! steps, replay), whatever the answers do. A due request goes to the connection that has been free longest; when none is
//! free it waits, in order, and is sent as soon as one is. Where the order allows more connections than it begins with, one
//! more is made for each stream's worth of requests that wait and are not waited for by a connection being made.
//!
//! Every request has four times: due, sent, first byte, answered. Latency is due to answered, service time sent to answered,
//! lag due to sent, first byte sent to the first byte of the answer (or of an informational one). "Sent" is when the worker
//! hands the request to its driver, which passes it to the kernel at the end of the same turn - of a body larger than the
//! peer's window, when its beginning is; "answered" is when the worker sees the answer's last byte. Times are read from
//! `CLOCK_MONOTONIC`, one reading an event.
//!
//! # What counts where
//!
//! The load starts when all connections are up, or none has come up for a timeout: warm-up, then the window
//! `[start, start + duration)`, then a drain of at most the timeout, in which nothing new becomes due and what is due is still
//! sent and waited for. An order may say that what has no connection when the warm-up ends, or the window, stays unsent
//! (`leave_queue`); then only what was sent is waited for.
//!
//! - *By due time*: a request belongs to the window in which it was due, whenever it ends. So go
//!   `due`, `sent`, `unsent`, `right`, `errors`, `statuses` and `body_bytes` of the window's counts, the counts by request, and
//!   the histograms.
//! - *By moment*: `right_in_window` and with it `rate`, `right_body_bytes_in_window`, `bytes_in`, `bytes_out`,
//!   `connections`, `closed_by_peer`, `connect_failures` and all counts of the series count what happened inside the window,
//!   whenever the request was due. A right answer to a request of the warm-up counts for the rate and leaves no sample
//!   in the histograms; neither do such requests appear in the percentiles of the series.
//! - *Of the whole life*: `connect`, `handshake`, `tls`, `most_open`, `connections_used`, and `streams`, the fewest that a peer
//!   allowed.
//! - Every due request ends as exactly one of: a right answer, an error, or unsent.
//!   `due = right + errors + unsent`, for the window and for the total.
//! - A request never answered is an error (`timeout`, or how its connection ended) with the time it had waited when it
//!   was given up as its latency and its service time. One never sent is `unsent` with that time as latency
//!   and lag; so is one whose connection could not be made, except that it is an error of the kind `connect_…` or `tls`.
//!   Nothing due is ever an absence.
//! - What ends a connection ends all that is in flight on it, by the same kind; with pipelining so does a timeout, since
//!   nothing behind it can be answered either. HTTP/2 gives up the stream and keeps the connection. A stream that the peer
//!   resets is `stream_reset`. One that its GOAWAY turns away was certainly not looked at: it counts as not sent and is
//!   made elsewhere, unless the connection was of no use at all, when it is `closed_early`.
//! - `connections` counts those made, before TLS and HTTP/2; one on which these two fail is also among `connect_failures`.
//!   `closed_by_peer` counts connections lost while no request was in flight, and those that the peer ended by saying so
//!   in its answer or by GOAWAY. Nothing is sent twice: a request sent into a connection that the peer was just closing
//!   is an error.
//! - `bytes_in` and `bytes_out` are those of the connection: under TLS, records and handshakes.
//!
//! Timeouts run from the moment of sending, those of connections from the attempt until they are up; they are looked for every
//! 10 ms and may be late by that.
//!
//! This crate does not know products, suites, or what a case or a trial is.

mod aggregate;
mod backlog;
mod capacity;
mod check;
mod clock;
mod counts;
mod cpu;
mod detail;
mod drivers;
mod error;
mod generator;
mod output;
mod plan;
mod protocol;
mod recorder;
pub mod replay;
mod result;
mod run;
mod schedule;
mod search;
mod shared;
mod stop;
pub mod template;
#[cfg(test)]
mod tests;
mod tls;
mod validate;
mod worker;

pub use detail::{Detail, Distributions};
pub use error::LoadError;
pub use output::Outputs;
pub use run::{Progress, run};
pub use search::{SearchProgress, find_max, find_max_to};
pub use stop::StopFlag;
