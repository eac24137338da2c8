//! HTTP/2's two halves against each other with everything at random: what is asked, sizes, windows, cuts, the order
//! of the responses. What one says the other hears, whole and in order.

use std::collections::BTreeMap;

use crate::http2_frames::{ENDS, HEADERS, frame};
use crate::pipe::{Pipe, Seen, joined};
use proptest::collection::vec;
use proptest::prelude::*;
use weir_wire::http2::probe::Blocks;
use weir_wire::http2::{Body, Options, Prepared, Request, Stream, Template, Values};

/// Bytes that bodies are cut out of.
static TEXT: [u8; 60_000] = {
    let mut text = [0; 60_000];
    let mut at = 0;
    while at < text.len() {
        text[at] = b'a' + (at % 23) as u8;
        at += 1;
    }
    text
};

/// One request and its response.
#[derive(Debug, Clone)]
struct Exchange {
    /// Which of the prepared requests.
    request: usize,
    sent: usize,
    answered: usize,
    copied: bool,
    /// Filled into the template instead.
    filled: Option<String>,
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let size = prop_oneof![3 => 0..200usize, 1 => 0..60_000usize];
    (0..4usize, size.clone(), size, any::<bool>(), proptest::option::of("/[a-z]{0,12}"))
        .prop_map(|(request, sent, answered, copied, filled)| Exchange { request, sent, answered, copied, filled })
}

fn body(size: usize, copied: bool) -> Body<'static> {
    if copied { Body::Copied(&TEXT[..size]) } else { Body::Static(&TEXT[..size]) }
}

fn requests() -> Vec<Prepared> {
    let long = "v".repeat(1500);
    (0..4)
        .map(|n| {
            let own = n.to_string();
            let headers = [("x-own", own.as_str()), ("x-long", &long[n..]), ("accept", "*/*")];
            let path = format!("/{n}");
            let request = Request { method: "POST", scheme: "http", authority: "a", path: &path, headers: &headers };
            Prepared::request(&request).unwrap()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn each_half_receives_what_the_other_sends(
        exchanges in vec(exchange(), 1..25),
        pieces in prop_oneof![Just(vec![]), vec(1..40usize, 1..5), vec(1..5000usize, 1..5)],
        windows in (0..3000u32, 0..3000u32, 1..20u32),
        newest_first in any::<bool>(),
    ) {
        let client = Options { stream_window: windows.0, max_streams: windows.2, ..Options::client() };
        let server = Options { stream_window: windows.1, connection_window: 0, ..Options::server() };
        // Without a window nothing but empty bodies can pass.
        let most = |size: usize, window: u32| if window == 0 { 0 } else { size.min(window as usize * 40) };
        let mut pipe = Pipe::new(&client, &server);
        pipe.pieces = pieces;
        pipe.start();
        let requests = requests();
        let template = Request { method: "PUT", scheme: "https", authority: "a", path: "", headers: &[("x-fill", "")] };
        let template = Prepared::template(&template, Template { path: true, headers: &[0], ..Template::default() }).unwrap();

        let mut waiting: Vec<(u32, Stream)> = Vec::new();
        let mut next = 0;
        let mut seen = Vec::new();
        while next < exchanges.len() || pipe.client.open() > 0 {
            while next < exchanges.len() && pipe.client.open() < pipe.client.streams() {
                let Exchange { request, sent, copied, filled, .. } = &exchanges[next];
                let sent = body(most(*sent, windows.1), *copied);
                match filled {
                    None => pipe.client.request(next as u32, &requests[*request], sent, &mut pipe.to_server),
                    Some(path) => {
                        let path = path.as_bytes();
                        let values = Values { path, headers: &[path], ..Values::default() };
                        pipe.client.request_filled(next as u32, &template, values, sent, &mut pipe.to_server)
                    }
                }
                .unwrap();
                next += 1;
            }
            // Requests come in the order of their streams.
            let streams = pipe.run();
            waiting.extend(streams.into_iter().map(|stream| ((stream.id() - 1) / 2, stream)));
            if newest_first {
                waiting.reverse();
            }
            for (tag, stream) in waiting.drain(..) {
                let Exchange { answered, copied, .. } = exchanges[tag as usize];
                let size = most(answered, windows.0);
                let head = Prepared::response(200, &[("x", "y")], Some(size as u64)).unwrap();
                pipe.server.respond(stream, &head, body(size, copied), &mut pipe.to_client).unwrap();
            }
            pipe.run();
            seen.extend(pipe.take());
        }
        prop_assert_eq!(pipe.server.open(), 0);

        let mut asked = Vec::new();
        let mut responses: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        let mut ended = 0;
        for event in joined(seen) {
            match event {
                Seen::Request(text) => asked.push(text),
                Seen::Head(tag, text) => {
                    let size = most(exchanges[tag as usize].answered, windows.0);
                    prop_assert_eq!(text, format!("200 length {size} x: y, content-length: {size}"));
                    responses.insert(tag, Vec::new());
                }
                Seen::Data(tag, bytes) => responses.get_mut(&tag).unwrap().extend_from_slice(&bytes),
                Seen::End(_) => ended += 1,
                Seen::RequestData(_) | Seen::RequestEnd | Seen::SendStatus => {}
                other => prop_assert!(false, "{}", other),
            }
        }
        prop_assert_eq!(ended, exchanges.len());
        prop_assert_eq!(asked.len(), exchanges.len());
        for (tag, exchange) in exchanges.iter().enumerate() {
            let size = most(exchange.answered, windows.0);
            prop_assert!(responses[&(tag as u32)] == TEXT[..size], "the body of {}", tag);
            let length = most(exchange.sent, windows.1);
            let want = match &exchange.filled {
                Some(path) => format!("PUT https a {path} x-fill: {path}, content-length: {length}"),
                None => {
                    let n = exchange.request;
                    let long = "v".repeat(1500 - n);
                    format!("POST http a /{n} x-own: {n}, x-long: {long}, accept: */*, content-length: {length}")
                }
            };
            prop_assert_eq!(&asked[tag], &want);
        }
    }

    /// What another encoder writes, with any names and values, is read as it was.
    #[test]
    fn blocks_of_another_encoder(
        lists in vec(vec((vec(any::<u8>(), 0..20), vec(any::<u8>(), 0..200)), 0..10), 1..10),
    ) {
        let mut encoder = loona_hpack::Encoder::new();
        let mut ours = Blocks::new(4096);
        for list in &lists {
            for _ in 0..2 {
                let block = encoder.encode(list.iter().map(|(name, value)| (&name[..], &value[..])));
                let (headers, _) = ours.read(&block).expect("a block");
                prop_assert_eq!(&headers, list);
            }
        }
    }

    /// What our encoder writes another decoder reads, whatever the peer says about its table meanwhile.
    #[test]
    fn blocks_for_another_decoder(
        steps in vec((0..6usize, proptest::option::of(prop_oneof![0..300u32, Just(4096), any::<u32>()])), 1..40),
    ) {
        let requests: Vec<_> = (0..6).map(|n| {
            let own = n.to_string().repeat(n * 20 + 1);
            let headers = [("x-own", own.as_str()), ("user-agent", "weir"), ("accept", "*/*")];
            let path = format!("/{n}");
            let request = Request { method: "GET", scheme: "http", authority: "a", path: &path, headers: &headers };
            (Prepared::request(&request).unwrap(), own.clone(), path.clone())
        }).collect();
        let mut client = weir_wire::http2::Client::new(&Options::client());
        let mut out = Vec::new();
        let mut decoder = loona_hpack::Decoder::new();
        client.start(&mut out);
        for (tag, (which, limit)) in steps.into_iter().enumerate() {
            if let Some(limit) = limit {
                let frame = [&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 1][..], &limit.to_be_bytes()].concat();
                let mut input = &frame[..];
                while client.next(&mut input, &mut out).unwrap().is_some() {}
                decoder.set_max_allowed_table_size((limit as usize).max(4096));
            }
            out.clear();
            let (request, own, path) = &requests[which];
            client.request(tag as u32, request, Body::None, &mut out).unwrap();
            client.cancel(tag as u32, &mut Vec::new());
            let block = &out[9..];
            let headers = decoder.decode(block).expect("a block");
            let want = [
                (":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", path),
                ("x-own", own), ("user-agent", "weir"), ("accept", "*/*"),
            ];
            let want: Vec<_> = want.iter().map(|(n, v)| (n.as_bytes().to_vec(), v.as_bytes().to_vec())).collect();
            prop_assert_eq!(headers, want);
        }
    }
}

/// GET of http and /, all from the static table.
const GET: [u8; 3] = [0x82, 0x86, 0x84];

/// A header block of a request, as a peer may code it: literals that are inserted and others, and references to what was.
fn coded_block() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let text = |prefix: u8, name: &str, value: &str| {
        let mut out = vec![prefix, name.len() as u8];
        out.extend(name.bytes());
        out.push(value.len() as u8);
        out.extend(value.bytes());
        out
    };
    let header = prop_oneof![
        // Values of one length differ, so that blocks look alike.
        3 => (0..2usize, 0..3usize).prop_map(move |(name, value)| text(0x40, ["x-a", "x-b"][name], ["1", "2", "long"][value])),
        2 => (0..2usize, 0..3usize).prop_map(move |(name, value)| text(0, ["x-c", "x-d"][name], ["1", "2", "long"][value])),
        2 => (0..60u8).prop_map(|entry| vec![0x80 | (62 + entry)]),
        1 => (0..3u8).prop_map(|entry| vec![0x7f, entry, 1, b'v']),
    ];
    // Now and then so often that the table has nothing else.
    (prop_oneof![4 => 1..4usize, 1 => 100..300usize], vec(header, 0..4))
        .prop_map(|(times, headers)| (times, headers.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A half remembers the last block; its headers are those of a decoder that reads each.
    #[test]
    fn blocks_that_are_remembered_are_read_as_by_a_decoder_that_forgets(blocks in vec(coded_block(), 1..8)) {
        let mut forgetful = Blocks::new(4096);
        let mut pipe = Pipe::started(&Options::client(), &Options::server());
        let mut stream = 1;
        for (times, headers) in blocks {
            let block = [&GET[..], &[0x01, 1, b'a'], &headers].concat();
            for _ in 0..times {
                let opened = pipe.feed_server(&frame(HEADERS, ENDS, stream, &block)).pop();
                stream += 2;
                let seen = pipe.texts().join(" | ");
                let Some((read, _)) = forgetful.read(&block) else {
                    prop_assert!(seen.starts_with("error Compression"), "{}", seen);
                    return Ok(());
                };
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let fields: Vec<String> =
                    read[4..].iter().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect();
                let space = if fields.is_empty() { "" } else { " " };
                let want = format!("request GET http a /{space}{} | request ends", fields.join(", "));
                prop_assert_eq!(seen.trim_end(), want);
                // Its response makes room for the next.
                let response = Prepared::response(204, &[], None).unwrap();
                pipe.server.respond(opened.unwrap(), &response, Body::None, &mut pipe.to_client).unwrap();
                pipe.to_client.clear();
            }
        }
    }
}
