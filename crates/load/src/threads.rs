//! Gives a load its threads: one for each worker, with a driver of its own, and the calling one for the controller. It is the only place
//! of this crate that reads a clock, sleeps or spawns.

use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_model::At;
use weir_model::load::LoadResult;
use weir_net::{DescriptorKind, DriverKind, EpollDriver, Next, UringDriver, monotonic_ns, pin_to_cpu, unix_ns};

use crate::clock::{MILLI, NEVER};
use crate::controller::{Controller, LoadOptions, WorkerParts};
use crate::error::LoadError;
use crate::gate::Gate;
use crate::plan::{Plan, Share};
use crate::progress::Progress;
use crate::protocol::Protocol;
use crate::run::Job;
use crate::shared::Message;

/// How long a caller waits for connections to be closed, once the result is known.
const CLOSE_WAIT: u64 = 300 * MILLI;

/// The monotonic clock, nanoseconds.
pub(crate) fn now() -> u64 {
    monotonic_ns()
}

/// Waits.
pub(crate) fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// A number that differs from load to load.
fn nonce() -> u64 {
    unix_ns() ^ u64::from(std::process::id()).rotate_left(40)
}

/// Runs a load of this protocol. Keys were written for so long before it.
pub(crate) fn run<P: Protocol>(
    job: &Job<'_>,
    preloaded: Option<Duration>,
    progress: &mut dyn FnMut(Progress),
) -> Result<LoadResult, LoadError> {
    let Job { spec, outputs, gate, resources, .. } = *job;
    let gated = gate.is_some();
    let options = LoadOptions { spec, outputs, resources, gated, nonce: nonce(), preloaded, now: now() };
    let (mut controller, workers) = Controller::new::<P>(options)?;
    let mut threads = Threads::start(&controller, workers, resources.driver)?;
    let driven = threads.drive(&mut controller, job, progress);
    if driven.is_err() {
        controller.abandon();
    }
    threads.end(driven.is_ok())?;
    driven?;
    controller.finish(progress)
}

/// The threads of the workers.
struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    fn start<P: Protocol>(
        controller: &Controller,
        workers: Vec<WorkerParts<P>>,
        kind: DriverKind,
    ) -> Result<Threads, LoadError> {
        let mut threads = Threads(Vec::new());
        for parts in workers {
            let share = parts.share;
            let thread = std::thread::Builder::new().name(format!("weir-load-{}", share.thread)).spawn(move || {
                let (plan, messages) = (parts.plan.clone(), parts.messages.clone());
                if let Err(error) = pin(&plan, share).and_then(|()| work(kind, plan.descriptors, parts)) {
                    send(&messages, error);
                }
            });
            match thread {
                Ok(thread) => threads.0.push(thread),
                Err(error) => {
                    controller.abandon();
                    threads.join(false)?;
                    return Err(LoadError::Worker {
                        thread: share.local,
                        detail: format!("cannot be started: {error}"),
                    });
                }
            }
        }
        Ok(threads)
    }

    /// Turns the controller until the load is over.
    fn drive(
        &self,
        controller: &mut Controller,
        job: &Job<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), LoadError> {
        loop {
            let at = At { mono_ns: now(), unix_ns: unix_ns() };
            let Next::Poll(until) = controller.turn(at, job.stop, progress)? else { return Ok(()) };
            let until = until.unwrap_or(NEVER);
            if let Some(gate) = job.gate.filter(|_| controller.is_ready()) {
                wait_for_start(controller, gate, until)?;
            } else if !controller.wait(Duration::from_nanos(until.saturating_sub(now()).max(1)))
                && let Some(thread) = self.find_dead(controller)
                // It may have sent its last message just before it ended.
                && !controller.wait(Duration::from_nanos(1))
            {
                return Err(died(thread));
            }
        }
    }

    /// A worker that has ended without a result.
    fn find_dead(&self, controller: &Controller) -> Option<u32> {
        (0u32..)
            .zip(&self.0)
            .find(|(thread, handle)| handle.is_finished() && !controller.has_reported(*thread))
            .map(|(thread, _)| thread)
    }

    /// Gives the threads a moment to close their connections. A thread that has reported its result but needs longer,
    /// because it has very many connections, continues by itself: the caller gets the result without waiting for it.
    fn end(&mut self, reported: bool) -> Result<(), LoadError> {
        if reported {
            let until = now() + CLOSE_WAIT;
            while now() < until && !self.0.iter().all(JoinHandle::is_finished) {
                sleep(Duration::from_micros(200));
            }
            let (ended, _still_closing) = self.0.drain(..).partition(JoinHandle::is_finished);
            self.0 = ended;
        }
        self.join(reported)
    }

    /// Waits for the threads, which were asked to end. `strict`: a panic is an error.
    fn join(&mut self, strict: bool) -> Result<(), LoadError> {
        for (thread, handle) in (0u32..).zip(self.0.drain(..)) {
            if handle.join().is_err() && strict {
                return Err(died(thread));
            }
        }
        Ok(())
    }
}

/// Waits for the time of the start, until `until`.
fn wait_for_start(controller: &mut Controller, gate: &Gate, until: u64) -> Result<(), LoadError> {
    match gate.recv_timeout(Duration::from_nanos(until.saturating_sub(now()))) {
        Ok(start) => controller.start_at(start, now()),
        Err(RecvTimeoutError::Timeout) => Ok(()),
        Err(RecvTimeoutError::Disconnected) => Err(LoadError::Stopped),
    }
}

/// Makes the driver on the calling thread and runs the worker on it.
fn work<P: Protocol>(kind: DriverKind, descriptors: DescriptorKind, parts: WorkerParts<P>) -> Result<(), LoadError> {
    let cannot = |source| LoadError::Driver { driver: kind, source };
    match kind {
        DriverKind::Uring => {
            let mut driver = UringDriver::with_descriptors(descriptors).map_err(cannot)?;
            weir_net::run(&mut parts.build(&driver), &mut driver)
        }
        DriverKind::Epoll => {
            let mut driver = EpollDriver::new().map_err(cannot)?;
            weir_net::run(&mut parts.build(&driver), &mut driver)
        }
    }
    .map_err(|source| LoadError::DriverFailed { driver: kind, source })
}

fn pin(plan: &Plan, share: Share) -> Result<(), LoadError> {
    let cpus = &plan.spec.cpus;
    if cpus.is_empty() {
        return Ok(());
    }
    let cpu = cpus[share.local as usize % cpus.len()];
    pin_to_cpu(cpu).map_err(|source| LoadError::Cpu { thread: share.local, cpu, source })
}

fn send(messages: &Sender<Message>, error: LoadError) {
    // A closed channel means that the load is over.
    let _ = messages.send(Message::Failed(error));
}

fn died(thread: u32) -> LoadError {
    LoadError::Worker { thread, detail: "ended without a result; its own message is on standard error".to_owned() }
}
