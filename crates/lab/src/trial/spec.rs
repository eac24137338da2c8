//! The load for the client, from the case and the point. The series of a trial calls it.

use std::net::SocketAddr;

use weir_model::fault::Fault;
use weir_model::gateway::Filter;
use weir_model::keyvalue::ValueSize;
use weir_model::load::{
    Feed, FeedOrder, LoadProtocol, LoadSpec, PacedMessages, RandomDuration, RequestIds, RequestSpec, SlowClientsSpec,
    StreamKind, StreamSpec, Target,
};
use weir_model::protocol::Application;
use weir_model::suite::{Expect, LoadKind};

use super::points::PointSpec;
use super::{Trial, TrialSpec, client_folder};
use weir_product::consumers::{CONSUMERS, credential, credential_header, refused_request};
use weir_product::failure::Failure;

/// Requests that a filter lets pass for each that it refuses.
const PASSED_A_REFUSED: u32 = 100;

/// The load of one point.
pub fn load_spec(
    trial: &Trial<'_>,
    point: &PointSpec,
    target: SocketAddr,
    expect: &Expect,
) -> Result<LoadSpec, Failure> {
    let context = trial.context;
    let protocol = trial.spec.workload.protocol;
    let authority = context.launcher.wire_protocol(protocol)?.at(target).authority();
    let kind = match (&trial.spec.load.kind, point.rate) {
        (LoadKind::Open { arrivals, .. }, Some(rate)) => LoadKind::open(rate, *arrivals),
        (LoadKind::Count { requests }, _) => LoadKind::Count { requests: *requests },
        // A search sets its rates one after another.
        (LoadKind::Closed | LoadKind::Search { .. } | LoadKind::Open { .. }, _) => LoadKind::Closed,
    };
    let expected = match trial.spec.workload.stream {
        Some(kind) => kind.expected(expect.clone()),
        None => expect.clone(),
    };
    let mut plain = LoadSpec::new(
        Target::tcp(target, authority),
        trial.spec.workload.sent_request(Some(trial.spec.load.timeout)),
        expected,
    );
    let gateway = &trial.spec.workload.gateway;
    let mut routed = false;
    for one in &mut plain.requests {
        routed = gateway.spread_over_routes(&mut one.request);
        one.template |= routed;
    }
    if routed {
        let table = Feed::new(vec!["route".to_owned()], gateway.route_table());
        plain.feed = table.map(|table| table.in_order(FeedOrder::Random(context.seed)));
    }
    if let Some(filter) = gateway.filter {
        add_filtered(&mut plain, filter, context.seed);
    }
    let mut keyvalue = trial.spec.workload.keyvalue.clone();
    let value = trial.spec.load.values.get(point.point.saturating_sub(1) as usize);
    if let (Some(keyvalue), Some(value)) = (&mut keyvalue, value) {
        keyvalue.value = ValueSize::Fixed(*value);
    }
    let requests = match &keyvalue {
        Some(keyvalue) => RequestSpec::operations(&keyvalue.operations),
        None => plain.requests.clone(),
    };
    let is_broadcast = trial.spec.workload.is_broadcast();
    let tls = protocol.is_tls().then(|| trial.tls()).transpose()?;
    let tls = tls.map(|tls| tls.client_spec(protocol, &client_folder(context.hosts.client().as_ref(), trial.spec)));
    Ok(LoadSpec {
        requests,
        keyvalue,
        warmup_s: if kind.has_warmup() { trial.spec.load.warmup.as_secs_f64() } else { 0.0 },
        kind,
        protocol: LoadProtocol::of(protocol, trial.spec.load.streams),
        tls,
        request_ids: ids(trial),
        accept_encoding: trial.spec.workload.accept_encoding,
        stream: trial.spec.workload.stream.map(|kind| StreamSpec { kind, one_clock: context.hosts.one_clock() }),
        cancel_each: trial.spec.workload.cancel_each,
        changes: trial.spec.load.last_change(),
        slow_clients: slow_clients(trial)?,
        connections: point.connections,
        connection_close: trial.spec.load.close && protocol.application() == Application::Http1,
        requests_per_connection: (trial.spec.load.close && protocol.application() != Application::Http1).then_some(1),
        threads: if is_broadcast { 1 } else { (context.placement.client.len() as u32).min(point.connections) },
        cpus: context.placement.client.clone(),
        real_time: is_real_time(trial),
        duration_s: trial.spec.load.duration.as_secs_f64(),
        timeout_s: trial.spec.load.timeout.as_secs_f64(),
        connect_timeout_s: trial.spec.load.connect_timeout.map(|timeout| timeout.as_secs_f64()),
        leave_queue: trial.spec.load.leaves_queue(),
        seed: seed(context.seed, trial.spec.planned.block, point.point),
        driver: context.driver,
        ..plain
    })
}

/// The slow clients that the load is to have.
fn slow_clients(trial: &Trial<'_>) -> Result<Vec<SlowClientsSpec>, Failure> {
    let slow: Vec<SlowClientsSpec> = trial.spec.load.faults.iter().filter_map(Fault::slow_clients).collect();
    if !slow.is_empty() && trial.context.origin.is_some() {
        let found = "the load has slow clients, whose requests only weir's own origin knows";
        return Err(Failure::at("load", found, "", "no --origin"));
    }
    Ok(slow)
}

/// Gives requests the keys of a filter's consumers, at random, and adds the one that it refuses.
fn add_filtered(plain: &mut LoadSpec, filter: Filter, seed: u64) {
    let refused: Vec<RequestSpec> = plain
        .requests
        .iter()
        .filter_map(|one| {
            let request = refused_request(filter, &one.request)?;
            let expect = Expect { status: filter.refusal(), any_body: true, ..Expect::default() };
            Some(RequestSpec { request, expect, weight: 1, ..one.clone() })
        })
        .collect();
    if let Some(name) = credential_header(filter) {
        let values = (0..CONSUMERS).map(|consumer| credential(filter, consumer)).collect();
        plain.feed = Feed::new(vec!["key".to_owned()], values).map(|table| table.in_order(FeedOrder::Random(seed)));
        for one in &mut plain.requests {
            one.template = true;
            one.request.headers.push((name.to_owned(), "{{key}}".to_owned()));
        }
    }
    if !refused.is_empty() {
        plain.requests.iter_mut().for_each(|one| one.weight = PASSED_A_REFUSED);
    }
    plain.requests.extend(refused);
}

/// The mean time that a request waits by intent, seconds, which is the origin's delay. It is unknown where products respond
/// themselves or the origin injects faults.
pub fn intended_wait_s(trial: &TrialSpec<'_>) -> Option<f64> {
    let workload = trial.workload;
    if workload.by_product || workload.request.path.contains("fault=") {
        return None;
    }
    let (path, query) = workload.request.path.split_once('?').unwrap_or((&workload.request.path, ""));
    if let Some(paced) = PacedMessages::of(&workload.request.path) {
        return paced.ok().map(PacedMessages::length_s);
    }
    if workload.stream.is_some_and(StreamKind::in_responses) {
        return stream_s(path, query);
    }
    let delays =
        path.strip_prefix("/delay/").into_iter().chain(query.split('&').filter_map(|key| key.strip_prefix("delay=")));
    delays.map(|text| text.parse().ok().map(RandomDuration::mean_s)).sum()
}

/// The mean time that a stream of weir's origin takes, seconds. A call with one response has that at once.
fn stream_s(path: &str, query: &str) -> Option<f64> {
    let at_once = path.ends_with("/Unary") || path.ends_with("/ClientStream");
    let (messages, first, every) = if at_once { ("1", 0.0, 0.0) } else { ("64", 0.2, 0.02) };
    let value = |key: &str| query.split('&').rev().find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
    let mean = |key, default: f64| {
        value(key).map_or(Some(default), |text| Some(text.parse::<RandomDuration>().ok()?.mean_s()))
    };
    let messages: f64 = value("messages").unwrap_or(messages).parse().ok()?;
    Some(mean("delay", 0.0)? + mean("first", first)? + mean("every", every)? * (messages - 1.0))
}

/// The IDs of the requests: only weir's own origin answers them.
fn ids(trial: &Trial<'_>) -> Option<RequestIds> {
    let context = trial.context;
    let header = trial
        .spec
        .workload
        .request_id_header()
        .filter(|_| context.origin.is_none() && !trial.spec.workload.by_product)?;
    Some(RequestIds {
        key: context.response_key,
        rewritten: trial.spec.workload.gateway.rewritten().unwrap_or_default().to_owned(),
        ..RequestIds::new(header, context.load_numbers.next(), context.hosts.one_clock())
    })
}

/// Requests a second of each of the client's CPUs up to which its thread sleeps between requests: it wakes 50 us before each is due. Beyond
/// it, a real-time thread would leave nothing to weir's other threads: at 18,000/s on a shared CPU the watch of CPU and memory came late.
const SLEEPS_BETWEEN: f64 = 10_000.0;

/// Whether client and origin run before the ordinary processes of their CPUs: in open loads whose rate leaves both time to spare, and
/// only where the proxy has CPUs of its own. Closed loads may use all of a CPU that weir's other threads need, too.
pub fn is_real_time(trial: &Trial<'_>) -> bool {
    let placement = &trial.context.placement;
    let pinned = !placement.client.is_empty() && !placement.origin.is_empty() && !placement.proxy.is_empty();
    let spare = trial.spec.most_rate().is_some_and(|rate| rate <= SLEEPS_BETWEEN * placement.client.len() as f64);
    matches!(trial.spec.load.kind, LoadKind::Open { .. })
        && spare
        && pinned
        && placement.sharing_with_proxy().is_empty()
}

/// The seed of the arrivals: the same for every product of a block, so that all get the same load; another one at every point.
fn seed(run: u64, block: u32, point: u32) -> u64 {
    run ^ u64::from(block) ^ (u64::from(point.saturating_sub(1)) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_takes_as_long_as_its_target_says() {
        let near =
            |path: &str, query: &str, seconds: f64| (stream_s(path, query).expect("a target") - seconds).abs() < 1e-9;
        assert!(near("/stream", "", 0.2 + 63.0 * 0.02));
        assert!(near("/stream", "messages=11&every=10ms..30ms&first=1s&delay=2s&size=300", 3.2));
        assert!(near("/weir.Echo/ServerStream", "messages=1", 0.2));
        assert!(near("/weir.Echo/Unary", "", 0.0) && near("/weir.Echo/ClientStream", "requests=16&delay=10ms", 0.01));
        assert_eq!(stream_s("/stream", "every=often"), None);
    }
}
