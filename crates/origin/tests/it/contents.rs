//! Requests with a digest that are not as the client sent them are counted by what differs, and those that are the same by RFC 9110 are not.

use weir_model::counters::ContentCounters;
use weir_origin::{Options, ResponseOptions, payload};
use weir_wire::digest::{Digest, DigestKey, compared_headers};
use weir_wire::request_id::{RequestId, ResponseKey};

use crate::h2::Http2;
use crate::sim::{MS, Scene};

const KEY: ResponseKey = ResponseKey([3, 4]);

type Header = (&'static str, &'static str);

const HEADERS: &[Header] = &[("Cookie", "a=1; B=2"), ("Authorization", "Bearer Weir"), ("X-Id", "1"), ("X-Id", "2")];

const NONE: ContentCounters =
    ContentCounters { target: 0, headers: 0, body: 0, shortened: 0, lengthened: 0, unfinished: 0, unchecked: 0 };

fn scene() -> Scene {
    Scene::of(Options { response_key: KEY, ..Options::default() })
}

/// The header with the ID of a request with this number, of which the client sent this.
fn value(number: u64, method: &str, target: &str, headers: &[Header], body: &[u8]) -> String {
    let key = DigestKey::from(KEY);
    let names = compared_headers(headers.iter().copied());
    let lines = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let digest = Digest {
        target: key.target(method.as_bytes(), target.as_bytes()),
        headers: key.headers(names.as_bytes(), lines, &mut Vec::new()),
        body: key.body(body),
        length: body.len() as u32,
    };
    let text = [&RequestId::new(1, 0, number).text()[..], &digest.text()].concat();
    let separator = if names.is_empty() { "" } else { "-" };
    format!("{}{separator}{names}", String::from_utf8(text).unwrap())
}

/// A request as it arrives, of which the client sent `POST /bytes/5?x=1` with [`HEADERS`] and this body.
fn arrives(number: u64, line: &str, headers: &[Header], framing: &str, sent: &[u8], body: &[u8]) -> Vec<u8> {
    let value = value(number, "POST", "/bytes/5?x=1", HEADERS, sent);
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("{line} HTTP/1.1\r\nHost: o\r\n{lines}X-Weir-Id: {value}\r\n{framing}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn length(body: &[u8]) -> String {
    format!("Content-Length: {}", body.len())
}

const LINE: &str = "POST /bytes/5?x=1";

#[test]
fn a_request_that_is_the_same_is_no_difference_however_it_comes() {
    let scene = scene();
    let body = payload(1_000);
    let mut client = scene.client();
    let joined: &[Header] = &[
        ("x-id", "1,2"),
        ("via", "1.1 p"),
        ("cookie", "a=1"),
        ("AUTHORIZATION", "Bearer Weir"),
        ("cookie", "B=2"),
        ("x-forwarded-for", "::1"),
    ];
    let chunked = [b"1f4\r\n", &body[..500], b"\r\n1f4\r\n", &body[500..], b"\r\n0\r\n\r\n"].concat();
    let whole = |number, line, headers| arrives(number, line, headers, &length(body), body, body);
    let mut all = vec![
        whole(0, LINE, HEADERS),
        whole(1, LINE, HEADERS),
        whole(2, LINE, joined),
        whole(3, "POST http://elsewhere/bytes/5?x=1", HEADERS),
        arrives(4, LINE, HEADERS, "Transfer-Encoding: chunked", body, &chunked),
        arrives(5, LINE, HEADERS, "Content-Length: 0", b"", b""),
    ];
    for request in &all {
        client.send(request);
        assert_eq!(client.reply().status, 200);
    }
    // In pieces, and one right behind the other.
    client.send_pieces(all[0].chunks(7), MS / 10);
    assert_eq!(client.reply().status, 200);
    all.truncate(3);
    client.send(all.concat());
    (0..3).for_each(|_| assert_eq!(client.reply().status, 200));
    let counters = scene.counters();
    assert_eq!((counters.request_ids.identified, counters.contents), (10, NONE));
}

#[test]
fn each_difference_is_counted_as_what_it_is() {
    let body = payload(1_000);
    let mut other = body.to_vec();
    other[999] ^= 1;
    let longer = [body, b"."].concat();
    let without = |name: &str| -> Vec<Header> { HEADERS.iter().copied().filter(|(one, _)| *one != name).collect() };
    let of = |line, headers: &[Header], arrived: &[u8]| arrives(7, line, headers, &length(arrived), body, arrived);
    let cases = [
        (of("PUT /bytes/5?x=1", HEADERS, body), ContentCounters { target: 1, ..NONE }),
        (of("POST /bytes/5", HEADERS, body), ContentCounters { target: 1, ..NONE }),
        (of("POST /bytes/6?x=1", HEADERS, body), ContentCounters { target: 1, ..NONE }),
        (of(LINE, &without("Cookie"), body), ContentCounters { headers: 1, ..NONE }),
        (of(LINE, &without("Authorization"), body), ContentCounters { headers: 1, ..NONE }),
        (of(LINE, &[&HEADERS[..3], &[("X-Id", "3")]].concat(), body), ContentCounters { headers: 1, ..NONE }),
        (of(LINE, HEADERS, &other), ContentCounters { body: 1, ..NONE }),
        (of(LINE, HEADERS, b""), ContentCounters { shortened: 1, ..NONE }),
        (of(LINE, HEADERS, &body[..999]), ContentCounters { shortened: 1, ..NONE }),
        (of(LINE, HEADERS, &longer), ContentCounters { lengthened: 1, ..NONE }),
        (of("GET /bytes/5", &[], b""), ContentCounters { target: 1, headers: 1, shortened: 1, ..NONE }),
    ];
    for pieces in [2_000, 100] {
        for (request, expected) in &cases {
            let scene = scene();
            let mut client = scene.client();
            // One that is right, before and behind it: what is remembered of heads and bodies does not spread.
            for request in [&of(LINE, HEADERS, body), request, &of(LINE, HEADERS, body)] {
                client.send_pieces(request.chunks(pieces), MS / 10);
                assert_eq!(client.reply().status, 200);
            }
            assert_eq!(scene.counters().contents, *expected, "{}", String::from_utf8_lossy(request));
        }
    }
}

#[test]
fn a_body_that_never_comes_whole_is_unfinished_and_a_name_alone_is_unchecked() {
    let body = payload(1_000);
    let request = arrives(1, LINE, HEADERS, &length(body), body, body);
    for reset in [true, false] {
        let scene = scene();
        let client = scene.client();
        client.send(&request[..request.len() - 1]);
        scene.run(10 * MS);
        if reset {
            client.abort()
        } else {
            client.shut_down()
        }
        assert_eq!(scene.counters().contents, ContentCounters { unfinished: 1, ..NONE });
    }
    let scene = scene();
    let mut client = scene.client();
    // One of a load, and one of weir's own, which has none.
    for name in ["0009001000000001", "0000000000000001"] {
        client.send(format!("GET /bytes/5 HTTP/1.1\r\nHost: o\r\nX-Weir-Id: {name}\r\n\r\n"));
        assert_eq!(client.reply().status, 200);
    }
    assert_eq!(scene.counters().contents, ContentCounters { unchecked: 1, ..NONE });
}

#[test]
fn http2_is_compared_in_the_same_way() {
    let body: &'static [u8] = payload(40_000);
    for (method, path, headers, arrived, expected) in [
        ("POST", "/bytes/5?x=1", HEADERS, body, NONE),
        ("PUT", "/bytes/5?x=1", HEADERS, body, ContentCounters { target: 1, ..NONE }),
        ("POST", "/bytes/5?x=1", &HEADERS[1..], body, ContentCounters { headers: 1, ..NONE }),
        ("POST", "/bytes/5?x=1", HEADERS, &body[1..], ContentCounters { shortened: 1, ..NONE }),
        ("POST", "/bytes/5?x=1", HEADERS, b"", ContentCounters { shortened: 1, ..NONE }),
    ] {
        let scene = scene();
        let mut client = Http2::new(scene.client());
        let value = value(1, "POST", "/bytes/5?x=1", HEADERS, body);
        let headers = [headers, &[("x-weir-id", value.leak() as &str)]].concat();
        client.ask(1, method, path, &headers, arrived);
        assert_eq!(client.response(1).status, 200);
        assert_eq!(scene.counters().contents, expected, "{method} {path}");
    }
    // What is remembered of a head without headers to compare does not spread.
    let scene = scene();
    let mut client = Http2::new(scene.client());
    let value = value(1, "GET", "/bytes/5", &[], b"");
    let named = [("x-weir-id", &*value)];
    for (stream, method, path) in
        [(1, "GET", "/bytes/5"), (3, "GET", "/bytes/6"), (5, "PUT", "/bytes/5"), (7, "GET", "/bytes/5")]
    {
        client.ask(stream, method, path, &named, b"");
        assert_eq!(client.response(stream).status, 200);
    }
    client.ask(9, "GET", "/bytes/5", &named, b"more");
    assert_eq!(client.response(9).status, 200);
    assert_eq!(scene.counters().contents, ContentCounters { target: 2, lengthened: 1, ..NONE });
    // A stream that ends before its body does.
    let scene = self::scene();
    let mut client = Http2::new(scene.client());
    let large: &'static [u8] = payload(3 << 20);
    let value = self::value(1, "POST", "/bytes/5", &[], large);
    client.ask(1, "POST", "/bytes/5", &[("x-weir-id", &value)], large);
    client.cancel(1);
    assert_eq!(scene.counters().contents, ContentCounters { unfinished: 1, ..NONE });
}

#[test]
fn what_is_refused_before_its_body_is_no_difference() {
    let responses = ResponseOptions::default();
    let scene = Scene::of(Options { response_key: KEY, responses, ..Options::default() });
    let body = payload(1_000);
    let value = value(1, "POST", "/echo", &[], body);
    let mut client = scene.client();
    client.send(format!(
        "POST /echo HTTP/1.1\r\nHost: o\r\nx-weir-id: {value}\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n"
    ));
    assert_eq!(client.reply().status, 413);
    assert_eq!(scene.counters().contents, NONE);
}
