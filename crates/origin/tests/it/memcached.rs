//! Memcached's protocol: commands, expiry, requests without a reply, and lies. What all protocols of keys and values share is tested
//! with Redis's.

use weir_model::protocol::Protocol;
use weir_origin::Options;

use crate::sim::{Client, MS, S, Scene, responses};

fn start(faults: &str) -> (Scene, Client) {
    let responses = responses(None, faults);
    let scene = Scene::of(Options { protocol: Protocol::Memcached, responses, ..Options::default() });
    let client = scene.client();
    (scene, client)
}

/// Sends this, and waits for exactly that.
fn ask(client: &mut Client, request: &str, wanted: &str) {
    client.send(request);
    client.expect(wanted);
}

#[test]
fn commands_do_what_they_say() {
    let (scene, mut client) = start("none");
    for (request, wanted) in [
        ("version\r\n", "VERSION 1.6.0\r\n"),
        ("get a\r\n", "END\r\n"),
        ("set a 7 0 1\r\n1\r\n", "STORED\r\n"),
        ("get a\r\n", "VALUE a 7 1\r\n1\r\nEND\r\n"),
        ("add a 0 0 1\r\n2\r\n", "NOT_STORED\r\n"),
        ("replace b 0 0 1\r\n2\r\n", "NOT_STORED\r\n"),
        ("append b 0 0 1\r\n2\r\n", "NOT_STORED\r\n"),
        ("replace a 8 0 2\r\n22\r\n", "STORED\r\n"),
        ("append a 9 9 1\r\n3\r\n", "STORED\r\n"),
        ("prepend a 9 9 1\r\n1\r\n", "STORED\r\n"),
        ("add b 0 0 0\r\n\r\n", "STORED\r\n"),
        ("get b none a\r\n", "VALUE b 0 0\r\n\r\nVALUE a 8 4\r\n1223\r\nEND\r\n"),
        ("incr a 7\r\n", "1230\r\n"),
        ("decr a 2000\r\n", "0\r\n"),
        ("incr none 1\r\n", "NOT_FOUND\r\n"),
        ("incr b 1\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
        ("cas none 0 0 1 1\r\nx\r\n", "NOT_FOUND\r\n"),
        ("cas b 0 0 1 77\r\nx\r\n", "EXISTS\r\n"),
        ("delete b\r\n", "DELETED\r\n"),
        ("delete b\r\n", "NOT_FOUND\r\n"),
        ("touch b 100\r\n", "NOT_FOUND\r\n"),
        ("touch a 100\r\n", "TOUCHED\r\n"),
        ("frob x\r\n", "ERROR\r\n"),
        ("mg a v\r\n", "ERROR\r\n"),
        ("set c 1 0 1\r\n1\r\ngets c\r\n", "STORED\r\nVALUE c 1 1 "),
    ] {
        ask(&mut client, request, wanted);
    }
    let version = String::from_utf8(client.received()).expect("text");
    let version = version.strip_suffix("\r\n1\r\nEND\r\n").expect("a version");
    ask(&mut client, &format!("cas c 2 0 1 {version}\r\n2\r\n"), "STORED\r\n");
    ask(&mut client, &format!("cas c 3 0 1 {version}\r\n3\r\n"), "EXISTS\r\n");
    ask(&mut client, "get c\r\nflush_all\r\nget c\r\n", "VALUE c 2 1\r\n2\r\nEND\r\nOK\r\nEND\r\n");
    ask(&mut client, "quit\r\n", "");
    client.expect_closed();
    let counters = scene.counters();
    let others = counters.operations["connection"] + counters.operations["unknown"];
    assert_eq!((counters.keys, others, counters.own_requests), (0, 5, 5));
    assert_eq!(counters.answered, counters.requests);
    assert_eq!(counters.connections_by_protocol["memcached"], 1);
}

#[test]
fn values_expire() {
    let (scene, mut client) = start("none");
    let begun = scene.world.now();
    ask(&mut client, "set a 0 1 1\r\n1\r\nset b 0 -1 1\r\n1\r\n", "STORED\r\nSTORED\r\n");
    // A date of 1970, and one of 2038.
    ask(&mut client, "set c 0 2592001 1\r\n1\r\nset d 0 2147483647 1\r\n1\r\n", "STORED\r\nSTORED\r\n");
    ask(&mut client, "get a b c d\r\n", "VALUE a 0 1\r\n1\r\nVALUE d 0 1\r\n1\r\nEND\r\n");
    ask(&mut client, "touch d -1\r\nget d\r\n", "TOUCHED\r\nEND\r\n");
    scene.world.run_to(begun + S - MS);
    ask(&mut client, "get a\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n");
    ask(&mut client, "get a\r\n", "END\r\n");
    assert_eq!(scene.counters().keys, 0);
}

#[test]
fn requests_without_a_reply_are_counted() {
    let (scene, mut client) = start("none");
    ask(&mut client, "set a 0 0 1 noreply\r\n1\r\nincr a 1 noreply\r\n", "");
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered, counters.keys), (2, 2, 1));
    ask(
        &mut client,
        "touch a 9 noreply\r\nget a\r\ndelete a noreply\r\nget a\r\n",
        "VALUE a 0 1\r\n2\r\nEND\r\nEND\r\n",
    );
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.answered, counters.hits, counters.misses), (6, 6, 1, 1));
}

#[test]
fn what_is_malformed_is_told_and_ends_the_connection() {
    let (scene, mut client) = start("none");
    let told = "CLIENT_ERROR a line is no command of memcached, or has not the words that its command needs\r\n";
    ask(&mut client, "get a\r\nset a 0 0\r\n", &format!("END\r\n{told}"));
    client.expect_closed();
    let counters = scene.counters();
    assert_eq!((counters.malformed, counters.connections_open), (1, 0));
}

#[test]
fn faults_do_what_they_say() {
    let (scene, mut client) = start("busy");
    ask(&mut client, "set a 0 0 1\r\n1\r\n", "SERVER_ERROR busy, as the origin was told to be\r\n");
    ask(&mut client, "set a 0 0 1 noreply\r\n1\r\nversion\r\n", "VERSION 1.6.0\r\n");
    let counters = scene.counters();
    assert_eq!((counters.keys, counters.answered, counters.faults["busy"]), (0, 2, 2));

    let (scene, mut client) = start("lose");
    ask(&mut client, "set a 0 0 1\r\n1\r\ndelete a\r\nget a\r\n", "STORED\r\nNOT_FOUND\r\nEND\r\n");
    assert_eq!((scene.counters().keys, scene.counters().faults["lose"]), (0, 1), "nothing was there to be removed");

    let (scene, mut client) = start("stale");
    ask(&mut client, "set a 0 0 1\r\n1\r\nget a\r\n", "STORED\r\nEND\r\n");
    ask(&mut client, "set a 0 0 1\r\n2\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n");
    assert_eq!(scene.counters().faults["stale"], 2);
}
