//! Hostile peers: nothing they do ends the origin, delays others, or makes it grow without limit. A test's allocations are those of its
//! thread, which runs a whole world: what clients and kernels hold is included.

use weir_model::counters::OriginCounters;
use weir_origin::{Options, payload};
use weir_wire::http2::{self, PREFACE};

use crate::common::{LIVE, MOST, server_options};
use crate::h2::Http2;
use crate::sim::{LATENCY, MS, NodeOptions, ROUND_TRIP, S, Scene, client_config, get, small};

/// Checks that what was allocated at once beyond what was there before is less than so many KiB, that others are served as quickly as
/// ever, and that no connection is left when the attack has ended, as its result does that. Returns the counters then.
fn attack<E: FnOnce()>(scene: &Scene, most: i64, attack: impl FnOnce() -> E) -> OriginCounters {
    let before = LIVE.get();
    MOST.set(before);
    let end = attack();
    let begun = scene.world.now();
    if scene.handle.counters().tls.handshakes == 0 {
        assert_eq!(scene.client().get("/bytes/11268").body, payload(11_268));
    } else {
        let connection = scene.tls_client(&client_config(Some("h2"))).expect("a handshake");
        assert_eq!(Http2::new(connection).get("/bytes/11268").body, payload(11_268));
    }
    let (took, grown) = (scene.world.now() - begun, (MOST.get() - before) >> 10);
    assert!(took <= 4 * ROUND_TRIP && grown < most, "{took} ns, {grown} KiB");
    end();
    scene.run(S);
    let counters = scene.counters();
    assert_eq!(counters.connections_open, 0);
    counters
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// GET http://o/ with a path, as a header block without a table.
fn block(path: &str) -> Vec<u8> {
    [&[0x82, 0x86, 0x01, 1, b'o', 0x04, path.len() as u8], path.as_bytes()].concat()
}

/// Preface and empty SETTINGS.
fn hello() -> Vec<u8> {
    [PREFACE.as_slice(), &frame(4, 0, 0, b"")].concat()
}

#[test]
fn heads_that_never_end_and_bodies_that_drip() {
    let heads = [&b"GET /by"[..], b"tes/1", b"28 HTTP/1", b".1\r\nHo", b"st: o\r\nX: ", &[b'a'; 2000]];
    // What is announced takes no memory.
    let body = b"POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 60000000\r\n\r\n";
    for (number, most, pieces) in
        [(300, 4 << 10, &heads[..]), (200, 2 << 10, &[&[&body[..]], &[&b"x"[..]; 20][..]].concat())]
    {
        let scene = Scene::new();
        attack(&scene, most, || {
            let slow: Vec<_> = (0..number).map(|_| scene.client()).collect();
            for piece in pieces {
                slow.iter().for_each(|client| client.send(piece));
                scene.run(LATENCY);
            }
            || drop(slow)
        });
    }
}

#[test]
fn heads_beyond_all_bounds() {
    let scene = Scene::with(Options::default(), small());
    let machine = scene.machine(small());
    let counters = attack(&scene, 2 << 10, || {
        for _ in 0..20 {
            let client = scene.client_of(&machine, 0);
            client.send(b"GET / HTTP/1.1\r\nHost: o\r\n");
            client.pour(&b"X-Long: 0123456789\r\n".repeat(1000), 100);
        }
        || ()
    });
    assert_eq!((counters.malformed, counters.requests), (20, 1));
}

#[test]
fn a_flood_of_resets() {
    let scene = Scene::new();
    let counters = attack(&scene, 8 << 10, || {
        for round in 0..1000 {
            let client = scene.client();
            client.send(get("/bytes/165854?delay=5ms").repeat(round % 3));
            scene.run(LATENCY / 2);
            client.abort();
        }
        || ()
    });
    assert_eq!(counters.requests, 1000);
}

#[test]
fn pipelines_that_nobody_reads() {
    let scene = Scene::new();
    let machine = scene.machine(small());
    let greedy = scene.client_of(&machine, 0);
    payload(1 << 20);
    attack(&scene, 8 << 10, || {
        greedy.send(get("/bytes/1MiB").repeat(5_000) + &get("/bytes/10").repeat(5_000));
        machine.freeze();
        scene.run(S);
        || machine.kill()
    });
}

#[test]
fn rapid_reset() {
    let scene = Scene::new();
    let client = scene.client();
    client.send(hello());
    let counters = attack(&scene, 4 << 10, || {
        for first in (0..40_000u32).step_by(100) {
            let ask = |stream| frame(1, 5, stream, &block("/bytes/165854?delay=10ms"));
            let both = |n| [ask(2 * n + 1), frame(3, 0, 2 * n + 1, &8u32.to_be_bytes())].concat();
            if !client.pour(&(first..first + 100).flat_map(both).collect::<Vec<u8>>(), 1) {
                break;
            }
        }
        || ()
    });
    // The origin answered with ENHANCE_YOUR_CALM, and closed a while later.
    assert!(counters.malformed == 1 && counters.requests < 20_000, "{}", counters.requests);
}

#[test]
fn header_bombs() {
    let scene = Scene::new();
    // A name and value of 4000 bytes in the table, and then 16,000 references to it: 64 MB out of 16 kB.
    let mut bomb = [&block("/bytes/1")[..], &[0x40, 1, b'x', 0x7f, 0xa1, 0x1e], &[b'a'; 4000]].concat();
    bomb.resize(16_000, 0xbe);
    let counters = attack(&scene, 4 << 10, || {
        for _ in 0..10 {
            let client = scene.client();
            client.send([hello(), frame(1, 5, 1, &bomb), frame(1, 5, 3, &bomb)].concat());
            // And blocks that never end.
            client.pour(&frame(1, 1, 5, &bomb), 1);
            client.pour(&frame(9, 0, 5, &bomb), 1000);
        }
        || ()
    });
    assert_eq!(counters.malformed, 30, "two whole ones and one without an end, of each");
}

#[test]
fn empty_frames() {
    for empty in [frame(0, 0, 1, b""), frame(8, 0, 0, &1u32.to_be_bytes()), frame(200, 0, 0, b"?"), frame(9, 0, 1, b"")]
    {
        let scene = Scene::new();
        let client = scene.client();
        attack(&scene, 2 << 10, || {
            client.send([hello(), frame(1, 4, 1, &block("/echo"))].concat());
            client.pour(&empty.repeat(1000), 100);
            || drop(client)
        });
    }
}

#[test]
fn settings_and_pings_nobody_reads_the_responses_of() {
    for kind in [frame(6, 0, 0, &[7; 8]), frame(4, 0, 0, &[0, 4, 0, 1, 0, 0])] {
        let scene = Scene::new();
        let machine = scene.machine(small());
        let client = scene.client_of(&machine, 0);
        attack(&scene, 4 << 10, || {
            client.send([hello(), kind.repeat(50_000)].concat());
            machine.freeze();
            scene.run(10 * S);
            || machine.kill()
        });
    }
}

/// 100 responses of 1 MiB in a window for all of them, over TLS, of which nothing is read.
#[test]
fn windows_opened_wide_and_nothing_read() {
    let scene = Scene::of(Options { tls: Some(server_options()), ..Options::default() });
    let machine = scene.machine(NodeOptions { send_buffer: 1 << 20, receive_buffer: 1 << 20, ..small() });
    let window = (1 << 31) - 1;
    let options = http2::Options::client();
    let wide = http2::Options { max_streams: 500, stream_window: window, connection_window: window, ..options };
    let connection = scene.tls_client_of(&machine, &client_config(Some("h2"))).expect("a handshake");
    let mut client = Http2::with(connection, &wide);
    let counters = attack(&scene, 8 << 10, || {
        (0..100).for_each(|tag| client.ask(tag, "GET", "/bytes/1MiB", &[], b""));
        machine.freeze();
        assert_eq!(scene.counters().requests, 100);
        // A client that finally reads gets everything.
        || {
            machine.thaw();
            assert!((0..100).all(|tag| client.response(tag).body == payload(1 << 20)));
            drop(client);
        }
    });
    assert_eq!(counters.answered, 101);
}

/// The window stays shut until everything has been asked for, and then opens wide.
#[test]
fn windows_never_opened() {
    let scene = Scene::of(Options { tls: Some(server_options()), ..Options::default() });
    let machine = scene.machine(small());
    let client = scene.tls_client_of(&machine, &client_config(Some("h2"))).expect("a handshake");
    attack(&scene, 80 << 10, || {
        client.send([PREFACE.as_slice(), &frame(4, 0, 0, &[0, 4, 0, 0, 0, 0])].concat());
        (0..500).for_each(|stream| client.send(frame(1, 5, 2 * stream + 1, &block("/bytes/1MiB"))));
        scene.run(S);
        assert_eq!(scene.counters().requests, 500);
        client.send(frame(8, 0, 0, &0x7fff_0000u32.to_be_bytes()));
        client.send(frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]));
        machine.freeze();
        scene.run(S);
        || machine.kill()
    });
}

#[test]
fn random_frames() {
    let scene = Scene::new();
    let random = |below| scene.world.random(below) as usize;
    attack(&scene, 2 << 10, || {
        for _ in 0..300 {
            let mut bytes = hello();
            for _ in 0..random(20) {
                let body: Vec<u8> = match random(3) {
                    0 => block("/bytes/2000?delay=1ms"),
                    1 => (0..random(40)).map(|_| random(256) as u8).collect(),
                    _ => (random(1 << 32) as u32).to_be_bytes().to_vec(),
                };
                bytes.extend(frame(random(11) as u8, random(256) as u8, random(9) as u32, &body));
            }
            let client = scene.client();
            client.send(&bytes);
            scene.run(random(2) as u64 * 5 * MS);
        }
        || ()
    });
}
