//! The connection pool: slots, each with one connection at a time, and their streams, each with one request at a time.
//! Used by all of `worker`.
//!
//! HTTP/1.1 has one stream per connection, or as many as requests are pipelined; HTTP/2 has one for each request that
//! may be in flight. The streams of slot `s` start at `s * streams`, so with one stream per slot, a slot and its stream
//! have the same number. The pool does not know why a stream has a request; `S` is the protocol's state of a
//! connection.

use std::collections::VecDeque;
use std::ops::Range;

use weir_model::load::ErrorKind;
use weir_net::Conn;
use weir_wire::request_id::RequestId;
use weir_wire::tls::Session as TlsSession;

use super::timer_wheel::TimerWheel;
use crate::messages::MessageState;
use crate::response_check::Response;

/// Index of a slot.
pub(super) type SlotId = u32;

/// Index of a stream.
pub(super) type StreamId = u32;

/// No slot.
pub(super) const NO_SLOT: SlotId = SlotId::MAX;

/// No stream.
const NO_STREAM: StreamId = StreamId::MAX;

/// What a slot is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotState {
    /// Not connected; it tries again when its backoff is over.
    Down,
    /// It waits for its turn to connect.
    Queued,
    /// Connecting.
    Connecting,
    /// Connected; TLS or the protocol is negotiating.
    Handshaking,
    /// Not connected and free: it connects when there is a request for it.
    OnDemand,
    /// Connected and ready.
    Up,
}

/// One connection. Rarely needed state is boxed: there may be very many slots, and most are idle.
#[derive(Debug)]
pub(super) struct ConnSlot<S> {
    pub state: SlotState,
    /// It stands in the list of slots with a free stream.
    listed: bool,
    /// Connections in a row that brought no response.
    pub fails: u8,
    pub conn: Option<Conn>,
    /// Which of the load's targets it connects to.
    pub target: u32,
    /// When connecting began, and when the connection was there.
    pub connecting_since: u64,
    pub connected_at: u64,
    /// Requests that this connection may still send.
    pub remaining: u64,
    /// Its connection, or the last one, has brought a response, and none has been tried since.
    pub used: bool,
    /// Streams that this connection has.
    pub streams: u32,
    /// Streams with a request in flight, and with one that waits for the connection.
    pub in_flight: u32,
    pub pending: u32,
    /// Responses that came in the window, and the sum of their latencies, ns: of all connections that it had.
    pub responses: u64,
    pub waited: u64,
    /// The first of its free streams; each knows the next.
    free: StreamId,
    pub tls: Option<TlsSession>,
    pub session: S,
}

/// What a stream is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StreamState {
    /// Nothing: its connection is not up, or has no such stream.
    #[default]
    Idle,
    /// It is free, and in its slot's list of such.
    Free,
    /// It has a request that waits for the connection.
    Pending,
    /// It has a request in flight.
    InFlight,
    /// It waits for its think time to end, or for the next burst.
    Resting,
}

/// One stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub(super) state: StreamState,
    /// The request waited for a free connection before it was sent.
    pub(super) waited: bool,
    /// Which of the load's requests it carries, and its ID where they have IDs.
    pub(crate) request: u32,
    pub(crate) request_id: RequestId,
    /// The next free stream of its slot.
    pub(super) next: StreamId,
    /// When the request became due and when it was sent.
    pub(super) due: u64,
    pub(super) sent: u64,
    /// When the first byte of its response came; 0 before.
    pub(crate) first: u64,
    pub(crate) response: Response,
    /// Where responses are streams: made with the first, and reused.
    pub(crate) messages: Option<Box<MessageState>>,
}

impl Stream {
    /// When its request was sent.
    #[inline]
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// When its request became due.
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// The kind of its failure, if its connection or it ends with this kind: a response of HTTP that has begun is truncated.
    pub(crate) fn failure(&self, kind: ErrorKind) -> ErrorKind {
        let ends = matches!(kind, ErrorKind::Reset | ErrorKind::ClosedEarly | ErrorKind::StreamReset);
        if ends && self.first > 0 { ErrorKind::Truncated } else { kind }
    }
}

/// The slots of a worker, their streams, and the list of those that are free.
///
/// The list holds slots, each at most once. A stream is taken from the first slot, which then goes to the list's end if it
/// has more: so requests spread over connections, and with one stream each the connection that has been free longest is next.
#[derive(Debug)]
pub(super) struct Pool<S> {
    /// Streams of a slot.
    each: u32,
    pub slots: Vec<ConnSlot<S>>,
    pub streams: Vec<Stream>,
    free: VecDeque<SlotId>,
    /// Which slot has a connection, by the driver's number of it.
    by_conn: Vec<SlotId>,
    /// Streams that wait for a response, by when it is overdue.
    pub timeouts: TimerWheel,
    /// Streams with a request in flight, and with one that waits for a connection.
    pub in_flight: u32,
    pub pending: u32,
    /// Requests that have ended, answered or not.
    pub ended: u64,
    /// The fewest streams that a peer allowed.
    pub min_streams: u32,
}

impl<S: Default> Pool<S> {
    /// No slots yet; memory for `most`, so that growing moves nothing.
    pub(super) fn new(most: u32, each: u32, now: u64) -> Pool<S> {
        let (most_slots, most_streams) = (most as usize, most as usize * each as usize);
        Pool {
            each,
            slots: Vec::with_capacity(most_slots),
            streams: Vec::with_capacity(most_streams),
            free: VecDeque::with_capacity(most_slots),
            by_conn: Vec::with_capacity(most_slots),
            timeouts: TimerWheel::new(most * each, now),
            in_flight: 0,
            pending: 0,
            ended: 0,
            min_streams: each,
        }
    }

    /// Adds a slot, for connections to this target.
    pub(super) fn add(&mut self, target: u32) -> SlotId {
        let id = self.len();
        self.slots.push(ConnSlot {
            state: SlotState::Down,
            listed: false,
            fails: 0,
            conn: None,
            target,
            connecting_since: 0,
            connected_at: 0,
            remaining: 0,
            used: false,
            streams: self.each,
            in_flight: 0,
            pending: 0,
            responses: 0,
            waited: 0,
            free: NO_STREAM,
            tls: None,
            session: S::default(),
        });
        self.streams.extend((0..self.each).map(|_| Stream::default()));
        self.timeouts.grow(self.each);
        id
    }

    /// The slot gives up its connection and its TLS.
    pub(super) fn disconnect(&mut self, id: SlotId) {
        let slot = self.slot(id);
        slot.conn = None;
        slot.tls = None;
        slot.state = SlotState::Down;
        self.clear_free(id);
    }
}

impl<S> Pool<S> {
    /// How many slots there are.
    pub(super) fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    #[inline]
    pub(super) fn slot(&mut self, id: SlotId) -> &mut ConnSlot<S> {
        &mut self.slots[id as usize]
    }

    #[inline]
    pub(super) fn stream(&mut self, id: StreamId) -> &mut Stream {
        &mut self.streams[id as usize]
    }

    /// The streams that a slot may have at most.
    pub(super) fn streams_of(&self, id: SlotId) -> Range<StreamId> {
        id * self.each..(id + 1) * self.each
    }

    /// The streams that a slot's connection has.
    pub(super) fn allowed_streams(&self, id: SlotId) -> Range<StreamId> {
        let first = self.first_stream(id);
        first..first + self.slots[id as usize].streams
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

    /// The slot connects as `conn`.
    pub(super) fn bind(&mut self, id: SlotId, conn: Conn) {
        if self.by_conn.len() <= conn.slot() {
            self.by_conn.resize(conn.slot() + 1, 0);
        }
        self.by_conn[conn.slot()] = id;
        self.slot(id).conn = Some(conn);
    }

    /// The slot that a connection is of.
    #[inline]
    pub(super) fn find(&self, conn: Conn) -> Option<SlotId> {
        let id = *self.by_conn.get(conn.slot())?;
        (self.slots[id as usize].conn == Some(conn)).then_some(id)
    }

    /// A stream has a request that waits for its connection.
    pub(super) fn set_pending(&mut self, id: SlotId, stream: StreamId, due: u64) {
        let stream = self.stream(stream);
        stream.state = StreamState::Pending;
        stream.due = due;
        self.slot(id).pending += 1;
        self.pending += 1;
    }

    /// Takes back the request of a stream that waits for its connection, as its due time.
    pub(super) fn take_pending(&mut self, id: SlotId, stream: StreamId) -> Option<u64> {
        let stream = self.stream(stream);
        if stream.state != StreamState::Pending {
            return None;
        }
        stream.state = StreamState::Idle;
        let due = stream.due;
        self.slot(id).pending -= 1;
        self.pending -= 1;
        Some(due)
    }

    /// The request of a stream is sent.
    #[inline]
    pub(super) fn begin(&mut self, id: SlotId, stream_id: StreamId, due: u64, now: u64, waited: bool, timeout: u64) {
        let slot = self.slot(id);
        slot.remaining = slot.remaining.saturating_sub(1);
        slot.in_flight += 1;
        let stream = self.stream(stream_id);
        stream.state = StreamState::InFlight;
        stream.due = due;
        stream.sent = now;
        stream.waited = waited;
        stream.first = 0;
        self.in_flight += 1;
        self.timeouts.watch(stream_id, now + timeout);
    }

    /// The request of a stream has ended.
    #[inline]
    pub(super) fn end(&mut self, id: SlotId, stream: StreamId) -> &mut Stream {
        self.slot(id).in_flight -= 1;
        self.in_flight -= 1;
        self.ended += 1;
        let stream = self.stream(stream);
        stream.state = StreamState::Idle;
        stream
    }

    /// Whether no slot is listed as free. One that is may have become useless meanwhile.
    pub(super) fn none_free(&self) -> bool {
        self.free.is_empty()
    }

    /// A stream has nothing to do.
    pub(super) fn release(&mut self, id: SlotId, stream: StreamId) {
        let slot = &mut self.slots[id as usize];
        let free = &mut self.streams[stream as usize];
        free.state = StreamState::Free;
        free.next = std::mem::replace(&mut slot.free, stream);
        self.list_free(id);
    }

    /// Lists a slot as free.
    pub(super) fn list_free(&mut self, id: SlotId) {
        let slot = &mut self.slots[id as usize];
        if !slot.listed {
            slot.listed = true;
            self.free.push_back(id);
        }
    }

    /// Takes a stream of the slot that has been free longest. It may not be connected yet.
    pub(super) fn acquire(&mut self) -> Option<(SlotId, StreamId)> {
        loop {
            let id = self.free.pop_front()?;
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
                // It lost its connection while it was one_of, or has used it up.
                _ => {}
            }
        }
    }

    /// None of a slot's streams is free any more.
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
    use crate::protocol::{Http1, Protocol};

    type Session = <Http1 as Protocol>::Session;

    #[test]
    fn a_connection_that_waits_costs_bytes_and_not_kilobytes() {
        assert!(size_of::<ConnSlot<Session>>() <= 192, "{} bytes", size_of::<ConnSlot<Session>>());
        assert!(size_of::<Stream>() <= 128, "{} bytes", size_of::<Stream>());
    }

    fn up(slots: u32, streams: u32) -> Pool<()> {
        let mut pool = Pool::new(slots, streams, 0);
        for id in 0..slots {
            assert_eq!(pool.add(0), id);
            let slot = pool.slot(id);
            slot.state = SlotState::Up;
            slot.remaining = u64::MAX;
            for stream in pool.streams_of(id).rev() {
                pool.release(id, stream);
            }
        }
        pool
    }

    #[test]
    fn with_one_stream_each_the_longest_free_is_next() {
        let mut pool = up(3, 1);
        let taken: Vec<_> = std::iter::from_fn(|| pool.acquire()).collect();
        assert_eq!(taken, [(0, 0), (1, 1), (2, 2)]);
        pool.release(1, 1);
        pool.release(0, 0);
        assert_eq!(pool.acquire(), Some((1, 1)));
    }

    #[test]
    fn streams_are_taken_from_all_connections_in_turn() {
        let mut pool = up(2, 3);
        let taken: Vec<_> = std::iter::from_fn(|| pool.acquire()).collect();
        assert_eq!(taken, [(0, 0), (1, 3), (0, 1), (1, 4), (0, 2), (1, 5)]);
        assert!(pool.none_free());
        assert!(taken.iter().all(|(slot, stream)| pool.slot_of(*stream) == *slot));
    }

    #[test]
    fn a_lost_connection_has_no_free_stream() {
        let mut pool = up(2, 2);
        pool.slot(0).state = SlotState::Down;
        pool.clear_free(0);
        assert_eq!(pool.acquire(), Some((1, 2)));
        assert_eq!(pool.acquire(), Some((1, 3)));
        assert_eq!(pool.acquire(), None);
        assert!(pool.streams[..2].iter().all(|stream| stream.state == StreamState::Idle));
    }
}
