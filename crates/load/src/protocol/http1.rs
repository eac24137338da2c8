//! HTTP/1.1: sends prepared requests, and matches responses to them in order. A stream is a place in the pipeline.
//! `run` picks it as the [`Protocol`] of a load.

use std::collections::VecDeque;
use std::sync::Arc;

use weir_model::load::{LoadSpec, RESPONSE_HEADER, RequestSpec};
use weir_wire::http1::{
    Framing, HeadMemo, Limits, ParseError, ResponseEvent, ResponseParser, StatusLine, encode, headers,
};
use weir_wire::request_id::RequestId;

use super::http_template::{BODY_IN_PLACE, HttpTemplate, header, headers_but, value_without_id};
use super::{Encoded, Event, Instance, Protocol, Refusal, Responses, leak};
use crate::error::SpecError;
use crate::generator::Generator;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Http1 {
    requests: Arc<[Request]>,
    pipelined: bool,
    /// The last head, of whatever connection.
    memo: HeadMemo<StatusLine>,
}

/// A kind of request.
#[derive(Debug)]
struct Request {
    /// It is a HEAD request.
    head: bool,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Always the same but for its ID, which stands at `id_at`: all bytes, or the head when the body lies elsewhere.
    Fixed { bytes: Vec<u8>, body: &'static [u8], id_at: usize },
    /// With fields.
    Template(HttpTemplate),
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Session {
    parser: ResponseParser,
    /// Streams in the order of sending, where there can be more than one.
    #[expect(clippy::box_collection, reason = "8 bytes of each connection instead of 32")]
    order: Option<Box<VecDeque<u32>>>,
}

impl Default for Session {
    fn default() -> Session {
        Session { parser: ResponseParser::new(Limits::default()), order: None }
    }
}

impl Session {
    /// The stream whose response is next.
    #[inline]
    fn oldest(&self) -> u32 {
        self.order.as_ref().and_then(|order| order.front().copied()).unwrap_or(0)
    }

    /// Its response is complete.
    #[inline]
    fn complete(&mut self, stream: u32, reusable: bool) -> Event {
        if let Some(order) = &mut self.order {
            order.pop_front();
        }
        Event::Complete { stream, reusable }
    }
}

impl Protocol for Http1 {
    const SENDS_REQUESTS_ALONE: bool = true;
    type Session = Session;
    type Error = ParseError;

    fn new(spec: &LoadSpec, _: Instance) -> Result<Http1, SpecError> {
        let requests = spec.requests.iter().map(|request| Request::new(spec, request)).collect::<Result<_, _>>()?;
        let memo = HeadMemo::new(spec.request_ids.is_some().then_some(RESPONSE_HEADER));
        Ok(Http1 { requests, pipelined: spec.protocol.streams() > 1, memo })
    }

    fn connect(&self, session: &mut Session, _number: u32, _out: &mut Vec<u8>) -> bool {
        session.order = self.pipelined.then(Box::default);
        true
    }

    #[inline]
    fn encode<'a>(
        &'a self,
        session: &mut Session,
        stream: u32,
        kind: u32,
        id: Option<RequestId>,
        generator: &'a mut Generator,
        _out: &mut Vec<u8>,
    ) -> Result<Encoded<'a>, Refusal> {
        let request = &self.requests[kind as usize];
        if let Some(order) = &mut session.order {
            order.push_back(stream);
        }
        session.parser.request_sent(request.head);
        Ok(match &request.content {
            Content::Fixed { bytes, body, id_at } => match id {
                None => Encoded::Ready(bytes, body),
                Some(id) => Encoded::Ready(generator.with_id(kind, bytes, *id_at, id), body),
            },
            Content::Template(template) => {
                let (bytes, body) = template.render(generator.next(kind), id);
                Encoded::Ready(bytes, body)
            }
        })
    }

    #[inline]
    fn receive(
        &mut self,
        session: &mut Session,
        input: &mut &[u8],
        responses: &mut Responses<'_>,
        _out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ParseError> {
        if input.is_empty() {
            return Ok(None);
        }
        let stream = session.oldest();
        let mut response = responses.of(stream);
        let reusable = loop {
            match session.parser.next_with(input, Some(&mut self.memo)) {
                Ok(Some(ResponseEvent::Head(head))) => {
                    response.head(head.status, length(head.framing));
                    response.check_id(|| head.marked);
                    response.headers(headers(head.raw));
                }
                Ok(Some(ResponseEvent::Body(piece))) => response.body(piece),
                Ok(Some(ResponseEvent::Informational(_))) => {}
                Ok(Some(ResponseEvent::End { keep_alive })) => break keep_alive,
                Ok(None) => {
                    response.begun();
                    return Ok(None);
                }
                Err(error) => {
                    response.begun();
                    return Err(error);
                }
            }
        };
        if !input.is_empty() && session.parser.in_flight() == 0 {
            // Bytes after the response to the last request are unexpected.
            return Err(ParseError::Unsolicited);
        }
        Ok(Some(session.complete(stream, reusable)))
    }

    fn skippable(&self, session: &mut Session, responses: &mut Responses<'_>) -> u64 {
        match session.parser.body_left() {
            0 => 0,
            left if responses.of(session.oldest()).is_unread() => left,
            _ => 0,
        }
    }

    fn skipped(&self, session: &mut Session, bytes: u64, responses: &mut Responses<'_>) -> Option<Event> {
        let stream = session.oldest();
        responses.of(stream).skipped(bytes);
        session.parser.skip_body(bytes);
        match session.parser.next(&mut &b""[..]) {
            Ok(Some(ResponseEvent::End { keep_alive })) => Some(session.complete(stream, keep_alive)),
            _ => None,
        }
    }

    fn end_of_input(&self, session: &mut Session) -> Result<u32, Option<ParseError>> {
        match session.parser.on_eof() {
            // A body that lasts until the peer closes.
            Ok(true) => Ok(session.oldest()),
            Ok(false) => Err(None),
            Err(error) => Err(Some(error)),
        }
    }
}

fn length(framing: Framing) -> Option<u64> {
    match framing {
        Framing::Length(length) => Some(length),
        Framing::None | Framing::Chunked | Framing::UntilClose => None,
    }
}

impl Request {
    fn new(spec: &LoadSpec, request: &RequestSpec) -> Result<Request, SpecError> {
        let mut all: Vec<(&str, &str)> = Vec::new();
        if header(request, "host").is_none() {
            all.push(("Host", &spec.targets[request.target as usize].authority));
        }
        all.extend(headers_but(request, ""));
        if spec.connection_close && header(request, "connection").is_none() {
            all.push(("Connection", "close"));
        }
        if let Some(coding) = spec.accept_encoding {
            all.push(("Accept-Encoding", coding.as_str()));
        }
        let head = request.request.method == "HEAD";
        if request.template {
            let template = HttpTemplate::of(&request.request, &all, spec.request_ids.as_ref(), spec.feed.as_ref())?;
            return Ok(Request { head, content: Content::Template(template) });
        }
        let value = spec.request_ids.as_ref().map(|ids| (&*ids.header, value_without_id(ids, &request.request, &all)));
        all.extend(value.iter().map(|(header, value)| (*header, value.as_str())));
        let body = &request.request.body;
        let mut bytes = Vec::new();
        encode::request(&mut bytes, &request.request.method, &request.request.path, &all, body)
            .map_err(|error| format!("the request cannot be sent: {error}"))?;
        // The header with the ID is the last of the given ones, so that nothing before it looks like it.
        let id_at = value.map_or(0, |(header, value)| find_id(&bytes, header, &value));
        let body = if body.len() < BODY_IN_PLACE {
            &[]
        } else {
            bytes.truncate(bytes.len() - body.len());
            leak(body.clone())
        };
        Ok(Request { head, content: Content::Fixed { bytes, body, id_at } })
    }
}

/// The place of the ID in a request's bytes; `value` is the header's whole value.
fn find_id(bytes: &[u8], header: &str, value: &str) -> usize {
    let line = format!("\r\n{header}: {value}\r\n");
    let at = bytes.windows(line.len()).position(|window| window == line.as_bytes()).unwrap_or(0);
    at + line.len() - "\r\n".len() - value.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::spec;

    fn encoded(spec: &LoadSpec) -> (String, &'static [u8]) {
        let request = Request::new(spec, &spec.requests[0]).unwrap();
        let Content::Fixed { bytes, body, .. } = request.content else { panic!("{request:?}") };
        (String::from_utf8(bytes).unwrap(), body)
    }

    #[test]
    fn a_request_gets_what_it_lacks_and_nothing_twice() {
        let mut spec = spec();
        assert_eq!(encoded(&spec).0, "GET /x?y=1 HTTP/1.1\r\nHost: origin.test\r\n\r\n");
        spec.requests[0].request.headers = vec![("HOST".into(), "other".into())];
        spec.connection_close = true;
        let text = encoded(&spec).0;
        assert!(text.contains("HOST: other\r\nConnection: close\r\n"), "{text}");
        assert!(!text.contains("origin.test"), "{text}");
    }

    #[test]
    fn large_bodies_are_not_copied() {
        let mut spec = spec();
        spec.requests[0].request.method = "POST".into();
        spec.requests[0].request.body = b"small".to_vec();
        let (text, body) = encoded(&spec);
        assert!(text.ends_with("\r\n\r\nsmall") && body.is_empty());
        spec.requests[0].request.body = vec![7; 100_000];
        let (text, body) = encoded(&spec);
        assert!(text.ends_with("\r\n\r\n") && body.len() == 100_000);
    }

    #[test]
    fn a_request_that_cannot_be_sent_is_refused() {
        let mut spec = spec();
        spec.requests[0].request.method = "G T".into();
        let error = Http1::new(&spec, Instance::default()).unwrap_err();
        assert!(error.to_string().contains("cannot be sent"), "{error}");
    }

    #[test]
    fn a_session_is_read_without_a_worker() {
        let mut protocol = Http1::new(&spec(), Instance::default()).unwrap();
        let mut session = Session::default();
        assert!(protocol.connect(&mut session, 0, &mut Vec::new()));
        let expectations = [Expectation::of(&spec().requests[0], spec().protocol)];
        let mut streams = [Stream::default()];
        let mut watches = Watches {
            headers: crate::headers::HeaderWatch::new(1),
            ids: None,
            codings: None,
            messages: None,
            changes: None,
            reasons: Reasons::default(),
        };
        let mut generator = Generator::for_tests(&spec());
        let mut receive = |protocol: &mut Http1, session: &mut Session, mut input: &[u8]| {
            let mut responses = Responses::new(&mut streams, &expectations, &mut watches, 5);
            protocol.receive(session, &mut input, &mut responses, &mut Vec::new())
        };
        let sent = protocol.encode(&mut session, 0, 0, None, &mut generator, &mut Vec::new()).unwrap();
        assert!(matches!(sent, Encoded::Ready(b"GET /x?y=1 HTTP/1.1\r\nHost: origin.test\r\n\r\n", b"")));
        assert_eq!(receive(&mut protocol, &mut session, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"), Ok(None));
        let complete = Event::Complete { stream: 0, reusable: true };
        assert_eq!(receive(&mut protocol, &mut session, b"k"), Ok(Some(complete)));
        assert_eq!(receive(&mut protocol, &mut session, b"HTTP"), Err(ParseError::Unsolicited), "nothing was asked");
        assert_eq!((streams[0].first, streams[0].response.status(), streams[0].response.size()), (5, 200, 2));
    }

    #[test]
    fn bodies_that_nobody_reads_may_be_skipped() {
        let hashed = |hash| {
            let mut spec = spec();
            spec.requests[0].request.method = "GET".into();
            spec.requests[0].expect.hash = hash;
            spec
        };
        for (hash, skippable) in [(None, 9_998), (Some(7), 0)] {
            let spec = hashed(hash);
            let mut protocol = Http1::new(&spec, Instance::default()).unwrap();
            let mut session = Session::default();
            assert!(protocol.connect(&mut session, 0, &mut Vec::new()));
            let expectations = [Expectation::of(&spec.requests[0], spec.protocol)];
            let mut streams = [Stream::default()];
            let mut watches = Watches {
                headers: crate::headers::HeaderWatch::new(1),
                ids: None,
                codings: None,
                messages: None,
                changes: None,
                reasons: Reasons::default(),
            };
            protocol.encode(&mut session, 0, 0, None, &mut Generator::for_tests(&spec), &mut Vec::new()).unwrap();
            let mut responses = Responses::new(&mut streams, &expectations, &mut watches, 5);
            let mut input = &b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\nab"[..];
            assert_eq!(protocol.receive(&mut session, &mut input, &mut responses, &mut Vec::new()), Ok(None));
            assert_eq!(protocol.skippable(&mut session, &mut responses), skippable);
            assert_eq!(protocol.skipped(&mut session, 9_000, &mut responses), None);
            let complete = Some(Event::Complete { stream: 0, reusable: true });
            assert_eq!(protocol.skipped(&mut session, 998, &mut responses), complete);
            assert_eq!(protocol.skippable(&mut session, &mut responses), 0, "between responses");
            assert_eq!(streams[0].response.size(), 10_000);
        }
    }

    #[test]
    fn each_request_has_its_name_in_its_place() {
        let mut spec = spec();
        spec.request_ids = Some(RequestIds { key: [0; 2], ..RequestIds::new("x-n".into(), 1, true) });
        for body in [&b""[..], b"\r\nx-n: 0000000000000000\r\n", &[7; 100_000]] {
            spec.requests[0].request.method = "POST".into();
            spec.requests[0].request.body = body.to_vec();
            let protocol = Http1::new(&spec, Instance::default()).unwrap();
            let mut generator = Generator::for_tests(&spec);
            for number in 0..3 {
                let id = RequestId::new(1, 2, number);
                let mut session = Session::default();
                let encoded = protocol.encode(&mut session, 0, 0, Some(id), &mut generator, &mut Vec::new()).unwrap();
                let Encoded::Ready(bytes, rest) = encoded else { panic!("{encoded:?}") };
                let value = weir_wire::http1::header(bytes, "x-n").unwrap();
                assert_eq!(value[..16], id.text());
                let (digest, _) = weir_wire::digest::Digest::parse(&value[16..]).unwrap();
                assert_eq!(digest.length as usize, body.len());
                assert!(bytes.ends_with(body) || rest == body);
            }
        }
    }

    use crate::protocol::Watches;
    use crate::reasons::Reasons;
    use crate::response_check::Expectation;
    use crate::worker::Stream;
    use weir_model::load::RequestIds;
}
