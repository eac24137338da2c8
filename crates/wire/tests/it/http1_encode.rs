//! What is written, byte for byte, and what is refused.

use weir_wire::http1::encode::{self, BodyFraming, EncodeError, Persistence};

fn written(write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>) -> Result<String, EncodeError> {
    let mut out = b"before ".to_vec();
    let result = write(&mut out);
    let text = String::from_utf8(out).expect("text");
    let text = text.strip_prefix("before ").expect("what was there stays").to_owned();
    assert!(result.is_ok() || text.is_empty(), "nothing is written on an error");
    result.map(|()| text)
}

fn request(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<String, EncodeError> {
    written(|out| encode::request(out, method, target, headers, body))
}

fn response(
    status: u16,
    headers: &[(&str, &str)],
    framing: BodyFraming,
    persistence: Persistence,
) -> Result<String, EncodeError> {
    written(|out| encode::response_head(out, status, headers, framing, persistence))
}

const HOST: (&str, &str) = ("Host", "h:80");

#[test]
fn requests() {
    assert_eq!(
        request("GET", "/a?b", &[HOST, ("X", "")], b"").as_deref(),
        Ok("GET /a?b HTTP/1.1\r\nHost: h:80\r\nX: \r\n\r\n")
    );
    assert_eq!(
        request("POST", "/", &[HOST], b"hello").as_deref(),
        Ok("POST / HTTP/1.1\r\nHost: h:80\r\nContent-Length: 5\r\n\r\nhello")
    );
    assert_eq!(
        request("DELETE", "/", &[HOST], b"x").as_deref(),
        Ok("DELETE / HTTP/1.1\r\nHost: h:80\r\nContent-Length: 1\r\n\r\nx")
    );
    for (method, announced) in [("POST", true), ("PUT", true), ("PATCH", true), ("GET", false), ("DELETE", false)] {
        let text = request(method, "/", &[HOST], b"").expect("a good request");
        assert_eq!(text.contains("Content-Length: 0\r\n"), announced, "{method}");
        assert_eq!(text.contains("Content-Length"), announced, "{method}");
    }
    let owned = [("Host".to_owned(), "h".to_owned())];
    assert_eq!(encode::request(&mut Vec::new(), "GET", "/", &owned, b""), Ok(()));
}

#[test]
fn requests_that_cannot_be_sent() {
    for method in ["", "G T", "GET\r\n", "G\0", "G:T", "CONNECT", "G\u{e9}T"] {
        assert_eq!(request(method, "/", &[HOST], b""), Err(EncodeError::BadMethod(method.into())));
    }
    for target in ["", "x", "/a b", "/\r\nX: y", "/\n", "/\0", "/\u{e9}", "h:80"] {
        assert_eq!(request("GET", target, &[HOST], b""), Err(EncodeError::BadTarget(target.into())));
    }
    for name in ["", "A B", "A:", "A\r\nB", "A\0", "\u{e9}"] {
        assert_eq!(request("GET", "/", &[HOST, (name, "x")], b""), Err(EncodeError::BadHeaderName(name.into())));
    }
    for value in ["a\r\nB: c", "a\rb", "a\nb", "a\0", "\u{1b}", "\u{7f}", " a", "a ", "\ta", " "] {
        assert_eq!(
            request("GET", "/", &[HOST, ("X", value)], b""),
            Err(EncodeError::BadHeaderValue("X".into())),
            "{value:?}"
        );
    }
    for name in ["content-length", "Transfer-Encoding"] {
        assert_eq!(request("GET", "/", &[HOST, (name, "5")], b""), Err(EncodeError::FramingHeader(name.into())));
    }
    assert_eq!(request("GET", "/", &[("X-Host", "h")], b""), Err(EncodeError::MissingHost));
    assert_eq!(request("GET", "/", &[HOST, ("host", "i")], b""), Err(EncodeError::BadHost("i".into())));
    assert_eq!(request("GET", "/", &[("Host", "a b")], b""), Err(EncodeError::BadHost("a b".into())));
}

#[test]
fn responses() {
    use BodyFraming::{Chunked, Length, None};
    use Persistence::{Close, Implied, KeepAlive};
    assert_eq!(
        response(200, &[("Server", "weir"), ("A", "b")], Length(u64::MAX), Implied).as_deref(),
        Ok("HTTP/1.1 200 OK\r\nServer: weir\r\nA: b\r\nContent-Length: 18446744073709551615\r\n\r\n")
    );
    assert_eq!(
        response(200, &[], Length(0), Close).as_deref(),
        Ok("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    );
    assert_eq!(
        response(404, &[], Chunked, KeepAlive).as_deref(),
        Ok("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n")
    );
    assert_eq!(response(999, &[], None, Implied).as_deref(), Ok("HTTP/1.1 999 \r\n\r\n"));
    assert_eq!(
        response(304, &[], Length(7), Implied).as_deref(),
        Ok("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n")
    );
    assert_eq!(response(100, &[], None, Implied).expect("good").as_bytes(), encode::CONTINUE);
}

#[test]
fn answers_that_cannot_be_sent() {
    use BodyFraming::{Chunked, Length, None};
    let plain = |status, framing| response(status, &[], framing, Persistence::Implied);
    for status in [0, 99, 1000] {
        assert_eq!(plain(status, None), Err(EncodeError::BadStatus(status)));
    }
    for status in [100, 199, 204] {
        assert_eq!(plain(status, Length(0)), Err(EncodeError::NoBodyAllowed(status)));
        assert_eq!(plain(status, Chunked), Err(EncodeError::NoBodyAllowed(status)));
    }
    let with = |name, value| response(200, &[(name, value)], None, Persistence::Implied);
    assert_eq!(with("A B", "c"), Err(EncodeError::BadHeaderName("A B".into())));
    assert_eq!(with("A", "b\r\nC: d"), Err(EncodeError::BadHeaderValue("A".into())));
    assert_eq!(with("CONTENT-LENGTH", "1"), Err(EncodeError::FramingHeader("CONTENT-LENGTH".into())));
}

#[test]
fn chunks() {
    for len in [1, 9, 10, 15, 16, 255, 256, 4096, 0xabcdef, usize::MAX] {
        let mut out = Vec::new();
        encode::chunk_head(&mut out, len);
        assert_eq!(String::from_utf8(out).expect("text"), format!("{len:x}\r\n"));
    }
    let mut out = Vec::new();
    encode::chunk(&mut out, b"");
    encode::chunk(&mut out, b"hello world, hello");
    out.extend_from_slice(encode::LAST_CHUNK);
    assert_eq!(out, b"12\r\nhello world, hello\r\n0\r\n\r\n");
}

#[test]
fn reasons() {
    assert_eq!(encode::reason(200), "OK");
    assert_eq!(encode::reason(503), "Service Unavailable");
    assert_eq!(encode::reason(299), "");
}
