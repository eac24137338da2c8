//! How much of requests a worker holds in order to repeat it. [`crate::response::Echoed`] takes it and gives it back.
//!
//! A peer that sends large bodies and does not read the responses would otherwise take as much memory as it has connections.

use std::cell::Cell;
use std::rc::Rc;

/// Bytes of requests that a worker holds at most.
pub const MAX_HELD: usize = 256 << 20;

/// The room of one worker, and how much of it is taken, bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Room(Rc<Cell<usize>>);

impl Room {
    /// Takes so many bytes. False: there is not that much room, and nothing was taken.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let taken = self.0.get() + bytes;
        let fits = taken <= MAX_HELD;
        if fits {
            self.0.set(taken);
        }
        fits
    }

    /// Gives back so many bytes of those that were taken.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.0.set(self.0.get() - bytes);
    }
}
