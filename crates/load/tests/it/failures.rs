//! What goes wrong is counted by kind, and is never an absence.

use weir_load::{LoadError, Outputs, Progress, StopFlag};
use weir_model::load::{ErrorKind, LoadSpec};
use weir_model::suite::LoadKind;
use weir_net::Driver;

use crate::script::{Do, Server};
use crate::servers::{http, http_at, ok, response};
use crate::world::*;

/// Where nobody listens.
const NOBODY: &str = "127.0.0.1:9";

#[test]
fn when_all_connections_stall_the_rest_is_unsent_and_sampled() {
    let world = world();
    let server = http(&world, |_| vec![Do::Silence]);
    let spec = LoadSpec { connections: 2, timeout_s: 1.5, ..order(server.addr, constant(100.0)) };
    let result = load(&world, &spec).unwrap();
    // At 0 ms and 10 ms the two connections take a request each; both time out 1.5 s later, are made again, take the requests due at
    // 20 ms and 30 ms, and are given up with all others when the drain ends at 1 + 1.5 = 2.5 s.
    assert_eq!([result.window.due, result.window.sent, result.window.unsent, server.requests()], [100, 4, 96, 4]);
    assert_eq!((errors(&result.window), result.rate), (vec![("timeout", 4)], 0.0));
    // A timeout is seen 10 ms late. The request due at 20 ms waited to the end, and each after it 10 ms less.
    times(&result.latency, 1_510 * MS, 1_980 * MS, 2_480 * MS);
    times(&result.lag, 0, 1_960 * MS, 2_460 * MS);
}

#[test]
fn a_request_that_is_not_answered_in_time_is_a_timeout_and_the_next_goes_on() {
    let world = world();
    // The third request of all is never answered.
    let server = http(&world, |asked| if asked.number == 2 { vec![Do::Silence] } else { ok("ok") });
    let spec = LoadSpec { connections: 1, timeout_s: 1.0, duration_s: 30.0, ..order(server.addr, counted(6)) };
    let result = load(&world, &spec).unwrap();
    assert_eq!((result.total.successful, errors(&result.total)), (5, vec![("timeout", 1)]));
    assert_eq!(result.total.connections, 2);
    times(&result.latency, ROUND_TRIP, ROUND_TRIP, SECOND + 9 * MS);
}

#[test]
fn resets_early_closes_half_responses_and_nonsense_have_their_kinds() {
    let world = world();
    let server = http(&world, |asked| match asked.number % 6 {
        0 => vec![Do::Reset],
        1 => vec![Do::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234".to_vec()), Do::End],
        2 => vec![Do::Send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec())],
        3 => vec![Do::End],
        4 => vec![Do::Send([response(200, "ok"), b"more".to_vec()].concat())],
        _ => ok("ok"),
    });
    let spec = LoadSpec { connections: 1, duration_s: 20.0, ..order(server.addr, counted(24)) };
    let result = load(&world, &spec).unwrap();
    assert_eq!(errors(&result.total), [("reset", 4), ("closed_early", 4), ("truncated", 4), ("protocol", 8)]);
    assert_eq!([result.total.successful, result.total.sent, server.requests()], [4, 24, 24], "nothing is sent twice");
}

#[test]
fn a_response_that_begins_and_does_not_end_is_truncated_however_it_is_cut_off() {
    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    const LENGTH: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234";
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    let ends: [fn() -> Do; 3] = [|| Do::End, || Do::Close, || Do::Reset];
    for begun in [CHUNKED, LENGTH, HEAD, b"HTTP/1.1 200"] {
        for end in ends {
            let world = world();
            let server = http(&world, move |asked| match asked.number % 2 {
                0 => vec![Do::Send(begun.to_vec()), Do::Wait(MS), end()],
                _ => ok("ok"),
            });
            let spec = LoadSpec { connections: 1, duration_s: 20.0, ..order(server.addr, counted(10)) };
            let result = load(&world, &spec).unwrap();
            assert_eq!(errors(&result.total), [("truncated", 5)], "{}", String::from_utf8_lossy(begun));
            assert_eq!((result.total.successful, result.total.wrong_responses(), result.total.refusals()), (5, 5, 0));
        }
    }
}

#[test]
fn responses_before_their_requests_are_counted_and_those_to_whole_requests_are_not() {
    for (early, size) in [(true, 3 << 20), (false, 3 << 20), (true, 100)] {
        let world = world();
        let server = Server::start(&world, "127.0.0.1:0", None, move |_, _| {
            let mut left = 0;
            Box::new(move |input, _| {
                let body = input.len().min(left);
                left -= body;
                input.drain(..body);
                if left > 0 || input.is_empty() {
                    return if left == 0 && body > 0 && !early { Some(ok("ok")) } else { None };
                }
                let end = input.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
                input.drain(..end);
                left = size;
                early.then(|| ok("ok"))
            })
        });
        let mut spec = LoadSpec { connections: 1, duration_s: 20.0, ..order(server.addr, counted(4)) };
        spec.requests[0].request.method = "POST".into();
        spec.requests[0].request.body = vec![7; size];
        let result = load(&world, &spec).unwrap();
        // A small body has left before the response comes.
        let counted = if early && size > 100 { 4 } else { 0 };
        assert_eq!((result.total.successful, result.total.early), (4, counted), "{early} {size}");
        assert_eq!(result.request_body_bytes, Some(4 * size as u64));
    }
}

#[test]
fn nobody_listening_is_an_error_with_its_kind_and_no_hang() {
    let world = world();
    let spec =
        LoadSpec { connections: 10, threads: 2, timeout_s: 30.0, ..order(NOBODY.parse().unwrap(), LoadKind::Closed) };
    let error = load(&world, &spec).unwrap_err();
    match &error {
        LoadError::NoConnection { kind: ErrorKind::ConnectRefused, attempts, seconds, .. } => {
            // Refusals end the wait; silence would have it last 30 s.
            assert_eq!((*attempts, *seconds), (90, 2.05));
        }
        other => panic!("{other}"),
    }
    assert!(error.to_string().contains("connect_refused"), "{error}");
}

#[test]
fn a_server_that_starts_late_is_waited_for() {
    let world = world();
    let spec = LoadSpec { connections: 3, ..order(NOBODY.parse().unwrap(), counted(3)) };
    let mut server = None;
    let mut see = |_: Progress| {
        if world.now() == 300 * MS {
            server = Some(http_at(&world, NOBODY, None, |_| ok("ok")));
        }
    };
    let result = load_with(&world, &spec, &Outputs::default(), &StopFlag::new(), &mut see).unwrap();
    // Before the start no request waits. Each connection waits for 10, 20, 40, 80 and 160 ms after an attempt.
    assert_eq!((result.total.successful, errors(&result.total)), (3, vec![]));
    assert_eq!((result.total.connect_failures, result.total.connections), (15, 3));
}

#[test]
fn a_server_that_dies_fails_requests_by_kind_and_nothing_is_lost() {
    for (kind, [successful, due, unsent], expected) in [
        // After the response that is lost, each connection is due with each of its six attempts.
        (LoadKind::Closed, [4 * 300, 4 * 307, 0], [("connect_refused", 4 * 6), ("closed_early", 4)]),
        // A connection is tried again when a request is due for it, and then by itself; six attempts come in the drain.
        (constant(200.0), [60, 200, 109], [("connect_refused", 30), ("closed_early", 1)]),
    ] {
        let world = world();
        let server = http(&world, |_| ok("ok"));
        let task = server.task;
        // The load begins at 100 ms.
        world.at(400 * MS - 1, move |world| world.kill(task));
        let result = load(&world, &LoadSpec { timeout_s: 1.0, ..order(server.addr, kind) }).unwrap();
        assert_eq!(
            [result.total.successful, result.window.due, result.window.unsent],
            [successful, due, unsent],
            "{result:?}"
        );
        assert_eq!(errors(&result.total), expected);
    }
}

#[test]
fn a_connection_that_nobody_accepts_is_a_connect_timeout() {
    let world = world();
    // A queue of one that is full: further attempts get no response.
    let listener = world.listen("127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap(), 1, false).unwrap();
    let addr = listener.address().tcp().unwrap();
    let mut asleep = world.driver("asleep");
    asleep.listen(listener).unwrap();
    let spec = LoadSpec { connections: 30, timeout_s: 0.5, duration_s: 0.2, ..order(addr, LoadKind::Closed) };
    let result = load(&world, &spec).unwrap();
    assert_eq!(result.total.connections, 2, "{:?}", result.total);
    assert_eq!(
        (result.total.connect_failures, errors(&result.total)),
        (56, vec![("connect_timeout", 28), ("timeout", 2)])
    );
}
