//! The client half's rules, one line of a table each. Every input is read whole, and cut in every place.

use crate::http1_oracle as oracle;
use weir_wire::http1::{Limits, ParseError, ResponseEvent, ResponseParser};

/// Reads `bytes` as the responses to requests of which `heads` says which were HEAD, in every way of cutting in two and
/// byte by byte, and gives the events.
fn read(heads: &[bool], bytes: &str) -> String {
    let new = || {
        let mut parser = ResponseParser::new(Limits::default());
        heads.iter().for_each(|&head| parser.request_sent(head));
        parser
    };
    oracle::line_however_cut(new, bytes)
}

#[track_caller]
fn check(rows: &[(&str, &str)]) {
    for (bytes, wanted) in rows {
        assert_eq!(read(&[false], bytes), *wanted, "for {bytes:?}");
    }
}

/// A head with these headers, CR LF after each.
fn ok(headers: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\n")
}

#[track_caller]
fn check_headers(rows: &[(&str, &str)]) {
    for (headers, wanted) in rows {
        assert_eq!(read(&[false], &ok(headers)), *wanted, "for {headers:?}");
    }
}

#[test]
fn status_lines() {
    check(&[
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "200 Length(0) | keep | idle"),
        ("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "200 Length(0) | keep | idle"),
        ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200 Length(0) | keep | idle"),
        ("HTTP/1.1 299 Very \t fine \u{e9}\r\nContent-Length: 0\r\n\r\n", "299 Length(0) | keep | idle"),
        ("HTTP/1.1 999 \r\nContent-Length: 0\r\n\r\n", "999 Length(0) | keep | idle"),
        ("HTTP/1.1 099 \r\n\r\n", "BadStatus"),
        ("HTTP/1.1 20 OK\r\n\r\n", "BadStatus"),
        ("HTTP/1.1 2000 OK\r\n\r\n", "BadStatus"),
        ("HTTP/1.1 2x0 OK\r\n\r\n", "BadStatus"),
        ("HTTP/1.1  200 OK\r\n\r\n", "BadStatus"),
        ("HTTP/1.1 200\tOK\r\n\r\n", "BadStatus"),
        ("HTTP/1.1\r\n\r\n", "BadStartLine"),
        ("HTTP/1.1200 OK\r\n\r\n", "BadStartLine"),
        ("HTTP/1.2 200 OK\r\n\r\n", "UnsupportedVersion"),
        ("HTTP/2.0 200 OK\r\n\r\n", "UnsupportedVersion"),
        ("HTTP/0.9 200 OK\r\n\r\n", "UnsupportedVersion"),
        ("HTTP/11 200 OK\r\n\r\n", "BadStartLine"),
        ("http/1.1 200 OK\r\n\r\n", "BadStartLine"),
        ("HTTP 200 OK\r\n\r\n", "BadStartLine"),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", "BadStartLine"),
        (" HTTP/1.1 200 OK\r\n\r\n", "BadStartLine"),
        ("ICY 200 OK\r\n\r\n", "BadStartLine"),
        ("GET / HTTP/1.1\r\n\r\n", "BadStartLine"),
        ("HTTP/1.1 200 O\0K\r\n\r\n", "Nul"),
        ("HTTP/1.1 200 O\rK\r\n\r\n", "BareCr"),
        ("HTTP/1.1 200 O\u{1b}K\r\n\r\n", "ControlByte"),
        ("HTTP/1.1 200 OK\n\r\n", "BareLf"),
        // Other protocols are refused before the line ends.
        ("\u{15}\u{3}\u{3}", "BadStartLine"),
        ("HTTQ", "BadStartLine"),
        ("HTTP", "eof TruncatedHead"),
    ]);
}

#[test]
fn header_lines() {
    check_headers(&[
        ("Content-Length:0\r\n", "200 Length(0) | keep | idle"),
        ("content-LENGTH: \t 0 \t\r\n", "200 Length(0) | keep | idle"),
        ("Content-Length: 0\r\nX:\r\nY: \r\nZ: a\tb \u{e9}\r\n", "200 Length(0) | keep | idle"),
        ("Content-Length : 0\r\n", "SpaceBeforeColon"),
        ("Content-Length\t: 0\r\n", "SpaceBeforeColon"),
        ("A: b\r\n c\r\n", "ObsFold"),
        ("A: b\r\n\tc\r\n", "ObsFold"),
        (" A: b\r\n", "ObsFold"),
        ("A: b\r\n \r\n", "ObsFold"),
        (": b\r\n", "BadHeaderName"),
        ("A\r\n", "BadHeaderName"),
        ("A b\r\n", "BadHeaderName"),
        ("A b: c\r\n", "BadHeaderName"),
        ("A(b): c\r\n", "BadHeaderName"),
        ("\u{e9}: c\r\n", "BadHeaderName"),
        ("A\0: b\r\n", "Nul"),
        ("A: \0b\r\n", "Nul"),
        ("A: b\0\r\n", "Nul"),
        ("A\r: b\r\n", "BareCr"),
        ("A: b\rc\r\n", "BareCr"),
        ("A: b\r\r\n", "BareCr"),
        ("\rA: b\r\n", "BareCr"),
        ("A: b\u{7f}\r\n", "ControlByte"),
        ("A: \u{b}\r\n", "ControlByte"),
        ("A\u{7f}: b\r\n", "ControlByte"),
        ("A: b\n", "BareLf"),
        ("A: b\r\nC: d\n", "BareLf"),
        ("\n", "BareLf"),
    ]);
}

#[test]
fn content_lengths() {
    check_headers(&[
        ("Content-Length: 007\r\n", "200 Length(7) | eof TruncatedBody"),
        ("Content-Length: 18446744073709551615\r\n", "200 Length(18446744073709551615) | eof TruncatedBody"),
        ("Content-Length: 3\r\nA: b\r\ncontent-length: 03\r\n", "200 Length(3) | eof TruncatedBody"),
        ("Content-Length: 3, 3\r\n", "200 Length(3) | eof TruncatedBody"),
        ("Content-Length: 3\r\nContent-Length: 4\r\n", "DifferingContentLengths"),
        ("Content-Length: 3, 4\r\n", "DifferingContentLengths"),
        ("Content-Length: 18446744073709551616\r\n", "BadContentLength"),
        ("Content-Length: 30000000000000000000\r\n", "BadContentLength"),
        ("Content-Length: 184467440737095516150\r\n", "BadContentLength"),
        ("Content-Length: \r\n", "BadContentLength"),
        ("Content-Length: 3,\r\n", "BadContentLength"),
        ("Content-Length: +3\r\n", "BadContentLength"),
        ("Content-Length: -3\r\n", "BadContentLength"),
        ("Content-Length: 0x3\r\n", "BadContentLength"),
        ("Content-Length: 3 3\r\n", "BadContentLength"),
        ("Content-Length: 3.0\r\n", "BadContentLength"),
        ("Content-Length: \u{663}\r\n", "BadContentLength"),
    ]);
}

#[test]
fn transfer_encodings() {
    check_headers(&[
        ("Transfer-Encoding: chunked\r\n", "200 Chunked | eof TruncatedBody"),
        ("transfer-encoding:CHUNKED\r\n", "200 Chunked | eof TruncatedBody"),
        ("Transfer-Encoding: , chunked ,\r\n", "200 Chunked | eof TruncatedBody"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "BadTransferEncoding"),
        ("Transfer-Encoding: chunked, chunked\r\n", "BadTransferEncoding"),
        ("Transfer-Encoding: gzip, chunked\r\n", "BadTransferEncoding"),
        ("Transfer-Encoding: gzip\r\n", "BadTransferEncoding"),
        ("Transfer-Encoding: identity\r\n", "BadTransferEncoding"),
        ("Transfer-Encoding: xchunked\r\n", "BadTransferEncoding"),
        ("Transfer-Encoding: chunked;a=b\r\n", "BadTransferEncoding"),
        ("Transfer-Encoding:\r\n", "BadTransferEncoding"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "LengthAndTransferEncoding"),
        ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "LengthAndTransferEncoding"),
    ]);
    check(&[("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "TransferEncodingIn10")]);
}

#[test]
fn bodies() {
    let chunked = |body: &str| ok("Transfer-Encoding: chunked\r\n") + body;
    let rows = [
        (ok("Content-Length: 5\r\n") + "hello", "200 Length(5) | \"hello\" | keep | idle"),
        (ok("Content-Length: 5\r\n") + "hell", "200 Length(5) | \"hell\" | eof TruncatedBody"),
        (ok("Content-Length: 5\r\n") + "hello!", "200 Length(5) | \"hello\" | keep | Unsolicited"),
        (ok(""), "200 UntilClose | ended"),
        (ok("") + "HTTP/1.1 200 OK\r\n\r\n", "200 UntilClose | \"HTTP/1.1 200 OK\\r\\n\\r\\n\" | ended"),
        (chunked("0\r\n\r\n"), "200 Chunked | keep | idle"),
        (chunked("5\r\nhello\r\n0\r\n\r\n"), "200 Chunked | \"hello\" | keep | idle"),
        (chunked("2\r\nhe\r\n003;x=\"y\"\r\nllo\r\n00\r\n\r\n"), "200 Chunked | \"hello\" | keep | idle"),
        (chunked("2\r\n\r\n\r\n0\r\n\r\n"), "200 Chunked | \"\\r\\n\" | keep | idle"),
        (chunked("1\r\na\r\n0\r\nA: b\r\nContent-Length: 7\r\n\r\n"), "200 Chunked | \"a\" | keep | idle"),
        (chunked("0\r\nA b\r\n\r\n"), "200 Chunked | BadHeaderName"),
        (chunked("0\r\nA: b\r\n c\r\n\r\n"), "200 Chunked | ObsFold"),
        (chunked("0\r\n\n"), "200 Chunked | BareLf"),
        (chunked("\r\n"), "200 Chunked | BadChunkSize"),
        (chunked("5 \r\n"), "200 Chunked | BadChunkExtension"),
        (chunked("5\n"), "200 Chunked | BareLf"),
        (chunked("11111111111111111\r\n"), "200 Chunked | BadChunkSize"),
        (chunked("1\r\nab\r\n"), "200 Chunked | \"a\" | BadChunkEnd"),
        (chunked("1\r\na\rb"), "200 Chunked | \"a\" | BadChunkEnd"),
        (chunked("1\r\na\n"), "200 Chunked | \"a\" | BadChunkEnd"),
        (chunked("1\r\na\r\n"), "200 Chunked | \"a\" | eof TruncatedBody"),
        (chunked("1\r\na\r\n0\r\n"), "200 Chunked | \"a\" | eof TruncatedBody"),
        (chunked("1\r"), "200 Chunked | eof TruncatedBody"),
        (chunked("0\r\n\r\nx"), "200 Chunked | keep | Unsolicited"),
    ];
    for (bytes, wanted) in rows {
        assert_eq!(read(&[false], &bytes), wanted, "for {bytes:?}");
    }
}

#[test]
fn some_responses_have_no_body_whatever_their_headers_say() {
    for framing in ["", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
        let head = ok(framing);
        assert_eq!(read(&[true], &head), "200 None | keep | idle");
        for status in [204, 304] {
            let bytes = format!("HTTP/1.1 {status} X\r\n{framing}\r\n");
            assert_eq!(read(&[false], &bytes), format!("{status} None | keep | idle"));
        }
    }
    // Faulty framing is a fault there too.
    let both = ok("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n");
    assert_eq!(read(&[true], &both), "LengthAndTransferEncoding");
    // 205 has none to speak of, and says so itself (RFC 9110 section 15.3.6).
    assert_eq!(read(&[false], "HTTP/1.1 205 Reset\r\nContent-Length: 0\r\n\r\n"), "205 Length(0) | keep | idle");
}

#[test]
fn informational_responses_come_before_the_final_one() {
    check(&[
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\nConnection: close\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
            "info 100 | info 103 | 200 Length(1) | \"a\" | keep | idle",
        ),
        ("HTTP/1.1 199 X\r\nContent-Length: 9\r\n\r\n", "info 199 | eof ClosedBeforeResponse"),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", "SwitchingProtocols"),
    ]);
}

#[test]
fn keep_alive() {
    let rows = [
        ("1.1", "", "keep"),
        ("1.1", "Connection: keep-alive\r\n", "keep"),
        ("1.1", "Connection: close\r\n", "close"),
        ("1.1", "connection: CLOSE\r\n", "close"),
        ("1.1", "Connection: x,\tclose , y\r\n", "close"),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", "close"),
        ("1.1", "Connection: closed\r\n", "keep"),
        ("1.1", "Connection:\r\n", "keep"),
        ("1.0", "", "close"),
        ("1.0", "Connection: keep-alive\r\n", "keep"),
        ("1.0", "Connection: Keep-Alive, x\r\n", "keep"),
        ("1.0", "Connection: x\r\nConnection: keep-alive\r\n", "keep"),
        ("1.0", "Connection: keep-alive, close\r\n", "close"),
    ];
    for (version, headers, wanted) in rows {
        let bytes = format!("HTTP/{version} 204 X\r\n{headers}\r\n");
        let version = if version == "1.0" { "1.0 " } else { "" };
        assert_eq!(read(&[false], &bytes), format!("{version}204 None | {wanted} | idle"), "{headers:?}");
    }
}

#[test]
fn pipelined_responses_go_to_their_requests() {
    let a = ok("Content-Length: 1\r\n");
    assert_eq!(
        read(&[false, true, true, false], &format!("{a}x{a}{a}{a}y")),
        "200 Length(1) | \"x\" | keep | 200 None | keep | 200 None | keep | 200 Length(1) | \"y\" | keep | idle"
    );
    let close = ok("Content-Length: 1\r\nConnection: close\r\n");
    assert_eq!(read(&[false; 2], &format!("{close}x")), "200 Length(1) | \"x\" | close | eof ClosedBeforeResponse");
    assert_eq!(read(&[false; 2], &format!("{close}x{a}y")), "200 Length(1) | \"x\" | close | DataAfterClose");
    assert_eq!(read(&[false; 2], ""), "eof ClosedBeforeResponse");
    assert_eq!(read(&[false; 2], &format!("{a}x")), "200 Length(1) | \"x\" | keep | eof ClosedBeforeResponse");
    // Bytes that nobody asked for. HEAD's response ends with its head, so what follows is the next.
    for (bytes, wanted) in [("H", "Unsolicited"), ("\r\n", "Unsolicited"), ("", "idle")] {
        assert_eq!(read(&[], bytes), wanted, "{bytes:?}");
    }
    assert_eq!(read(&[true], &format!("{a}x")), "200 None | keep | Unsolicited");
}

#[test]
fn many_requests_in_flight_one_in_three_a_head() {
    let mut parser = ResponseParser::new(Limits::default());
    let mut sent = 0;
    let mut ended = 0;
    for round in 0..50 {
        for _ in 0..97 {
            parser.request_sent(sent % 3 == 0);
            sent += 1;
        }
        // One round is left in flight, and moves along.
        let due = if round == 0 { 0 } else { 97 };
        let bytes: String =
            (ended..ended + due).map(|n| ok("Content-Length: 2\r\n") + if n % 3 == 0 { "" } else { "ab" }).collect();
        let mut input = bytes.as_bytes();
        while let Some(event) = parser.next(&mut input).expect("good responses") {
            ended += u32::from(event == ResponseEvent::End { keep_alive: true });
        }
        assert_eq!(parser.in_flight(), sent - ended);
    }
    assert_eq!((sent, ended), (4850, 4753));
}

#[test]
fn a_connection_cut_off() {
    check(&[
        ("", "eof ClosedBeforeResponse"),
        ("H", "eof TruncatedHead"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "eof TruncatedHead"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "200 Length(5) | eof TruncatedBody"),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nabc", "1.0 200 UntilClose | \"abc\" | ended"),
    ]);
}

#[test]
fn a_response_whose_end_was_not_fetched_is_complete_at_the_close() {
    let mut parser = ResponseParser::new(Limits::default());
    parser.request_sent(false);
    let bytes = ok("Content-Length: 0\r\n");
    let mut input = bytes.as_bytes();
    assert!(matches!(parser.next(&mut input), Ok(Some(ResponseEvent::Head(_)))));
    assert_eq!(parser.on_eof(), Ok(true));
    assert_eq!(parser.in_flight(), 0);
    assert_eq!(parser.on_eof(), Ok(false));
}

#[test]
fn heads_give_their_headers_whole_or_cut() {
    let bytes = b"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 0\r\n\r\n";
    for at in 0..bytes.len() {
        let mut parser = ResponseParser::new(Limits::default());
        parser.request_sent(false);
        assert_eq!(parser.next(&mut &bytes[..at]), Ok(None));
        let mut rest = &bytes[at..];
        let Ok(Some(ResponseEvent::Head(head))) = parser.next(&mut rest) else { panic!("no head") };
        assert_eq!(head.raw, bytes);
        assert_eq!(weir_wire::http1::header(head.raw, "a"), Some(&b"b"[..]));
    }
}

#[test]
fn the_body_borrows_from_the_callers_bytes() {
    let bytes = ok("Content-Length: 5\r\n") + "hello";
    let mut parser = ResponseParser::new(Limits::default());
    parser.request_sent(false);
    let mut input = bytes.as_bytes();
    let Ok(Some(ResponseEvent::Head(head))) = parser.next(&mut input) else { panic!("no head") };
    assert_eq!(head.raw.as_ptr(), bytes.as_ptr());
    let Ok(Some(ResponseEvent::Body(body))) = parser.next(&mut input) else { panic!("no body") };
    assert_eq!(body.as_ptr_range().end, bytes.as_bytes().as_ptr_range().end);
}

#[test]
fn errors_say_what_happened() {
    assert_eq!(ParseError::ObsFold.to_string(), "a header is folded over two lines");
    assert_eq!(ParseError::Unsolicited.to_string(), "bytes came although no request was waiting for a response");
}
