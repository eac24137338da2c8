//! One request on a stream, and how its response is made.

use std::rc::Rc;

use weir_model::load::RESPONSE_HEADER;
use weir_wire::grpc;
use weir_wire::http2::{Body, EncodeError, Output, RequestHead, SendError, SendStatus, Stream};
use weir_wire::request_id::RequestId;

use super::output::FrameOutput;
use super::{Half, Http2, PendingRequest, Phase, State};
use crate::fault::Fault;
use crate::held::Room;
use crate::http::{HttpState, IdentifiedRequest};
use crate::payload::MAX_PAYLOAD;
use crate::request_check::BodyCheck;
use crate::resolve::{self, Resolved, Source};
use crate::response::{Echoed, Role, false_length};
use crate::response_faults::Pace;
use crate::stream::{MessageStream, Shape};
use crate::transport::Transport;

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) stream: Stream,
    pub(super) resolved: Rc<Resolved>,
    /// What its response repeats.
    pub(super) echoed: Echoed,
    pub(super) role: Role,
    /// Its ID.
    pub(super) id: Option<RequestId>,
    /// The check of its body.
    pub(super) check: Option<Box<BodyCheck>>,
    /// Its body is too large to be echoed.
    pub(super) too_large: bool,
    /// Bytes of the response's body; known once that is written.
    pub(super) body_length: u64,
    /// When its client gives it up; `u64::MAX`: never. Only of a call.
    pub(super) deadline: u64,
    pub(super) head_only: bool,
}

/// A response that is sent in pieces.
#[derive(Debug)]
pub(super) struct PacedBody {
    content: Content,
    /// The peer's window has no room for the last piece.
    blocked: bool,
}

#[derive(Debug)]
enum Content {
    Bytes {
        body: Bytes,
        at: usize,
        step: usize,
        /// The pace by the clock; `None`: as room comes.
        pace: Option<Pace>,
    },
    Messages(MessageStream),
}

impl PacedBody {
    fn new(body: Bytes, pace: Option<Pace>) -> PacedBody {
        let step = pace.as_ref().map_or(PIECE, Pace::step);
        PacedBody { content: Content::Bytes { body, at: 0, step, pace }, blocked: false }
    }

    fn messages(messages: MessageStream) -> PacedBody {
        PacedBody { content: Content::Messages(messages), blocked: false }
    }

    /// Bytes of all of it.
    fn length(&self) -> u64 {
        match &self.content {
            Content::Bytes { body, .. } => body.len() as u64,
            Content::Messages(messages) => messages.shape().bytes(),
        }
    }

    /// When the next piece is due; `None`: now.
    fn next(&self) -> Option<u64> {
        match &self.content {
            Content::Bytes { pace, .. } => pace.as_ref().map(Pace::next),
            // Its status leaves at once.
            Content::Messages(messages) => (!messages.is_done()).then(|| messages.due()),
        }
    }

    /// What happens instead of it.
    fn fault(&self) -> Option<Fault> {
        match &self.content {
            Content::Bytes { .. } => None,
            Content::Messages(messages) => messages.fault(),
        }
    }

    /// Sends the next piece. Returns also whether it was the last. `scratch` may have old bytes.
    fn write_next(
        &mut self,
        server: &mut impl Half,
        stream: Stream,
        now: u64,
        scratch: &mut Vec<u8>,
        output: &mut impl Output,
    ) -> (Result<SendStatus, SendError>, bool) {
        match &mut self.content {
            Content::Bytes { body, at, step, pace } => {
                let to = (*at + *step).min(body.len());
                let ends = to == body.len();
                let sent = server.data(stream, body.part(*at, to), ends, output);
                *at = to;
                if let Some(pace) = pace {
                    pace.advance();
                }
                (sent, ends)
            }
            Content::Messages(messages) => {
                scratch.clear();
                if !messages.is_done() {
                    messages.write(now, scratch);
                }
                let done = messages.is_done();
                let Some(trailers) = messages.trailers() else {
                    return (server.data(stream, Body::Copied(scratch), done, output), done);
                };
                match server.data(stream, Body::Copied(scratch), false, output) {
                    Ok(SendStatus::All) if done => (server.trailers(stream, trailers, output), true),
                    sent => (sent, false),
                }
            }
        }
    }

    /// Bytes that it has written, where that may be less than all.
    fn written(&self) -> Option<u64> {
        match &self.content {
            Content::Bytes { .. } => None,
            Content::Messages(messages) => Some(messages.written()),
        }
    }

    /// The number of a stream.
    pub(super) fn stream_number(&self) -> Option<u64> {
        match &self.content {
            Content::Bytes { .. } => None,
            Content::Messages(messages) => Some(messages.id()),
        }
    }

    /// Whether it waits for the peer's window.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }
}

/// A body.
#[derive(Debug)]
enum Bytes {
    Own(Vec<u8>),
    Static(&'static [u8]),
}

/// Bytes sent at a time while room is limited.
const PIECE: usize = 64 << 10;

impl Bytes {
    fn len(&self) -> usize {
        match self {
            Bytes::Own(bytes) => bytes.len(),
            Bytes::Static(bytes) => bytes.len(),
        }
    }

    fn part(&self, from: usize, to: usize) -> Body<'_> {
        match self {
            Bytes::Own(bytes) => Body::Copied(&bytes[from..to]),
            Bytes::Static(bytes) => Body::Static(&bytes[from..to]),
        }
    }
}

/// The response to a request with this head, of those that its target has, and when its client gives it up; `u64::MAX`: never.
#[inline(never)]
fn choose(state: &HttpState, resolved: Rc<Resolved>, head: &RequestHead<'_>) -> (Rc<Resolved>, u64) {
    let resolved = resolved.chosen(|name| head.headers.get(name));
    if !resolved.plan.is_call() {
        return (resolved, u64::MAX);
    }
    let timeout = head.headers.get(grpc::TIMEOUT).and_then(grpc::parse_timeout);
    let deadline = timeout.map_or(u64::MAX, |timeout| state.clock.now() + timeout.as_nanos() as u64);
    let is_call = head.headers.get("content-type").is_some_and(grpc::is_grpc);
    (if is_call { resolved } else { Rc::new(Resolved::status_page(415)) }, deadline)
}

impl Request {
    /// Makes a request from its head.
    #[inline]
    pub(super) fn new(state: &mut HttpState, stream: Stream, head: &RequestHead<'_>) -> Request {
        let mut resolved = state.shared.cache.resolve(head.path);
        let mut deadline = u64::MAX;
        if !resolved.fixed {
            (resolved, deadline) = choose(state, resolved, head);
        }
        let role = if resolved.own { Role::Own } else { Role::Counted };
        let IdentifiedRequest { id, check } =
            if role == Role::Counted { state.identify_http2(head) } else { IdentifiedRequest::default() };
        let (mut echoed, mut too_large) = (Echoed::default(), false);
        if !resolved.fixed {
            let write_head = |echoed: &mut Echoed, room: &Room| write_head(echoed, room, head);
            echoed = state.begin_echo(&resolved, |name| head.headers.get(name), write_head);
            too_large = resolved.reads_request_body() && head.length.is_some_and(|n| n > MAX_PAYLOAD as u64);
        }
        let head_only = head.method == b"HEAD";
        Request { stream, resolved, echoed, role, id, check, too_large, body_length: 0, deadline, head_only }
    }

    /// Compares a piece of its body, and stores it if it is at most `room` bytes, and the worker has room for it.
    pub(super) fn body(&mut self, state: &HttpState, piece: &[u8], room: usize) {
        if let Some(check) = &mut self.check {
            state.shared.check.piece(check, piece);
        }
        if !self.resolved.reads_request_body() || self.too_large {
            return;
        }
        if piece.len() > room || !self.echoed.push(&state.shared.room, piece) {
            // The rest is read and dropped.
            self.too_large = true;
            self.echoed = Echoed::default();
        }
    }

    /// Whether its response is too large to be copied at once.
    pub(super) fn is_large(&self) -> bool {
        self.resolved.source == Source::Fixed && self.resolved.is_large() && !self.head_only
    }

    /// The messages that follow the head, if it is a stream.
    pub(super) fn messages(&self) -> Option<Shape> {
        let has_body = || !self.head_only && !resolve::bodiless(self.resolved.plan.status);
        self.resolved.plan.stream.filter(|_| self.resolved.source == Source::Stream && has_body())
    }

    /// Responds in the usual way, and records the length of the body.
    #[inline]
    pub(super) fn respond<H: Half>(
        &mut self,
        server: &mut H,
        state: &HttpState,
        output: &mut impl Output,
    ) -> Result<SendStatus, SendError> {
        let resolved = &self.resolved;
        let response = self.id.map(|id| state.response_to(id));
        let values = response.as_ref().map(|response| &response[..]);
        if resolved.source == Source::Fixed {
            let body = match &resolved.body {
                resolve::Body::Copied(bytes) => Body::Copied(bytes),
                resolve::Body::Static(bytes) => Body::Static(bytes),
            };
            self.body_length = if self.head_only { 0 } else { body.len() as u64 };
            return server.respond_filled(self.stream, H::usual(resolved), values.as_slice(), body, output);
        }
        let counters;
        let (content_type, body) = match resolved.source {
            Source::Counters => {
                counters = state.counters_page();
                (resolved.content_type, counters.as_slice())
            }
            _ => (self.echoed.content_type().unwrap_or(resolved.content_type), self.echoed.body()),
        };
        let body = if resolve::bodiless(resolved.plan.status) || resolved.plan.status == 205 { &[] } else { body };
        self.body_length = if self.head_only { 0 } else { body.len() as u64 };
        let (headers, count) = resolved.headers().http2(Some(content_type));
        let mut headers = headers.map(|(name, value)| (name, value.as_bytes()));
        headers[count] = (RESPONSE_HEADER, values.unwrap_or_default());
        // Without the ID, where there is none.
        let headers = &headers[..count + usize::from(values.is_some())];
        let status = resolved.plan.status;
        let sent = server.respond_with(self.stream, status, headers, Body::Copied(body), output);
        if sent == Err(SendError::BadValue) {
            return server.respond_with(self.stream, status, &headers[1..], Body::Copied(body), output);
        }
        sent
    }

    /// The parts of the response: a head with this length or the true one, and the body.
    fn parts<H: Half>(&self, state: &HttpState, fault: Option<Fault>) -> Result<(H::Prepared, Bytes), EncodeError> {
        let resolved = &self.resolved;
        let body = match resolved.source {
            Source::Fixed => match &resolved.body {
                resolve::Body::Copied(bytes) => Bytes::Own(bytes.to_vec()),
                resolve::Body::Static(bytes) => Bytes::Static(bytes),
            },
            Source::Stream => Bytes::Static(&[]),
            Source::Counters => Bytes::Own(state.counters_page()),
            Source::Echo | Source::Headers | Source::Request => Bytes::Own(self.echoed.body().to_vec()),
        };
        let length = body.len() as u64;
        let content_type = self.echoed.content_type().unwrap_or(resolved.content_type);
        let head = H::head(resolved, content_type, Some(false_length(fault, length).unwrap_or(length)))?;
        let body = if self.head_only || resolve::bodiless(resolved.plan.status) { Bytes::Static(&[]) } else { body };
        Ok((head, body))
    }
}

/// The head of a request, as `/headers` shows it.
fn write_head(echoed: &mut Echoed, room: &Room, head: &RequestHead<'_>) {
    let pseudo = [
        (&b":method"[..], head.method),
        (b":scheme", head.scheme),
        (b":authority", head.authority),
        (b":path", head.path),
    ];
    for (name, value) in pseudo.into_iter().chain(head.headers.iter()) {
        for piece in [name, b": ", value, b"\r\n"] {
            echoed.push(room, piece);
        }
    }
}

impl<H: Half> Http2<H> {
    /// Responds with a fault, in pieces, or as the last response.
    #[cold]
    pub(super) fn respond_specially<T: Transport>(
        &mut self,
        output: &mut FrameOutput<'_, T>,
        state: &mut HttpState,
        mut request: Request,
        mut fault: Option<Fault>,
    ) {
        if let Some(fault) = fault {
            state.counters().fault(fault.kind());
        }
        if let Some(Fault::Status(status)) = fault {
            request.resolved = Rc::new(Resolved::status_page(status));
            fault = None;
        }
        let closes = request.resolved.plan.close;
        if let Some(shape) = request.messages()
            && fault != Some(Fault::Reset { middle: Some(false) })
        {
            if closes && self.state == State::Open {
                self.server.go_away(output);
                self.state = State::Draining;
            }
            let nth = state.shared.next_stream();
            let messages = MessageStream::begin(shape, nth, request.id, fault, state.clock.now());
            let messages = messages.until(request.deadline);
            let resolved = Rc::clone(&request.resolved);
            return self.begin(output, state, request, H::usual(&resolved), PacedBody::messages(messages));
        }
        let response = request.id.map(|id| state.response_to(id));
        let values = response.as_ref().map(|response| &response[..]);
        let Ok((head, body)) = request.parts::<H>(state, fault) else {
            // The content type cannot be sent: only this stream fails.
            self.server.fail(request.stream, output);
            return self.abandon(&request);
        };
        let (stream, half) = (request.stream, body.len() / 2);
        match fault {
            None | Some(Fault::Status(_)) if closes && self.state == State::Open => {
                self.server.go_away(output);
                self.state = State::Draining;
                self.begin(output, state, request, &head, PacedBody::new(body, None));
            }
            // The last five are no faults of such a response, which is checked when faults are read.
            None
            | Some(
                Fault::Status(_)
                | Fault::Length { .. }
                | Fault::Error
                | Fault::Busy
                | Fault::Lose
                | Fault::Stale
                | Fault::Expire(_),
            ) => {
                self.begin(output, state, request, &head, PacedBody::new(body, None));
            }
            Some(Fault::Drip(rate)) => {
                self.begin(
                    output,
                    state,
                    request,
                    &head,
                    PacedBody::new(body, Some(Pace::new(rate, state.clock.now()))),
                );
            }
            Some(Fault::Reset { middle }) => {
                if middle == Some(true)
                    && self.server.head_filled(stream, &head, values.as_slice(), false, output).is_ok()
                {
                    let _ = self.server.data(stream, body.part(0, half), false, output);
                }
                self.end_early(output, state, request, Fault::Reset { middle });
            }
            Some(Fault::Close) => {
                if self.server.head_filled(stream, &head, values.as_slice(), false, output).is_ok() {
                    let _ = self.server.data(stream, body.part(0, half), false, output);
                }
                self.end_early(output, state, request, Fault::Close);
            }
            Some(Fault::Stall) => {
                // Without a body the head would be the whole response, so it is not sent.
                if body.len() > 0 {
                    let _ = self.server.head_filled(stream, &head, values.as_slice(), false, output);
                }
                self.end_early(output, state, request, Fault::Stall);
            }
        }
    }

    /// A response ends before its end, or stalls.
    fn end_early<T: Transport>(
        &mut self,
        output: &mut FrameOutput<'_, T>,
        state: &mut HttpState,
        request: Request,
        fault: Fault,
    ) {
        match fault {
            Fault::Stall => self.insert(PendingRequest { request, phase: Phase::Stalled, timer: None }),
            Fault::Close => {
                self.abandon(&request);
                self.server.go_away(output);
                self.drop_all(state);
                self.state = self.state.max(State::Draining);
            }
            _ => {
                self.server.fail(request.stream, output);
                self.abandon(&request);
            }
        }
    }

    fn begin<T: Transport>(
        &mut self,
        output: &mut FrameOutput<'_, T>,
        state: &mut HttpState,
        mut request: Request,
        head: &H::Prepared,
        paced: PacedBody,
    ) {
        request.body_length = paced.length();
        let empty = request.body_length == 0;
        let response = request.id.map(|id| state.response_to(id));
        let values = response.as_ref().map(|response| &response[..]);
        match self.server.head_filled(request.stream, head, values.as_slice(), empty, output) {
            Ok(SendStatus::All) if empty => self.finished(state, request),
            Ok(_) if empty => self.insert(PendingRequest { request, phase: Phase::Blocked, timer: None }),
            Ok(_) => self.write_body(output, state, request, Box::new(paced)),
            Err(_) => self.abandon(&request),
        }
    }

    /// Sends what is due of a response, as far as there is room.
    pub(super) fn write_body<T: Transport>(
        &mut self,
        output: &mut FrameOutput<'_, T>,
        state: &mut HttpState,
        mut request: Request,
        mut paced: Box<PacedBody>,
    ) {
        let stream = request.stream;
        // Only a pace needs the time.
        let now = paced.next().map_or(0, |_| state.clock.now());
        paced.blocked = false;
        loop {
            if let Some(next) = paced.next()
                && next > now
            {
                let timer = self.set_timer(state, next, stream);
                return self.insert(PendingRequest { request, phase: Phase::Paced(paced), timer });
            }
            if !self.has_room(output) {
                self.waiting_for_room.push_back(stream);
                return self.insert(PendingRequest { request, phase: Phase::Paced(paced), timer: None });
            }
            if let Some(fault) = paced.fault() {
                return self.end_early(output, state, request, fault);
            }
            let mut scratch = state.buffer();
            let (sent, ends) = paced.write_next(&mut self.server, stream, now, &mut scratch, output);
            state.give_back(scratch);
            if ends {
                request.body_length = paced.written().unwrap_or(request.body_length);
            }
            match sent {
                Ok(SendStatus::All) if ends => return self.finished(state, request),
                Ok(SendStatus::Waiting) if ends => {
                    return self.insert(PendingRequest { request, phase: Phase::Blocked, timer: None });
                }
                Ok(SendStatus::Waiting) => {
                    // Continues when that is sent: only one piece is buffered, and not the whole body.
                    paced.blocked = true;
                    return self.insert(PendingRequest { request, phase: Phase::Paced(paced), timer: None });
                }
                Ok(SendStatus::All) => {}
                Err(_) => return self.abandon(&request),
            }
        }
    }
}
