//! Sends messages: header blocks at once, DATA as the peer's windows allow, the rest later (RFC 9113 sections 4.3, 5.2
//! and 6.9).

use super::body::{Body, Output};
use super::conn::{Conn, todo};
use super::frame::{self, HEAD, Head, flag, kind};
use super::hpack::Encoder;
use super::streams::is;

/// The largest frame sent, whatever the peer accepts.
const LARGEST: u32 = 1 << 20;

/// What waits for a window.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    waiting: Vec<Waiting>,
    /// Slot and number of streams whose bodies have been sent since.
    finished: Vec<(u32, u32)>,
}

/// The rest of the body of one stream.
#[derive(Debug)]
struct Waiting {
    slot: u32,
    id: u32,
    /// Never empty.
    pieces: std::collections::VecDeque<Piece>,
    /// The stream ends with the last piece.
    ends: bool,
}

#[derive(Debug)]
enum Piece {
    Static(&'static [u8]),
    /// With the number of bytes already sent.
    Owned(Vec<u8>, usize),
}

impl Piece {
    fn rest(&self) -> Body<'_> {
        match self {
            Piece::Static(bytes) => Body::Static(bytes),
            Piece::Owned(bytes, at) => Body::Copied(&bytes[*at..]),
        }
    }

    fn skip(&mut self, sent: usize) {
        match self {
            Piece::Static(bytes) => *bytes = &bytes[sent..],
            Piece::Owned(_, at) => *at += sent,
        }
    }
}

impl Conn {
    /// Writes a header block: HEADERS, and CONTINUATION where it is longer than the peer's frames.
    #[inline]
    pub(super) fn put_block(
        &mut self,
        id: u32,
        ends: bool,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD]);
        write(&mut self.encoder, out);
        let length = (out.len() - start - HEAD) as u32;
        let flags = if ends { flag::END_STREAM } else { 0 };
        if length <= self.peer.max_frame {
            let head = Head { length, kind: kind::HEADERS, flags: flags | flag::END_HEADERS, stream: id };
            out[start..start + HEAD].copy_from_slice(&head.bytes());
        } else {
            let block = out.split_off(start + HEAD);
            out.truncate(start);
            let mut pieces = block.chunks(self.peer.max_frame as usize).peekable();
            let mut frame = (kind::HEADERS, flags);
            while let Some(piece) = pieces.next() {
                let end = if pieces.peek().is_none() { flag::END_HEADERS } else { 0 };
                frame::put(out, frame.0, frame.1 | end, id, piece);
                frame = (kind::CONTINUATION, 0);
            }
        }
    }

    /// Sends a piece of a stream's body, or stores what cannot be sent now. True: the piece has been sent.
    #[inline]
    pub(super) fn send_body<O: Output>(&mut self, slot: u32, body: Body<'_>, ends: bool, out: &mut O) -> bool {
        let stream = self.streams.at(slot);
        if stream.is(is::WAITING) {
            self.keep(slot, body, 0, ends);
            return false;
        }
        let sent = self.send_now(slot, body, ends, out);
        if sent == body.len() {
            return true;
        }
        self.keep(slot, body, sent, ends);
        false
    }

    /// Sends what the windows allow, and END_STREAM with the last byte if the stream ends. Returns how much was sent.
    #[inline]
    fn send_now<O: Output>(&mut self, slot: u32, body: Body<'_>, ends: bool, out: &mut O) -> usize {
        let largest = self.peer.max_frame.min(LARGEST) as usize;
        let stream = self.streams.at(slot);
        let window = stream.window.min(self.window).max(0) as usize;
        let length = body.len();
        let sendable = length.min(window);
        let mut at = 0;
        while at < sendable || (length == 0 && ends && at == 0) {
            let size = (sendable - at).min(largest);
            let last = ends && at + size == length;
            let flags = if last { flag::END_STREAM } else { 0 };
            let head = Head { length: size as u32, kind: kind::DATA, flags, stream: stream.id };
            out.buffer().extend_from_slice(&head.bytes());
            match body {
                Body::None => {}
                Body::Static(bytes) => out.body(&bytes[at..at + size]),
                Body::Copied(bytes) => out.buffer().extend_from_slice(&bytes[at..at + size]),
            }
            at += size;
            if last {
                stream.state |= is::SENT;
                break;
            }
        }
        stream.window -= sendable as i32;
        self.window -= sendable as i32;
        sendable
    }

    /// Stores the rest of a piece.
    #[cold]
    fn keep(&mut self, slot: u32, body: Body<'_>, sent: usize, ends: bool) {
        let piece = match body {
            Body::Static(bytes) => Piece::Static(&bytes[sent..]),
            Body::Copied(bytes) => Piece::Owned(bytes[sent..].to_vec(), 0),
            Body::None => Piece::Static(&[]),
        };
        let stream = self.streams.at(slot);
        let id = stream.id;
        stream.state |= is::WAITING;
        let waiting = &mut self.backlog.get_or_insert_default().waiting;
        match waiting.iter_mut().find(|w| w.slot == slot && w.id == id) {
            Some(before) => {
                before.pieces.push_back(piece);
                before.ends = ends;
            }
            None => waiting.push(Waiting { slot, id, pieces: [piece].into(), ends }),
        }
    }

    /// A window has grown: sends what fits now. True: something was sent.
    #[inline]
    pub(super) fn pump<O: Output>(&mut self, out: &mut O) -> bool {
        match self.backlog.take() {
            None => false,
            Some(backlog) => self.pump_backlog(backlog, out),
        }
    }

    #[cold]
    fn pump_backlog<O: Output>(&mut self, mut backlog: Box<Backlog>, out: &mut O) -> bool {
        let before = out.buffer().len();
        let window = self.window;
        let Backlog { waiting, finished } = &mut *backlog;
        waiting.retain_mut(|waiting| {
            if self.streams.get(waiting.slot, waiting.id).is_none() {
                return false;
            }
            loop {
                let ends = waiting.ends && waiting.pieces.len() == 1;
                let Some(piece) = waiting.pieces.front_mut() else { break };
                let length = piece.rest().len();
                let sent = self.send_now(waiting.slot, piece.rest(), ends, out);
                if sent < length {
                    piece.skip(sent);
                    return true;
                }
                waiting.pieces.pop_front();
            }
            self.streams.at(waiting.slot).state &= !is::WAITING;
            finished.push((waiting.slot, waiting.id));
            false
        });
        if !finished.is_empty() {
            self.todo |= todo::FINISHED;
        }
        if !waiting.is_empty() || !finished.is_empty() {
            self.backlog = Some(backlog);
        }
        self.window != window || out.buffer().len() != before
    }

    /// A stream whose body had to wait and has been sent since.
    pub(super) fn next_finished(&mut self) -> Option<(u32, u32)> {
        let finished = self.backlog.as_mut()?.finished.pop();
        if finished.is_none() && self.backlog.as_ref().is_some_and(|backlog| backlog.waiting.is_empty()) {
            self.backlog = None;
        }
        finished
    }

    /// A stream is gone: drops its waiting data.
    pub(super) fn forget_waiting(&mut self, slot: u32, id: u32) {
        if let Some(backlog) = &mut self.backlog {
            backlog.waiting.retain(|waiting| (waiting.slot, waiting.id) != (slot, id));
            backlog.finished.retain(|finished| *finished != (slot, id));
        }
    }
}
