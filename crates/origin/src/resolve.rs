//! A target, resolved: everything about its response that does not depend on the request, and a small cache of those.
//!
//! A load requests the same few targets over and over. The first request of each parses the target and prepares the
//! bytes of the usual response (HTTP/1.1, connection kept). The following ones compare the target's bytes and send.
//!
//! This module does not know connections, delays or counters.

use std::cell::OnceCell;
use std::io::Write as _;
use std::rc::Rc;

use flate2::Compression;
use flate2::write::GzEncoder;
use weir_model::coding::Coding;
use weir_model::gateway::AUTHORIZED;
use weir_model::load::{RESPONSE_HEADER, TRAILER};
use weir_net::Clock;
use weir_wire::http1::encode::{self, BodyFraming, Persistence};
use weir_wire::http2::{EncodeError, Prepared};
use weir_wire::{grpc, http3, openai};

use crate::head::{GivenHeaders, Headers};
use crate::page;
use crate::payload::{self, payload};
use crate::route::{self, Plan, Subject};
use crate::stream::Shape;

/// Bodies up to this size are sent with their head in one copied piece; larger ones are not copied.
pub(crate) const SMALL: usize = 4096;

/// Bodies over this size, in bytes, are not copied whole by a transport that copies.
pub(crate) const LARGE: usize = 64 << 10;

/// The number of targets cached. If more targets alternate, each is resolved again, which costs about a microsecond.
const SLOTS: usize = 8;
/// Longest target kept, bytes.
const LONGEST: usize = 512;

/// The most content of a completion that is no stream, bytes.
const LONGEST_COMPLETION: usize = 1 << 20;

const TEXT: &str = "text/plain; charset=utf-8";
const BINARY: &str = "application/octet-stream";
const EVENTS: &str = weir_wire::sse::CONTENT_TYPE;
const JSON: &str = "application/json";

/// Where a response's body comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// It is known: [`Resolved::body`].
    Fixed,
    /// The request's body.
    Echo,
    /// The request's head.
    Headers,
    /// The request's head and body.
    Request,
    /// The counters, at the time of answering.
    Counters,
    /// Messages, as they fall due.
    Stream,
}

/// A fixed body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// At most [`SMALL`] bytes, or made by a request.
    Copied(Box<[u8]>),
    /// Lives as long as the process.
    Static(&'static [u8]),
}

impl Source {
    /// Whether the request's body is a part of it.
    pub(crate) fn has_request_body(self) -> bool {
        matches!(self, Source::Echo | Source::Request)
    }
}

impl Body {
    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Body::Copied(bytes) => bytes,
            Body::Static(bytes) => bytes,
        }
    }

    fn payload(size: usize) -> Body {
        if size <= SMALL { Body::Copied(payload(size).into()) } else { Body::Static(payload(size)) }
    }

    /// A text made for one response.
    pub(crate) fn text(text: impl AsRef<str>) -> Body {
        Body::Copied(text.as_ref().as_bytes().into())
    }
}

/// What a target means.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// What the target asks for; of a refused target, only the refusal's status.
    pub(crate) plan: Plan,
    /// It is the lab's own: not counted.
    pub(crate) own: bool,
    /// Where the body comes from.
    pub(crate) source: Source,
    /// The body if `source` is [`Source::Fixed`], else empty.
    pub(crate) body: Body,
    /// The `Content-Type` of the body.
    pub(crate) content_type: &'static str,
    /// The head of the usual response, if `source` is [`Source::Fixed`], and behind it the body if that is small
    /// and not chunked.
    pub(crate) ready: Box<[u8]>,
    /// How much of `ready` is head.
    pub(crate) ready_head: usize,
    /// The target specifies a delay or a fault.
    pub(crate) special: bool,
    /// Nothing of a request but its target decides about the response, which has nothing of the request.
    pub(crate) fixed: bool,
    /// The response to requests with a header that asks for another: one with a coded body, or the leave to pass.
    other: Option<Rc<Resolved>>,
    /// The same as a stream, for requests whose body asks for one.
    streamed: Option<Rc<Resolved>>,
    headers: Headers,
    /// The head of the usual response in HTTP/2, made when it is first needed.
    prepared: OnceCell<Prepared>,
    prepared_http3: OnceCell<http3::Prepared>,
}

/// Whether a response of this status never has a body (RFC 9110, section 6.4.1).
pub(crate) fn bodiless(status: u16) -> bool {
    matches!(status, 204 | 304)
}

/// Appends a response's head. A content type that is not allowed in a head is replaced by the one for plain bytes.
///
/// It has no `Date` unless the options ask for one: the response to a target is then the same bytes in every trial, and nothing is
/// encoded twice. RFC 9110 (section 6.6.1) requires one of origins that have a clock, so that caches can compute ages; nothing here
/// should be cached.
fn encode_head(
    out: &mut Vec<u8>,
    headers: &Headers,
    status: u16,
    content_type: &str,
    framing: BodyFraming,
    persistence: Persistence,
) {
    let framing = match status {
        status if bodiless(status) => BodyFraming::None,
        205 => BodyFraming::Length(0),
        _ => framing,
    };
    let typed = Some(content_type).filter(|_| !bodiless(status));
    if headers.encode(out, status, typed, framing, persistence).is_err() {
        // Cannot fail: other headers were checked when the origin started, and statuses are within 200 to 599.
        let written = headers.encode(out, status, typed.map(|_| BINARY), framing, persistence);
        debug_assert!(written.is_ok(), "{written:?}");
    }
}

/// The body in a coding; the same bytes each time.
fn coded(coding: Coding, body: &[u8]) -> Box<[u8]> {
    let mut encoder = match coding {
        Coding::Gzip => GzEncoder::new(Vec::new(), Compression::default()),
    };
    // A vector takes all that is written to it.
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.unwrap_or_default().into()
}

impl Resolved {
    /// Resolves a target, also an invalid one. Its usual response has the headers that are given.
    fn new(target: &[u8], given: &GivenHeaders) -> Resolved {
        let own = route::is_own(target);
        match route::parse(target) {
            Ok(plan) if own => Resolved::planned(plan, own, Headers::default(), None),
            Ok(plan) => Resolved::planned(plan, own, given.now(), given.content_type),
            Err(refusal) => Resolved::fixed(refusal.status(), Body::text(page::refusal(&refusal)), own),
        }
    }

    /// A response that consists of a status and a text.
    pub(crate) fn fixed(status: u16, body: Body, own: bool) -> Resolved {
        let plan = Plan { status, ..Plan::PLAIN };
        Resolved::prepared(plan, own, Source::Fixed, body, TEXT, Headers::default())
    }

    /// The 413 for a body that is too large to be echoed.
    pub(crate) fn too_large() -> Resolved {
        Resolved::fixed(413, Body::text(page::too_large()), false)
    }

    /// A status and its usual text.
    pub(crate) fn status_page(status: u16) -> Resolved {
        Resolved::fixed(status, Body::text(status_line(status)), false)
    }

    /// The response to input that the parser rejected.
    pub(crate) fn malformed(status: u16, why: &dyn std::fmt::Display) -> Resolved {
        Resolved::fixed(status, Body::text(page::malformed(why)), false)
    }

    fn planned(plan: Plan, own: bool, headers: Headers, given_type: Option<&'static str>) -> Resolved {
        let nothing = || Body::Copied(Box::default());
        let (source, body, content_type) = match (plan.bytes, plan.subject) {
            (Some(size), _) => (Source::Fixed, Body::payload(size), BINARY),
            // The path has the size, so the case above has caught it.
            (None, Subject::Bytes) => (Source::Fixed, nothing(), BINARY),
            (None, Subject::Text(size)) => (Source::Fixed, Body::Static(payload::text(size)), TEXT),
            (None, Subject::Index) => (Source::Fixed, Body::text(page::INDEX_PAGE), TEXT),
            (None, Subject::Delay) => (Source::Fixed, Body::text("ok"), TEXT),
            (None, Subject::Status) => (Source::Fixed, Body::text(status_line(plan.status)), TEXT),
            (None, Subject::Ready) => (Source::Fixed, nothing(), TEXT),
            (None, Subject::Authorize) => (Source::Fixed, Body::text(status_line(plan.status)), TEXT),
            (None, Subject::Echo) => (Source::Echo, nothing(), BINARY),
            (None, Subject::Headers) => (Source::Headers, nothing(), TEXT),
            (None, Subject::Request) => (Source::Request, nothing(), TEXT),
            (None, Subject::Stream) => (Source::Stream, nothing(), EVENTS),
            (None, Subject::Call) if plan.stream.is_some_and(|shape| shape.code > 0) => {
                (Source::Fixed, nothing(), grpc::CONTENT_TYPE)
            }
            (None, Subject::Call | Subject::Bidi) => (Source::Stream, nothing(), grpc::CONTENT_TYPE),
            (None, Subject::Socket) => (Source::Fixed, Body::text(page::NO_UPGRADE), TEXT),
            (None, Subject::Completion) => (Source::Fixed, Body::text(completion(&plan)), JSON),
            (None, Subject::Counters) => (Source::Counters, nothing(), JSON),
        };
        if plan.subject == Subject::Completion {
            let streamed = Rc::new(Resolved::prepared(
                Plan { chunked: true, ..plan.clone() },
                own,
                Source::Stream,
                nothing(),
                given_type.unwrap_or(EVENTS),
                headers.clone(),
            ));
            let streamed = Some(streamed);
            let plan = Plan { stream: None, ..plan };
            let content_type = given_type.unwrap_or(content_type);
            return Resolved {
                streamed,
                fixed: false,
                ..Resolved::prepared(plan, own, source, body, content_type, headers)
            };
        }
        let content_type = given_type.unwrap_or(content_type);
        let headers = match plan.stream {
            // The head alone says how the call went.
            Some(Shape { code: code @ 1.., .. }) if plan.is_call() => {
                let unimplemented = code == grpc::Status::UNIMPLEMENTED.0;
                let message = if unimplemented { "the service has no such method" } else { "on purpose" };
                headers.with(&[(grpc::STATUS, &code.to_string()), (grpc::MESSAGE, message)])
            }
            Some(Shape { trailers: true, .. }) => headers.with(&[("trailer", TRAILER)]),
            _ => headers,
        };
        let encoding = plan.encoding.filter(|_| source == Source::Fixed && !body.bytes().is_empty());
        let coded = encoding.map(|coding| {
            let (plan, body) = (plan.clone(), Body::Copied(coded(coding, body.bytes())));
            Rc::new(Resolved::prepared(plan, own, source, body, content_type, headers.coded(coding)))
        });
        let authorized = (plan.subject == Subject::Authorize).then(|| Rc::new(Resolved::fixed(200, nothing(), own)));
        let other = coded.or(authorized);
        let resolved = Resolved::prepared(plan, own, source, body, content_type, headers);
        Resolved { fixed: resolved.fixed && other.is_none(), other, ..resolved }
    }

    fn prepared(
        plan: Plan,
        own: bool,
        source: Source,
        body: Body,
        content_type: &'static str,
        headers: Headers,
    ) -> Resolved {
        let bodiless = bodiless(plan.status) || plan.status == 205;
        let body = if bodiless { Body::Copied(Box::default()) } else { body };
        let mut ready = Vec::new();
        let mut ready_head = 0;
        if source == Source::Fixed {
            let length = body.bytes().len() as u64;
            let framing = if plan.chunked { BodyFraming::Chunked } else { BodyFraming::Length(length) };
            encode_head(&mut ready, &headers, plan.status, content_type, framing, Persistence::Implied);
            ready_head = ready.len();
            if let (Body::Copied(bytes), false) = (&body, plan.chunked) {
                ready.extend_from_slice(bytes);
            }
        }
        let special = plan.delay.is_some() || plan.faults.is_some();
        let fixed = source == Source::Fixed && !plan.is_call() && plan.socket().is_none();
        Resolved {
            plan,
            own,
            source,
            body,
            content_type,
            ready: ready.into(),
            ready_head,
            special,
            fixed,
            other: None,
            streamed: None,
            headers,
            prepared: OnceCell::new(),
            prepared_http3: OnceCell::new(),
        }
    }
}

impl Resolved {
    /// The response to a request with such headers: coded, if it can be and they accept that; the leave to pass, if they have a key.
    #[inline]
    pub(crate) fn chosen<'a>(self: Rc<Resolved>, header: impl FnOnce(&str) -> Option<&'a [u8]>) -> Rc<Resolved> {
        match &self.other {
            None => self,
            Some(other) => {
                if self.is_other(header) {
                    Rc::clone(other)
                } else {
                    self
                }
            }
        }
    }

    #[inline(never)]
    fn is_other<'a>(&self, header: impl FnOnce(&str) -> Option<&'a [u8]>) -> bool {
        match self.plan.encoding {
            Some(coding) => header("accept-encoding").is_some_and(|value| coding.is_accepted(value)),
            None => header("authorization").is_some_and(|value| value.starts_with(AUTHORIZED.as_bytes())),
        }
    }

    /// Whether what a response is depends on the request's body, which may be a part of it.
    pub(crate) fn reads_request_body(&self) -> bool {
        self.source.has_request_body() || self.streamed.is_some()
    }

    /// The same as a stream, where the request's body decides that.
    pub(crate) fn streamed(&self) -> Option<&Rc<Resolved>> {
        self.streamed.as_ref()
    }

    /// Appends the head of a response of HTTP/1.1.
    pub(crate) fn encode_head(
        &self,
        out: &mut Vec<u8>,
        content_type: &str,
        framing: BodyFraming,
        persistence: Persistence,
    ) {
        encode_head(out, &self.headers, self.plan.status, content_type, framing, persistence);
    }

    /// Headers of a response of HTTP/2 with a body of this type.
    pub(crate) fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Whether the body is too large to be copied at once.
    pub(crate) fn is_large(&self) -> bool {
        matches!(&self.body, Body::Static(bytes) if bytes.len() > LARGE)
    }

    /// The head of the usual response in HTTP/2, if `source` is [`Source::Fixed`] or [`Source::Stream`].
    pub(crate) fn http2_usual(&self) -> &Prepared {
        self.prepared.get_or_init(|| {
            let head = self.http2_head(self.content_type, Some(self.body.bytes().len() as u64));
            // Content types of fixed bodies are constants, and statuses are within 200 to 599.
            head.expect("a head of constants can be sent")
        })
    }

    /// The head of a response in HTTP/2 with this length. `chunked=1` omits the length. Its name may be filled in.
    ///
    /// # Errors
    /// When the content type is not allowed in a head.
    pub(crate) fn http2_head(&self, content_type: &str, length: Option<u64>) -> Result<Prepared, EncodeError> {
        self.head(content_type, length, Prepared::response_template)
    }

    /// As [`Resolved::http2_usual`], in HTTP/3.
    pub(crate) fn http3_usual(&self) -> &http3::Prepared {
        self.prepared_http3.get_or_init(|| {
            let head = self.http3_head(self.content_type, Some(self.body.bytes().len() as u64));
            head.expect("a head of constants can be sent")
        })
    }

    /// As [`Resolved::http2_head`], in HTTP/3.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn http3_head(&self, content_type: &str, length: Option<u64>) -> Result<http3::Prepared, EncodeError> {
        self.head(content_type, length, http3::Prepared::response_template)
    }

    fn head<H>(&self, content_type: &str, length: Option<u64>, prepare: Prepare<H>) -> Result<H, EncodeError> {
        let status = self.plan.status;
        let (headers, count) = self.headers.http2(Some(content_type).filter(|_| !bodiless(status)));
        let length = match status {
            status if bodiless(status) => None,
            205 => Some(0),
            _ => length.filter(|_| !self.plan.chunked),
        };
        prepare(status, &headers[..count], length, &[RESPONSE_HEADER])
    }
}

/// Makes a head ready: status, headers, length, and the headers that are filled in.
type Prepare<H> = fn(u16, &[(&str, &str)], Option<u64>, &[&str]) -> Result<H, EncodeError>;

/// A completion in one piece, with as much content as the stream would have.
fn completion(plan: &Plan) -> String {
    let Shape { messages, size, .. } = plan.stream.unwrap_or_default();
    let content = (messages as usize).saturating_mul(size).min(LONGEST_COMPLETION);
    openai::completion(&"weir ".repeat(content.div_ceil(5))[..content])
}

fn status_line(status: u16) -> String {
    format!("{status} {}\n", encode::reason(status))
}

/// The targets requested lately.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: Vec<(Box<[u8]>, Rc<Resolved>)>,
    last: usize,
    next: usize,
    given: GivenHeaders,
    clock: Clock,
}

impl Cache {
    /// Of an origin that answers with these headers.
    pub(crate) fn new(given: &[(String, String)], clock: Clock) -> Cache {
        Cache { entries: Vec::new(), last: 0, next: 0, given: GivenHeaders::new(given), clock }
    }

    /// Resolves `target`. Allocates only for a target that is not in the cache, and where the date has changed.
    pub(crate) fn resolve(&mut self, target: &[u8]) -> Rc<Resolved> {
        if self.given.have_date() && self.given.update(&self.clock) {
            self.entries.clear();
        }
        if let Some((key, resolved)) = self.entries.get(self.last)
            && **key == *target
        {
            return Rc::clone(resolved);
        }
        if let Some(found) = self.entries.iter().position(|(key, _)| **key == *target) {
            self.last = found;
            return Rc::clone(&self.entries[found].1);
        }
        self.insert(target)
    }

    fn insert(&mut self, target: &[u8]) -> Rc<Resolved> {
        let resolved = Rc::new(Resolved::new(target, &self.given));
        if target.len() <= LONGEST {
            let entry = (target.into(), Rc::clone(&resolved));
            if self.entries.len() < SLOTS {
                self.last = self.entries.len();
                self.entries.push(entry);
            } else {
                self.last = self.next;
                self.entries[self.next] = entry;
                self.next = (self.next + 1) % SLOTS;
            }
        }
        resolved
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    fn resolved(target: &[u8]) -> Resolved {
        Resolved::new(target, &GivenHeaders::new(&[]))
    }

    #[test]
    fn a_body_is_coded_for_those_who_accept_it() {
        let both = Rc::new(resolved(b"/bytes/1000?encoding=gzip"));
        let plain = Rc::clone(&both).chosen(|_| None);
        assert!(Rc::ptr_eq(&both, &plain) && Rc::ptr_eq(&both, &Rc::clone(&both).chosen(|_| Some(b"br"))));
        let coded = Rc::clone(&both).chosen(|_| Some(b"gzip, br"));
        assert!(text(&coded.ready[..coded.ready_head]).contains("Content-Encoding: gzip\r\n"));
        let mut decoded = Vec::new();
        flate2::read::GzDecoder::new(coded.body.bytes()).read_to_end(&mut decoded).expect("gzip");
        assert_eq!(decoded, payload(1000));
        assert!(coded.body.bytes().len() < 1000);
        let echo = Rc::new(resolved(b"/echo?encoding=gzip")).chosen(|_| Some(b"gzip"));
        assert_eq!(echo.source, Source::Echo, "only bodies that are known are coded");
    }

    #[test]
    fn a_large_body_stays_where_it_is() {
        let resolved = resolved(b"/bytes/4097");
        assert_eq!(resolved.ready.len(), resolved.ready_head);
        assert_eq!(resolved.body, Body::Static(payload(4097)));
    }

    #[test]
    fn the_cache_shares_results_and_is_bounded() {
        let mut cache = Cache::new(&[], Clock::Kernel);
        let first = cache.resolve(b"/bytes/1");
        assert!(Rc::ptr_eq(&first, &cache.resolve(b"/bytes/1")));
        let other = cache.resolve(b"/bytes/2");
        assert!(Rc::ptr_eq(&first, &cache.resolve(b"/bytes/1")) && Rc::ptr_eq(&other, &cache.resolve(b"/bytes/2")));
        for n in 0..100 {
            let target = format!("/bytes/{n}");
            assert_eq!(cache.resolve(target.as_bytes()).plan.bytes, Some(n));
        }
        assert_eq!(cache.entries.len(), SLOTS);
        assert!(!Rc::ptr_eq(&first, &cache.resolve(b"/bytes/1")), "long gone");
        cache.resolve(&[b'/'; LONGEST + 1]);
        assert!(cache.entries.iter().all(|(key, _)| key.len() <= LONGEST));
    }
}
