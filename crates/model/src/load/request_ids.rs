//! IDs of a load's requests: where they stand, and what became of them by the responses. `weir-load` counts; the audit judges.

use std::sync::atomic::{AtomicU16, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::file::forms::{is_field_value, is_token};

/// The header of a request that has its ID, unless a workload says otherwise.
pub const REQUEST_ID_HEADER: &str = "x-weir-id";

/// The header with which the origin responds to a request that has an ID.
pub const RESPONSE_HEADER: &str = "x-weir-origin";

/// The header that weir's origin sends behind the messages of a stream that is asked for one.
pub const TRAILER: &str = "x-weir-trailer";

/// How a load's requests are named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestIds {
    /// The header that has the ID, in lower case. The origin is told the same.
    pub header: String,
    /// Which load it is, of those that one origin sees; not 0, which is weir's own requests. All clients of a load have the same. A
    /// search counts on from it for each of its loads.
    pub load: u16,
    /// Client and origin read one clock, so that it can be told what was first.
    pub one_clock: bool,
    /// The key with which the origin tags its responses.
    pub key: [u64; 2],
    /// The beginning of targets that the product takes off on the way to the origin; empty: none.
    pub rewritten: String,
}

/// The numbers that a search may use for its loads.
const EACH: u16 = 64;

impl RequestIds {
    /// IDs in this header, of the load with this number ([`LoadNumbers`]).
    pub fn new(header: String, load: u16, one_clock: bool) -> RequestIds {
        RequestIds { header, load, one_clock, key: [0; 2], rewritten: String::new() }
    }
}

/// Gives each load of a run a number that no other has.
#[derive(Debug)]
pub struct LoadNumbers(AtomicU16);

impl LoadNumbers {
    /// The first number is to be drawn at random: then no other run has it, probably.
    pub fn new(first: u16) -> LoadNumbers {
        LoadNumbers(AtomicU16::new(first))
    }

    /// The next one; those up to the following are a search's.
    pub fn next(&self) -> u16 {
        self.0.fetch_add(EACH, Ordering::Relaxed).max(1)
    }
}

/// Headers of requests that follow from the connection, the body or the host, in lower case.
pub const CONNECTION_HEADERS: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Other headers that clients, proxies and origins act upon, and that of the response.
const TAKEN: [&str; 5] = ["content-type", "cookie", "via", "x-forwarded-for", RESPONSE_HEADER];

/// A header's name in lower case, if request IDs may stand in that header.
///
/// # Errors
/// What was found, and what would be right.
pub fn request_id_header(name: &str) -> Result<String, (String, &'static str)> {
    let header = name.to_ascii_lowercase();
    if !is_token(&header) {
        return Err((format!("{name:?} is no header's name"), "a header's name, such as x-request-id"));
    }
    if CONNECTION_HEADERS.iter().chain(&TAKEN).any(|taken| header == *taken) {
        return Err((format!("the header {name:?} has a meaning of its own"), "another header, such as x-request-id"));
    }
    Ok(header)
}

/// The header of responses with the time, and the value for which the origin writes the time of each response.
pub const DATE: &str = "date";
/// See [`DATE`].
pub const DATE_NOW: &str = "now";

/// The most headers that an origin is told to send.
pub const MOST_ORIGIN_HEADERS: usize = 16;

/// Headers of responses that follow from the connection or the body, or are weir's own.
const OF_THE_RESPONSE: [&str; 8] = [
    "connection",
    "content-encoding",
    "content-length",
    "keep-alive",
    "trailer",
    "transfer-encoding",
    "upgrade",
    RESPONSE_HEADER,
];

/// Whether an origin may be told to send this header.
///
/// # Errors
/// What was found, and what would be right.
pub fn origin_header(name: &str, value: &str) -> Result<(), (String, &'static str)> {
    let lower = name.to_ascii_lowercase();
    if !is_token(name) {
        return Err((format!("{name:?} cannot be a header's name"), "letters, digits and !#$%&'*+-.^_`|~"));
    }
    if OF_THE_RESPONSE.contains(&lower.as_str()) {
        return Err((format!("the origin writes the header {name:?} as each response needs it"), "another header"));
    }
    if !is_field_value(value) {
        let wanted = "one line without control characters, and no blanks at its ends";
        return Err((format!("{value:?} cannot be a header's value"), wanted));
    }
    if lower == DATE && value != DATE_NOW {
        return Err((
            format!("{value:?} is not the time of each response"),
            "Date = \"now\", with which the origin writes it",
        ));
    }
    Ok(())
}

/// The responses of a load by the IDs that they had, over the client's whole life. Each response is counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestIdCounts {
    /// With the ID of their own request.
    pub own: u64,
    /// Of another request, which the origin had answered before this one was sent: they come from a cache.
    pub cached: u64,
    /// Of another request, answered while this one was under way: it was asked once for both.
    pub coalesced: u64,
    /// Of another request, where the clocks of client and origin differ, and it cannot be told which of both.
    pub of_another: u64,
    /// With an ID that no request had, that of their own request and a time before it was sent, or a tag that is not the origin's.
    pub forged: u64,
    /// Without an ID.
    pub missing: u64,
    /// Responses of another request whose ID one more response had a little before: one response
    /// went to several requests.
    pub reused: u64,
}

impl RequestIdCounts {
    /// Responses with another request's ID.
    pub fn count_of_another(&self) -> u64 {
        self.cached + self.coalesced + self.of_another
    }

    /// IDs that were not those of the response's own request, in words, each with how often it came.
    pub fn wrong(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let kinds = [
            ("cached", self.cached),
            ("coalesced", self.coalesced),
            ("cached or coalesced", self.of_another),
            ("forged", self.forged),
        ];
        kinds.into_iter().filter(|(_, n)| *n > 0)
    }

    /// Adds those of another thread or client.
    pub fn add(&mut self, other: &RequestIdCounts) {
        self.own += other.own;
        self.cached += other.cached;
        self.coalesced += other.coalesced;
        self.of_another += other.of_another;
        self.forged += other.forged;
        self.missing += other.missing;
        self.reused += other.reused;
    }
}
