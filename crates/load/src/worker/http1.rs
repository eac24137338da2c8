//! HTTP/1.1 on a connection: requests out as they were prepared, answers in the order of the requests.

use weir_model::load::ErrorKind;
use weir_net::Io;
use weir_wire::http1::{Framing, ParseError, ResponseEvent, headers};

use super::{SlotId, StreamId, Worker};
use crate::encoded::Encoded;

impl Worker {
    /// Sends the request of a stream.
    #[inline]
    pub(super) fn send_http1<I: Io>(&mut self, io: &mut I, id: SlotId, stream: StreamId) {
        let slot = &mut self.pool.slots[id as usize];
        if self.plan.streams > 1 {
            slot.order.get_or_insert_default().push_back(stream);
        }
        let kind = self.pool.streams[stream as usize].request;
        let request = &self.plan.requests[kind as usize];
        slot.answers.request_sent(request.head);
        // Only slots with a connection are asked.
        let Some(conn) = slot.conn else { return };
        let (bytes, body) = match &request.said {
            Encoded::Http1 { bytes, body } => (&bytes[..], *body),
            Encoded::Http1Template(form) => self.generator.fill_http1(kind, form),
            // The plan prepares for the protocol that is spoken.
            Encoded::Http2 { .. } | Encoded::Http2Template { .. } => return,
        };
        if slot.tls.is_some() {
            let parts = [bytes, body.unwrap_or_default()];
            let sealed = Worker::seal(&mut self.secure, &mut slot.tls, io, conn, &parts);
            self.slab.counts.bytes_out += sealed.unwrap_or_default();
            return;
        }
        match body {
            None => io.send(conn, bytes),
            Some(body) => io.send_with(conn, bytes, body),
        }
        self.slab.counts.bytes_out += (bytes.len() + body.map_or(0, <[u8]>::len)) as u64;
    }

    /// The stream whose answer is next.
    #[inline]
    fn oldest(&self, id: SlotId) -> StreamId {
        let slot = &self.pool.slots[id as usize];
        // Without an order there is one stream.
        slot.order.as_ref().and_then(|order| order.front().copied()).unwrap_or(self.pool.first_stream(id))
    }

    /// Bytes of answers came.
    pub(super) fn on_answers<I: Io>(&mut self, io: &mut I, id: SlotId, bytes: &[u8], now: u64) {
        let mut rest = bytes;
        loop {
            let stream_id = self.oldest(id);
            let slot = &mut self.pool.slots[id as usize];
            let stream = &mut self.pool.streams[stream_id as usize];
            let check = &self.plan.requests[stream.request as usize].check;
            let end = loop {
                match slot.answers.next(&mut rest) {
                    Ok(Some(ResponseEvent::Head(head))) => {
                        stream.answer.head(head.status, length(head.framing));
                        if check.checks_headers() {
                            stream.answer.headers(check.headers_right(headers(head.raw)));
                        }
                    }
                    Ok(Some(ResponseEvent::Body(piece))) => stream.answer.body(piece, check),
                    Ok(Some(ResponseEvent::Informational(_))) => {}
                    Ok(Some(ResponseEvent::End { keep_alive })) => break Ok(keep_alive),
                    Ok(None) => {
                        if stream.first == 0 {
                            stream.first = now;
                        }
                        return;
                    }
                    Err(error) => break Err(error),
                }
            };
            let keep_alive = match end {
                // Whatever follows the answer to the last request nobody asked for.
                Ok(_) if !rest.is_empty() && slot.busy == 1 => {
                    return self.broken(io, id, &ParseError::Unsolicited, now);
                }
                Ok(keep_alive) => keep_alive,
                Err(error) => return self.broken(io, id, &error, now),
            };
            if let Some(order) = &mut slot.order {
                order.pop_front();
            }
            if rest.is_empty() {
                return self.complete(io, id, stream_id, keep_alive, now);
            }
            let conn = slot.conn;
            self.complete(io, id, stream_id, keep_alive, now);
            // What follows the connection's last answer goes with the connection.
            if self.pool.slots[id as usize].conn != conn {
                return;
            }
        }
    }

    /// What came is not HTTP, or not an answer to anything.
    fn broken<I: Io>(&mut self, io: &mut I, id: SlotId, _error: &ParseError, now: u64) {
        if self.pool.slot(id).busy > 0 {
            let stream = self.oldest(id);
            let stream = self.pool.stream(stream);
            if stream.first == 0 {
                stream.first = now;
            }
            self.cut(io, id, ErrorKind::Protocol, now);
            return;
        }
        // Between answers some servers say why they close, with an answer to no request (408).
        self.slab.counts.closed_by_peer += 1;
        if let Some(conn) = self.pool.slot(id).conn.take() {
            io.abort(conn);
        }
        self.lost(io, id, now);
    }

    /// The peer closed with requests in flight.
    pub(super) fn end_answer<I: Io>(&mut self, io: &mut I, id: SlotId, now: u64) {
        let stream = self.oldest(id);
        match self.pool.slot(id).answers.on_eof() {
            // A body that lasts until the peer closes.
            Ok(true) => self.complete(io, id, stream, false, now),
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
