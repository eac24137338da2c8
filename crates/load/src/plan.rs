//! Turns a load specification into what the workers need: targets, requests, and each thread's share of the load. `run`
//! makes the plan; every worker reads it.

use std::net::IpAddr;
use std::sync::Arc;

use weir_model::load::{Endpoint, LoadSpec, PacedMessages, Part};
use weir_model::suite::LoadKind;
use weir_net::{Address, Capacity, DescriptorKind};

use crate::capacity::{self, Resources};
use crate::clock::from_secs;
use crate::error::LoadError;
use crate::generator::Choices;
use crate::interval::Kinds;
use crate::response_check::Expectation;
use crate::schedule::{self, Bursts, Timetable};
use crate::spec_check;
use crate::tls::TlsPlan;

/// Connections that one thread, and all threads together, make at a time: few enough for any listen queue that is not
/// tiny.
const CONNECTING_AT_ONCE: u32 = 512;
const CONNECTING_IN_ALL: u32 = 2048;

/// Of more kinds of requests, all but the first ones are recorded together, as the last: a histogram takes a quarter of a megabyte,
/// several times.
const MOST_KINDS: usize = 16;

/// The data that all workers share and none changes: the specification, and what follows from it. Times are nanoseconds.
#[derive(Debug)]
pub(crate) struct Plan {
    pub spec: LoadSpec,
    pub targets: Vec<PlannedTarget>,
    /// The expected response to each request, in the order of the load's requests.
    pub expectations: Vec<Expectation>,
    /// The messages of each request that its client sends one by one; empty where no request has any.
    pub paced: Vec<Option<PacedMessages>>,
    /// The choice of the next request.
    pub choices: Arc<Choices>,
    /// When requests are due, in open loads.
    pub timetable: Option<Timetable>,
    /// When none become due.
    pub bursts: Option<Bursts>,
    /// Where TLS is spoken, also inside of QUIC.
    pub tls: Option<TlsPlan>,
    /// Requests that a connection may have in flight, and that it may carry in its life.
    pub streams: u32,
    pub requests_per_connection: u64,
    /// Each connection carries one request, and is made when that is due.
    pub single_use: bool,
    /// How old a connection may get.
    pub recycle: Option<u64>,
    /// This client's threads, and those of all clients that make the load.
    pub threads: u32,
    pub all_threads: u32,
    /// What each of this client's threads does.
    pub shares: Vec<Share>,
    /// Slow clients that this client makes. The first of several clients makes all.
    pub slow_clients: u32,
    /// Where a thread's driver holds its connections.
    pub descriptors: DescriptorKind,
    /// Connections that one thread makes at a time.
    pub connecting_at_once: u32,
    /// The time between one thread's attempts to connect, while the first connections are made.
    pub connect_gap: Option<f64>,
    pub warmup: u64,
    /// The window at the longest.
    pub duration: u64,
    pub timeout: u64,
    pub connect_timeout: u64,
}

/// Where connections go.
#[derive(Debug)]
pub(crate) struct PlannedTarget {
    pub address: Address,
    /// Source addresses, used in turn.
    pub sources: Vec<Option<IpAddr>>,
}

/// One thread's share of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    /// Which of this client's threads it is, and which of all; both 0-based.
    pub local: u32,
    pub thread: u32,
    /// The thread's first connection among all.
    pub first: u32,
    pub connections: u32,
    /// The first of the extra connections for waiting requests, and their number.
    pub first_more: u32,
    pub more: u32,
    /// Requests of a counted load.
    pub requests: u64,
}

impl Share {
    /// The number of the thread's `nth` connection among all connections.
    pub(crate) fn number(&self, nth: u32) -> u32 {
        if nth < self.connections { self.first + nth } else { self.first_more + (nth - self.connections) }
    }
}

impl Plan {
    /// Checks the specification and what there is for it, and makes the plan.
    ///
    /// # Errors
    /// A mistake in the specification, or a resource that the host lacks.
    pub(crate) fn new(spec: &LoadSpec, resources: &Resources) -> Result<Plan, LoadError> {
        spec_check::check(spec).map_err(LoadError::InvalidSpec)?;
        let wished = match spec.threads {
            0 if spec.is_broadcast() => 1,
            0 => spec.cpus.len().max(1) as u32,
            n => n,
        };
        let whole = Part { first_thread: 0, threads: wished.min(spec.connections) };
        let mut shares = shares(spec, whole.threads, spec.part.unwrap_or(whole));
        let single_use = spec.is_single_use();
        let is_first = spec.part.is_none_or(|part| part.first_thread == 0);
        let slow_clients = spec.slow_clients.iter().filter(|_| is_first).map(|slow| slow.clients).sum();
        let held = connections(&shares).saturating_add(slow_clients);
        // All slow clients have one ring, whose table may be too small for them.
        let tables = if slow_clients > 0 { 0 } else { resources.capacity.per_ring };
        let room = Capacity { per_ring: tables, ..resources.capacity };
        let (threads, descriptors) = capacity::hold(room, held, shares.len() as u32, single_use)?;
        let mut all_threads = whole.threads;
        if threads > shares.len() as u32 {
            if let Some(part) = spec.part {
                return Err(LoadError::InvalidSpec(too_few_threads(part, threads, held).into()));
            }
            if spec.is_broadcast() {
                let wrong = format!(
                    "a broadcast to {held} connections, which take {threads} threads; expected: as many as one takes"
                );
                return Err(LoadError::InvalidSpec(wrong.into()));
            }
            all_threads = threads;
            shares = self::shares(spec, threads, Part { first_thread: 0, threads });
        }
        schedule::check_arrivals(&spec.kind, all_threads).map_err(LoadError::InvalidSpec)?;
        let warmup = if spec.kind.has_warmup() { from_secs(spec.warmup_s) } else { 0 };
        let length = from_secs(spec.duration_s);
        let duration = match spec.kind {
            // The last request is due at its end, and may take as long as any other.
            LoadKind::Open { .. } if spec.kind.is_finite() => length + from_secs(spec.timeout_s),
            _ => length,
        };
        let expectation = |request| {
            Expectation::of(request, spec.protocol).accepting(spec.accept_encoding).changing(spec.changes.is_some())
        };
        let requests_per_connection = if single_use { 1 } else { spec.requests_per_connection.unwrap_or(u64::MAX) };
        let paced: Vec<_> = spec.requests.iter().map(|request| spec.paced_messages(request)).collect();
        Ok(Plan {
            paced: if paced.iter().any(Option::is_some) { paced } else { Vec::new() },
            targets: planned_targets(spec, held, resources.ports)?,
            choices: Arc::new(Choices::new(&spec.requests, spec.targets.len())),
            tls: TlsPlan::new(spec).map_err(LoadError::InvalidSpec)?,
            expectations: spec.requests.iter().map(expectation).collect(),
            timetable: Timetable::new(&spec.kind, warmup, length),
            bursts: spec.bursts.map(Bursts::from),
            // A connection never has more in flight than it carries in its life.
            streams: spec.protocol.streams().min(u32::try_from(requests_per_connection).unwrap_or(u32::MAX)),
            requests_per_connection,
            single_use,
            recycle: spec.recycle_s.map(from_secs),
            threads,
            all_threads,
            shares,
            slow_clients,
            descriptors,
            connecting_at_once: (CONNECTING_IN_ALL / all_threads).clamp(64, CONNECTING_AT_ONCE),
            connect_gap: spec.connect_rate.map(|rate| 1e9 * f64::from(all_threads) / rate),
            warmup,
            duration,
            timeout: from_secs(spec.timeout_s),
            connect_timeout: from_secs(spec.connect_timeout_s.unwrap_or(spec.timeout_s)),
            spec: spec.clone(),
        })
    }

    /// Which counts and histograms are recorded: of kinds of requests, where there are several.
    pub(crate) fn recorded(&self) -> Kinds {
        let kinds = Some(self.spec.requests.len()).filter(|kinds| *kinds > 1);
        Kinds { requests: kinds.unwrap_or(0).min(MOST_KINDS), open: self.timetable.is_some() }
    }

    /// Connections that a thread makes before the load begins. If each carries one request, it makes one, to see that there is a target.
    pub(crate) fn first_connections(&self, share: &Share) -> u32 {
        if self.single_use { share.connections.min(1) } else { share.connections }
    }

    /// True if any request has a body.
    pub(crate) fn sends_bodies(&self) -> bool {
        self.spec.requests.iter().any(|request| !request.request.body.is_empty())
    }

    /// Where a connection goes, by its number among all.
    pub(crate) fn target(&self, connection: u32) -> &PlannedTarget {
        &self.targets[connection as usize % self.targets.len()]
    }

    /// The source address of a connection, from its number among all and the number that its thread made before. Kept
    /// connections keep their address, so that no address runs out of ports; others take the addresses in turn.
    pub(crate) fn source(&self, connection: u32, made: u64) -> Option<IpAddr> {
        let sources = &self.target(connection).sources;
        // The connections of each target are counted separately.
        let nth = if self.single_use { made as usize } else { connection as usize / self.targets.len() };
        sources[nth % sources.len()]
    }
}

/// What each thread of a part does, of a load that has so many threads in all. Connections and requests are split evenly; the
/// first threads take the remainder.
fn shares(spec: &LoadSpec, all_threads: u32, part: Part) -> Vec<Share> {
    let requests = match spec.kind {
        LoadKind::Count { requests } => requests,
        _ => 0,
    };
    let threads = u64::from(all_threads);
    let slice = |all: u64, i: u64| all / threads + u64::from(i < all % threads);
    let extra = spec.max_connections.unwrap_or(spec.connections) - spec.connections;
    let (mut first, mut first_more) = (0, spec.connections);
    let share = |thread: u32| {
        let slice = |all: u64| slice(all, u64::from(thread));
        let (connections, more) = (slice(spec.connections.into()) as u32, slice(extra.into()) as u32);
        let local = thread.saturating_sub(part.first_thread);
        let share = Share { local, thread, first, connections, first_more, more, requests: slice(requests) };
        first += connections;
        first_more += more;
        share
    };
    let all: Vec<Share> = (0..part.first_thread + part.threads).map(share).collect();
    all[part.first_thread as usize..].to_vec()
}

/// Connections that they have at most.
fn connections(shares: &[Share]) -> u32 {
    shares.iter().map(|share| share.connections + share.more).sum()
}

fn too_few_threads(part: Part, needed: u32, connections: u32) -> String {
    format!(
        "this client's part has {} threads, and its host holds its {connections} connections only with {needed}; expected: a \
         part of {needed} threads, or a higher limit of open files there",
        part.threads
    )
}

/// The targets, with as many source addresses as each needs for its part of the connections.
fn planned_targets(spec: &LoadSpec, most: u32, ports: (u16, u16)) -> Result<Vec<PlannedTarget>, LoadError> {
    let each = most.div_ceil(spec.targets.len() as u32);
    let planned = |endpoint: &Endpoint| match endpoint {
        Endpoint::Unix(path) => Ok(PlannedTarget { address: Address::unix(path), sources: vec![None] }),
        Endpoint::Tcp(target) => {
            let sources = capacity::sources(*target, &spec.sources, each, spec.is_single_use(), ports)?;
            Ok(PlannedTarget { address: (*target).into(), sources })
        }
    };
    spec.targets.iter().map(|target| planned(&target.address)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_model::keyvalue::KeyValue;
    use weir_model::load::{LoadProtocol, OfferedRate, RequestSpec, SlowClientsSpec, Step, Target};
    use weir_model::suite::{Arrivals, Expect, Request};

    pub(crate) fn spec() -> LoadSpec {
        let target = Target::tcp("127.0.0.1:1".parse().unwrap(), "origin.test");
        let request = Request { method: "GET".into(), path: "/x?y=1".into(), headers: vec![], body: vec![] };
        LoadSpec::new(target, request, Expect::default())
    }

    /// A load of keys and values.
    pub(crate) fn keyvalue_spec(protocol: LoadProtocol, keyvalue: KeyValue) -> LoadSpec {
        let requests = RequestSpec::operations(&keyvalue.operations);
        LoadSpec { requests, protocol, keyvalue: Some(keyvalue), ..spec() }
    }

    fn plan(spec: &LoadSpec) -> Plan {
        Plan::new(spec, &Resources::unlimited()).unwrap()
    }

    #[test]
    fn shares_add_up_and_differ_by_one_at_most() {
        let mut spec = spec();
        spec.connections = 10;
        spec.threads = 4;
        spec.kind = LoadKind::Count { requests: 1_003 };
        let shares = plan(&spec).shares;
        let column = |f: fn(&Share) -> u64| shares.iter().map(f).collect::<Vec<_>>();
        assert_eq!(column(|s| s.connections.into()), [3, 3, 2, 2]);
        assert_eq!(column(|s| s.first.into()), [0, 3, 6, 8]);
        assert_eq!(column(|s| s.requests), [251, 251, 251, 250]);
    }

    #[test]
    fn slow_clients_need_descriptors_too() {
        let slow = SlowClientsSpec { writers: true, clients: 900, bytes_per_second: 1, at_s: 0.0, for_s: 2.0 };
        let spec = LoadSpec { slow_clients: vec![slow; 2], ..spec() };
        let capacity = Capacity { descriptors: 2_000, per_ring: 2_000 };
        let with = |capacity| Plan::new(&spec, &Resources { capacity, ..Resources::unlimited() });
        assert!(
            matches!(with(capacity), Err(LoadError::Descriptors { connections: 1_801, .. })),
            "of several rings one has all"
        );
        let plan = with(Capacity { descriptors: 3_000, ..capacity }).unwrap();
        assert_eq!((plan.slow_clients, plan.shares.len(), plan.shares[0].connections), (1_800, 1, 1));
    }

    #[test]
    fn a_pool_that_grows_has_a_number_for_every_connection() {
        let mut spec = spec();
        spec.connections = 5;
        spec.max_connections = Some(12);
        spec.threads = 2;
        spec.kind = LoadKind::open(1.0, Arrivals::Constant);
        let shares = plan(&spec).shares;
        let numbers = |share: &Share| (0..share.connections + share.more).map(|n| share.number(n)).collect::<Vec<_>>();
        assert_eq!(numbers(&shares[0]), [0, 1, 2, 5, 6, 7, 8]);
        assert_eq!(numbers(&shares[1]), [3, 4, 9, 10, 11]);
    }

    /// What each thread does, but for its number among its client's.
    fn dealt(plan: &Plan) -> Vec<Share> {
        plan.shares.iter().map(|share| Share { local: 0, ..*share }).collect()
    }

    /// Due times of each thread of a plan, until some seconds behind the window.
    fn due(plan: &Plan) -> Vec<(u32, Vec<u64>)> {
        let end = plan.warmup + plan.duration + 3_000_000_000;
        let timetable = plan.timetable.as_ref().unwrap();
        let of = |share: &Share| timetable.schedule(plan.spec.seed, share.thread, plan.all_threads);
        plan.shares.iter().map(|share| (share.thread, of(share).take_while(|at| *at < end).collect())).collect()
    }

    fn rates() -> impl Strategy<Value = OfferedRate> {
        let rate = 0.5..2_000.0;
        let step = (rate.clone(), 0.1..1.0f64).prop_map(|(rate, for_s)| Step { rate, for_s });
        prop_oneof![
            rate.clone().prop_map(OfferedRate::Constant),
            (rate.clone(), rate).prop_map(|(from, to)| OfferedRate::Ramp { from, to }),
            proptest::collection::vec(step, 1..4).prop_map(OfferedRate::Steps),
            proptest::collection::vec(0.0..3.0f64, 1..300).prop_map(|mut times| {
                times.sort_by(f64::total_cmp);
                OfferedRate::Replay(times)
            }),
        ]
    }

    proptest! {
        #[test]
        fn the_parts_of_a_load_are_together_the_load_of_one_client(
            threads in proptest::collection::vec(1u32..5, 1..6),
            connections in 1u32..60,
            more in 0u32..30,
            requests in 1u64..1_000,
            rate in rates(),
            poisson: bool,
            seed: u64,
        ) {
            let arrivals = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
            let parts: Vec<Part> = Part::deal(&threads, connections).into_iter().filter(|part| part.threads > 0).collect();
            let all = parts.iter().map(|part| part.threads).sum();
            let open = LoadKind::Open { rate, arrivals };
            for kind in [LoadKind::Closed, LoadKind::Count { requests }, open] {
                let max_connections = kind.is_open().then_some(connections + more);
                let whole = LoadSpec {
                    kind, connections, max_connections, threads: all, seed, warmup_s: 0.3, duration_s: 2.0,
                    connect_rate: Some(100.0), ..spec()
                };
                let one = plan(&whole);
                let several: Vec<Plan> =
                    parts.iter().map(|part| plan(&LoadSpec { part: Some(*part), ..whole.clone() })).collect();
                prop_assert_eq!(several.iter().flat_map(dealt).collect::<Vec<_>>(), dealt(&one));
                let numbers = |share: &Share| (0..share.connections + share.more).map(|n| share.number(n)).collect::<Vec<_>>();
                let mut used: Vec<u32> = several.iter().flat_map(|plan| plan.shares.iter().flat_map(numbers)).collect();
                used.sort_unstable();
                prop_assert_eq!(used, (0..max_connections.unwrap_or(connections)).collect::<Vec<_>>());
                let tries: f64 = several.iter().flat_map(|plan| plan.shares.iter().map(|_| 1e9 / plan.connect_gap.unwrap())).sum();
                prop_assert!((tries - 100.0).abs() < 1e-6, "{} a second", tries);
                for plan in &several {
                    prop_assert_eq!(plan.shares.iter().map(|share| share.local).collect::<Vec<_>>(), (0..plan.threads).collect::<Vec<_>>());
                }
                if one.timetable.is_some() {
                    prop_assert_eq!(several.iter().flat_map(due).collect::<Vec<_>>(), due(&one));
                }
            }
        }
    }

    #[test]
    fn a_host_that_needs_more_threads_for_its_part_is_told() {
        let part = Part { first_thread: 2, threads: 1 };
        let text = too_few_threads(part, 3, 90_000);
        assert!(text.contains("part has 1 threads") && text.contains("90000 connections only with 3"), "{text}");
    }

    #[test]
    fn no_more_threads_than_connections_and_one_for_each_cpu_unless_told() {
        let mut spec = spec();
        spec.connections = 3;
        spec.threads = 8;
        assert_eq!(plan(&spec).threads, 3);
        spec.threads = 0;
        assert_eq!(plan(&spec).threads, 1);
        spec.cpus = vec![0, 1];
        assert_eq!(plan(&spec).threads, 2);
    }

    #[test]
    fn targets_take_turns_and_each_has_its_sources() {
        let mut spec = spec();
        spec.targets.push(Target { address: Endpoint::Unix("/run/x".into()), authority: "x".into() });
        spec.requests.push(spec.requests[0].clone());
        spec.requests[1].target = 1;
        spec.connections = 8;
        // 2 ports and 1 of them left to others.
        let plan = Plan::new(&spec, &Resources { ports: (40_000, 40_001), ..Resources::unlimited() }).unwrap();
        let to: Vec<String> = (0..4).map(|k| plan.target(k).address.to_string()).collect();
        assert_eq!(to, ["127.0.0.1:1", "unix:/run/x", "127.0.0.1:1", "unix:/run/x"]);
        let from: Vec<_> = (0..8).step_by(2).map(|k| plan.source(k, 0).unwrap().to_string()).collect();
        assert_eq!(from.len(), 4);
        assert!(from.windows(2).all(|pair| pair[0] != pair[1]), "{from:?}");
        assert_eq!(plan.source(1, 0), None);
    }
}
