//! An allocator that counts, and blocking clients on real sockets: bytes with TLS or without, and HTTP/2 above them. Once warm they
//! allocate nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use rustix::thread::gettid;
use weir_origin::tls;
use weir_wire::http2::{self, Body, ClientEvent, Prepared, Request};
use weir_wire::tls::{ClientConfig, ClientOptions, Scratch, ServerName, Session, TlsEvent};

/// How long anything may take before a test fails.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Counts for the process, and for each thread.
struct Counting;

/// Allocations so far, by the last digits of the thread's number.
pub static ALLOCATIONS: [AtomicU64; 1 << 16] = [const { AtomicU64::new(0) }; 1 << 16];
/// Bytes that the process has allocated and not freed.
pub static ALL_LIVE: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// Bytes that the thread has allocated, without those that it has freed, and the maximum since a test set it.
    pub static LIVE: Cell<i64> = const { Cell::new(0) };
    pub static MOST: Cell<i64> = const { Cell::new(0) };
}

fn account(bytes: i64) {
    ALL_LIVE.fetch_add(bytes, Ordering::Relaxed);
    LIVE.set(LIVE.get() + bytes);
    MOST.set(MOST.get().max(LIVE.get()));
}

// SAFETY: everything is passed on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS[gettid().as_raw_nonzero().get() as usize % ALLOCATIONS.len()].fetch_add(1, Ordering::Relaxed);
        account(layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        account(-(layout.size() as i64));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A connection of TCP.
pub fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).expect("the origin accepts");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.set_nodelay(true).expect("no delay");
    stream
}

/// TLS options with a certificate made here.
pub fn server_options() -> tls::ServerOptions {
    let identity = tls::Identity::generated(tls::KeyKind::P256).expect("a certificate");
    tls::ServerOptions { identities: vec![identity], ..tls::ServerOptions::default() }
}

/// A connection below HTTP.
pub struct Pipe {
    pub stream: TcpStream,
    tls: Option<(Session, Scratch)>,
    sealed: Vec<u8>,
    buffer: Vec<u8>,
}

impl Pipe {
    pub fn new(addr: SocketAddr) -> Pipe {
        Pipe { stream: connect(addr), tls: None, sealed: Vec::with_capacity(1 << 16), buffer: vec![0; 1 << 16] }
    }

    /// With TLS and this protocol by ALPN, the handshake done.
    pub fn with_tls(addr: SocketAddr, alpn: &str) -> Pipe {
        let options = ClientOptions { alpn: Some(alpn.to_owned()), ..ClientOptions::default() };
        let config = ClientConfig::new(&options).expect("options");
        let name = ServerName::new("localhost").expect("a name");
        let mut pipe = Pipe::new(addr);
        let mut session = Session::client(&config, &name).expect("a session");
        session.start(&mut pipe.sealed).expect("a hello");
        pipe.tls = Some((session, Scratch::new()));
        pipe.flush();
        while pipe.tls.as_ref().is_some_and(|(session, _)| !session.ready()) {
            assert!(pipe.receive(|_| {}).expect("a handshake") > 0, "the connection ended");
        }
        pipe
    }

    fn flush(&mut self) {
        self.stream.write_all(&self.sealed).expect("sent");
        self.sealed.clear();
    }

    pub fn send(&mut self, bytes: &[u8]) {
        match &mut self.tls {
            None => self.sealed.extend_from_slice(bytes),
            Some((session, _)) => session.write(&[bytes], &mut self.sealed).expect("ready"),
        }
        self.flush();
    }

    /// Waits for bytes, and passes the plaintext on. Returns how many came; none is the end.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn receive(&mut self, mut see: impl FnMut(&[u8])) -> io::Result<usize> {
        let count = loop {
            // Rings of this process interrupt the reads of its other threads, too.
            match self.stream.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        let mut input = &self.buffer[..count];
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
        Ok(count)
    }
}

/// A client of HTTP/2 that asks for one target again and again.
pub struct Http2 {
    pub pipe: Pipe,
    client: http2::Client,
    request: Prepared,
    out: Vec<u8>,
    back: Vec<u8>,
}

impl Http2 {
    pub fn new(pipe: Pipe, path: &str, headers: &[(&str, &str)]) -> Http2 {
        let request = Request { method: "GET", scheme: "http", authority: "o", path, headers };
        let request = Prepared::request(&request).expect("a request");
        let mut client = http2::Client::new(&http2::Options::client());
        let (mut out, back) = (Vec::with_capacity(1 << 16), Vec::with_capacity(1 << 16));
        client.start(&mut out);
        Http2 { pipe, client, request, out, back }
    }

    /// One request. Returns how long the body is.
    pub fn exchange(&mut self) -> usize {
        let (mut length, mut done) = (0, false);
        self.client.request(0, &self.request, Body::None, &mut self.out).expect("a stream");
        while !done {
            self.pipe.send(&self.out);
            self.out.clear();
            let came = self.pipe.receive(|bytes| {
                let mut input = bytes;
                while let Some(event) = self.client.next(&mut input, &mut self.back).expect("HTTP/2") {
                    match event {
                        ClientEvent::Data { bytes, .. } => length += bytes.len(),
                        ClientEvent::End { .. } => done = true,
                        _ => {}
                    }
                }
            });
            assert!(came.expect("a response") > 0, "the connection ended");
            self.out.append(&mut self.back);
        }
        length
    }
}
