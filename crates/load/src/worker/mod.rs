//! One worker thread: its connections, and what it does with each event.
//!
//! A worker owns all that it touches for a request. It is a [`Handler`] of its driver's events and, between turns,
//! looks at the clock ([`timeline`]): what has become due, which second is over, who has waited too long.
//!
//! - [`seat`]: a connection as the load sees it, which outlives the sockets it uses, and the lanes that it has.
//! - [`connect`]: making connections, and what follows when one is lost.
//! - [`exchange`]: requests and complete answers: samples and counts, whatever the protocol.
//! - [`one`] and [`two`]: HTTP/1.1 and HTTP/2 on a connection.
//! - [`secure`]: TLS under them.
//! - [`timeline`]: phases, seconds, due times.
//! - [`patience`]: who has waited too long.
//! - [`think`]: think times.
//! - [`ending`]: what is given up, closed and said at the end.
//! - [`busy_poll`]: being awake when a request falls due.

mod busy_poll;
mod connect;
mod ending;
mod exchange;
mod one;
mod patience;
mod seat;
mod secure;
mod think;
mod timeline;
mod two;

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
use crate::cpu::CpuTime;
use crate::mix::Mix;
use crate::plan::{Plan, Share};
use crate::recorder::{Histo, Phase, Slab, histo};
use crate::shared::{Message, Ready, Shared};
use crate::tally::Tally;
use busy_poll::BusyPoll;
use patience::Patience;
use seat::{Pool, State};
use secure::Secure;
pub(crate) use secure::TlsCounters;
use two::NOBODY;

/// How often timeouts, retries and orders from outside are looked at; so late may a timeout be.
const SWEEP: u64 = 10 * MILLI;

/// When nobody listens at all, trying goes on for no longer than this.
const REFUSED_FOR: u64 = 2 * SECOND;

/// Where the next request of a free connection comes from.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a worker has one")]
pub(super) enum Pace {
    /// It is due as soon as the connection is free.
    Closed,
    /// The same, so many more times.
    Counted(u64),
    /// It has become due by itself.
    Open(Backlog),
}

/// Index of a seat.
type SeatId = u32;

/// Index of a lane.
type LaneId = u32;

/// Something to do at a time, the earliest first.
type Agenda = BinaryHeap<Reverse<(u64, u32)>>;

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
    /// Which seat has a driver's slot.
    by_slot: Vec<SeatId>,
    /// Seats that wait for their turn to connect.
    queue: VecDeque<SeatId>,
    /// Lanes that wait for an answer, and seats that wait to be connected.
    patience: Patience,
    connect_patience: Patience,
    /// When seats may try again to connect, and when lanes have finished thinking.
    pauses: Agenda,
    thoughts: Agenda,
    /// Lanes that have finished, and whose requests are to be sent.
    ripe: Vec<LaneId>,
    random: ChaCha8Rng,

    pace: Pace,
    /// Requests that were counted as due and could not be sent after all, as their due times: the next to be sent.
    returned: VecDeque<u64>,
    mix: Mix,
    secure: Option<Box<Secure>>,
    /// Frames of HTTP/2 for the connection `held`, if they are not to leave one by one.
    frames: Vec<u8>,
    held: SeatId,
    /// The fewest lanes that a peer allowed.
    least_lanes: u32,

    /// Sockets that are connected, whether or not the two sides have agreed on how to speak.
    open: u32,
    /// Seats being connected, and ready; lanes with a request in flight, and with one that waits for a connection.
    connecting: u32,
    up: u32,
    busy: u32,
    wanting: u32,

    /// Attempts to connect so far.
    made: u64,
    /// Most connections up at a time so far, and when the last of them came up, or was first tried, if they are made at a
    /// rate. A peer that ends connections as fast as they are made gets nowhere.
    most_up: u32,
    last_up: u64,
    /// Connections that brought an answer.
    used: u64,

    /// Warm-up's end, which is the window's start; the window's end; the end of all patience.
    window: u64,
    end: u64,
    /// When the slab is over.
    edge: u64,
    next_sweep: u64,
    /// When the last request ended.
    last: u64,
    finished: bool,

    slab: Box<Slab>,
    /// Requests due before the window, and in it.
    before: Tally,
    inside: Tally,
    connect_times: Histo,
    busy_poll: BusyPoll,
    /// At the window's start and its end: CPU, when, and what of the CPU was spent on busy-polling.
    cpu: [Option<(CpuTime, u64, u64)>; 2],
    connect_failure: Option<(ErrorKind, String)>,
    /// Every failure to connect so far was of a kind that trying again does not mend.
    hopeless: bool,
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
            (Some(timetable), _) => Pace::Open(Backlog::new(timetable.schedule(plan.seed, share.thread, plan.threads))),
            (None, Shape::Count { .. }) => Pace::Counted(share.requests),
            (None, _) => Pace::Closed,
        };
        let (seats, lanes) = (share.connections, plan.lanes);
        let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
        // Streams from 2^32 are not taken by arrivals, which have one a thread.
        random.set_stream((1 << 32) + u64::from(share.thread));
        let now = clock.now();
        let (before, inside) = (Tally::new(plan.asks.len()), Tally::new(plan.asks.len()));
        let most = seats + share.more;
        let (plan_menu, seed, threads) = (plan.menu.clone(), plan.seed, plan.threads);
        let secure = Secure::new(&plan);
        let thinkers = if plan.think.is_some() { (seats * lanes) as usize } else { 0 };
        Worker {
            plan,
            shared,
            share,
            clock,
            messages,
            spares,
            pool: Pool::new(most, lanes),
            by_slot: Vec::with_capacity(most as usize),
            queue: VecDeque::with_capacity(most as usize),
            patience: Patience::new(most * lanes, now),
            connect_patience: Patience::new(most, now),
            pauses: Agenda::with_capacity(most as usize),
            thoughts: Agenda::with_capacity(thinkers),
            ripe: Vec::with_capacity(thinkers),
            random,
            pace,
            returned: VecDeque::new(),
            mix: Mix::new(plan_menu, seed, share.thread, threads),
            secure,
            frames: Vec::new(),
            held: NOBODY,
            least_lanes: lanes,
            open: 0,
            connecting: 0,
            up: 0,
            busy: 0,
            wanting: 0,
            made: 0,
            most_up: 0,
            last_up: 0,
            used: 0,
            window: NEVER,
            end: NEVER,
            edge: NEVER,
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
            hopeless: true,
        }
    }

    /// Does the whole load and reports to the calling thread, except for an error of the driver itself.
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
        self.give_up(driver);
        self.report();
        self.hang_up(driver)
    }

    /// Makes the connections and waits for the start. False: there will be none.
    fn make_connections<D: Driver>(&mut self, driver: &mut D) -> io::Result<bool> {
        for _ in 0..self.share.connections {
            let id = self.add_seat();
            self.enqueue(id);
        }
        self.connect_some(driver);
        let begun = self.clock.now();
        let mut reported = false;
        loop {
            if self.shared.is_abandoned() {
                self.hang_up(driver)?;
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
            let mut until = start.unwrap_or(NEVER).min(now + SWEEP);
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
        let in_vain = now.saturating_sub(begun.max(self.last_up));
        self.up == self.pool.len()
            || in_vain >= self.plan.timeout
            || (self.up == 0 && self.hopeless && tried >= REFUSED_FOR && self.failed_once())
    }

    /// What the attempts that have not failed yet wait for.
    fn what_is_missing(&self) -> Option<(ErrorKind, String)> {
        let shaking = self.pool.seats.iter().find(|seat| seat.state == State::Shaking)?;
        Some((ErrorKind::ConnectTimeout, format!("no word from the peer {}", shaking.shaking().1)))
    }

    fn failed_once(&self) -> bool {
        self.connect_failure.is_some()
    }

    /// Takes the oldest request that is due and has no lane.
    fn oldest_waiting(&mut self) -> Option<u64> {
        match &mut self.pace {
            _ if !self.returned.is_empty() => self.returned.pop_front(),
            Pace::Open(backlog) => backlog.pop(),
            Pace::Closed | Pace::Counted(_) => None,
        }
    }

    /// How many there are.
    fn queued(&self) -> u64 {
        let waiting = match &self.pace {
            Pace::Open(backlog) => backlog.waiting(),
            Pace::Closed | Pace::Counted(_) => 0,
        };
        waiting + self.returned.len() as u64
    }

    /// One seat more.
    fn add_seat(&mut self) -> SeatId {
        let number = self.share.number(self.pool.len());
        self.patience.grow(self.plan.lanes);
        self.connect_patience.grow(1);
        self.pool.grow(number % self.plan.targets.len() as u32)
    }

    fn send(&self, message: Message) {
        // The calling thread listens until all workers are done; if it is gone, nobody wants to know.
        let _ = self.messages.send(message);
    }

    fn show_gauges(&self) {
        let gauge = &self.shared.gauges[self.share.thread as usize];
        gauge.open.store(self.up, Ordering::Relaxed);
        let waiting = u64::from(self.busy) + u64::from(self.wanting) + self.queued();
        gauge.waiting.store(waiting, Ordering::Relaxed);
    }

    /// The counts that a request due then belongs to.
    fn tally(&mut self, due: u64) -> &mut Tally {
        if due < self.window { &mut self.before } else { &mut self.inside }
    }

    fn phase(&self) -> Phase {
        self.slab.phase
    }
}

impl Handler for Worker {
    fn on_event<I: Io>(&mut self, io: &mut I, conn: Conn, event: Event<'_>) {
        let Some(&id) = self.by_slot.get(conn.slot()) else {
            return;
        };
        if self.pool.seats[id as usize].conn != Some(conn) {
            return;
        }
        self.busy_poll.disturb();
        let now = self.clock.now();
        if now >= self.edge {
            self.turn_pages(now);
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
