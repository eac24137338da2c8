//! What keys and values cost the client: no allocation for a request, and a connection that waits is about as small as one of
//! HTTP. Alone in its file, because it counts every allocation of the process but those of its server.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use weir_load::{Outputs, Progress, StopFlag, run};
use weir_model::keyvalue::{KeyChoice, KeyValue};
use weir_model::load::{LoadProtocol, LoadSecond, LoadSpec, RequestSpec, Target};
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};
use weir_wire::juno::{Message, MessageFrame, Opcode, Payload, Reader, Status};
use weir_wire::memcached;
use weir_wire::redis::{Command, RequestFrame, RequestReader, Version, encode};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicI64 = AtomicI64::new(0);

/// Held by the test that counts.
static ALONE: Mutex<()> = Mutex::new(());

thread_local! {
    /// This thread is the server's.
    static SERVES: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: everything is passed on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !SERVES.get() {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
            BYTES.fetch_add(layout.size() as i64, Ordering::Relaxed);
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if !SERVES.get() {
            BYTES.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Store = Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>;

/// A server that speaks what its client does. It ends with the test process.
fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let store = Store::default();
    std::thread::spawn(move || {
        SERVES.set(true);
        for stream in listener.incoming().flatten() {
            let store = store.clone();
            let serve = move || {
                SERVES.set(true);
                // The client's end is the connection's.
                let _ = serve(stream, &store);
            };
            std::thread::Builder::new().stack_size(128 * 1024).spawn(serve).unwrap();
        }
    });
    addr
}

fn serve(mut stream: TcpStream, store: &Store) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut redis = RequestReader::new(RequestFrame::new(1 << 20));
    let mut memcached = memcached::RequestReader::new(memcached::RequestFrame::new(1 << 20));
    let mut juno = Reader::new(MessageFrame::new(1 << 20));
    let mut buffer = [0; 16 * 1024];
    loop {
        let length = stream.read(&mut buffer)?;
        let mut input = &buffer[..length];
        let mut out = Vec::new();
        match input.first() {
            None => return Ok(()),
            Some(b'G') => out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            Some(b'*') => {
                while let Some(message) = redis.next(&mut input).unwrap() {
                    serve_redis(&Command::parse(message).unwrap().unwrap(), store, &mut out);
                }
            }
            Some(b'a'..=b'z') => {
                while let Some(message) = memcached.next(&mut input).unwrap() {
                    serve_memcached(memcached::Command::parse(message).unwrap(), store, &mut out);
                }
            }
            _ => {
                while let Some(message) = juno.next(&mut input).unwrap() {
                    serve_juno(Message::parse(message).unwrap(), store, &mut out);
                }
            }
        }
        stream.write_all(&out)?;
    }
}

fn serve_redis(command: &Command<'_>, store: &Store, out: &mut Vec<u8>) {
    match command {
        Command::Set { key, value, .. } => {
            store.lock().unwrap().insert(key.to_vec(), value.to_vec());
            out.extend_from_slice(encode::OK);
        }
        Command::Get(key) => match store.lock().unwrap().get(*key) {
            Some(value) => encode::bulk(out, value),
            None => encode::null(out, Version::Resp2),
        },
        _ => out.extend_from_slice(b"+PONG\r\n"),
    }
}

fn serve_memcached(command: memcached::Command<'_>, store: &Store, out: &mut Vec<u8>) {
    use memcached::{Command, Reply};
    let reply = match command {
        Command::Store { key, data, .. } => {
            store.lock().unwrap().insert(key.to_vec(), data.to_vec());
            Reply::Stored
        }
        Command::Get { mut keys, .. } => {
            let key = keys.next().unwrap();
            if let Some(data) = store.lock().unwrap().get(key) {
                Reply::Value { key, flags: 0, cas: None, data }.encode(out).unwrap();
            }
            Reply::End
        }
        _ => Reply::Version(b"1"),
    };
    reply.encode(out).unwrap();
}

fn serve_juno(request: Message<'_>, store: &Store, out: &mut Vec<u8>) {
    let mut store = store.lock().unwrap();
    let mut response = Message { status: Some(Status::OK), payload: Payload::default(), ..request };
    match request.opcode {
        Opcode::GET => match store.get(request.key) {
            Some(value) => response.payload = Payload { kind: 0, data: value },
            None => response.status = Some(Status::NO_KEY),
        },
        Opcode::NOP => {}
        _ => drop(store.insert(request.key.to_vec(), request.payload.data.to_vec())),
    }
    response.encode(out).unwrap();
}

fn order(protocol: LoadProtocol, connections: u32, keys: KeyChoice) -> LoadSpec {
    let request = Request { method: "GET".into(), path: "/".into(), ..Request::default() };
    let mut spec =
        LoadSpec { protocol, connections, ..LoadSpec::new(Target::tcp(server(), "x"), request, Expect::default()) };
    if protocol.application().is_keyvalue() {
        let key_count = (keys != KeyChoice::Fresh).then_some(1_000);
        let keyvalue = KeyValue { keys, key_count, ..KeyValue::default() };
        spec.requests = RequestSpec::operations(&keyvalue.operations);
        spec.keyvalue = Some(keyvalue);
    }
    spec
}

fn load(spec: &LoadSpec, progress: &mut dyn FnMut(Progress)) {
    let result = run(spec, &Outputs::default(), &StopFlag::new(), progress).unwrap();
    assert_eq!(result.total.right, result.total.due, "{:?}", result.total);
    assert_eq!(result.total.connections, u64::from(spec.connections));
}

#[test]
fn a_request_allocates_nothing() {
    let _alone = ALONE.lock();
    for protocol in [
        LoadProtocol::Redis { pipeline: 4 },
        LoadProtocol::Juno { streams: 4 },
        LoadProtocol::Memcached { pipeline: 4 },
    ] {
        for keys in [KeyChoice::Uniform, KeyChoice::Zipf(0.99), KeyChoice::Sequential] {
            let count = |requests| {
                let before = ALLOCATIONS.load(Ordering::Relaxed);
                let kind = LoadKind::Count { requests };
                load(&LoadSpec { kind, duration_s: 60.0, ..order(protocol, 4, keys) }, &mut |_| {});
                ALLOCATIONS.load(Ordering::Relaxed) - before
            };
            // Beginning and ending a load allocate, and so does each second of it.
            let (few, many) = (count(1_000), count(11_000));
            assert!(many < few + 1_000, "{protocol:?} {keys:?}: {few} for 1,000 requests, {many} for 11,000");
        }
    }
}

#[test]
fn a_connection_that_waits_is_about_as_small_as_one_of_http() {
    let _alone = ALONE.lock();
    let bytes = |protocol| {
        // After a second, in which each connection has made some keys.
        let after_a_second = |connections: u32| {
            let before = BYTES.load(Ordering::Relaxed);
            let mut bytes = 0;
            let kind = LoadKind::open(f64::from(connections) * 6.0, Arrivals::Constant);
            let spec = LoadSpec { kind, duration_s: 1.5, ..order(protocol, connections, KeyChoice::Fresh) };
            load(&spec, &mut |news| {
                if let Progress::Second(LoadSecond { second: 0, .. }) = news {
                    bytes = BYTES.load(Ordering::Relaxed) - before;
                }
            });
            bytes
        };
        (after_a_second(420) - after_a_second(20)) / 400
    };
    let http = bytes(LoadProtocol::Http1 { pipeline: 1 });
    for protocol in [
        LoadProtocol::Redis { pipeline: 1 },
        LoadProtocol::Juno { streams: 1 },
        LoadProtocol::Memcached { pipeline: 1 },
    ] {
        let keyvalue = bytes(protocol);
        println!("{protocol:?}: {keyvalue} bytes a connection; HTTP: {http}");
        assert!(keyvalue > http && keyvalue < http + 640, "{protocol:?}: {keyvalue} bytes a connection; HTTP: {http}");
    }
}
