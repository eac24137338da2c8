//! A connection as the load sees it (a slot, in which one socket after another may sit) and what a connection carries:
//! streams, each with one request at a time.
//!
//! HTTP/1.1 has one stream a connection, or as many as requests are pipelined; HTTP/2 has one for each stream that may be
//! open. The streams of slot `s` are those from `s * streams`, so that with one stream a slot and its stream have one number.

use std::collections::VecDeque;

use weir_model::load::ErrorKind;
use weir_net::Conn;
use weir_wire::http1::{Limits, ResponseParser};
use weir_wire::http2::Client;
use weir_wire::tls::Session;

use super::{SlotId, StreamId};
use crate::check::Response;

/// No stream.
pub(super) const NO_STREAM: StreamId = StreamId::MAX;

/// What a slot is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotState {
    /// Not connected; will try again when its time comes.
    Down,
    /// Waits for its turn to connect.
    Queued,
    /// Connecting.
    Connecting,
    /// Connected; the two sides agree on how to speak.
    Handshaking,
    /// Not connected and free: it connects when there is a request for it.
    OnDemand,
    /// Connected and ready.
    Up,
}

/// One connection. What only some need is in boxes: there may be very many of them, and most wait.
#[derive(Debug)]
pub(super) struct ConnSlot {
    pub state: SlotState,
    /// It stands in the line of slots with a free stream.
    pub listed: bool,
    /// Lives of this connection in a row that brought no answer.
    pub fails: u8,
    pub conn: Option<Conn>,
    /// Which of the order's targets it goes to.
    pub target: u32,
    /// When connecting began, and when the connection was there.
    pub begun: u64,
    pub since: u64,
    /// Requests that this life may still send.
    pub remaining: u64,
    /// This life has brought an answer.
    pub used: bool,
    /// Lanes that this life has.
    pub streams: u32,
    /// Lanes with a request in flight, and with one that waits for the connection.
    pub busy: u32,
    pub pending: u32,
    /// The first of its free streams; each knows the next.
    pub free: StreamId,
    pub tls: Option<Session>,
    pub http2: Option<Box<Client>>,
    pub answers: ResponseParser,
    /// Lanes with a request in flight in the order of sending, where there can be more than one.
    #[expect(clippy::box_collection, reason = "8 bytes of each connection instead of 32")]
    pub order: Option<Box<VecDeque<StreamId>>>,
}

impl ConnSlot {
    pub(super) fn new(streams: u32, target: u32) -> ConnSlot {
        ConnSlot {
            state: SlotState::Down,
            listed: false,
            fails: 0,
            conn: None,
            target,
            begun: 0,
            since: 0,
            remaining: 0,
            used: false,
            streams,
            busy: 0,
            pending: 0,
            free: NO_STREAM,
            tls: None,
            http2: None,
            answers: ResponseParser::new(Limits::default()),
            order: None,
        }
    }
}

impl ConnSlot {
    /// What a failure while the two sides agree is, if it is one of TLS, and in words when it happened.
    pub(super) fn handshake_stage(&self) -> (Option<ErrorKind>, &'static str) {
        match &self.tls {
            Some(session) if !session.ready() => (Some(ErrorKind::Tls), "during the TLS handshake"),
            _ => (None, "before its SETTINGS of HTTP/2 came"),
        }
    }
}

/// What a stream is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamState {
    /// Nothing: its connection is not up, or has no such stream.
    Idle,
    /// It is free, and in its slot's list of such.
    Free,
    /// It has a request that waits for the connection.
    Pending,
    /// It has a request in flight.
    InFlight,
    /// It thinks before its next request.
    Thinking,
}

/// One stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub state: StreamState,
    /// Which of the order's requests.
    pub request: u32,
    /// The next free stream of its slot.
    pub next: StreamId,
    /// When the request became due and when it was sent.
    pub due: u64,
    pub sent: u64,
    /// When the first byte of its answer came, if the rest did not come with it; else 0.
    pub first: u64,
    pub answer: Response,
}

impl Stream {
    pub(super) fn new() -> Stream {
        Stream {
            state: StreamState::Idle,
            request: 0,
            next: NO_STREAM,
            due: 0,
            sent: 0,
            first: 0,
            answer: Response::default(),
        }
    }
}

/// The slots of a worker, their streams, and the line of those that are free.
///
/// The line holds slots, each at most once. Who takes a stream takes it from the slot that stands first, which then goes to
/// the line's end if it has more: so requests spread over connections, and with one stream each the
/// connection that has been free longest is next.
#[derive(Debug)]
pub(super) struct Pool {
    /// Lanes of a slot.
    each: u32,
    pub slots: Vec<ConnSlot>,
    pub streams: Vec<Stream>,
    line: VecDeque<SlotId>,
}

impl Pool {
    /// No slots yet; room for `most`, so that growing moves nothing.
    pub(super) fn new(most: u32, each: u32) -> Pool {
        let (most_seats, most_lanes) = (most as usize, most as usize * each as usize);
        Pool {
            each,
            slots: Vec::with_capacity(most_seats),
            streams: Vec::with_capacity(most_lanes),
            line: VecDeque::with_capacity(most_seats),
        }
    }

    /// One slot more, for a connection to this target.
    pub(super) fn grow(&mut self, target: u32) -> SlotId {
        let id = self.slots.len() as SlotId;
        self.slots.push(ConnSlot::new(self.each, target));
        self.streams.extend((0..self.each).map(|_| Stream::new()));
        id
    }

    /// How many slots there are.
    pub(super) fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    #[inline]
    pub(super) fn slot(&mut self, id: SlotId) -> &mut ConnSlot {
        &mut self.slots[id as usize]
    }

    #[inline]
    pub(super) fn stream(&mut self, id: StreamId) -> &mut Stream {
        &mut self.streams[id as usize]
    }

    /// The streams that a slot may have at most.
    pub(super) fn streams_of(&self, id: SlotId) -> std::ops::Range<StreamId> {
        id * self.each..(id + 1) * self.each
    }

    /// The first stream of a slot.
    #[inline]
    pub(super) fn first_stream(&self, id: SlotId) -> StreamId {
        id * self.each
    }

    /// Which slot a stream is of.
    #[inline]
    pub(super) fn slot_of(&self, stream: StreamId) -> SlotId {
        if self.each == 1 { stream } else { stream / self.each }
    }

    /// Whether nobody stands in line. Somebody who does may have become useless there.
    pub(super) fn none_free(&self) -> bool {
        self.line.is_empty()
    }

    /// A stream has nothing to do.
    pub(super) fn give(&mut self, id: SlotId, stream: StreamId) {
        let slot = &mut self.slots[id as usize];
        let free = &mut self.streams[stream as usize];
        free.state = StreamState::Free;
        free.next = std::mem::replace(&mut slot.free, stream);
        self.list_free(id);
    }

    /// A slot stands in the line, if it does not already.
    pub(super) fn list_free(&mut self, id: SlotId) {
        let slot = &mut self.slots[id as usize];
        if !slot.listed {
            slot.listed = true;
            self.line.push_back(id);
        }
    }

    /// Takes a stream of the slot that has been free longest. It may not be connected yet.
    pub(super) fn take(&mut self) -> Option<(SlotId, StreamId)> {
        loop {
            let id = self.line.pop_front()?;
            let slot = &mut self.slots[id as usize];
            slot.listed = false;
            match slot.state {
                SlotState::Up if slot.free != NO_STREAM && slot.remaining > 0 => {
                    let stream = slot.free;
                    slot.free = self.streams[stream as usize].next;
                    if slot.free != NO_STREAM {
                        self.list_free(id);
                    }
                    return Some((id, stream));
                }
                SlotState::OnDemand => return Some((id, self.first_stream(id))),
                // It lost its connection while it stood in line, or has used it up.
                _ => {}
            }
        }
    }

    /// The connection of a slot is gone: none of its streams is free any more.
    pub(super) fn clear_free(&mut self, id: SlotId) {
        let mut stream = std::mem::replace(&mut self.slots[id as usize].free, NO_STREAM);
        while stream != NO_STREAM {
            let free = &mut self.streams[stream as usize];
            free.state = StreamState::Idle;
            stream = free.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_waits_costs_bytes_and_not_kilobytes() {
        assert!(size_of::<ConnSlot>() <= 192, "{} bytes", size_of::<ConnSlot>());
        assert!(size_of::<Stream>() <= 128, "{} bytes", size_of::<Stream>());
    }

    fn up(slots: u32, streams: u32) -> Pool {
        let mut pool = Pool::new(slots, streams);
        for id in 0..slots {
            assert_eq!(pool.grow(0), id);
            let slot = pool.slot(id);
            slot.state = SlotState::Up;
            slot.remaining = u64::MAX;
            for stream in pool.streams_of(id).rev() {
                pool.give(id, stream);
            }
        }
        pool
    }

    #[test]
    fn with_one_lane_each_the_longest_free_is_next() {
        let mut pool = up(3, 1);
        let taken: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(taken, [(0, 0), (1, 1), (2, 2)]);
        pool.give(1, 1);
        pool.give(0, 0);
        assert_eq!(pool.take(), Some((1, 1)));
    }

    #[test]
    fn lanes_are_taken_from_all_connections_in_turn() {
        let mut pool = up(2, 3);
        let taken: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(taken, [(0, 0), (1, 3), (0, 1), (1, 4), (0, 2), (1, 5)]);
        assert!(pool.none_free());
        assert!(taken.iter().all(|(slot, stream)| pool.slot_of(*stream) == *slot));
    }

    #[test]
    fn a_lost_connection_has_no_free_lane() {
        let mut pool = up(2, 2);
        pool.slot(0).state = SlotState::Down;
        pool.clear_free(0);
        assert_eq!(pool.take(), Some((1, 2)));
        assert_eq!(pool.take(), Some((1, 3)));
        assert_eq!(pool.take(), None);
        assert!(pool.streams[..2].iter().all(|stream| stream.state == StreamState::Idle));
    }
}
