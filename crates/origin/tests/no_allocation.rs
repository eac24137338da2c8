//! The usual request allocates nothing, on either driver, with HTTP/1.1 and HTTP/2, with TLS and without. Alone in its
//! file, because it counts every allocation of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_model::load::DriverChoice;
use weir_model::suite::Protocol;
use weir_origin::{Options, Origin};
use weir_wire::juno::{Message, Meta, Opcode, Payload};
use weir_wire::names::Name;
use weir_wire::redis::encode as redis_encode;

/// The first request's name.
const NAME: &str = "0001000000000000";

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// Held by the test that counts.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

// SAFETY: everything is passed on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most allocations of 1000 requests. Those that lie across two of io_uring's buffers (128 KiB) are put together in memory that is
/// freed with them; by epoll each is read into the same buffer from its beginning.
fn split(driver: DriverChoice) -> u64 {
    if driver == DriverChoice::Epoll { 0 } else { 20 }
}

/// The least of up to three counts; it stops as soon as one is not above `most`. The test runner allocates now and
/// then in a thread of its own, when another test has ended. What a request allocates is in every count.
fn least(most: u64, count: impl Fn() -> u64) -> u64 {
    let mut least = u64::MAX;
    for _ in 0..3 {
        least = least.min(count());
        if least <= most {
            break;
        }
    }
    least
}

#[test]
fn the_usual_request_allocates_nothing() {
    let _alone = ALONE.lock();
    for driver in [DriverChoice::Epoll, DriverChoice::IoUring] {
        for target in ["/bytes/128", "/bytes/11268", "/echo", "/delay/1us"] {
            let most = split(driver);
            let count = least(most, || allocations(driver, target));
            assert!(count <= most, "{driver:?} {target}: {count} in 1000 requests");
        }
    }
}

#[test]
fn http2_and_tls_allocate_nothing() {
    let _alone = ALONE.lock();
    for driver in [DriverChoice::Epoll, DriverChoice::IoUring] {
        for tls in [false, true] {
            for target in ["/bytes/128", "/bytes/11268", "/delay/1us"] {
                let most = split(driver);
                let count = least(most, || wire::allocations(driver, tls, target));
                assert!(count <= most, "{driver:?}, TLS {tls}, {target}: {count} in 1000 requests");
            }
        }
    }
}

#[test]
fn key_value_requests_allocate_nothing_but_new_values() {
    let _alone = ALONE.lock();
    let value = [b'v'; 200];
    let mut redis = Vec::new();
    redis_encode::request(&mut redis, &[b"SET", b"key", &value, b"EX", b"100"]);
    redis_encode::request(&mut redis, &[b"GET", b"key"]);
    let memcached = [b"set key 0 100 200\r\n", &value[..], b"\r\nget key\r\n"].concat();
    let juno = |opcodes: &[Opcode]| {
        let mut bytes = Vec::new();
        for &opcode in opcodes {
            let meta = Meta { ttl: 100, created: 7, version: 1, request_id: Some(&[7; 16]), ..Meta::default() };
            let data: &[u8] = if [Opcode::SET, Opcode::PREPARE_SET].contains(&opcode) { &value } else { b"" };
            let payload = Payload { kind: 0, data };
            let message = Message { opcode, meta, namespace: b"ns", key: b"key", payload, ..Message::default() };
            message.encode(&mut bytes).expect("encoded");
        }
        bytes
    };
    for driver in [DriverChoice::Epoll, DriverChoice::IoUring] {
        for (name, protocol, bytes, most) in [
            ("set and get", Protocol::Redis, redis.clone(), 0),
            ("set and get", Protocol::Memcached, memcached.clone(), 0),
            ("set and get", Protocol::Juno, juno(&[Opcode::SET, Opcode::GET]), 0),
            // A lock has a key and a value, which it keeps until the commit.
            ("two phases", Protocol::Juno, juno(&[Opcode::PREPARE_SET, Opcode::ABORT, Opcode::READ]), 2000),
        ] {
            let most = most + split(driver);
            let count = least(most, || keyvalue_allocations(driver, protocol, &bytes));
            assert!(count <= most, "{driver:?} {protocol:?} {name}: {count} in 1000 times");
        }
    }
}

fn keyvalue_allocations(driver: DriverChoice, protocol: Protocol, request: &[u8]) -> u64 {
    let origin = Origin::start(Options { driver, protocol, ..Options::default() }).expect("an origin");
    let mut stream = TcpStream::connect(origin.addr()).expect("a connection");
    let mut answer = vec![0; 64 << 10];
    // The first answers differ, because nothing is stored; all others have the same length.
    stream.write_all(request).expect("a request");
    std::thread::sleep(std::time::Duration::from_millis(50));
    read(&mut stream, &mut answer);
    stream.write_all(request).expect("a request");
    std::thread::sleep(std::time::Duration::from_millis(50));
    let length = read(&mut stream, &mut answer);
    let mut exchange = |times: usize| {
        for _ in 0..times {
            stream.write_all(request).expect("a request");
            stream.read_exact(&mut answer[..length]).expect("an answer");
        }
    };
    exchange(200);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    exchange(1000);
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// A client whose own path allocates nothing either: the one that weir's load uses.
mod wire {
    use super::*;
    use weir_origin::tls;
    use weir_wire::http2::{self, Body, Client, ClientEvent, Prepared, Request};
    use weir_wire::tls::{ClientConfig, Scratch, ServerName, Session, TlsEvent};

    struct Transport {
        stream: TcpStream,
        tls: Option<(Session, Scratch)>,
        sealed: Vec<u8>,
    }

    impl Transport {
        fn new(origin: &Origin, tls: bool) -> Transport {
            let stream = TcpStream::connect(origin.addr()).expect("a connection");
            let mut transport = Transport { stream, tls: None, sealed: Vec::with_capacity(1 << 16) };
            if tls {
                let options = weir_wire::tls::ClientOptions { alpn: Some("h2".to_owned()), ..Default::default() };
                let config = ClientConfig::new(&options).expect("options");
                let name = ServerName::new("localhost").expect("a name");
                let mut session = Session::client(&config, &name).expect("a session");
                session.start(&mut transport.sealed).expect("a hello");
                transport.tls = Some((session, Scratch::new()));
                transport.flush();
            }
            transport
        }

        fn flush(&mut self) {
            self.stream.write_all(&self.sealed).expect("sent");
            self.sealed.clear();
        }

        fn send(&mut self, bytes: &[u8]) {
            match &mut self.tls {
                None => self.sealed.extend_from_slice(bytes),
                Some((session, _)) => session.write(&[bytes], &mut self.sealed).expect("ready"),
            }
            self.flush();
        }

        /// Waits for bytes, and passes the plaintext on.
        fn receive(&mut self, buffer: &mut [u8], mut see: impl FnMut(&[u8])) {
            let count = loop {
                match self.stream.read(buffer) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    read => break read.expect("bytes"),
                }
            };
            assert!(count > 0, "the connection ended");
            let mut input = &buffer[..count];
            match &mut self.tls {
                None => see(input),
                Some((session, scratch)) => {
                    while let Some(event) = session.next(&mut input, scratch, &mut self.sealed).expect("TLS") {
                        if let TlsEvent::Plaintext(place) = event {
                            see(&scratch[place]);
                        }
                    }
                }
            }
            self.flush();
        }
    }

    pub fn allocations(driver: DriverChoice, tls: bool, target: &str) -> u64 {
        let identity = tls::Identity::generated(tls::KeyKind::P256).expect("a certificate");
        let server = tls::ServerOptions { identities: vec![identity], ..tls::ServerOptions::default() };
        let options = Options { driver, tls: tls.then_some(server), ..Options::default() };
        let origin = Origin::start(options).expect("an origin");
        let mut transport = Transport::new(&origin, tls);
        let mut buffer = vec![0; 1 << 16];
        while transport.tls.as_ref().is_some_and(|(session, _)| !session.ready()) {
            transport.receive(&mut buffer, |_| {});
        }
        let mut client = Client::new(&http2::Options::client());
        let (mut out, mut back) = (Vec::with_capacity(1 << 16), Vec::with_capacity(1 << 16));
        client.start(&mut out);
        let request =
            Request { method: "GET", scheme: "http", authority: "o", path: target, headers: &[("x-weir-name", NAME)] };
        let request = Prepared::request(&request).expect("a request");
        let mut exchange = |times: usize| {
            for _ in 0..times {
                client.request(0, &request, Body::None, &mut out).expect("a stream");
                transport.send(&out);
                out.clear();
                let mut done = false;
                while !done {
                    transport.receive(&mut buffer, |bytes| {
                        let mut input = bytes;
                        while let Some(event) = client.next(&mut input, &mut back).expect("HTTP/2") {
                            done |= matches!(event, ClientEvent::End { .. });
                        }
                    });
                    out.append(&mut back);
                }
            }
        };
        exchange(200);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        exchange(1000);
        ALLOCATIONS.load(Ordering::Relaxed) - before
    }
}

/// Allocations of the whole process during 1000 requests, after a few to warm up.
fn allocations(driver: DriverChoice, target: &str) -> u64 {
    let origin = Origin::start(Options { driver, ..Options::default() }).expect("an origin");
    let mut stream = TcpStream::connect(origin.addr()).expect("a connection");
    let mut request =
        format!("POST {target} HTTP/1.1\r\nHost: o\r\nx-weir-name: {NAME}\r\nContent-Length: 5\r\n\r\nhello")
            .into_bytes();
    let name_at = request.windows(NAME.len()).position(|part| part == NAME.as_bytes()).expect("the name");
    let mut number = 0;
    let mut answer = vec![0; 64 << 10];
    // All responses to a target have the same length. The first is complete when the origin sends nothing more.
    let length = origin_answer_length(&mut stream, &request, &mut answer);
    let mut exchange = |times: usize| {
        for _ in 0..times {
            number += 1;
            request[name_at..name_at + NAME.len()].copy_from_slice(&Name::new(1, 0, number).text());
            stream.write_all(&request).expect("a request");
            stream.read_exact(&mut answer[..length]).expect("an answer");
        }
    };
    exchange(100);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    exchange(1000);
    ALLOCATIONS.load(Ordering::Relaxed) - before
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

fn origin_answer_length(stream: &mut TcpStream, request: &[u8], buffer: &mut [u8]) -> usize {
    stream.write_all(request).expect("a request");
    let mut have = 0;
    loop {
        have += read(stream, &mut buffer[have..]);
        let text = String::from_utf8_lossy(&buffer[..have]);
        let Some((head, _)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|transport| transport.strip_prefix("Content-Length: "));
        let body: usize = length.and_then(|text| text.parse().ok()).expect("a length");
        let all = head.len() + 4 + body;
        if have == all {
            return all;
        }
    }
}
