//! Frames by hand, for tests of what peers must not do.
#![allow(dead_code, reason = "shared by several tests")]

use weir_wire::http2::{Options, PREFACE, Prepared, Request};

use super::pipe::{Pipe, Seen, joined};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const ENDS: u8 = END_STREAM | END_HEADERS;
pub const PADDED: u8 = 8;
pub const WITH_PRIORITY: u8 = 0x20;

/// A frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// A header block of literals.
pub fn block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in headers {
        out.push(0);
        for text in [name, value] {
            // Below 127 bytes here.
            out.push(text.len() as u8);
            out.extend(text.bytes());
        }
    }
    out
}

pub fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (id, value) in entries {
        payload.extend(id.to_be_bytes());
        payload.extend(value.to_be_bytes());
    }
    frame(SETTINGS, 0, 0, &payload)
}

/// What a client that has sent `requests` (tags from 0) sees of these frames, however they are cut; and what it sends.
#[track_caller]
pub fn client_sees(options: &Options, requests: &[&str], frames: &[Vec<u8>]) -> (String, Vec<String>) {
    however_cut(
        &frames.concat(),
        || {
            let mut pipe = Pipe::new(options, &Options::server());
            pipe.client.start(&mut pipe.to_server);
            pipe.feed_client(&settings(&[]));
            for (tag, method) in requests.iter().enumerate() {
                let request = Request { method, scheme: "http", authority: "a", path: "/", headers: &[] };
                let request = Prepared::request(&request).unwrap();
                pipe.client.request(tag as u32, &request, weir_wire::http2::Body::None, &mut pipe.to_server).unwrap();
            }
            pipe.to_server.clear();
            pipe.take();
            pipe
        },
        |pipe, piece| pipe.feed_client(piece),
        |pipe| std::mem::take(&mut pipe.to_server),
    )
}

/// What a server sees of these frames, which come behind preface and SETTINGS, however they are cut; and what it sends.
#[track_caller]
pub fn server_sees(options: &Options, frames: &[Vec<u8>]) -> (String, Vec<String>) {
    however_cut(
        &frames.concat(),
        || {
            let mut pipe = Pipe::new(&Options::client(), options);
            pipe.server.start(&mut pipe.to_client);
            pipe.feed_server(PREFACE);
            pipe.feed_server(&settings(&[]));
            pipe.to_client.clear();
            pipe.take();
            pipe
        },
        |pipe, piece| drop(pipe.feed_server(piece)),
        |pipe| std::mem::take(&mut pipe.to_client),
    )
}

#[track_caller]
fn however_cut(
    bytes: &[u8],
    new: impl Fn() -> Pipe,
    feed: impl Fn(&mut Pipe, &[u8]),
    sent: impl Fn(&mut Pipe) -> Vec<u8>,
) -> (String, Vec<String>) {
    let run = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut pipe = new();
        let mut seen = Vec::new();
        for piece in pieces {
            feed(&mut pipe, piece);
            seen.extend(pipe.take());
            if matches!(seen.last(), Some(Seen::Error(_))) {
                break;
            }
        }
        (line(&joined(seen)), sent(&mut pipe))
    };
    let whole = run(&mut std::iter::once(bytes));
    assert_eq!(run(&mut bytes.chunks(1)), whole, "byte by byte");
    if bytes.len() < 200 {
        for at in 1..bytes.len() {
            let (first, second) = bytes.split_at(at);
            assert_eq!(run(&mut [first, &[], second].into_iter()), whole, "cut at {at}");
        }
    }
    (whole.0, frames(&whole.1))
}

/// Events as one line.
pub fn line(seen: &[Seen]) -> String {
    seen.iter().map(Seen::to_string).collect::<Vec<_>>().join(" | ")
}

/// Frames that were sent, in a few words each.
#[track_caller]
pub fn frames(mut bytes: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let length = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize;
        let (kind, flags) = (bytes[3], bytes[4]);
        let stream = u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]);
        let (payload, rest) = bytes[9..].split_at(length);
        let number = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
        out.push(match kind {
            SETTINGS if flags == ACK => "settings ack".to_owned(),
            PING if flags == ACK => format!("ping ack {}", payload.escape_ascii()),
            RST_STREAM => format!("reset {stream} {}", weir_wire::http2::Code(number(0))),
            GOAWAY => format!("goaway {} {}", number(0), weir_wire::http2::Code(number(4))),
            WINDOW_UPDATE => format!("window {stream} {}", number(0)),
            HEADERS => format!("headers {stream} flags {flags:x}"),
            DATA => format!("data {stream} {length} flags {flags:x}"),
            CONTINUATION => format!("continuation {stream} flags {flags:x}"),
            _ => panic!("a frame of type {kind}"),
        });
        bytes = rest;
    }
    out
}
