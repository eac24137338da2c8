//! The wish to stop: set by Ctrl-C, looked at between and inside trials.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that can be set once, from a signal handler or another thread.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Not set.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// The flag itself, for signal handlers.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }

    /// Asks to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
