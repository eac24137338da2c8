//! Both halves with each other, cut anywhere; and what an exchange costs in memory.

use proptest::prelude::*;
use weir_wire::http3::{
    Body, Client, ClientEvent, Options, Prepared, Request, Server, ServerEvent, Stream, Template, Values,
};

use crate::counting::{ALLOCATIONS, BYTES};
use crate::http3_oracle;

static BODY: [u8; 128] = [b'x'; 128];

/// One request and its response, as both sides saw them.
#[derive(Debug, Default, PartialEq)]
struct Exchange {
    method: String,
    path: String,
    id: Vec<u8>,
    upload: Vec<u8>,
    status: u16,
    length: Option<u64>,
    header: Vec<u8>,
    body: Vec<u8>,
    ended: bool,
}

/// Sends a request and its response in pieces of this size.
fn exchange(request: &Prepared, values: Values<'_>, upload: &[u8], status: u16, body: &[u8], size: usize) -> Exchange {
    let (mut client, mut server) = (Client::new(&Options::default()), Server::new(&Options::default()));
    let mut control = Vec::new();
    client.start(&mut control);
    let mut input = &control[..];
    assert_eq!(server.next(2, &mut input, false).unwrap(), Some(ServerEvent::Settings));
    control.clear();
    server.start(&mut control);
    assert_eq!(client.next(3, &mut &control[..], false).unwrap(), Some(ClientEvent::Settings));
    let (mut out, mut seen, mut whole) = (Vec::new(), Exchange::default(), None);
    client.request_filled(0, 7, request, values, Body::Copied(upload), &mut out).unwrap();
    for (at, piece) in out.chunks(size).enumerate() {
        let mut input = piece;
        while let Some(event) = server.next(0, &mut input, (at + 1) * size >= out.len()).unwrap() {
            match event {
                ServerEvent::Request { head, .. } => {
                    seen.method = String::from_utf8_lossy(head.method).into();
                    seen.path = String::from_utf8_lossy(head.path).into();
                    seen.id = head.headers.get("x-id").unwrap_or_default().to_vec();
                    assert_eq!((head.authority, head.scheme), (&b"localhost"[..], &b"https"[..]));
                    assert!(head.length.unwrap_or(0) == upload.len() as u64);
                }
                ServerEvent::Data { bytes, .. } => seen.upload.extend_from_slice(bytes),
                ServerEvent::End { stream } => whole = Some(stream),
                other => panic!("{other:?}"),
            }
        }
    }
    let stream: Stream = whole.expect("a whole request");
    out.clear();
    server.interim(stream, 103, &mut out).unwrap();
    server.respond_with(stream, status, &[("x-a", b"b")], Body::Copied(body), &mut out).unwrap();
    assert_eq!(server.open(), 0);
    for (at, piece) in out.chunks(size).enumerate() {
        let mut input = piece;
        while let Some(event) = client.next(0, &mut input, (at + 1) * size >= out.len()).unwrap() {
            match event {
                ClientEvent::Informational { tag: 7, status: 103, .. } => {}
                ClientEvent::Head { tag: 7, head } => {
                    (seen.status, seen.length) = (head.status, head.length);
                    seen.header = head.headers.get("x-a").unwrap_or_default().to_vec();
                }
                ClientEvent::Data { bytes, .. } => seen.body.extend_from_slice(bytes),
                ClientEvent::End { tag: 7 } => seen.ended = true,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(client.open(), 0);
    seen
}

fn request<'a>(method: &'a str, path: &'a str, headers: &'a [(&'a str, &'a str)]) -> Request<'a> {
    Request { method, scheme: "https", authority: "localhost", path, headers }
}

proptest! {
    #[test]
    fn what_one_half_sends_the_other_reads(
        method in "GET|HEAD|POST|DELETE",
        path in "/[!-~]{0,300}",
        id in "[!-~]{0,40}",
        upload in proptest::collection::vec(any::<u8>(), 0..300),
        status in prop_oneof![Just(200u16), Just(204), Just(404), 200..1000u16],
        body in proptest::collection::vec(any::<u8>(), 0..20_000),
        size in 1..70_000usize,
    ) {
        let headers = [("accept", "*/*"), ("X-Id", &*id)];
        let fixed = Prepared::request(&request(&method, &path, &headers)).unwrap();
        let template = Template { path: true, headers: &[1], ..Template::default() };
        let filled = Prepared::template(&request(&method, "/", &headers), template).unwrap();
        let values = Values { path: path.as_bytes(), headers: &[id.as_bytes()], ..Values::default() };
        let one = exchange(&fixed, Values::default(), &upload, status, &body, size);
        let two = exchange(&filled, values, &upload, status, &body, size.div_ceil(2));
        prop_assert_eq!(&one, &two);
        let bodiless = method == "HEAD" || matches!(status, 204 | 205 | 304);
        prop_assert_eq!((&one.method, &one.path, one.status, one.ended), (&method, &path, status, true));
        prop_assert_eq!((&one.id[..], &one.header[..], &one.upload), (id.as_bytes(), &b"b"[..], &upload));
        prop_assert_eq!(&one.body, if bodiless { &[][..] } else { &body[..] });
        let length = match status { 204 => None, 205 => Some(0), _ => Some(body.len() as u64) };
        prop_assert_eq!(one.length, length);
    }

    #[test]
    fn sections_are_read_as_written(
        headers in proptest::collection::vec(("[a-z:][a-z0-9-]{0,20}|content-type|:status", "[ -~]{0,150}|200|text/plain"), 0..12)
    ) {
        let borrowed: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let read = weir_wire::http3::probe::read(&weir_wire::http3::probe::write(&borrowed)).unwrap();
        let bytes: Vec<_> = headers.iter().map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes())).collect();
        prop_assert_eq!(read, bytes);
    }

    #[test]
    fn whatever_comes_is_read_alike_however_it_is_cut(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        http3_oracle::client(&data);
        http3_oracle::server(&data);
        http3_oracle::qpack(&data);
    }
}

#[test]
fn an_exchange_like_those_before_it_allocates_nothing() {
    for keep_headers in [true, false] {
        let mut client = Client::new(&Options { keep_headers, ..Options::default() });
        let mut server = Server::new(&Options::default());
        let (mut up, mut down) = (Vec::with_capacity(1 << 12), Vec::with_capacity(1 << 12));
        let headers = [("user-agent", "weir"), ("x-weir-id", "")];
        let template = Template { path: true, authority: true, headers: &[1] };
        let prepared = Prepared::template(&request("GET", "", &headers), template).unwrap();
        let response = [("server", "weir"), ("content-type", "text/plain")];
        let response = Prepared::response_template(200, &response, Some(128), &["x-weir-origin"]).unwrap();
        let (mut before, mut ended) = (0, 0);
        for round in 0..100u64 {
            if round == 10 {
                before = ALLOCATIONS.get();
            }
            for tag in 0..10u32 {
                let id = (round * 10 + u64::from(tag)) * 4;
                let digits = [b'0' + (round % 10) as u8; 4];
                let values = Values { path: b"/item", authority: b"localhost", headers: &[&digits] };
                up.clear();
                down.clear();
                client.request_filled(id, tag, &prepared, values, Body::None, &mut up).unwrap();
                let mut input = &up[..];
                while let Some(event) = server.next(id, &mut input, true).unwrap() {
                    if let ServerEvent::End { stream } = event {
                        server.respond_filled(stream, &response, &[&digits], Body::Static(&BODY), &mut down).unwrap();
                    }
                }
                let mut input = &down[..];
                while let Some(event) = client.next(id, &mut input, true).unwrap() {
                    if let ClientEvent::Head { head, .. } = event {
                        assert_eq!(head.headers.get("x-weir-origin"), keep_headers.then_some(&digits[..]));
                    } else {
                        ended += u32::from(event == ClientEvent::End { tag });
                    }
                }
            }
        }
        assert_eq!((ALLOCATIONS.get() - before, ended), (0, 1000), "headers kept: {keep_headers}");
    }
}

#[test]
fn a_connection_that_waits_is_small() {
    println!("client {} bytes, server {} bytes", size_of::<Client>(), size_of::<Server>());
    assert!(size_of::<Client>() <= 512 && size_of::<Server>() <= 512);
    let mut client = Client::new(&Options::default());
    client.start(&mut Vec::new());
    let prepared = Prepared::request(&request("GET", "/", &[])).unwrap();
    let long = "v".repeat(30_000);
    let responses = [&*long, "v"].map(|value| {
        let mut out = Vec::new();
        let mut server = Server::new(&Options::default());
        let get = request_bytes(&prepared);
        let mut input = &get[..];
        while let Some(event) = server.next(0, &mut input, true).unwrap() {
            if let ServerEvent::End { stream } = event {
                server.respond_with(stream, 200, &[("x-long", value.as_bytes())], Body::None, &mut out).unwrap();
            }
        }
        out
    });
    let mut responded = |id: u64, response: &[u8]| {
        client.request(id, 0, &prepared, Body::None, &mut Vec::new()).unwrap();
        // In pieces, so that the head has to be kept until it is whole.
        for piece in response.chunks(1000) {
            assert_eq!(client.open(), 1);
            let mut input = piece;
            while client.next(id, &mut input, false).unwrap().is_some() {}
        }
        while client.next(id, &mut &b""[..], true).unwrap().is_some() {}
        assert_eq!(client.open(), 0);
    };
    responded(0, &responses[1]);
    let before = BYTES.get();
    for id in 1..20 {
        responded(id * 4, &responses[0]);
    }
    assert!(BYTES.get() - before > 30_000, "the last head is kept");
    // The next one takes its place.
    responded(80, &responses[1]);
    println!("after use {} bytes more on the heap", BYTES.get() - before);
    assert!(BYTES.get() - before < 1500, "{}", BYTES.get() - before);
}

fn request_bytes(prepared: &Prepared) -> Vec<u8> {
    let mut out = Vec::new();
    Client::new(&Options::default()).request(0, 0, prepared, Body::None, &mut out).unwrap();
    out
}
