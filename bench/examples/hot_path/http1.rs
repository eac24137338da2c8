//! HTTP/1.1: both halves, with what weir sends itself.

use std::hint::black_box;

use anyhow::bail;
use weir_wire::http1::{Limits, RequestEvent, RequestParser, ResponseEvent, ResponseParser, encode};

pub const RESPONSE_HEAD: &str =
    "HTTP/1.1 200 OK\r\nServer: weir-origin\r\nContent-Type: application/octet-stream\r\nContent-Length: 128\r\n\r\n";
pub const REQUEST: &[u8] = b"GET /bytes/128 HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n\r\n";

/// A response of 128 bytes that comes in one piece, from the connection's point of view.
pub fn parse_response(count: u64) -> anyhow::Result<()> {
    let mut bytes = RESPONSE_HEAD.as_bytes().to_vec();
    bytes.resize(bytes.len() + 128, b'x');
    let mut responses = ResponseParser::new(Limits::default());
    for _ in 0..count {
        responses.request_sent(false);
        let mut input = black_box(&bytes[..]);
        let mut ended = false;
        while let Some(event) = responses.next(&mut input)? {
            ended = matches!(event, ResponseEvent::End { .. });
            black_box(&event);
        }
        if !ended {
            bail!("the response did not end");
        }
    }
    Ok(())
}

/// The request that weir sends, as the origin reads it.
pub fn parse_request(count: u64) -> anyhow::Result<()> {
    let mut requests = RequestParser::new(Limits::default());
    for _ in 0..count {
        let mut input = black_box(REQUEST);
        let mut ended = false;
        while let Some(event) = requests.next(&mut input)? {
            ended = matches!(event, RequestEvent::End { .. });
            black_box(&event);
        }
        if !ended {
            bail!("the request did not end");
        }
    }
    Ok(())
}

/// A GET with one header. The engine does this once a load and then copies the bytes.
pub fn encode_request(count: u64) -> anyhow::Result<()> {
    let mut out = Vec::with_capacity(256);
    for _ in 0..count {
        out.clear();
        encode::request(&mut out, black_box("GET"), black_box("/bytes/128"), &[("Host", "127.0.0.1:9000")], b"")?;
        black_box(&out);
    }
    Ok(())
}
