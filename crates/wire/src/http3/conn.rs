//! What both halves of a connection share: bytes of a stream in, events out. `client` and `server` build on it.

use super::control::Control;
use super::frame::{Found, Payload, Take, kind};
use super::section::Section;
use super::streams::{Streams, is};
use super::{Code, ConnectionError, Options, ResetCause, StreamError, Violation};
use crate::http2::message::{ANY, Kind, Message};
use crate::stream_table::Removed;

/// An event on a connection. The content of a head is in [`Conn::section`].
#[derive(Debug)]
pub(super) enum Event<'i> {
    Settings,
    Interim { tag: u32, status: u16 },
    Head { slot: u32, id: u64, tag: u32, ends: bool },
    Data { slot: u32, id: u64, tag: u32, bytes: &'i [u8] },
    Trailers { tag: u32 },
    End { slot: u32, id: u64, tag: u32 },
    Reset { slot: u32, id: u64, tag: u32, cause: ResetCause },
    Malformed { id: u64, fault: StreamError },
    Refused { id: u64 },
    GoAway,
}

/// What reading comes to: at most one event.
pub(super) type Read<'i> = Result<Option<Event<'i>>, Violation>;

/// A connection.
#[derive(Debug)]
pub(super) struct Conn {
    /// The half that requests come to.
    pub(super) server: bool,
    pub(super) own: Options,
    pub(super) section: Section,
    pub(super) streams: Streams,
    pub(super) control: Control,
    /// The first request that is too late: all from this ID on will not be processed (client).
    pub(super) goaway: Option<u64>,
    /// Streams that GOAWAY excluded have to be reported.
    pub(super) gone: bool,
    /// GOAWAY was sent.
    pub(super) leaving: bool,
    /// The ID after the last request's (server).
    pub(super) next_id: u64,
    /// The stream that is over, whatever more of it is asked for (server).
    pub(super) over: Option<u64>,
    idle_frames: u32,
    resets: u32,
    failed: Option<ConnectionError>,
}

impl Conn {
    pub(super) fn new(own: &Options, server: bool) -> Conn {
        let own = Options { keep_headers: own.keep_headers || server, ..*own };
        Conn {
            section: Section::new(own.keep_headers, own.limits),
            streams: Streams::new(),
            control: Control::default(),
            goaway: None,
            gone: false,
            leaving: false,
            next_id: 0,
            over: None,
            idle_frames: 0,
            resets: 0,
            failed: None,
            server,
            own,
        }
    }

    /// Whether no new request can be sent because one side has sent GOAWAY, or the connection failed.
    pub(super) fn is_closing(&self) -> bool {
        self.leaving || self.goaway.is_some() || self.failed.is_some()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// The next event of a stream's bytes.
    #[inline]
    pub(super) fn next<'i>(
        &mut self,
        id: u64,
        input: &mut &'i [u8],
        fin: bool,
    ) -> Result<Option<Event<'i>>, ConnectionError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if self.gone
            && let Some(event) = self.next_gone()
        {
            return Ok(Some(event));
        }
        let read = match (id & 3, self.server) {
            (0, _) => self.read_request_stream(id, input, fin),
            (2, true) | (3, false) => self.read_control_streams(id, input, fin),
            (1, false) => Err(Violation::ServerRequest),
            _ => Err(Violation::WrongStream),
        };
        read.map_err(|violation| self.fail(violation))
    }

    /// Ends the connection.
    #[cold]
    pub(super) fn fail(&mut self, violation: Violation) -> ConnectionError {
        *self.failed.get_or_insert(ConnectionError { code: violation.code(), violation })
    }

    /// A request that GOAWAY excluded.
    #[cold]
    fn next_gone(&mut self) -> Option<Event<'static>> {
        let first = self.goaway.unwrap_or(u64::MAX);
        let slot = self.streams.search(|stream| stream.id >= first);
        self.gone = slot.is_some();
        slot.map(|slot| self.lose(slot, ResetCause::GoneAway))
    }

    /// The peer has reset a stream, or (server) does not want the rest of a response.
    pub(super) fn on_reset(&mut self, id: u64, code: Code) -> Result<Option<Event<'static>>, ConnectionError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if id & 3 != 0 {
            return self.end_control_stream(id).map_err(|violation| self.fail(violation)).map(|()| None);
        }
        let Some(slot) = self.streams.find(id) else { return Ok(None) };
        self.resets += 1;
        if self.server && self.resets > self.own.limits.resets {
            return Err(self.fail(Violation::ResetFlood));
        }
        Ok(Some(self.lose(slot, ResetCause::Peer(code))))
    }

    /// Forgets a stream.
    #[cold]
    pub(super) fn lose(&mut self, slot: u32, cause: ResetCause) -> Event<'static> {
        let Removed { id, tag } = self.streams.remove(slot);
        self.over = Some(id);
        Event::Reset { slot, id, tag, cause }
    }

    #[cold]
    fn malformed(&mut self, slot: u32, fault: StreamError) -> Event<'static> {
        self.lose(slot, ResetCause::Malformed(fault))
    }

    /// A stream ends normally.
    #[inline]
    pub(super) fn ended_well(&mut self, slot: u32) {
        self.over = Some(self.streams.remove(slot).id);
        self.resets = self.resets.saturating_sub(1);
    }

    /// Bytes of a request's stream.
    #[inline]
    fn read_request_stream<'i>(&mut self, id: u64, input: &mut &'i [u8], fin: bool) -> Read<'i> {
        let slot = match self.streams.find(id) {
            Some(slot) => slot,
            // The client gave up the request, or all of it has been said.
            None if !self.server || self.over == Some(id) => {
                *input = &[];
                return Ok(None);
            }
            None => {
                self.next_id = self.next_id.max(id.saturating_add(4));
                if self.leaving {
                    *input = &[];
                    self.over = Some(id);
                    return Ok(Some(Event::Refused { id }));
                }
                self.streams.add(id, 0, ANY, 0)
            }
        };
        loop {
            match self.streams.at(slot).framer.next(input) {
                Found::More => break,
                Found::Piece(bytes) => {
                    let tag = self.streams.at(slot).tag;
                    return Ok(Some(Event::Data { slot, id, tag, bytes }));
                }
                Found::Whole(_, payload) => {
                    let ends = fin && input.is_empty();
                    let event = self.on_section(slot, id, ends, &payload);
                    if let Payload::Kept(buffer) = payload
                        && let Some(stream) = self.streams.get(slot, id)
                    {
                        stream.framer.give_back(buffer);
                    }
                    if let Some(event) = event? {
                        return Ok(Some(event));
                    }
                }
                Found::Head { kind, length } => {
                    if let Some(fault) = self.on_frame(slot, kind, length)? {
                        return Ok(Some(self.malformed(slot, fault)));
                    }
                }
            }
        }
        if fin { self.on_fin(slot, id) } else { Ok(None) }
    }

    /// A frame begins.
    #[inline]
    fn on_frame(&mut self, slot: u32, kind: u64, length: u64) -> Result<Option<StreamError>, Violation> {
        let limit = self.own.limits.header_list;
        let stream = self.streams.at(slot);
        let take = match kind {
            kind::DATA => {
                if !stream.is(is::HEADED) || stream.is(is::TRAILED) {
                    return Err(Violation::UnexpectedFrame(kind));
                }
                if stream.left != ANY {
                    let Some(left) = stream.left.checked_sub(length) else {
                        return Ok(Some(StreamError::WrongLength));
                    };
                    stream.left = left;
                }
                if length > 0 {
                    self.idle_frames = 0;
                    stream.framer.take(Take::Pieces);
                    return Ok(None);
                }
                Take::Pieces
            }
            kind::HEADERS if stream.is(is::TRAILED) => return Err(Violation::UnexpectedFrame(kind)),
            kind::HEADERS if length > u64::from(limit) => return Ok(Some(StreamError::TooLarge(limit))),
            kind::HEADERS => {
                stream.framer.take(Take::Whole);
                return Ok(None);
            }
            kind::PUSH_PROMISE if !self.server => return Err(Violation::Push),
            kind::CANCEL_PUSH | kind::SETTINGS | kind::PUSH_PROMISE | kind::GOAWAY | kind::MAX_PUSH_ID => {
                return Err(Violation::UnexpectedFrame(kind));
            }
            _ if kind::is_of_http2(kind) => return Err(Violation::UnexpectedFrame(kind)),
            _ => Take::Nothing,
        };
        stream.framer.take(take);
        self.on_idle_frame()?;
        Ok(None)
    }

    /// A whole field section.
    #[inline]
    fn on_section(
        &mut self,
        slot: u32,
        id: u64,
        ends: bool,
        payload: &Payload<'_>,
    ) -> Result<Option<Event<'static>>, Violation> {
        let stream = self.streams.at(slot);
        let kind = match stream.is(is::HEADED) {
            true => Kind::Trailers,
            false if self.server => Kind::Request,
            false => Kind::Response,
        };
        if let Err(fault) = self.section.read(kind, payload)? {
            if kind != Kind::Request {
                return Ok(Some(self.malformed(slot, fault)));
            }
            self.ended_badly(slot)?;
            return Ok(Some(Event::Malformed { id, fault }));
        }
        let stream = self.streams.at(slot);
        let Message { status, length, is_head, .. } = self.section.message;
        let tag = stream.tag;
        match kind {
            Kind::Trailers => {
                stream.state |= is::TRAILED;
                return Ok((!self.server).then_some(Event::Trailers { tag }));
            }
            Kind::Response if status < 200 => {
                self.on_idle_frame()?;
                return Ok(Some(Event::Interim { tag, status }));
            }
            // These may have a length and no body (RFC 9110 section 8.6).
            Kind::Response if stream.is(is::BODILESS) || matches!(status, 204 | 304) => stream.left = 0,
            Kind::Response => stream.left = length,
            Kind::Request => {
                stream.left = length;
                stream.state |= if is_head { is::BODILESS } else { 0 };
            }
        }
        stream.state |= is::HEADED;
        self.idle_frames = 0;
        Ok(Some(Event::Head { slot, id, tag, ends }))
    }

    /// A malformed request: no stream is left of it.
    #[cold]
    fn ended_badly(&mut self, slot: u32) -> Result<(), Violation> {
        self.over = Some(self.streams.remove(slot).id);
        self.on_idle_frame()
    }

    /// The peer has finished a stream.
    #[inline]
    fn on_fin(&mut self, slot: u32, id: u64) -> Read<'static> {
        let stream = self.streams.at(slot);
        if stream.is(is::HEARD) {
            return Ok(None);
        }
        if !stream.framer.is_between() {
            return Err(Violation::TruncatedFrame);
        }
        if !stream.is(is::HEADED) {
            return Ok(Some(self.malformed(slot, StreamError::Incomplete)));
        }
        if !matches!(stream.left, 0 | ANY) {
            return Ok(Some(self.malformed(slot, StreamError::WrongLength)));
        }
        stream.state |= is::HEARD;
        let (tag, done) = (stream.tag, !self.server || stream.is(is::SENT));
        if done {
            self.ended_well(slot);
        }
        Ok(Some(Event::End { slot, id, tag }))
    }

    /// Counts a frame that makes no progress.
    #[inline]
    pub(super) fn on_idle_frame(&mut self) -> Result<(), Violation> {
        self.idle_frames += 1;
        if self.idle_frames > self.own.limits.idle_frames { Err(Violation::Flood) } else { Ok(()) }
    }
}
