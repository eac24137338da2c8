//! What keys and values cost the client: no allocation for a request, and a connection that waits is about as small as one of
//! HTTP. A program of its own, because its allocator counts those of the whole process, but for the origin's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use weir_load::{Outputs, Progress, StopFlag, run};
use weir_model::keyvalue::{KeyChoice, KeyValue};
use weir_model::load::{LoadProtocol, LoadSecond, LoadSpec, RequestSpec, Target};
use weir_model::suite::{Arrivals, Expect, LoadKind, Protocol, Request};
use weir_origin::{Options, Origin};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicI64 = AtomicI64::new(0);

/// Held by the test that counts.
static ALONE: Mutex<()> = Mutex::new(());

/// Whether this thread is one of an origin.
fn serves() -> bool {
    let mut name = [0_u8; 16];
    // SAFETY: the kernel writes at most 16 bytes, its longest name with the zero that ends it.
    let failed = unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    failed == 0 && name.starts_with(b"weir-origin")
}

// SAFETY: everything is passed on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !serves() {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
            BYTES.fetch_add(layout.size() as i64, Ordering::Relaxed);
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if !serves() {
            BYTES.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const STORES: [Protocol; 3] = [Protocol::Redis, Protocol::Juno, Protocol::Memcached];

/// Runs a load, changed, on an origin of its own.
fn load(
    protocol: Protocol,
    in_flight: u32,
    keys: KeyChoice,
    change: impl FnOnce(&mut LoadSpec),
    progress: &mut dyn FnMut(Progress),
) {
    let origin = Origin::start(Options { protocol, threads: 1, ..Options::default() }).unwrap();
    let mut spec = LoadSpec::new(Target::tcp(origin.addr(), "x"), Request::get("/"), Expect::default());
    spec.protocol = LoadProtocol::of(protocol, 1).in_flight(in_flight);
    if protocol.is_keyvalue() {
        let key_count = (keys != KeyChoice::Fresh).then_some(1_000);
        let keyvalue = KeyValue { keys, key_count, ..KeyValue::default() };
        spec.requests = RequestSpec::operations(&keyvalue.operations);
        spec.keyvalue = Some(keyvalue);
    }
    change(&mut spec);
    let result = run(&spec, &Outputs::default(), &StopFlag::new(), progress).unwrap();
    assert_eq!(result.total.successful, result.total.due, "{:?}", result.total);
    assert_eq!(result.total.connections, u64::from(spec.connections));
}

#[test]
fn a_request_allocates_nothing() {
    let _alone = ALONE.lock();
    for protocol in STORES {
        for keys in [KeyChoice::Uniform, KeyChoice::Zipf(0.99), KeyChoice::Sequential] {
            let count = |requests| {
                let before = ALLOCATIONS.load(Ordering::Relaxed);
                let counted = |spec: &mut LoadSpec| {
                    (spec.kind, spec.connections, spec.duration_s) = (LoadKind::Count { requests }, 4, 60.0);
                };
                load(protocol, 4, keys, counted, &mut |_| {});
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
            let open = |spec: &mut LoadSpec| (spec.kind, spec.connections, spec.duration_s) = (kind, connections, 1.5);
            load(protocol, 1, KeyChoice::Fresh, open, &mut |news| {
                if let Progress::Second(LoadSecond { second: 0, .. }) = news {
                    bytes = BYTES.load(Ordering::Relaxed) - before;
                }
            });
            bytes
        };
        (after_a_second(420) - after_a_second(20)) / 400
    };
    let http = bytes(Protocol::Http11);
    for protocol in STORES {
        let keyvalue = bytes(protocol);
        println!("{protocol:?}: {keyvalue} bytes a connection; HTTP: {http}");
        assert!(keyvalue > http && keyvalue < http + 640, "{protocol:?}: {keyvalue} bytes a connection; HTTP: {http}");
    }
}
