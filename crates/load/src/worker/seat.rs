//! A connection as the load sees it: a seat, in which one socket after another may sit.

use weir_net::Conn;
use weir_wire::h1::{Answers, Limits};

use crate::check::Answer;

/// What a seat is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Not connected; will try again when its time comes.
    Down,
    /// Waits for its turn to connect.
    Queued,
    /// Connecting.
    Connecting,
    /// Not connected and free: it connects when there is a request for it.
    Fresh,
    /// Connected and free.
    Idle,
    /// A request is in flight.
    Busy,
}

/// One seat.
#[derive(Debug)]
pub(super) struct Seat {
    pub state: State,
    /// It stands in the line of free seats.
    pub in_line: bool,
    /// It has a request, due at `due`, that waits for the connection.
    pub wants: bool,
    /// Lives of this connection in a row that brought no answer.
    pub fails: u8,
    pub conn: Option<Conn>,
    /// When the request became due and when it was sent.
    pub due: u64,
    pub sent: u64,
    /// When connecting began.
    pub begun: u64,
    pub answers: Answers,
    pub answer: Answer,
}

impl Seat {
    pub(super) fn new() -> Seat {
        Seat {
            state: State::Down,
            in_line: false,
            wants: false,
            fails: 0,
            conn: None,
            due: 0,
            sent: 0,
            begun: 0,
            answers: Answers::new(Limits::default()),
            answer: Answer::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_waits_costs_bytes_and_not_kilobytes() {
        assert!(size_of::<Seat>() <= 384, "{} bytes", size_of::<Seat>());
    }
}
