//! HTTP/3: each stream of the load is a request of the connection, identified by its tag, on a stream of QUIC of its own. Input
//! and output are the streams' frames ([`weir_wire::quic`]), which the driver of QUIC writes and reads.

use std::sync::Arc;

use weir_model::load::{ErrorKind, LoadProtocol, LoadSpec};
use weir_wire::http3::{Client, ClientEvent, Code, ConnectionError, Options, Prepared, ResetCause};
use weir_wire::quic::{self, HEADER, Header, Kind};
use weir_wire::request_id::RequestId;

use super::http2::{Request, SAMPLED, failed, keeps_headers, on_head, refusal};
use super::{Encoded, Event, Instance, Protocol, Refusal, Responses};
use crate::error::{SpecError, Violation};
use crate::generator::Generator;

/// The stream of a client's control stream: the first that it opens in one direction.
const CONTROL: u64 = 2;

/// Requests have every fourth stream (RFC 9000 section 2.1).
const NEXT: u64 = 4;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Http3 {
    requests: Arc<[Request<Prepared>]>,
    streams: u32,
    options: Options,
}

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    /// The stream of the next request.
    next: u64,
    /// The stream whose bytes come, how many are still to come, and whether they are its last.
    under_way: Option<(u64, usize, bool)>,
}

impl Protocol for Http3 {
    const QUIC: bool = true;
    const NEGOTIATING: &'static str = "before it allowed a request of HTTP/3";
    type Session = Option<Box<Session>>;
    type Error = Violation;

    fn new(spec: &LoadSpec, _: Instance) -> Result<Http3, SpecError> {
        let LoadProtocol::Http3 { streams } = spec.protocol else {
            return Err("not a load of HTTP/3".into());
        };
        let requests = Request::all(spec, Prepared::template)?;
        Ok(Http3 { requests, streams, options: Options { keep_headers: keeps_headers(spec), ..Options::default() } })
    }

    fn connect(&self, session: &mut Self::Session, number: u32, out: &mut Vec<u8>) -> bool {
        let keep_headers = self.options.keep_headers || number.is_multiple_of(SAMPLED);
        let mut client = Client::new(&Options { keep_headers, ..self.options });
        let mut bytes = Vec::new();
        client.start(&mut bytes);
        quic::put(out, CONTROL, Kind::Stream, &bytes);
        *session = Some(Box::new(Session { client, next: 0, under_way: None }));
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
        let Some(session) = session else { return Err(Refusal::Exhausted) };
        let (next, start) = (session.next, quic::begin(out));
        let sent = self.requests[kind as usize].fill(kind, id, generator, |head, values, body| {
            session.client.request_filled(next, stream, head, values, body, out)
        });
        if let Err(error) = sent {
            out.truncate(start);
            return Err(refusal(error));
        }
        quic::end(out, start, next, Kind::StreamFin, 0);
        session.next += NEXT;
        Ok(Encoded::Appended)
    }

    #[inline]
    fn receive(
        &mut self,
        session: &mut Self::Session,
        input: &mut &[u8],
        responses: &mut Responses<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Violation> {
        let Some(session) = session else { return Ok(None) };
        let Session { client, under_way, .. } = &mut **session;
        loop {
            if let Some((stream, left, fin)) = *under_way {
                let (now, later) = input.split_at(left);
                let mut rest = now;
                let event = client.next(stream, &mut rest, fin).map_err(|error| close(&error, out))?;
                // The rest of this stream's bytes is what is left of the input before the others.
                *input = &input[now.len() - rest.len()..];
                let Some(event) = event else {
                    *under_way = None;
                    *input = later;
                    continue;
                };
                *under_way = Some((stream, rest.len(), fin));
                match on_event(event, responses, out) {
                    Some(event) => return Ok(Some(event)),
                    None => continue,
                }
            }
            // The driver never cuts a frame.
            let Some((header, rest)) = input.split_first_chunk::<HEADER>() else { return Ok(None) };
            let Some(header) = Header::of(header) else { return Err("not the frames of a driver".into()) };
            *input = rest;
            match header.kind {
                Kind::Stream | Kind::StreamFin => {
                    *under_way = Some((header.stream, header.length as usize, header.kind == Kind::StreamFin));
                }
                Kind::MaxStreams => return Ok(Some(Event::Streams(self.streams.min(header.stream as u32)))),
                Kind::ResetStream => {
                    let code = take_code(header, input);
                    let event = client.reset(header.stream, code).map_err(|error| close(&error, out))?;
                    if let Some(event) = event.and_then(|event| on_event(event, responses, out)) {
                        return Ok(Some(event));
                    }
                }
                // A server may not want the rest of a request to which it responds (RFC 9114 section 4.1).
                Kind::StopSending | Kind::Close => {
                    take_code(header, input);
                }
            }
        }
    }

    fn end_of_input(&self, session: &mut Self::Session) -> Result<u32, Option<Violation>> {
        let gone = session.as_ref().is_some_and(|session| session.client.goaway());
        Err(gone.then(|| "the peer went away (GOAWAY)".into()))
    }

    fn cancel(&self, session: &mut Self::Session, stream: u32, out: &mut Vec<u8>) -> bool {
        if let Some(id) = session.as_mut().and_then(|session| session.client.cancel(stream)) {
            quic::put_give_up(out, id, Code::REQUEST_CANCELLED.0);
        }
        true
    }

    fn close(&self, session: &mut Self::Session, out: &mut Vec<u8>) {
        if let Some(session) = session {
            let mut bytes = Vec::new();
            session.client.go_away(&mut bytes);
            quic::put(out, CONTROL, Kind::Stream, &bytes);
            quic::put_close(out, Code::NO_ERROR.0, "");
        }
    }
}

/// The peer broke the protocol: it is told with what code.
#[cold]
fn close(error: &ConnectionError, out: &mut Vec<u8>) -> String {
    quic::put_close(out, error.code.0, &error.to_string());
    format!("not HTTP/3: {error}")
}

/// Takes the payload of a frame that is not of a stream, and returns the code with which it begins.
fn take_code(header: Header, input: &mut &[u8]) -> u64 {
    let (payload, rest) = input.split_at_checked(header.length as usize).unwrap_or((input, &[]));
    *input = rest;
    quic::code(payload)
}

/// Feeds an event to its response. Returns what concerns the worker of it.
#[inline]
fn on_event(event: ClientEvent<'_>, responses: &mut Responses<'_>, out: &mut Vec<u8>) -> Option<Event> {
    match event {
        ClientEvent::Data { tag, bytes } => responses.of(tag).body(bytes),
        ClientEvent::Head { tag, head } => on_head(responses, tag, head),
        ClientEvent::Informational { tag, .. } => responses.of(tag).begun(),
        ClientEvent::Trailers { tag, headers } => responses.of(tag).trailers(headers.iter()),
        ClientEvent::End { tag } => return Some(Event::Complete { stream: tag, reusable: true }),
        ClientEvent::Reset { tag, id, cause } => {
            return Some(match cause {
                // The peer never processed it, so that it can be sent elsewhere (RFC 9114 section 5.2).
                ResetCause::GoneAway => {
                    quic::put_give_up(out, id, Code::REQUEST_CANCELLED.0);
                    Event::Unprocessed { stream: tag }
                }
                ResetCause::Peer(_) => failed(responses, tag, ErrorKind::StreamReset, cause),
                ResetCause::Malformed(_) => {
                    quic::put_give_up(out, id, cause.code().0);
                    failed(responses, tag, ErrorKind::Protocol, cause)
                }
            });
        }
        ClientEvent::Settings => {}
        ClientEvent::GoAway => return Some(Event::GoAway),
    }
    None
}
