//! The counters of the origin, as `/_weir/counters` returns them. `weir-origin` fills them, and the lab records them
//! for each trial. `weir-audit` compares them with what the client counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::load::Stalls;

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
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<String, u64>,
    /// Reads that found a value.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub hits: u64,
    /// Reads that found none.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub misses: u64,
    /// Keys stored now.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub keys: u64,
    /// What the requests were named.
    #[serde(default, skip_serializing_if = "NameCounters::is_none")]
    pub names: NameCounters,
    /// How requests with a name differ from what the client sent.
    #[serde(default, skip_serializing_if = "ContentCounters::is_none")]
    pub contents: ContentCounters,
    /// What reached each of several addresses; empty where the origin listens on one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<AddressCounters>,
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
    /// Requests by HTTP version: `HTTP/1.0`, `HTTP/1.1`, `HTTP/2`.
    pub versions: BTreeMap<String, u64>,
    /// Requests by value of their `Connection` header: `(none)`, `close`, `keep-alive`, `other`.
    pub connection_headers: BTreeMap<String, u64>,
    /// Most requests in flight on one connection at once (HTTP/2: streams), over the origin's life.
    pub max_in_flight_per_connection: u64,
    /// Most connections open at once, over the origin's life.
    pub max_connections_open: u64,
    /// Answers spoiled on purpose, by kind of fault: `reset`, `close`, `stall`, `length`, `status`, `drip`, `busy`, `lose`, `stale`. Of these
    /// all but the first three are also in `answered` once they are sent.
    #[serde(default)]
    pub faults: BTreeMap<String, u64>,
    /// Connections by the protocol of the first request counted in `connections_used`: `http/1.1` (with 1.0), `h2`.
    #[serde(default)]
    pub connections_by_protocol: BTreeMap<String, u64>,
    /// How requests are spread over connections: for each power of two, the connections that have carried at least so many
    /// requests. Those of 1 are `connections_used`; powers that no connection has reached are left out.
    #[serde(default)]
    pub connections_reaching: BTreeMap<u64, u64>,
    /// Most requests that one connection has carried, over the origin's life.
    #[serde(default)]
    pub max_requests_per_connection: u64,
    /// What was agreed with those that spoke TLS.
    #[serde(default)]
    pub tls: TlsCounters,
    /// Headers of the PROXY protocol, where connections have to begin with one.
    #[serde(default, skip_serializing_if = "ProxyCounters::is_none")]
    pub proxy_protocol: ProxyCounters,
    /// How long the origin's process stood still. `longest_us` is over its life.
    #[serde(default)]
    pub stalls: Stalls,
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
pub struct NameCounters {
    /// Requests with a name.
    pub named: u64,
    /// Different names among them.
    pub distinct: u64,
    /// Names that came more than once.
    pub repeated: u64,
    /// Requests whose header has no name.
    pub malformed: u64,
    /// Requests with a name for which there was no more memory: it was not compared with the others.
    pub unremembered: u64,
}

impl NameCounters {
    /// Whether no request had one.
    pub fn is_none(&self) -> bool {
        *self == NameCounters::default()
    }

    /// Requests with a name that another had before.
    pub fn again(&self) -> u64 {
        self.named.saturating_sub(self.distinct + self.unremembered)
    }

    fn each(&self, other: &NameCounters, with: fn(u64, u64) -> u64) -> NameCounters {
        NameCounters {
            named: with(self.named, other.named),
            distinct: with(self.distinct, other.distinct),
            repeated: with(self.repeated, other.repeated),
            malformed: with(self.malformed, other.malformed),
            unremembered: with(self.unremembered, other.unremembered),
        }
    }
}

/// Requests with a name that differ from what the client sent, by what differs. A request is in several where several things do; those
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

impl ContentCounters {
    /// Whether there was none.
    pub fn is_none(&self) -> bool {
        *self == ContentCounters::default()
    }

    fn each(&self, other: &ContentCounters, with: fn(u64, u64) -> u64) -> ContentCounters {
        ContentCounters {
            target: with(self.target, other.target),
            headers: with(self.headers, other.headers),
            body: with(self.body, other.body),
            shortened: with(self.shortened, other.shortened),
            lengthened: with(self.lengthened, other.lengthened),
            unfinished: with(self.unfinished, other.unfinished),
            unchecked: with(self.unchecked, other.unchecked),
        }
    }
}

impl AddressCounters {
    /// What happened since an earlier snapshot of the same address.
    fn since(&self, earlier: &AddressCounters) -> AddressCounters {
        AddressCounters {
            address: self.address.clone(),
            connections_accepted: self.connections_accepted.saturating_sub(earlier.connections_accepted),
            connections_used: self.connections_used.saturating_sub(earlier.connections_used),
            requests: self.requests.saturating_sub(earlier.requests),
            answered: self.answered.saturating_sub(earlier.answered),
        }
    }
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

impl ProxyCounters {
    /// Whether there was none.
    pub fn is_none(&self) -> bool {
        *self == ProxyCounters::default()
    }

    fn each(&self, other: &ProxyCounters, with: fn(u64, u64) -> u64) -> ProxyCounters {
        ProxyCounters {
            v1: with(self.v1, other.v1),
            v2: with(self.v2, other.v2),
            without_addresses: with(self.without_addresses, other.without_addresses),
            refused: with(self.refused, other.refused),
        }
    }
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
    /// What happened since an earlier snapshot of the same origin. Counters are subtracted; `connections_open` and
    /// the maxima, which are no counters, stay as they are now.
    pub fn since(&self, earlier: &OriginCounters) -> OriginCounters {
        OriginCounters {
            schema: self.schema,
            connections_accepted: self.connections_accepted.saturating_sub(earlier.connections_accepted),
            connections_open: self.connections_open,
            connections_used: self.connections_used.saturating_sub(earlier.connections_used),
            connections_reset: self.connections_reset.saturating_sub(earlier.connections_reset),
            requests: self.requests.saturating_sub(earlier.requests),
            answered: self.answered.saturating_sub(earlier.answered),
            own_requests: self.own_requests.saturating_sub(earlier.own_requests),
            operations: counts(&self.operations, &earlier.operations),
            hits: self.hits.saturating_sub(earlier.hits),
            misses: self.misses.saturating_sub(earlier.misses),
            keys: self.keys,
            names: self.names.each(&earlier.names, u64::saturating_sub),
            contents: self.contents.each(&earlier.contents, u64::saturating_sub),
            addresses: self.addresses_since(earlier),
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
            connections_by_protocol: counts(&self.connections_by_protocol, &earlier.connections_by_protocol),
            connections_reaching: counts(&self.connections_reaching, &earlier.connections_reaching),
            max_requests_per_connection: self.max_requests_per_connection,
            tls: TlsCounters {
                handshakes: self.tls.handshakes.saturating_sub(earlier.tls.handshakes),
                resumed: self.tls.resumed.saturating_sub(earlier.tls.resumed),
                failed: self.tls.failed.saturating_sub(earlier.tls.failed),
                versions: counts(&self.tls.versions, &earlier.tls.versions),
                suites: counts(&self.tls.suites, &earlier.tls.suites),
            },
            proxy_protocol: self.proxy_protocol.each(&earlier.proxy_protocol, u64::saturating_sub),
            stalls: Stalls {
                count: self.stalls.count.saturating_sub(earlier.stalls.count),
                total_us: self.stalls.total_us.saturating_sub(earlier.stalls.total_us),
                longest_us: self.stalls.longest_us,
            },
        }
    }

    /// Those of two origins together, each of which has its own addresses. The most connections at once are added, too, although
    /// they may have been open at different times.
    pub fn plus(&self, other: &OriginCounters) -> OriginCounters {
        OriginCounters {
            schema: self.schema,
            connections_accepted: self.connections_accepted + other.connections_accepted,
            connections_open: self.connections_open + other.connections_open,
            connections_used: self.connections_used + other.connections_used,
            connections_reset: self.connections_reset + other.connections_reset,
            requests: self.requests + other.requests,
            answered: self.answered + other.answered,
            own_requests: self.own_requests + other.own_requests,
            operations: sums(&self.operations, &other.operations),
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            keys: self.keys + other.keys,
            names: self.names.each(&other.names, u64::saturating_add),
            contents: self.contents.each(&other.contents, u64::saturating_add),
            addresses: [self.addresses.as_slice(), &other.addresses].concat(),
            malformed: self.malformed + other.malformed,
            body_bytes_in: self.body_bytes_in + other.body_bytes_in,
            body_bytes_out: self.body_bytes_out + other.body_bytes_out,
            bytes_in: self.bytes_in + other.bytes_in,
            bytes_out: self.bytes_out + other.bytes_out,
            versions: sums(&self.versions, &other.versions),
            connection_headers: sums(&self.connection_headers, &other.connection_headers),
            max_in_flight_per_connection: self.max_in_flight_per_connection.max(other.max_in_flight_per_connection),
            max_connections_open: self.max_connections_open + other.max_connections_open,
            faults: sums(&self.faults, &other.faults),
            connections_by_protocol: sums(&self.connections_by_protocol, &other.connections_by_protocol),
            connections_reaching: sums(&self.connections_reaching, &other.connections_reaching),
            max_requests_per_connection: self.max_requests_per_connection.max(other.max_requests_per_connection),
            tls: TlsCounters {
                handshakes: self.tls.handshakes + other.tls.handshakes,
                resumed: self.tls.resumed + other.tls.resumed,
                failed: self.tls.failed + other.tls.failed,
                versions: sums(&self.tls.versions, &other.tls.versions),
                suites: sums(&self.tls.suites, &other.tls.suites),
            },
            proxy_protocol: self.proxy_protocol.each(&other.proxy_protocol, u64::saturating_add),
            stalls: {
                let mut both = self.stalls;
                both.add(&other.stalls);
                both
            },
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

    fn addresses_since(&self, earlier: &OriginCounters) -> Vec<AddressCounters> {
        let none = AddressCounters::default();
        let then = earlier.addresses.iter().chain(std::iter::repeat(&none));
        self.addresses.iter().zip(then).map(|(now, then)| now.since(then)).collect()
    }

    /// Requests a connection that was used, in the mean; 0 where none was.
    pub fn mean_requests_per_connection(&self) -> f64 {
        if self.connections_used == 0 { 0.0 } else { self.requests as f64 / self.connections_used as f64 }
    }

    /// A power of two that every used connection has reached; 0 where none was used. For whole counters only, not for a
    /// difference, in which a connection that was used before counts nowhere.
    pub fn least_requests_per_connection(&self) -> u64 {
        let all = self.connections_reaching.iter().filter(|(_, reached)| **reached == self.connections_used);
        all.map(|(power, _)| *power).max().unwrap_or(0)
    }
}

/// Differences by key, without those that are 0.
fn counts<K: Ord + Clone>(now: &BTreeMap<K, u64>, then: &BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    let less = |key, n: &u64| n.saturating_sub(then.get(key).copied().unwrap_or(0));
    now.iter().map(|(key, n)| (key.clone(), less(key, n))).filter(|(_, n)| *n > 0).collect()
}

/// Sums by key.
fn sums<K: Ord + Clone>(one: &BTreeMap<K, u64>, other: &BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    let mut sums = one.clone();
    other.iter().for_each(|(key, n)| *sums.entry(key.clone()).or_default() += n);
    sums
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
        assert_eq!((counters.mean_requests_per_connection(), counters.least_requests_per_connection()), (4.0, 2));
        assert_eq!(OriginCounters::default().mean_requests_per_connection(), 0.0);
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
