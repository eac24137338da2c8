//! The simulated world, the third driver: virtual time, and a network in memory. Client, product and origin run in one thread, a second
//! takes a millisecond, and the same seed gives the same bytes at the same nanosecond.
//!
//! A [`World`] has nodes. Each has a [`SimDriver`], and stands for a thread with its kernel. The world steps the nodes that have a
//! [`Task`]; others belong to the caller, whose [`Driver::poll`](crate::Driver::poll) runs the world until something happens to the node. Work takes no time
//! and is accounted for ([`NodeOptions::cpu_per_event`]); what takes time are [`Link`]s, timers and frozen nodes.
//!
//! The network follows Linux where programs can see it: accept queues, send and receive buffers, half-closes, resets of what was closed
//! with bytes unread, attempts to connect that are repeated, and datagrams that are lost, doubled or late. `tests/it` runs the same cases on this driver and on those of
//! the kernel. It does not have: congestion control, lost segments (TCP repairs them; give a [`Link`] jitter or take it down), `TIME_WAIT`.

mod datagrams;
mod driver;
mod link;
mod network;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use driver::{SimClock, SimDriver, SimListener, SimWaker};
pub use link::{Link, NodeOptions, Split};

use rand::Rng;
use send_wrapper::SendWrapper;

use network::{Event, Network, NodeId};

use crate::{Address, Next, Task};

/// The wall clock when a world begins: 2026-01-01 00:00 UTC, nanoseconds since the epoch of Unix.
const BEGINNING: u64 = 1_767_225_600_000_000_000;

/// Steps at one instant after which a task is taken to spin.
const MOST_STEPS: u32 = 1_000_000;

/// See the module. Clones are handles of the same world, which ends with the one that [`World::new`] made.
#[derive(Debug)]
pub struct World {
    shared: Arc<Shared>,
    /// The world's tasks end with it.
    owns_tasks: bool,
}

impl Clone for World {
    fn clone(&self) -> World {
        World { shared: self.shared.clone(), owns_tasks: false }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.owns_tasks {
            // Tasks have drivers, and those have the world.
            drop(std::mem::take(&mut *self.shared.tasks()));
        }
    }
}

struct Shared {
    now: AtomicU64,
    /// How far the wall clock was set forward, nanoseconds; negative values wrap around.
    unix_step: AtomicU64,
    /// A task is being stepped.
    stepping: AtomicBool,
    network: Mutex<Network>,
    tasks: Mutex<Vec<Running>>,
    /// Steps since time has moved.
    steps: AtomicU32,
}

/// A task and where it stands. Taken out of the list while it is stepped.
struct Running {
    node: NodeId,
    /// `None`: it is being stepped, or over.
    work: Option<Work>,
    next: Next,
    frozen_until: u64,
}

struct Work {
    driver: SimDriver,
    /// Tasks may be of one thread, which is the world's.
    task: SendWrapper<Box<dyn Task<SimDriver>>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Shared {
    fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<Running>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    /// An empty world at its beginning. All that is random in it follows from the seed.
    pub fn new(seed: u64) -> World {
        World {
            shared: Arc::new(Shared {
                now: AtomicU64::new(0),
                unix_step: AtomicU64::new(0),
                stepping: AtomicBool::new(false),
                network: Mutex::new(Network::new(seed)),
                tasks: Mutex::new(Vec::new()),
                steps: AtomicU32::new(0),
            }),
            owns_tasks: true,
        }
    }

    /// Nanoseconds since the world's beginning.
    pub fn now(&self) -> u64 {
        self.shared.now.load(Ordering::Relaxed)
    }

    /// The wall clock, nanoseconds since the epoch of Unix.
    pub fn unix_now(&self) -> u64 {
        (BEGINNING + self.now()).wrapping_add(self.shared.unix_step.load(Ordering::Relaxed))
    }

    /// Sets the wall clock forward or back, nanoseconds.
    pub fn step_wall_clock(&self, by: i64) {
        self.shared.unix_step.fetch_add(by as u64, Ordering::Relaxed);
    }

    /// A number from the world's generator, below `below`.
    pub fn random(&self, below: u64) -> u64 {
        self.shared.network().random.random_range(0..below.max(1))
    }

    /// Makes a node with the usual options.
    pub fn driver(&self, name: &str) -> SimDriver {
        self.driver_with(name, NodeOptions::default())
    }

    /// Makes a node. `name` stands in traces.
    pub fn driver_with(&self, name: &str, options: NodeOptions) -> SimDriver {
        let node = self.shared.network().add_node(name, options);
        SimDriver::new(self.clone(), node, options.clock_offset)
    }

    /// Binds a listening socket. Port 0 is replaced by a free one. `backlog` connections wait to be accepted; `shared`: several may
    /// listen there, and share the connections.
    ///
    /// # Errors
    /// When another listens there.
    pub fn listen(&self, address: impl Into<Address>, backlog: usize, shared: bool) -> std::io::Result<SimListener> {
        let (id, address) = self.shared.network().bind(address.into(), backlog, shared)?;
        Ok(SimListener::new(self.shared.clone(), id, address))
    }

    /// Binds a socket of datagrams, as [`World::listen`] binds a listening one.
    ///
    /// # Errors
    /// When another has the address.
    pub fn listen_datagrams(&self, address: std::net::SocketAddr, shared: bool) -> std::io::Result<SimListener> {
        let (id, address) = self.shared.network().bind_datagrams(address, shared)?;
        Ok(SimListener::new(self.shared.clone(), id, address.into()))
    }

    /// Whether something listens at an address.
    pub fn is_listening(&self, address: &Address) -> bool {
        self.shared.network().is_listening(address)
    }

    /// Sets all links that have no own setting.
    pub fn set_default_link(&self, link: Link) {
        self.shared.network().set_default_link(link);
    }

    /// Sets the direction from one node to another. What waited for it to come up arrives after its latency.
    pub fn set_link(&self, from: usize, to: usize, link: Link) {
        self.shared.network().set_link(from, to, link);
    }

    /// Hands a task to the world, with its driver. Returns its number.
    pub fn add_task(&self, driver: SimDriver, task: Box<dyn Task<SimDriver>>) -> usize {
        let mut tasks = self.shared.tasks();
        let node = driver.node();
        let work = Some(Work { driver, task: SendWrapper::new(task) });
        tasks.push(Running { node, work, next: Next::Poll(Some(0)), frozen_until: 0 });
        tasks.len() - 1
    }

    /// Stops stepping a task until then, as if its process had been stopped. The network goes on.
    pub fn freeze(&self, task: usize, until: u64) {
        self.shared.tasks()[task].frozen_until = until;
    }

    /// Ends a task as SIGKILL ends a process: what the kernel has taken is sent, and its sockets close.
    pub fn kill(&self, task: usize) {
        let work = self.shared.tasks()[task].work.take();
        drop(work);
    }

    /// Whether a task is over.
    pub fn is_over(&self, task: usize) -> bool {
        self.shared.tasks()[task].work.is_none()
    }

    /// CPU time that a node has used so far, nanoseconds.
    pub fn cpu_ns(&self, node: usize) -> u64 {
        self.shared.network().node(node).cpu_ns
    }

    /// Plans something for a time.
    pub fn at(&self, at: u64, call: impl FnOnce(&World) + Send + 'static) {
        self.shared.network().schedule(at, Event::Call(Box::new(call)));
    }

    /// Keeps the lines of [`World::trace`] from now on.
    pub fn keep_trace(&self) {
        self.shared.network().keep_trace();
    }

    /// What programs were told since [`World::keep_trace`], a line each.
    pub fn trace(&self) -> Vec<String> {
        self.shared.network().trace_lines()
    }

    /// A hash of all that programs were told so far, with its times and bytes.
    pub fn trace_hash(&self) -> u64 {
        self.shared.network().trace_hash()
    }

    /// Runs the world until `until`.
    pub fn run_to(&self, until: u64) {
        self.run_until(until, || false);
    }

    /// Runs the world until `done`, at most until `until`. Returns whether it is done.
    pub fn run_until(&self, until: u64, mut done: impl FnMut() -> bool) -> bool {
        loop {
            if done() {
                return true;
            }
            if !self.step(until) {
                return false;
            }
        }
    }

    /// Runs the world until the node has something to handle, at most until `until`. Returns whether it has.
    fn wait_for(&self, node: NodeId, until: u64) -> bool {
        loop {
            // A node that gathers is ready later.
            let ready = self.shared.network().ready_at(node);
            if ready.is_some_and(|at| at <= self.now()) {
                return true;
            }
            let limit = ready.map_or(until, |at| at.min(until));
            if !self.step(limit) {
                assert!(limit < u64::MAX, "nothing will ever happen in this world");
                return ready.is_some();
            }
        }
    }

    /// Does the next thing that happens until `limit`, and moves time there. Returns whether there was one.
    fn step(&self, limit: u64) -> bool {
        let event = self.shared.network().take_event();
        match event {
            Some(Event::Call(call)) => {
                call(self);
                return true;
            }
            Some(event) => {
                self.shared.network().happen(event);
                return true;
            }
            None => {}
        }
        let (ready, next) = self.next_task();
        if let Some(task) = ready {
            self.step_task(task);
            return true;
        }
        let next = self.shared.network().next_event().into_iter().chain(next).min();
        let to = next.unwrap_or(u64::MAX).min(limit);
        if to > self.now() && to < u64::MAX {
            self.shared.now.store(to, Ordering::Relaxed);
            self.shared.network().set_now(to);
            self.shared.steps.store(0, Ordering::Relaxed);
        }
        next.is_some_and(|next| next <= limit)
    }

    /// A task that has something to do now, and when the next one has if none does.
    fn next_task(&self) -> (Option<usize>, Option<u64>) {
        let now = self.now();
        let mut network = self.shared.network();
        let tasks = self.shared.tasks();
        let mut earliest: Option<u64> = None;
        // Of those that are ready, any may be first.
        let first = if tasks.len() > 1 { network.random.random_range(0..tasks.len()) } else { 0 };
        for number in (first..tasks.len()).chain(0..first) {
            let task = &tasks[number];
            if task.work.is_none() {
                continue;
            }
            let wakes = match task.next {
                Next::Poll(until) => until.map(|until| until.saturating_sub(network.clock_offset(task.node))),
                Next::Over => None,
            };
            let at = wakes.into_iter().chain(network.ready_at(task.node)).min().map(|at| at.max(task.frozen_until));
            match at {
                Some(at) if at <= now => return (Some(number), None),
                Some(at) => earliest = Some(earliest.map_or(at, |earliest| earliest.min(at))),
                None => {}
            }
        }
        (None, earliest)
    }

    fn step_task(&self, number: usize) {
        let steps = self.shared.steps.fetch_add(1, Ordering::Relaxed);
        let taken = self.shared.tasks()[number].work.take();
        let Some(mut work) = taken else { return };
        assert!(
            steps < MOST_STEPS,
            "{} spins at {} ns",
            self.shared.network().node(work.driver.node()).name,
            self.now()
        );
        self.shared.stepping.store(true, Ordering::Relaxed);
        let next = work.task.poll(&mut work.driver, Some(0)).and_then(|()| work.task.turn(&mut work.driver));
        work.driver.flush();
        self.shared.stepping.store(false, Ordering::Relaxed);
        let next = next.unwrap_or(Next::Over);
        let mut tasks = self.shared.tasks();
        tasks[number].next = next;
        if next != Next::Over {
            tasks[number].work = Some(work);
        }
    }
}

#[cfg(test)]
mod tests;
