//! The watchdog: notices that the other side of a connection is silent, and acts. Agents and weir's side have one each.
//!
//! It is a thread that reads one number. It takes no lock and touches no pipe, so neither a full pipe nor a thread that hangs
//! can keep it from acting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

/// Silence after which the other side counts as lost. Heartbeats come each second; 5 s were too short for a machine whose
/// CPUs are all busy.
pub const SILENCE: Duration = Duration::from_secs(8);

/// How often a heartbeat is sent.
pub const BEAT: Duration = Duration::from_secs(1);

/// Notices silence. Dropping it ends it.
#[derive(Debug)]
pub struct Watchdog {
    ended: Arc<AtomicBool>,
    thread: Thread,
}

/// Tells watchdogs that something was heard. Clones tell the same ones.
#[derive(Debug, Clone)]
pub struct Ears {
    begun: Instant,
    /// Milliseconds after `begun`.
    heard: Arc<AtomicU64>,
}

impl Default for Ears {
    fn default() -> Ears {
        Ears { begun: Instant::now(), heard: Arc::default() }
    }
}

impl Ears {
    /// Something was heard now.
    pub fn new() -> Ears {
        Ears::default()
    }

    /// Something was heard.
    pub fn hear(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(now, Ordering::Relaxed);
    }

    fn silence(&self) -> Duration {
        self.begun.elapsed().saturating_sub(Duration::from_millis(self.heard.load(Ordering::Relaxed)))
    }
}

impl Watchdog {
    /// Calls `act` once when nothing was heard for `limit`. It runs in the watchdog's thread, and must not wait for anybody.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn start(ears: &Ears, limit: Duration, act: impl FnOnce() + Send + 'static) -> std::io::Result<Watchdog> {
        let ended = Arc::new(AtomicBool::new(false));
        let (own_ears, own_ended) = (ears.clone(), Arc::clone(&ended));
        let watch = move || {
            loop {
                let left = limit.saturating_sub(own_ears.silence());
                if own_ended.load(Ordering::Relaxed) {
                    return;
                }
                if left.is_zero() {
                    return act();
                }
                std::thread::park_timeout(left);
            }
        };
        let thread: JoinHandle<()> = std::thread::Builder::new().name("weir-watchdog".into()).spawn(watch)?;
        Ok(Watchdog { ended, thread: thread.thread().clone() })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};

    use super::*;

    const LIMIT: Duration = Duration::from_millis(200);

    #[test]
    fn silence_is_noticed_once_and_not_before_its_time() {
        let (sender, acted) = channel();
        let begun = Instant::now();
        let ears = Ears::new();
        let act = move || sender.send(()).expect("the test waits");
        let _watchdog = Watchdog::start(&ears, LIMIT, act).expect("a thread");
        for _ in 0..10 {
            std::thread::sleep(LIMIT / 10);
            ears.hear();
        }
        let heard = Instant::now();
        acted.recv().expect("it acts");
        assert!(begun.elapsed() >= LIMIT * 2, "it heard: {:?}", begun.elapsed());
        assert!(heard.elapsed() >= LIMIT - Duration::from_millis(2), "{:?}", heard.elapsed());
        assert!(acted.recv().is_err(), "once");
    }

    #[test]
    fn one_that_is_dropped_does_nothing() {
        let (sender, acted) = channel::<()>();
        drop(Watchdog::start(&Ears::new(), LIMIT, move || sender.send(()).expect("nobody waits")).expect("a thread"));
        assert_eq!(acted.recv_timeout(LIMIT * 4), Err(RecvTimeoutError::Disconnected));
    }
}
