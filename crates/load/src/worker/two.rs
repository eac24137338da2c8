//! HTTP/2 on a connection: a lane is a stream, and a stream's tag is the lane's place in its seat.
//!
//! Frames are gathered while the events of one piece of input are handled, and leave together.

use weir_model::load::ErrorKind;
use weir_net::Io;
use weir_wire::http2::{Body, Client, ClientEvent, ResetCause, SendError};

use super::seat::{Does, State};
use super::{LaneId, SeatId, Worker};
use crate::prepared::{MOST_CHANGING, Said};

/// No seat's frames are being gathered.
pub(super) const NOBODY: SeatId = SeatId::MAX;

/// What an event means for a lane or the connection, when the client has been let go.
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
    pub(super) fn begin_two<I: Io>(&mut self, io: &mut I, id: SeatId) -> bool {
        let Some(options) = &self.plan.two else {
            return false;
        };
        let mut client = Box::new(Client::new(options));
        client.start(&mut self.frames);
        let seat = &mut self.pool.seats[id as usize];
        seat.state = State::Shaking;
        seat.two = Some(client);
        self.flush(io, id);
        true
    }

    /// Bytes of frames came.
    pub(super) fn on_frames<I: Io>(&mut self, io: &mut I, id: SeatId, bytes: &[u8], now: u64) {
        let conn = self.pool.seats[id as usize].conn;
        let before = std::mem::replace(&mut self.held, id);
        let mut rest = bytes;
        // As long as it is the same connection, and still there.
        while self.pool.seats[id as usize].conn == conn {
            match self.next_frame(id, &mut rest, now) {
                Ok(None) => break,
                Ok(Some(then)) => self.follow(io, id, then, now),
                Err(detail) => {
                    self.frames_failed(io, id, &detail, now);
                    break;
                }
            }
        }
        if self.pool.seats[id as usize].conn == conn {
            self.flush(io, id);
        } else {
            // They were for the connection that is gone; there may be a new one already.
            self.frames.clear();
        }
        self.held = before;
    }

    /// The next event, less what concerns nothing but its answer.
    #[inline]
    fn next_frame(&mut self, id: SeatId, rest: &mut &[u8], now: u64) -> Result<Option<Then>, String> {
        let first = self.pool.first_lane(id);
        let Some(client) = &mut self.pool.seats[id as usize].two else {
            return Ok(None);
        };
        let event = match client.next(rest, &mut self.frames) {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        Ok(Some(match event {
            ClientEvent::Data { tag, bytes } => {
                let lane = &mut self.pool.lanes[(first + tag) as usize];
                lane.answer.body(bytes, &self.plan.asks[lane.ask as usize].check);
                Then::Nothing
            }
            ClientEvent::Head { tag, head } => {
                let lane = &mut self.pool.lanes[(first + tag) as usize];
                let check = &self.plan.asks[lane.ask as usize].check;
                if lane.first == 0 {
                    lane.first = now;
                }
                lane.answer.head(head.status, head.length);
                if check.wants_headers() {
                    lane.answer.headers(check.headers_right(head.headers.iter()));
                }
                Then::Nothing
            }
            ClientEvent::Informational { tag, .. } => {
                let lane = &mut self.pool.lanes[(first + tag) as usize];
                if lane.first == 0 {
                    lane.first = now;
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

    fn follow<I: Io>(&mut self, io: &mut I, id: SeatId, then: Then, now: u64) {
        let first = self.pool.first_lane(id);
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
                if self.pool.seat(id).used {
                    self.unsend(id, first + tag);
                } else {
                    self.fail(id, first + tag, ErrorKind::ClosedEarly, now);
                }
                self.free_stream(io, id, first + tag, false, now);
            }
            Then::Settings => self.on_settings(io, id, now),
            Then::GoAway => {
                self.slab.counts.closed_by_peer += 1;
                self.pool.seat(id).room = 0;
                self.close_used_up(io, id, now);
            }
        }
    }

    /// A lane's stream is gone, by an answer or otherwise.
    fn free_stream<I: Io>(&mut self, io: &mut I, id: SeatId, lane: LaneId, answered: bool, now: u64) {
        let thinks = answered && self.plan.think.is_some();
        if thinks {
            self.think(lane, now);
        }
        let (room, lanes) = (self.pool.seat(id).room, self.pool.seat(id).lanes);
        if room == 0 {
            self.close_used_up(io, id, now);
        } else if lane - self.pool.first_lane(id) < lanes {
            if !thinks {
                self.settle(io, id, lane, now);
            }
        } else {
            // The peer allows fewer streams than it did; one that had to wait for this one's end can go on.
            let lanes = self.pool.first_lane(id)..self.pool.first_lane(id) + lanes;
            if let Some(idle) = lanes.into_iter().find(|lane| self.pool.lane(*lane).does == Does::Nothing) {
                self.settle(io, id, idle, now);
            }
        }
    }

    /// A connection that takes no more requests is closed with its last answer.
    pub(super) fn close_used_up<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        let seat = self.pool.seat(id);
        if seat.state != State::Up {
            // It goes away before it was of use.
            if seat.state == State::Shaking {
                self.shaking_failed(io, id, ErrorKind::ClosedEarly, "the peer goes away (GOAWAY)", now);
            }
        } else if seat.busy == 0 {
            self.close(io, id);
            self.lost(io, id, now);
        }
    }

    /// How many streams may be open is known, or has changed.
    fn on_settings<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        let most = self.plan.lanes;
        let seat = &mut self.pool.seats[id as usize];
        let lanes = seat.two.as_ref().map_or(0, |client| client.streams()).min(most);
        if lanes == 0 {
            // Some servers allow streams a little later. For those that never do there is the timeout.
            return;
        }
        self.least_lanes = self.least_lanes.min(lanes);
        let had = std::mem::replace(&mut seat.lanes, lanes);
        match seat.state {
            State::Shaking => self.on_ready(io, id, now),
            State::Up if lanes != had => {
                let first = self.pool.first_lane(id);
                self.pool.forget_free(id);
                for lane in first..first + lanes {
                    if self.pool.seat(id).room > 0 && self.pool.lane(lane).does == Does::Nothing {
                        self.settle(io, id, lane, now);
                    }
                }
            }
            _ => {}
        }
    }

    /// Sends the request of a lane. False: the connection does not take it.
    pub(super) fn send_two<I: Io>(&mut self, io: &mut I, id: SeatId, lane: LaneId) -> bool {
        if self.held != id && self.held != NOBODY {
            // Frames of another connection are not to be mixed with this one's.
            self.flush(io, self.held);
        }
        let tag = lane - self.pool.first_lane(id);
        let Some(client) = &mut self.pool.seats[id as usize].two else {
            return false;
        };
        let kind = self.pool.lanes[lane as usize].ask;
        let out = &mut self.frames;
        let sent = match &self.plan.asks[kind as usize].said {
            Said::Two { head, body } => {
                let body = if body.is_empty() { Body::None } else { Body::Static(body) };
                client.request(tag, head, body, out)
            }
            Said::TwoFilled { form, head, changing } => {
                let parts = self.mix.fill_parts(kind, form);
                let mut values: [&[u8]; MOST_CHANGING] = [&[]; MOST_CHANGING];
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
            Said::One { .. } | Said::OneFilled(_) => Err(SendError::BadValue),
        };
        if self.held != id {
            self.flush(io, id);
        }
        match sent {
            Ok(()) => true,
            Err(SendError::Full) => false,
            Err(_) => {
                // Another connection is needed.
                self.pool.seats[id as usize].room = 0;
                false
            }
        }
    }

    /// Sends what has been gathered.
    pub(super) fn flush<I: Io>(&mut self, io: &mut I, id: SeatId) {
        if self.frames.is_empty() {
            return;
        }
        let seat = &mut self.pool.seats[id as usize];
        if let Some(conn) = seat.conn {
            let sealed = Worker::seal(&mut self.secure, &mut seat.tls, io, conn, &[&self.frames]);
            self.slab.counts.bytes_out += sealed.unwrap_or_else(|| {
                io.send(conn, &self.frames);
                self.frames.len() as u64
            });
        }
        self.frames.clear();
    }

    /// Gives up a stream.
    pub(super) fn cancel<I: Io>(&mut self, io: &mut I, id: SeatId, lane: LaneId, now: u64) {
        let tag = lane - self.pool.first_lane(id);
        if let Some(client) = &mut self.pool.seats[id as usize].two {
            client.cancel(tag, &mut self.frames);
        }
        self.flush(io, id);
        self.fail(id, lane, ErrorKind::Timeout, now);
        self.free_stream(io, id, lane, false, now);
    }

    /// What came is not HTTP/2.
    fn frames_failed<I: Io>(&mut self, io: &mut I, id: SeatId, detail: &str, now: u64) {
        // Why is in the GOAWAY that the client has written.
        self.flush(io, id);
        let seat = self.pool.seat(id);
        if seat.state == State::Shaking {
            let detail = format!("not HTTP/2: {detail}");
            self.shaking_failed(io, id, ErrorKind::Protocol, &detail, now);
            return;
        }
        if seat.busy == 0 {
            self.slab.counts.closed_by_peer += 1;
        }
        self.cut(io, id, ErrorKind::Protocol, now);
    }

    /// Says goodbye on a connection of HTTP/2.
    pub(super) fn close_two<I: Io>(&mut self, io: &mut I, id: SeatId) {
        if let Some(client) = &mut self.pool.seats[id as usize].two {
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
