//! Prints what one exchange costs each half of HTTP/2, in nanoseconds: the best of several rounds, on one thread.
//!
//! ```text
//! cargo run --release -p weir-wire --example http2_speed
//! ```
//! With the name of a line and a number of exchanges it does only that, to count instructions: run it with two numbers,
//! and divide the difference of the counts by that of the numbers.
//!
//! ```text
//! valgrind --tool=callgrind target/release/examples/http2_speed "client, indexed" 100000
//! perf stat -e instructions:u target/release/examples/http2_speed "client, indexed" 100000
//! ```

use std::hint::black_box;
use std::time::Instant;

use weir_wire::http2::{Body, Client, ClientEvent, Options, Prepared, Request, Server, ServerEvent, Template, Values};

const ROUNDS: usize = 15;
const EXCHANGES: u32 = 100_000;

static BODY: [u8; 128] = [b'x'; 128];

/// What nginx sends: all literals, Huffman-coded, none for the table.
const NGINX_HEADERS: [(&str, &str); 6] = [
    ("server", "nginx/1.22.1"),
    ("date", "Tue, 01 Jul 2025 10:00:00 GMT"),
    ("content-type", "application/octet-stream"),
    ("last-modified", "Tue, 01 Jul 2025 09:00:00 GMT"),
    ("etag", "\"6863a1b0-80\""),
    ("accept-ranges", "bytes"),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let only = arguments.next();
    let number = arguments.next().and_then(|number| number.parse().ok());
    for (name, make) in LINES {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let mut exchange = make();
        if let Some(number) = number {
            (0..number).for_each(&mut exchange);
        } else {
            show(name, exchange);
        }
    }
}

type Exchange = Box<dyn FnMut(u32)>;

type Line = (&'static str, fn() -> Exchange);

const LINES: [Line; 8] = [
    ("client, indexed", || client(&[indexed(b'0')], false)),
    ("client, indexed, headers kept", || client(&[indexed(b'0')], true)),
    ("client, nginx-like", || client(&[nginx(1)], false)),
    ("client, two kinds of indexed", || client(&[indexed(b'0'), indexed(b'1')], false)),
    ("client, two kinds of nginx-like", || client(&[nginx(1), nginx(2)], false)),
    ("client, template", template),
    ("server, one request", || server(1)),
    ("server, two requests", || server(2)),
];

/// Frames without their heads: type, flags, payload.
type Frames = Vec<(u8, u8, Vec<u8>)>;

/// :status and content-length in the table, and one more entry.
fn indexed(last: u8) -> Frames {
    vec![(1, 4, vec![0x88, 0xbe, 0xbf, 0x0f, 0x0d, 3, b'1', b'2', b'8', 0x00, 1, b'x', 1, last]), (0, 1, BODY.to_vec())]
}

fn nginx(variant: u8) -> Frames {
    // The server half writes them, and a table of no size keeps them literal.
    let mut server = Server::new(&Options::server());
    let mut out = Vec::new();
    let no_table = [&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 1][..], &[0; 4]].concat();
    let request = [&[0, 0, 3, 1, 5, 0, 0, 0, 1][..], &[0x82, 0x86, 0x84]].concat();
    let hello = [&weir_wire::http2::PREFACE[..], &no_table, &request].concat();
    let mut input = &hello[..];
    let mut stream = None;
    while let Some(event) = server.next(&mut input, &mut out).expect("a request") {
        if let ServerEvent::Request { stream: asked, .. } = event {
            stream = Some(asked);
        }
    }
    out.clear();
    let mut headers = NGINX_HEADERS.to_vec();
    if variant == 2 {
        headers[1].1 = "Tue, 01 Jul 2025 10:00:01 GMT";
    }
    let head = Prepared::response(200, &headers, Some(128)).expect("an answer");
    server.respond(stream.expect("a stream"), &head, Body::None, &mut out).expect("a request is answered");
    // Behind the head of the frame and the size update.
    vec![(1, 4, out[10..].to_vec()), (0, 1, BODY.to_vec())]
}

fn frames(of: &Frames) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, flags, payload) in of {
        out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
        out.extend_from_slice(&[*kind, *flags, 0, 0, 0, 0]);
        out.extend_from_slice(payload);
    }
    out
}

/// Writes a stream's number into each of two frames.
fn number(frames: &mut [u8], stream: u32) {
    let second = 9 + u32::from_be_bytes([0, frames[0], frames[1], frames[2]]) as usize;
    frames[5..9].copy_from_slice(&stream.to_be_bytes());
    if second < frames.len() {
        frames[second + 5..second + 9].copy_from_slice(&stream.to_be_bytes());
    }
}

fn get(path: &str) -> Request<'_> {
    let headers = &[("user-agent", "weir"), ("accept", "*/*")];
    Request { method: "GET", scheme: "http", authority: "127.0.0.1:8080", path, headers }
}

fn new_client(keep_headers: bool) -> (Client, Vec<u8>) {
    let mut client = Client::new(&Options { keep_headers, ..Options::client() });
    let mut out = Vec::with_capacity(4096);
    client.start(&mut out);
    let hello = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    assert_eq!(client.next(&mut &hello[..], &mut out), Ok(Some(ClientEvent::Settings)));
    // Two entries for the table.
    client.request(0, &Prepared::request(&get("/")).expect("a request"), Body::None, &mut out).expect("a stream");
    let mut first = frames(&vec![(1, 5, b"\x88\x40\x01a\x01b\x40\x01c\x01d".to_vec())]);
    number(&mut first, 1);
    read_answer(&mut client, &first, &mut out);
    (client, out)
}

fn client(answers: &[Frames], keep_headers: bool) -> Exchange {
    let (mut client, mut out) = new_client(keep_headers);
    let request = Prepared::request(&get("/")).expect("a request");
    let mut answers: Vec<_> = answers.iter().map(frames).collect();
    let mut stream = 1;
    Box::new(move |n| {
        out.clear();
        client.request(0, black_box(&request), Body::None, &mut out).expect("a stream");
        stream += 2;
        let kinds = answers.len();
        let answer = &mut answers[n as usize % kinds];
        number(answer, stream);
        read_answer(&mut client, answer, &mut out);
    })
}

fn template() -> Exchange {
    let (mut client, mut out) = new_client(false);
    let template = Prepared::template(&get(""), Template { path: true, ..Template::default() }).expect("a template");
    let mut answer = frames(&indexed(b'0'));
    let mut stream = 1;
    Box::new(move |_| {
        out.clear();
        let path = black_box(b"/items/1234567");
        client
            .request_filled(0, &template, Values { path, ..Values::default() }, Body::None, &mut out)
            .expect("a stream");
        stream += 2;
        number(&mut answer, stream);
        read_answer(&mut client, &answer, &mut out);
    })
}

fn read_answer(client: &mut Client, answer: &[u8], out: &mut Vec<u8>) {
    let mut input = black_box(answer);
    let mut ended = false;
    while let Some(event) = client.next(&mut input, out).expect("an answer") {
        ended |= matches!(black_box(event), ClientEvent::End { .. });
    }
    assert!(ended);
}

fn server(kinds: u32) -> Exchange {
    let mut server = Server::new(&Options::server());
    let mut asking = Client::new(&Options::client());
    let (mut requests, mut out) = (Vec::new(), Vec::with_capacity(4096));
    asking.start(&mut requests);
    read_request(&mut server, &requests, None, &mut out);
    let prepared: Vec<_> = (0..kinds).map(|n| Prepared::request(&get(&format!("/{n}"))).expect("a request")).collect();
    let answer = Prepared::response(200, &[("server", "weir"), ("content-type", "text/plain")], Some(128));
    let answer = answer.expect("an answer");
    // The client's table comes to rest first; then its frames are used again with other numbers.
    let mut ready = Vec::new();
    for round in 0..3 {
        ready = prepared
            .iter()
            .map(|request| {
                requests.clear();
                asking.request(0, request, Body::None, &mut requests).expect("a stream");
                asking.cancel(0, &mut Vec::new());
                if round < 2 {
                    read_request(&mut server, &requests, Some(&answer), &mut out);
                }
                requests.clone()
            })
            .collect();
    }
    let mut stream = 1001;
    Box::new(move |n| {
        out.clear();
        let request = &mut ready[(n % kinds) as usize];
        stream += 2;
        number(request, stream);
        read_request(&mut server, request, Some(&answer), &mut out);
        black_box(&out);
    })
}

fn read_request(server: &mut Server, bytes: &[u8], answer: Option<&Prepared>, out: &mut Vec<u8>) {
    let mut input = black_box(bytes);
    while let Some(event) = server.next(&mut input, out).expect("a request") {
        if let (ServerEvent::End { stream }, Some(answer)) = (black_box(event), answer) {
            server.respond(stream, answer, Body::Static(&BODY), out).expect("a request is answered");
        }
    }
}

/// Times `work`, once untimed.
fn show(name: &str, mut work: Exchange) {
    let mut n = 0;
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..EXCHANGES {
            work(n);
            n += 1;
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(EXCHANGES));
    }
    println!("{name:<34}{best:>7.1} ns");
}
