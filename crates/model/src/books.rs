//! The origin's accounts of what reached it. The audit balances them against the client's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A snapshot of the origin's books, as `GET /_weir/books` answers it. Counters only grow while the origin
/// lives; subtract two snapshots for a window. Requests to `/_weir/…` and their connections' bytes are the
/// lab's own and are counted apart, in `own_requests`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Books {
    /// Version of this shape.
    pub schema: u32,
    /// Connections accepted.
    pub connections_accepted: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// Connections that carried at least one request that was not the lab's own.
    pub connections_used: u64,
    /// Connections the peer reset.
    pub connections_reset: u64,
    /// Requests whose head was complete, without the lab's own.
    pub requests: u64,
    /// Requests answered in full: the last byte was handed to the kernel.
    pub answered: u64,
    /// Requests for `/_weir/…`.
    pub own_requests: u64,
    /// Requests refused as malformed.
    pub malformed: u64,
    /// Bytes of request bodies received.
    pub body_bytes_in: u64,
    /// Bytes of answer bodies handed to the kernel.
    pub body_bytes_out: u64,
    /// All bytes received and sent, heads included.
    pub bytes_in: u64,
    /// All bytes handed to the kernel.
    pub bytes_out: u64,
    /// Requests by HTTP version, such as `HTTP/1.1`.
    pub versions: BTreeMap<String, u64>,
    /// Requests by value of their `Connection` header: `(none)`, `close`, `keep-alive`, `other`.
    pub connection_headers: BTreeMap<String, u64>,
    /// Most requests in flight on one connection at once, over the origin's life.
    pub max_in_flight_per_connection: u64,
    /// Most connections open at once, over the origin's life.
    pub max_connections_open: u64,
    /// Answers spoiled on purpose, by kind of fault: `reset`, `close`, `stall`, `length`, `status`, `drip`. Of these
    /// `length`, `status` and `drip` are also in `answered` once they are sent.
    #[serde(default)]
    pub faults: BTreeMap<String, u64>,
}

/// Version of [`Books`].
pub const BOOKS_SCHEMA: u32 = 1;

impl Books {
    /// What happened since an earlier snapshot of the same origin. Counters are subtracted; `connections_open` and
    /// the two maxima, which are no counters, stay as they are now.
    pub fn since(&self, earlier: &Books) -> Books {
        let counts = |now: &BTreeMap<String, u64>, then: &BTreeMap<String, u64>| {
            now.iter()
                .map(|(key, n)| (key.clone(), n.saturating_sub(then.get(key).copied().unwrap_or(0))))
                .filter(|(_, n)| *n > 0)
                .collect()
        };
        Books {
            schema: self.schema,
            connections_accepted: self.connections_accepted.saturating_sub(earlier.connections_accepted),
            connections_open: self.connections_open,
            connections_used: self.connections_used.saturating_sub(earlier.connections_used),
            connections_reset: self.connections_reset.saturating_sub(earlier.connections_reset),
            requests: self.requests.saturating_sub(earlier.requests),
            answered: self.answered.saturating_sub(earlier.answered),
            own_requests: self.own_requests.saturating_sub(earlier.own_requests),
            malformed: self.malformed.saturating_sub(earlier.malformed),
            body_bytes_in: self.body_bytes_in.saturating_sub(earlier.body_bytes_in),
            body_bytes_out: self.body_bytes_out.saturating_sub(earlier.body_bytes_out),
            bytes_in: self.bytes_in.saturating_sub(earlier.bytes_in),
            bytes_out: self.bytes_out.saturating_sub(earlier.bytes_out),
            versions: counts(&self.versions, &earlier.versions),
            connection_headers: counts(&self.connection_headers, &earlier.connection_headers),
            max_in_flight_per_connection: self.max_in_flight_per_connection,
            max_connections_open: self.max_connections_open,
            faults: counts(&self.faults, &earlier.faults),
        }
    }
}
