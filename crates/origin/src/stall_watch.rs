//! Notices when the origin's process stands still: it was stopped, or its CPU was taken. Requests that wait meanwhile look as if
//! the product were slow.
//!
//! A thread sleeps on the CPU of the first worker and looks how late it wakes, fifty times a second (less than 0.1 % of that CPU). The
//! workers themselves read no clock while nothing has a delay. [`crate::origin`] starts it. A worker that alone stands still is not
//! seen, such as one on another CPU that is taken.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use weir_net::{Conn, Driver, Event, Handler, Io, Next, SchedulingClass, Task, monotonic_ns, pin_to_cpu};

use crate::counters::AllCounters;

/// How long it sleeps.
const SLEEP: Duration = Duration::from_millis(20);

/// What it may be late, as for the client's threads ([`weir_model::load::Stalls`]): a neighbour's time slice is shorter.
const STALL: Duration = Duration::from_millis(20);

/// What looks how late it wakes. A thread or a simulated world runs it.
#[derive(Debug)]
pub(crate) struct StallMeter {
    counters: Arc<AllCounters>,
    asleep_since: u64,
}

impl StallMeter {
    pub(crate) fn new(counters: Arc<AllCounters>, now: u64) -> StallMeter {
        StallMeter { counters, asleep_since: now }
    }

    fn wake(&mut self, now: u64) {
        let late = Duration::from_nanos(now - self.asleep_since).saturating_sub(SLEEP);
        if late >= STALL {
            self.counters.stalled(late);
        }
        self.asleep_since = now;
    }
}

impl Handler for StallMeter {
    fn on_event<I: Io>(&mut self, _: &mut I, _: Conn, _: Event<'_>) {}
}

impl<D: Driver> Task<D> for StallMeter {
    fn turn(&mut self, driver: &mut D) -> io::Result<Next> {
        self.wake(driver.now());
        Ok(Next::Poll(Some(self.asleep_since + SLEEP.as_nanos() as u64)))
    }

    fn poll(&mut self, driver: &mut D, until: Option<u64>) -> io::Result<()> {
        driver.poll(self, until)
    }
}

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct StallWatch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl StallWatch {
    /// Starts it, on this CPU if one is given. It runs before workers of the real-time class, because a worker that is busy for long does
    /// not stand still.
    ///
    /// # Errors
    /// When no thread can be made.
    pub(crate) fn start(counters: Arc<AllCounters>, cpu: Option<u32>, real_time: bool) -> io::Result<StallWatch> {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = Builder::new().name("weir-stalls".into()).spawn(move || {
            if let Some(cpu) = cpu {
                // The workers say that they may not run there.
                let _ = pin_to_cpu(cpu);
            }
            if real_time {
                let _ = weir_net::set_scheduling_class(SchedulingClass::RealTimeWatch);
            }
            let mut meter = StallMeter::new(counters, monotonic_ns());
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(SLEEP) {
                meter.wake(monotonic_ns());
            }
        })?;
        Ok(StallWatch { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for StallWatch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It does nothing that could panic.
            let _ = thread.join();
        }
    }
}
