//! What HTTP/2 costs in memory: nothing is allocated for an exchange that is like those before it, and a connection
//! that waits is small.

use crate::counting::{ALLOCATIONS, BYTES};
use weir_wire::http2::{Body, Client, ClientEvent, Options, Prepared, Request, Server, ServerEvent, Template, Values};

static BODY: [u8; 128] = [b'x'; 128];

/// A connection with both ends.
struct Both {
    client: Client,
    server: Server,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    response: Prepared,
}

impl Both {
    fn new(keep_headers: bool) -> Both {
        let headers = [("server", "weir"), ("content-type", "text/plain")];
        let mut both = Both {
            client: Client::new(&Options { keep_headers, ..Options::client() }),
            server: Server::new(&Options::server()),
            to_server: Vec::with_capacity(1 << 16),
            to_client: Vec::with_capacity(1 << 16),
            response: Prepared::response(200, &headers, Some(128)).unwrap(),
        };
        both.client.start(&mut both.to_server);
        both.server.start(&mut both.to_client);
        both.carry();
        both
    }

    /// Transfers all bytes and answers all requests. Returns how many responses ended.
    fn carry(&mut self) -> u32 {
        let mut ended = 0;
        while !self.to_server.is_empty() || !self.to_client.is_empty() {
            let mut input = &self.to_server[..];
            while let Some(event) = self.server.next(&mut input, &mut self.to_client).unwrap() {
                if let ServerEvent::End { stream } = event {
                    self.server.respond(stream, &self.response, Body::Static(&BODY), &mut self.to_client).unwrap();
                }
            }
            self.to_server.clear();
            let mut input = &self.to_client[..];
            while let Some(event) = self.client.next(&mut input, &mut self.to_server).unwrap() {
                ended += u32::from(matches!(event, ClientEvent::End { .. }));
            }
            self.to_client.clear();
        }
        ended
    }
}

fn request(path: &str) -> Request<'_> {
    let headers = &[("user-agent", "weir"), ("accept", "*/*")];
    Request { method: "GET", scheme: "http", authority: "127.0.0.1:8080", path, headers }
}

#[test]
fn an_exchange_like_those_before_it_allocates_nothing() {
    for keep_headers in [true, false] {
        let mut both = Both::new(keep_headers);
        let requests = [Prepared::request(&request("/1")).unwrap(), Prepared::request(&request("/2")).unwrap()];
        let template =
            Prepared::template(&request(""), Template { path: true, authority: true, headers: &[1] }).unwrap();
        let mut before = 0;
        for round in 0..100u32 {
            if round == 10 {
                before = ALLOCATIONS.get();
            }
            for tag in 0..10 {
                both.client.request(tag, &requests[tag as usize % 2], Body::None, &mut both.to_server).unwrap();
            }
            let path = [b"/item/", &[b'0' + (round % 10) as u8][..]];
            let mut whole = [0; 7];
            whole[..6].copy_from_slice(path[0]);
            whole[6..].copy_from_slice(path[1]);
            let body = Body::Copied(b"body");
            let values = Values { path: &whole, authority: &whole[1..5], headers: &[b"text/html"] };
            both.client.request_filled(10, &template, values, body, &mut both.to_server).unwrap();
            assert_eq!(both.carry(), 11);
        }
        assert_eq!(ALLOCATIONS.get() - before, 0, "headers kept: {keep_headers}");
    }
}

#[test]
fn a_connection_that_waits_is_small() {
    println!("client {} bytes, server {} bytes", size_of::<Client>(), size_of::<Server>());
    assert!(size_of::<Client>() <= 640, "{}", size_of::<Client>());
    assert!(size_of::<Server>() <= 640, "{}", size_of::<Server>());

    let mut both = Both::new(false);
    let prepared = Prepared::request(&request("/")).unwrap();
    let before = BYTES.get();
    for _ in 0..20 {
        both.client.request(0, &prepared, Body::None, &mut both.to_server).unwrap();
        assert_eq!(both.carry(), 1);
    }
    // Both ends and both tables.
    println!("after use {} bytes on the heap", BYTES.get() - before);
    assert!(BYTES.get() - before < 3000, "{}", BYTES.get() - before);

    // A message in pieces is kept no longer than until it is whole.
    let before = BYTES.get();
    let long = "v".repeat(30_000);
    let headers = [("x-long", long.as_str())];
    let large = Prepared::request(&Request { headers: &headers, ..request("/") }).unwrap();
    let prepared = BYTES.get();
    both.client.request(0, &large, Body::None, &mut both.to_server).unwrap();
    let bytes = std::mem::take(&mut both.to_server);
    let (first, second) = bytes.split_at(bytes.len() / 2);
    both.to_server.extend_from_slice(first);
    assert_eq!(both.carry(), 0);
    assert!(BYTES.get() - prepared > 10_000, "half of a head waits");
    both.to_server.extend_from_slice(second);
    assert_eq!(both.carry(), 1);
    // The next head takes its place.
    both.client.request(0, &Prepared::request(&request("/")).unwrap(), Body::None, &mut both.to_server).unwrap();
    assert_eq!(both.carry(), 1);
    drop((bytes, large, long));
    both.to_server = Vec::with_capacity(1 << 16);
    let more = BYTES.get() - before;
    assert!(more < 2000, "{more} bytes more than before");
}
