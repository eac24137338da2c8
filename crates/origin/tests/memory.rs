//! What a connection that waits costs, in bytes of the process. Alone in its file, because it counts every allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicI64, Ordering};

use weir_model::load::DriverChoice;
use weir_origin::{Options, Origin};

struct Counting;

/// Bytes allocated and not freed.
static LIVE: AtomicI64 = AtomicI64::new(0);

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

/// More than a power of two, so that tables that double are seen at their worst.
const CONNECTIONS: usize = 2_100;

const REQUEST: &[u8] = b"GET /bytes/11268 HTTP/1.1\r\nHost: o\r\n\r\n";

#[test]
fn a_connection_that_waits_costs_less_than_a_kibibyte() {
    weir_net::raise_descriptor_limit();
    for driver in [DriverChoice::Epoll, DriverChoice::Uring] {
        let origin = Origin::start(Options { driver, ..Options::default() }).expect("an origin");
        // A few first, for what is made once.
        let few: Vec<TcpStream> = (0..10).map(|_| served(&origin)).collect();
        let mut all = Vec::with_capacity(CONNECTIONS);
        let before = LIVE.load(Ordering::Relaxed);
        for _ in 0..CONNECTIONS {
            all.push(served(&origin));
        }
        let each = (LIVE.load(Ordering::Relaxed) - before) as f64 / CONNECTIONS as f64;
        println!("{driver:?}: {each:.0} bytes a connection");
        assert!(each <= 1024.0, "{driver:?}: {each} bytes a connection");
        assert_eq!(origin.books().connections_open as usize, CONNECTIONS + few.len());
    }
}

/// A connection that has had its answer.
fn served(origin: &Origin) -> TcpStream {
    let mut stream = TcpStream::connect(origin.addr()).expect("a connection");
    stream.write_all(REQUEST).expect("a request");
    let mut answer = [0; 16 << 10];
    let mut have = 0;
    while have < 11_268 + 100 || !answer[..have].ends_with(&weir_origin::payload(11_268)[11_200..]) {
        have += stream.read(&mut answer[have..]).expect("an answer");
    }
    stream
}
