//! HTTP/2's two halves against each other, over a pipe.

use crate::http2_frames::{WINDOW_UPDATE, frame, frames, settings};
use crate::pipe;
use crate::pipe::{Pipe, Seen};
use weir_wire::http2::{
    Body, Code, EncodeError, Options, Prepared, Request, ResetCause, SendError, SendStatus, Template, Values,
};

fn get(path: &str) -> Prepared {
    let headers = [("User-Agent", "weir"), ("accept", "*/*")];
    let request = Request { method: "GET", scheme: "http", authority: "127.0.0.1:80", path, headers: &headers };
    Prepared::request(&request).unwrap()
}

fn with_method(method: &str) -> Prepared {
    Prepared::request(&Request { method, scheme: "http", authority: "a", path: "/", headers: &[] }).unwrap()
}

fn ok(length: u64) -> Prepared {
    Prepared::response(200, &[("server", "weir"), ("content-type", "text/plain")], Some(length)).unwrap()
}

#[test]
fn a_request_and_its_response() {
    let mut pipe = Pipe::started(&Options::client(), &Options::server());
    for round in 0..5 {
        let stream = pipe.ask(round, &get("/bytes/5"), Body::None);
        assert_eq!(pipe.client.open(), 1);
        let response = Body::Static(b"hello");
        assert_eq!(pipe.server.respond(stream, &ok(5), response, &mut pipe.to_client), Ok(SendStatus::All));
        pipe.run();
        let seen = pipe.texts();
        assert_eq!(
            seen,
            [
                "request GET http 127.0.0.1:80 /bytes/5 user-agent: weir, accept: */*",
                "request ends",
                &format!("{round}: 200 length 5 server: weir, content-type: text/plain, content-length: 5"),
                &format!("{round}: \"hello\""),
                &format!("{round}: end"),
            ],
        );
        assert_eq!((pipe.client.open(), pipe.server.open()), (0, 0));
    }
}

#[test]
fn trailers_end_a_response_behind_its_body() {
    let mut pipe = Pipe::started(&Options::client(), &Options::server());
    let head = Prepared::response(200, &[("content-type", "application/grpc")], None).unwrap();
    for round in 0..3 {
        let stream = pipe.ask(round, &get("/"), Body::None);
        let trailers: [(&str, &[u8]); 2] = [("grpc-status", b"0"), ("grpc-message", b"")];
        assert_eq!(
            pipe.server.trailers(stream, &trailers, &mut pipe.to_client),
            Err(SendError::NoStream),
            "no head yet"
        );
        pipe.server.head(stream, &head, false, &mut pipe.to_client).unwrap();
        pipe.server.data(stream, Body::Static(b"hello"), false, &mut pipe.to_client).unwrap();
        let wrong: [(&str, &[u8]); 1] = [("grpc-message", b"a\nb")];
        assert_eq!(pipe.server.trailers(stream, &wrong, &mut pipe.to_client), Err(SendError::BadValue));
        assert_eq!(pipe.server.trailers(stream, &trailers, &mut pipe.to_client), Ok(SendStatus::All));
        assert_eq!(pipe.server.trailers(stream, &trailers, &mut pipe.to_client), Err(SendError::NoStream), "one end");
        pipe.run();
        let seen = pipe.texts();
        let of_response = &seen[seen.len() - 4..];
        assert_eq!(
            of_response,
            [
                format!("{round}: 200 content-type: application/grpc"),
                format!("{round}: \"hello\""),
                format!("{round}: trailers grpc-status: 0, grpc-message: "),
                format!("{round}: end"),
            ],
        );
        assert_eq!((pipe.client.open(), pipe.server.open()), (0, 0));
    }
}

#[test]
fn a_value_that_changes_is_read_anew_in_a_block_that_is_remembered() {
    for keep_headers in [true, false] {
        let mut pipe = Pipe::started(&Options { keep_headers, ..Options::client() }, &Options::server());
        let headers = [("x-a", "1"), ("x-name", ""), ("x-b", "2")];
        let request = Request { method: "GET", scheme: "http", authority: "a", path: "/", headers: &headers };
        let request = Prepared::template(&request, Template { headers: &[1], ..Template::default() }).unwrap();
        let response = Prepared::response_template(200, &[("server", "weir")], Some(0), &["x-answer"]).unwrap();
        // The first blocks insert into the table; later ones differ in the value alone, and once in its length.
        for (round, name) in (0..).zip(["aa", "bb", "cc", "cc", "dd", "eee", "fff", "gg"]) {
            pipe.client
                .request_filled(
                    round,
                    &request,
                    Values { headers: &[name.as_bytes()], ..Values::default() },
                    Body::None,
                    &mut pipe.to_server,
                )
                .unwrap();
            let stream = pipe.run().pop().unwrap();
            let values: [&[u8]; 1] = [name.as_bytes()];
            pipe.server.respond_filled(stream, &response, &values, Body::None, &mut pipe.to_client).unwrap();
            pipe.run();
            let seen = pipe.texts();
            let kept = if keep_headers { &format!(" server: weir, content-length: 0, x-answer: {name}") } else { "" };
            assert_eq!(
                seen,
                [
                    &format!("request GET http a / x-a: 1, x-b: 2, x-name: {name}"),
                    "request ends",
                    &format!("{round}: 200 length 0{kept}"),
                    &format!("{round}: end"),
                ],
            );
        }
    }
}

#[test]
fn later_requests_are_a_few_bytes() {
    let mut pipe = Pipe::started(&Options::client(), &Options::server());
    let (one, other) = (get("/bytes/1"), get("/bytes/22"));
    let mut sizes = Vec::new();
    for round in 0..8 {
        let request = if round % 2 == 0 { &one } else { &other };
        let before = pipe.to_server.len();
        pipe.client.request(round, request, Body::None, &mut pipe.to_server).unwrap();
        sizes.push(pipe.to_server.len() - before - 9);
        let stream = pipe.run().pop().unwrap();
        pipe.server.respond(stream, &ok(0), Body::None, &mut pipe.to_client).unwrap();
        pipe.run();
    }
    // A byte a header once both are in the table.
    assert_eq!(sizes[2..], [6; 6]);
    assert!(sizes[1] < sizes[0]);
}

#[test]
fn bodies_leave_as_windows_allow() {
    let client = Options { stream_window: 1000, ..Options::client() };
    let server = Options { stream_window: 500, ..Options::server() };
    let mut pipe = Pipe::started(&client, &server);
    static LONG: [u8; 100_000] = [7; 100_000];
    let stream = pipe.ask(0, &with_method("POST"), Body::Copied(&LONG));
    assert_eq!(
        pipe.server.respond(stream, &ok(100_000), Body::Static(&LONG), &mut pipe.to_client),
        Ok(SendStatus::Waiting)
    );
    pipe.run();
    let seen = pipe.take();
    assert_eq!(pipe::bodies(&seen), (LONG.to_vec(), LONG.to_vec()));
    assert!(seen.contains(&Seen::SendStatus));
    assert_eq!((pipe.client.open(), pipe.server.open()), (0, 0));
}

#[test]
fn answers_to_head_and_those_without_content_have_no_body() {
    let mut pipe = Pipe::started(&Options::client(), &Options::server());
    let not_modified = Prepared::response(304, &[], Some(9)).unwrap();
    let no_content = Prepared::response(204, &[], None).unwrap();
    for (method, response, want) in [
        ("HEAD", ok(9), "0: 200 length 9 server: weir, content-type: text/plain, content-length: 9"),
        ("GET", not_modified, "0: 304 length 9 content-length: 9"),
        ("GET", no_content, "0: 204"),
    ] {
        let stream = pipe.ask(0, &with_method(method), Body::None);
        pipe.server.respond(stream, &response, Body::Static(b"left out!"), &mut pipe.to_client).unwrap();
        pipe.run();
        let seen = pipe.texts();
        assert_eq!(seen[2..], [want, "0: end"]);
    }
}

#[test]
fn a_template_is_filled_in() {
    let mut pipe = Pipe::started(&Options::client(), &Options::server());
    let headers = [("x-seq", ""), ("accept", "*/*")];
    let request = Request { method: "PUT", scheme: "https", authority: "", path: "", headers: &headers };
    let template = Prepared::template(&request, Template { path: true, authority: true, headers: &[0] }).unwrap();
    for n in 0..3 {
        let (path, authority, seq) = (format!("/item/{n}"), format!("host-{n}.test:1"), n.to_string());
        let values = Values { path: path.as_bytes(), authority: authority.as_bytes(), headers: &[seq.as_bytes()] };
        let body = Body::Copied(seq.as_bytes());
        pipe.client.request_filled(n, &template, values, body, &mut pipe.to_server).unwrap();
        let stream = pipe.run().pop().unwrap();
        assert_eq!(
            pipe.take()[0].to_string(),
            format!("request PUT https host-{n}.test:1 /item/{n} accept: */*, x-seq: {n}, content-length: 1"),
        );
        pipe.server.reset(stream, Code::INTERNAL_ERROR, &mut pipe.to_client);
        pipe.run();
        let [Seen::Reset(tag, ResetCause::Peer(Code::INTERNAL_ERROR))] = pipe.take()[..] else { panic!() };
        assert_eq!(tag, n);
    }
    for (path, authority, headers) in [
        ("nope", "a", &["1"][..]),
        ("/a b", "a", &["1"]),
        ("/", "a", &[" 1"]),
        ("/", "a", &["a\nb"]),
        ("/", "a", &[]),
        ("/", "", &["1"]),
        ("/", "a/b", &["1"]),
        ("/", "a:b", &["1"]),
    ] {
        let headers: Vec<&[u8]> = headers.iter().map(|value| value.as_bytes()).collect();
        let values = Values { path: path.as_bytes(), authority: authority.as_bytes(), headers: &headers };
        let refused = pipe.client.request_filled(9, &template, values, Body::None, &mut pipe.to_server);
        assert_eq!(refused, Err(SendError::BadValue), "{values:?}");
    }
    assert!(pipe.to_server.is_empty());
}

#[test]
fn the_server_limits_the_streams() {
    let client = Options { max_streams: 1000, ..Options::client() };
    let server = Options { max_streams: 3, ..Options::server() };
    let mut pipe = Pipe::new(&client, &server);
    assert_eq!(pipe.client.streams(), 100);
    pipe.start();
    assert_eq!(pipe.client.streams(), 3);
    for tag in 0..3 {
        pipe.client.request(tag, &get("/"), Body::None, &mut pipe.to_server).unwrap();
    }
    assert_eq!(pipe.client.request(3, &get("/"), Body::None, &mut pipe.to_server), Err(SendError::Full));
    let streams = pipe.run();
    let slots: Vec<usize> = streams.iter().map(|stream| stream.slot()).collect();
    assert_eq!(slots, [0, 1, 2]);
    // In another order than asked.
    for at in [1, 0, 2] {
        pipe.server.respond(streams[at], &ok(0), Body::None, &mut pipe.to_client).unwrap();
    }
    pipe.run();
    let ends: Vec<u32> =
        pipe.take().iter().filter_map(|seen| if let Seen::End(tag) = seen { Some(*tag) } else { None }).collect();
    assert_eq!(ends, [1, 0, 2]);
}

#[test]
fn goaway_names_the_unprocessed_streams() {
    let mut pipe = Pipe::started(&Options::client(), &Options::server());
    let stream = pipe.ask(7, &get("/"), Body::None);
    pipe.take();
    pipe.server.go_away(&mut pipe.to_client);
    // Under way when the server sends GOAWAY.
    pipe.client.request(8, &get("/"), Body::None, &mut pipe.to_server).unwrap();
    assert!(pipe.run().is_empty());
    assert_eq!(pipe.client.streams(), 0);
    assert_eq!(pipe.client.request(9, &get("/"), Body::None, &mut pipe.to_server), Err(SendError::Closing));
    pipe.server.respond(stream, &ok(0), Body::None, &mut pipe.to_client).unwrap();
    pipe.run();
    let seen = pipe.take();
    assert_eq!(seen[0], Seen::GoAway(Code::NO_ERROR));
    assert_eq!(seen[1], Seen::Reset(8, ResetCause::GoneAway));
    assert_eq!(seen.last(), Some(&Seen::End(7)));
    assert_eq!((pipe.client.open(), pipe.server.open()), (0, 0));
}

#[test]
fn a_cancelled_request_has_no_more_events() {
    let mut pipe = Pipe::started(&Options::client(), &Options::server());
    for tag in 0..2 {
        pipe.client.request(tag, &get("/"), Body::None, &mut pipe.to_server).unwrap();
    }
    let streams = pipe.run();
    pipe.take();
    // The response crosses the cancelling.
    pipe.server.respond(streams[0], &ok(5), Body::Static(b"hello"), &mut pipe.to_client).unwrap();
    pipe.client.cancel(0, &mut pipe.to_server);
    pipe.server.respond(streams[1], &ok(5), Body::Static(b"hello"), &mut pipe.to_client).unwrap();
    pipe.run();
    let seen = pipe.texts();
    assert_eq!(seen[1..], ["1: \"hello\"", "1: end"]);
    assert_eq!((pipe.client.open(), pipe.server.open()), (0, 0));
}

#[test]
fn interim_responses_come_before_the_final_one() {
    let mut pipe = Pipe::started(&Options::client(), &Options::server());
    let headers = [("expect", "100-continue")];
    let request = Request { method: "POST", scheme: "http", authority: "a", path: "/", headers: &headers };
    let request = Prepared::request(&request).unwrap();
    let stream = pipe.ask(0, &request, Body::Static(b"body"));
    pipe.take();
    assert_eq!(pipe.server.interim(stream, 101, &mut pipe.to_client), Err(SendError::BadValue));
    pipe.server.interim(stream, 100, &mut pipe.to_client).unwrap();
    let response = [("x", &b"\xff"[..])];
    pipe.server.respond_with(stream, 299, &response, Body::Copied(b"no"), &mut pipe.to_client).unwrap();
    assert_eq!(pipe.server.interim(stream, 100, &mut pipe.to_client), Err(SendError::NoStream));
    pipe.run();
    let seen = pipe.texts();
    assert_eq!(seen, ["0: interim 100", "0: 299 length 2 x: \\xff, content-length: 2", "0: \"no\"", "0: end"]);
}

#[test]
fn a_response_in_pieces() {
    let server = Options::server();
    let mut pipe = Pipe::started(&Options { stream_window: 3, ..Options::client() }, &server);
    let stream = pipe.ask(0, &get("/"), Body::None);
    let to = &mut pipe.to_client;
    assert_eq!(pipe.server.data(stream, Body::Static(b"x"), false, to), Err(SendError::NoStream));
    let head = Prepared::response(200, &[], None).unwrap();
    assert_eq!(pipe.server.head(stream, &head, false, to), Ok(SendStatus::All));
    assert_eq!(pipe.server.data(stream, Body::Static(b"ab"), false, to), Ok(SendStatus::All));
    assert_eq!(pipe.server.data(stream, Body::Copied(b"cdefg"), false, to), Ok(SendStatus::Waiting));
    assert_eq!(pipe.server.data(stream, Body::Static(b"hi"), false, to), Ok(SendStatus::Waiting));
    assert_eq!(pipe.server.data(stream, Body::None, true, to), Ok(SendStatus::Waiting));
    assert_eq!(pipe.server.data(stream, Body::None, true, to), Err(SendError::NoStream));
    pipe.run();
    assert_eq!(pipe::bodies(&pipe.take()).1, b"abcdefghi");
    assert_eq!((pipe.client.open(), pipe.server.open()), (0, 0));
}

#[test]
fn invalid_parts_are_refused_by_name() {
    let request = |method, scheme, authority, path, name: &'static str, value: &'static str| {
        Prepared::request(&Request { method, scheme, authority, path, headers: &[(name, value)] }).unwrap_err()
    };
    assert_eq!(request("CONNECT", "http", "a", "/", "a", ""), EncodeError::BadMethod("CONNECT".into()));
    assert_eq!(request("GET", "ftp", "a", "/", "a", ""), EncodeError::BadScheme("ftp".into()));
    assert_eq!(request("GET", "http", "", "/", "a", ""), EncodeError::BadAuthority(String::new()));
    assert_eq!(request("GET", "http", "a", "x", "a", ""), EncodeError::BadPath("x".into()));
    assert_eq!(request("GET", "http", "a", "/", "a b", ""), EncodeError::BadName("a b".into()));
    assert_eq!(request("GET", "http", "a", "/", "a", "\n"), EncodeError::BadValue("a".into()));
    assert_eq!(request("GET", "http", "a", "/", "Host", "a"), EncodeError::Derived("host".into()));
    for name in ["Connection", "keep-alive", "Transfer-Encoding", "upgrade", "proxy-connection"] {
        let error = request("GET", "http", "a", "/", name, "x");
        assert_eq!(error, EncodeError::ConnectionHeader(name.to_ascii_lowercase()));
    }
    assert!(matches!(Prepared::response(101, &[], None), Err(EncodeError::BadStatus(101))));
}

#[test]
fn a_request_cancelled_in_the_middle_of_a_frame() {
    let mut pipe = Pipe::started(&Options::client(), &Options::server());
    for tag in 0..2 {
        pipe.client.request(tag, &get("/"), Body::None, &mut pipe.to_server).unwrap();
    }
    let streams = pipe.run();
    for stream in streams {
        pipe.server.respond(stream, &ok(1000), Body::Copied(&[b'x'; 1000]), &mut pipe.to_client).unwrap();
    }
    pipe.take();
    let bytes = std::mem::take(&mut pipe.to_client);
    let (first, second) = bytes.split_at(500);
    pipe.feed_client(first);
    pipe.client.cancel(0, &mut pipe.to_server);
    pipe.feed_client(second);
    let seen = pipe.take();
    assert!(matches!(&seen[..2], [Seen::Head(0, _), Seen::Data(0, _)]));
    let rest: Vec<_> = seen[2..].iter().map(|seen| seen.to_string()[..2].to_owned()).collect();
    assert_eq!(rest, ["1:", "1:", "1:"]);
    assert_eq!(pipe.client.open(), 0);
    // The server does not see it as an error either.
    assert!(pipe.run().is_empty());
    assert_eq!((pipe.take(), pipe.server.open()), (vec![], 0));
}

#[test]
fn a_response_may_come_before_the_request_is_complete() {
    let server = Options { stream_window: 10, ..Options::server() };
    let mut pipe = Pipe::started(&Options::client(), &server);
    pipe.client.request(0, &with_method("POST"), Body::Copied(&[0; 1000]), &mut pipe.to_server).unwrap();
    let bytes = std::mem::take(&mut pipe.to_server);
    let stream = pipe.feed_server(&bytes).pop().unwrap();
    // The window that the server gives is still on its way.
    let late = std::mem::take(&mut pipe.to_client);
    pipe.server.respond(stream, &ok(2), Body::Static(b"no"), &mut pipe.to_client).unwrap();
    assert_eq!(pipe.server.open(), 1, "the request is not complete");
    let response = std::mem::take(&mut pipe.to_client);
    pipe.take();
    pipe.feed_client(&response);
    let seen = pipe.texts();
    assert_eq!(seen[1..], ["0: \"no\"", "0: end"]);
    assert_eq!(pipe.client.open(), 0);
    pipe.feed_client(&late);
    pipe.run();
    assert_eq!(pipe.take(), [Seen::RequestReset(ResetCause::Peer(Code::CANCEL))]);
    assert_eq!(pipe.server.open(), 0);
}

#[test]
fn a_window_may_shrink_below_nothing_and_grow_again() {
    let settings = |window| settings(&[(4, window)]);
    let options = Options { stream_window: 100, ..Options::client() };
    let mut pipe = Pipe::started(&options, &Options::server());
    let stream = pipe.ask(0, &get("/"), Body::None);
    assert_eq!(
        pipe.server.respond(stream, &ok(200), Body::Static(&[7; 200]), &mut pipe.to_client),
        Ok(SendStatus::Waiting)
    );
    let data = |out: &mut Vec<u8>| {
        let sent = frames(&std::mem::take(out)).into_iter();
        sent.filter(|text| text.starts_with("data")).collect::<Vec<_>>()
    };
    assert_eq!(data(&mut pipe.to_client), ["data 1 100 flags 0"]);
    pipe.feed_server(&settings(30));
    assert_eq!(data(&mut pipe.to_client), [""; 0], "70 below nothing");
    pipe.feed_server(&settings(100));
    assert_eq!(data(&mut pipe.to_client), [""; 0], "nothing");
    pipe.feed_server(&settings(130));
    assert_eq!(data(&mut pipe.to_client), ["data 1 30 flags 0"]);
    pipe.feed_server(&settings(0));
    pipe.feed_server(&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 130 + 10]));
    assert_eq!(data(&mut pipe.to_client), ["data 1 10 flags 0"]);
    pipe.feed_server(&settings(1000));
    assert_eq!(data(&mut pipe.to_client), ["data 1 60 flags 1"]);
    assert!(pipe.take().contains(&Seen::SendStatus));
    assert_eq!(pipe.server.open(), 0);
}
