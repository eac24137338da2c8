//! Think times: the pause between an answer and the same lane's next request, in closed and counted loads.
//!
//! A request is due when its lane has finished thinking, exactly; it is late by what the worker needs to notice, and
//! that is lag like any other.

use std::cmp::Reverse;

use rand::Rng;
use weir_net::Io;

use super::seat::{Does, State};
use super::{LaneId, Worker};
use crate::clock::{NEVER, from_secs};

impl Worker {
    /// A lane begins to think.
    pub(super) fn think(&mut self, lane: LaneId, now: u64) {
        let Some(spread) = self.plan.think else { return };
        let length = from_secs(spread.at(self.random.random::<f64>()));
        self.pool.lane(lane).does = Does::Think;
        self.thoughts.push(Reverse((now.saturating_add(length), lane)));
    }

    /// When the next lane has finished thinking.
    #[inline]
    pub(super) fn next_thought(&self) -> u64 {
        self.thoughts.peek().map_or(NEVER, |&Reverse((at, _))| at)
    }

    /// Counts the requests of lanes that have finished thinking up to `now`.
    pub(super) fn count_thoughts(&mut self, now: u64) {
        while let Some(&Reverse((due, lane))) = self.thoughts.peek()
            && due <= now
        {
            self.thoughts.pop();
            self.pool.lane(lane).does = Does::Nothing;
            // After the load's end nothing is due any more.
            if let Some(due) = self.next_request(due) {
                self.want(self.pool.seat_of(lane), lane, due);
                self.ripe.push(lane);
            }
        }
    }

    /// Sends what has been counted.
    pub(super) fn dispatch_thoughts<I: Io>(&mut self, io: &mut I, now: u64) {
        while let Some(lane) = self.ripe.pop() {
            if self.pool.lane(lane).does != Does::Want {
                // Its connection came up in the meantime.
                continue;
            }
            let id = self.pool.seat_of(lane);
            let seat = self.pool.seat(id);
            match seat.state {
                State::Up if seat.room > 0 => {
                    let due = self.wanted(id, lane);
                    self.request(io, id, lane, due, now);
                }
                State::Fresh => self.enqueue(id),
                // It waits for its connection.
                _ => {}
            }
        }
    }
}
