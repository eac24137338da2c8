//! Reads header blocks and DATA of streams, and checks them against the state of their stream (RFC 9113 sections 5.1,
//! 6.1, 8.1).

use super::conn::{Conn, Event, FIRST_WINDOW, FrameResult, Payload, Step, todo};
use super::frame::{self, Head, flag, kind};
use super::hpack::{self, Decoded, OVERHEAD, TABLE_SIZE};
use super::message::{Kind, Message};
use super::streams::{ANY, is};
use super::{Code, StreamError, Violation};

/// The most entries that the table has.
const MOST_ENTRIES: u32 = TABLE_SIZE / OVERHEAD as u32;

impl Conn {
    /// A complete header block.
    #[inline]
    pub(super) fn on_block(&mut self, id: u32, ends: bool, block: &[u8], out: &mut Vec<u8>) -> FrameResult {
        // A new request has no stream, which looking for it would find out by a scan.
        if self.server && id > self.last {
            return self.on_request(id, ends, block, out);
        }
        match self.streams.find(id) {
            Some(slot) if self.streams.at(slot).is(is::HEADED) => self.on_trailers(slot, ends, block, out),
            Some(slot) => self.on_response(slot, ends, block, out),
            None => self.on_stray_block(id, block),
        }
    }

    /// A block of a stream that is not open. It is read nevertheless, because it may change the table.
    #[cold]
    fn on_stray_block(&mut self, id: u32, block: &[u8]) -> FrameResult {
        if self.is_idle(id) {
            return Err(Violation::WrongStream);
        }
        if id > self.lenient {
            return Err(Violation::StreamClosed);
        }
        let _ = self.read_block(Kind::Trailers, block)?;
        self.on_idle_frame()?;
        Ok(None)
    }

    /// Reads a block into `message` and `fields`, unless they already hold its contents.
    #[inline]
    fn read_block(&mut self, kind: Kind, block: &[u8]) -> Result<Result<(), StreamError>, Violation> {
        if kind != Kind::Trailers && self.is_remembered(block) {
            return Ok(Ok(()));
        }
        self.read_new_block(kind, block)
    }

    /// Whether a block differs from the last one at most in a value without a meaning, such as the ID of a request, which is then
    /// in `fields`.
    #[inline]
    fn is_remembered(&mut self, block: &[u8]) -> bool {
        if !self.memo.matches(block, &mut self.fields) {
            return false;
        }
        if self.memo_inserts && self.repeats <= MOST_ENTRIES {
            self.repeats += 1;
        }
        true
    }

    /// Inserts what the remembered block inserted each time that it came again. Nobody has asked the table meanwhile; and when it has
    /// been filled with that, more of it changes nothing.
    #[inline(never)]
    fn insert_repeats(&mut self) -> Result<(), Violation> {
        for _ in 0..std::mem::take(&mut self.repeats) {
            self.fields.clear();
            hpack::decode(&mut self.table, self.memo.block(), &mut self.fields, &mut ())
                .map_err(|_| Violation::Compression)?;
        }
        Ok(())
    }

    fn read_new_block(&mut self, kind: Kind, block: &[u8]) -> Result<Result<(), StreamError>, Violation> {
        if self.repeats > 0 {
            self.insert_repeats()?;
        }
        self.memo.clear();
        self.fields.clear();
        self.message = Message::new(kind, self.own.limits);
        let Decoded { pure, alone, gap } = hpack::decode(&mut self.table, block, &mut self.fields, &mut self.message)
            .map_err(|_| Violation::Compression)?;
        let judged = self.message.finish(&self.fields);
        if (pure || alone) && judged.is_ok() && kind != Kind::Trailers && self.memo.keep(block, gap) {
            self.memo_inserts = !pure;
        }
        Ok(judged)
    }

    /// The head of a request (server).
    #[inline]
    fn on_request(&mut self, id: u32, ends: bool, block: &[u8], out: &mut Vec<u8>) -> FrameResult {
        if id.is_multiple_of(2) {
            return Err(Violation::WrongStream);
        }
        self.last = id;
        let judged = self.read_block(Kind::Request, block)?;
        if self.leaving {
            // GOAWAY announced that it would not be processed.
            self.lenient = id;
            self.on_idle_frame()?;
            return Ok(None);
        }
        if self.streams.open() >= self.own.max_streams {
            self.on_idle_frame()?;
            self.refuse(id, Code::REFUSED_STREAM, out);
            return Ok(None);
        }
        let length = self.message.length;
        let fault = match judged {
            Err(fault) => Some(fault),
            Ok(()) if ends && !matches!(length, 0 | ANY) => Some(StreamError::WrongLength),
            Ok(()) => None,
        };
        if let Some(fault) = fault {
            self.on_idle_frame()?;
            self.refuse(id, fault.code(), out);
            return Ok(Some(Event::Malformed { fault }));
        }
        let state = is::HEADED | if self.message.is_head { is::BODILESS } else { 0 };
        let slot = self.streams.add(id, id, self.peer.stream_window, state);
        self.streams.at(slot).left = length;
        self.head_came(slot, id, ends);
        Ok(Some(Event::Head { slot, id, tag: id, ends }))
    }

    /// The head of a response, final or not (client).
    #[inline]
    fn on_response(&mut self, slot: u32, ends: bool, block: &[u8], out: &mut Vec<u8>) -> FrameResult {
        if let Err(fault) = self.read_block(Kind::Response, block)? {
            return Ok(Some(self.malformed(slot, fault, out)));
        }
        let Message { status, length, .. } = self.message;
        let stream = self.streams.at(slot);
        let (id, tag) = (stream.id, stream.tag);
        if status < 200 {
            if ends {
                return Ok(Some(self.malformed(slot, StreamError::WrongOrder, out)));
            }
            self.on_idle_frame()?;
            return Ok(Some(Event::Interim { tag, status }));
        }
        stream.state |= is::HEADED;
        // These may have a length and no body (section 8.1.1).
        let bodiless = stream.is(is::BODILESS) || matches!(status, 204 | 304);
        stream.left = if bodiless { 0 } else { length };
        if ends && !matches!(stream.left, 0 | ANY) {
            return Ok(Some(self.malformed(slot, StreamError::WrongLength, out)));
        }
        self.head_came(slot, id, ends);
        Ok(Some(Event::Head { slot, id, tag, ends }))
    }

    #[inline]
    fn head_came(&mut self, slot: u32, id: u32, ends: bool) {
        self.idle_frames = 0;
        if ends {
            self.end_comes(slot, id);
        }
    }

    /// The next event is the stream's end.
    #[inline]
    fn end_comes(&mut self, slot: u32, id: u32) {
        self.payload = Payload { slot, id, left: 0, padding: 0, ends: true };
        self.todo |= todo::PAYLOAD;
    }

    /// A block after the body.
    #[cold]
    fn on_trailers(&mut self, slot: u32, ends: bool, block: &[u8], out: &mut Vec<u8>) -> FrameResult {
        let stream = self.streams.at(slot);
        let (id, tag, left, heard) = (stream.id, stream.tag, stream.left, stream.is(is::HEARD));
        if heard {
            return Err(Violation::StreamClosed);
        }
        let fault = match self.read_block(Kind::Trailers, block)? {
            Err(fault) => fault,
            Ok(()) if !ends => StreamError::WrongOrder,
            Ok(()) if !matches!(left, 0 | ANY) => StreamError::WrongLength,
            Ok(()) => {
                self.end_comes(slot, id);
                return Ok(Some(Event::Trailers { tag }));
            }
        };
        Ok(Some(self.malformed(slot, fault, out)))
    }

    /// The beginning of DATA. The whole frame counts against the windows, including padding.
    #[inline]
    pub(super) fn on_data(&mut self, head: Head, padding: u8, out: &mut Vec<u8>) -> FrameResult {
        let id = head.stream;
        let overhead = if head.has(flag::PADDED) { 1 + u32::from(padding) } else { 0 };
        let size = head.length.checked_sub(overhead).ok_or(Violation::Padding)?;
        self.received += head.length;
        if self.received > self.own.connection_window {
            return Err(Violation::WindowExceeded);
        }
        if self.received > self.own.connection_window / 2 {
            frame::put_number(out, kind::WINDOW_UPDATE, 0, self.received);
            self.received = 0;
        }
        let slot = match self.streams.find(id) {
            Some(slot) => slot,
            None if self.is_idle(id) => return Err(Violation::WrongStream),
            None if id > self.lenient => return Err(Violation::StreamClosed),
            None => {
                self.on_idle_frame()?;
                self.skip(size + u32::from(padding));
                return Ok(None);
            }
        };
        let ends = head.has(flag::END_STREAM);
        if size > 0 {
            self.idle_frames = 0;
        } else if !ends {
            self.on_idle_frame()?;
        }
        // Until the peer has acknowledged our SETTINGS, it uses the initial window.
        let window = self.own.stream_window;
        let allowed = if self.settings_acked { window } else { window.max(FIRST_WINDOW) };
        let stream = self.streams.at(slot);
        if stream.is(is::HEARD) {
            return Err(Violation::StreamClosed);
        }
        stream.received += head.length;
        let left = match stream.left {
            ANY => Some(ANY),
            left => left.checked_sub(u64::from(size)),
        };
        let fault = match left {
            _ if !stream.is(is::HEADED) => StreamError::WrongOrder,
            _ if stream.received > allowed => StreamError::WindowExceeded,
            Some(0 | ANY) => return Ok(self.data_comes(slot, id, size, padding, ends, left, out)),
            Some(_) if !ends => return Ok(self.data_comes(slot, id, size, padding, ends, left, out)),
            _ => StreamError::WrongLength,
        };
        self.skip(size + u32::from(padding));
        Ok(Some(self.malformed(slot, fault, out)))
    }

    #[inline]
    #[expect(clippy::too_many_arguments, reason = "one frame, taken apart")]
    fn data_comes(
        &mut self,
        slot: u32,
        id: u32,
        size: u32,
        padding: u8,
        ends: bool,
        left: Option<u64>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'static>> {
        let window = self.own.stream_window;
        let stream = self.streams.at(slot);
        stream.left = left.unwrap_or(ANY);
        if !ends && stream.received > window / 2 {
            frame::put_number(out, kind::WINDOW_UPDATE, id, stream.received);
            stream.received = 0;
        }
        self.payload = Payload { slot, id, left: size, padding: u32::from(padding), ends };
        self.todo |= todo::PAYLOAD;
        None
    }

    /// Continues with DATA, or with the end of a stream.
    #[inline]
    pub(super) fn read_payload<'i>(&mut self, input: &mut &'i [u8], out: &mut Vec<u8>) -> Step<'i> {
        let Payload { slot, id, left, padding, ends } = self.payload;
        if left > 0 {
            if input.is_empty() {
                return Step::More;
            }
            let (bytes, rest) = input.split_at(input.len().min(left as usize));
            *input = rest;
            self.payload.left -= bytes.len() as u32;
            if let Some(stream) = self.streams.get(slot, id) {
                let tag = stream.tag;
                if !ends && padding == 0 && self.payload.left == 0 {
                    self.todo &= !todo::PAYLOAD;
                }
                return Step::Event(Event::Data { slot, id, tag, bytes });
            }
            if self.payload.left > 0 {
                return Step::More;
            }
        }
        if padding > 0 {
            let skipped = input.len().min(padding as usize);
            *input = &input[skipped..];
            self.payload.padding -= skipped as u32;
            if self.payload.padding > 0 {
                return Step::More;
            }
        }
        self.todo &= !todo::PAYLOAD;
        if ends && let Some(stream) = self.streams.get(slot, id) {
            stream.state |= is::HEARD;
            let (tag, sent) = (stream.tag, stream.is(is::SENT));
            if sent {
                self.ended_well(slot);
            } else if !self.server {
                // The server has sent everything; it does not need the rest of the request (section 8.1).
                self.reset(slot, Code::CANCEL, out);
            }
            return Step::Event(Event::End { slot, id, tag, sent });
        }
        Step::Done
    }

    /// Discards the given number of payload bytes.
    pub(super) fn skip(&mut self, length: u32) {
        self.payload = Payload { slot: 0, id: 0, left: length, padding: 0, ends: false };
        self.todo |= todo::PAYLOAD;
    }
}
