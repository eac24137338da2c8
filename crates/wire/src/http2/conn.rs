//! What both halves of a connection share: frames in, events out, settings, windows, the end. `client` and `server`
//! build on it.

use super::body::Output;
use super::fields::Fields;
use super::frame::{self, Found, Framer, HEAD, Head, flag, kind};
use super::hpack::{Encoder, TABLE_SIZE, Table};
use super::memo::Memo;
use super::message::{Kind, Message};
use super::send::Backlog;
use super::streams::{Streams, is};
use super::{Code, ConnectionError, Options, ResetCause, StreamError, Violation};

/// Window of a connection, and of streams before SETTINGS (RFC 9113 section 6.9.2).
pub(super) const FIRST_WINDOW: u32 = 65_535;
/// Largest frame before SETTINGS (section 6.5.2).
pub(super) const FIRST_MAX_FRAME: u32 = 16_384;
/// Largest window (section 6.9.1).
pub(super) const MAX_WINDOW: u32 = (1 << 31) - 1;

/// Bits of [`Conn::todo`]: events that need no input.
pub(super) mod todo {
    /// A DATA frame, or the end of a stream, is under way.
    pub(in crate::http2) const PAYLOAD: u8 = 1;
    /// Streams that GOAWAY excluded have to be reported.
    pub(in crate::http2) const GONE: u8 = 2;
    /// Bodies that waited have been sent.
    pub(in crate::http2) const FINISHED: u8 = 4;
}

/// The settings of the peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) stream_window: i32,
    pub(super) max_frame: u32,
    pub(super) max_streams: u32,
}

/// A DATA frame that is being read. All zero, with [`todo::PAYLOAD`] set: its stream ends.
#[derive(Debug, Default)]
pub(super) struct Payload {
    pub(super) slot: u32,
    /// 0: the data is discarded.
    pub(super) id: u32,
    pub(super) left: u32,
    pub(super) padding: u32,
    pub(super) ends: bool,
}

/// The result of reading a payload.
#[derive(Debug)]
pub(super) enum Step<'i> {
    Event(Event<'i>),
    /// All of the input was used.
    More,
    /// The payload is over.
    Done,
}

/// A header block that is not complete.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) stream: u32,
    pub(super) ends: bool,
    pub(super) bytes: Vec<u8>,
}

/// An event on a connection. The content of a head is in [`Conn::message`] and [`Conn::fields`].
#[derive(Debug)]
pub(super) enum Event<'i> {
    Settings,
    Interim { tag: u32, status: u16 },
    Head { slot: u32, id: u32, tag: u32, ends: bool },
    Data { slot: u32, id: u32, tag: u32, bytes: &'i [u8] },
    Trailers { tag: u32 },
    End { slot: u32, id: u32, tag: u32, sent: bool },
    Sent { slot: u32, id: u32 },
    Reset { slot: u32, id: u32, tag: u32, cause: ResetCause },
    Malformed { fault: StreamError },
    GoAway { code: Code },
}

/// What reading a frame comes to: at most one event.
pub(super) type FrameResult = Result<Option<Event<'static>>, Violation>;

/// A connection.
#[derive(Debug)]
pub(super) struct Conn {
    /// The half that requests come to.
    pub(super) server: bool,
    pub(super) own: Options,
    pub(super) peer: Peer,
    framer: Framer,
    pub(super) table: Table,
    pub(super) encoder: Encoder,
    pub(super) fields: Fields,
    pub(super) message: Message,
    /// The last block read, if reading it again would give the same result, which is in `message` and `fields`.
    pub(super) memo: Memo,
    /// It inserts into the table; and how many times it came again without that having been done.
    pub(super) memo_inserts: bool,
    pub(super) repeats: u32,
    pub(super) block: Option<Box<Block>>,
    pub(super) payload: Payload,
    pub(super) streams: Streams,
    pub(super) backlog: Option<Box<Backlog>>,
    /// Bytes that may be sent.
    pub(super) window: i32,
    /// Bytes received for which no WINDOW_UPDATE was sent.
    pub(super) received: u32,
    /// The client's last stream.
    pub(super) last: u32,
    /// Streams up to this number may be closed without the peer's knowledge: frames for them are dropped.
    pub(super) lenient: u32,
    /// The last stream that the peer's GOAWAY accepts, and why the peer goes.
    pub(super) goaway: Option<(u32, Code)>,
    pub(super) idle_frames: u32,
    pub(super) resets: u32,
    pub(super) todo: u8,
    pub(super) settings_seen: bool,
    pub(super) settings_acked: bool,
    /// GOAWAY was sent.
    pub(super) leaving: bool,
    /// The last stream that our GOAWAY accepted. A later one must not accept more (section 6.8).
    promised: u32,
    pub(super) failed: Option<ConnectionError>,
}

impl Conn {
    pub(super) fn new(own: &Options, server: bool) -> Conn {
        let own = Options {
            stream_window: own.stream_window.min(MAX_WINDOW),
            connection_window: own.connection_window.clamp(FIRST_WINDOW, MAX_WINDOW),
            max_frame: own.max_frame.clamp(FIRST_MAX_FRAME, (1 << 24) - 1),
            keep_headers: own.keep_headers || server,
            ..*own
        };
        let limit = own.limits.header_list;
        Conn {
            peer: Peer { stream_window: FIRST_WINDOW as i32, max_frame: FIRST_MAX_FRAME, max_streams: u32::MAX },
            framer: Framer::new(own.max_frame, limit.saturating_mul(2).max(FIRST_MAX_FRAME)),
            table: Table::new(TABLE_SIZE),
            encoder: Encoder::new(),
            fields: Fields::new(own.keep_headers, limit),
            message: Message::new(Kind::Trailers, own.limits),
            memo: Memo::default(),
            memo_inserts: false,
            repeats: 0,
            block: None,
            payload: Payload::default(),
            streams: Streams::new(),
            backlog: None,
            window: FIRST_WINDOW as i32,
            received: 0,
            last: 0,
            lenient: 0,
            goaway: None,
            idle_frames: 0,
            resets: 0,
            todo: 0,
            settings_seen: false,
            settings_acked: false,
            leaving: false,
            promised: u32::MAX,
            failed: None,
            server,
            own,
        }
    }

    /// Announces that no new streams are accepted or opened.
    pub(super) fn go_away(&mut self, out: &mut Vec<u8>) {
        if !self.leaving && self.failed.is_none() {
            self.leaving = true;
            self.promised = self.last;
            self.put_goaway(Code::NO_ERROR, out);
        }
    }

    /// Whether no new stream can be opened because one side has sent GOAWAY.
    pub(super) fn is_closing(&self) -> bool {
        self.leaving || self.goaway.is_some() || self.failed.is_some()
    }

    fn put_goaway(&self, code: Code, out: &mut Vec<u8>) {
        let last = if self.server { self.last.min(self.promised) } else { 0 };
        let mut payload = [0; 8];
        payload[..4].copy_from_slice(&last.to_be_bytes());
        payload[4..].copy_from_slice(&code.0.to_be_bytes());
        frame::put(out, kind::GOAWAY, 0, 0, &payload);
    }

    /// The next event.
    #[inline]
    pub(super) fn next<'i, O: Output>(
        &mut self,
        input: &mut &'i [u8],
        out: &mut O,
    ) -> Result<Option<Event<'i>>, ConnectionError> {
        match self.try_next(input, out) {
            Ok(event) => Ok(event),
            Err(violation) => Err(self.fail(violation, out.buffer())),
        }
    }

    /// Ends the connection.
    #[cold]
    pub(super) fn fail(&mut self, violation: Violation, out: &mut Vec<u8>) -> ConnectionError {
        if let Some(error) = self.failed {
            return error;
        }
        let error = ConnectionError { code: violation.code(), violation };
        self.put_goaway(error.code, out);
        self.failed = Some(error);
        error
    }

    #[inline]
    fn try_next<'i, O: Output>(&mut self, input: &mut &'i [u8], out: &mut O) -> Result<Option<Event<'i>>, Violation> {
        if let Some(error) = self.failed {
            return Err(error.violation);
        }
        loop {
            if self.todo != 0 {
                if self.todo & !todo::PAYLOAD != 0
                    && let Some(event) = self.follow_up()
                {
                    return Ok(Some(event));
                }
                if self.todo & todo::PAYLOAD != 0 {
                    match self.read_payload(input, out.buffer()) {
                        Step::Event(event) => return Ok(Some(event)),
                        Step::More => return Ok(None),
                        Step::Done => {}
                    }
                }
            }
            let found = self.framer.next(input)?;
            let event = match found {
                Found::Nothing => return Ok(None),
                Found::Whole(head, payload) => self.on_frame(head, payload, out)?,
                Found::Stored(head) => {
                    let stored = self.framer.take();
                    self.on_frame(head, &stored[HEAD..], out)?
                }
                Found::Data(head, padding) => {
                    self.expect(head)?;
                    self.on_data(head, padding, out.buffer())?
                }
                Found::Unknown(head) => {
                    self.expect(head)?;
                    self.on_idle_frame()?;
                    self.skip(head.length);
                    None
                }
            };
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// Events that need no input: streams that were not processed, bodies that have been sent.
    #[cold]
    pub(super) fn follow_up(&mut self) -> Option<Event<'static>> {
        if self.todo & todo::FINISHED != 0 {
            match self.next_finished() {
                Some((slot, id)) => {
                    if let Some(stream) = self.streams.get(slot, id)
                        && stream.is(is::SENT | is::HEARD)
                    {
                        self.ended_well(slot);
                    }
                    return Some(Event::Sent { slot, id });
                }
                None => self.todo &= !todo::FINISHED,
            }
        }
        if self.todo & todo::GONE != 0 {
            let last = self.goaway.map_or(u32::MAX, |(last, _)| last);
            match self.streams.search(|stream| stream.id > last) {
                Some(slot) => return Some(self.lose(slot, ResetCause::GoneAway)),
                None => self.todo &= !todo::GONE,
            }
        }
        None
    }

    /// A stream ends normally.
    #[inline]
    pub(super) fn ended_well(&mut self, slot: u32) {
        self.streams.remove(slot);
        self.resets = self.resets.saturating_sub(1);
    }

    /// Resets a stream and forgets it.
    #[cold]
    pub(super) fn reset(&mut self, slot: u32, code: Code, out: &mut Vec<u8>) -> (u32, u32) {
        let stream = self.streams.remove(slot);
        self.forget_waiting(slot, stream.id);
        self.refuse(stream.id, code, out);
        (stream.id, stream.tag)
    }

    /// Resets a stream that has no slot.
    #[cold]
    pub(super) fn refuse(&mut self, id: u32, code: Code, out: &mut Vec<u8>) {
        frame::put_number(out, kind::RST_STREAM, id, code.0);
        self.lenient = self.lenient.max(id);
    }

    /// A stream error.
    #[cold]
    pub(super) fn malformed(&mut self, slot: u32, fault: StreamError, out: &mut Vec<u8>) -> Event<'static> {
        let (id, tag) = self.reset(slot, fault.code(), out);
        Event::Reset { slot, id, tag, cause: ResetCause::Malformed(fault) }
    }

    /// Forgets a stream that the peer will not process.
    #[cold]
    pub(super) fn lose(&mut self, slot: u32, cause: ResetCause) -> Event<'static> {
        let stream = self.streams.remove(slot);
        self.forget_waiting(slot, stream.id);
        Event::Reset { slot, id: stream.id, tag: stream.tag, cause }
    }

    /// Checks a frame against those before it.
    #[inline]
    fn expect(&self, head: Head) -> Result<(), Violation> {
        if !self.settings_seen && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
            return Err(Violation::NoSettings);
        }
        match &self.block {
            Some(block) if head.kind != kind::CONTINUATION || head.stream != block.stream => {
                Err(Violation::Continuation)
            }
            None if head.kind == kind::CONTINUATION => Err(Violation::Continuation),
            _ => Ok(()),
        }
    }

    #[inline]
    fn on_frame<O: Output>(&mut self, head: Head, payload: &[u8], out: &mut O) -> FrameResult {
        self.expect(head)?;
        match head.kind {
            kind::HEADERS => {
                let fragment = frame::fragment(head, payload)?;
                let ends = head.has(flag::END_STREAM);
                if head.has(flag::END_HEADERS) {
                    return self.on_block(head.stream, ends, fragment, out.buffer());
                }
                let block = Block { stream: head.stream, ends, bytes: fragment.to_vec() };
                self.block = Some(Box::new(block));
                self.on_idle_frame()?;
                Ok(None)
            }
            kind::WINDOW_UPDATE => self.on_window_update(head.stream, frame::number(payload), out),
            _ => self.on_rare_frame(head, payload, out),
        }
    }

    /// Counts a frame that makes no progress.
    #[inline]
    pub(super) fn on_idle_frame(&mut self) -> Result<(), Violation> {
        self.idle_frames += 1;
        if self.idle_frames > self.own.limits.idle_frames { Err(Violation::Flood) } else { Ok(()) }
    }
}
