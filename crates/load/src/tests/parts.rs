//! Several clients make one load: what they do together is what one would have done, and they begin together.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use weir_model::At;
use weir_model::keyvalue::{KeyChoice, KeyValue};
use weir_model::load::{LoadProtocol, Part, RequestSpec};

use super::keyvalue_server::{self, Speaks};
use super::server::{Do, answer, ok};
use super::*;
use crate::clock::MILLI;
use crate::{ClientOutput, Gate, Progress, merge, run_gated};

/// When a start is that is this far ahead.
fn in_ms(ms: u64) -> At {
    At { mono_ns: weir_net::monotonic_ns() + ms * MILLI, unix_ns: 1_700_000_000_123_000_000 }
}

/// Runs clients with so many threads each, lets all begin when all are ready, and merges what they found.
fn clients(spec: &LoadSpec, threads: &[u32], folder: &Path) -> LoadResult {
    let parts = Part::deal(threads, spec.connections);
    let whole = LoadSpec { threads: parts.iter().map(|part| part.threads).sum(), ..spec.clone() };
    let (ready, readies) = channel();
    let outputs: Vec<ClientOutput> = std::thread::scope(|scope| {
        let mut starters = Vec::new();
        let running: Vec<_> = (0..)
            .zip(parts)
            .map(|(number, part)| {
                let (starter, gate) = channel();
                starters.push(starter);
                let (spec, ready) = (LoadSpec { part: Some(part), ..whole.clone() }, ready.clone());
                let log = folder.join(format!("{number}.hlog"));
                scope.spawn(move || {
                    let outputs = Outputs { hlog: Some(log.clone()), series: None };
                    let mut see = |news| {
                        if news == Progress::Ready {
                            ready.send(()).unwrap();
                        }
                    };
                    let result = run_gated(&spec, &outputs, Some(&gate), &StopFlag::new(), &mut see).unwrap();
                    balanced(&result);
                    ClientOutput { host: format!("client-{number}"), result, log }
                })
            })
            .collect();
        for _ in &running {
            readies.recv_timeout(Duration::from_secs(60)).expect("every client gets ready");
        }
        let start = in_ms(300);
        starters.iter().for_each(|starter| starter.send(start).unwrap());
        running.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let files = Outputs { hlog: Some(folder.join("latency.hlog")), series: Some(folder.join("load.csv")) };
    let result = merge(&outputs, &files).unwrap();
    balanced(&result);
    assert_eq!(result.hosts.len(), threads.len());
    let of_all = |f: fn(&LoadResult) -> u64| outputs.iter().map(|output| f(&output.result)).sum::<u64>();
    assert_eq!(result.connect.count, of_all(|result| result.connect.count));
    assert_eq!(result.window.sent, of_all(|result| result.window.sent));
    let read: Vec<weir_model::load::LoadSecond> =
        csv::Reader::from_path(folder.join("load.csv")).unwrap().deserialize().map(Result::unwrap).collect();
    assert_eq!(read, result.series);
    result
}

#[test]
fn clients_that_begin_together_make_the_load_of_one() {
    let ramp = LoadKind::Open { rate: OfferedRate::Ramp { from: 50.0, to: 450.0 }, arrivals: Arrivals::Constant };
    at_once(&[constant(500.0), LoadKind::open(500.0, Arrivals::Poisson), ramp], |kind| {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(|_| Do::Send(ok("hello")));
        let mut spec = order(&server, kind);
        (spec.connections, spec.threads, spec.warmup_s, spec.duration_s) = (7, 4, 0.5, 2.0);
        let one = load(&spec).unwrap();
        let several = clients(&spec, &[1, 2, 1], folder.path());
        assert_eq!((several.window.due, several.total.due), (one.window.due, one.total.due));
        assert_eq!(several.offered_rate, one.offered_rate);
        let due = |result: &LoadResult| result.series.iter().map(|row| row.due).collect::<Vec<_>>();
        assert_eq!(due(&several), due(&one), "second by second");
        assert_eq!(several.series.last().and_then(|row| row.connections_open), Some(7));
        assert_eq!((several.total.connections, several.most_open, several.threads), (7, 7, 4));
        assert_eq!(several.window_start_ms, 1_700_000_000_623, "the wall clock of the start that was sent");
        assert_eq!(server.connections(), 14);
        assert_eq!(server.requests(), one.total.sent + several.total.sent);
    });
}

#[test]
fn a_counted_load_is_dealt_out_too() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(|_| Do::Send(ok("hello")));
    let mut spec = order(&server, LoadKind::Count { requests: 1_003 });
    (spec.connections, spec.duration_s) = (5, 30.0);
    let result = clients(&spec, &[2, 1], folder.path());
    assert_eq!((server.requests(), result.window.right, result.total.sent), (1_003, 1_003, 1_003));
    assert_eq!(server.connections(), 5);
    assert_eq!(result.hosts.iter().map(|host| host.connections).collect::<Vec<_>>(), [4, 1]);
    assert_eq!(result.hosts.iter().map(|host| host.right).collect::<Vec<_>>(), [669, 334]);
}

/// Keys are written by whichever client, and belong to whichever connection: no read may find another's.
#[test]
fn keys_that_another_client_wrote_are_found() {
    let known = |keys| KeyValue {
        keys,
        key_count: Some(200),
        operations: "G:5,U:2,S:1,D:1".parse().unwrap(),
        ..KeyValue::default()
    };
    let choices = [
        KeyValue { preload: 200, ttl: Some(Duration::from_secs(1_800)), ..known(KeyChoice::Uniform) },
        KeyValue { preload: 200, share: true, ..known(KeyChoice::Zipf(1.2)) },
        // Fewer keys than clients have threads.
        KeyValue { preload: 2, ..known(KeyChoice::Sequential) },
        KeyValue { operations: "C:2,G:5,D:1".parse().unwrap(), ..KeyValue::default() },
    ];
    at_once(&choices, |keyvalue| {
        let folder = tempfile::tempdir().unwrap();
        let server = keyvalue_server::Server::start(Speaks::Redis { replicas: 1 }, |_| keyvalue_server::Do::Right);
        let mut spec = LoadSpec {
            requests: RequestSpec::operations(&keyvalue.operations),
            protocol: LoadProtocol::Redis { pipeline: 4 },
            keyvalue: Some(keyvalue.clone()),
            ..order_to(server.addr, LoadKind::Count { requests: 3_000 })
        };
        (spec.connections, spec.duration_s) = (6, 60.0);
        let result = clients(&spec, &[1, 2, 1], folder.path());
        assert_eq!(result.total.errors.len(), 0, "{keyvalue:?}: {:?}", result.total);
        let preloaded = result.preload.as_ref().map_or(0, |counts| counts.right);
        assert_eq!((preloaded, result.total.right), (keyvalue.preload, 3_000 + keyvalue.preload));
        let latencies: u64 = result.by_request.iter().map(|request| request.latency.count).sum();
        assert_eq!(latencies, 3_000);
    });
}

#[test]
fn the_statuses_of_all_clients_are_merged() {
    let server = Server::start(|asked| Do::Send(if asked.number % 4 == 0 { answer(404, "") } else { ok("hello") }));
    let mut spec = order(&server, LoadKind::Count { requests: 400 });
    (spec.connections, spec.duration_s) = (6, 60.0);
    let folder = tempfile::tempdir().unwrap();
    let result = clients(&spec, &[1, 2, 1], folder.path());
    let counts: Vec<(&str, u64)> = result.by_status.iter().map(|(status, q)| (status.as_str(), q.count)).collect();
    assert_eq!(counts, [("200", 300), ("404", 100)]);
}

#[test]
fn a_start_that_comes_too_late_says_by_how_much() {
    let server = Server::start(|_| Do::Send(ok("hello")));
    let spec = order(&server, constant(10.0));
    let (starter, gate) = channel();
    let mut late = in_ms(0);
    late.mono_ns -= 2_000 * MILLI;
    starter.send(late).unwrap();
    let error = run_gated(&spec, &Outputs::default(), Some(&gate), &StopFlag::new(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, LoadError::Late { by_ns, .. } if by_ns >= 2_010 * MILLI), "{error:?}");
    let text = error.to_string();
    let said = text.strip_prefix("the order to start came 20").expect(&text);
    assert!(said.contains(" ms too late (workers have to know 10 ms ahead)"), "{text}");
    assert_eq!(server.requests(), 0, "nothing is sent for it");
}

#[test]
fn a_load_that_waits_sends_nothing_and_can_be_stopped() {
    let server = Server::start(|_| Do::Send(ok("hello")));
    let spec = order(&server, LoadKind::Closed);
    let (_starter, gate): (_, Gate) = channel();
    let stop = StopFlag::new();
    let begun = Instant::now();
    let error = std::thread::scope(|scope| {
        let (ready, readies) = channel();
        let (spec, stop) = (&spec, &stop);
        let client = scope.spawn(move || {
            let mut see = |news| {
                if news == Progress::Ready {
                    ready.send(()).unwrap();
                }
            };
            run_gated(spec, &Outputs::default(), Some(&gate), stop, &mut see)
        });
        readies.recv_timeout(Duration::from_secs(60)).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!((server.connections(), server.requests()), (4, 0));
        stop.set();
        client.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, LoadError::Stopped), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(60));
}
