//! One worker thread. It joins the parts below and owns everything that a request touches. `drivers` starts it.
//!
//! - [`pacing`]: the source of the next request, and its due time.
//! - [`pool`]: connection slots and their streams. [`connector`]: which slot connects next. [`timer_wheel`]: deadlines.
//! - [`crate::protocol`]: the protocol of a connection. [`transport`]: TLS and gathering of bytes, below it.
//! - [`recorder`]: counts and samples, second by second.
//! - [`busy_poll`]: staying awake when a request is about to fall due. [`coalesce`]: sleeping on when more responses are about to come.
//!
//! The worker is a [`Handler`] of its driver's events, and checks the clock between turns. `connections` has its code for
//! connections, `exchange` for requests and responses, `shutdown` for the end; the clock is handled here.

mod busy_poll;
mod coalesce;
mod connections;
mod connector;
mod exchange;
mod outgoing;
mod pacing;
mod pool;
mod recorder;
mod shutdown;
mod timer_wheel;
mod transport;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_model::load::{ErrorKind, Target};
use weir_net::{Conn, Driver, Event, Handler, Io, Next, Task};

use crate::changes::ChangeWatch;
use crate::clock::{MILLI, NEVER};
use crate::controller::WorkerParts;
use crate::generator::Generator;
use crate::headers::HeaderWatch;
use crate::interval::Phase;
use crate::messages::MessageWatch;
use crate::plan::{Plan, Share};
use crate::protocol::{Protocol, Watches};
use crate::quic::Handshakes;
use crate::reasons::Reasons;
use crate::request_ids::RequestIdWatch;
use crate::shared::{Message, Ready, Shared};
use busy_poll::BusyPoll;
use coalesce::Coalescing;
use connector::Connector;
use outgoing::OutgoingMessages;
use pacing::Pacing;
pub(crate) use pool::Stream;
use pool::{NO_SLOT, Pool, SlotId, SlotState};
use recorder::Recorder;
use transport::Transport;

/// How often timeouts, backoffs and the calling thread's requests are checked. A timeout may be late by this much.
const SWEEP_INTERVAL: u64 = 10 * MILLI;

/// A sweep that comes so much too late, without the thread having been at work, shows that the thread stood still: it was stopped,
/// or had no CPU. A time slice of a neighbour is shorter ([`weir_model::load::Stalls`]).
const STALL: u64 = 20 * MILLI;

/// The stage of a worker.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Nothing yet.
    New,
    /// It makes connections since `begun`, or has `reported` them and waits for the start.
    Connecting { begun: u64, reported: bool },
    /// Warm-up, window and drain: [`Phase`].
    Loading,
    /// It closes connections; `polled`: the driver had the opportunity.
    Closing { until: u64, polled: bool },
}

/// The worker. See the module.
#[derive(Debug)]
pub(crate) struct Worker<P: Protocol> {
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    share: Share,
    stage: Stage,
    protocol: P,
    generator: Generator,
    pacing: Pacing,
    pool: Pool<P::Session>,
    connector: Connector,
    transport: Transport,
    /// What the handshakes of QUIC came to, and how many of them failed in TLS.
    handshakes: Option<Handshakes>,
    failed_handshakes: u64,
    /// Bytes that nobody looks at may be dropped by the driver: without TLS, on TCP.
    may_skip: bool,
    /// Requests have bodies, and a response may come before all of its request has left.
    sends_bodies: bool,
    recorder: Recorder,
    watches: Watches,
    /// Messages that this client sends one by one.
    outgoing: OutgoingMessages,
    busy_poll: BusyPoll,
    coalescing: Coalescing,
    next_sweep: u64,
    /// The thread's CPU time at the last sweep, nanoseconds.
    cpu_at_sweep: u64,
    /// All of this worker's share of a load of a fixed number of requests is done.
    finished: bool,
}

impl<P: Protocol> Worker<P> {
    /// A worker at rest, for this driver.
    pub(crate) fn new(parts: WorkerParts, protocol: P, driver: &impl Driver) -> Worker<P> {
        let WorkerParts { plan, shared, share, messages, spares } = parts;
        let now = driver.now();
        Worker {
            protocol,
            generator: Generator::new(plan.choices.clone(), plan.spec.seed, share.thread, plan.all_threads),
            pacing: Pacing::new(&plan, &share),
            pool: Pool::new(share.connections + share.more, plan.streams, now),
            connector: Connector::new(&plan, &share, now),
            transport: Transport::new(&plan, !P::QUIC),
            handshakes: None,
            failed_handshakes: 0,
            sends_bodies: P::SENDS_REQUESTS_ALONE && plan.sends_bodies(),
            may_skip: plan.tls.is_none() && plan.spec.targets.iter().all(Target::is_tcp),
            recorder: Recorder::new(&plan, share.local, now, messages, spares),
            watches: Watches {
                headers: HeaderWatch::new(plan.expectations.len()),
                ids: plan.spec.request_ids.as_ref().map(|ids| RequestIdWatch::new(ids, share.thread)),
                codings: plan.spec.accept_encoding.map(|_| Box::default()),
                messages: plan
                    .spec
                    .stream
                    .filter(|stream| stream.kind.in_responses())
                    .map(|stream| Box::new(MessageWatch::new(stream, plan.spec.cancel_each))),
                changes: plan.spec.changes.map(|last| Box::new(ChangeWatch::new(last))),
                reasons: Reasons::default(),
            },
            outgoing: OutgoingMessages::default(),
            busy_poll: BusyPoll::new(driver.wake_latency()),
            coalescing: Coalescing::default(),
            next_sweep: 0,
            cpu_at_sweep: 0,
            finished: false,
            plan,
            shared,
            share,
            stage: Stage::New,
        }
    }

    /// The worker's connections are QUIC's, whose handshakes are seen there.
    pub(crate) fn with_handshakes(self, handshakes: Handshakes) -> Worker<P> {
        Worker { handshakes: Some(handshakes), ..self }
    }

    /// Begins to make the connections.
    fn begin_connecting<D: Driver>(&mut self, driver: &mut D) -> Next {
        for _ in 0..self.share.connections {
            self.add_slot();
        }
        (0..self.plan.first_connections(&self.share)).for_each(|id| self.enqueue(id));
        self.connect_some(driver);
        self.stage = Stage::Connecting { begun: driver.now(), reported: false };
        self.connect_turn(driver)
    }

    /// One turn while connections are being made, and until the start.
    fn connect_turn<D: Driver>(&mut self, driver: &mut D) -> Next {
        let Stage::Connecting { begun, reported } = self.stage else { return Next::Over };
        if self.shared.is_abandoned() {
            return self.begin_closing(driver);
        }
        let now = driver.now();
        self.sweep(driver, now);
        self.connect_some(driver);
        if !reported && self.connector.is_ready(self.plan.first_connections(&self.share), begun, now) {
            self.stage = Stage::Connecting { begun, reported: true };
            let failure = self.connector.failure.take().or_else(|| self.unfinished_handshake());
            let attempts = self.recorder.counts().connect_failures;
            self.recorder.send(Message::Connected(Ready { open: self.connector.up, attempts, failure }));
            if self.plan.spec.real_time {
                self.busy_poll.enter_real_time(driver);
            }
        }
        let start = self.shared.start();
        if let Some(start) = start.filter(|start| *start <= now) {
            self.stage = Stage::Loading;
            self.begin(driver, start);
            return self.rest_of_turn(driver);
        }
        let mut until = start.unwrap_or(NEVER).min(now + SWEEP_INTERVAL);
        if self.connector.has_next() {
            until = until.min(self.connector.next_attempt(self.first_since()).max(now));
        }
        Next::Poll(Some(until))
    }

    /// Ends the load if it is over.
    fn rest_of_turn<D: Driver>(&mut self, driver: &mut D) -> Next {
        if !self.is_over(driver) {
            return Next::Poll(Some(self.sleep_until(driver)));
        }
        self.busy_poll.leave_real_time(driver);
        self.abandon_rest(driver);
        self.report(driver);
        self.begin_closing(driver)
    }

    /// The error to report for a connection that is still in its handshake, if there is one.
    fn unfinished_handshake(&self) -> Option<(ErrorKind, String)> {
        let in_state = |state| (0u32..).zip(&self.pool.slots).find(|(_, slot)| slot.state == state);
        if P::QUIC && in_state(SlotState::Connecting).is_some() {
            return Some((ErrorKind::ConnectTimeout, connections::NO_RESPONSE_OVER_UDP.to_owned()));
        }
        let id = in_state(SlotState::Handshaking)?.0;
        Some((ErrorKind::ConnectTimeout, format!("no word from the peer {}", self.handshake_stage(id).1)))
    }

    fn add_slot(&mut self) -> SlotId {
        let number = self.share.number(self.pool.len());
        self.connector.grow();
        self.pool.add(number % self.plan.targets.len() as u32)
    }

    /// The load starts.
    fn begin<I: Io>(&mut self, io: &mut I, start: u64) {
        let end = self.shared.end();
        self.recorder.begin(start, end);
        self.watches.reasons.begin_window(self.recorder.window());
        self.pacing.begin(start, end);
        self.next_interval(io);
        if self.plan.single_use {
            self.begin_on_demand(io);
        }
        if !self.pacing.is_open() {
            self.begin_closed(io, start);
        }
        self.tick(io);
    }

    /// In a closed load every stream has its first request now, also one that is not connected. Where there are fewer
    /// requests than streams they are spread over the connections.
    fn begin_closed<I: Io>(&mut self, io: &mut I, start: u64) {
        let slots = self.pool.len();
        (0..slots).for_each(|id| self.pool.clear_free(id));
        'assigned: for nth in 0..self.plan.streams {
            for id in 0..slots {
                if nth >= self.pool.slot(id).streams {
                    continue;
                }
                let Some(due) = self.next_request(start) else {
                    break 'assigned;
                };
                self.pool.set_pending(id, self.pool.first_stream(id) + nth, due);
            }
        }
        for id in 0..slots {
            if self.pool.slot(id).state == SlotState::OnDemand && self.pool.slot(id).pending > 0 {
                self.enqueue(id);
            }
            // What one connection gets leaves together.
            self.transport.corked = id;
            self.send_pending(io, id);
            self.transport.corked = NO_SLOT;
            self.flush(io, id);
        }
    }

    /// Sends what waits for a connection that is up.
    fn send_pending<I: Io>(&mut self, io: &mut I, id: SlotId) {
        for stream in self.pool.streams_of(id) {
            let slot = self.pool.slot(id);
            if slot.state != SlotState::Up || slot.pending == 0 || slot.remaining == 0 {
                return;
            }
            if let Some(due) = self.pool.take_pending(id, stream) {
                self.send_request(io, id, stream, due, io.now(), true);
            }
        }
    }

    /// Checks the clock between turns, and does everything that is due.
    fn tick<I: Io>(&mut self, io: &mut I) {
        let now = io.now();
        self.check_end(now);
        self.end_intervals(io, now);
        self.count_due(now);
        self.dispatch(io, now);
        self.send_messages(io, now);
        self.sweep(io, now);
    }

    /// Ends every interval whose time is over.
    #[inline]
    fn end_intervals<I: Io>(&mut self, io: &I, now: u64) {
        while now >= self.recorder.interval_end() && self.recorder.phase() != Phase::Drain {
            self.count_due(self.recorder.interval_end().saturating_sub(1));
            self.next_interval(io);
        }
    }

    fn next_interval<I: Io>(&mut self, io: &I) {
        let was = self.recorder.phase();
        self.recorder.next_interval(io, self.connector.open, self.busy_poll.spent());
        let phase = self.recorder.phase();
        if phase == was {
            return;
        }
        if let Some(messages) = &mut self.watches.messages {
            messages.in_window = phase == Phase::Window;
        }
        // A load that is cut short in the warm-up has no window, and no changes in it.
        if phase > Phase::Warmup && was <= Phase::Warmup {
            self.watches.headers.begin_window();
        }
        if !self.plan.spec.leave_queue {
            return;
        }
        match phase {
            // The window begins without waiting requests of the warm-up.
            Phase::Window => self.recorder.before.unsent += self.pacing.drop_waiting(),
            Phase::Drain => self.pacing.stop(),
            Phase::Connect | Phase::Warmup => {}
        }
    }

    /// The time until which the worker may sleep if no event arrives.
    fn next_wakeup(&self) -> u64 {
        self.next_due().min(self.recorder.interval_end()).min(self.next_sweep)
    }

    /// When the next message falls due, or the next request that could be sent then, or for which a connection would be made; [`NEVER`] when
    /// there is none.
    fn next_due(&self) -> u64 {
        self.pacing.next_due(!self.pool.none_free() || self.may_grow()).min(self.outgoing.next_due())
    }

    /// Whether the load allows more connections.
    fn may_grow(&self) -> bool {
        self.pool.len() < self.share.connections + self.share.more
    }

    /// The load is over and nothing is left to wait for.
    fn is_over(&self, io: &impl Io) -> bool {
        if self.shared.is_abandoned() {
            return true;
        }
        if self.recorder.phase() != Phase::Drain {
            return false;
        }
        io.now() >= self.recorder.interval_end() || self.is_at_rest()
    }

    fn is_at_rest(&self) -> bool {
        self.pool.in_flight == 0 && self.pool.pending == 0 && self.pacing.is_done()
    }

    /// Follows an end that has moved: the load was cut short, or one of a fixed number of requests is complete.
    fn check_end(&mut self, now: u64) {
        if self.recorder.phase() == Phase::Drain {
            return;
        }
        if !self.finished && self.pacing.all_counted() && self.is_at_rest() {
            self.finished = true;
            self.shared.finish(self.recorder.last.min(now));
        }
        let end = match self.shared.all_finished() {
            Some(last) => last.min(self.shared.end()),
            // The calling thread announces an end ahead of time. Should that be late all the same, what has been done until
            // now stays on this side of the end, so that every request is on one side only.
            None => self.shared.end().max(now + 1),
        };
        if self.recorder.end_at(end) {
            self.pacing.end_at(end);
        }
    }

    /// Counts what became due up to `now`.
    #[inline]
    fn count_due(&mut self, now: u64) {
        // Since intervals were ended up to `now`, all of them are of the one under way.
        if let Some((first, n)) = self.pacing.count_due(now) {
            self.recorder.due(first, n);
        }
        while let Some((due, stream)) = self.pacing.end_of_rest(now) {
            self.pool.stream(stream).state = pool::StreamState::Idle;
            // After the load's end nothing is due any more.
            if let Some(due) = self.next_request(due) {
                self.pool.set_pending(self.pool.slot_of(stream), stream, due);
                self.pacing.ready.push(stream);
            }
        }
    }

    /// Gives due requests to free streams.
    fn dispatch<I: Io>(&mut self, io: &mut I, now: u64) {
        while let Some(stream) = self.pacing.ready.pop() {
            let id = self.pool.slot_of(stream);
            let slot = self.pool.slot(id);
            match slot.state {
                SlotState::Up if slot.remaining > 0 => {
                    // Nothing is pending if its connection came up in the meantime.
                    if let Some(due) = self.pool.take_pending(id, stream) {
                        self.send_request(io, id, stream, due, now, false);
                    }
                }
                SlotState::OnDemand => self.enqueue(id),
                // It waits for its connection.
                _ => {}
            }
        }
        while !self.pacing.is_done()
            && let Some((id, stream)) = self.pool.acquire()
            && let Some(due) = self.pacing.oldest()
        {
            if self.pool.slot(id).state == SlotState::Up {
                self.send_request(io, id, stream, due, now, false);
            } else {
                self.pool.set_pending(id, stream, due);
                self.enqueue(id);
            }
        }
        if !self.pacing.is_done() {
            self.grow();
        }
        self.connect_some(io);
    }

    /// Records how late this sweep is, if the thread was not at work meanwhile.
    fn count_stall(&mut self, cpu: u64, now: u64) {
        let worked = cpu - std::mem::replace(&mut self.cpu_at_sweep, cpu);
        self.busy_poll.swept(now, worked);
        let late = now.saturating_sub(self.next_sweep).saturating_sub(worked);
        if late >= STALL && self.next_sweep > 0 {
            self.recorder.counts().stalls.record(late / 1_000);
        }
    }

    /// Checks timeouts and backoffs, a hundred times a second.
    fn sweep<I: Io>(&mut self, io: &mut I, now: u64) {
        if now < self.next_sweep {
            return;
        }
        self.count_stall(io.cpu_ns(), now);
        self.next_sweep = now + SWEEP_INTERVAL;
        while let Some(stream) = self.pool.timeouts.take(now) {
            self.check_response_timeout(io, stream, now);
        }
        while let Some(id) = self.connector.timeouts.take(now) {
            self.check_connect_timeout(io, id, now);
        }
        while let Some(id) = self.connector.ages.as_mut().and_then(|ages| ages.take(now)) {
            self.check_age(io, id, now);
        }
        while let Some((_, id)) = self.connector.backoffs.pop(now) {
            if self.pool.slot(id).state == SlotState::Down {
                self.retry(io, id, now);
            }
        }
        self.connect_some(io);
        // A message is not to wait for others.
        if !self.pacing.is_open() && self.watches.messages.is_none() {
            let warming_up = self.recorder.phase() == Phase::Warmup;
            let within = self.coalescing.swept(now, self.pool.in_flight, self.pool.ended, warming_up);
            let events = coalesce::events(self.connector.up, self.plan.streams);
            self.coalescing.cannot |= !io.batch_completions(Duration::from_nanos(within), events);
        }
        let gauge = &self.shared.gauges[self.share.local as usize];
        gauge.open.store(self.connector.up, Ordering::Relaxed);
        let waiting = u64::from(self.pool.in_flight) + u64::from(self.pool.pending) + self.pacing.waiting();
        gauge.waiting.store(waiting, Ordering::Relaxed);
    }
}

impl<P: Protocol, D: Driver> Task<D> for Worker<P> {
    fn turn(&mut self, driver: &mut D) -> io::Result<Next> {
        Ok(match self.stage {
            Stage::New => self.begin_connecting(driver),
            Stage::Connecting { .. } => self.connect_turn(driver),
            Stage::Loading => {
                self.end_poll(driver);
                self.tick(driver);
                self.rest_of_turn(driver)
            }
            Stage::Closing { .. } => self.close_turn(driver),
        })
    }

    fn poll(&mut self, driver: &mut D, until: Option<u64>) -> io::Result<()> {
        driver.poll(self, until)
    }
}

impl<P: Protocol> Handler for Worker<P> {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        let Some(id) = self.pool.find(conn) else {
            return;
        };
        self.busy_poll.disturb();
        let now = io.now();
        if now >= self.recorder.interval_end() {
            self.end_intervals(io, now);
        }
        match event {
            Event::Data(bytes) => self.on_data(io, id, bytes, now),
            Event::Skipped(bytes) => self.on_skipped(io, id, bytes, now),
            Event::Connected => self.on_connected(io, id, now),
            Event::Eof => self.on_eof(io, id, now),
            Event::Failed { error, unsent } => self.on_failed(io, id, &error, unsent, now),
            Event::Accepted(_) | Event::Datagrams(_) | Event::Sent => {}
        }
    }
}
