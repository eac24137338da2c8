//! HTTP/1.1 on a connection: requests out as they were prepared, answers in the order of the requests.

use weir_model::load::ErrorKind;
use weir_net::Io;
use weir_wire::http1::{Framing, ParseError, ResponseEvent, headers};

use super::{LaneId, SeatId, Worker};
use crate::prepared::Said;

impl Worker {
    /// Sends the request of a lane.
    #[inline]
    pub(super) fn send_one<I: Io>(&mut self, io: &mut I, id: SeatId, lane: LaneId) {
        let seat = &mut self.pool.seats[id as usize];
        if self.plan.lanes > 1 {
            seat.order.get_or_insert_default().push_back(lane);
        }
        let kind = self.pool.lanes[lane as usize].ask;
        let ask = &self.plan.asks[kind as usize];
        seat.answers.request_sent(ask.head);
        // Only seats with a connection are asked.
        let Some(conn) = seat.conn else { return };
        let (bytes, body) = match &ask.said {
            Said::One { bytes, body } => (&bytes[..], *body),
            Said::OneFilled(form) => self.mix.fill_one(kind, form),
            // The plan prepares for the protocol that is spoken.
            Said::Two { .. } | Said::TwoFilled { .. } => return,
        };
        if seat.tls.is_some() {
            let parts = [bytes, body.unwrap_or_default()];
            let sealed = Worker::seal(&mut self.secure, &mut seat.tls, io, conn, &parts);
            self.slab.counts.bytes_out += sealed.unwrap_or_default();
            return;
        }
        match body {
            None => io.send(conn, bytes),
            Some(body) => io.send_with(conn, bytes, body),
        }
        self.slab.counts.bytes_out += (bytes.len() + body.map_or(0, <[u8]>::len)) as u64;
    }

    /// The lane whose answer is next.
    #[inline]
    fn oldest(&self, id: SeatId) -> LaneId {
        let seat = &self.pool.seats[id as usize];
        // Without an order there is one lane.
        seat.order.as_ref().and_then(|order| order.front().copied()).unwrap_or(self.pool.first_lane(id))
    }

    /// Bytes of answers came.
    pub(super) fn on_answers<I: Io>(&mut self, io: &mut I, id: SeatId, bytes: &[u8], now: u64) {
        let mut rest = bytes;
        loop {
            let lane_id = self.oldest(id);
            let seat = &mut self.pool.seats[id as usize];
            let lane = &mut self.pool.lanes[lane_id as usize];
            let check = &self.plan.asks[lane.ask as usize].check;
            let end = loop {
                match seat.answers.next(&mut rest) {
                    Ok(Some(ResponseEvent::Head(head))) => {
                        lane.answer.head(head.status, length(head.framing));
                        if check.wants_headers() {
                            lane.answer.headers(check.headers_right(headers(head.raw)));
                        }
                    }
                    Ok(Some(ResponseEvent::Body(piece))) => lane.answer.body(piece, check),
                    Ok(Some(ResponseEvent::Informational(_))) => {}
                    Ok(Some(ResponseEvent::End { keep_alive })) => break Ok(keep_alive),
                    Ok(None) => {
                        if lane.first == 0 {
                            lane.first = now;
                        }
                        return;
                    }
                    Err(error) => break Err(error),
                }
            };
            let keep_alive = match end {
                // Whatever follows the answer to the last request nobody asked for.
                Ok(_) if !rest.is_empty() && seat.busy == 1 => {
                    return self.broken(io, id, &ParseError::Unsolicited, now);
                }
                Ok(keep_alive) => keep_alive,
                Err(error) => return self.broken(io, id, &error, now),
            };
            if let Some(order) = &mut seat.order {
                order.pop_front();
            }
            if rest.is_empty() {
                return self.complete(io, id, lane_id, keep_alive, now);
            }
            let conn = seat.conn;
            self.complete(io, id, lane_id, keep_alive, now);
            // What follows the connection's last answer goes with the connection.
            if self.pool.seats[id as usize].conn != conn {
                return;
            }
        }
    }

    /// What came is not HTTP, or not an answer to anything.
    fn broken<I: Io>(&mut self, io: &mut I, id: SeatId, _error: &ParseError, now: u64) {
        if self.pool.seat(id).busy > 0 {
            let lane = self.oldest(id);
            let lane = self.pool.lane(lane);
            if lane.first == 0 {
                lane.first = now;
            }
            self.cut(io, id, ErrorKind::Protocol, now);
            return;
        }
        // Between answers some servers say why they close, with an answer to no request (408).
        self.slab.counts.closed_by_peer += 1;
        if let Some(conn) = self.pool.seat(id).conn.take() {
            io.abort(conn);
        }
        self.lost(io, id, now);
    }

    /// The peer closed with requests in flight.
    pub(super) fn end_answer<I: Io>(&mut self, io: &mut I, id: SeatId, now: u64) {
        let lane = self.oldest(id);
        match self.pool.seat(id).answers.on_eof() {
            // A body that lasts until the peer closes.
            Ok(true) => self.complete(io, id, lane, false, now),
            Ok(false) | Err(_) => self.cut(io, id, ErrorKind::ClosedEarly, now),
        }
    }
}

fn length(framing: Framing) -> Option<u64> {
    match framing {
        Framing::Length(length) => Some(length),
        Framing::None | Framing::Chunked | Framing::UntilClose => None,
    }
}
