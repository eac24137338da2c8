//! Limits hold to the byte: what is exactly as large is taken, and a byte more is refused, whole or cut.

use crate::http1_oracle as oracle;
use weir_wire::http1::{Limits, RequestParser, ResponseParser};

fn response(limits: Limits, bytes: &str) -> String {
    let new = || {
        let mut parser = ResponseParser::new(limits);
        parser.request_sent(false);
        parser
    };
    oracle::line_in_pieces(new, bytes)
}

fn request(limits: Limits, bytes: &str) -> String {
    oracle::line_in_pieces(|| RequestParser::new(limits), bytes)
}

#[test]
fn the_default_limits() {
    let Limits { head_bytes, headers, chunk_line_bytes, trailer_bytes } = Limits::default();
    assert_eq!((head_bytes, headers, chunk_line_bytes, trailer_bytes), (65_536, 128, 256, 8192));
}

#[test]
fn heads() {
    // The line between the two is in a header, in the empty line's CR, in its LF, and after it.
    let bytes = "HTTP/1.1 204 X\r\nA: bc\r\n\r\n";
    for head_bytes in 0..bytes.len() + 3 {
        let limits = Limits { head_bytes: head_bytes as u32, ..Limits::default() };
        let too_large = format!("HeadTooLarge({head_bytes})");
        let wanted = if bytes.len() <= head_bytes { "204 None | keep | idle" } else { &too_large };
        assert_eq!(response(limits, bytes), wanted, "{head_bytes}");
    }
    let bytes = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    for head_bytes in 0..bytes.len() + 3 {
        let limits = Limits { head_bytes: head_bytes as u32, ..Limits::default() };
        let too_large = format!("HeadTooLarge({head_bytes})");
        let wanted = if bytes.len() <= head_bytes { "GET / None | keep | idle" } else { &too_large };
        assert_eq!(request(limits, bytes), wanted, "{head_bytes}");
        // An empty line before it is no part of it.
        assert_eq!(request(limits, &format!("\r\n{bytes}")), wanted, "{head_bytes}");
    }
}

#[test]
fn heads_of_the_default_size() {
    let empty = "HTTP/1.1 204 X\r\nA: \r\n\r\n".len();
    for (size, wanted) in [(65_536, "204 None | keep | idle"), (65_537, "HeadTooLarge(65536)")] {
        let bytes = format!("HTTP/1.1 204 X\r\nA: {}\r\n\r\n", "b".repeat(size - empty));
        assert_eq!(bytes.len(), size);
        assert_eq!(response(Limits::default(), &bytes), wanted);
    }
    // No need to wait for the rest.
    assert_eq!(response(Limits::default(), &("HTTP/1.1 204 ".to_owned() + &"x".repeat(65_600))), "HeadTooLarge(65536)");
}

#[test]
fn each_head_has_its_own_limit() {
    let info = "HTTP/1.1 100 X\r\n\r\n";
    let limits = Limits { head_bytes: 24, headers: 1, ..Limits::default() };
    let bytes = format!("{info}{info}HTTP/1.1 204 X\r\nA: b\r\n\r\n");
    assert_eq!(response(limits, &bytes), "info 100 | info 100 | 204 None | keep | idle");
}

#[test]
fn numbers_of_headers() {
    for (limit, sent, good) in
        [(0, 0, true), (0, 1, false), (3, 3, true), (3, 4, false), (128, 128, true), (128, 129, false)]
    {
        let limits = Limits { headers: limit, ..Limits::default() };
        let bytes = format!("HTTP/1.1 204 X\r\n{}\r\n", "A: b\r\n".repeat(sent));
        let too_many = format!("TooManyHeaders({limit})");
        let wanted = if good { "204 None | keep | idle" } else { &too_many };
        assert_eq!(response(limits, &bytes), wanted, "{sent} of {limit}");
    }
    let limits = Limits { headers: 1, ..Limits::default() };
    assert_eq!(request(limits, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"), "GET / None | keep | idle");
    assert_eq!(request(limits, "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n"), "TooManyHeaders(1)");
}

#[test]
fn chunk_size_lines() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    // Eight bytes with the line end.
    let limits = Limits { chunk_line_bytes: 8, ..Limits::default() };
    let good = "200 Chunked | \"a\" | keep | idle";
    assert_eq!(response(limits, &format!("{head}000001\r\na\r\n0\r\n\r\n")), good);
    assert_eq!(response(limits, &format!("{head}1;abcd\r\na\r\n0\r\n\r\n")), good);
    assert_eq!(response(limits, &format!("{head}0000001\r\na\r\n0\r\n\r\n")), "200 Chunked | ChunkLineTooLong(8)");
    assert_eq!(response(limits, &format!("{head}1;abcde\r\n")), "200 Chunked | ChunkLineTooLong(8)");
    assert_eq!(response(limits, &format!("{head}1;abcdef")), "200 Chunked | ChunkLineTooLong(8)");
    assert_eq!(response(limits, &format!("{head}1;abcde")), "200 Chunked | eof TruncatedBody");
    // The last chunk's line too.
    assert_eq!(response(limits, &format!("{head}0;abcd\r\n\r\n")), "200 Chunked | keep | idle");
    assert_eq!(response(limits, &format!("{head}0;abcde\r\n\r\n")), "200 Chunked | ChunkLineTooLong(8)");
}

#[test]
fn trailers() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
    // "A: b", "C: d" and the empty line, each with its line end, are 14 bytes.
    for trailer_bytes in 0..18 {
        let limits = Limits { trailer_bytes, ..Limits::default() };
        let too_large = format!("200 Chunked | TrailersTooLarge({trailer_bytes})");
        let wanted = if trailer_bytes >= 14 { "200 Chunked | keep | idle" } else { &too_large };
        assert_eq!(response(limits, &format!("{head}A: b\r\nC: d\r\n\r\n")), wanted, "{trailer_bytes}");
    }
}
