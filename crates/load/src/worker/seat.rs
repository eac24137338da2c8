//! A connection as the load sees it (a seat, in which one socket after another may sit) and what a connection carries:
//! lanes, each with one request at a time.
//!
//! HTTP/1.1 has one lane a connection, or as many as requests are pipelined; HTTP/2 has one for each stream that may be
//! open. The lanes of seat `s` are those from `s * lanes`, so that with one lane a seat and its lane have one number.

use std::collections::VecDeque;

use weir_model::load::ErrorKind;
use weir_net::Conn;
use weir_wire::http1::{Limits, ResponseParser};
use weir_wire::http2::Client;
use weir_wire::tls::Session;

use super::{LaneId, SeatId};
use crate::check::Answer;

/// No lane.
pub(super) const NO_LANE: LaneId = LaneId::MAX;

/// What a seat is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Not connected; will try again when its time comes.
    Down,
    /// Waits for its turn to connect.
    Queued,
    /// Connecting.
    Connecting,
    /// Connected; the two sides agree on how to speak.
    Shaking,
    /// Not connected and free: it connects when there is a request for it.
    Fresh,
    /// Connected and ready.
    Up,
}

/// One connection. What only some need is in boxes: there may be very many of them, and most wait.
#[derive(Debug)]
pub(super) struct Seat {
    pub state: State,
    /// It stands in the line of seats with a free lane.
    pub in_line: bool,
    /// Lives of this connection in a row that brought no answer.
    pub fails: u8,
    pub conn: Option<Conn>,
    /// Which of the order's targets it goes to.
    pub target: u32,
    /// When connecting began, and when the connection was there.
    pub begun: u64,
    pub since: u64,
    /// Requests that this life may still send.
    pub room: u64,
    /// This life has brought an answer.
    pub used: bool,
    /// Lanes that this life has.
    pub lanes: u32,
    /// Lanes with a request in flight, and with one that waits for the connection.
    pub busy: u32,
    pub wants: u32,
    /// The first of its free lanes; each knows the next.
    pub free: LaneId,
    pub tls: Option<Session>,
    pub two: Option<Box<Client>>,
    pub answers: ResponseParser,
    /// Lanes with a request in flight in the order of sending, where there can be more than one.
    #[expect(clippy::box_collection, reason = "8 bytes of each connection instead of 32")]
    pub order: Option<Box<VecDeque<LaneId>>>,
}

impl Seat {
    pub(super) fn new(lanes: u32, target: u32) -> Seat {
        Seat {
            state: State::Down,
            in_line: false,
            fails: 0,
            conn: None,
            target,
            begun: 0,
            since: 0,
            room: 0,
            used: false,
            lanes,
            busy: 0,
            wants: 0,
            free: NO_LANE,
            tls: None,
            two: None,
            answers: ResponseParser::new(Limits::default()),
            order: None,
        }
    }
}

impl Seat {
    /// What a failure while the two sides agree is, if it is one of TLS, and in words when it happened.
    pub(super) fn shaking(&self) -> (Option<ErrorKind>, &'static str) {
        match &self.tls {
            Some(session) if !session.ready() => (Some(ErrorKind::Tls), "during the TLS handshake"),
            _ => (None, "before its SETTINGS of HTTP/2 came"),
        }
    }
}

/// What a lane is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// Nothing: its connection is not up, or has no such lane.
    Nothing,
    /// It is free, and in its seat's list of such.
    Free,
    /// It has a request that waits for the connection.
    Want,
    /// It has a request in flight.
    Wait,
    /// It thinks before its next request.
    Think,
}

/// One lane.
#[derive(Debug)]
pub(super) struct Lane {
    pub does: Does,
    /// Which of the order's requests.
    pub ask: u32,
    /// The next free lane of its seat.
    pub next: LaneId,
    /// When the request became due and when it was sent.
    pub due: u64,
    pub sent: u64,
    /// When the first byte of its answer came, if the rest did not come with it; else 0.
    pub first: u64,
    pub answer: Answer,
}

impl Lane {
    pub(super) fn new() -> Lane {
        Lane { does: Does::Nothing, ask: 0, next: NO_LANE, due: 0, sent: 0, first: 0, answer: Answer::default() }
    }
}

/// The seats of a worker, their lanes, and the line of those that are free.
///
/// The line holds seats, each at most once. Who takes a lane takes it from the seat that stands first, which then goes to
/// the line's end if it has more: so requests spread over connections, and with one lane each the
/// connection that has been free longest is next.
#[derive(Debug)]
pub(super) struct Pool {
    /// Lanes of a seat.
    each: u32,
    pub seats: Vec<Seat>,
    pub lanes: Vec<Lane>,
    line: VecDeque<SeatId>,
}

impl Pool {
    /// No seats yet; room for `most`, so that growing moves nothing.
    pub(super) fn new(most: u32, each: u32) -> Pool {
        let (most_seats, most_lanes) = (most as usize, most as usize * each as usize);
        Pool {
            each,
            seats: Vec::with_capacity(most_seats),
            lanes: Vec::with_capacity(most_lanes),
            line: VecDeque::with_capacity(most_seats),
        }
    }

    /// One seat more, for a connection to this target.
    pub(super) fn grow(&mut self, target: u32) -> SeatId {
        let id = self.seats.len() as SeatId;
        self.seats.push(Seat::new(self.each, target));
        self.lanes.extend((0..self.each).map(|_| Lane::new()));
        id
    }

    /// How many seats there are.
    pub(super) fn len(&self) -> u32 {
        self.seats.len() as u32
    }

    #[inline]
    pub(super) fn seat(&mut self, id: SeatId) -> &mut Seat {
        &mut self.seats[id as usize]
    }

    #[inline]
    pub(super) fn lane(&mut self, id: LaneId) -> &mut Lane {
        &mut self.lanes[id as usize]
    }

    /// The lanes that a seat may have at most.
    pub(super) fn lanes_of(&self, id: SeatId) -> std::ops::Range<LaneId> {
        id * self.each..(id + 1) * self.each
    }

    /// The first lane of a seat.
    #[inline]
    pub(super) fn first_lane(&self, id: SeatId) -> LaneId {
        id * self.each
    }

    /// Which seat a lane is of.
    #[inline]
    pub(super) fn seat_of(&self, lane: LaneId) -> SeatId {
        if self.each == 1 { lane } else { lane / self.each }
    }

    /// Whether nobody stands in line. Somebody who does may have become useless there.
    pub(super) fn nobody_free(&self) -> bool {
        self.line.is_empty()
    }

    /// A lane has nothing to do.
    pub(super) fn give(&mut self, id: SeatId, lane: LaneId) {
        let seat = &mut self.seats[id as usize];
        let free = &mut self.lanes[lane as usize];
        free.does = Does::Free;
        free.next = std::mem::replace(&mut seat.free, lane);
        self.stand_in_line(id);
    }

    /// A seat stands in the line, if it does not already.
    pub(super) fn stand_in_line(&mut self, id: SeatId) {
        let seat = &mut self.seats[id as usize];
        if !seat.in_line {
            seat.in_line = true;
            self.line.push_back(id);
        }
    }

    /// Takes a lane of the seat that has been free longest. It may not be connected yet.
    pub(super) fn take(&mut self) -> Option<(SeatId, LaneId)> {
        loop {
            let id = self.line.pop_front()?;
            let seat = &mut self.seats[id as usize];
            seat.in_line = false;
            match seat.state {
                State::Up if seat.free != NO_LANE && seat.room > 0 => {
                    let lane = seat.free;
                    seat.free = self.lanes[lane as usize].next;
                    if seat.free != NO_LANE {
                        self.stand_in_line(id);
                    }
                    return Some((id, lane));
                }
                State::Fresh => return Some((id, self.first_lane(id))),
                // It lost its connection while it stood in line, or has used it up.
                _ => {}
            }
        }
    }

    /// The connection of a seat is gone: none of its lanes is free any more.
    pub(super) fn forget_free(&mut self, id: SeatId) {
        let mut lane = std::mem::replace(&mut self.seats[id as usize].free, NO_LANE);
        while lane != NO_LANE {
            let free = &mut self.lanes[lane as usize];
            free.does = Does::Nothing;
            lane = free.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_waits_costs_bytes_and_not_kilobytes() {
        assert!(size_of::<Seat>() <= 192, "{} bytes", size_of::<Seat>());
        assert!(size_of::<Lane>() <= 128, "{} bytes", size_of::<Lane>());
    }

    fn up(seats: u32, lanes: u32) -> Pool {
        let mut pool = Pool::new(seats, lanes);
        for id in 0..seats {
            assert_eq!(pool.grow(0), id);
            let seat = pool.seat(id);
            seat.state = State::Up;
            seat.room = u64::MAX;
            for lane in pool.lanes_of(id).rev() {
                pool.give(id, lane);
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
        assert!(pool.nobody_free());
        assert!(taken.iter().all(|(seat, lane)| pool.seat_of(*lane) == *seat));
    }

    #[test]
    fn a_lost_connection_has_no_free_lane() {
        let mut pool = up(2, 2);
        pool.seat(0).state = State::Down;
        pool.forget_free(0);
        assert_eq!(pool.take(), Some((1, 2)));
        assert_eq!(pool.take(), Some((1, 3)));
        assert_eq!(pool.take(), None);
        assert!(pool.lanes[..2].iter().all(|lane| lane.does == Does::Nothing));
    }
}
