//! A flag that ends a load early. `weir load` and `weir client` set it; `run` and `search` obey it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A request to stop, shared between a caller and its load. Clones are the same flag.
///
/// The first [`StopFlag::set`] ends the window early, within a tenth of a second, and waits for what is in flight;
/// the second ends that wait too. It holds an atomic number and nothing else, so a signal handler may set it.
#[derive(Debug, Clone, Default)]
pub struct StopFlag {
    times: Arc<AtomicU32>,
}

impl StopFlag {
    /// A flag that is not set.
    pub fn new() -> StopFlag {
        StopFlag::default()
    }

    /// Asks to stop; the second time, at once.
    pub fn set(&self) {
        self.times.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it was set.
    pub fn is_set(&self) -> bool {
        self.times.load(Ordering::Relaxed) > 0
    }

    /// Whether it was set twice or more.
    pub(crate) fn is_urgent(&self) -> bool {
        self.times.load(Ordering::Relaxed) > 1
    }
}
