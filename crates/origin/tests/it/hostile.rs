//! Hostile peers: nothing they do ends the origin, delays others, or makes it grow without limit. A test's allocations are those of its
//! thread, which runs a whole world: what clients and kernels hold is included.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use weir_origin::{Options, payload};
use weir_wire::http2::{self, PREFACE};

use crate::common::server_options;
use crate::h2::Http2;
use crate::sim::{LATENCY, MS, NodeOptions, ROUND_TRIP, S, Scene, client_config, get, small};

struct Counting;

thread_local! {
    /// Bytes allocated and not freed.
    static LIVE: Cell<i64> = const { Cell::new(0) };
    /// The maximum since the last reset.
    static MOST: Cell<i64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.set(LIVE.get() + layout.size() as i64);
        MOST.set(MOST.get().max(LIVE.get()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Checks that what was allocated at once beyond what was there before is less than so many KiB, and that others are served as quickly
/// as ever.
fn attack(scene: &Scene, most: i64, attack: impl FnOnce()) {
    let before = LIVE.get();
    MOST.set(before);
    attack();
    let begun = scene.world.now();
    match scene.tls {
        false => assert_eq!(scene.client().get("/bytes/11268").body, payload(11_268)),
        true => {
            let connection = scene.tls_client(&client_config(Some("h2"))).expect("a handshake");
            assert_eq!(Http2::new(connection).get("/bytes/11268").body, payload(11_268));
        }
    }
    let took = scene.world.now() - begun;
    assert!(took <= 4 * ROUND_TRIP, "{took}");
    let grown = (MOST.get() - before) >> 10;
    println!("{grown} KiB");
    assert!(grown < most, "{grown} KiB");
    assert!(!scene.world.is_over(scene.tasks[0]));
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
fn heads_that_never_end() {
    let scene = Scene::new();
    let slow: Vec<_> = (0..300).map(|_| scene.client()).collect();
    attack(&scene, 4 << 10, || {
        for piece in [&b"GET /by"[..], b"tes/1", b"28 HTTP/1", b".1\r\nHo", b"st: o\r\nX: ", &[b'a'; 2000]] {
            slow.iter().for_each(|client| client.send(piece));
            scene.run(LATENCY);
        }
    });
    drop(slow);
    assert_eq!(scene.counters().connections_open, 0);
}

#[test]
fn heads_beyond_all_bounds() {
    let scene = Scene::with(Options::default(), small());
    let machine = scene.machine(small());
    attack(&scene, 2 << 10, || {
        for _ in 0..20 {
            let client = scene.client_of(&machine, 0);
            client.send(b"GET / HTTP/1.1\r\nHost: o\r\n");
            client.pour(&b"X-Long: 0123456789\r\n".repeat(1000), 100);
        }
    });
    scene.run(S);
    let counters = scene.counters();
    assert_eq!((counters.malformed, counters.requests, counters.connections_open), (20, 1, 0));
}

#[test]
fn bodies_that_drip() {
    let scene = Scene::new();
    let slow: Vec<_> = (0..200).map(|_| scene.client()).collect();
    // What is announced takes no memory.
    attack(&scene, 2 << 10, || {
        slow.iter()
            .for_each(|client| client.send("POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 60000000\r\n\r\n"));
        for _ in 0..20 {
            slow.iter().for_each(|client| client.send("x"));
            scene.run(LATENCY);
        }
    });
    drop(slow);
    assert_eq!(scene.counters().connections_open, 0);
}

#[test]
fn a_flood_of_resets() {
    let scene = Scene::new();
    attack(&scene, 8 << 10, || {
        for round in 0..1000 {
            let client = scene.client();
            client.send(get("/bytes/165854?delay=5ms").repeat(round % 3));
            scene.run(LATENCY / 2);
            client.abort();
        }
    });
    let counters = scene.counters();
    assert_eq!((counters.requests, counters.connections_open), (1000, 0));
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
    });
    machine.kill();
    assert_eq!(scene.counters().connections_open, 0);
}

#[test]
fn rapid_reset() {
    let scene = Scene::new();
    let client = scene.client();
    client.send(hello());
    attack(&scene, 4 << 10, || {
        for first in (0..40_000u32).step_by(100) {
            let mut bytes = Vec::new();
            for stream in (first..first + 100).map(|n| 2 * n + 1) {
                bytes.extend(frame(1, 5, stream, &block("/bytes/165854?delay=10ms")));
                bytes.extend(frame(3, 0, stream, &8u32.to_be_bytes()));
            }
            client.pour(&bytes, 1);
            if client.is_over() {
                break;
            }
        }
    });
    // The origin answered with ENHANCE_YOUR_CALM, and closed a while later.
    scene.run(S);
    let counters = scene.counters();
    assert_eq!((counters.malformed, counters.connections_open), (1, 0));
    assert!(counters.requests < 20_000, "{}", counters.requests);
}

#[test]
fn header_bombs() {
    let scene = Scene::new();
    // A name and value of 4000 bytes in the table, and then 16,000 references to it: 64 MB out of 16 kB.
    let mut bomb = block("/bytes/1");
    bomb.extend_from_slice(&[0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
    bomb.extend_from_slice(&[b'a'; 4000]);
    bomb.resize(16_000, 0xbe);
    attack(&scene, 4 << 10, || {
        for _ in 0..10 {
            let client = scene.client();
            client.send([hello(), frame(1, 5, 1, &bomb), frame(1, 5, 3, &bomb)].concat());
            // And blocks that never end.
            client.pour(&frame(1, 1, 5, &bomb), 1);
            client.pour(&frame(9, 0, 5, &bomb), 1000);
        }
    });
    scene.run(S);
    let counters = scene.counters();
    // Two whole ones and one without an end, of each.
    assert_eq!((counters.malformed, counters.connections_open), (30, 0));
}

#[test]
fn empty_frames() {
    let scene = Scene::new();
    for empty in [frame(0, 0, 1, b""), frame(8, 0, 0, &1u32.to_be_bytes()), frame(200, 0, 0, b"?"), frame(9, 0, 1, b"")]
    {
        let client = scene.client();
        attack(&scene, 2 << 10, || {
            client.send([hello(), frame(1, 4, 1, &block("/echo"))].concat());
            client.pour(&empty.repeat(1000), 100);
        });
    }
    scene.run(S);
    assert_eq!(scene.counters().connections_open, 0);
}

#[test]
fn settings_and_pings_nobody_reads_the_answers_of() {
    let scene = Scene::new();
    let machine = scene.machine(small());
    attack(&scene, 8 << 10, || {
        for kind in [frame(6, 0, 0, &[7; 8]), frame(4, 0, 0, &[0, 4, 0, 1, 0, 0])] {
            let client = scene.client_of(&machine, 0);
            client.send([hello(), kind.repeat(50_000)].concat());
            std::mem::forget(client);
        }
        machine.freeze();
        scene.run(10 * S);
    });
    machine.kill();
    assert_eq!(scene.counters().connections_open, 0);
}

/// 100 responses of 1 MiB in a window for all of them, over TLS, of which nothing is read.
#[test]
fn windows_opened_wide_and_nothing_read() {
    let scene = Scene::of(Options { tls: Some(server_options()), ..Options::default() });
    let machine = scene.machine(NodeOptions { send_buffer: 1 << 20, receive_buffer: 1 << 20, ..small() });
    let wide = http2::Options {
        max_streams: 500,
        stream_window: (1 << 31) - 1,
        connection_window: (1 << 31) - 1,
        ..http2::Options::client()
    };
    let connection = scene.tls_client_of(&machine, &client_config(Some("h2"))).expect("a handshake");
    let mut client = Http2::with(connection, &wide);
    attack(&scene, 8 << 10, || {
        (0..100).for_each(|tag| client.ask(tag, "GET", "/bytes/1MiB", &[], b""));
        machine.freeze();
        assert_eq!(scene.counters().requests, 100);
    });
    // A client that finally reads gets everything.
    machine.thaw();
    assert!((0..100).all(|tag| client.answer(tag).body == payload(1 << 20)));
    assert_eq!(scene.counters().answered, 101);
}

/// The window stays shut until everything has been asked for, and then opens wide.
#[test]
fn windows_never_opened() {
    let scene = Scene::of(Options { tls: Some(server_options()), ..Options::default() });
    let machine = scene.machine(small());
    let client = scene.tls_client_of(&machine, &client_config(Some("h2"))).expect("a handshake");
    attack(&scene, 80 << 10, || {
        client.send([PREFACE.as_slice(), &frame(4, 0, 0, &[0, 4, 0, 0, 0, 0])].concat());
        for stream in 0..500u32 {
            client.send(frame(1, 5, 2 * stream + 1, &block("/bytes/1MiB")));
        }
        scene.run(S);
        assert_eq!(scene.counters().requests, 500);
        client.send(frame(8, 0, 0, &0x7fff_0000u32.to_be_bytes()));
        client.send(frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]));
        machine.freeze();
        scene.run(S);
    });
    machine.kill();
    assert_eq!(scene.counters().connections_open, 0);
}

#[test]
fn random_frames() {
    let scene = Scene::new();
    let random = |below| scene.world.random(below) as usize;
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
    attack(&scene, 1 << 10, || {});
    scene.run(S);
    assert_eq!(scene.counters().connections_open, 0);
}
