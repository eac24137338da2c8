//! Verification before measuring: does the product answer rightly? The trial and `weir products test` call it.
//!
//! The reference is the origin's own response to the same request, not only the suite's expectation. Requests use the workload's
//! protocol. Over TLS, the peer must have the run's certificate and agree on the protocol by ALPN. A key-value server is asked
//! to keep, return and remove values.

use std::time::Duration;

use weir_model::gateway::{Filter, HEADER_ADDED, HEADER_REMOVED};
use weir_model::keyvalue::KeyValue;
use weir_model::suite::{Expect, Protocol, Request, Workload};
use weir_wire::request_id::{OWN, RequestId};

use crate::client::{Endpoint, KeyValueClient, RequestError, Response};
use crate::http::Http;

/// Checks the origin's own response against what the workload expects, and returns the expectation completed with
/// status, size and body hash: what every response of the load is then held to.
///
/// # Errors
/// What was found and what would be right.
pub fn reference(workload: &Workload, origin: &Http) -> Result<(Expect, Response), String> {
    let response = origin.send(&request_at_origin(workload)).map_err(|e| format!("the origin did not answer: {e}"))?;
    let expect = &workload.expect;
    let (status, size, hash) = (response.status, response.size(), response.hash());
    let differences = [
        expect.status.filter(|s| *s != status).map(|s| format!("status {status}, the suite expects {s}")),
        expect.size.filter(|s| *s != size).map(|s| format!("{size} bytes, the suite expects {s}")),
        expect.hash.filter(|h| *h != hash).map(|h| format!("a body of hash {hash:016x}, the suite expects {h:016x}")),
    ];
    if let Some(difference) = differences.into_iter().flatten().next() {
        return Err(format!("the origin answers {} with {difference}", workload.request.path));
    }
    let complete = match BodyRule::of(workload) {
        BodyRule::Any => Expect { status: Some(status), any_body: true, ..Expect::default() },
        BodyRule::SameSize => Expect { status: Some(status), size: Some(size), ..Expect::default() },
        BodyRule::Same => Expect { status: Some(status), size: Some(size), hash: Some(hash), ..Expect::default() },
    };
    Ok((complete, response))
}

/// The workload's request as the origin gets it.
fn request_at_origin(workload: &Workload) -> Request {
    let mut request = workload.sent_request(None);
    if let Some(rest) = workload.gateway.rewritten().and_then(|beginning| request.path.strip_prefix(beginning)) {
        request.path = rest.to_owned();
    }
    request
}

/// Checks that the product does what the workload's filter asks for: `refused` is a request that it has to refuse. Keys that may pass
/// are in the workload's request.
///
/// # Errors
/// What was found and what would be right.
pub fn filter(
    workload: &Workload,
    refused: Option<&Request>,
    product: &Http,
    reference: &Response,
) -> Result<(), String> {
    let sent =
        |request: &Request| product.send(request).map_err(|e| format!("a request through the product failed: {e}"));
    if let (Some(request), Some(refusal)) = (refused, workload.gateway.filter.and_then(Filter::refusal)) {
        let status = sent(request)?.status;
        if status != refusal {
            return Err(format!(
                "it answered a request that it has to refuse with {status}, and {refusal} would be right"
            ));
        }
    }
    if let (Some(Filter::Compression), Some(coding)) = (workload.gateway.filter, workload.accept_encoding) {
        let mut request = workload.sent_request(None);
        request.headers.push(("accept-encoding".to_owned(), coding.as_str().to_owned()));
        let response = sent(&request)?;
        let found = response.header("content-encoding").unwrap_or("none");
        if found != coding.as_str() {
            return Err(format!("the content coding of its response is {found}\n  expected: {}", coding.as_str()));
        }
    }
    if workload.gateway.filter == Some(Filter::Headers) {
        let (added, value, removed) = (HEADER_ADDED.0, HEADER_ADDED.1, HEADER_REMOVED);
        if reference.header(removed).is_none() {
            return Err(format!("the origin's response has no {removed}\n  expected: origin_headers with it"));
        }
        let response = sent(&workload.sent_request(None))?;
        if response.header(removed).is_some() || response.header(added) != Some(value) {
            return Err(format!("its response has {removed}, or no \"{added}: {value}\""));
        }
        let at_origin = sent(&Request::get("/headers"))?;
        let text = String::from_utf8_lossy(&at_origin.body).to_ascii_lowercase();
        if !text.contains(&format!("{added}: {value}")) {
            return Err(format!("a request reached the origin without \"{added}: {value}\""));
        }
    }
    Ok(())
}

/// What the bodies of two responses have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyRule {
    /// They are the same.
    Same,
    /// They are as long: each message of a stream has the time at which it was sent.
    SameSize,
    /// Both have one.
    Any,
}

impl BodyRule {
    fn of(workload: &Workload) -> BodyRule {
        match (workload.expect.any_body, workload.stream) {
            (true, _) => BodyRule::Any,
            (false, Some(_)) => BodyRule::SameSize,
            (false, None) => BodyRule::Same,
        }
    }
}

/// How many requests verification sends through a product. More than one, because a product may answer the first request on a
/// connection rightly and the second wrongly.
pub const REQUESTS: usize = 3;

/// Checks the product's responses against the origin's.
///
/// # Errors
/// What was found and what would be right.
pub fn product(workload: &Workload, product: &Http, reference: &Response) -> Result<(), String> {
    let version = workload.protocol.version().unwrap_or_default();
    // A response of the product's own has its own headers.
    let kept: &[&str] = if workload.by_product { &[] } else { &KEPT_HEADERS };
    for nth in 1..=REQUESTS {
        let response = product
            .send(&named(workload, nth))
            .map_err(|e| format!("request {nth} of {REQUESTS} through the product failed: {e}"))?;
        compare(&response, reference, version, kept, BodyRule::of(workload))
            .map_err(|e| format!("answer {nth} of {REQUESTS} through the product: {e}"))?;
    }
    Ok(())
}

/// The workload's request with an ID of weir's own, as those of the load have one. A cache that keeps a response to it gives that ID to
/// the load's requests.
fn named(workload: &Workload, nth: usize) -> Request {
    let (load, thread) = OWN;
    let name = RequestId::new(load, thread, nth as u64).text();
    let header = workload.request_id_header().map(|header| (header, String::from_utf8_lossy(&name).into_owned()));
    let mut request = workload.sent_request(None);
    request.headers.extend(header);
    request
}

/// Checks that a key-value server keeps values of the workload's largest size and time to live, returns them unchanged, and
/// removes them; with replicas, that so many have them. Several keys, over one connection; none is left.
///
/// # Errors
/// What was found and what would be right.
pub fn keyvalue(workload: &KeyValue, server: &Endpoint, protocol: Protocol, timeout: Duration) -> Result<(), String> {
    let failed = |nth: usize, what: &str, e: RequestError| format!("{what} of key {nth} of {REQUESTS} failed: {e}");
    let mut client = KeyValueClient::open(server, protocol, timeout).map_err(|e| format!("no connection: {e}"))?;
    let ttl = workload.ttl.unwrap_or_default();
    let size = workload.value.range().1;
    for nth in 1..=REQUESTS {
        let key = format!("weir-verify-{nth}");
        let key = key.as_bytes();
        let value = unlike_text(nth as u64, size);
        client.set(key, &value, ttl).map_err(|e| failed(nth, "set", e))?;
        if workload.replicas > 0 {
            let reached = client.replicas_reached(workload.replicas).map_err(|e| failed(nth, "replication", e))?;
            if let Some(fewer) = reached.filter(|reached| *reached < workload.replicas) {
                return Err(format!("{fewer} replicas have the write of key {nth}, not {}", workload.replicas));
            }
        }
        match client.get(key, ttl).map_err(|e| failed(nth, "get", e))? {
            Some(found) if found == value => {}
            Some(found) => return Err(format!("{} bytes came back, and not the {size} that were set", found.len())),
            None => return Err(format!("a key that was just set is absent (key {nth} of {REQUESTS})")),
        }
        client.destroy(key).map_err(|e| failed(nth, "destroy", e))?;
        if client.get(key, ttl).map_err(|e| failed(nth, "get", e))?.is_some() {
            return Err(format!("a key that was just destroyed is there (key {nth} of {REQUESTS})"));
        }
    }
    Ok(())
}

/// Bytes of every kind, line ends and zeros among them, that no compression makes shorter.
pub fn unlike_text(seed: u64, size: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..size).map(next).collect()
}

/// Headers that must come through unchanged when the origin sends them.
const KEPT_HEADERS: [&str; 2] = ["content-type", "content-encoding"];

fn compare(
    response: &Response,
    reference: &Response,
    version: &str,
    kept: &[&str],
    body: BodyRule,
) -> Result<(), String> {
    if response.version != version {
        return Err(format!("its version is {}, {version} would be right", response.version));
    }
    if response.status != reference.status {
        return Err(format!("its status is {}, the origin says {}", response.status, reference.status));
    }
    for name in kept {
        if response.header(name) != reference.header(name) {
            let said = |a: &Response| a.header(name).map_or_else(|| "absent".to_owned(), |value| format!("{value:?}"));
            return Err(format!("its header {name} is {}, the origin's is {}", said(response), said(reference)));
        }
    }
    if body == BodyRule::Any {
        let empty = response.size() == 0 && reference.size() > 0;
        return if empty { Err("its body is empty, and the origin's is not".to_owned()) } else { Ok(()) };
    }
    if response.size() != reference.size() {
        return Err(format!("its body has {} bytes, the origin's has {}", response.size(), reference.size()));
    }
    if body == BodyRule::Same && response.hash() != reference.hash() {
        return Err(format!("its body hashes to {:016x}, the origin's to {:016x}", response.hash(), reference.hash()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::http1::Framing;

    fn response() -> Response {
        let headers = [(&b"content-type"[..], &b"text/plain"[..])].into_iter();
        Response { body: b"ok".to_vec(), ..Response::new("HTTP/1.1", 200, headers, Framing::Length(2)) }
    }

    #[test]
    fn equal_responses_pass_and_every_difference_is_named() {
        let right = response();
        assert_eq!(compare(&right, &right, "HTTP/1.1", &KEPT_HEADERS, BodyRule::Same), Ok(()));
        type Fault = fn(&mut Response);
        let cases: [(&str, Fault); 5] = [
            ("version", |a| a.version = "HTTP/1.0"),
            ("status", |a| a.status = 502),
            ("content-type", |a| a.headers.clear()),
            ("bytes", |a| a.body.push(b'!')),
            ("hashes", |a| a.body = b"no".to_vec()),
        ];
        for (word, spoil) in cases {
            let mut wrong = response();
            spoil(&mut wrong);
            let text = compare(&wrong, &right, "HTTP/1.1", &KEPT_HEADERS, BodyRule::Same).expect_err(word);
            assert!(text.contains(word), "{text}");
        }
        let longer = Response { body: b"more".to_vec(), ..response() };
        assert_eq!(compare(&longer, &right, "HTTP/1.1", &KEPT_HEADERS, BodyRule::Any), Ok(()), "any body");
        let other = Response { body: b"no".to_vec(), ..response() };
        assert_eq!(compare(&other, &right, "HTTP/1.1", &KEPT_HEADERS, BodyRule::SameSize), Ok(()), "a stream");
        assert!(compare(&longer, &right, "HTTP/1.1", &KEPT_HEADERS, BodyRule::SameSize).is_err(), "more of one");
        let none = Response { body: Vec::new(), ..response() };
        assert!(compare(&none, &right, "HTTP/1.1", &KEPT_HEADERS, BodyRule::Any).is_err(), "and yet one");
        let own = Response { headers: Vec::new(), ..response() };
        assert_eq!(compare(&own, &right, "HTTP/1.1", &[], BodyRule::Same), Ok(()), "a response of the product's own");
    }
}
