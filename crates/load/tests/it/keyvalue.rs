//! Loads of keys and values against servers that answer right, and against servers that lie: each lie is counted as what it
//! is, and nothing else is.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_load::LoadError;
use weir_model::keyvalue::{KeyChoice, KeyValue, Operation, ValueSize};
use weir_model::load::{ErrorKind, LoadProtocol, LoadResult, LoadSpec, Login, RequestSpec};

use crate::script::{self, Server};
use crate::servers;
use crate::store::{Do, Speaks, start};
use crate::world::{self, MS, counted, load, world};

const REDIS: Speaks = Speaks::Redis { replicas: 1 };

const ALL: [Speaks; 3] = [REDIS, Speaks::Juno, Speaks::Memcached];

/// Requests of a load, but for those that write its keys.
const REQUESTS: u64 = 1_000;

const MIX: &str = "C:2,G:5,U:2,S:1,D:1";

pub fn order(server: &Server, speaks: Speaks, keyvalue: KeyValue) -> LoadSpec {
    LoadSpec {
        requests: RequestSpec::operations(&keyvalue.operations),
        protocol: match speaks {
            Speaks::Redis { .. } => LoadProtocol::Redis { pipeline: 4 },
            Speaks::Juno => LoadProtocol::Juno { streams: 4 },
            Speaks::Memcached => LoadProtocol::Memcached { pipeline: 4 },
        },
        keyvalue: Some(keyvalue),
        duration_s: 60.0,
        timeout_s: 5.0,
        ..world::order(server.addr, counted(REQUESTS))
    }
}

pub fn mix(mix: &str) -> KeyValue {
    KeyValue { operations: mix.parse().unwrap(), ..KeyValue::default() }
}

/// All choices of keys, with and without those that were written before.
fn choices() -> [KeyValue; 8] {
    let known = |keys| KeyValue { keys, key_count: Some(200), ..mix(MIX) };
    [
        mix(MIX),
        mix("set:1,get:1"),
        KeyValue { preload: 100, ..mix("G:5,D:1") },
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
        for (keyvalue, recycled) in choices().into_iter().flat_map(|one| [(one.clone(), None), (one, Some(7))]) {
            let world = world();
            let (server, memory) = start(&world, speaks, |_| Do::Right);
            let mut spec = order(&server, speaks, keyvalue.clone());
            (spec.threads, spec.requests_per_connection) = (2, recycled);
            let result = load(&world, &spec).unwrap();
            let name = format!("{speaks:?} {keyvalue:?} {recycled:?}: {:?}", result.total);
            assert_eq!((kinds(&result), result.window.successful), (BTreeSet::new(), REQUESTS), "{name}");
            assert_eq!(server.requests(), result.total.sent, "{name}: also those of the preload");
            assert_eq!(memory.borrow().pings, result.total.connections, "{name}");
            let preloaded = result.preload.as_ref().map_or(0, |counts| counts.successful);
            assert_eq!((preloaded, result.total.successful), (keyvalue.preload, REQUESTS + keyvalue.preload), "{name}");
            let by_operation: u64 = result.by_request.iter().map(|r| r.latency.count).sum();
            assert_eq!(by_operation, REQUESTS, "{name}");
        }
    }
}

#[test]
fn operations_come_in_turn_and_as_often_as_the_mix_says() {
    for speaks in ALL {
        let world = world();
        let (server, memory) = start(&world, speaks, |_| Do::Right);
        let spec = order(&server, speaks, mix("C:10,G:30,D:5"));
        let result = load(&world, &LoadSpec { connections: 1, kind: counted(45 * 20), ..spec }).unwrap();
        let sent: Vec<_> = result.by_request.iter().map(|r| (r.name.as_str(), r.sent)).collect();
        assert_eq!(sent, [("create", 200), ("get", 600), ("destroy", 100)]);
        // There were always keys to be read and destroyed.
        assert_eq!((memory.borrow().now.len(), result.total.body_bytes), (100, 600 * 100));
    }
}

#[test]
fn each_lie_is_counted_as_what_it_is_and_nothing_else_is() {
    use ErrorKind::{Busy, ClosedEarly, Lost, Protocol, Redirected, Refused, Resurrected, Stale, WrongValue};
    type On = fn(Operation) -> bool;
    let reads: On = |operation| operation == Operation::Get;
    let writes: On = Operation::writes;
    let creates: On = |operation| operation == Operation::Create;
    // The preload, which sets, is not to fail.
    let updates: On = |operation| operation != Operation::Set;
    let all: On = |_| true;
    let known = KeyValue { keys: KeyChoice::Uniform, key_count: Some(40), preload: 40, ..mix("C:1,G:5,U:2,S:1,D:2") };
    let cases: &[(KeyValue, Do, On, &[ErrorKind])] = &[
        (mix(MIX), Do::Lose, creates, &[Lost]),
        // A lost update is read as the version before.
        (mix(MIX), Do::Lose, writes, &[Stale, Lost]),
        (mix(MIX), Do::Stale, reads, &[Stale]),
        (known.clone(), Do::Resurrect, reads, &[Resurrected]),
        (mix(MIX), Do::OtherKey, reads, &[WrongValue]),
        (mix(MIX), Do::Corrupt, reads, &[WrongValue]),
        (KeyValue { share: true, ..known.clone() }, Do::Corrupt, reads, &[WrongValue]),
        (mix(MIX), Do::Busy, all, &[Busy]),
        (mix(MIX), Do::Refuse, all, &[Refused]),
        (mix(MIX), Do::Redirect, all, &[Redirected]),
        (mix(MIX), Do::Say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), all, &[Protocol]),
        (mix(MIX), Do::CloseMidway, all, &[ClosedEarly]),
        (mix(MIX), Do::CloseAfter, all, &[ClosedEarly]),
        (known, Do::CloseAfter, updates, &[ClosedEarly]),
    ];
    for speaks in ALL {
        for (keyvalue, what, on, expected) in cases {
            let world = world();
            let (what, on) = (*what, *on);
            // One in twenty of those requests.
            let lie = move |asked: &crate::store::Asked| asked.number % 20 == 13 && on(asked.operation);
            let (server, _) = start(&world, speaks, move |asked| if lie(asked) { what } else { Do::Right });
            let spec = order(&server, speaks, keyvalue.clone());
            let result = load(&world, &LoadSpec { threads: 2, ..spec }).unwrap();
            let expected: BTreeSet<_> = match (speaks, what) {
                (Speaks::Juno | Speaks::Memcached, Do::Redirect) => [Refused].into(),
                _ => expected.iter().copied().collect(),
            };
            assert_eq!(kinds(&result), expected, "{speaks:?} {what:?}: {:?}", result.total);
            assert!(result.total.error_count() >= 5, "{speaks:?} {what:?}: {:?}", result.total);
            let by_request = result.by_request.iter().flat_map(|r| r.errors_by_kind.values()).sum::<u64>();
            assert_eq!(by_request, result.window.error_count(), "{speaks:?} {what:?}");
        }
    }
}

#[test]
fn a_write_that_too_few_replicas_have_is_an_error() {
    for replicas in [1, 2] {
        let (world, speaks) = (world(), Speaks::Redis { replicas });
        let (server, _) = start(&world, speaks, |_| Do::Right);
        let spec = order(&server, speaks, KeyValue { replicas: 2, preload: 0, ..mix(MIX) });
        let result = load(&world, &spec).unwrap();
        // Reads do not wait.
        let wrong: Vec<u64> = result.by_request.iter().map(|request| request.errors).collect();
        let sent: Vec<u64> = result.by_request.iter().map(|request| request.sent).collect();
        assert_eq!(wrong, if replicas == 2 { vec![0; 5] } else { vec![sent[0], 0, sent[2], sent[3], sent[4]] });
        let expected = if replicas == 2 { vec![] } else { vec![("not_replicated", wrong.iter().sum())] };
        assert_eq!(world::errors(&result.total), expected);
    }
}

#[test]
fn answers_may_come_in_any_order_where_the_protocol_allows_it() {
    let run = |speaks, requests, keyvalue| {
        let world = world();
        let behaviour =
            |asked: &crate::store::Asked| if asked.number.is_multiple_of(2) { Do::Later } else { Do::Right };
        let (server, _) = start(&world, speaks, behaviour);
        let spec = order(&server, speaks, keyvalue);
        load(&world, &LoadSpec { connections: 1, timeout_s: 0.5, kind: counted(requests), ..spec }).unwrap()
    };
    let result = run(Speaks::Juno, REQUESTS, mix(MIX));
    assert_eq!((result.total.successful, kinds(&result)), (REQUESTS, BTreeSet::new()), "{:?}", result.total);
    // Elsewhere the response that came is taken for that of the oldest request.
    let result = run(REDIS, 12, mix("set:1,get:1"));
    assert!(kinds(&result).contains(&ErrorKind::Protocol), "{:?}", result.total);
}

#[test]
fn a_late_answer_is_a_timeout_and_never_taken_for_another() {
    for speaks in ALL {
        let world = world();
        let late = Do::Late(700 * MS);
        let (server, _) = start(&world, speaks, move |asked| if asked.number == 100 { late } else { Do::Right });
        let spec = order(&server, speaks, mix(MIX));
        let result = load(&world, &LoadSpec { timeout_s: 0.3, ..spec }).unwrap();
        // All four in flight on a connection: the hundredth and those behind it. With JunoDB the streams are given up twice, and it goes
        // on; else another takes its place, whose hundredth is late, too.
        let (connections, lost) = if speaks == Speaks::Juno { (4, 4 * 2 * 4) } else { (12, 8 * 4) };
        assert_eq!((result.total.connections, world::errors(&result.total)), (connections, vec![("timeout", lost)]));
    }
}

#[test]
fn a_server_that_speaks_something_else_is_told_before_the_load() {
    let bad = || script::Do::Send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".to_vec());
    for (speaks, text) in
        [(REDIS, "Redis's protocol"), (Speaks::Juno, "JunoDB's protocol"), (Speaks::Memcached, "memcached's protocol")]
    {
        let world = world();
        // One waits for the end of a head, and never sees it; the other talks first.
        let waits = servers::http(&world, |_| servers::ok(""));
        let talks = Server::start(&world, "127.0.0.1:0", None, move |_, _| {
            let mut said = Some(vec![bad(), script::Do::Silence]);
            Box::new(move |_, _| said.take())
        });
        for server in [waits, talks] {
            let error = load(&world, &LoadSpec { timeout_s: 0.5, ..order(&server, speaks, mix(MIX)) }).unwrap_err();
            let LoadError::NoConnection { detail, .. } = &error else { panic!("{error}") };
            assert!(detail.contains(text), "{detail}");
        }
    }
}

#[test]
fn a_login_opens_each_connection_and_a_wrong_one_ends_the_load() {
    let world = world();
    let (server, _) = start(&world, REDIS, |_| Do::Right);
    let mut spec = order(&server, REDIS, KeyValue { preload: 100, ..mix(MIX) });
    spec.requests_per_connection = Some(100);
    spec.login = Some(Login { user: "me".into(), password: "secret".into() });
    let result = load(&world, &spec).unwrap();
    assert_eq!((kinds(&result), result.window.successful), (BTreeSet::new(), REQUESTS));
    spec.login = Some(Login { user: String::new(), password: "secret".into() });
    let error = load(&world, &spec).unwrap_err();
    let LoadError::NoConnection { detail, .. } = &error else { panic!("{error}") };
    assert_eq!(detail, "the server answered AUTH by: WRONGPASS invalid username-password pair");
    assert!(!format!("{spec:?}").contains("secret"));
}

#[test]
fn a_preload_that_fails_ends_the_load_before_it_begins() {
    for speaks in ALL {
        let world = world();
        let (server, _) = start(&world, speaks, |asked| if asked.number == 50 { Do::Busy } else { Do::Right });
        let error = load(&world, &order(&server, speaks, KeyValue { preload: 1_000, ..mix(MIX) })).unwrap_err();
        let LoadError::Preload { written: 996, of: 1_000, errors } = &error else { panic!("{error}") };
        assert!(errors.starts_with("busy 4 (") && errors.len() > "busy 4 ()".len(), "{errors}");
        assert_eq!(server.requests(), 1_000, "nothing else was asked");
    }
}

#[test]
fn an_open_load_keeps_its_rate_and_loses_no_key_with_its_connections() {
    for speaks in ALL {
        let world = world();
        let (server, _) = start(&world, speaks, |asked| if asked.number == 60 { Do::CloseAfter } else { Do::Right });
        let mut spec = order(&server, speaks, KeyValue { preload: 40, ..mix("G:9,U:1") });
        (spec.kind, spec.warmup_s, spec.duration_s) = (world::constant(1_000.0), 0.2, 2.0);
        let result = load(&world, &spec).unwrap();
        // Of each 61 requests of a connection the last is lost, and those behind it.
        let lost = result.total.error_count();
        assert_eq!(kinds(&result), [ErrorKind::ClosedEarly].into(), "{:?}", result.total);
        assert_eq!((result.total.due, result.total.successful), (2_240, 2_240 - lost), "{:?}", result.total);
        assert_eq!((lost, result.total.connections), (36, 44), "{:?}", result.total);
        assert_eq!(result.window.body_bytes / 100, result.by_request[0].successful, "all keys were there");
    }
}
