//! Ends connections on which nothing has happened for a while. [`crate::worker`] asks it at each turn; it does not know connections.
//!
//! A timer for each connection would be set anew with every request. Instead all connections are looked at from time to time: an event
//! makes a connection fresh, and each look makes it older.

use std::time::Duration;

use crate::session::SessionEvent;

/// How many looks a connection without events survives. Its first may come right after its last event.
const LOOKS: u8 = 3;

/// How long a connection has been without events, in looks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Age(u8);

impl Age {
    /// One more look. Returns what it brings the connection: it is told to end, and is reset if it does not.
    pub(crate) fn look(&mut self) -> Option<SessionEvent<'static>> {
        self.0 = self.0.saturating_add(1);
        match self.0 {
            0..LOOKS => None,
            LOOKS => Some(SessionEvent::Stop),
            _ => Some(SessionEvent::Abort),
        }
    }
}

/// When to look at all connections.
#[derive(Debug)]
pub(crate) struct Looks {
    every: u64,
    next: u64,
}

impl Looks {
    /// So that connections may be idle for this long, and for half as long again at most. Times are nanoseconds.
    pub(crate) fn new(idle: Duration, now: u64) -> Looks {
        let every = idle.as_nanos() as u64 / u64::from(LOOKS - 1);
        Looks { every, next: now + every }
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether one is due.
    pub(crate) fn due(&mut self, now: u64) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + self.every;
        }
        due
    }
}
