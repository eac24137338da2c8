//! Gives a load its threads: one for each worker, with a driver of its own, and the calling one for the controller. It is the only place
//! of this crate that reads a clock, sleeps or spawns.

use std::io;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::Duration;

use weir_model::At;
use weir_model::load::LoadResult;
use weir_net::{Driver, DriverKind, EpollDriver, Next, UringDriver, monotonic_ns, pin_to_cpu, unix_ns};

use crate::clock::{MILLI, NEVER};
use crate::controller::{Controller, LoadOptions, LoadTasks};
use crate::error::LoadError;
use crate::gate::Gate;
use crate::progress::Progress;
use crate::run::Job;

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

/// Runs a load. Keys were written for so long before it.
pub(crate) fn run(
    job: &Job<'_>,
    preloaded: Option<Duration>,
    progress: &mut dyn FnMut(Progress),
) -> Result<LoadResult, LoadError> {
    let Job { spec, outputs, gate, resources, .. } = *job;
    let gated = gate.is_some();
    let options = LoadOptions { spec, outputs, resources, gated, nonce: nonce(), preloaded, now: now() };
    match resources.driver {
        DriverKind::Uring => {
            let load = LoadTasks::new(options)?;
            let descriptors = load.controller.descriptors();
            drive(load, move || UringDriver::with_descriptors(descriptors), job, progress)
        }
        DriverKind::Epoll => drive(LoadTasks::new(options)?, EpollDriver::new, job, progress),
    }
}

/// Runs a load with these drivers.
fn drive<D: Driver + 'static>(
    load: LoadTasks<D>,
    make_driver: impl Fn() -> io::Result<D> + Clone + Send + 'static,
    job: &Job<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<LoadResult, LoadError> {
    let LoadTasks { mut controller, workers } = load;
    let (kind, first, cpus) = (job.resources.driver, controller.first_thread(), controller.cpus());
    let mut threads = Threads(Vec::new());
    for (thread, make) in (0u32..).zip(workers) {
        let cpu = cpus.get(thread as usize % cpus.len().max(1)).copied();
        let make_driver = make_driver.clone();
        let work = move || {
            cpu.map_or(Ok(()), pin_to_cpu).map_err(|source| LoadError::Cpu {
                thread,
                cpu: cpu.unwrap_or(0),
                source,
            })?;
            let mut driver = make_driver().map_err(|source| LoadError::Driver { driver: kind, source })?;
            weir_net::run(&mut *make(&driver), &mut driver)
                .map_err(|source| LoadError::DriverFailed { driver: kind, source })
        };
        match std::thread::Builder::new().name(format!("weir-load-{}", first + thread)).spawn(work) {
            Ok(handle) => threads.0.push(Some(handle)),
            Err(error) => {
                controller.abandon();
                threads.join();
                return Err(LoadError::Worker { thread, detail: format!("cannot be started: {error}") });
            }
        }
    }
    if let Err(error) = threads.watch(&mut controller, job, progress) {
        controller.abandon();
        threads.join();
        return Err(error);
    }
    threads.end()?;
    controller.finish(progress)
}

/// The threads of the workers, less those whose end was seen.
struct Threads(Vec<Option<JoinHandle<Result<(), LoadError>>>>);

impl Threads {
    /// Turns the controller until the load is over.
    fn watch(
        &mut self,
        controller: &mut Controller,
        job: &Job<'_>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), LoadError> {
        loop {
            let at = At { mono_ns: now(), unix_ns: unix_ns() };
            let Next::Poll(until) = controller.turn(at, job.stop, progress)? else { return Ok(()) };
            let until = until.unwrap_or(NEVER);
            let came = match job.gate.filter(|_| controller.is_ready()) {
                Some(gate) => wait_for_start(controller, gate, until)?,
                None => controller.wait(Duration::from_nanos(until.saturating_sub(now()).max(1))),
            };
            if !came
                && let Some(thread) = self.find_dead(controller)
                // It may have sent its last message just before it ended.
                && !controller.wait(Duration::from_nanos(1))
            {
                let ended = self.0[thread as usize].take().map(JoinHandle::join);
                return match ended {
                    Some(Ok(Err(error))) => Err(error),
                    _ => Err(died(thread)),
                };
            }
        }
    }

    /// A worker that has ended without a result.
    fn find_dead(&self, controller: &Controller) -> Option<u32> {
        let is_dead = |thread, handle: &Option<JoinHandle<_>>| {
            handle.as_ref().is_none_or(JoinHandle::is_finished) && !controller.has_reported(thread)
        };
        (0u32..).zip(&self.0).find(|(thread, handle)| is_dead(*thread, handle)).map(|(thread, _)| thread)
    }

    /// Gives the threads a moment to close their connections. A thread that has reported its result but needs longer,
    /// because it has very many connections, continues by itself: the caller gets the result without waiting for it.
    fn end(self) -> Result<(), LoadError> {
        let until = now() + CLOSE_WAIT;
        let is_finished = |handle: &Option<JoinHandle<_>>| handle.as_ref().is_none_or(JoinHandle::is_finished);
        while now() < until && !self.0.iter().all(is_finished) {
            sleep(Duration::from_micros(200));
        }
        for (thread, handle) in (0u32..).zip(self.0) {
            // An error while connections are closed changes nothing in the result.
            if handle.filter(JoinHandle::is_finished).is_some_and(|handle| handle.join().is_err()) {
                return Err(died(thread));
            }
        }
        Ok(())
    }

    /// Waits for the threads, after [`Controller::abandon`].
    fn join(self) {
        for handle in self.0.into_iter().flatten() {
            let _ = handle.join();
        }
    }
}

/// Waits for the time of the start, until `until`. Returns whether it came.
fn wait_for_start(controller: &mut Controller, gate: &Gate, until: u64) -> Result<bool, LoadError> {
    match gate.recv_timeout(Duration::from_nanos(until.saturating_sub(now()))) {
        Ok(start) => controller.start_at(start, now()).map(|()| true),
        Err(RecvTimeoutError::Timeout) => Ok(false),
        Err(RecvTimeoutError::Disconnected) => Err(LoadError::Stopped),
    }
}

fn died(thread: u32) -> LoadError {
    LoadError::Worker { thread, detail: "ended without a result; its own message is on standard error".to_owned() }
}
