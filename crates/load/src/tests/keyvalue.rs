//! Loads of keys and values against servers that answer right, and against servers that lie: each lie is counted as what it
//! is, and nothing else is.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_model::keyvalue::{KeyChoice, KeyValue, Operation, ValueSize};
use weir_model::load::{ErrorKind, LoadProtocol, LoadResult, LoadSpec, Login, RequestSpec, Target};
use weir_model::suite::{Expect, LoadKind, Request};

use super::keyvalue_server::{Do, Server, Speaks};
use super::{DRIVERS, at_once, constant, load, server};
use crate::LoadError;

const REDIS: Speaks = Speaks::Redis { replicas: 1 };

const ALL: [Speaks; 3] = [REDIS, Speaks::Juno, Speaks::Memcached];

const MIX: &str = "C:2,G:5,U:2,S:1,D:1";

fn order(server: &Server, speaks: Speaks, keyvalue: KeyValue) -> LoadSpec {
    let target = Target::tcp(server.addr, "store");
    LoadSpec {
        requests: RequestSpec::operations(&keyvalue.operations),
        protocol: match speaks {
            Speaks::Redis { .. } => LoadProtocol::Redis { pipeline: 4 },
            Speaks::Juno => LoadProtocol::Juno { streams: 4 },
            Speaks::Memcached => LoadProtocol::Memcached { pipeline: 4 },
        },
        keyvalue: Some(keyvalue),
        kind: LoadKind::Count { requests: 4_000 },
        connections: 4,
        duration_s: 60.0,
        timeout_s: 5.0,
        ..LoadSpec::new(target, Request::default(), Expect::default())
    }
}

fn keyvalue(mix: &str) -> KeyValue {
    KeyValue { operations: mix.parse().unwrap(), ..KeyValue::default() }
}

/// All choices of keys, with and without those that were written before.
fn choices() -> Vec<KeyValue> {
    let known = |keys| KeyValue { keys, key_count: Some(200), ..keyvalue(MIX) };
    vec![
        keyvalue(MIX),
        keyvalue("set:1,get:1"),
        KeyValue { preload: 100, ..keyvalue("G:5,D:1") },
        known(KeyChoice::Sequential),
        KeyValue { preload: 150, value: ValueSize::Uniform(20, 3_000), ..known(KeyChoice::Uniform) },
        KeyValue { preload: 200, ttl: Some(Duration::from_secs(1_800)), ..known(KeyChoice::Zipf(0.99)) },
        KeyValue { preload: 200, share: true, ..known(KeyChoice::Zipf(1.2)) },
        KeyValue { share: true, ..known(KeyChoice::Sequential) },
    ]
}

fn kinds(result: &LoadResult) -> BTreeSet<ErrorKind> {
    result.total.errors.keys().copied().collect()
}

#[test]
fn a_right_server_is_never_blamed() {
    for speaks in ALL {
        at_once(&choices(), |keyvalue| {
            for driver in DRIVERS {
                for recycled in [None, Some(7)] {
                    let server = Server::start(speaks, |_| Do::Right);
                    let mut spec = order(&server, speaks, keyvalue.clone());
                    (spec.driver, spec.threads, spec.requests_per_connection) = (driver, 2, recycled);
                    let result = load(&spec).unwrap();
                    let name = format!("{speaks:?} {driver:?} {keyvalue:?}");
                    assert_eq!(kinds(&result), BTreeSet::new(), "{name}: {:?}", result.total);
                    assert_eq!(result.window.right, 4_000, "{name}");
                    let memory = server.memory.lock().unwrap();
                    assert_eq!(memory.requests, result.total.sent, "{name}: also those of the preload");
                    assert_eq!(memory.pings, result.total.connections, "{name}");
                    let preloaded = result.preload.as_ref().map_or(0, |counts| counts.right);
                    assert_eq!((preloaded, result.total.right), (keyvalue.preload, 4_000 + keyvalue.preload), "{name}");
                    let by_operation: u64 = result.by_request.iter().map(|r| r.latency.count).sum();
                    assert_eq!(by_operation, 4_000, "{name}");
                }
            }
        });
    }
}

#[test]
fn operations_come_in_turn_and_as_often_as_the_mix_says() {
    for speaks in ALL {
        let server = Server::start(speaks, |_| Do::Right);
        let mut spec = order(&server, speaks, keyvalue("C:10,G:30,D:5"));
        spec.connections = 1;
        spec.kind = LoadKind::Count { requests: 45 * 20 };
        let result = load(&spec).unwrap();
        let sent: Vec<_> = result.by_request.iter().map(|r| (r.name.as_str(), r.sent)).collect();
        assert_eq!(sent, [("create", 200), ("get", 600), ("destroy", 100)]);
        // There were always keys to be read and destroyed.
        assert_eq!(server.memory.lock().unwrap().now.len(), 100);
        let values: u64 = result.total.body_bytes;
        assert_eq!(values, 600 * 100, "{:?}", result.total.statuses);
    }
}

/// A lie on one in twenty of the requests that `on` chooses, and what is counted.
fn lies(speaks: Speaks, keyvalue: KeyValue, what: Do, on: fn(Operation) -> bool) -> LoadResult {
    let server = Server::start(
        speaks,
        move |asked| {
            if asked.number % 20 == 13 && on(asked.operation) { what } else { Do::Right }
        },
    );
    let mut spec = order(&server, speaks, keyvalue);
    spec.threads = 2;
    load(&spec).unwrap()
}

#[test]
fn each_lie_is_counted_as_what_it_is_and_nothing_else_is() {
    use ErrorKind::{Busy, ClosedEarly, Lost, Protocol, Redirected, Refused, Resurrected, Stale, WrongValue};
    type On = fn(Operation) -> bool;
    let reads: On = |operation| operation == Operation::Get;
    let writes: On = Operation::writes;
    let creates: On = |operation| operation == Operation::Create;
    let all: On = |_| true;
    let known =
        KeyValue { keys: KeyChoice::Uniform, key_count: Some(40), preload: 40, ..keyvalue("C:1,G:5,U:2,S:1,D:2") };
    let cases: &[(KeyValue, Do, On, &[ErrorKind])] = &[
        (keyvalue(MIX), Do::Lose, creates, &[Lost]),
        // A lost update is read as the version before.
        (keyvalue(MIX), Do::Lose, writes, &[Stale, Lost]),
        (keyvalue(MIX), Do::Stale, reads, &[Stale]),
        (known.clone(), Do::Resurrect, reads, &[Resurrected]),
        (keyvalue(MIX), Do::OtherKey, reads, &[WrongValue]),
        (keyvalue(MIX), Do::Corrupt, reads, &[WrongValue]),
        (KeyValue { share: true, ..known.clone() }, Do::Corrupt, reads, &[WrongValue]),
        (keyvalue(MIX), Do::Busy, all, &[Busy]),
        (keyvalue(MIX), Do::Refuse, all, &[Refused]),
        (keyvalue(MIX), Do::Redirect, all, &[Redirected]),
        (keyvalue(MIX), Do::Say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), all, &[Protocol]),
        (keyvalue(MIX), Do::CloseMidway, all, &[ClosedEarly]),
        (keyvalue(MIX), Do::CloseAfter, all, &[ClosedEarly]),
        (known, Do::CloseAfter, all, &[ClosedEarly]),
    ];
    for speaks in ALL {
        at_once(cases, |(keyvalue, what, on, expected)| {
            let preloaded = keyvalue.preload > 0;
            // The preload is not to fail.
            let on: On = if preloaded && on(Operation::Set) { |o| o == Operation::Update } else { on };
            let result = lies(speaks, keyvalue, what, on);
            let expected: BTreeSet<_> = match (speaks, what) {
                (Speaks::Juno | Speaks::Memcached, Do::Redirect) => [Refused].into(),
                _ => expected.iter().copied().collect(),
            };
            assert_eq!(kinds(&result), expected, "{speaks:?} {what:?}: {:?}", result.total);
            assert!(result.total.error_count() >= 5, "{speaks:?} {what:?}: {:?}", result.total);
            let by_request = result.by_request.iter().flat_map(|r| r.errors_by_kind.values()).sum::<u64>();
            assert_eq!(by_request, result.window.error_count(), "{speaks:?} {what:?}");
        });
    }
}

#[test]
fn a_write_that_too_few_replicas_have_is_an_error() {
    for (replicas, errors) in [(1, vec![ErrorKind::NotReplicated]), (2, vec![])] {
        let speaks = Speaks::Redis { replicas };
        let server = Server::start(speaks, |_| Do::Right);
        let spec = order(&server, speaks, KeyValue { replicas: 2, preload: 0, ..keyvalue(MIX) });
        let result = load(&spec).unwrap();
        assert_eq!(kinds(&result), errors.into_iter().collect(), "{:?}", result.total);
        assert_eq!(result.by_request[1].errors, 0, "reads do not wait");
    }
}

#[test]
fn answers_may_come_in_any_order_where_the_protocol_allows_it() {
    let server = Server::start(Speaks::Juno, |asked| if asked.number % 2 == 0 { Do::Later } else { Do::Right });
    let mut spec = order(&server, Speaks::Juno, keyvalue(MIX));
    spec.connections = 1;
    let result = load(&spec).unwrap();
    assert_eq!((result.total.right, kinds(&result)), (4_000, BTreeSet::new()), "{:?}", result.total);
    // Elsewhere the answer that came is taken for that of the oldest request.
    let server = Server::start(REDIS, |asked| if asked.number % 2 == 0 { Do::Later } else { Do::Right });
    let mut spec = order(&server, REDIS, keyvalue("set:1,get:1"));
    (spec.connections, spec.timeout_s, spec.kind) = (1, 0.5, LoadKind::Count { requests: 12 });
    let result = load(&spec).unwrap();
    assert!(kinds(&result).contains(&ErrorKind::Protocol), "{:?}", result.total);
}

#[test]
fn a_late_answer_is_a_timeout_and_never_taken_for_another() {
    at_once(&ALL, |speaks| {
        let late = Do::Late(Duration::from_millis(700));
        let server = Server::start(speaks, move |asked| if asked.number == 100 { late } else { Do::Right });
        let mut spec = order(&server, speaks, keyvalue(MIX));
        spec.timeout_s = 0.3;
        let result = load(&spec).unwrap();
        assert_eq!(kinds(&result), [ErrorKind::Timeout].into(), "{speaks:?}: {:?}", result.total);
        if speaks == Speaks::Juno {
            assert_eq!(result.total.connections, 4, "a stream is given up, and the connection goes on");
        }
    });
}

#[test]
fn a_server_that_speaks_something_else_is_told_before_the_load() {
    let http = server::Server::start(|_| server::Do::Send(server::answer(400, "no")));
    for (speaks, text) in
        [(REDIS, "Redis's protocol"), (Speaks::Juno, "JunoDB's protocol"), (Speaks::Memcached, "memcached's protocol")]
    {
        // It waits for the end of a head, and says at last that it is none: a server that talks first does so at once.
        let talker = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = talker.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in talker.incoming().flatten() {
                use std::io::Write;
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
            }
        });
        for addr in [addr, http.addr] {
            let store = Server { addr, memory: std::sync::Arc::default() };
            let mut spec = order(&store, speaks, keyvalue(MIX));
            spec.timeout_s = 0.5;
            match load(&spec).unwrap_err() {
                LoadError::NoConnection { detail, .. } => assert!(detail.contains(text), "{detail}"),
                other => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_login_opens_each_connection_and_a_wrong_one_ends_the_load() {
    let server = Server::start(REDIS, |_| Do::Right);
    let mut spec = order(&server, REDIS, KeyValue { preload: 100, ..keyvalue(MIX) });
    spec.requests_per_connection = Some(100);
    spec.login = Some(Login { user: "me".into(), password: "secret".into() });
    let result = load(&spec).unwrap();
    assert_eq!((kinds(&result), result.window.right), (BTreeSet::new(), 4_000));
    spec.login = Some(Login { user: String::new(), password: "secret".into() });
    spec.timeout_s = 0.5;
    match load(&spec).unwrap_err() {
        LoadError::NoConnection { detail, .. } => {
            assert_eq!(detail, "the server answered AUTH by: WRONGPASS invalid username-password pair");
        }
        other => panic!("{other}"),
    }
    assert!(!format!("{spec:?}").contains("secret"));
}

#[test]
fn a_preload_that_fails_ends_the_load_before_it_begins() {
    for speaks in ALL {
        let server = Server::start(speaks, |asked| if asked.number == 50 { Do::Busy } else { Do::Right });
        let spec = order(&server, speaks, KeyValue { preload: 1_000, ..keyvalue(MIX) });
        match load(&spec).unwrap_err() {
            LoadError::Preload { written, of: 1_000, errors } => {
                assert_eq!((written + errors[&ErrorKind::Busy], errors.len()), (1_000, 1), "{errors:?}");
            }
            other => panic!("{other}"),
        }
        assert_eq!(server.memory.lock().unwrap().requests, 1_000, "nothing else was asked");
    }
}

#[test]
fn an_open_load_keeps_its_rate_and_loses_no_key_with_its_connections() {
    at_once(&ALL, |speaks| {
        let server = Server::start(speaks, |asked| if asked.number == 60 { Do::CloseAfter } else { Do::Right });
        let mut spec = order(&server, speaks, KeyValue { preload: 40, ..keyvalue("G:9,U:1") });
        spec.kind = constant(1_000.0);
        spec.duration_s = 2.0;
        spec.warmup_s = 0.2;
        let result = load(&spec).unwrap();
        assert_eq!(kinds(&result), [ErrorKind::ClosedEarly].into(), "{:?}", result.total);
        assert!(result.window.right > 1_500 && result.total.connections > 10, "{:?}", result.total);
        let read = result.total.body_bytes / 100;
        let reads = result.by_request[0].right;
        assert!(read >= reads, "{read} of {reads} reads found a value, and all keys were there");
    });
}
