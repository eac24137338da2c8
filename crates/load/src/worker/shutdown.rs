//! Ends a load: it counts and gives up what is still in flight, closes connections, and reports. An `impl` of `Worker`.

use weir_model::load::{ConnectionSpread, ErrorKind};
use weir_net::{Driver, Io, Next};

use super::pool::{ConnSlot, SlotState};
use super::{Stage, Worker};
use crate::clock::MILLI;
use crate::interval::{Histo, histo};
use crate::protocol::Protocol;
use crate::quic;
use crate::shared::{Message, WorkerResult};

/// How long the connections may take to close.
const CLOSING: u64 = 200 * MILLI;

/// From how many connections on they are not closed one by one but with the driver: to end one operation of many the
/// kernel looks through a good part of them, 100 µs for each of 18,000.
const MANY: u32 = 1_000;

impl<P: Protocol> Worker<P> {
    /// Counts the requests that will get no response any more.
    pub(super) fn abandon_rest<D: Driver>(&mut self, driver: &mut D) {
        let now = driver.now();
        for id in 0..self.pool.len() {
            let slot = self.pool.slot(id);
            if slot.in_flight > 0
                && let Some(conn) = slot.conn.take()
            {
                driver.abort(conn);
            }
            self.fail_streams(id, ErrorKind::Timeout, now);
            if self.pool.slot(id).pending == 0 {
                continue;
            }
            for stream in self.pool.streams_of(id) {
                if let Some(due) = self.pool.take_pending(id, stream) {
                    self.recorder.unsent(due, 1, now);
                }
            }
        }
        while let Some(due) = self.pacing.oldest() {
            // A queue may hold thousands of millions: those whose samples are alike are counted together.
            let others = self.pacing.pop_until(self.recorder.last_like(due, now));
            self.recorder.unsent(due, 1 + others, now);
        }
        // Its bytes are counted, too.
        self.say_goodbyes(driver);
        self.recorder.finish(now);
    }

    /// Ends the protocol with every peer, and closes open connections, unless dropping the driver does that.
    fn say_goodbyes<D: Driver>(&mut self, driver: &mut D) {
        let one_by_one = self.connector.up < MANY;
        for id in 0..self.pool.len() {
            let slot = self.pool.slot(id);
            if slot.state != SlotState::Up {
                if let Some(conn) = slot.conn.take() {
                    driver.abort(conn);
                }
            } else if one_by_one {
                self.close(driver, id);
            } else if slot.conn.is_some() {
                self.say_goodbye(driver, id);
                self.pool.slot(id).conn = None;
            }
        }
    }

    /// Closes what is open, and gives the driver time to do it.
    pub(super) fn begin_closing<D: Driver>(&mut self, driver: &mut D) -> Next {
        self.say_goodbyes(driver);
        // With very many, queued bytes leave with one poll; the sockets close with the driver.
        let within = if self.connector.up >= MANY { 0 } else { CLOSING };
        self.stage = Stage::Closing { until: driver.now() + within, polled: false };
        self.close_turn(driver)
    }

    /// One turn while connections are being closed.
    pub(super) fn close_turn<D: Driver>(&mut self, driver: &mut D) -> Next {
        let Stage::Closing { until, polled } = &mut self.stage else { return Next::Over };
        let first = !std::mem::replace(polled, true);
        if driver.open() > 0 && (first || driver.now() < *until) { Next::Poll(Some(*until)) } else { Next::Over }
    }

    /// How evenly its connections were served, in an own histogram of their mean latencies.
    fn by_connection(&self) -> (ConnectionSpread, Histo) {
        let (mut spread, mut latencies) = (ConnectionSpread::default(), histo());
        let least = if self.pacing.is_closed() { 0 } else { ConnectionSpread::LEAST };
        // One that cannot be made is an error, and not slow.
        let counts = |slot: &&ConnSlot<P::Session>| slot.responses >= least && (slot.responses > 0 || slot.fails == 0);
        for slot in self.pool.slots.iter().filter(counts) {
            spread.record(slot.responses);
            let mean = slot.waited.checked_div(slot.responses).unwrap_or(self.recorder.window_length());
            latencies.saturating_record(mean);
        }
        (spread, latencies)
    }

    /// Reports what it knows, before connections are closed: with very many that takes a while, and nothing of it is measured.
    pub(super) fn report(&mut self, io: &impl Io) {
        let (cpu, busy_poll_us, busy) = self.recorder.cpu();
        let result = WorkerResult {
            thread: self.share.local,
            before: self.recorder.before.clone(),
            window: self.recorder.inside.clone(),
            by_status: self.recorder.by_status.take(),
            connect: self.connector.times.clone(),
            by_connection: self.by_connection(),
            used: self.connector.used,
            min_streams: self.pool.min_streams,
            tls: match (&self.transport.tls, &self.handshakes) {
                (Some(layer), _) => Some((layer.counters.clone(), layer.times.clone())),
                (None, Some(seen)) => Some(seen.result(self.failed_handshakes)),
                (None, None) => None,
            },
            quic: P::QUIC.then(|| quic::result(io)),
            watches: self.watches.clone(),
            cpu_us: (cpu.user_us, cpu.system_us),
            busy_poll_us,
            real_time: self.busy_poll.real_time(),
            busy,
            coalescing_us: self.coalescing.longest_us(),
        };
        self.recorder.send(Message::Done(Box::new(result)));
    }
}
