//! Prints what reading and writing one message costs, in nanoseconds: the best of several rounds, on one thread.
//!
//! ```text
//! cargo run --release -p weir-wire --example http1_speed
//! ```

use std::hint::black_box;
use std::time::Instant;

use weir_wire::http1::encode::{BodyFraming, Persistence, request, response_head};
use weir_wire::http1::{Limits, RequestEvent, RequestParser, ResponseEvent, ResponseParser};

const ROUNDS: usize = 15;
const MESSAGES: u32 = 200_000;

const BARE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

const ENVOY_LIKE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\
    date: Tue, 01 Jul 2025 10:00:00 GMT\r\nserver: envoy\r\nx-envoy-upstream-service-time: 0\r\n\r\nhello";

const NGINX_LIKE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Tue, 01 Jul 2025 10:00:00 GMT\r\n\
    Content-Type: application/octet-stream\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\
    Last-Modified: Tue, 01 Jul 2025 09:00:00 GMT\r\nETag: \"6863a1b0-5\"\r\nAccept-Ranges: bytes\r\n\r\nhello";

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nDate: Tue, 01 Jul 2025 10:00:00 GMT\r\n\
    Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

const REQUEST: &[u8] = b"GET /bytes/128 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: weir\r\nAccept: */*\r\n\r\n";

fn main() {
    for (name, bytes) in [
        ("bare answer", BARE),
        ("answer, 5 headers", ENVOY_LIKE),
        ("answer, 8 headers", NGINX_LIKE),
        ("chunked answer", CHUNKED),
    ] {
        let mut answers = ResponseParser::new(Limits::default());
        show(name, bytes.len(), || read_answer(&mut answers, bytes));
    }

    let (first, second) = NGINX_LIKE.split_at(NGINX_LIKE.len() / 2);
    let mut answers = ResponseParser::new(Limits::default());
    show("answer, 8 headers, in two pieces", NGINX_LIKE.len(), || {
        answers.request_sent(false);
        assert_eq!(answers.next(&mut &first[..]), Ok(None));
        let mut second = second;
        drain(&mut answers, &mut second);
    });

    let mut requests = RequestParser::new(Limits::default());
    show("request, 3 headers", REQUEST.len(), || {
        let mut input = black_box(REQUEST);
        while let Ok(Some(event)) = requests.next(&mut input) {
            if matches!(black_box(event), RequestEvent::End { .. }) {
                break;
            }
        }
    });

    let mut out = Vec::with_capacity(4096);
    show("writing an answer's head", 0, || {
        out.clear();
        let headers = [("Server", "weir"), ("Content-Type", "application/octet-stream")];
        let _ = response_head(&mut out, 200, black_box(&headers), BodyFraming::Length(128), Persistence::Implied);
        black_box(&out);
    });
    show("writing a request", 0, || {
        out.clear();
        let headers = [("Host", "127.0.0.1:8080"), ("User-Agent", "weir")];
        let _ = request(&mut out, "GET", "/bytes/128", black_box(&headers), b"");
        black_box(&out);
    });
}

fn read_answer(answers: &mut ResponseParser, bytes: &[u8]) {
    answers.request_sent(false);
    let mut input = black_box(bytes);
    drain(answers, &mut input);
}

fn drain(answers: &mut ResponseParser, input: &mut &[u8]) {
    while let Ok(Some(event)) = answers.next(input) {
        if matches!(black_box(event), ResponseEvent::End { keep_alive: true }) {
            return;
        }
    }
    panic!("the answer did not end");
}

/// Times `work`, once untimed.
fn show(name: &str, bytes: usize, mut work: impl FnMut()) {
    work();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..MESSAGES {
            work();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(MESSAGES));
    }
    if bytes == 0 {
        println!("{name:<34}{best:>7.1} ns");
    } else {
        println!("{name:<34}{best:>7.1} ns {:>6} bytes {:>6.2} GB/s", bytes, bytes as f64 / best);
    }
}
