//! Locking in threads that outlive others. This crate's modules call it; it does not know what is locked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks even if a thread panicked with the lock: the data stays valid.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
