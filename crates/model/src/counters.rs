//! The counters of the origin, as `/_weir/counters` returns them. `weir-origin` fills them, and the lab records them
//! for each trial. `weir-audit` compares them with what the client counted.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::load::{Stalls, StreamEnd};

/// A snapshot of the origin's counters, as `GET /_weir/counters` answers it. Counters only grow while the origin
/// lives; subtract two snapshots for a window. (`keys` and `connections_open` are the present state.) Requests to `/_weir/…` and their connections' bytes are the
/// lab's own and are counted apart, in `own_requests`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginCounters {
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
    /// Requests for `/_weir/…`; of key-value protocols, those about no key.
    pub own_requests: u64,
    /// Of key-value protocols: requests by operation, as the protocol calls it, with those about no key (`ping`).
    pub operations: BTreeMap<String, u64>,
    /// Reads that found a value.
    pub hits: u64,
    /// Reads that found none.
    pub misses: u64,
    /// Keys stored now.
    pub keys: u64,
    /// What the requests were named.
    pub request_ids: RequestIdCounters,
    /// How requests with an ID differ from what the client sent.
    pub contents: ContentCounters,
    /// What reached each of several addresses; empty where the origin listens on one.
    pub addresses: Vec<AddressCounters>,
    /// Requests refused as malformed.
    pub malformed: u64,
    /// Bytes of request bodies received.
    pub body_bytes_in: u64,
    /// Bytes of response bodies handed to the kernel.
    pub body_bytes_out: u64,
    /// All bytes received and sent, heads included.
    pub bytes_in: u64,
    /// All bytes handed to the kernel.
    pub bytes_out: u64,
    /// Requests by HTTP version: `HTTP/1.0`, `HTTP/1.1`, `HTTP/2`.
    pub versions: BTreeMap<String, u64>,
    /// Requests by value of their `Connection` header: `(none)`, `close`, `keep-alive`, `other`.
    pub connection_headers: BTreeMap<String, u64>,
    /// Most requests in flight on one connection at once (HTTP/2: streams), over the origin's life.
    pub max_in_flight_per_connection: u64,
    /// Most connections open at once, over the origin's life.
    pub max_connections_open: u64,
    /// Responses spoiled on purpose, by kind of fault: `reset`, `close`, `stall`, `length`, `status`, `drip`, `busy`, `lose`, `stale`. Of these
    /// all but the first three are also in `answered` once they are sent.
    pub faults: BTreeMap<String, u64>,
    /// Connections by the protocol of the first request counted in `connections_used`: `http/1.1` (with 1.0), `h2`.
    pub connections_by_protocol: BTreeMap<String, u64>,
    /// How requests are spread over connections: for each power of two, the connections that have carried at least so many
    /// requests. Those of 1 are `connections_used`; powers that no connection has reached are left out.
    pub connections_reaching: BTreeMap<u64, u64>,
    /// Most requests that one connection has carried, over the origin's life.
    pub max_requests_per_connection: u64,
    /// What was agreed with those that spoke TLS.
    pub tls: TlsCounters,
    /// Headers of the PROXY protocol, where connections have to begin with one.
    pub proxy_protocol: ProxyCounters,
    /// How long the origin's process stood still. `longest_us` is over its life.
    pub stalls: Stalls,
    /// Close frames of WebSocket that came, by their code (`none`: without one).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub close_codes: BTreeMap<String, u64>,
    /// Streams whose peer ended them before their last message, in the order in which that was seen; up to 65,536.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_early: Vec<StreamEnd>,
}

/// What reached one of several addresses of an origin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressCounters {
    /// The address and its port.
    pub address: String,
    /// As in [`OriginCounters`].
    pub connections_accepted: u64,
    /// As in [`OriginCounters`].
    pub connections_used: u64,
    /// As in [`OriginCounters`].
    pub requests: u64,
    /// As in [`OriginCounters`].
    pub answered: u64,
}

/// The names that requests had. Those of several origins are not compared with each other: a name that came once to each of two is
/// counted as two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestIdCounters {
    /// Requests with an ID.
    pub identified: u64,
    /// Different IDs among them.
    pub distinct: u64,
    /// IDs that came more than once.
    pub repeated: u64,
    /// Requests whose header has no ID.
    pub malformed: u64,
    /// Requests with an ID for which there was no more memory: it was not compared with the others.
    pub unremembered: u64,
}

impl RequestIdCounters {
    /// Requests with an ID that another had before.
    pub fn again(&self) -> u64 {
        self.identified.saturating_sub(self.distinct + self.unremembered)
    }
}

/// Requests with an ID that differ from what the client sent, by what differs. A request is in several where several things do; those
/// in none came as they were sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentCounters {
    /// Another method, path or query.
    pub target: u64,
    /// Headers that the client sends are missing, or have other values.
    pub headers: u64,
    /// Another body of the same length.
    pub body: u64,
    /// A shorter body.
    pub shortened: u64,
    /// A longer body.
    pub lengthened: u64,
    /// The connection or the stream ended before the body was complete.
    pub unfinished: u64,
    /// The name came without the digest, so that nothing was compared.
    pub unchecked: u64,
}

/// Headers of the PROXY protocol at the beginning of connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyCounters {
    /// Of version 1.
    pub v1: u64,
    /// Of version 2.
    pub v2: u64,
    /// Of both, without addresses: the sender spoke for itself.
    pub without_addresses: u64,
    /// Connections that were reset, because they began otherwise.
    pub refused: u64,
}

/// The origin's accounts of TLS handshakes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsCounters {
    /// Handshakes completed.
    pub handshakes: u64,
    /// Of these, those that resumed an earlier session.
    pub resumed: u64,
    /// Connections that ended in an error of TLS, before or after the handshake.
    pub failed: u64,
    /// Handshakes by version, such as `TLSv1.3`.
    pub versions: BTreeMap<String, u64>,
    /// Handshakes by cipher suite, such as `TLS_AES_128_GCM_SHA256`.
    pub suites: BTreeMap<String, u64>,
}

/// Version of [`OriginCounters`].
pub const COUNTERS_SCHEMA: u32 = 1;

impl OriginCounters {
    /// The growth since an earlier snapshot of the same origin. Counters are subtracted; `keys`, `connections_open` and the maxima,
    /// which are no counters, stay as they are now.
    pub fn since(&self, earlier: &OriginCounters) -> OriginCounters {
        let new = AddressCounters::default();
        let before = earlier.addresses.iter().chain(std::iter::repeat(&new));
        let grown = combined(self, earlier, u64::saturating_sub);
        OriginCounters {
            schema: self.schema,
            connections_open: self.connections_open,
            keys: self.keys,
            addresses: self
                .addresses
                .iter()
                .zip(before)
                .map(|(now, then)| combined(now, then, u64::saturating_sub))
                .collect(),
            max_in_flight_per_connection: self.max_in_flight_per_connection,
            max_connections_open: self.max_connections_open,
            max_requests_per_connection: self.max_requests_per_connection,
            stalls: Stalls { longest_us: self.stalls.longest_us, ..grown.stalls },
            ended_early: self.ended_early.get(earlier.ended_early.len()..).unwrap_or_default().to_vec(),
            ..grown
        }
    }

    /// Those of two origins together, each of which has its own addresses. The most connections at once are added, too, although
    /// they may have been open at different times.
    pub fn plus(&self, other: &OriginCounters) -> OriginCounters {
        let sum = combined(self, other, u64::saturating_add);
        OriginCounters {
            schema: self.schema,
            addresses: [self.addresses.as_slice(), &other.addresses].concat(),
            max_in_flight_per_connection: self.max_in_flight_per_connection.max(other.max_in_flight_per_connection),
            max_requests_per_connection: self.max_requests_per_connection.max(other.max_requests_per_connection),
            stalls: Stalls { longest_us: self.stalls.longest_us.max(other.stalls.longest_us), ..sum.stalls },
            ended_early: [self.ended_early.as_slice(), &other.ended_early].concat(),
            ..sum
        }
    }

    /// The same with an entry for its address, where it has a single one: it is one of several origins.
    pub fn of_address(self, address: String) -> OriginCounters {
        if !self.addresses.is_empty() {
            return self;
        }
        let own = AddressCounters {
            address,
            connections_accepted: self.connections_accepted,
            connections_used: self.connections_used,
            requests: self.requests,
            answered: self.answered,
        };
        OriginCounters { addresses: vec![own], ..self }
    }
}

/// Two snapshots, number by number, by way of their JSON. Texts and lists are the first one's.
fn combined<T: Default + Serialize + DeserializeOwned>(one: &T, other: &T, with: fn(u64, u64) -> u64) -> T {
    let [mut sum, other, none] =
        [one, other, &T::default()].map(|it| serde_json::to_value(it).expect("numbers, texts and maps"));
    combine(&mut sum, &other, &none, with);
    serde_json::from_value(sum).expect("it has the keys that it was written with")
}

/// `none` has the keys that are fields. Others are of maps: they may be missing on one side, and are left out where they come to 0.
fn combine(sum: &mut Value, other: &Value, none: &Value, with: fn(u64, u64) -> u64) {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    match (sum, other) {
        (Value::Object(sum), Value::Object(other)) => {
            for (key, other) in other {
                combine(sum.entry(key.as_str()).or_insert(Value::from(0)), other, &none[key.as_str()], with);
            }
            sum.retain(|key, value| none.get(key).is_some() || *value != 0);
        }
        (sum @ Value::Number(_), other) => *sum = with(number(sum), number(other)).into(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_origins_are_counted_together_and_each_address_by_itself() {
        let one = |requests, versions: &str| OriginCounters {
            requests,
            connections_used: 2,
            max_requests_per_connection: requests,
            versions: BTreeMap::from([(versions.to_owned(), requests)]),
            ..OriginCounters::default()
        };
        let (a, b) = (one(5, "HTTP/1.1").of_address("a:1".into()), one(7, "HTTP/1.1").of_address("b:1".into()));
        let both = a.plus(&b);
        assert_eq!((both.requests, both.connections_used, both.max_requests_per_connection), (12, 4, 7));
        assert_eq!(both.versions, BTreeMap::from([("HTTP/1.1".to_owned(), 12)]));
        let by_address: Vec<(&str, u64)> =
            both.addresses.iter().map(|one| (one.address.as_str(), one.requests)).collect();
        assert_eq!(by_address, [("a:1", 5), ("b:1", 7)]);
        assert_eq!(both.since(&both).requests, 0);
    }

    #[test]
    fn spreads_of_requests() {
        let counters = OriginCounters {
            requests: 12,
            connections_used: 3,
            connections_reaching: BTreeMap::from([(1, 3), (2, 3), (4, 2)]),
            ..OriginCounters::default()
        };
        let text = serde_json::to_string(&counters).unwrap();
        assert!(text.contains(r#""connections_reaching":{"1":3,"2":3,"4":2}"#), "{text}");
        assert_eq!(serde_json::from_str::<OriginCounters>(&text).unwrap(), counters);
    }

    #[test]
    fn a_difference_is_by_key() {
        let at =
            |n| OriginCounters { connections_reaching: BTreeMap::from([(1, n), (2, 5)]), ..OriginCounters::default() };
        assert_eq!(at(9).since(&at(4)).connections_reaching, BTreeMap::from([(1, 5)]));
    }
}
