//! Several clients make one load: what they do together is what one would have done, and they begin together.

use std::path::Path;
use std::time::Duration;

use weir_load::{ClientOutput, LoadError, Outputs, Progress, StopFlag, load_tasks, merge};
use weir_model::At;
use weir_model::keyvalue::{KeyChoice, KeyValue};
use weir_model::load::{LoadResult, LoadSecond, LoadSpec, OfferedRate, Part};
use weir_model::suite::{Arrivals, LoadKind};
use weir_net::sim::World;

use crate::keyvalue;
use crate::script::Do;
use crate::servers::{http, ok, response};
use crate::store::{self, Speaks};
use crate::world::*;

/// The wall clock of the start that is sent.
const START_UNIX: u64 = 1_700_000_000_123_000_000;

/// Turns clients until each has a result or, if `ready`, waits for its start.
fn turn_all(world: &World, clients: &mut [Client], ready: bool) {
    loop {
        let turns = clients.iter_mut().map(|client| client.turn(world, &StopFlag::new(), &mut |_| ()).unwrap());
        let Some(until) = turns.flatten().min() else { return };
        if ready && clients.iter().all(|client| client.controller.is_ready()) {
            return;
        }
        world.run_to(until);
    }
}

/// A part of a load, gated.
fn client(world: &World, spec: &LoadSpec, outputs: &Outputs, preloaded: Option<Duration>) -> Client {
    let now = world.now();
    Client::with(world, load_tasks(spec, outputs, true, preloaded, now, now).unwrap())
}

/// Runs clients with so many threads each, lets all begin when all are ready, and merges what they found.
fn clients(world: &World, spec: &LoadSpec, threads: &[u32], folder: &Path) -> LoadResult {
    let parts = Part::deal(threads, spec.connections);
    let whole = LoadSpec { threads: parts.iter().map(|part| part.threads).sum(), ..spec.clone() };
    let specs: Vec<LoadSpec> = parts.iter().map(|part| LoadSpec { part: Some(*part), ..whole.clone() }).collect();
    let logs: Vec<_> = (0..specs.len()).map(|number| folder.join(format!("{number}.hlog"))).collect();
    let begun = world.now();
    let mut preloads: Vec<Option<LoadResult>> = specs.iter().map(|spec| preload(world, spec).unwrap()).collect();
    let took = Some(Duration::from_nanos(world.now() - begun)).filter(|took| !took.is_zero());
    let out = |log: &std::path::PathBuf| Outputs { hlog: Some(log.clone()), series: None };
    let mut running: Vec<Client> =
        specs.iter().zip(&logs).map(|(spec, log)| client(world, spec, &out(log), took)).collect();
    turn_all(world, &mut running, true);
    let start = At { mono_ns: world.now() + 300 * MS, unix_ns: START_UNIX };
    running.iter_mut().for_each(|one| one.controller.start_at(start, world.now()).unwrap());
    turn_all(world, &mut running, false);
    let output = |((number, client), log): ((usize, Client), _)| {
        let mut result = client.controller.finish(&mut |_| ()).unwrap();
        if let Some(first) = preloads[number].take() {
            weir_load::add_preload(&mut result, first);
        }
        balanced(&result);
        ClientOutput { host: format!("client-{number}"), result, log }
    };
    let outputs: Vec<ClientOutput> = running.into_iter().enumerate().zip(logs).map(output).collect();
    let files = Outputs { hlog: Some(folder.join("latency.hlog")), series: Some(folder.join("load.csv")) };
    let result = merge(&outputs, &files).unwrap();
    balanced(&result);
    assert_eq!(result.hosts.len(), threads.len());
    let of_all = |f: fn(&LoadResult) -> u64| outputs.iter().map(|output| f(&output.result)).sum::<u64>();
    assert_eq!(result.connect.count, of_all(|result| result.connect.count));
    assert_eq!(result.window.sent, of_all(|result| result.window.sent));
    let mut csv = csv::Reader::from_path(folder.join("load.csv")).unwrap();
    let rows: Vec<LoadSecond> = csv.deserialize().map(Result::unwrap).collect();
    assert_eq!(rows, result.series);
    result
}

#[test]
fn clients_that_begin_together_make_the_load_of_one() {
    let ramp = LoadKind::Open { rate: OfferedRate::Ramp { from: 50.0, to: 450.0 }, arrivals: Arrivals::Constant };
    for kind in [constant(500.0), LoadKind::open(500.0, Arrivals::Poisson), ramp] {
        let (world, folder) = (world(), tempfile::tempdir().unwrap());
        let server = http(&world, |_| ok("hello"));
        let mut spec = LoadSpec { connections: 7, threads: 4, ..order(server.addr, kind) };
        (spec.warmup_s, spec.duration_s) = (0.5, 2.0);
        let one = load(&world, &spec).unwrap();
        let several = clients(&world, &spec, &[1, 2, 1], folder.path());
        assert_eq!((several.window.due, several.total.due), (one.window.due, one.total.due));
        assert_eq!(several.offered_rate, one.offered_rate);
        assert_eq!(several.series, one.series, "second by second");
        assert_eq!(several.latency, one.latency);
        assert_eq!((several.total.connections, several.most_open, several.threads), (7, 7, 4));
        assert_eq!(several.window_start_ms, START_UNIX / MS + 500);
        let asked: Vec<u64> = server.seen().asked.iter().map(|(_, at)| *at).collect();
        let (first, second) = asked.split_at(one.total.sent as usize);
        let since = |all: &[u64]| all.iter().map(|at| at - all[0]).collect::<Vec<_>>();
        assert_eq!(since(first), since(second), "request by request");
    }
}

#[test]
fn a_counted_load_is_dealt_out_too() {
    let (world, folder) = (world(), tempfile::tempdir().unwrap());
    let server =
        http(&world, |asked| if asked.number % 4 == 0 { vec![Do::Send(response(404, ""))] } else { ok("hello") });
    let spec = LoadSpec { connections: 5, duration_s: 30.0, ..order(server.addr, counted(1_000)) };
    let result = clients(&world, &spec, &[2, 1], folder.path());
    assert_eq!([server.requests(), result.total.sent, result.window.successful], [1_000, 1_000, 750]);
    let of_hosts: Vec<_> = result.hosts.iter().map(|host| (host.connections, host.sent)).collect();
    assert_eq!(of_hosts, [(4, 667), (1, 333)]);
    assert_eq!(server.connections(), 5);
    let statuses: Vec<_> = result.by_status.iter().map(|(status, of)| (status.as_str(), of.count)).collect();
    assert_eq!(statuses, [("200", 750), ("404", 250)]);
}

/// Keys are written by whichever client, and belong to whichever connection: no read may find another's.
#[test]
fn keys_that_another_client_wrote_are_found() {
    let known = |keys| KeyValue { keys, key_count: Some(200), ..keyvalue::mix("G:5,U:2,S:1,D:1") };
    for keyvalue in [
        KeyValue { preload: 200, ttl: Some(Duration::from_secs(1_800)), ..known(KeyChoice::Uniform) },
        KeyValue { preload: 200, share: true, ..known(KeyChoice::Zipf(1.2)) },
        // Fewer keys than clients have threads.
        KeyValue { preload: 2, ..known(KeyChoice::Sequential) },
        keyvalue::mix("C:2,G:5,D:1"),
    ] {
        let (world, folder) = (world(), tempfile::tempdir().unwrap());
        let speaks = Speaks::Redis { replicas: 1 };
        let (server, _) = store::start(&world, speaks, |_| store::Do::Right);
        let spec = keyvalue::order(&server, speaks, keyvalue.clone());
        let spec = LoadSpec { connections: 6, kind: counted(3_000), ..spec };
        let result = clients(&world, &spec, &[1, 2, 1], folder.path());
        assert_eq!(errors(&result.total), [], "{keyvalue:?}");
        let preloaded = result.preload.as_ref().map_or(0, |counts| counts.successful);
        assert_eq!((preloaded, result.total.successful), (keyvalue.preload, 3_000 + keyvalue.preload));
        assert_eq!(result.by_request.iter().map(|request| request.latency.count).sum::<u64>(), 3_000);
    }
}

#[test]
fn a_load_that_waits_sends_nothing_says_how_late_its_start_comes_and_can_be_stopped() {
    let world = world();
    let server = http(&world, |_| ok("hello"));
    let spec = order(server.addr, LoadKind::Closed);
    let (mut client, stop) = (client(&world, &spec, &Outputs::default(), None), StopFlag::new());
    let mut news = Vec::new();
    while world.now() < 2 * SECOND {
        let until = client.turn(&world, &stop, &mut |one| news.push(one)).unwrap();
        world.run_to(until.unwrap());
    }
    assert_eq!((news.last(), server.connections(), server.requests()), (Some(&Progress::Ready), 4, 0));
    let late = At { mono_ns: world.now() - SECOND, unix_ns: 0 };
    let error = client.controller.start_at(late, world.now()).unwrap_err();
    assert!(matches!(error, LoadError::Late { by_ns, .. } if by_ns == SECOND + 10 * MS), "{error:?}");
    let text = "the order to start came 1010.0 ms too late (workers have to know 10 ms ahead)";
    assert!(error.to_string().starts_with(text), "{error}");
    stop.set();
    let error = client.turn(&world, &stop, &mut |_| ()).unwrap_err();
    assert!(matches!(error, LoadError::Stopped) && server.requests() == 0, "{error}");
}
