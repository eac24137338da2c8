//! HTTP/2 on a connection: a stream is a stream, and a stream's tag is the stream's place in its slot.
//!
//! Frames are gathered while the events of one piece of input are handled, and leave together.

use weir_model::load::ErrorKind;
use weir_net::Io;
use weir_wire::http2::{Body, Client, ClientEvent, ResetCause, SendError};

use super::pool::{SlotState, StreamState};
use super::{SlotId, StreamId, Worker};
use crate::encoded::{Encoded, MAX_CHANGING};

/// No slot's frames are being gathered.
pub(super) const NO_SLOT: SlotId = SlotId::MAX;

/// What an event means for a stream or the connection, when the client has been let go.
enum Then {
    Nothing,
    Settings,
    End(u32),
    Reset(u32, ErrorKind),
    TurnedAway(u32),
    GoAway,
}

impl Worker {
    /// A connection (and its TLS) is there: says what comes first. False: HTTP/2 is not spoken.
    pub(super) fn begin_http2<I: Io>(&mut self, io: &mut I, id: SlotId) -> bool {
        let Some(options) = &self.plan.http2 else {
            return false;
        };
        let mut client = Box::new(Client::new(options));
        client.start(&mut self.frames);
        let slot = &mut self.pool.slots[id as usize];
        slot.state = SlotState::Handshaking;
        slot.http2 = Some(client);
        self.flush(io, id);
        true
    }

    /// Bytes of frames came.
    pub(super) fn on_frames<I: Io>(&mut self, io: &mut I, id: SlotId, bytes: &[u8], now: u64) {
        let conn = self.pool.slots[id as usize].conn;
        let before = std::mem::replace(&mut self.gathering, id);
        let mut rest = bytes;
        // As long as it is the same connection, and still there.
        while self.pool.slots[id as usize].conn == conn {
            match self.next_frame(id, &mut rest, now) {
                Ok(None) => break,
                Ok(Some(then)) => self.follow(io, id, then, now),
                Err(detail) => {
                    self.frames_failed(io, id, &detail, now);
                    break;
                }
            }
        }
        if self.pool.slots[id as usize].conn == conn {
            self.flush(io, id);
        } else {
            // They were for the connection that is gone; there may be a new one already.
            self.frames.clear();
        }
        self.gathering = before;
    }

    /// The next event, less what concerns nothing but its answer.
    #[inline]
    fn next_frame(&mut self, id: SlotId, rest: &mut &[u8], now: u64) -> Result<Option<Then>, String> {
        let first = self.pool.first_stream(id);
        let Some(client) = &mut self.pool.slots[id as usize].http2 else {
            return Ok(None);
        };
        let event = match client.next(rest, &mut self.frames) {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        Ok(Some(match event {
            ClientEvent::Data { tag, bytes } => {
                let stream = &mut self.pool.streams[(first + tag) as usize];
                stream.answer.body(bytes, &self.plan.requests[stream.request as usize].check);
                Then::Nothing
            }
            ClientEvent::Head { tag, head } => {
                let stream = &mut self.pool.streams[(first + tag) as usize];
                let check = &self.plan.requests[stream.request as usize].check;
                if stream.first == 0 {
                    stream.first = now;
                }
                stream.answer.head(head.status, head.length);
                if check.checks_headers() {
                    stream.answer.headers(check.headers_right(head.headers.iter()));
                }
                Then::Nothing
            }
            ClientEvent::Informational { tag, .. } => {
                let stream = &mut self.pool.streams[(first + tag) as usize];
                if stream.first == 0 {
                    stream.first = now;
                }
                Then::Nothing
            }
            ClientEvent::End { tag } => Then::End(tag),
            ClientEvent::Reset { tag, cause: ResetCause::GoneAway } => Then::TurnedAway(tag),
            ClientEvent::Reset { tag, cause } => Then::Reset(tag, kind_of(cause)),
            ClientEvent::Settings => Then::Settings,
            ClientEvent::GoAway { .. } => Then::GoAway,
        }))
    }

    fn follow<I: Io>(&mut self, io: &mut I, id: SlotId, then: Then, now: u64) {
        let first = self.pool.first_stream(id);
        match then {
            Then::Nothing => {}
            Then::End(tag) => {
                self.answered(id, first + tag, now);
                self.free_stream(io, id, first + tag, true, now);
            }
            Then::Reset(tag, kind) => {
                self.fail(id, first + tag, kind, now);
                self.free_stream(io, id, first + tag, false, now);
            }
            // The peer says that it never looked at it, so that it can be made elsewhere (RFC 9113 section 8.7). A peer of
            // which no connection is of any use would be asked for ever.
            Then::TurnedAway(tag) => {
                if self.pool.slot(id).used {
                    self.return_unprocessed(id, first + tag);
                } else {
                    self.fail(id, first + tag, ErrorKind::ClosedEarly, now);
                }
                self.free_stream(io, id, first + tag, false, now);
            }
            Then::Settings => self.on_settings(io, id, now),
            Then::GoAway => {
                self.slab.counts.closed_by_peer += 1;
                self.pool.slot(id).remaining = 0;
                self.close_used_up(io, id, now);
            }
        }
    }

    /// A stream's stream is gone, by an answer or otherwise.
    fn free_stream<I: Io>(&mut self, io: &mut I, id: SlotId, stream: StreamId, answered: bool, now: u64) {
        let thinks = answered && self.plan.think.is_some();
        if thinks {
            self.think(stream, now);
        }
        let (remaining, streams) = (self.pool.slot(id).remaining, self.pool.slot(id).streams);
        if remaining == 0 {
            self.close_used_up(io, id, now);
        } else if stream - self.pool.first_stream(id) < streams {
            if !thinks {
                self.assign_next(io, id, stream, now);
            }
        } else {
            // The peer allows fewer streams than it did; one that had to wait for this one's end can go on.
            let streams = self.pool.first_stream(id)..self.pool.first_stream(id) + streams;
            if let Some(idle) = streams.into_iter().find(|stream| self.pool.stream(*stream).state == StreamState::Idle)
            {
                self.assign_next(io, id, idle, now);
            }
        }
    }

    /// A connection that takes no more requests is closed with its last answer.
    pub(super) fn close_used_up<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let slot = self.pool.slot(id);
        if slot.state != SlotState::Up {
            // It goes away before it was of use.
            if slot.state == SlotState::Handshaking {
                self.handshake_failed(io, id, ErrorKind::ClosedEarly, "the peer goes away (GOAWAY)", now);
            }
        } else if slot.busy == 0 {
            self.close(io, id);
            self.lost(io, id, now);
        }
    }

    /// How many streams may be open is known, or has changed.
    fn on_settings<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let most = self.plan.streams;
        let slot = &mut self.pool.slots[id as usize];
        let streams = slot.http2.as_ref().map_or(0, |client| client.streams()).min(most);
        if streams == 0 {
            // Some servers allow streams a little later. For those that never do there is the timeout.
            return;
        }
        self.min_streams = self.min_streams.min(streams);
        let had = std::mem::replace(&mut slot.streams, streams);
        match slot.state {
            SlotState::Handshaking => self.on_ready(io, id, now),
            SlotState::Up if streams != had => {
                let first = self.pool.first_stream(id);
                self.pool.clear_free(id);
                for stream in first..first + streams {
                    if self.pool.slot(id).remaining > 0 && self.pool.stream(stream).state == StreamState::Idle {
                        self.assign_next(io, id, stream, now);
                    }
                }
            }
            _ => {}
        }
    }

    /// Sends the request of a stream. False: the connection does not take it.
    pub(super) fn send_http2<I: Io>(&mut self, io: &mut I, id: SlotId, stream: StreamId) -> bool {
        if self.gathering != id && self.gathering != NO_SLOT {
            // Frames of another connection are not to be mixed with this one's.
            self.flush(io, self.gathering);
        }
        let tag = stream - self.pool.first_stream(id);
        let Some(client) = &mut self.pool.slots[id as usize].http2 else {
            return false;
        };
        let kind = self.pool.streams[stream as usize].request;
        let out = &mut self.frames;
        let sent = match &self.plan.requests[kind as usize].said {
            Encoded::Http2 { head, body } => {
                let body = if body.is_empty() { Body::None } else { Body::Static(body) };
                client.request(tag, head, body, out)
            }
            Encoded::Http2Template { form, head, changing } => {
                let parts = self.generator.fill_parts(kind, form);
                let mut values: [&[u8]; MAX_CHANGING] = [&[]; MAX_CHANGING];
                let mut changing = changing.iter().copied().peekable();
                let mut filled = 0;
                for (index, (_, value)) in parts.headers().enumerate() {
                    if changing.next_if_eq(&index).is_some() {
                        values[filled] = value;
                        filled += 1;
                    }
                }
                let body = match parts.fixed {
                    None => Body::Copied(parts.filled),
                    Some([]) => Body::None,
                    Some(body) => Body::Static(body),
                };
                client.request_filled(tag, head, parts.path(), &values[..filled], body, out)
            }
            // The plan prepares for the protocol that is spoken.
            Encoded::Http1 { .. } | Encoded::Http1Template(_) => Err(SendError::BadValue),
        };
        if self.gathering != id {
            self.flush(io, id);
        }
        match sent {
            Ok(()) => true,
            Err(SendError::Full) => false,
            Err(_) => {
                // Another connection is needed.
                self.pool.slots[id as usize].remaining = 0;
                false
            }
        }
    }

    /// Sends what has been gathered.
    pub(super) fn flush<I: Io>(&mut self, io: &mut I, id: SlotId) {
        if self.frames.is_empty() {
            return;
        }
        let slot = &mut self.pool.slots[id as usize];
        if let Some(conn) = slot.conn {
            let sealed = Worker::seal(&mut self.secure, &mut slot.tls, io, conn, &[&self.frames]);
            self.slab.counts.bytes_out += sealed.unwrap_or_else(|| {
                io.send(conn, &self.frames);
                self.frames.len() as u64
            });
        }
        self.frames.clear();
    }

    /// Gives up a stream.
    pub(super) fn cancel<I: Io>(&mut self, io: &mut I, id: SlotId, stream: StreamId, now: u64) {
        let tag = stream - self.pool.first_stream(id);
        if let Some(client) = &mut self.pool.slots[id as usize].http2 {
            client.cancel(tag, &mut self.frames);
        }
        self.flush(io, id);
        self.fail(id, stream, ErrorKind::Timeout, now);
        self.free_stream(io, id, stream, false, now);
    }

    /// What came is not HTTP/2.
    fn frames_failed<I: Io>(&mut self, io: &mut I, id: SlotId, detail: &str, now: u64) {
        // Why is in the GOAWAY that the client has written.
        self.flush(io, id);
        let slot = self.pool.slot(id);
        if slot.state == SlotState::Handshaking {
            let detail = format!("not HTTP/2: {detail}");
            self.handshake_failed(io, id, ErrorKind::Protocol, &detail, now);
            return;
        }
        if slot.busy == 0 {
            self.slab.counts.closed_by_peer += 1;
        }
        self.cut(io, id, ErrorKind::Protocol, now);
    }

    /// Says goodbye on a connection of HTTP/2.
    pub(super) fn close_http2<I: Io>(&mut self, io: &mut I, id: SlotId) {
        if let Some(client) = &mut self.pool.slots[id as usize].http2 {
            client.go_away(&mut self.frames);
            self.flush(io, id);
        }
    }
}

fn kind_of(cause: ResetCause) -> ErrorKind {
    match cause {
        ResetCause::Peer(_) => ErrorKind::StreamReset,
        ResetCause::Malformed(_) => ErrorKind::Protocol,
        ResetCause::GoneAway => ErrorKind::ClosedEarly,
    }
}
