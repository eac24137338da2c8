//! What a connection costs, and that the usual request allocates nothing, on either driver. It counts what the whole process has
//! allocated, threads of the origin included, so it has a program of its own, and in it one test.

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;

use common::{ALL_LIVE, ALLOCATIONS, Http2, Pipe, connect, server_options};
use rustix::thread::gettid;
use weir_model::load::DriverChoice;
use weir_model::protocol::Protocol;
use weir_origin::{Options, Origin, payload};
use weir_wire::digest::{Digest, DigestKey};
use weir_wire::juno::{Message, Meta, Opcode, Payload};
use weir_wire::redis::encode;
use weir_wire::request_id::{RequestId, ResponseKey};

const DRIVERS: [DriverChoice; 2] = [DriverChoice::Epoll, DriverChoice::IoUring];

/// More than a power of two, so that tables that double are at their worst.
const CONNECTIONS: usize = 2_100;

/// The first request's ID.
const NAME: &str = "0001000000000000";

#[test]
fn connections_cost_little_and_usual_requests_allocate_nothing() {
    weir_net::raise_descriptor_limit();
    a_connection_that_waits_costs_less_than_a_kibibyte();
    a_connection_of_keys_and_values_costs_as_little_and_a_key_little_more_than_itself();
    with_tls_it_costs_a_few_kibibytes_and_http_2_little_more_than_http_1();
    the_usual_request_allocates_nothing();
    http2_and_tls_allocate_nothing();
    requests_of_keys_and_values_allocate_nothing_but_new_values();
}

/// Bytes that each of so many connections takes. A few come first, for allocations that are made once.
fn each(name: &str, number: usize, most: f64, connect: impl Fn() -> TcpStream) -> Vec<TcpStream> {
    let _few: Vec<TcpStream> = (0..10).map(|_| connect()).collect();
    let mut all = Vec::with_capacity(number);
    let before = ALL_LIVE.load(Ordering::Relaxed);
    all.extend((0..number).map(|_| connect()));
    let each = (ALL_LIVE.load(Ordering::Relaxed) - before) as f64 / number as f64;
    println!("{name}: {each:.0} bytes a connection");
    assert!(each <= most, "{name}: {each} bytes a connection");
    all
}

/// The last request of a connection of HTTP/1, whose response says that it is the last.
const LAST: &[u8] = b"GET /bytes/1 HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n";

/// How many bytes answer this, when it was asked before.
fn response_length(origin: &Origin, request: &[u8], last: &[u8]) -> usize {
    let lengths = [1, 2, 3].map(|times| {
        let (mut stream, mut response) = (connect(origin.addr()), Vec::new());
        stream.write_all(&[&request.repeat(times), last].concat()).expect("requests");
        stream.shutdown(Shutdown::Write).expect("shut down");
        stream.read_to_end(&mut response).expect("answers")
    });
    lengths[2] - lengths[1]
}

fn exchange(stream: &mut TcpStream, request: &[u8], response: &mut [u8]) {
    stream.write_all(request).expect("a request");
    stream.read_exact(response).expect("a response");
}

/// A connection that has had one response.
fn served(origin: &Origin, request: &[u8], response: &mut [u8]) -> TcpStream {
    let mut stream = connect(origin.addr());
    exchange(&mut stream, request, response);
    stream
}

fn a_connection_that_waits_costs_less_than_a_kibibyte() {
    for driver in DRIVERS {
        let origin = Origin::start(Options { driver, ..Options::default() }).expect("an origin");
        let request = b"GET /bytes/11268 HTTP/1.1\r\nHost: o\r\n\r\n";
        let length = response_length(&origin, request, LAST);
        let all = each(&format!("{driver:?}"), CONNECTIONS, 1024.0, || served(&origin, request, &mut vec![0; length]));
        assert!(origin.counters().connections_open as usize >= all.len());
    }
}

fn a_connection_of_keys_and_values_costs_as_little_and_a_key_little_more_than_itself() {
    for protocol in [Protocol::Redis, Protocol::Juno] {
        let origin = Origin::start(Options { protocol, ..Options::default() }).expect("an origin");
        let request = |n: u32| {
            let (mut bytes, key) = (Vec::new(), format!("{n:0>16}"));
            match protocol {
                Protocol::Redis => encode::request(&mut bytes, &[b"SET", key.as_bytes(), &[7; 100]]),
                _ => bytes = juno(&[Opcode::SET], key.as_bytes(), &[7; 100]),
            }
            bytes
        };
        let mut response = vec![0; response_length(&origin, &request(0), b"")];
        let name = format!("{protocol:?}");
        let mut all = each(&name, CONNECTIONS, 1024.0, || served(&origin, &request(0), &mut vec![0; response.len()]));
        let before = ALL_LIVE.load(Ordering::Relaxed);
        (0..20_000).for_each(|n| exchange(&mut all[0], &request(n), &mut response));
        let each = (ALL_LIVE.load(Ordering::Relaxed) - before) as f64 / 20_000.0;
        println!("{name}: {each:.0} bytes for a key of 16 bytes and a value of 100");
        assert!(each <= 450.0, "{name}: {each} bytes a key");
    }
}

fn with_tls_it_costs_a_few_kibibytes_and_http_2_little_more_than_http_1() {
    let server = server_options();
    for driver in DRIVERS {
        for (tls, alpn, most) in [(true, "http/1.1", 4.0), (true, "h2", 12.0), (false, "h2", 10.0)] {
            let options = Options { driver, tls: tls.then(|| server.clone()), ..Options::default() };
            let origin = Origin::start(options).expect("an origin");
            each(&format!("{driver:?}, TLS {tls}, {alpn}"), 500, most * 1024.0, || {
                let mut pipe = if tls { Pipe::with_tls(origin.addr(), alpn) } else { Pipe::new(origin.addr()) };
                if alpn == "h2" {
                    let mut client = Http2::new(pipe, "/bytes/11268", &[]);
                    assert_eq!(client.exchange(), 11_268);
                    return client.pipe.stream;
                }
                pipe.send(b"GET /bytes/11268 HTTP/1.1\r\nHost: o\r\n\r\n");
                let mut response = Vec::new();
                while !response.ends_with(payload(11_268)) {
                    pipe.receive(|bytes| response.extend_from_slice(bytes)).expect("a response");
                }
                pipe.stream
            });
        }
    }
}

/// Checks what 1000 of these allocate in the threads that take part, after a few to warm up. Requests that lie across two of io_uring's
/// buffers (128 KiB) are put together in memory that is freed with them; by epoll each is read into the same buffer from its beginning.
fn allocate(name: &str, driver: DriverChoice, most: u64, mut exchange: impl FnMut()) {
    (0..200).for_each(|_| exchange());
    let own = gettid().as_raw_nonzero().get() as usize;
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").map(|task| task.expect("a thread").file_name());
    let numbers = tasks.map(|task| task.to_string_lossy().parse().expect("a number"));
    let threads: Vec<usize> = numbers.filter(|number| *number == own || is_worker(*number)).collect();
    assert_eq!(threads.len(), 2, "the origin's worker and this one");
    let count = || threads.iter().map(|n| ALLOCATIONS[n % ALLOCATIONS.len()].load(Ordering::Relaxed)).sum::<u64>();
    let before = count();
    (0..1000).for_each(|_| exchange());
    let count = count() - before;
    let most = most + if driver == DriverChoice::Epoll { 0 } else { 20 };
    assert!(count <= most, "{driver:?} {name}: {count} in 1000 requests");
}

fn is_worker(thread: usize) -> bool {
    std::fs::read_to_string(format!("/proc/self/task/{thread}/comm")).is_ok_and(|name| name.starts_with("weir-origin-"))
}

fn the_usual_request_allocates_nothing() {
    for driver in DRIVERS {
        // A stream takes memory, and its twenty messages do not.
        let stream = "/stream?messages=20&first=0s&every=0s";
        for (target, most) in [("/bytes/128", 0), ("/bytes/11268", 0), ("/echo", 0), ("/delay/1us", 0), (stream, 1_000)]
        {
            let origin = Origin::start(Options { driver, ..Options::default() }).expect("an origin");
            let head = format!("POST {target} HTTP/1.1\r\nHost: o\r\nx-weir-id: ");
            let key = DigestKey::from(ResponseKey::default());
            let target_digest = key.target(b"POST", target.as_bytes());
            let digest = Digest { target: target_digest, headers: 0, body: key.body(b"hello"), length: 5 }.text();
            let digest = String::from_utf8_lossy(&digest);
            let mut request = format!("{head}{NAME}{digest}\r\nContent-Length: 5\r\n\r\nhello").into_bytes();
            let mut response = vec![0; response_length(&origin, &request, LAST)];
            let (mut stream, mut number) = (connect(origin.addr()), 0);
            allocate(target, driver, most, || {
                number += 1;
                request[head.len()..][..NAME.len()].copy_from_slice(&RequestId::new(1, 0, number).text());
                exchange(&mut stream, &request, &mut response);
            });
        }
    }
}

fn http2_and_tls_allocate_nothing() {
    let server = server_options();
    for driver in DRIVERS {
        for tls in [false, true] {
            for target in ["/bytes/128", "/bytes/11268", "/delay/1us"] {
                let options = Options { driver, tls: tls.then(|| server.clone()), ..Options::default() };
                let origin = Origin::start(options).expect("an origin");
                let pipe = if tls { Pipe::with_tls(origin.addr(), "h2") } else { Pipe::new(origin.addr()) };
                let mut client = Http2::new(pipe, target, &[("x-weir-id", NAME)]);
                allocate(&format!("TLS {tls}, {target}"), driver, 0, || {
                    client.exchange();
                });
            }
        }
    }
}

/// Messages of Juno for one key.
fn juno(opcodes: &[Opcode], key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &opcode in opcodes {
        let meta = Meta { ttl: 100, created: 7, version: 1, request_id: Some(&[7; 16]), ..Meta::default() };
        let data = if [Opcode::SET, Opcode::PREPARE_SET].contains(&opcode) { value } else { b"" };
        let payload = Payload { kind: 0, data };
        let message = Message { opcode, meta, namespace: b"ns", key, payload, ..Message::default() };
        message.encode(&mut bytes).expect("encoded");
    }
    bytes
}

fn requests_of_keys_and_values_allocate_nothing_but_new_values() {
    let value = [b'v'; 200];
    let mut redis = Vec::new();
    encode::request(&mut redis, &[b"SET", b"key", &value, b"EX", b"100"]);
    encode::request(&mut redis, &[b"GET", b"key"]);
    let memcached = [b"set key 0 100 200\r\n", &value[..], b"\r\nget key\r\n"].concat();
    let two_phases = juno(&[Opcode::PREPARE_SET, Opcode::ABORT, Opcode::READ], b"key", &value);
    for driver in DRIVERS {
        for (name, protocol, request, most) in [
            ("set and get", Protocol::Redis, &redis, 0),
            ("set and get", Protocol::Memcached, &memcached, 0),
            ("set and get", Protocol::Juno, &juno(&[Opcode::SET, Opcode::GET], b"key", &value), 0),
            // A lock has a key and a value, which it keeps until the commit.
            ("two phases", Protocol::Juno, &two_phases, 2000),
        ] {
            let origin = Origin::start(Options { driver, protocol, ..Options::default() }).expect("an origin");
            let mut response = vec![0; response_length(&origin, request, b"")];
            let mut stream = connect(origin.addr());
            allocate(&format!("{protocol:?} {name}"), driver, most, || exchange(&mut stream, request, &mut response));
        }
    }
}
