//! Slow clients beside a load: what they take and give in each turn, how their requests end, and that none of them is in the load's numbers.

use std::collections::BTreeMap;

use weir_load::{Outputs, StopFlag};
use weir_model::fault::SLOW_BYTES;
use weir_model::load::{LoadProtocol, LoadResult, LoadSpec, Part, SlowClients, SlowClientsSpec};
use weir_model::suite::LoadKind;

use crate::script::{Do, Server};
use crate::servers::{Asked, http, ok, response};
use crate::world::{SECOND, constant, load, load_with, order, world};

/// Four readers from the first second to the fifth.
const READERS: SlowClientsSpec =
    SlowClientsSpec { writers: false, clients: 4, bytes_per_second: 1_000, at_s: 1.0, for_s: 4.0 };

/// A hundred requests a second, for six seconds.
fn spec(server: &Server, slow: &[SlowClientsSpec]) -> LoadSpec {
    LoadSpec { duration_s: 6.0, slow_clients: slow.to_vec(), ..order(server.addr, constant(100.0)) }
}

/// What becomes of the requests of slow clients at a server that does this; those of the load are answered.
fn ran(slow: SlowClientsSpec, behaviour: impl Fn(&Asked) -> Vec<Do> + 'static) -> (LoadResult, SlowClients) {
    let world = world();
    let is_slow = |asked: &Asked| asked.path().starts_with("/_weir/");
    let server = http(&world, move |asked| if is_slow(asked) { behaviour(asked) } else { ok("ok") });
    let result = load(&world, &spec(&server, &[slow])).unwrap();
    assert_eq!((result.window.successful, result.window.due, result.total.connections), (600, 600, 4));
    assert_eq!(result.most_open, 4, "they are none of its connections");
    let slow = result.slow_clients[0].clone();
    (result, slow)
}

fn whole(asked: &Asked) -> Vec<Do> {
    assert_eq!(asked.path(), "/_weir/ready?bytes=262144");
    ok(&"x".repeat(SLOW_BYTES as usize))
}

#[test]
fn readers_receive_a_little_in_each_turn() {
    let (_, seen) = ran(READERS, whole);
    // They come in their first turn, and go in their fourth.
    let expected = SlowClients {
        opened: 4,
        held: 4,
        bytes_in: 4 * 3 * 1_000,
        bytes_out: seen.bytes_out,
        ..SlowClients::default()
    };
    assert_eq!(seen, expected);
    let faster = SlowClientsSpec { bytes_per_second: 150_000, ..READERS };
    let (_, seen) = ran(faster, whole);
    assert_eq!(
        (seen.opened, seen.completed, seen.cut),
        (8, 4, 0),
        "whole in the second turn, and there again in the third"
    );
}

#[test]
fn writers_send_a_little_in_each_turn_and_their_whole_request_is_right() {
    let writers = SlowClientsSpec { writers: true, ..READERS };
    let (_, seen) = ran(writers, |asked| panic!("no request is whole: {asked:?}"));
    let head = seen.bytes_out - 4 * 3 * 1_000;
    assert_eq!((seen.opened, seen.held, seen.completed, head % 4), (4, 4, 0, 0));
    let faster = SlowClientsSpec { bytes_per_second: 150_000, ..writers };
    let (_, seen) = ran(faster, |asked| {
        assert_eq!((asked.path(), asked.body.len() as u64), ("/_weir/ready", SLOW_BYTES));
        vec![Do::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())]
    });
    assert_eq!((seen.opened, seen.completed), (8, 4));
}

#[test]
fn other_ends_are_counted_by_what_they_are() {
    let (_, seen) = ran(READERS, |_| vec![Do::Send(response(503, "busy"))]);
    // Three turns, in each of which all come.
    assert_eq!((seen.opened, &seen.statuses, seen.completed, seen.cut), (12, &BTreeMap::from([(503, 12)]), 0, 0));
    let (_, seen) =
        ran(READERS, |_| vec![Do::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nha".to_vec()), Do::End]);
    assert_eq!((seen.opened, seen.cut, seen.completed), (12, 12, 0), "closed before its end");
    let (_, seen) = ran(READERS, |_| vec![Do::Send(b"nonsense\r\n\r\n".to_vec())]);
    assert_eq!((seen.opened, seen.cut), (12, 12));
    let (_, seen) = ran(READERS, |_| vec![Do::Send(b"HTTP/1.1 200 OK\r\n\r\nall".to_vec()), Do::End]);
    assert_eq!((seen.opened, seen.completed), (12, 12), "until the connection ends");
}

#[test]
fn who_cannot_connect_is_refused_in_each_turn() {
    let world = world();
    let server = http(&world, |_| ok("ok"));
    let task = server.task;
    world.at(world.now() + SECOND / 2, move |world| world.kill(task));
    let result = load(&world, &spec(&server, &[READERS])).unwrap();
    assert_eq!(result.slow_clients, [SlowClients { refused: 12, ..SlowClients::default() }]);
}

#[test]
fn a_load_that_is_cut_short_ends_with_its_slow_clients() {
    let world = world();
    let server = http(&world, whole_or_ok);
    let (spec, stop) = (spec(&server, &[READERS]), StopFlag::new());
    let ask = stop.clone();
    world.at(world.now() + 5 * SECOND / 2, move |_| ask.set());
    let result = load_with(&world, &spec, &Outputs::default(), &stop, &mut |_| ()).unwrap();
    assert!(result.cut_short);
    assert_eq!((result.slow_clients[0].opened, result.slow_clients[0].held), (4, 4));
}

fn whole_or_ok(asked: &Asked) -> Vec<Do> {
    if asked.path() == "/" { ok("ok") } else { whole(asked) }
}

#[test]
fn of_several_clients_the_first_makes_them() {
    for (first_thread, made) in [(0, 1), (1, 0)] {
        let world = world();
        let server = http(&world, whole_or_ok);
        let part = Some(Part { first_thread, threads: 1 });
        let result = load(&world, &LoadSpec { threads: 2, part, ..spec(&server, &[READERS]) }).unwrap();
        assert_eq!(result.slow_clients.len(), made);
    }
}

#[test]
fn they_speak_one_protocol() {
    let world = world();
    let server = http(&world, |_| ok("ok"));
    let other =
        LoadSpec { protocol: LoadProtocol::Http2 { streams: 1 }, kind: LoadKind::Closed, ..spec(&server, &[READERS]) };
    let error = load(&world, &other).unwrap_err().to_string();
    assert!(error.contains("slow clients") && error.contains("expected"), "{error}");
}
