//! One request of a stream, and the ways in which it is answered.

use std::rc::Rc;
use std::time::Instant;

use weir_wire::http2::{Body, Code, EncodeError, Output, Prepared, RequestHead, SendError, SendStatus, Server, Stream};

use super::out::Out;
use super::{Pending, Phase, State, Two};
use crate::answer::{Given, Role, false_length};
use crate::desk::Desk;
use crate::fault::Fault;
use crate::line::Line;
use crate::payload::MAX_PAYLOAD;
use crate::resolve::{self, Resolved, Source};
use crate::spoil::Pace;

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) stream: Stream,
    pub(super) resolved: Rc<Resolved>,
    /// What it gives to its answer.
    pub(super) given: Given,
    pub(super) role: Role,
    /// Its body cannot be echoed.
    pub(super) too_large: bool,
    /// Bytes of the body of its answer; known once that is written.
    pub(super) body_length: u64,
    head_only: bool,
}

/// An answer that is let out bit by bit.
#[derive(Debug)]
pub(super) struct Slow {
    body: Bytes,
    at: usize,
    step: usize,
    /// By the clock, or as room comes.
    pace: Option<Pace>,
    /// The peer has no window for the last piece.
    held: bool,
}

impl Slow {
    fn new(body: Bytes, pace: Option<Pace>) -> Slow {
        let step = pace.as_ref().map_or(POUR, Pace::step);
        Slow { body, at: 0, step, pace, held: false }
    }

    /// Whether it waits for the peer's window.
    pub(super) fn is_held(&self) -> bool {
        self.held
    }
}

/// A body.
#[derive(Debug)]
enum Bytes {
    Own(Vec<u8>),
    Static(&'static [u8]),
}

/// Bytes let out at a time as room comes.
const POUR: usize = 64 << 10;

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

impl Request {
    /// From its head.
    pub(super) fn new(desk: &mut Desk, stream: Stream, head: &RequestHead<'_>) -> Request {
        let resolved = desk.cache.resolve(head.path);
        let role = if resolved.own { Role::Own } else { Role::Counted };
        let given = match resolved.source {
            Source::Echo => Given::begin(desk.buffer(), head.headers.get("content-type").unwrap_or_default()),
            Source::Headers => {
                let mut given = Given::begin(desk.buffer(), b"");
                write_head(&mut given, head);
                given
            }
            Source::Fixed | Source::Counters => Given::default(),
        };
        let too_large = resolved.source == Source::Echo && head.length.is_some_and(|n| n > MAX_PAYLOAD as u64);
        let head_only = head.method == b"HEAD";
        Request { stream, resolved, given, role, too_large, body_length: 0, head_only }
    }

    /// A piece of its body, kept if there is room for so many bytes more.
    pub(super) fn body(&mut self, piece: &[u8], room: usize) {
        if self.resolved.source != Source::Echo || self.too_large {
            return;
        }
        if piece.len() <= room {
            self.given.push(piece);
        } else {
            // What follows is read and dropped.
            self.too_large = true;
            self.given = Given::default();
        }
    }

    /// Whether its answer is too large to be copied at once.
    pub(super) fn is_large(&self) -> bool {
        self.resolved.source == Source::Fixed && self.resolved.is_large() && !self.head_only
    }

    /// Answers it in the usual way, and learns the length of the body.
    #[inline]
    pub(super) fn answer(
        &mut self,
        server: &mut Server,
        desk: &Desk,
        out: &mut impl Output,
    ) -> Result<SendStatus, SendError> {
        let resolved = &self.resolved;
        if resolved.source == Source::Fixed {
            let body = match &resolved.body {
                resolve::Body::Copied(bytes) => Body::Copied(bytes),
                resolve::Body::Static(bytes) => Body::Static(bytes),
            };
            self.body_length = if self.head_only { 0 } else { body.len() as u64 };
            return server.answer(self.stream, resolved.two_usual(), body, out);
        }
        let counters;
        let (content_type, body) = match resolved.source {
            Source::Counters => {
                counters = desk.counters_page();
                (resolved.content_type, counters.as_slice())
            }
            _ => (self.given.content_type().unwrap_or(resolved.content_type), self.given.body()),
        };
        let body = if resolve::bodiless(resolved.plan.status) || resolved.plan.status == 205 { &[] } else { body };
        self.body_length = if self.head_only { 0 } else { body.len() as u64 };
        let headers: [(&str, &[u8]); 2] =
            [("server", resolve::SERVER.as_bytes()), ("content-type", content_type.as_bytes())];
        let status = resolved.plan.status;
        let sent = server.answer_with(self.stream, status, &headers, Body::Copied(body), out);
        if sent == Err(SendError::BadValue) {
            let headers: [(&str, &[u8]); 1] = [("server", resolve::SERVER.as_bytes())];
            return server.answer_with(self.stream, status, &headers, Body::Copied(body), out);
        }
        sent
    }

    /// The answer in its parts: a head that claims this length or the true one, and the body.
    fn parts(&self, desk: &Desk, fault: Option<Fault>) -> Result<(Prepared, Bytes), EncodeError> {
        let resolved = &self.resolved;
        let body = match resolved.source {
            Source::Fixed => match &resolved.body {
                resolve::Body::Copied(bytes) => Bytes::Own(bytes.to_vec()),
                resolve::Body::Static(bytes) => Bytes::Static(bytes),
            },
            Source::Counters => Bytes::Own(desk.counters_page()),
            Source::Echo | Source::Headers => Bytes::Own(self.given.body().to_vec()),
        };
        let length = body.len() as u64;
        let content_type = self.given.content_type().unwrap_or(resolved.content_type);
        let head = resolved.two_head(content_type, Some(false_length(fault, length).unwrap_or(length)))?;
        let body = if self.head_only || resolve::bodiless(resolved.plan.status) { Bytes::Static(&[]) } else { body };
        Ok((head, body))
    }
}

/// The head of a request, as `/headers` shows it.
fn write_head(given: &mut Given, head: &RequestHead<'_>) {
    let pseudo = [
        (&b":method"[..], head.method),
        (b":scheme", head.scheme),
        (b":authority", head.authority),
        (b":path", head.path),
    ];
    for (name, value) in pseudo.into_iter().chain(head.headers.iter()) {
        for piece in [name, b": ", value, b"\r\n"] {
            given.push(piece);
        }
    }
}

impl Two {
    /// Answers with a fault, in pieces, or for the last time.
    #[cold]
    pub(super) fn answer_specially<L: Line>(
        &mut self,
        out: &mut Out<'_, L>,
        desk: &mut Desk,
        mut request: Request,
        mut fault: Option<Fault>,
    ) {
        if let Some(fault) = fault {
            desk.counters().fault(fault.kind());
        }
        if let Some(Fault::Status(status)) = fault {
            request.resolved = Rc::new(Resolved::status_page(status));
            fault = None;
        }
        let closes = request.resolved.plan.close;
        let Ok((head, body)) = request.parts(desk, fault) else {
            // A content type that cannot be sent: the stream fails, and nothing else.
            self.server.reset(request.stream, Code::INTERNAL_ERROR, out);
            return self.lost(&request);
        };
        let (stream, half) = (request.stream, body.len() / 2);
        match fault {
            None | Some(Fault::Status(_)) if closes && self.state == State::Open => {
                self.server.go_away(out);
                self.state = State::Leaving;
                self.begin(out, desk, request, &head, Slow::new(body, None));
            }
            None | Some(Fault::Status(_)) | Some(Fault::Length { .. }) => {
                self.begin(out, desk, request, &head, Slow::new(body, None));
            }
            Some(Fault::Drip(rate)) => {
                self.begin(out, desk, request, &head, Slow::new(body, Some(Pace::new(rate))));
            }
            Some(Fault::Reset { middle }) => {
                if middle == Some(true) && self.server.head(stream, &head, false, out).is_ok() {
                    let _ = self.server.data(stream, body.part(0, half), false, out);
                }
                self.server.reset(stream, Code::INTERNAL_ERROR, out);
                self.lost(&request);
            }
            Some(Fault::Close) => {
                if self.server.head(stream, &head, false, out).is_ok() {
                    let _ = self.server.data(stream, body.part(0, half), false, out);
                }
                self.lost(&request);
                self.server.go_away(out);
                self.drop_all(desk);
                self.state = self.state.max(State::Leaving);
            }
            Some(Fault::Stall) => {
                // Without a body the head would be all, so it does not come.
                if body.len() > 0 {
                    let _ = self.server.head(stream, &head, false, out);
                }
                self.keep(Pending { request, phase: Phase::Stalled, timer: None });
            }
        }
    }

    fn begin<L: Line>(
        &mut self,
        out: &mut Out<'_, L>,
        desk: &mut Desk,
        mut request: Request,
        head: &Prepared,
        slow: Slow,
    ) {
        request.body_length = slow.body.len() as u64;
        let empty = slow.body.len() == 0;
        match self.server.head(request.stream, head, empty, out) {
            Ok(SendStatus::All) if empty => self.wrote(desk, request),
            Ok(_) if empty => self.keep(Pending { request, phase: Phase::Blocked, timer: None }),
            Ok(_) => self.let_out(out, desk, request, Box::new(slow)),
            Err(_) => self.lost(&request),
        }
    }

    /// Lets out what is due of an answer, as far as there is room.
    pub(super) fn let_out<L: Line>(
        &mut self,
        out: &mut Out<'_, L>,
        desk: &mut Desk,
        request: Request,
        mut slow: Box<Slow>,
    ) {
        let stream = request.stream;
        let now = slow.pace.as_ref().map(|_| Instant::now());
        slow.held = false;
        loop {
            if let (Some(pace), Some(now)) = (&slow.pace, now)
                && pace.next() > now
            {
                let timer = Some(self.set_timer(desk, pace.next(), stream));
                return self.keep(Pending { request, phase: Phase::Slow(slow), timer });
            }
            if !self.has_room(out) {
                self.no_room.push_back(stream);
                return self.keep(Pending { request, phase: Phase::Slow(slow), timer: None });
            }
            let to = (slow.at + slow.step).min(slow.body.len());
            let ends = to == slow.body.len();
            let sent = self.server.data(stream, slow.body.part(slow.at, to), ends, out);
            slow.at = to;
            if let Some(pace) = &mut slow.pace {
                pace.advance();
            }
            match sent {
                Ok(SendStatus::All) if ends => return self.wrote(desk, request),
                Ok(SendStatus::Waiting) if ends => {
                    return self.keep(Pending { request, phase: Phase::Blocked, timer: None });
                }
                Ok(SendStatus::Waiting) => {
                    // Goes on when that has left: what waits inside is one piece, and not all of a body.
                    slow.held = true;
                    return self.keep(Pending { request, phase: Phase::Slow(slow), timer: None });
                }
                Ok(SendStatus::All) => {}
                Err(_) => return self.lost(&request),
            }
        }
    }
}
