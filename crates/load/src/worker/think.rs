//! Think times: the pause between an answer and the same stream's next request, in closed and counted loads.
//!
//! A request is due when its stream has finished thinking, exactly; it is late by what the worker needs to notice, and
//! that is lag like any other.

use std::cmp::Reverse;

use rand::Rng;
use weir_net::Io;

use super::pool::{SlotState, StreamState};
use super::{StreamId, Worker};
use crate::clock::{NEVER, from_secs};

impl Worker {
    /// A stream begins to think.
    pub(super) fn think(&mut self, stream: StreamId, now: u64) {
        let Some(spread) = self.plan.think else { return };
        let length = from_secs(spread.at(self.random.random::<f64>()));
        self.pool.stream(stream).state = StreamState::Thinking;
        self.thinking.push(Reverse((now.saturating_add(length), stream)));
    }

    /// When the next stream has finished thinking.
    #[inline]
    pub(super) fn next_think_end(&self) -> u64 {
        self.thinking.peek().map_or(NEVER, |&Reverse((at, _))| at)
    }

    /// Counts the requests of streams that have finished thinking up to `now`.
    pub(super) fn count_think_ends(&mut self, now: u64) {
        while let Some(&Reverse((due, stream))) = self.thinking.peek()
            && due <= now
        {
            self.thinking.pop();
            self.pool.stream(stream).state = StreamState::Idle;
            // After the load's end nothing is due any more.
            if let Some(due) = self.next_request(due) {
                self.set_pending(self.pool.slot_of(stream), stream, due);
                self.ready_to_send.push(stream);
            }
        }
    }

    /// Sends what has been counted.
    pub(super) fn dispatch_ready<I: Io>(&mut self, io: &mut I, now: u64) {
        while let Some(stream) = self.ready_to_send.pop() {
            if self.pool.stream(stream).state != StreamState::Pending {
                // Its connection came up in the meantime.
                continue;
            }
            let id = self.pool.slot_of(stream);
            let slot = self.pool.slot(id);
            match slot.state {
                SlotState::Up if slot.remaining > 0 => {
                    let due = self.take_pending(id, stream);
                    self.request(io, id, stream, due, now);
                }
                SlotState::OnDemand => self.enqueue(id),
                // It waits for its connection.
                _ => {}
            }
        }
    }
}
