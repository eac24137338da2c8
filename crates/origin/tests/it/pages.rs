//! Responses to requests of all kinds.

use weir_model::counters::{OriginCounters, RequestIdCounters};
use weir_origin::{MAX_HELD, Options, ResponseOptions, payload};
use weir_wire::request_id::{RequestId, ResponseKey, ResponseTag};

use crate::sim::{LATENCY, MS, NodeOptions, ROUND_TRIP, S, Scene, get, post, small};

#[test]
fn every_path_responds() {
    let scene = Scene::new();
    let mut client = scene.client();
    let index = client.get("/");
    assert_eq!((index.status, index.text().as_str()), (200, weir_origin::INDEX_PAGE));
    assert_eq!(index.header("server"), Some("weir-origin"));
    let ok = client.get("/delay/1ms");
    assert_eq!((ok.status, ok.text().as_str()), (200, "ok"));
    let begun = scene.world.now();
    assert_eq!(client.get("/delay/7ms").at - begun, 7 * MS + ROUND_TRIP);
    let teapot = client.get("/status/418");
    assert_eq!((teapot.status, teapot.text().contains("418")), (418, true));
    assert_eq!(client.get("/status/204").body, b"");
    assert_eq!(client.get("/status/304").body, b"");
    assert_eq!(client.get("/status/205").header("content-length"), Some("0"));
    assert_eq!(client.get("/echo").body, b"");
    let request = "GET /headers HTTP/1.1\r\nHost: o\r\nX-Odd:  one\r\nx-odd: two\r\n\r\n";
    client.send(request);
    let headers = client.reply();
    assert_eq!((headers.text().as_str(), headers.header("content-type")), (request, Some("text/plain; charset=utf-8")));
    let request = "GET /request HTTP/1.1\r\nHost: o\r\nContent-Length: 4\r\n\r\nbody";
    client.send(request);
    assert_eq!(client.reply().text(), request, "a GET may have a body");
    assert_eq!(client.get("http://elsewhere/bytes/3").body, payload(3));
}

#[test]
fn bodies_are_payloads() {
    let scene = Scene::new();
    let mut client = scene.client();
    for size in [0, 1, 128, 4095, 4096, 4097, 11_268, 165_854, 3 << 20] {
        for query in ["", "?chunked=1"] {
            let reply = client.get(&format!("/bytes/{size}{query}"));
            assert_eq!((reply.status, reply.body == payload(size)), (200, true), "{size}{query}");
            assert_eq!(reply.header("content-type"), Some("application/octet-stream"));
            assert_eq!(reply.header("content-length").is_some(), query.is_empty(), "{}", reply.head);
            assert_eq!(reply.header("connection"), None);
        }
    }
}

#[test]
fn headers_are_those_that_were_asked_for() {
    let headers = [("Server", "other/1"), ("Content-Type", "text/html"), ("ETag", "\"1\""), ("Date", "now")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let responses = ResponseOptions { headers, ..ResponseOptions::default() };
    let scene = Scene::of(Options { responses, ..Options::default() });
    let mut client = scene.client();
    // Those that are prepared, and those that are not.
    for target in ["/bytes/128", "/bytes/128?close=0&chunked=1", "/headers"] {
        let reply = client.get(target);
        assert_eq!(reply.header("server"), Some("other/1"), "{target}: {}", reply.head);
        assert_eq!(reply.header("content-type"), Some("text/html"), "{target}: {}", reply.head);
        assert_eq!(reply.header("etag"), Some("\"1\""), "{target}: {}", reply.head);
        assert_eq!(reply.header("date"), Some("Thu, 01 Jan 2026 00:00:00 GMT"), "{target}: {}", reply.head);
    }
    let own = client.get("/_weir/ready");
    assert_eq!((own.header("server"), own.header("date")), (Some("weir-origin"), None), "{}", own.head);
    // The date is that of the response.
    for (at, second) in [(S - LATENCY - 1, "00"), (S - LATENCY, "01"), (100 * S, "40")] {
        scene.world.run_to(at);
        let reply = client.get("/bytes/128");
        assert!(reply.header("date").is_some_and(|date| date.ends_with(&format!(":{second} GMT"))), "{}", reply.head);
    }
}

#[test]
fn queries_combine() {
    let scene = Scene::new();
    let mut client = scene.client();
    let reply = client.get("/status/503?bytes=5000&delay=1ms&chunked=1");
    assert_eq!((reply.status, reply.body == payload(5000)), (503, true));
    let reply = client.get("/?bytes=10&status=201&x=anything");
    assert_eq!((reply.status, reply.body.as_slice()), (201, payload(10)));
    assert_eq!(client.get("/bytes/12x").status, 400);
    // A wrong value is no reason to close, and a body on any path is read.
    client.send([post("/bytes/7", "abc"), get("/bytes/8").into_bytes()].concat());
    assert_eq!([client.reply().body, client.reply().body], [payload(7), payload(8)]);
    let reply = client.get("/echo?bytes=16KiB&close=1");
    assert_eq!((reply.body == payload(16_384), reply.header("connection")), (true, Some("close")));
    client.expect_closed();
}

#[test]
fn head_is_the_head_of_get() {
    let scene = Scene::new();
    let mut client = scene.client();
    let targets = "/ /bytes/128 /bytes/11268 /bytes/11268?chunked=1 /status/204 /status/404 /nowhere /delay/1ms";
    for target in targets.split(' ') {
        let whole = client.get(target);
        client.send(format!("HEAD {target} HTTP/1.1\r\nHost: o\r\n\r\n"));
        let head = client.reply_to(true);
        assert_eq!(head.head, whole.head, "{target}");
    }
    client.send("HEAD /bytes/9 HTTP/1.0\r\n\r\n");
    assert_eq!(client.reply_to(true).header("content-length"), Some("9"));
    client.expect_closed();
}

#[test]
fn echo_gives_back_what_came() {
    let scene = Scene::new();
    let mut client = scene.client();
    let body = payload(1 << 20);
    let head = "POST /echo HTTP/1.1\r\nHost: o\r\nContent-Type: a/b; c=d\r\nContent-Length: 1048576\r\n\r\n";
    client.send([head.as_bytes(), body].concat());
    let reply = client.reply();
    assert_eq!((reply.status, reply.header("content-type"), reply.body == body), (200, Some("a/b; c=d"), true));
    let mut bytes = b"PUT /echo?chunked=1 HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in body.chunks(10_000) {
        bytes.extend([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
    }
    client.send([&bytes[..], b"0\r\n\r\n"].concat());
    let reply = client.reply();
    assert_eq!((reply.header("content-type"), reply.body == body), (Some("application/octet-stream"), true));
    client.send(post("/echo", "hello"));
    assert_eq!(client.reply().body, b"hello");
    // And in single bytes.
    let request = b"POST /echo HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let begun = scene.world.now();
    client.send_pieces(request.chunks(1), LATENCY);
    let reply = client.reply();
    assert_eq!((&reply.body[..], reply.at - begun), (&b"abc"[..], (request.len() as u64 - 1) * LATENCY + ROUND_TRIP));
}

#[test]
fn echo_refuses_what_is_too_large() {
    let scene = Scene::new();
    let mut client = scene.client();
    // The client announces the body and waits: it is refused before a byte of it is sent.
    client.send("POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 67108865\r\nExpect: 100-continue\r\n\r\n");
    let reply = client.reply();
    assert_eq!((reply.status, reply.header("connection")), (413, Some("close")));
    client.expect_closed();
    // The client sends the body anyway: it is read and dropped, the request is refused, and the connection continues.
    let mut client = scene.client();
    client.send(post("/echo", vec![b'x'; (64 << 20) + 1]));
    assert_eq!(client.reply().status, 413);
    assert_eq!(client.get("/bytes/1").status, 200);
}

/// Clients that send large bodies and read no response: as many as there is room for are held, and the next is refused until they are gone.
#[test]
fn echo_holds_a_limited_number_of_bytes() {
    let scene = Scene::with(Options::default(), NodeOptions { receive_buffer: 8 << 20, ..small() });
    let deaf = scene.machine(NodeOptions { send_buffer: 8 << 20, ..small() });
    let body = vec![b'x'; 60 << 20];
    let held: Vec<_> = (0..MAX_HELD / body.len()).map(|_| scene.client_of(&deaf, 0)).collect();
    held.iter().for_each(|client| client.send(post("/echo", &body)));
    deaf.freeze();
    scene.run(S);
    assert_eq!(scene.counters().body_bytes_in, (held.len() * body.len()) as u64);
    let mut client = scene.client();
    client.send(post("/echo", &body));
    assert_eq!(client.reply().status, 413);
    deaf.kill();
    assert_eq!(scene.counters().connections_open, 1);
    client.send(post("/echo", &body[1..]));
    assert!(client.reply().body == body[1..]);
}

#[test]
fn continue_is_sent_before_the_body() {
    let scene = Scene::new();
    let mut client = scene.client();
    // In its turn: the response before it is delayed.
    client.send(get("/delay/50ms"));
    client.send("POST /echo HTTP/1.1\r\nHost: o\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    let (late, interim) = (client.reply(), client.reply());
    assert_eq!((late.text().as_str(), interim.status, interim.at), ("ok", 100, late.at));
    client.send("hi");
    let reply = client.reply();
    assert_eq!((reply.text().as_str(), reply.at - interim.at), ("hi", ROUND_TRIP));
}

#[test]
fn connections_are_closed_as_version_and_header_say() {
    let scene = Scene::new();
    for (rest, size, connection) in [
        ("1.0\r\nConnection: keep-alive", 5, "keep-alive"),
        ("1.0", 6, "close"),
        ("1.1\r\nHost: o\r\nConnection: close", 0, "close"),
        ("1.1\r\nHost: o\r\nConnection: close", 165_854, "close"),
    ] {
        let mut client = scene.client();
        client.send(format!("GET /bytes/{size} HTTP/{rest}\r\n\r\n"));
        let reply = client.reply();
        assert_eq!((reply.body == payload(size), reply.header("connection")), (true, Some(connection)), "{rest}");
        if connection == "close" {
            client.expect_closed();
        }
    }
    // HTTP/1.0 has no chunks: the end of the body is that of the connection.
    let mut client = scene.client();
    client.send("GET /bytes/50000?chunked=1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let reply = client.reply();
    assert_eq!((reply.header("transfer-encoding"), reply.header("content-length")), (None, None));
    assert!(reply.body == payload(50_000));
}

#[test]
fn the_lab_has_its_own_paths() {
    let scene = Scene::new();
    let mut client = scene.client();
    assert_eq!(client.get("/_weir/ready").status, 204);
    assert_eq!(client.get("/_weir/other").status, 404);
    client.get("/bytes/100");
    let reply = client.get("/_weir/counters");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let counters: OriginCounters = serde_json::from_slice(&reply.body).expect("counters");
    assert_eq!((counters.requests, counters.answered, counters.own_requests, counters.body_bytes_out), (1, 1, 3, 100));
    assert_eq!(counters, scene.handle.counters());
    // The counters include every connection; a client can also get them without those that read the counters. A
    // connection of a proxy may have carried the readiness check.
    let mut other = scene.client();
    other.get("/_weir/ready");
    other.get("/bytes/100");
    assert_eq!((scene.counters().connections_open, scene.handle.connections_open()), (2, 1));
    drop(client);
    assert_eq!((scene.counters().connections_open, scene.handle.connections_open()), (1, 1));
    drop(other);
    assert_eq!((scene.counters().connections_open, scene.handle.connections_open()), (0, 0));
}

#[test]
fn names_are_answered_and_counted() {
    let scene = Scene::new();
    let name = |number| RequestId::new(9, 1, number);
    let mut sent = 0;
    let targets = "/bytes/128 /bytes/9000 /bytes/300000 /bytes/9?chunked=1 /echo /headers /status/204 /nowhere \
                   /bytes/128?delay=1ms /bytes/128?fault=status=503 /bytes/128?fault=drip=1MB/s /bytes/128?close=1";
    for target in targets.split(' ') {
        for (method, version) in [("GET", "1.1"), ("HEAD", "1.1"), ("GET", "1.1"), ("GET", "1.0")] {
            sent += 1;
            let mut client = scene.client();
            let text = String::from_utf8(name(sent).text().to_vec()).expect("digits");
            let begun = scene.world.now();
            client.send(format!("{method} {target} HTTP/{version}\r\nHost: o\r\nX-Weir-Id: {text}\r\n\r\n"));
            let reply = if method == "HEAD" { client.reply_to(true) } else { client.reply() };
            let response = reply
                .header("x-weir-origin")
                .and_then(|value| ResponseTag::parse(value.as_bytes(), ResponseKey::default()));
            let response = response.unwrap_or_else(|| panic!("{method} {target} {version}: {}", reply.head));
            assert_eq!((response.id, response.worker), (name(sent), 0), "{target}");
            let left = begun + LATENCY + if target.contains("delay") { MS } else { 0 };
            assert_eq!(response.at_us, left / 1000, "{target}");
        }
    }
    let mut client = scene.client();
    let mut has_response = |target: &str, text: &str| {
        client.send(format!("GET {target} HTTP/1.1\r\nHost: o\r\nx-weir-id: {text}\r\n\r\n"));
        client.reply().header("x-weir-origin").is_some()
    };
    assert!(["", "1", "000900100000000G", "00090010000000000"].iter().all(|text| !has_response("/bytes/1", text)));
    assert!(!has_response("/_weir/ready", "0009001000000001"), "the lab's own");
    assert!(has_response("/bytes/1", "0009001000000001") && has_response("/bytes/1", "0009001000000001"));
    assert_eq!(scene.client().get("/bytes/1").header("x-weir-origin"), None);
    let names = scene.counters().request_ids;
    let expected =
        RequestIdCounters { identified: sent + 2, distinct: sent, repeated: 1, malformed: 4, unremembered: 0 };
    assert_eq!((names, names.again()), (expected, 2));
}
