//! Freezing an origin: for a while its threads do nothing, as if the process were stopped, and then go on. The kernel
//! accepts connections and keeps what arrives meanwhile.
//!
//! [`crate::origin`] orders it, and [`crate::worker`] looks before each poll. Nothing here knows connections.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Until when the workers of an origin are frozen.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// Whether there is anything to look at.
    ordered: AtomicBool,
    until: Mutex<Option<Instant>>,
    ended: Condvar,
}

impl Pause {
    /// Freezes for so long from now; 0 ends it. The workers have to be woken.
    pub(crate) fn order(&self, length: Duration) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now().checked_add(length);
        self.ordered.store(true, Ordering::Release);
        self.ended.notify_all();
    }

    /// Waits until it is over.
    #[inline]
    pub(crate) fn wait(&self) {
        if self.ordered.load(Ordering::Acquire) {
            self.wait_until_over();
        }
    }

    #[cold]
    fn wait_until_over(&self) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(left) = until.map(|until| until.saturating_duration_since(Instant::now()))
            && !left.is_zero()
        {
            until = self.ended.wait_timeout(until, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.ordered.store(false, Ordering::Release);
    }
}
