//! Measures the memory of a waiting connection. Alone in its file, because it counts every allocation of the process.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicI64, Ordering};

use common::http2::Http2;
use common::pipe::{Pipe, client_config};
use weir_model::load::DriverChoice;
use weir_model::suite::Protocol;
use weir_origin::{Options, Origin, tls};
use weir_wire::juno::{Message, Meta, Opcode, Payload};
use weir_wire::redis::encode;

struct Counting;

/// Bytes allocated and not freed.
static LIVE: AtomicI64 = AtomicI64::new(0);

/// Held by the test that counts.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

// SAFETY: everything is passed on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
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

/// More than a power of two, so that tables that double are at their worst.
const CONNECTIONS: usize = 2_100;

const REQUEST: &[u8] = b"GET /bytes/11268 HTTP/1.1\r\nHost: o\r\n\r\n";

#[test]
fn a_connection_that_waits_costs_less_than_a_kibibyte() {
    let _alone = ALONE.lock();
    weir_net::raise_descriptor_limit();
    for driver in [DriverChoice::Epoll, DriverChoice::IoUring] {
        let origin = Origin::start(Options { driver, ..Options::default() }).expect("an origin");
        // A few first, for allocations that are made once.
        let few: Vec<TcpStream> = (0..10).map(|_| served(&origin)).collect();
        let mut all = Vec::with_capacity(CONNECTIONS);
        let before = LIVE.load(Ordering::Relaxed);
        for _ in 0..CONNECTIONS {
            all.push(served(&origin));
        }
        let each = (LIVE.load(Ordering::Relaxed) - before) as f64 / CONNECTIONS as f64;
        println!("{driver:?}: {each:.0} bytes a connection");
        assert!(each <= 1024.0, "{driver:?}: {each} bytes a connection");
        assert_eq!(origin.counters().connections_open as usize, CONNECTIONS + few.len());
    }
}

#[test]
fn a_connection_of_a_key_value_protocol_costs_as_little_and_a_key_little_more_than_itself() {
    let _alone = ALONE.lock();
    weir_net::raise_descriptor_limit();
    for protocol in [Protocol::Redis, Protocol::Juno] {
        let origin = Origin::start(Options { protocol, ..Options::default() }).expect("an origin");
        let ask = |stream: &mut TcpStream, n: u32| {
            let (mut bytes, key) = (Vec::new(), format!("{n:0>16}"));
            match protocol {
                Protocol::Redis => encode::request(&mut bytes, &[b"SET", key.as_bytes(), &[7; 100]]),
                _ => {
                    let meta = Meta { request_id: Some(&[7; 16]), ..Meta::default() };
                    let payload = Payload { kind: 0, data: &[7; 100] };
                    let (opcode, key) = (Opcode::SET, key.as_bytes());
                    let message = Message { opcode, meta, namespace: b"ns", key, payload, ..Message::default() };
                    message.encode(&mut bytes).expect("encoded");
                }
            }
            stream.write_all(&bytes).expect("sent");
            assert!(read(stream, &mut [0; 1024]) > 0);
        };
        let connect = || {
            let mut stream = TcpStream::connect(origin.addr()).expect("a connection");
            ask(&mut stream, 0);
            stream
        };
        let _few: Vec<TcpStream> = (0..10).map(|_| connect()).collect();
        let before = LIVE.load(Ordering::Relaxed);
        let mut all: Vec<TcpStream> = (0..CONNECTIONS).map(|_| connect()).collect();
        let each = (LIVE.load(Ordering::Relaxed) - before) as f64 / CONNECTIONS as f64;
        println!("{protocol:?}: {each:.0} bytes a connection");
        assert!(each <= 1024.0, "{protocol:?}: {each} bytes a connection");
        let before = LIVE.load(Ordering::Relaxed);
        (0..20_000).for_each(|n| ask(&mut all[0], n));
        let each = (LIVE.load(Ordering::Relaxed) - before) as f64 / 20_000.0;
        println!("{protocol:?}: {each:.0} bytes for a key of 16 bytes and a value of 100");
        assert!(each <= 450.0, "{protocol:?}: {each} bytes a key");
    }
}

#[test]
fn with_tls_it_costs_less_than_24_kibibytes_and_http_2_little_more_than_http_1() {
    let _alone = ALONE.lock();
    let identity = tls::Identity::generated(tls::KeyKind::P256).expect("a certificate");
    let server = tls::ServerOptions { identities: vec![identity], ..tls::ServerOptions::default() };
    for driver in [DriverChoice::Epoll, DriverChoice::IoUring] {
        for (tls, alpn, most) in [(true, "http/1.1", 4.0), (true, "h2", 12.0), (false, "h2", 10.0)] {
            let options = Options { driver, tls: tls.then(|| server.clone()), ..Options::default() };
            let origin = Origin::start(options).expect("an origin");
            let _few: Vec<TcpStream> = (0..10).map(|_| served_by(&origin, tls, alpn)).collect();
            let mut all = Vec::with_capacity(500);
            let before = LIVE.load(Ordering::Relaxed);
            for _ in 0..500 {
                all.push(served_by(&origin, tls, alpn));
            }
            let each = (LIVE.load(Ordering::Relaxed) - before) as f64 / 500.0 / 1024.0;
            println!("{driver:?}, TLS {tls}, {alpn}: {each:.1} KiB a connection");
            assert!(each <= most, "{driver:?}, TLS {tls}, {alpn}: {each} KiB a connection");
        }
    }
}

/// A connection that has had its response, of which the client keeps nothing but the socket.
fn served_by(origin: &Origin, with_tls: bool, alpn: &str) -> TcpStream {
    let mut pipe = match with_tls {
        true => Pipe::with_tls(origin, &client_config(Some(alpn))).expect("a handshake"),
        false => Pipe::plain(origin),
    };
    if alpn == "h2" {
        let mut two = Http2::new(pipe);
        assert_eq!(two.get("/bytes/11268").body.len(), 11_268);
        return two.pipe.stream;
    }
    pipe.send(REQUEST).expect("a request");
    let mut answer = Vec::new();
    while !answer.ends_with(weir_origin::payload(11_268)) {
        pipe.receive(&mut answer).expect("an answer");
    }
    pipe.stream
}

/// Rings of this process interrupt the reads of its other threads, too.
fn read(stream: &mut TcpStream, into: &mut [u8]) -> usize {
    loop {
        match stream.read(into) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            read => return read.expect("an answer"),
        }
    }
}

/// A connection that has had its response.
fn served(origin: &Origin) -> TcpStream {
    let mut stream = TcpStream::connect(origin.addr()).expect("a connection");
    stream.write_all(REQUEST).expect("a request");
    let mut answer = [0; 16 << 10];
    let mut have = 0;
    while have < 11_268 + 100 || !answer[..have].ends_with(&weir_origin::payload(11_268)[11_200..]) {
        have += read(&mut stream, &mut answer[have..]);
    }
    stream
}
