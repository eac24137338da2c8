//! Slow clients during a load: the order for them, and their account. They are none of the load's connections, and their requests none of its
//! own.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Slow clients of one kind, which are there for a while. They come within a second, evenly, and go within one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SlowClientsSpec {
    /// They send a body slowly; else they receive one slowly.
    pub writers: bool,
    /// How many.
    pub clients: u32,
    /// Bytes that each receives or sends in a second.
    pub bytes_per_second: u64,
    /// When the first comes, seconds from the window's start.
    pub at_s: f64,
    /// When the last is gone, seconds after that.
    pub for_s: f64,
}

/// The account of slow clients. One whose response has come, or whose connection has ended, comes again a second later at most.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlowClients {
    /// Connections that were made.
    pub opened: u64,
    /// Most of them that were open at a time, as the client sees it: one that waits to be accepted is open.
    pub held: u32,
    /// Attempts to connect that failed.
    pub refused: u64,
    /// Requests that were sent whole and had a whole response with a status of 2xx.
    pub completed: u64,
    /// Responses with another status, or before the request was sent, by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Connections that ended before the response was whole, other than by the client.
    pub cut: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes given to the kernel to be sent.
    pub bytes_out: u64,
}
