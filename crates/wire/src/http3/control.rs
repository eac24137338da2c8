//! The streams that are no request's: the control stream with its SETTINGS (RFC 9114 sections 6.2, 7.2.4), and those of QPACK
//! (RFC 9204 section 4.2), which have next to nothing to say where the table has no room.

use super::conn::{Conn, Event, Read};
use super::frame::{self, Found, Framer, Payload, Take, kind};
use super::{Violation, qpack};

/// Types of unidirectional streams.
mod stream_type {
    pub(super) const CONTROL: u64 = 0;
    pub(super) const PUSH: u64 = 1;
    pub(super) const ENCODER: u64 = 2;
    pub(super) const DECODER: u64 = 3;
}

/// Settings.
mod setting {
    pub(super) const MAX_FIELD_SECTION_SIZE: u64 = 6;

    /// Those that HTTP/2 had and HTTP/3 forbids (RFC 9114 section 7.2.4.1, and 0 in section 11.2.2).
    pub(super) fn is_of_http2(id: u64) -> bool {
        matches!(id, 0 | 2..=5)
    }
}

/// Streams of the peer that may be open at a time. It needs three; some are of types that exist for practice only.
const MOST: usize = 64;
/// The largest frame of a control stream that is read, bytes.
const LARGEST: u64 = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    /// Its type has not come.
    Untold,
    Control,
    Encoder,
    Decoder,
    /// Dropped (RFC 9114 section 6.2).
    Unknown,
}

/// A stream of the peer's.
#[derive(Debug)]
struct Incoming {
    id: u64,
    is: Type,
    framer: Framer,
}

/// The peer's streams that are no requests', and what they said.
#[derive(Debug, Default)]
pub(super) struct Control {
    streams: Vec<Incoming>,
    settled: bool,
    /// The last GOAWAY's ID.
    last_goaway: Option<u64>,
    most_pushes: u64,
}

impl Conn {
    /// Writes the beginning of our control stream.
    pub(super) fn start(&mut self, out: &mut Vec<u8>) {
        let mut settings = Vec::new();
        frame::put_number(&mut settings, setting::MAX_FIELD_SECTION_SIZE);
        frame::put_number(&mut settings, u64::from(self.own.limits.header_list));
        frame::put_number(out, stream_type::CONTROL);
        frame::put(out, kind::SETTINGS, &settings);
    }

    /// Announces that no more requests are accepted, or that none follow.
    pub(super) fn go_away(&mut self, out: &mut Vec<u8>) {
        if self.leaving || self.has_failed() {
            return;
        }
        self.leaving = true;
        let mut payload = Vec::new();
        // A client names a push, and accepts none.
        frame::put_number(&mut payload, if self.server { self.next_id } else { 0 });
        frame::put(out, kind::GOAWAY, &payload);
    }

    /// Bytes of a stream that is no request's.
    #[cold]
    pub(super) fn read_control_streams(&mut self, id: u64, input: &mut &[u8], fin: bool) -> Read<'static> {
        let at = match self.control.streams.iter().position(|stream| stream.id == id) {
            Some(at) => at,
            None if self.control.streams.len() == MOST => return Err(Violation::TooManyStreams),
            // Its end has been told, or it ended as soon as it began.
            None if input.is_empty() => return Ok(None),
            None => {
                self.control.streams.push(Incoming { id, is: Type::Untold, framer: Framer::new() });
                self.control.streams.len() - 1
            }
        };
        if self.control.streams[at].is == Type::Untold {
            let Some(number) = self.control.streams[at].framer.number(input) else {
                return self.end_or_more(id, fin);
            };
            let is = self.stream_type(number)?;
            if is != Type::Unknown && self.control.streams.iter().any(|stream| stream.is == is) {
                return Err(Violation::RepeatedStream);
            }
            self.control.streams[at].is = is;
        }
        match self.control.streams[at].is {
            Type::Control => {
                if let Some(event) = self.read_control(at, input)? {
                    return Ok(Some(event));
                }
            }
            Type::Encoder => qpack::check_encoder(input)?,
            Type::Decoder => qpack::check_decoder(&mut self.control.streams[at].framer, input)?,
            Type::Unknown | Type::Untold => *input = &[],
        }
        self.end_or_more(id, fin)
    }

    fn stream_type(&self, number: u64) -> Result<Type, Violation> {
        match number {
            stream_type::CONTROL => Ok(Type::Control),
            stream_type::PUSH if self.server => Err(Violation::ClientPush),
            stream_type::PUSH => Err(Violation::Push),
            stream_type::ENCODER => Ok(Type::Encoder),
            stream_type::DECODER => Ok(Type::Decoder),
            _ => Ok(Type::Unknown),
        }
    }

    fn end_or_more(&mut self, id: u64, fin: bool) -> Read<'static> {
        if fin {
            self.end_control_stream(id)?;
        }
        Ok(None)
    }

    /// A stream that is no request's ends.
    pub(super) fn end_control_stream(&mut self, id: u64) -> Result<(), Violation> {
        if let Some(at) = self.control.streams.iter().position(|stream| stream.id == id) {
            if !matches!(self.control.streams.swap_remove(at).is, Type::Unknown | Type::Untold) {
                return Err(Violation::ClosedCriticalStream);
            }
            self.on_idle_frame()?;
        }
        Ok(())
    }

    fn read_control(&mut self, at: usize, input: &mut &[u8]) -> Read<'static> {
        loop {
            match self.control.streams[at].framer.next(input) {
                Found::More | Found::Piece(_) => return Ok(None),
                Found::Head { kind, length } => {
                    let take = self.on_control_frame(kind, length)?;
                    self.control.streams[at].framer.take(take);
                }
                Found::Whole(kind, payload) => {
                    let event = self.on_payload(kind, payload.bytes());
                    if let Payload::Kept(buffer) = payload {
                        self.control.streams[at].framer.give_back(buffer);
                    }
                    if let Some(event) = event? {
                        return Ok(Some(event));
                    }
                }
            }
        }
    }

    fn on_control_frame(&mut self, kind: u64, length: u64) -> Result<Take, Violation> {
        if !self.control.settled && kind != kind::SETTINGS {
            return Err(Violation::NoSettings);
        }
        match kind {
            kind::SETTINGS if self.control.settled => return Err(Violation::UnexpectedFrame(kind)),
            kind::MAX_PUSH_ID if !self.server => return Err(Violation::UnexpectedFrame(kind)),
            kind::SETTINGS => {}
            kind::GOAWAY | kind::MAX_PUSH_ID | kind::CANCEL_PUSH => self.on_idle_frame()?,
            kind::DATA | kind::HEADERS | kind::PUSH_PROMISE => return Err(Violation::UnexpectedFrame(kind)),
            _ if kind::is_of_http2(kind) => return Err(Violation::UnexpectedFrame(kind)),
            _ => {
                self.on_idle_frame()?;
                return Ok(Take::Nothing);
            }
        }
        if length > LARGEST { Err(Violation::FrameTooLarge(length)) } else { Ok(Take::Whole) }
    }

    fn on_payload(&mut self, kind: u64, payload: &[u8]) -> Read<'static> {
        if kind == kind::SETTINGS {
            check_settings(payload)?;
            self.control.settled = true;
            return Ok(Some(Event::Settings));
        }
        let mut rest = payload;
        let id = frame::take_number(&mut rest).filter(|_| rest.is_empty()).ok_or(Violation::FrameSize)?;
        match kind {
            kind::GOAWAY => {
                if self.control.last_goaway.is_some_and(|last| id > last) || (!self.server && id & 3 != 0) {
                    return Err(Violation::BadGoAway);
                }
                self.control.last_goaway = Some(id);
                if !self.server {
                    (self.goaway, self.gone) = (Some(id), true);
                }
                Ok(Some(Event::GoAway))
            }
            kind::MAX_PUSH_ID if id >= self.control.most_pushes => {
                self.control.most_pushes = id;
                Ok(None)
            }
            // Nobody promised a push.
            _ => Err(Violation::BadPushId),
        }
    }
}

/// Checks the peer's SETTINGS. Nothing in them changes what we send: we use no table, and the limit on field sections is advice.
fn check_settings(payload: &[u8]) -> Result<(), Violation> {
    let mut rest = payload;
    while !rest.is_empty() {
        let before = &payload[..payload.len() - rest.len()];
        let id = frame::take_number(&mut rest).ok_or(Violation::FrameSize)?;
        frame::take_number(&mut rest).ok_or(Violation::FrameSize)?;
        if setting::is_of_http2(id) || settings(before).any(|earlier| earlier == id) {
            return Err(Violation::BadSetting(id));
        }
    }
    Ok(())
}

/// The settings in a payload that is whole.
fn settings(mut payload: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let id = frame::take_number(&mut payload)?;
        frame::take_number(&mut payload)?;
        Some(id)
    })
}
