//! Hostile peers: nothing they do ends the origin, delays others, or makes it grow without limit. The tests count
//! allocations, so they run one at a time.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use common::http2::Http2;
use common::pipe::{Pipe, client_config, server_options};
use common::{Client, counters_when, get, start};
use rustix::net::sockopt::set_socket_linger;
use weir_model::load::DriverChoice;
use weir_origin::{Options, Origin, payload};
use weir_wire::http2::{self, PREFACE};

struct Counting;

/// Bytes allocated and not freed.
static LIVE: AtomicI64 = AtomicI64::new(0);
/// The maximum since the last reset.
static MOST: AtomicI64 = AtomicI64::new(0);
/// Held by the test that counts.
static ALONE: Mutex<()> = Mutex::new(());

// SAFETY: everything is passed on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed) + layout.size() as i64;
        MOST.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that was allocated at once beyond what was there before, in MiB.
fn grown(attack: impl FnOnce()) -> f64 {
    let before = LIVE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    attack();
    (MOST.load(Ordering::Relaxed) - before) as f64 / f64::from(1 << 20)
}

on_each_driver!(
    heads_that_never_end,
    heads_beyond_all_bounds,
    bodies_that_drip,
    a_flood_of_resets,
    pipelines_that_nobody_reads,
    rapid_reset,
    header_bombs,
    empty_frames,
    settings_and_pings_nobody_reads_the_answers_of,
    windows_opened_wide_and_nothing_read,
    windows_never_opened,
    random_frames,
);

/// Checks that others are served and the origin is alive.
fn still_serves(origin: &Origin) {
    assert_eq!(Client::new(origin).get("/bytes/11268").body, payload(11_268));
    assert_eq!(origin.failure(), None);
}

fn still_serves_tls(origin: &Origin) {
    let pipe = Pipe::with_tls(origin, &client_config(Some("h2"))).expect("a handshake");
    assert_eq!(Http2::new(pipe).get("/bytes/11268").body, payload(11_268));
    assert_eq!(origin.failure(), None);
}

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// GET http://o/ with a path, as a header block without a table.
fn block(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x01, 1, b'o', 0x04, path.len() as u8];
    block.extend_from_slice(path.as_bytes());
    block
}

/// Preface and empty SETTINGS.
fn hello() -> Vec<u8> {
    [PREFACE.as_slice(), &frame(4, 0, 0, b"")].concat()
}

/// Writes until the origin stops reading, or everything is written.
fn pour(stream: &mut TcpStream, bytes: &[u8], times: usize) {
    stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    for _ in 0..times {
        if stream.write_all(bytes).is_err() {
            return;
        }
    }
}

fn heads_that_never_end(driver: DriverChoice) {
    let _alone = alone();
    let origin = start(driver);
    let mut slow: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(origin.addr()).expect("accepted")).collect();
    let most = grown(|| {
        for piece in [&b"GET /by"[..], b"tes/1", b"28 HTTP/1", b".1\r\nHo", b"st: o\r\nX: ", &[b'a'; 2000]] {
            for stream in &mut slow {
                stream.write_all(piece).expect("sent");
            }
        }
        still_serves(&origin);
    });
    assert!(most < 4.0, "{most} MiB for 300 half heads of 2 kB");
    drop(slow);
    counters_when(&origin, |counters| counters.connections_open == 0);
}

fn heads_beyond_all_bounds(driver: DriverChoice) {
    let _alone = alone();
    let origin = start(driver);
    let most = grown(|| {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(origin.addr()).expect("accepted");
            stream.write_all(b"GET / HTTP/1.1\r\nHost: o\r\n").expect("sent");
            pour(&mut stream, &b"X-Long: 0123456789\r\n".repeat(1000), 100);
        }
        still_serves(&origin);
    });
    assert!(most < 8.0, "{most} MiB");
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!((counters.malformed, counters.requests), (20, 1));
}

fn bodies_that_drip(driver: DriverChoice) {
    let _alone = alone();
    let origin = start(driver);
    let head = b"POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 60000000\r\n\r\n";
    let mut slow: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(origin.addr()).expect("accepted")).collect();
    let most = grown(|| {
        for stream in &mut slow {
            stream.write_all(head).expect("sent");
        }
        for _ in 0..20 {
            for stream in &mut slow {
                stream.write_all(b"x").expect("sent");
            }
        }
        still_serves(&origin);
    });
    assert!(most < 2.0, "{most} MiB: what is announced takes no memory");
    drop(slow);
    counters_when(&origin, |counters| counters.connections_open == 0);
}

fn a_flood_of_resets(driver: DriverChoice) {
    let _alone = alone();
    let origin = start(driver);
    let most = grown(|| {
        for round in 0..1000 {
            let mut stream = TcpStream::connect(origin.addr()).expect("accepted");
            if round % 3 > 0 {
                stream.write_all(get("/bytes/165854?delay=5ms").repeat(round % 3).as_bytes()).expect("sent");
            }
            set_socket_linger(&stream, Some(Duration::ZERO)).expect("a linger");
        }
        still_serves(&origin);
    });
    assert!(most < 8.0, "{most} MiB");
    counters_when(&origin, |counters| counters.connections_open == 0);
}

fn pipelines_that_nobody_reads(driver: DriverChoice) {
    let _alone = alone();
    let origin = start(driver);
    let mut greedy = TcpStream::connect(origin.addr()).expect("accepted");
    payload(64 << 20);
    let most = grown(|| {
        pour(&mut greedy, get("/bytes/64MiB").repeat(100).as_bytes(), 100);
        pour(&mut greedy, get("/bytes/10").repeat(100).as_bytes(), 100);
        still_serves(&origin);
    });
    assert!(most < 8.0, "{most} MiB");
    let begun = Instant::now();
    drop(greedy);
    counters_when(&origin, |counters| counters.connections_open == 0);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

fn rapid_reset(driver: DriverChoice) {
    let _alone = alone();
    let origin = start(driver);
    let mut stream = TcpStream::connect(origin.addr()).expect("accepted");
    stream.write_all(&hello()).expect("sent");
    let most = grown(|| {
        for first in (0..40_000u32).step_by(100) {
            let mut bytes = Vec::new();
            for stream in (first..first + 100).map(|n| 2 * n + 1) {
                bytes.extend(frame(1, 5, stream, &block("/bytes/165854?delay=10ms")));
                bytes.extend(frame(3, 0, stream, &8u32.to_be_bytes()));
            }
            if stream.write_all(&bytes).is_err() {
                break;
            }
        }
        still_serves(&origin);
    });
    assert!(most < 4.0, "{most} MiB");
    // The origin answered with ENHANCE_YOUR_CALM, and closed.
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert!(counters.requests < 20_000 && counters.malformed == 1, "{counters:?}");
}

fn header_bombs(driver: DriverChoice) {
    let _alone = alone();
    let origin = start(driver);
    // A name and value of 4000 bytes in the table, and then 16,000 references to it: 64 MB out of 16 kB.
    let mut bomb = block("/bytes/1");
    bomb.extend_from_slice(&[0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
    bomb.extend_from_slice(&[b'a'; 4000]);
    bomb.resize(16_000, 0xbe);
    let most = grown(|| {
        for _ in 0..10 {
            let mut stream = TcpStream::connect(origin.addr()).expect("accepted");
            stream.write_all(&hello()).expect("sent");
            stream.write_all(&frame(1, 5, 1, &bomb)).expect("sent");
            pour(&mut stream, &frame(1, 5, 3, &bomb), 1);
            // And blocks that never end.
            pour(&mut stream, &frame(1, 1, 5, &bomb), 1);
            pour(&mut stream, &frame(9, 0, 5, &bomb), 1000);
        }
        still_serves(&origin);
    });
    assert!(most < 8.0, "{most} MiB");
    let counters = counters_when(&origin, |counters| counters.connections_open == 0);
    assert!(counters.malformed >= 10, "{counters:?}");
}

fn empty_frames(driver: DriverChoice) {
    let _alone = alone();
    let origin = start(driver);
    for empty in [frame(0, 0, 1, b""), frame(8, 0, 0, &1u32.to_be_bytes()), frame(200, 0, 0, b"?"), frame(9, 0, 1, b"")]
    {
        let mut stream = TcpStream::connect(origin.addr()).expect("accepted");
        let most = grown(|| {
            stream.write_all(&hello()).expect("sent");
            stream.write_all(&frame(1, 4, 1, &block("/echo"))).expect("sent");
            pour(&mut stream, &empty.repeat(1000), 100);
        });
        assert!(most < 4.0, "{most} MiB");
    }
    still_serves(&origin);
    counters_when(&origin, |counters| counters.connections_open == 0);
}

fn settings_and_pings_nobody_reads_the_answers_of(driver: DriverChoice) {
    let _alone = alone();
    let origin = start(driver);
    let mut streams = Vec::new();
    let most = grown(|| {
        for kind in [frame(6, 0, 0, &[7; 8]), frame(4, 0, 0, &[0, 4, 0, 1, 0, 0])] {
            let mut stream = TcpStream::connect(origin.addr()).expect("accepted");
            stream.write_all(&hello()).expect("sent");
            pour(&mut stream, &kind.repeat(1000), 500);
            streams.push(stream);
        }
        still_serves(&origin);
    });
    assert!(most < 16.0, "{most} MiB");
    drop(streams);
    counters_when(&origin, |counters| counters.connections_open == 0);
}

/// 500 responses of 1 MiB in a window for all of them, over TLS, of which nothing is read.
fn windows_opened_wide_and_nothing_read(driver: DriverChoice) {
    let _alone = alone();
    let options = Options { driver, tls: Some(server_options()), ..Options::default() };
    let origin = Origin::start(options).expect("an origin");
    let wide = http2::Options {
        max_streams: 500,
        stream_window: (1 << 31) - 1,
        connection_window: (1 << 31) - 1,
        ..http2::Options::client()
    };
    let pipe = Pipe::with_tls(&origin, &client_config(Some("h2"))).expect("a handshake");
    let mut client = Http2::with(pipe, &wide);
    let most = grown(|| {
        for tag in 0..500 {
            client.ask(tag, "GET", "/bytes/1MiB", &[], b"");
        }
        counters_when(&origin, |counters| counters.requests == 500);
        std::thread::sleep(Duration::from_millis(100));
        still_serves_tls(&origin);
    });
    assert!(most < 32.0, "{most} MiB for answers of 500 MiB");
    // A client that finally reads gets everything.
    for tag in 0..500 {
        assert!(client.answer(tag).body == payload(1 << 20));
    }
    counters_when(&origin, |counters| counters.answered == 501);
}

/// The window stays shut until everything has been asked for, and then opens wide.
fn windows_never_opened(driver: DriverChoice) {
    let _alone = alone();
    let options = Options { driver, tls: Some(server_options()), ..Options::default() };
    let origin = Origin::start(options).expect("an origin");
    let mut pipe = Pipe::with_tls(&origin, &client_config(Some("h2"))).expect("a handshake");
    let most = grown(|| {
        let shut = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
        pipe.send(&[PREFACE.as_slice(), &shut].concat()).expect("sent");
        for stream in 0..500u32 {
            pipe.send(&frame(1, 5, 2 * stream + 1, &block("/bytes/1MiB"))).expect("sent");
        }
        counters_when(&origin, |counters| counters.requests == 500);
        pipe.send(&frame(8, 0, 0, &0x7fff_0000u32.to_be_bytes())).expect("sent");
        pipe.send(&frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff])).expect("sent");
        std::thread::sleep(Duration::from_millis(300));
        still_serves_tls(&origin);
    });
    assert!(most < 120.0, "{most} MiB for answers of 500 MiB");
    drop(pipe);
    counters_when(&origin, |counters| counters.connections_open == 0);
}

fn random_frames(driver: DriverChoice) {
    let _alone = alone();
    let origin = start(driver);
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    for _ in 0..300 {
        let mut bytes = hello();
        for _ in 0..random() % 20 {
            let stream = (random() % 9) as u32;
            let body: Vec<u8> = match random() % 3 {
                0 => block("/bytes/2000?delay=1ms"),
                1 => (0..random() % 40).map(|_| random() as u8).collect(),
                _ => (random() as u32).to_be_bytes().to_vec(),
            };
            bytes.extend(frame((random() % 11) as u8, random() as u8, stream, &body));
        }
        let mut stream = TcpStream::connect(origin.addr()).expect("accepted");
        let _ = stream.write_all(&bytes);
        if random() % 2 == 0 {
            stream.set_read_timeout(Some(Duration::from_millis(5))).expect("a timeout");
            let _ = stream.read(&mut [0; 4096]);
        }
    }
    still_serves(&origin);
    counters_when(&origin, |counters| counters.connections_open == 0);
}
