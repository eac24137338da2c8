//! What TLS costs in memory: bytes of an idle session, and allocations of a record. The crypto library allocates by C's
//! `malloc`, so that is what is counted, under Rust's allocator too.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::cell::Cell;
use std::ffi::c_void;

use weir_wire::tls::{
    ClientConfig, ClientOptions, Identity, KeyKind, Scratch, ServerConfig, ServerName, ServerOptions, Session,
    TlsEvent, Version, suites,
};

thread_local! {
    /// Bytes that this thread has allocated and not freed.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    /// Allocations that this thread has made.
    static MADE: Cell<usize> = const { Cell::new(0) };
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    fn __libc_free(old: *mut c_void);
    fn malloc_usable_size(of: *mut c_void) -> usize;
}

/// Counts what was allocated: with the heap's own word of eight bytes.
fn made(new: *mut c_void) -> *mut c_void {
    if !new.is_null() {
        // SAFETY: it was allocated just now.
        let size = unsafe { malloc_usable_size(new) } + 8;
        LIVE.set(LIVE.get() + size as isize);
        MADE.set(MADE.get() + 1);
    }
    new
}

fn gone(old: *mut c_void) {
    if !old.is_null() {
        // SAFETY: it is about to be freed, and is not yet.
        let size = unsafe { malloc_usable_size(old) } + 8;
        LIVE.set(LIVE.get() - size as isize);
    }
}

/// C's, counted.
#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut c_void {
    // SAFETY: glibc's own allocator, which this replaces the name of.
    made(unsafe { __libc_malloc(size) })
}

/// C's, counted.
#[unsafe(no_mangle)]
extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: as for malloc.
    made(unsafe { __libc_calloc(count, size) })
}

/// C's, counted.
///
/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    gone(old);
    // SAFETY: as for malloc; the caller promises the same of `old` as to C's.
    made(unsafe { __libc_realloc(old, size) })
}

/// C's, counted.
///
/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(to: *mut *mut c_void, align: usize, size: usize) -> i32 {
    // SAFETY: as for malloc.
    let new = made(unsafe { __libc_memalign(align, size) });
    if new.is_null() {
        return 12;
    }
    // SAFETY: the caller promises that it can be written to.
    unsafe { *to = new };
    0
}

/// C's, counted.
///
/// # Safety
/// As C's.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(old: *mut c_void) {
    gone(old);
    // SAFETY: the caller promises the same as to C's.
    unsafe { __libc_free(old) }
}

/// Transfers bytes between the two until neither has any left.
fn settle(client: &mut Session, server: &mut Session, scratch: &mut Scratch, there: &mut Vec<u8>, back: &mut Vec<u8>) {
    while !there.is_empty() || !back.is_empty() {
        hear(server, there, scratch, back);
        hear(client, back, scratch, there);
    }
}

fn hear(session: &mut Session, bytes: &mut Vec<u8>, scratch: &mut Scratch, out: &mut Vec<u8>) -> usize {
    let mut input = &bytes[..];
    let mut heard = 0;
    while let Some(event) = session.next(&mut input, scratch, out).expect("TLS") {
        if let TlsEvent::Plaintext(range) = event {
            heard += range.len();
        }
    }
    bytes.clear();
    heard
}

fn client_config(version: Version, resumption: bool) -> ClientConfig {
    let options = ClientOptions { versions: (version, version), resumption, ..ClientOptions::default() };
    ClientConfig::new(&options).expect("options")
}

fn server_config(kind: KeyKind) -> ServerConfig {
    let identities = vec![Identity::generated(kind).expect("a certificate")];
    ServerConfig::new(&ServerOptions { identities, ..ServerOptions::default() }).expect("options")
}

#[test]
fn an_idle_session_is_small() {
    const SESSIONS: isize = 2_000;
    let name = ServerName::new("localhost").expect("a name");
    for (version, kind, resumption) in [
        (Version::Tls13, KeyKind::P256, false),
        (Version::Tls13, KeyKind::Rsa, true),
        (Version::Tls12, KeyKind::P256, false),
    ] {
        let (to, from) = (client_config(version, resumption), server_config(kind));
        let mut scratch = Scratch::new();
        let (mut clients, mut servers) = (Vec::with_capacity(2_000), Vec::with_capacity(2_000));
        let mut bytes = [0, 0];
        for _ in 0..SESSIONS {
            // Each half's memory apart: what is freed here was allocated here.
            let (mut there, mut back) = (Vec::with_capacity(8192), Vec::with_capacity(8192));
            let mut halves = [0, 0];
            let before = LIVE.get();
            let mut client = Session::client(&to, &name).expect("a client");
            client.start(&mut there).expect("a hello");
            halves[0] += LIVE.get() - before;
            let before = LIVE.get();
            let mut server = Session::server(&from).expect("a server");
            halves[1] += LIVE.get() - before;
            while !there.is_empty() || !back.is_empty() {
                let before = LIVE.get();
                hear(&mut server, &mut there, &mut scratch, &mut back);
                halves[1] += LIVE.get() - before;
                let before = LIVE.get();
                hear(&mut client, &mut back, &mut scratch, &mut there);
                halves[0] += LIVE.get() - before;
            }
            assert!(client.ready() && server.ready());
            client.write(&[b"GET / HTTP/1.1\r\n\r\n"], &mut there).expect("ready");
            let before = LIVE.get();
            hear(&mut server, &mut there, &mut scratch, &mut back);
            server.write(&[&[b'x'; 20_000]], &mut back).expect("ready");
            halves[1] += LIVE.get() - before - (back.capacity() as isize - 8192).max(0);
            // In pieces, so that a record had to be kept.
            let mut rest = back.split_off(7_000);
            let before = LIVE.get();
            hear(&mut client, &mut back, &mut scratch, &mut there);
            hear(&mut client, &mut rest, &mut scratch, &mut there);
            halves[0] += LIVE.get() - before;
            bytes = [bytes[0] + halves[0], bytes[1] + halves[1]];
            clients.push(client);
            servers.push(server);
        }
        let [client, server] = bytes.map(|bytes| bytes / SESSIONS);
        println!("{version}, {kind:?}, resumption {resumption}: {client} bytes a client, {server} a server");
        assert!(client < 12 << 10, "{client} bytes a client");
        assert!(server < 12 << 10, "{server} bytes a server");
    }
}

#[test]
fn records_cost_no_allocation() {
    let name = ServerName::new("localhost").expect("a name");
    let from = ServerConfig::new(&ServerOptions {
        identities: vec![
            Identity::generated(KeyKind::P256).expect("a key"),
            Identity::generated(KeyKind::Rsa).expect("a key"),
        ],
        ..ServerOptions::default()
    })
    .expect("options");
    for (suite, _) in suites() {
        let options = ClientOptions { suites: vec![suite.to_owned()], ..ClientOptions::default() };
        let to = ClientConfig::new(&options).expect("options");
        let (mut scratch, mut there, mut back) = (Scratch::new(), Vec::new(), Vec::new());
        let mut client = Session::client(&to, &name).expect("a client");
        let mut server = Session::server(&from).expect("a server");
        client.start(&mut there).expect("a hello");
        settle(&mut client, &mut server, &mut scratch, &mut there, &mut back);
        let response = vec![b'x'; 40_000];
        let round = |client: &mut Session,
                     server: &mut Session,
                     scratch: &mut Scratch,
                     there: &mut Vec<u8>,
                     back: &mut Vec<u8>| {
            client.write(&[b"GET / HTTP/1.1\r\n", b"Host: x\r\n\r\n"], there).expect("ready");
            assert_eq!(hear(server, there, scratch, back), 27);
            server.write(&[b"HTTP/1.1 200 OK\r\n", &response], back).expect("ready");
            // Pieces as a socket has them.
            let mut heard = 0;
            for piece in back.chunks(4096) {
                let mut input = piece;
                while let Some(event) = client.next(&mut input, scratch, there).expect("TLS") {
                    if let TlsEvent::Plaintext(range) = event {
                        heard += range.len();
                    }
                }
            }
            back.clear();
            assert_eq!(heard, 17 + response.len());
        };
        // The first time the buffers grow.
        round(&mut client, &mut server, &mut scratch, &mut there, &mut back);
        let before = MADE.get();
        for _ in 0..100 {
            round(&mut client, &mut server, &mut scratch, &mut there, &mut back);
        }
        assert_eq!(MADE.get() - before, 0, "allocations in 100 requests with {suite}");
        // That they are counted at all.
        let before = MADE.get();
        drop(std::hint::black_box(vec![1_u8; 100]));
        assert_eq!(MADE.get() - before, 1);
    }
}
