//! HTTP/2: each stream of the load is a stream of the connection, identified by its tag. `run` picks it as the
//! [`Protocol`] of a load.

use std::fmt::Display;
use std::sync::Arc;

use weir_model::load::{ErrorKind, LoadProtocol, LoadSpec, RESPONSE_HEADER, RequestSpec};
use weir_requests::template::Template;
use weir_wire::http2::{
    self, Body, Client, ClientEvent, Options, Prepared, ResetCause, ResponseHead, SendError, Values,
};
use weir_wire::request_id::RequestId;

use super::http_template::{HttpTemplate, Parts, header, headers_but, value_without_id};
use super::{Encoded, Event, Instance, Protocol, Refusal, Responses, leak};
use crate::error::{SpecError, Violation};
use crate::generator::Generator;

/// Headers with fields that a request may have: a worker lists them without asking for memory.
const MAX_CHANGING: usize = 32;

/// One connection of so many keeps the headers of its responses.
pub(super) const SAMPLED: u32 = 64;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Http2 {
    requests: Arc<[Request<Prepared>]>,
    /// By request: its messages follow one by one. Empty where no request has such.
    paced: Arc<[bool]>,
    options: Options,
}

/// A kind of request, of HTTP/2 or of HTTP/3, whose prepared heads differ.
#[derive(Debug)]
pub(super) enum Request<H> {
    /// Always the same but for its ID, with which `id_value` begins.
    Fixed { head: H, body: &'static [u8], id_value: Vec<u8> },
    /// With fields, in the path or body, in the headers at these indices, and in the authority, which is the last header.
    Template { template: HttpTemplate, head: H, changing: Vec<usize> },
}

/// Prepares a head with places for what changes.
type Prepare<H> = fn(&http2::Request<'_>, http2::Template<'_>) -> Result<H, http2::EncodeError>;

impl Protocol for Http2 {
    const NEGOTIATING: &'static str = "before its SETTINGS of HTTP/2 came";
    type Session = Option<Box<Client>>;
    type Error = Violation;

    fn new(spec: &LoadSpec, _: Instance) -> Result<Http2, SpecError> {
        let LoadProtocol::Http2 { streams: max_streams } = spec.protocol else {
            return Err("not a load of HTTP/2".into());
        };
        let requests = Request::all(spec, Prepared::template)?;
        let paced: Vec<bool> = spec.requests.iter().map(|request| spec.paced_messages(request).is_some()).collect();
        let paced = if paced.contains(&true) { paced.into() } else { Arc::default() };
        Ok(Http2 {
            requests,
            paced,
            options: Options { max_streams, keep_headers: keeps_headers(spec), ..Options::client() },
        })
    }

    fn connect(&self, session: &mut Self::Session, number: u32, out: &mut Vec<u8>) -> bool {
        // Some keep headers for the samples; without, reading costs less.
        let keep_headers = self.options.keep_headers || number.is_multiple_of(SAMPLED);
        let mut client = Box::new(Client::new(&Options { keep_headers, ..self.options }));
        client.start(out);
        *session = Some(client);
        false
    }

    #[inline]
    fn encode<'a>(
        &'a self,
        session: &mut Self::Session,
        stream: u32,
        kind: u32,
        id: Option<RequestId>,
        generator: &'a mut Generator,
        out: &mut Vec<u8>,
    ) -> Result<Encoded<'a>, Refusal> {
        let Some(client) = session else { return Err(Refusal::Exhausted) };
        let begins = self.paced.get(kind as usize) == Some(&true);
        let sent = self.requests[kind as usize].fill(kind, id, generator, |head, values, body| match begins {
            false => client.request_filled(stream, head, values, body, out),
            true => client.begin(stream, head, values, out),
        });
        sent.map(|()| Encoded::Appended).map_err(refusal)
    }

    fn send_message(
        &self,
        session: &mut Self::Session,
        stream: u32,
        message: &[u8],
        ends: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        session.as_mut().is_some_and(|client| client.data(stream, Body::Copied(message), ends, out))
    }

    #[inline]
    fn receive(
        &mut self,
        session: &mut Self::Session,
        input: &mut &[u8],
        responses: &mut Responses<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Violation> {
        let Some(client) = session else { return Ok(None) };
        while let Some(event) = client.next(input, out).map_err(|error| format!("not HTTP/2: {error}"))? {
            match event {
                ClientEvent::Data { tag, bytes } => responses.of(tag).body(bytes),
                ClientEvent::Head { tag, head } => on_head(responses, tag, head),
                ClientEvent::Informational { tag, .. } => responses.of(tag).begun(),
                ClientEvent::Trailers { tag, headers } => responses.of(tag).trailers(headers.iter()),
                ClientEvent::End { tag, sent } => {
                    if !sent {
                        responses.of(tag).before_its_request();
                    }
                    return Ok(Some(Event::Complete { stream: tag, reusable: true }));
                }
                ClientEvent::Reset { tag, cause } => {
                    return Ok(Some(match cause {
                        // The peer never processed it, so that it can be sent elsewhere (RFC 9113 section 8.7).
                        ResetCause::GoneAway => Event::Unprocessed { stream: tag },
                        ResetCause::Peer(_) => failed(responses, tag, ErrorKind::StreamReset, cause),
                        ResetCause::Malformed(_) => failed(responses, tag, ErrorKind::Protocol, cause),
                    }));
                }
                ClientEvent::Settings => return Ok(Some(Event::Streams(client.streams()))),
                ClientEvent::GoAway { .. } => return Ok(Some(Event::GoAway)),
            }
        }
        Ok(None)
    }

    fn end_of_input(&self, session: &mut Self::Session) -> Result<u32, Option<Violation>> {
        let code = session.as_ref().and_then(|client| client.goaway());
        Err(code.map(|code| format!("the peer went away (GOAWAY, {code})").into()))
    }

    fn cancel(&self, session: &mut Self::Session, stream: u32, out: &mut Vec<u8>) -> bool {
        if let Some(client) = session {
            client.cancel(stream, out);
        }
        true
    }

    fn close(&self, session: &mut Self::Session, out: &mut Vec<u8>) {
        if let Some(client) = session {
            client.go_away(out);
        }
    }
}

/// The head of a final response came.
// The compiler does not inline what two protocols call, and the call costs a half of it.
#[inline(always)]
pub(super) fn on_head(responses: &mut Responses<'_>, tag: u32, head: ResponseHead<'_>) {
    let mut response = responses.of(tag);
    response.head(head.status, head.length);
    response.check_id(|| head.headers.get(RESPONSE_HEADER));
    response.headers(head.headers.iter());
}

/// Hands a request to `send`: its head, in which so many headers are changing, with these parts of its template.
// Apart from the fixed requests, so that `send` is inlined there.
#[inline(never)]
fn fill_template<H, R>(
    head: &H,
    changing: &[usize],
    parts: &Parts<'_>,
    send: impl FnOnce(&H, Values<'_>, Body<'_>) -> R,
) -> R {
    let mut values: [&[u8]; MAX_CHANGING] = [&[]; MAX_CHANGING];
    for (value, index) in values.iter_mut().zip(changing) {
        *value = parts.header(*index);
    }
    let mut filled = changing.len();
    if let Some(value) = parts.id_value() {
        values[filled] = value;
        filled += 1;
    }
    let body = match parts.fixed {
        None => Body::Copied(parts.filled),
        Some([]) => Body::None,
        Some(body) => Body::Static(body),
    };
    send(head, Values { path: parts.path(), authority: parts.last_header(), headers: &values[..filled] }, body)
}

/// Why a half did not take a request.
pub(super) fn refusal(error: SendError) -> Refusal {
    if error == SendError::Full { Refusal::Full } else { Refusal::Exhausted }
}

/// True when a load looks at the headers of every response.
pub(super) fn keeps_headers(spec: &LoadSpec) -> bool {
    spec.request_ids.is_some()
        || spec.accept_encoding.is_some()
        || spec.stream.is_some()
        || spec.changes.is_some()
        || spec.requests.iter().any(|request| !request.expect.headers.is_empty())
}

/// A request that failed while its connection goes on.
pub(super) fn failed(responses: &mut Responses<'_>, stream: u32, kind: ErrorKind, cause: impl Display) -> Event {
    responses.of(stream).reason(kind, &cause);
    Event::Failed { stream, kind }
}

impl<H> Request<H> {
    /// The requests of a load, made ready.
    pub(super) fn all(spec: &LoadSpec, prepare: Prepare<H>) -> Result<Arc<[Request<H>]>, SpecError> {
        spec.requests.iter().map(|request| Request::new(spec, request, prepare)).collect()
    }

    /// Hands the next request of this kind, the load's `kind`th, to `send`.
    #[inline]
    pub(super) fn fill<R>(
        &self,
        kind: u32,
        id: Option<RequestId>,
        generator: &mut Generator,
        send: impl FnOnce(&H, Values<'_>, Body<'_>) -> R,
    ) -> R {
        match self {
            Request::Fixed { head, body, id_value } => {
                let body = if body.is_empty() { Body::None } else { Body::Static(body) };
                let value = id.map(|id| generator.with_id(kind, id_value, 0, id));
                send(head, Values { headers: value.as_slice(), ..Values::default() }, body)
            }
            Request::Template { template, head, changing } => {
                fill_template(head, changing, &template.render_parts(generator.next(kind), id), send)
            }
        }
    }

    fn new(spec: &LoadSpec, request: &RequestSpec, prepare: Prepare<H>) -> Result<Request<H>, SpecError> {
        let authority = header(request, "host").unwrap_or(&spec.targets[request.target as usize].authority);
        let mut all = headers_but(request, "host");
        if let Some(coding) = spec.accept_encoding {
            all.push(("accept-encoding", coding.as_str()));
        }
        let given = all.len();
        // Headers that change are sent last, and that with the ID after those of the template.
        let value = spec.request_ids.as_ref().map(|ids| (&*ids.header, value_without_id(ids, &request.request, &all)));
        all.extend(value.iter().map(|(header, value)| (*header, value.as_str())));
        let parts = http2::Request {
            method: &request.request.method,
            scheme: if spec.tls.is_some() { "https" } else { "http" },
            authority,
            path: &request.request.path,
            headers: &all,
        };
        let wrong = |error: http2::EncodeError| format!("the request cannot be sent: {error}");
        if !request.template {
            let name: Vec<usize> = (given..all.len()).collect();
            let head =
                prepare(&parts, http2::Template { headers: &name, ..http2::Template::default() }).map_err(wrong)?;
            let id_value = value.map(|(_, value)| value.into_bytes()).unwrap_or_default();
            return Ok(Request::Fixed { head, body: leak(request.request.body.clone()), id_value });
        }
        let is_text = |text: &str| Template::parse(text.as_bytes()).is_ok_and(|template| template.is_text());
        // A template is checked as one of HTTP/1.1, which has a Host. It is last, where it changes no header's index.
        let with_host: Vec<(&str, &str)> = all[..given].iter().copied().chain([("Host", authority)]).collect();
        let template = HttpTemplate::of(&request.request, &with_host, spec.request_ids.as_ref(), spec.feed.as_ref())?;
        let changing: Vec<usize> = (0..given).filter(|index| !is_text(all[*index].1)).collect();
        if changing.len() >= MAX_CHANGING {
            return Err(
                format!("{} headers with fields; expected: at most {}", changing.len(), MAX_CHANGING - 1).into()
            );
        }
        // What stands where the fields are does not matter, but has to be sendable.
        let constant: Vec<(&str, &str)> =
            all.iter().map(|(name, value)| (*name, if is_text(value) { *value } else { "x" })).collect();
        let constant = http2::Request { headers: &constant, ..parts };
        let filled: Vec<usize> = changing.iter().copied().chain(given..all.len()).collect();
        let (path, authority_changes) = (!is_text(&request.request.path), !is_text(authority));
        let prepare = |authority: &str, authority_changes| {
            let template = http2::Template { path, authority: authority_changes, headers: &filled };
            prepare(&http2::Request { authority, ..constant }, template).map_err(wrong)
        };
        if authority_changes {
            // HTTP/1.1 may have an empty Host, and HTTP/2 no empty authority.
            let fields =
                Template::parse_with(authority.as_bytes(), spec.feed.as_ref()).map_err(|error| error.to_string())?;
            for sample in fields.samples() {
                prepare(&String::from_utf8_lossy(&sample), false)?;
            }
        }
        let head = prepare(authority, authority_changes)?;
        Ok(Request::Template { template, head, changing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::spec;

    #[test]
    fn a_request_has_parts_that_change_and_parts_that_do_not() {
        let mut spec = spec();
        spec.protocol = LoadProtocol::Http2 { streams: 1 };
        let request = &mut spec.requests[0].request;
        request.headers = ["x-a", "Host", "x-b"].map(|name| (name.to_owned(), "{{seq}}".to_owned())).to_vec();
        request.headers[0].1 = "constant".into();
        request.headers[1].1 = "other.test".into();
        spec.requests[0].template = true;
        match Request::new(&spec, &spec.requests[0], Prepared::template).unwrap() {
            Request::Template { changing, .. } => assert_eq!(changing, [1]),
            other @ Request::Fixed { .. } => panic!("{other:?}"),
        }
        // The authority may have fields, if all that they can be is a host.
        let request = |authority: &str| {
            let mut spec = spec.clone();
            spec.requests[0].request.headers[1].1 = authority.into();
            Request::new(&spec, &spec.requests[0], Prepared::template)
        };
        assert!(request("{{seq}}.test:{{random:1..9}}").is_ok());
        for (authority, found) in [("{{pick:a|}}", "\"\""), ("{{pick:a.test|b/c}}", "b/c"), ("{{seqs}}", "{{seqs}}")] {
            let error = request(authority).unwrap_err();
            assert!(error.to_string().contains(found), "{authority}: {error}");
        }
    }
}
