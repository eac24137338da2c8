//! One worker thread: its connections, and what it does with each event.
//!
//! A worker owns all that it touches for a request. It is a [`Handler`] of its driver's events and, between turns,
//! looks at the clock ([`timeline`]): what has become due, which second is over, who has waited too long.
//!
//! - [`slot`]: a connection as the load sees it, which outlives the sockets it uses, and the streams that it has.
//! - [`connect`]: making connections, and what follows when one is lost.
//! - [`exchange`]: requests and complete answers: samples and counts, whatever the protocol.
//! - [`one`] and [`two`]: HTTP/1.1 and HTTP/2 on a connection.
//! - [`secure`]: TLS under them.
//! - [`timeline`]: phases, seconds, due times.
//! - [`timeouts`]: who has waited too long.
//! - [`think`]: think times.
//! - [`ending`]: what is given up, closed and said at the end.
//! - [`busy_poll`]: being awake when a request falls due.

mod busy_poll;
mod connect;
mod exchange;
mod http1;
mod http2;
mod pool;
mod shutdown;
mod think;
mod timeline;
mod timer_wheel;
mod tls;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use weir_model::load::{ErrorKind, Shape};
use weir_net::{Conn, Driver, Event, Handler, Io};

use crate::backlog::Backlog;
use crate::clock::{Clock, MILLI, NEVER, SECOND};
use crate::counts::RequestCounts;
use crate::cpu::CpuTime;
use crate::generator::Generator;
use crate::plan::{Plan, Share};
use crate::recorder::{Histo, Phase, Slab, histo};
use crate::shared::{Message, Ready, Shared};
use busy_poll::BusyPoll;
use http2::NO_SLOT;
use pool::{Pool, SlotState};
use timer_wheel::TimerWheel;
pub(crate) use tls::TlsCounters;
use tls::TlsLayer;

/// How often timeouts, retries and orders from outside are looked at; so late may a timeout be.
const SWEEP_INTERVAL: u64 = 10 * MILLI;

/// When nobody listens at all, trying goes on for no longer than this.
const REFUSED_FOR: u64 = 2 * SECOND;

/// Where the next request of a free connection comes from.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a worker has one")]
pub(super) enum RequestSource {
    /// It is due as soon as the connection is free.
    Closed,
    /// The same, so many more times.
    Counted(u64),
    /// It has become due by itself.
    Open(Backlog),
}

/// Index of a slot.
type SlotId = u32;

/// Index of a stream.
type StreamId = u32;

/// Something to do at a time, the earliest first.
type TimerQueue = BinaryHeap<Reverse<(u64, u32)>>;

/// The worker. See the module.
#[derive(Debug)]
pub(crate) struct Worker {
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    share: Share,
    clock: Clock,
    messages: Sender<Message>,
    spares: Receiver<Box<Slab>>,

    pool: Pool,
    /// Which slot has a driver's slot.
    by_conn: Vec<SlotId>,
    /// Seats that wait for their turn to connect.
    queue: VecDeque<SlotId>,
    /// Lanes that wait for an answer, and slots that wait to be connected.
    timeouts: TimerWheel,
    connect_timeouts: TimerWheel,
    /// When slots may try again to connect, and when streams have finished thinking.
    backoffs: TimerQueue,
    thinking: TimerQueue,
    /// Lanes that have finished, and whose requests are to be sent.
    ready_to_send: Vec<StreamId>,
    random: ChaCha8Rng,

    pace: RequestSource,
    /// Requests that were counted as due and could not be sent after all, as their due times: the next to be sent.
    returned: VecDeque<u64>,
    generator: Generator,
    secure: Option<Box<TlsLayer>>,
    /// Frames of HTTP/2 for the connection `gathering`, if they are not to leave one by one.
    frames: Vec<u8>,
    gathering: SlotId,
    /// The fewest streams that a peer allowed.
    min_streams: u32,

    /// Sockets that are connected, whether or not the two sides have agreed on how to speak.
    open: u32,
    /// Seats being connected, and ready; streams with a request in flight, and with one that waits for a connection.
    connecting: u32,
    up: u32,
    busy: u32,
    pending: u32,

    /// Attempts to connect so far.
    made: u64,
    /// Most connections up at a time so far, and when the last of them came up, or was first tried, if they are made at a
    /// rate. A peer that ends connections as fast as they are made gets nowhere.
    max_up: u32,
    last_progress: u64,
    /// Connections that brought an answer.
    used: u64,

    /// Warm-up's end, which is the window's start; the window's end; the end of all timeouts.
    window: u64,
    end: u64,
    /// When the slab is over.
    interval_end: u64,
    next_sweep: u64,
    /// When the last request ended.
    last: u64,
    finished: bool,

    slab: Box<Slab>,
    /// Requests due before the window, and in it.
    before: RequestCounts,
    inside: RequestCounts,
    connect_times: Histo,
    busy_poll: BusyPoll,
    /// At the window's start and its end: CPU, when, and what of the CPU was spent on busy-polling.
    cpu: [Option<(CpuTime, u64, u64)>; 2],
    connect_failure: Option<(ErrorKind, String)>,
    /// Every failure to connect so far was of a kind that trying again does not mend.
    permanent_failures: bool,
}

impl Worker {
    /// A worker at rest. `spares` has slabs for later seconds.
    pub(crate) fn new(
        plan: Arc<Plan>,
        shared: Arc<Shared>,
        share: Share,
        clock: Clock,
        messages: Sender<Message>,
        spares: Receiver<Box<Slab>>,
    ) -> Worker {
        let pace = match (&plan.timetable, &plan.shape) {
            (Some(timetable), _) => {
                RequestSource::Open(Backlog::new(timetable.schedule(plan.seed, share.thread, plan.threads)))
            }
            (None, Shape::Count { .. }) => RequestSource::Counted(share.requests),
            (None, _) => RequestSource::Closed,
        };
        let (slots, streams) = (share.connections, plan.streams);
        let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
        // Streams from 2^32 are not taken by arrivals, which have one a thread.
        random.set_stream((1 << 32) + u64::from(share.thread));
        let now = clock.now();
        let (before, inside) = (RequestCounts::new(plan.requests.len()), RequestCounts::new(plan.requests.len()));
        let most = slots + share.more;
        let (choices, seed, threads) = (plan.choices.clone(), plan.seed, plan.threads);
        let secure = TlsLayer::new(&plan);
        let thinking_streams = if plan.think.is_some() { (slots * streams) as usize } else { 0 };
        Worker {
            plan,
            shared,
            share,
            clock,
            messages,
            spares,
            pool: Pool::new(most, streams),
            by_conn: Vec::with_capacity(most as usize),
            queue: VecDeque::with_capacity(most as usize),
            timeouts: TimerWheel::new(most * streams, now),
            connect_timeouts: TimerWheel::new(most, now),
            backoffs: TimerQueue::with_capacity(most as usize),
            thinking: TimerQueue::with_capacity(thinking_streams),
            ready_to_send: Vec::with_capacity(thinking_streams),
            random,
            pace,
            returned: VecDeque::new(),
            generator: Generator::new(choices, seed, share.thread, threads),
            secure,
            frames: Vec::new(),
            gathering: NO_SLOT,
            min_streams: streams,
            open: 0,
            connecting: 0,
            up: 0,
            busy: 0,
            pending: 0,
            made: 0,
            max_up: 0,
            last_progress: 0,
            used: 0,
            window: NEVER,
            end: NEVER,
            interval_end: NEVER,
            next_sweep: 0,
            last: 0,
            finished: false,
            slab: Slab::new(),
            before,
            inside,
            connect_times: histo(),
            busy_poll: BusyPoll::default(),
            cpu: [None; 2],
            connect_failure: None,
            permanent_failures: true,
        }
    }

    /// StreamState the whole load and reports to the calling thread, except for an error of the driver itself.
    ///
    /// # Errors
    /// What the kernel said when it refused the driver's wait.
    pub(crate) fn run<D: Driver>(mut self, driver: &mut D) -> io::Result<()> {
        self.slab.start = self.clock.now();
        if !self.make_connections(driver)? {
            return Ok(());
        }
        while !self.is_over() {
            self.wait(driver)?;
            self.look(driver);
        }
        self.abandon_rest(driver);
        self.report();
        self.close_all(driver)
    }

    /// Makes the connections and waits for the start. False: there will be none.
    fn make_connections<D: Driver>(&mut self, driver: &mut D) -> io::Result<bool> {
        for _ in 0..self.share.connections {
            let id = self.add_slot();
            self.enqueue(id);
        }
        self.connect_some(driver);
        let begun = self.clock.now();
        let mut reported = false;
        loop {
            if self.shared.is_abandoned() {
                self.close_all(driver)?;
                return Ok(false);
            }
            let now = self.clock.now();
            self.sweep(driver, now);
            self.connect_some(driver);
            if !reported && self.is_ready(now, begun) {
                reported = true;
                let ready = Ready {
                    open: self.up,
                    attempts: self.slab.counts.connect_failures,
                    failure: self.connect_failure.take().or_else(|| self.what_is_missing()),
                };
                self.send(Message::Up(ready));
            }
            let start = self.shared.start();
            if let Some(start) = start.filter(|start| *start <= now) {
                self.begin(driver, start);
                return Ok(true);
            }
            let mut until = start.unwrap_or(NEVER).min(now + SWEEP_INTERVAL);
            if self.connecting < self.plan.connecting_at_once && !self.queue.is_empty() {
                until = until.min(self.next_attempt().max(now));
            }
            driver.poll(self, Some(self.clock.instant(until)))?;
        }
    }

    /// All connections are up, or no more can be hoped for.
    fn is_ready(&self, now: u64, begun: u64) -> bool {
        let tried = now - begun;
        // As long as more come up others may.
        let in_vain = now.saturating_sub(begun.max(self.last_progress));
        self.up == self.pool.len()
            || in_vain >= self.plan.timeout
            || (self.up == 0 && self.permanent_failures && tried >= REFUSED_FOR && self.failed_once())
    }

    /// What the attempts that have not failed yet wait for.
    fn what_is_missing(&self) -> Option<(ErrorKind, String)> {
        let handshake_stage = self.pool.slots.iter().find(|slot| slot.state == SlotState::Handshaking)?;
        Some((ErrorKind::ConnectTimeout, format!("no word from the peer {}", handshake_stage.handshake_stage().1)))
    }

    fn failed_once(&self) -> bool {
        self.connect_failure.is_some()
    }

    /// Takes the oldest request that is due and has no stream.
    fn oldest_waiting(&mut self) -> Option<u64> {
        match &mut self.pace {
            _ if !self.returned.is_empty() => self.returned.pop_front(),
            RequestSource::Open(backlog) => backlog.pop(),
            RequestSource::Closed | RequestSource::Counted(_) => None,
        }
    }

    /// How many there are.
    fn queued(&self) -> u64 {
        let waiting = match &self.pace {
            RequestSource::Open(backlog) => backlog.waiting(),
            RequestSource::Closed | RequestSource::Counted(_) => 0,
        };
        waiting + self.returned.len() as u64
    }

    /// One slot more.
    fn add_slot(&mut self) -> SlotId {
        let number = self.share.number(self.pool.len());
        self.timeouts.grow(self.plan.streams);
        self.connect_timeouts.grow(1);
        self.pool.grow(number % self.plan.targets.len() as u32)
    }

    fn send(&self, message: Message) {
        // The calling thread listens until all workers are done; if it is gone, nobody wants to know.
        let _ = self.messages.send(message);
    }

    fn show_gauges(&self) {
        let gauge = &self.shared.gauges[self.share.thread as usize];
        gauge.open.store(self.up, Ordering::Relaxed);
        let waiting = u64::from(self.busy) + u64::from(self.pending) + self.queued();
        gauge.waiting.store(waiting, Ordering::Relaxed);
    }

    /// The counts that a request due then belongs to.
    fn tally(&mut self, due: u64) -> &mut RequestCounts {
        if due < self.window { &mut self.before } else { &mut self.inside }
    }

    fn phase(&self) -> Phase {
        self.slab.phase
    }
}

impl Handler for Worker {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        let Some(&id) = self.by_conn.get(conn.slot()) else {
            return;
        };
        if self.pool.slots[id as usize].conn != Some(conn) {
            return;
        }
        self.busy_poll.disturb();
        let now = self.clock.now();
        if now >= self.interval_end {
            self.roll_intervals(now);
        }
        match event {
            Event::Data(bytes) => self.on_data(io, id, bytes, now),
            Event::Connected => self.on_connected(io, id, now),
            Event::Eof => self.on_eof(io, id, now),
            Event::Failed { error, unsent } => self.on_failed(io, id, &error, unsent, now),
            Event::Accepted | Event::Sent => {}
        }
    }
}
