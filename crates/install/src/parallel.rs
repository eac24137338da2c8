//! Several questions at once: asking twenty binaries for their versions one after the other takes seconds.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `answer` of each item, in order, on a few threads.
pub(super) fn map<T: Sync, R: Send>(items: &[T], answer: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    // Most of the time is spent waiting for a process to load.
    let threads = items.len().min(cpus * 2);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    let result = answer(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_order_and_once_each() {
        let items: Vec<u64> = (0..100).collect();
        let answers = map(&items, |&item| {
            std::thread::sleep(std::time::Duration::from_micros(100 - item));
            item * 2
        });
        assert_eq!(answers, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(map(&[0u8; 0], |_| ()).is_empty());
    }
}
