//! Responses to requests of all kinds, over a socket.

mod common;

use std::io::Read;
use std::time::Duration;

use common::{Client, counters_when, get, start, start_in};
use weir_model::counters::{NameCounters, OriginCounters};
use weir_model::load::DriverChoice;
use weir_origin::{MAX_HELD, Options, Origin, ResponseOptions, payload};
use weir_wire::names::{AnswerKey, Answered, Name};

on_each_driver!(
    every_path_answers,
    bodies_are_payloads,
    headers_are_those_that_were_asked_for,
    queries_combine,
    wrong_targets_are_explained,
    head_is_the_head_of_get,
    echo_gives_back_what_came,
    echo_refuses_what_is_too_large,
    echo_holds_a_limited_number_of_bytes,
    idle_connections_are_closed_where_that_is_asked,
    a_body_on_any_path_is_read,
    continue_is_sent_before_the_body,
    http_1_0_is_closed_unless_asked,
    close_is_honoured,
    the_lab_has_its_own_paths,
    a_slow_reader_gets_everything,
    requests_in_single_bytes,
    names_are_answered_and_counted,
);

fn names_are_answered_and_counted(driver: DriverChoice) {
    let origin = start(driver);
    let name = |number| Name::new(9, 1, number);
    let mut sent = 0;
    let targets = [
        "/bytes/128",
        "/bytes/9000",
        "/bytes/300000",
        "/bytes/9?chunked=1",
        "/echo",
        "/headers",
        "/status/204",
        "/nowhere",
        "/bytes/128?delay=1ms",
        "/bytes/128?fault=status=503",
        "/bytes/128?fault=drip=1MB/s",
        "/bytes/128?close=1",
    ];
    let mut at_us = 0;
    for target in targets {
        for (method, version) in [("GET", "1.1"), ("HEAD", "1.1"), ("GET", "1.1"), ("GET", "1.0")] {
            sent += 1;
            let mut client = Client::new(&origin);
            let text = String::from_utf8(name(sent).text().to_vec()).expect("digits");
            client.send(format!("{method} {target} HTTP/{version}\r\nHost: o\r\nX-Weir-Name: {text}\r\n\r\n"));
            let reply = if method == "HEAD" { client.reply_to(true) } else { client.reply() };
            let answer =
                reply.header("x-weir-answer").and_then(|value| Answered::parse(value.as_bytes(), AnswerKey::default()));
            let answer = answer.unwrap_or_else(|| panic!("{method} {target} {version}: {}", reply.head));
            assert_eq!((answer.name, answer.worker), (name(sent), 0), "{target}");
            assert!(answer.at_us >= at_us, "{target}: it was answered before the last one");
            at_us = answer.at_us;
        }
    }
    let mut client = Client::new(&origin);
    for text in ["", "1", "000900100000000G", "00090010000000000"] {
        client.send(format!("GET /bytes/1 HTTP/1.1\r\nHost: o\r\nx-weir-name: {text}\r\n\r\n"));
        assert_eq!(client.reply().header("x-weir-answer"), None, "{text}");
    }
    assert_eq!(client.get("/bytes/1").header("x-weir-answer"), None);
    client.send("GET /_weir/ready HTTP/1.1\r\nHost: o\r\nx-weir-name: 0009001000000001\r\n\r\n");
    assert_eq!(client.reply().header("x-weir-answer"), None, "the lab's own");
    for _ in 0..2 {
        client.send("GET /bytes/1 HTTP/1.1\r\nHost: o\r\nx-weir-name: 0009001000000001\r\n\r\n");
        assert!(client.reply().header("x-weir-answer").is_some());
    }
    let names = origin.counters().names;
    let expected = NameCounters { named: sent + 2, distinct: sent, repeated: 1, malformed: 4, unremembered: 0 };
    assert_eq!((names, names.again()), (expected, 2));
}

fn every_path_answers(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    let index = client.get("/");
    assert_eq!((index.status, index.text().as_str()), (200, weir_origin::INDEX_PAGE));
    assert_eq!(index.header("server"), Some("weir-origin"));
    let ok = client.get("/delay/1ms");
    assert_eq!((ok.status, ok.text().as_str()), (200, "ok"));
    let teapot = client.get("/status/418");
    assert_eq!((teapot.status, teapot.text().contains("418")), (418, true));
    assert_eq!(client.get("/status/204").body, b"");
    assert_eq!(client.get("/status/304").body, b"");
    assert_eq!(client.get("/status/205").header("content-length"), Some("0"));
    assert_eq!(client.get("/echo").body, b"");
    let request = "GET /headers HTTP/1.1\r\nHost: origin\r\nX-Odd:  one\r\nx-odd: two\r\n\r\n";
    client.send(request);
    let headers = client.reply();
    assert_eq!((headers.text().as_str(), headers.header("content-type")), (request, Some("text/plain; charset=utf-8")));
    let request = "GET /request HTTP/1.1\r\nHost: origin\r\nContent-Length: 4\r\n\r\nbody";
    client.send(request);
    assert_eq!(client.reply().text(), request, "a GET may have a body");
    assert_eq!(client.get("http://elsewhere/bytes/3").body, payload(3));
}

fn headers_are_those_that_were_asked_for(driver: DriverChoice) {
    let headers = [("Server", "other/1"), ("Content-Type", "text/html"), ("ETag", "\"1\""), ("Date", "now")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let origin = start_in(driver, ResponseOptions { headers, ..ResponseOptions::default() });
    let mut client = Client::new(&origin);
    // Those that are prepared, and those that are not.
    for target in ["/bytes/128", "/bytes/128?close=0&chunked=1", "/headers"] {
        let reply = client.get(target);
        assert_eq!(reply.header("server"), Some("other/1"), "{target}: {}", reply.head);
        assert_eq!(reply.header("content-type"), Some("text/html"), "{target}: {}", reply.head);
        assert_eq!(reply.header("etag"), Some("\"1\""), "{target}: {}", reply.head);
        assert!(reply.header("date").is_some_and(|date| date.ends_with(" GMT")), "{target}: {}", reply.head);
    }
    let own = client.get("/_weir/ready");
    assert_eq!((own.header("server"), own.header("date")), (Some("weir-origin"), None), "{}", own.head);
}

fn bodies_are_payloads(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
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

fn queries_combine(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    let reply = client.get("/status/503?bytes=5000&delay=1ms&chunked=1");
    assert_eq!((reply.status, reply.body == payload(5000)), (503, true));
    let reply = client.get("/?bytes=10&status=201&x=anything");
    assert_eq!((reply.status, reply.body.as_slice()), (201, payload(10)));
    let reply = client.get("/echo?bytes=16KiB&close=1");
    assert_eq!((reply.body == payload(16_384), reply.header("connection")), (true, Some("close")));
    client.expect_closed();
}

fn wrong_targets_are_explained(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    let lost = client.get("/nowhere");
    assert_eq!(lost.status, 404);
    assert!(lost.text().contains("/nowhere") && lost.text().contains("/bytes/<size>"), "{}", lost.text());
    let wrong = client.get("/bytes/12x");
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("12x") && wrong.text().contains("16KiB"), "{}", wrong.text());
    assert_eq!(client.get("/bytes/1").status, 200, "a wrong value is no reason to close");
}

fn head_is_the_head_of_get(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    for target in [
        "/",
        "/bytes/128",
        "/bytes/11268",
        "/bytes/11268?chunked=1",
        "/status/204",
        "/status/404",
        "/nowhere",
        "/delay/1ms",
    ] {
        let whole = client.get(target);
        client.send(format!("HEAD {target} HTTP/1.1\r\nHost: origin\r\n\r\n"));
        let head = client.reply_to(true);
        assert_eq!(head.head, whole.head, "{target}");
    }
    client.send("HEAD /bytes/9 HTTP/1.0\r\n\r\n");
    assert_eq!(client.reply_to(true).header("content-length"), Some("9"));
    client.expect_closed();
}

fn echo_gives_back_what_came(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    let body = payload(1 << 20);
    client.send(format!(
        "POST /echo HTTP/1.1\r\nHost: origin\r\nContent-Type: a/b; c=d\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    client.send(body);
    let reply = client.reply();
    assert_eq!((reply.status, reply.header("content-type"), reply.body == body), (200, Some("a/b; c=d"), true));
    client.send("PUT /echo?chunked=1 HTTP/1.1\r\nHost: origin\r\nTransfer-Encoding: chunked\r\n\r\n");
    for piece in body.chunks(10_000) {
        client.send(format!("{:x}\r\n", piece.len()));
        client.send(piece);
        client.send("\r\n");
    }
    client.send("0\r\n\r\n");
    let reply = client.reply();
    assert_eq!((reply.header("content-type"), reply.body == body), (Some("application/octet-stream"), true));
    client.send("POST /echo HTTP/1.1\r\nHost: origin\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(client.reply().body, b"hello");
}

fn echo_refuses_what_is_too_large(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    // The client announces the body and waits: it is refused before a byte of it is sent.
    client.send("POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 67108865\r\nExpect: 100-continue\r\n\r\n");
    let reply = client.reply();
    assert_eq!((reply.status, reply.header("connection")), (413, Some("close")));
    client.expect_closed();
    // The client sends the body anyway: it is read and dropped, the request is refused, and the connection continues.
    let mut client = Client::new(&origin);
    client.send("POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 67108865\r\n\r\n");
    client.send(vec![b'x'; (64 << 20) + 1]);
    assert_eq!(client.reply().status, 413);
    assert_eq!(client.get("/bytes/1").status, 200);
}

/// Clients that send large bodies and read no answer: as many as there is room for are held, and the next is refused until they are gone.
fn echo_holds_a_limited_number_of_bytes(driver: DriverChoice) {
    let origin = start(driver);
    let size = 60 << 20;
    let head = format!("POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: {size}\r\n\r\n");
    let body = vec![b'x'; size];
    let send = || {
        let mut client = Client::new(&origin);
        client.send(&head);
        client.send(&body);
        client
    };
    let held: Vec<Client> = (0..MAX_HELD / size).map(|_| send()).collect();
    counters_when(&origin, |counters| counters.body_bytes_in == (held.len() * size) as u64);
    let mut refused = send();
    assert_eq!(refused.reply().status, 413);
    drop(held);
    counters_when(&origin, |counters| counters.connections_open == 1);
    assert!(send().reply().body == body);
}

fn idle_connections_are_closed_where_that_is_asked(driver: DriverChoice) {
    let idle = Some(Duration::from_millis(400));
    let origin = Origin::start(Options { driver, idle, ..Options::default() }).expect("an origin");
    let (mut used, mut silent, mut begun, mut deaf) =
        (Client::new(&origin), Client::new(&origin), Client::new(&origin), Client::new(&origin));
    begun.send("GET /bytes/1 HTTP/1.1\r\nHo");
    // It asks for more than the kernel keeps, and reads nothing.
    deaf.send("GET /bytes/67108864 HTTP/1.1\r\nHost: o\r\n\r\n");
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(used.get("/bytes/1").status, 200);
    }
    silent.expect_closed();
    begun.expect_closed();
    counters_when(&origin, |counters| counters.connections_open == 1);
    used.expect_closed();
    drop(deaf);
}

fn a_body_on_any_path_is_read(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    client.send(
        "POST /bytes/7 HTTP/1.1\r\nHost: o\r\nContent-Length: 3\r\n\r\nabcGET /bytes/8 HTTP/1.1\r\nHost: o\r\n\r\n",
    );
    assert_eq!(client.reply().body, payload(7));
    assert_eq!(client.reply().body, payload(8));
}

fn continue_is_sent_before_the_body(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    // In its turn: the response before it is delayed.
    client.send(get("/delay/50ms"));
    client.send("POST /echo HTTP/1.1\r\nHost: o\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(client.reply().text(), "ok");
    assert_eq!(client.reply().status, 100);
    client.send("hi");
    assert_eq!(client.reply().text(), "hi");
}

fn http_1_0_is_closed_unless_asked(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    client.send("GET /bytes/5 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let reply = client.reply();
    assert_eq!((reply.body.as_slice(), reply.header("connection")), (payload(5), Some("keep-alive")));
    client.send("GET /bytes/6 HTTP/1.0\r\n\r\n");
    let reply = client.reply();
    assert_eq!((reply.body.as_slice(), reply.header("connection")), (payload(6), Some("close")));
    client.expect_closed();
    let mut client = Client::new(&origin);
    client.send("GET /bytes/50000?chunked=1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let reply = client.reply();
    assert_eq!((reply.header("transfer-encoding"), reply.header("content-length")), (None, None));
    assert!(reply.body == payload(50_000));
}

fn close_is_honoured(driver: DriverChoice) {
    let origin = start(driver);
    for size in [0, 128, 165_854] {
        let mut client = Client::new(&origin);
        client.send(format!("GET /bytes/{size} HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n"));
        let reply = client.reply();
        assert_eq!((reply.body.len(), reply.header("connection")), (size, Some("close")));
        client.expect_closed();
    }
}

fn the_lab_has_its_own_paths(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    assert_eq!(client.get("/_weir/ready").status, 204);
    assert_eq!(client.get("/_weir/other").status, 404);
    client.get("/bytes/100");
    let reply = client.get("/_weir/counters");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let counters: OriginCounters = serde_json::from_slice(&reply.body).expect("counters");
    assert_eq!((counters.requests, counters.answered, counters.own_requests, counters.body_bytes_out), (1, 1, 3, 100));
    assert_eq!(counters, origin.counters());
    // The counters include every connection; a client can also get them without those that read the counters. A
    // connection of a proxy may have carried the readiness check.
    let mut other = Client::new(&origin);
    other.get("/_weir/ready");
    other.get("/bytes/100");
    assert_eq!((origin.counters().connections_open, origin.connections_open()), (2, 1));
    drop(client);
    counters_when(&origin, |counters| counters.connections_open == 1);
    assert_eq!(origin.connections_open(), 1);
    drop(other);
    counters_when(&origin, |counters| counters.connections_open == 0);
    assert_eq!(origin.connections_open(), 0);
}

fn a_slow_reader_gets_everything(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    let mut all = Vec::new();
    for _ in 0..20 {
        client.send(get("/bytes/165854"));
    }
    client.send(get("/bytes/1?close=1"));
    let mut piece = [0; 20_000];
    let mut stream = client.stream();
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => all.extend_from_slice(&piece[..read]),
            // Rings of this process interrupt the reads of its other threads, too.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => panic!("no reset: {error}"),
        }
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
    let one = Client::new(&origin).get("/bytes/165854");
    let one = [one.head.as_bytes(), &one.body].concat();
    assert!(all.len() > 20 * one.len() && all.chunks(one.len()).take(20).all(|reply| reply == one));
}

fn requests_in_single_bytes(driver: DriverChoice) {
    let origin = start(driver);
    let mut client = Client::new(&origin);
    for byte in b"POST /echo HTTP/1.1\r\nHost: o\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" {
        client.send([*byte]);
    }
    assert_eq!(client.reply().body, b"abc");
}
