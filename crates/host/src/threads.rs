//! Threads for work that waits: many hosts asked at once, and work that changes what its thread may use.
//!
//! It does not know what the work is.

use std::io;
use std::panic::resume_unwind;
use std::thread::{Builder, ScopedJoinHandle, scope};

/// What `work` says of each item, in their order, each on a thread of its own. Where no further thread may be started, `work` is
/// called one item after another.
pub fn at_once<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let work = &work;
    scope(|threads| {
        let begin = |item| Builder::new().spawn_scoped(threads, move || work(item)).map_err(|_| work(item));
        let begun: Vec<_> = items.iter().map(begin).collect();
        begun.into_iter().map(|one| one.map_or_else(|done| done, joined)).collect()
    })
}

/// Calls `work` on a thread of its own.
///
/// # Errors
/// When no thread can be started.
pub fn on_thread<R: Send>(work: impl FnOnce() -> R + Send) -> io::Result<R> {
    scope(|threads| Builder::new().spawn_scoped(threads, work).map(joined))
}

fn joined<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn all_are_called_at_once_and_answer_in_order() {
        let met = Barrier::new(3);
        let doubled = at_once(&[1, 2, 3], |number| {
            met.wait();
            number * 2
        });
        assert_eq!(doubled, [2, 4, 6]);
    }
}
