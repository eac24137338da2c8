//! The usual request allocates nothing, on either driver. Alone in its file, because it counts every allocation of
//! the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_model::load::DriverChoice;
use weir_origin::{Options, Origin};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

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

#[test]
fn the_usual_request_allocates_nothing() {
    for driver in [DriverChoice::Epoll, DriverChoice::Uring] {
        for target in ["/bytes/128", "/bytes/11268", "/echo", "/delay/1us"] {
            let count = allocations(driver, target);
            assert_eq!(count, 0, "{driver:?} {target}: in 1000 requests");
        }
    }
}

/// Allocations of the whole process during 1000 requests, after a few to get warm.
fn allocations(driver: DriverChoice, target: &str) -> u64 {
    let origin = Origin::start(Options { driver, ..Options::default() }).expect("an origin");
    let mut stream = TcpStream::connect(origin.addr()).expect("a connection");
    let request = format!("POST {target} HTTP/1.1\r\nHost: o\r\nContent-Length: 5\r\n\r\nhello");
    let mut answer = vec![0; 64 << 10];
    // All answers to a target are of one length; the first is known whole when the origin has nothing more.
    let length = origin_answer_length(&mut stream, &request, &mut answer);
    let mut exchange = |times: usize| {
        for _ in 0..times {
            stream.write_all(request.as_bytes()).expect("a request");
            stream.read_exact(&mut answer[..length]).expect("an answer");
        }
    };
    exchange(100);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    exchange(1000);
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

fn origin_answer_length(stream: &mut TcpStream, request: &str, buffer: &mut [u8]) -> usize {
    stream.write_all(request.as_bytes()).expect("a request");
    let mut have = 0;
    loop {
        have += stream.read(&mut buffer[have..]).expect("an answer");
        let text = String::from_utf8_lossy(&buffer[..have]);
        let Some((head, _)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let body: usize = length.and_then(|text| text.parse().ok()).expect("a length");
        let all = head.len() + 4 + body;
        if have == all {
            return all;
        }
    }
}
