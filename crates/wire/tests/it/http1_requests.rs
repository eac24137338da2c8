//! The server half's rules, one line of a table each. Every input is read whole, and cut in every place.

use crate::http1_oracle as oracle;
use weir_wire::http1::{ConnectionHeader, Limits, ParseError, RequestEvent, RequestParser, headers};

fn read(bytes: &str) -> String {
    oracle::line_however_cut(|| RequestParser::new(Limits::default()), bytes)
}

#[track_caller]
fn check(rows: &[(&str, &str)]) {
    for (bytes, wanted) in rows {
        assert_eq!(read(bytes), *wanted, "for {bytes:?}");
    }
}

#[track_caller]
fn check_lines(rows: &[(&str, &str)]) {
    for (line, wanted) in rows {
        assert_eq!(read(&format!("{line}\r\nHost: h\r\n\r\n")), *wanted, "for {line:?}");
    }
}

#[track_caller]
fn check_headers(rows: &[(&str, &str)]) {
    for (headers, wanted) in rows {
        assert_eq!(read(&format!("POST / HTTP/1.1\r\n{headers}\r\n")), *wanted, "for {headers:?}");
    }
}

#[test]
fn request_lines() {
    check_lines(&[
        ("GET / HTTP/1.1", "GET / None | keep | idle"),
        ("GET /a?b=c%20d HTTP/1.1", "GET /a?b=c%20d None | keep | idle"),
        ("get / HTTP/1.1", "get / None | keep | idle"),
        ("M-SEARCH!#$%&'*+.^_`|~9 / HTTP/1.1", "M-SEARCH!#$%&\\'*+.^_`|~9 / None | keep | idle"),
        ("GET http://h:80/x HTTP/1.1", "GET http://h:80/x None | keep | idle"),
        ("OPTIONS * HTTP/1.1", "OPTIONS * None | keep | idle"),
        ("CONNECT h:80 HTTP/1.1", "ConnectMethod"),
        ("CONNECT / HTTP/1.1", "ConnectMethod"),
        ("GET h:80 HTTP/1.1", "BadTarget"),
        ("GET x HTTP/1.1", "BadTarget"),
        ("GET  HTTP/1.1", "BadTarget"),
        ("GET /\u{e9} HTTP/1.1", "BadTarget"),
        ("GET /\0 HTTP/1.1", "BadTarget"),
        ("GET /\t HTTP/1.1", "BadTarget"),
        ("GET /\r HTTP/1.1", "BadTarget"),
        ("GET  / HTTP/1.1", "BadStartLine"),
        ("GET /  HTTP/1.1", "BadStartLine"),
        ("GET / HTTP/1.1 ", "BadStartLine"),
        ("GET\t/ HTTP/1.1", "BadStartLine"),
        (" GET / HTTP/1.1", "BadStartLine"),
        ("GET /", "BadStartLine"),
        ("GET", "BadStartLine"),
        ("G(T / HTTP/1.1", "BadStartLine"),
        ("GET / http/1.1", "BadStartLine"),
        ("GET / HTTP/1", "BadStartLine"),
        ("GET / HTTP/1.1x", "BadStartLine"),
        ("GET / HTTP/1.2", "UnsupportedVersion"),
        ("GET / HTTP/2.0", "UnsupportedVersion"),
        ("PRI * HTTP/2.0", "UnsupportedVersion"),
        ("HTTP/1.1 200 OK", "BadStartLine"),
    ]);
    check(&[
        ("GET / HTTP/1.1\nHost: h\r\n\r\n", "BareLf"),
        ("\u{16}\u{3}\u{1}", "BadStartLine"),
        ("(", "BadStartLine"),
    ]);
}

#[test]
fn one_empty_line_is_passed_over() {
    let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let seen = "GET / None | keep";
    check(&[
        (&format!("\r\n{get}\r\n{get}\r\n"), &format!("{seen} | {seen} | idle")),
        (&format!("\r\n\r\n{get}"), "BadStartLine"),
        (&format!("\n{get}"), "BadStartLine"),
        (&format!("\r{get}"), "BareCr"),
        ("\r", "idle"),
        ("\r\n", "idle"),
        ("\r\nG", "eof TruncatedHead"),
    ]);
}

#[test]
fn hosts() {
    check_headers(&[
        ("Host: a\r\n", "POST / None | keep | idle"),
        ("host:a.b:80\r\n", "POST / None | keep | idle"),
        ("Host: [::1]:80\r\n", "POST / None | keep | idle"),
        ("Host:\r\n", "POST / None | keep | idle"),
        ("", "MissingHost"),
        ("Hos: a\r\nHostt: a\r\n", "MissingHost"),
        ("Host: a\r\nHost: a\r\n", "RepeatedHost"),
        ("Host: a b\r\n", "BadHost"),
        ("Host: a/b\r\n", "BadHost"),
        ("Host: a, b\r\n", "BadHost"),
        ("Host: u@a\r\n", "BadHost"),
        ("Host: a:b\r\n", "BadHost"),
    ]);
    check(&[
        ("GET / HTTP/1.0\r\n\r\n", "1.0 GET / None | close | idle"),
        ("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", "RepeatedHost"),
    ]);
}

#[test]
fn header_lines_and_framing() {
    check_headers(&[
        ("Host: h\r\nContent-Length: 0\r\n", "POST / Length(0) | keep | idle"),
        ("Host: h\r\nContent-Length: 2\r\n", "POST / Length(2) | eof TruncatedBody"),
        ("Host: h\r\nContent-Length: 2\r\nContent-Length: 2\r\n", "POST / Length(2) | eof TruncatedBody"),
        ("Host: h\r\nContent-Length: 2\r\nContent-Length: 3\r\n", "DifferingContentLengths"),
        ("Host: h\r\nContent-Length: two\r\n", "BadContentLength"),
        ("Host: h\r\nTransfer-Encoding: chunked\r\n", "POST / Chunked | eof TruncatedBody"),
        ("Host: h\r\nTransfer-Encoding: chunked, gzip\r\n", "BadTransferEncoding"),
        ("Host: h\r\nTransfer-Encoding: gzip\r\n", "BadTransferEncoding"),
        ("Host: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n", "LengthAndTransferEncoding"),
        ("Host: h\r\nA : b\r\n", "SpaceBeforeColon"),
        ("Host: h\r\n b\r\n", "ObsFold"),
        ("Host: h\r\nA: \0\r\n", "Nul"),
        ("Host: h\r\nA: b\rc\r\n", "BareCr"),
        ("Host: h\r\nA: b\n", "BareLf"),
        ("Host: h\r\nA: \u{1}\r\n", "ControlByte"),
        ("Host: h\r\nA b\r\n", "BadHeaderName"),
    ]);
    check(&[("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "TransferEncodingIn10")]);
}

#[test]
fn bodies_and_pipelines() {
    let post = |headers: &str, body: &str| format!("POST /p HTTP/1.1\r\nHost: h\r\n{headers}\r\n{body}");
    let get = "GET /g HTTP/1.1\r\nHost: h\r\n\r\n";
    check(&[
        (
            &(get.to_owned()
                + &post("Content-Length: 3\r\n", "abc")
                + get
                + &post("Transfer-Encoding: chunked\r\n", "1\r\na\r\n2;x\r\nbc\r\n0\r\nT: u\r\n\r\n")
                + get),
            "GET /g None | keep | POST /p Length(3) | \"abc\" | keep | GET /g None | keep | \
             POST /p Chunked | \"abc\" | keep | GET /g None | keep | idle",
        ),
        (&post("Content-Length: 3\r\n", "ab"), "POST /p Length(3) | \"ab\" | eof TruncatedBody"),
        (&post("Transfer-Encoding: chunked\r\n", "x"), "POST /p Chunked | eof TruncatedBody"),
        (&post("Transfer-Encoding: chunked\r\n", "x\r\n"), "POST /p Chunked | BadChunkSize"),
        (&post("Connection: close\r\n", ""), "POST /p None | close | idle"),
        (&(post("Connection: close\r\n", "") + get), "POST /p None | close | DataAfterClose"),
        ("", "idle"),
        ("GET / HT", "eof TruncatedHead"),
        ("GET / HTTP/1.1\r\nHost: h\r\n", "eof TruncatedHead"),
    ]);
}

/// The head's fields for a POST with these headers.
fn fields(version: &str, headers: &str) -> (bool, ConnectionHeader, bool) {
    let bytes = format!("POST / HTTP/{version}\r\nHost: h\r\n{headers}\r\nabc");
    let mut requests = RequestParser::new(Limits::default());
    let mut input = bytes.as_bytes();
    let Ok(Some(RequestEvent::Head(head))) = requests.next(&mut input) else { panic!("no head: {bytes}") };
    let (expects, connection) = (head.expects_continue, head.connection);
    loop {
        match requests.next(&mut input).expect("a good request") {
            Some(RequestEvent::End { keep_alive }) => return (expects, connection, keep_alive),
            Some(_) => {}
            None => panic!("no end"),
        }
    }
}

#[test]
fn connection_headers_and_keep_alive() {
    use ConnectionHeader::{Close, KeepAlive, None, Other};
    let rows = [
        ("1.1", "", None, true),
        ("1.1", "Connection: keep-alive\r\n", KeepAlive, true),
        ("1.1", "Connection: close\r\n", Close, false),
        ("1.1", "Connection: keep-alive, Close\r\n", Close, false),
        ("1.1", "Connection: upgrade\r\n", Other, true),
        ("1.1", "Connection:\r\n", Other, true),
        ("1.1", "Connection: TE\r\nConnection: KEEP-ALIVE\r\n", KeepAlive, true),
        ("1.0", "", None, false),
        ("1.0", "Connection: Keep-Alive\r\n", KeepAlive, true),
        ("1.0", "Connection: upgrade\r\n", Other, false),
        ("1.0", "Connection: close\r\n", Close, false),
    ];
    for (version, headers, connection, keep_alive) in rows {
        let headers = format!("{headers}Content-Length: 3\r\n");
        assert_eq!(fields(version, &headers), (false, connection, keep_alive), "{version} {headers:?}");
    }
}

#[test]
fn expectations() {
    let expects = |version, headers| fields(version, headers).0;
    assert!(expects("1.1", "Expect: 100-continue\r\nContent-Length: 3\r\n"));
    assert!(expects("1.1", "expect: 100-Continue\r\nContent-Length: 3\r\n"));
    assert!(!expects("1.1", "Expect: 200-ok\r\nContent-Length: 3\r\n"));
    assert!(!expects("1.0", "Expect: 100-continue\r\nContent-Length: 3\r\nConnection: keep-alive\r\n"));
    check_headers(&[
        ("Host: h\r\nExpect: 100-continue\r\n", "POST / None | keep | idle"),
        ("Host: h\r\nExpect: 100-continue\r\nContent-Length: 0\r\n", "POST / Length(0) | keep | idle"),
        (
            "Host: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n",
            "POST / Chunked expects | eof TruncatedBody",
        ),
    ]);
}

#[test]
fn heads_give_their_parts_whole_or_cut() {
    let bytes = b"\r\nGET /x HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n";
    for at in 0..bytes.len() {
        let mut requests = RequestParser::new(Limits::default());
        assert_eq!(requests.next(&mut &bytes[..at]), Ok(None));
        assert_eq!(requests.is_idle(), at <= 2, "at {at}");
        let mut rest = &bytes[at..];
        let Ok(Some(RequestEvent::Head(head))) = requests.next(&mut rest) else { panic!("no head") };
        assert_eq!((head.method, head.target, head.raw), (&b"GET"[..], &b"/x"[..], &bytes[2..]));
        let names: Vec<_> = headers(head.raw).collect();
        assert_eq!(names, [(&b"Host"[..], &b"h"[..]), (b"A", b"b")]);
        assert!(!requests.is_idle());
        assert_eq!(requests.next(&mut rest), Ok(Some(RequestEvent::End { keep_alive: true })));
        assert!(requests.is_idle());
    }
}

#[test]
fn errors_have_a_status_to_answer_with() {
    assert_eq!(ParseError::HeadTooLarge(1).status(), 431);
    assert_eq!(ParseError::UnsupportedVersion.status(), 505);
    assert_eq!(ParseError::BadTransferEncoding.status(), 501);
    assert_eq!(ParseError::MissingHost.status(), 400);
}
