//! The end of a load: what is still in flight is given up and counted, connections are closed, and the worker says what it
//! knows.

use std::io;

use weir_model::load::ErrorKind;
use weir_net::Driver;

use super::Worker;
use super::pool::{SlotState, StreamState};
use crate::clock::MILLI;
use crate::recorder::Slab;
use crate::shared::{Message, WorkerResult};

/// How long the connections may take to close.
const CLOSING: u64 = 200 * MILLI;

/// From how many connections on they are not closed one by one but with the driver: to end one operation of many the
/// kernel looks through a good part of them, 100 us for each of 18,000.
const MANY: u32 = 1_000;

impl Worker {
    /// What will not be answered any more is counted.
    pub(super) fn abandon_rest<D: Driver>(&mut self, driver: &mut D) {
        let now = self.clock.now();
        for id in 0..self.pool.len() {
            let slot = self.pool.slot(id);
            if slot.busy > 0
                && let Some(conn) = slot.conn.take()
            {
                driver.abort(conn);
            }
            self.fail_streams(id, ErrorKind::Timeout, now);
            if self.pool.slot(id).pending == 0 {
                continue;
            }
            for stream in self.pool.streams_of(id) {
                if self.pool.stream(stream).state == StreamState::Pending {
                    let due = self.take_pending(id, stream);
                    self.never_sent(due, now);
                }
            }
        }
        while let Some(due) = self.oldest_waiting() {
            self.never_sent(due, now);
        }
        // Its bytes belong to the account.
        self.say_goodbye(driver);
        self.slab.end = now.max(self.slab.start);
        let slab = std::mem::replace(&mut self.slab, Slab::new());
        self.send(Message::Slab(self.share.thread, slab));
    }

    fn never_sent(&mut self, due: u64, now: u64) {
        self.sample_unsent(due, now);
        self.tally(due).unsent += 1;
    }

    /// Takes leave of every peer, and closes what is open, unless that is left to the driver's end.
    fn say_goodbye<D: Driver>(&mut self, driver: &mut D) {
        let one_by_one = self.up < MANY;
        for id in 0..self.pool.len() {
            let slot = self.pool.slot(id);
            if slot.state == SlotState::Up {
                if one_by_one {
                    self.close(driver, id);
                } else if slot.conn.is_some() {
                    self.close_http2(driver, id);
                    self.close_tls(driver, id);
                    self.pool.slot(id).conn = None;
                }
            } else if let Some(conn) = slot.conn.take() {
                driver.abort(conn);
            }
        }
    }

    /// Closes what is open and gives the driver time to do it.
    pub(super) fn close_all<D: Driver>(&mut self, driver: &mut D) -> io::Result<()> {
        self.say_goodbye(driver);
        if self.up >= MANY {
            // What was said leaves with this turn; the sockets go with the driver.
            return driver.poll(self, Some(self.clock.instant(self.clock.now())));
        }
        let until = self.clock.now() + CLOSING;
        while driver.open() > 0 && self.clock.now() < until {
            driver.poll(self, Some(self.clock.instant(until)))?;
        }
        Ok(())
    }

    /// Says what it knows, before connections are closed: with very many that takes a while, and nothing of it is measured.
    pub(super) fn report(&mut self) {
        let (cpu_us, busy_poll_us, busy) = match self.cpu {
            [Some((from, start, awake)), Some((to, end, awake_after))] if end > start => {
                let used = to.since(from);
                let busy_poll_us = ((awake_after - awake) / 1_000).min(used.total_us());
                let busy = (used.total_us() - busy_poll_us) as f64 * 1e3 / (end - start) as f64;
                ((used.user_us, used.system_us), busy_poll_us, busy)
            }
            _ => ((0, 0), 0, 0.0),
        };
        let outcome = WorkerResult {
            thread: self.share.thread,
            before: self.before.clone(),
            window: self.inside.clone(),
            connect: self.connect_times.clone(),
            used: self.used,
            min_streams: self.min_streams,
            tls: self.secure.as_ref().map(|secure| secure.counters.clone()),
            cpu_us,
            busy_poll_us,
            busy,
        };
        // The calling thread listens until all workers are done; if it is gone, nobody wants to know.
        let _ = self.messages.send(Message::Done(Box::new(outcome)));
    }
}
