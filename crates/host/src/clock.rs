//! The time of the machine where weir runs, and how weir waits for it. A simulated world has a clock of its own. This module does
//! not know the clocks of other hosts: see [`crate::Host::at`].

use std::fmt::Debug;
use std::time::Duration;

use weir_model::At;

/// A clock, and the only way to wait.
pub trait Clock: Debug + Send + Sync {
    /// Now.
    fn now(&self) -> At;

    /// Returns when this much time has passed.
    fn sleep(&self, time: Duration);

    /// Time since an earlier moment.
    fn since(&self, earlier: At) -> Duration {
        earlier.until(self.now())
    }

    /// Time until a later moment; nothing once it has come.
    fn left(&self, later: At) -> Duration {
        self.now().until(later)
    }

    /// Unix time as records show it.
    fn timestamp(&self) -> String {
        let unix = jiff::Timestamp::from_nanosecond(self.now().unix_ns.into());
        unix.map(|time| time.to_string()).unwrap_or_default()
    }
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> At {
        weir_vitals::clock::now()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}
