//! When connections are made, and whose latency that is a part of: a request that needs a new connection is due first, and connecting
//! begins then.

use weir_model::load::{LoadProtocol, LoadResult, LoadSpec, OfferedRate, RequestSpec, TlsSpec, TlsVersion};
use weir_model::suite::{LoadKind, Protocol};
use weir_net::sim::World;
use weir_origin::Options;
use weir_wire::tls::{Identity, KeyKind, ServerOptions};

use crate::keyvalue::mix;
use crate::script::{Do, Server};
use crate::servers::{Asked, Reply, closing, http, http2, ok, response};
use crate::world::*;

const HTTP1: LoadProtocol = LoadProtocol::Http1 { pipeline: 1 };
const HTTP2: LoadProtocol = LoadProtocol::Http2 { streams: 4 };
const REDIS: LoadProtocol = LoadProtocol::Redis { pipeline: 1 };

/// The ways to ask for a connection for each request.
const WAYS: [fn(&mut LoadSpec); 3] = [
    |spec| spec.requests_per_connection = Some(1),
    |spec| spec.connection_close = true,
    |spec| spec.requests[0].request.headers = vec![("connection".into(), "Close".into())],
];

/// A load of 50 requests on weir's origin, each with a connection of its own.
fn single_use(
    protocol: LoadProtocol,
    tls: Option<TlsVersion>,
    kind: LoadKind<OfferedRate>,
    way: fn(&mut LoadSpec),
) -> LoadResult {
    let world = world();
    let identities = || vec![Identity::generated(KeyKind::P256).unwrap()];
    let tls_options = tls.map(|_| ServerOptions { identities: identities(), ..ServerOptions::default() });
    let mut options = Options { tls: tls_options, ..Options::default() };
    if protocol == REDIS {
        options.protocol = Protocol::of_scheme("redis").unwrap();
    }
    let origin = SimOrigin::start(&world, options);
    let mut spec = LoadSpec { protocol, ..order(origin.addr, kind) };
    spec.tls = tls.map(|version| TlsSpec { versions: (version, version), ..TlsSpec::default() });
    if protocol == REDIS {
        let keyvalue = mix("set:1");
        (spec.requests, spec.keyvalue) = (RequestSpec::operations(&keyvalue.operations), Some(keyvalue));
    }
    way(&mut spec);
    let result = load(&world, &spec).unwrap();
    let total = &result.total;
    assert_eq!((total.due, total.successful, result.connections_used), (50, 50, 50), "{total:?}");
    // One more shows, before the load, that there is a target.
    assert_eq!((total.connections, total.closed_by_peer), (51, 0), "{total:?}");
    assert_eq!(origin.counters().connections_used, 50);
    result
}

/// Connecting takes a round trip, a handshake of TLS 1.3 another, one of TLS 1.2 two. SETTINGS of HTTP/2 and a PING of Redis take one
/// each, and so does the request.
#[test]
fn a_connection_for_each_request_is_part_of_its_latency() {
    let (tls12, tls13) = (Some(TlsVersion::Tls12), Some(TlsVersion::Tls13));
    for (protocol, tls, round_trips) in
        [(HTTP1, None, 2), (HTTP1, tls13, 3), (HTTP1, tls12, 4), (HTTP2, None, 3), (HTTP2, tls13, 4), (REDIS, None, 3)]
    {
        let ways = if protocol == HTTP1 { &WAYS[..] } else { &WAYS[..1] };
        for kind in [constant(50.0), counted(50)] {
            for way in ways {
                let result = single_use(protocol, tls, kind.clone(), *way);
                let latency = round_trips * ROUND_TRIP;
                times(&result.latency, latency, latency, latency);
                times(&result.service, ROUND_TRIP, ROUND_TRIP, ROUND_TRIP);
                times(&result.lag, latency - ROUND_TRIP, latency - ROUND_TRIP, latency - ROUND_TRIP);
                // The client itself was on time.
                assert_eq!(result.lateness.as_ref().map_or(0.0, |own| own.lag.max_us), 0.0);
            }
        }
    }
}

/// A hundred requests a second over so many connections that are there at the start; `paid` of them wait for a new one for so long.
fn new_ones(server: &Server, change: impl FnOnce(&mut LoadSpec), world: &World, paid: u64, for_it: u64) {
    let mut spec = order(server.addr, constant(100.0));
    change(&mut spec);
    let result = load(world, &spec).unwrap();
    let total = &result.total;
    assert_eq!((total.due, total.successful), (100, 100), "{total:?}");
    assert_eq!(total.connections, u64::from(spec.connections) + paid, "{total:?}");
    let p = |share: f64| if share <= 100.0 - paid as f64 { ROUND_TRIP } else { ROUND_TRIP + for_it };
    let found = [result.latency.p50_us, result.latency.p75_us, result.latency.p90_us, result.latency.p95_us];
    assert_eq!(found, [50.0, 75.0, 90.0, 95.0].map(|share| us(p(share))), "{:?}", result.latency);
    assert_eq!(result.service.max_us, us(ROUND_TRIP));
}

#[test]
fn the_request_after_the_last_of_a_connection_pays_for_the_next() {
    let world = world();
    let server = http(&world, |_| ok("ok"));
    // Twenty requests on the first four connections, and a new one for each five of the other eighty.
    new_ones(&server, |spec| spec.requests_per_connection = Some(5), &world, 16, ROUND_TRIP);
}

#[test]
fn a_server_that_closes_after_each_response_is_paid_for() {
    let silent: fn(&Asked) -> Vec<Do> = |_| vec![Do::Send(response(200, "ok")), Do::End];
    let half: fn(&Asked) -> Vec<Do> = |asked| if asked.number.is_multiple_of(2) { closing() } else { ok("ok") };
    for (behaviour, new) in [((|_| closing()) as fn(&Asked) -> Vec<Do>, 96), (silent, 96), (half, 48)] {
        let world = world();
        let server = http(&world, behaviour);
        new_ones(&server, |_| (), &world, new, ROUND_TRIP);
    }
    // With HTTP/2 it goes away. This one's SETTINGS come with its end of the handshake.
    let world = world();
    let server = http2(&world, 100, |_| Reply::GoAway);
    new_ones(&server, |spec| spec.protocol = HTTP2, &world, 96, ROUND_TRIP);
}

#[test]
fn connections_that_are_recycled_are_made_ahead() {
    let world = world();
    let server = http(&world, |_| ok("ok"));
    let mut spec = order(server.addr, constant(100.0));
    spec.recycle_s = Some(0.1);
    let result = load(&world, &spec).unwrap();
    times(&result.latency, ROUND_TRIP, ROUND_TRIP, ROUND_TRIP);
    assert!(result.total.connections > 30, "{:?}", result.total);
}
