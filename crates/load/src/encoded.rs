//! Requests made ready: the bytes to send, or how to make them, and what a right answer is. It does not know connections.

use weir_model::load::{LoadProtocol, LoadSpec, RequestSpec};
use weir_wire::http1::encode;
use weir_wire::http2;

use crate::check::Expectation;
use crate::request_template::RequestTemplate;
use crate::template::Template;

/// Bodies from this size are sent from where they lie; smaller ones are cheaper to copy behind the head.
const BODY_IN_PLACE: usize = 4096;

/// Headers with fields that a request of HTTP/2 may have: a worker lists them without asking for memory.
pub(crate) const MAX_CHANGING: usize = 32;

/// One of the order's requests, ready.
#[derive(Debug)]
pub(crate) struct PreparedRequest {
    pub said: Encoded,
    /// It is a HEAD request.
    pub head: bool,
    pub check: Expectation,
}

/// What is sent.
#[derive(Debug)]
pub(crate) enum Encoded {
    /// HTTP/1.1, always the same: all bytes, or the head when `body` has the rest.
    Http1 { bytes: Vec<u8>, body: Option<&'static [u8]> },
    /// HTTP/1.1 with fields.
    Http1Template(RequestTemplate),
    /// HTTP/2, always the same.
    Http2 { head: http2::Prepared, body: &'static [u8] },
    /// HTTP/2 with fields, in the path or body, and in the headers at these places.
    Http2Template { form: RequestTemplate, head: http2::Prepared, changing: Vec<usize> },
}

impl PreparedRequest {
    /// Makes it.
    ///
    /// # Errors
    /// What cannot be sent, for people.
    pub(crate) fn new(spec: &LoadSpec, request: &RequestSpec) -> Result<PreparedRequest, String> {
        let said = match spec.protocol {
            LoadProtocol::Http1 { .. } => one(spec, request),
            LoadProtocol::Http2 { .. } => http2(spec, request),
        };
        let head = request.request.method == "HEAD";
        Ok(PreparedRequest { said: said?, head, check: Expectation::new(&request.expect, head) })
    }
}

/// The headers given, less those of these names, and less a right `Content-Length`, which the encoders write; a wrong one
/// is left in for them to refuse.
fn headers<'a>(request: &'a RequestSpec, but: &[&str]) -> Vec<(&'a str, &'a str)> {
    let length = request.request.body.len().to_string();
    let written = |name: &str, value: &str| name.eq_ignore_ascii_case("content-length") && value == length;
    let given = request.request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    given
        .filter(|(name, value)| !written(name, value) && !but.iter().any(|but| name.eq_ignore_ascii_case(but)))
        .collect()
}

/// The value of a header given.
fn given<'a>(request: &'a RequestSpec, name: &str) -> Option<&'a str> {
    let of_name = |(given, _): &&(String, String)| given.eq_ignore_ascii_case(name);
    request.request.headers.iter().find(of_name).map(|(_, value)| value.as_str())
}

fn one(spec: &LoadSpec, request: &RequestSpec) -> Result<Encoded, String> {
    let mut all: Vec<(&str, &str)> = Vec::new();
    if given(request, "host").is_none() {
        all.push(("Host", &spec.targets[request.target as usize].authority));
    }
    all.extend(headers(request, &[]));
    if spec.connection_close && given(request, "connection").is_none() {
        all.push(("Connection", "close"));
    }
    if request.template {
        return RequestTemplate::new(&request.request, &all).map(Encoded::Http1Template);
    }
    let body = &request.request.body;
    let mut bytes = Vec::new();
    encode::request(&mut bytes, &request.request.method, &request.request.path, &all, body)
        .map_err(|error| format!("the request cannot be sent: {error}"))?;
    if body.len() < BODY_IN_PLACE {
        return Ok(Encoded::Http1 { bytes, body: None });
    }
    bytes.truncate(bytes.len() - body.len());
    Ok(Encoded::Http1 { bytes, body: Some(keep(body)) })
}

fn http2(spec: &LoadSpec, request: &RequestSpec) -> Result<Encoded, String> {
    let authority = given(request, "host").unwrap_or(&spec.targets[request.target as usize].authority);
    let all = headers(request, &["host"]);
    let parts = http2::Request {
        method: &request.request.method,
        scheme: if spec.tls.is_some() { "https" } else { "http" },
        authority,
        path: &request.request.path,
        headers: &all,
    };
    let wrong = |error: http2::EncodeError| format!("the request cannot be sent: {error}");
    if !request.template {
        let head = http2::Prepared::request(&parts).map_err(wrong)?;
        return Ok(Encoded::Http2 { head, body: keep(&request.request.body) });
    }
    let is_text = |text: &str| Template::parse(text.as_bytes()).is_ok_and(|template| template.is_text());
    if !is_text(authority) {
        return Err("the Host of a request of HTTP/2 cannot have fields".into());
    }
    // A form is checked as one of HTTP/1.1. What stands behind the headers that are sent is not looked at here.
    let with_host: Vec<(&str, &str)> = all.iter().copied().chain([("Host", authority)]).collect();
    let form = RequestTemplate::new(&request.request, &with_host)?;
    let changing: Vec<usize> =
        all.iter().enumerate().filter(|(_, (_, value))| !is_text(value)).map(|(index, _)| index).collect();
    if changing.len() > MAX_CHANGING {
        return Err(format!("{} headers with fields; at most {MAX_CHANGING} would be right", changing.len()));
    }
    // What stands where the fields are does not matter, but has to be sendable.
    let steady: Vec<(&str, &str)> =
        all.iter().map(|(name, value)| (*name, if is_text(value) { *value } else { "x" })).collect();
    let path = if is_text(&request.request.path) { &request.request.path } else { "/" };
    let steady = http2::Request { path, headers: &steady, ..parts };
    let head = http2::Prepared::template(&steady, !is_text(&request.request.path), &changing).map_err(wrong)?;
    Ok(Encoded::Http2Template { form, head, changing })
}

/// The drivers take bodies that live for ever, since the kernel may read them after the worker has moved on. A load gives
/// away each of its bodies once.
fn keep(body: &[u8]) -> &'static [u8] {
    Vec::leak(body.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::spec;

    fn one(spec: &LoadSpec) -> (Vec<u8>, Option<&'static [u8]>) {
        match PreparedRequest::new(spec, &spec.requests[0]).unwrap().said {
            Encoded::Http1 { bytes, body } => (bytes, body),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_request_gets_what_it_lacks_and_nothing_twice() {
        let mut spec = spec();
        let text = |spec: &LoadSpec| String::from_utf8(one(spec).0).unwrap();
        assert_eq!(text(&spec), "GET /x?y=1 HTTP/1.1\r\nHost: origin.test\r\n\r\n");
        spec.requests[0].request.headers = vec![("HOST".into(), "other".into())];
        spec.connection_close = true;
        let with = text(&spec);
        assert!(with.contains("HOST: other\r\nConnection: close\r\n"), "{with}");
        assert!(!with.contains("origin.test"), "{with}");
    }

    #[test]
    fn large_bodies_are_not_copied() {
        let mut spec = spec();
        spec.requests[0].request.method = "POST".into();
        spec.requests[0].request.body = b"small".to_vec();
        let (bytes, body) = one(&spec);
        assert!(bytes.ends_with(b"\r\n\r\nsmall"));
        assert!(body.is_none());
        spec.requests[0].request.body = vec![7; 100_000];
        let (bytes, body) = one(&spec);
        assert!(bytes.ends_with(b"\r\n\r\n"));
        assert_eq!(body.map(<[u8]>::len), Some(100_000));
    }

    #[test]
    fn what_cannot_be_sent_is_said() {
        let mut spec = spec();
        spec.requests[0].request.method = "G T".into();
        let error = PreparedRequest::new(&spec, &spec.requests[0]).unwrap_err();
        assert!(error.contains("cannot be sent"), "{error}");
    }

    #[test]
    fn http_2_has_parts_that_change_and_parts_that_do_not() {
        let mut spec = spec();
        spec.protocol = LoadProtocol::Http2 { streams: 1 };
        let request = &mut spec.requests[0].request;
        request.headers = ["x-a", "Host", "x-b"].map(|name| (name.to_owned(), "{{seq}}".to_owned())).to_vec();
        request.headers[0].1 = "steady".into();
        request.headers[1].1 = "other.test".into();
        spec.requests[0].template = true;
        match PreparedRequest::new(&spec, &spec.requests[0]).unwrap().said {
            Encoded::Http2Template { changing, .. } => assert_eq!(changing, [1]),
            other => panic!("{other:?}"),
        }
        spec.requests[0].request.headers[1].1 = "{{seq}}.test".into();
        let error = PreparedRequest::new(&spec, &spec.requests[0]).unwrap_err();
        assert!(error.contains("Host"), "{error}");
    }
}
