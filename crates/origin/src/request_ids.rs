//! Which request IDs have reached the origin, and how often.
//!
//! Each worker remembers the IDs that it has seen, a bit each, in pages that it makes as it needs them, and it alone
//! writes them: no request takes a lock or an atomic addition. Whoever reads the counters compares the pages of all
//! workers, so that an ID that came to two of them is seen. `counters` reads it. This module knows neither heads nor
//! connections.
//!
//! # Bounds
//! IDs come from outside. A worker has at most [`MOST_PAGES`] pages, 64 MiB for half a billion IDs of loads, whose numbers follow
//! each other. IDs beyond are counted, and not remembered.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use weir_model::counters::RequestIdCounters;
use weir_wire::request_id::RequestId;

/// Words of a page, and the IDs that it remembers: 4 KiB.
const WORDS: usize = 512;
const IDS: u64 = WORDS as u64 * 64;

/// Pages of one worker.
const MOST_PAGES: usize = 1 << 14;

/// Pages that a worker finds without a search: the last one of so many of the client's threads.
const NEAR: usize = 32;

/// A bit for each ID of a part of a thread's numbers.
type Bits = [AtomicU64; WORDS];

/// What is known of the IDs of one page.
#[derive(Debug)]
struct Page {
    /// They have come.
    seen: Bits,
    /// They have come more than once to this worker.
    twice: OnceLock<Box<Bits>>,
}

/// A page with the part of the IDs that it is of.
type Keyed = (u64, Arc<Page>);

/// The pages of all workers.
#[derive(Debug)]
pub(crate) struct SeenRequestIds(Box<[Mutex<Vec<Keyed>>]>);

/// The pages of one worker, which writes them.
#[derive(Debug)]
pub(crate) struct RequestIdMemory {
    pages: HashMap<u64, Arc<Page>>,
    near: [Option<Keyed>; NEAR],
}

impl SeenRequestIds {
    /// For so many workers.
    pub(crate) fn new(workers: usize) -> SeenRequestIds {
        SeenRequestIds((0..workers).map(|_| Mutex::default()).collect())
    }

    /// How many different IDs have come, and how many of them more than once.
    pub(crate) fn count(&self) -> (u64, u64) {
        let mut pages: BTreeMap<u64, Vec<Arc<Page>>> = BTreeMap::new();
        for worker in &self.0 {
            for (key, page) in &*worker.lock().unwrap_or_else(PoisonError::into_inner) {
                pages.entry(*key).or_default().push(Arc::clone(page));
            }
        }
        let (mut distinct, mut repeated) = (0, 0);
        for pages in pages.values() {
            for word in 0..WORDS {
                let (mut seen, mut again) = (0u64, 0u64);
                for page in pages {
                    let own = page.seen[word].load(Ordering::Acquire);
                    again |= (seen & own) | page.twice.get().map_or(0, |twice| twice[word].load(Ordering::Acquire));
                    seen |= own;
                }
                distinct += u64::from(seen.count_ones());
                repeated += u64::from(again.count_ones());
            }
        }
        (distinct, repeated)
    }

    /// The same as far as [`RequestIdCounters`] has it; the others are counted by request.
    pub(crate) fn counters(&self) -> RequestIdCounters {
        let (distinct, repeated) = self.count();
        RequestIdCounters { distinct, repeated, ..RequestIdCounters::default() }
    }
}

impl Default for RequestIdMemory {
    fn default() -> RequestIdMemory {
        RequestIdMemory { pages: HashMap::new(), near: [const { None }; NEAR] }
    }
}

impl RequestIdMemory {
    /// This worker got a request with this ID. False: there was no memory for it.
    #[inline]
    pub(crate) fn saw(&mut self, id: RequestId, all: &SeenRequestIds, worker: usize) -> bool {
        let key = id.bits() / IDS;
        let near = near(id);
        match &self.near[near] {
            Some((of, page)) if *of == key => page.saw(id),
            _ => return self.saw_elsewhere(id, key, near, all, worker),
        }
        true
    }

    #[cold]
    fn saw_elsewhere(&mut self, id: RequestId, key: u64, near: usize, all: &SeenRequestIds, worker: usize) -> bool {
        let page = match self.pages.get(&key) {
            Some(page) => Arc::clone(page),
            None if self.pages.len() >= MOST_PAGES => return false,
            None => {
                let page = Arc::new(Page::new());
                self.pages.insert(key, Arc::clone(&page));
                let list = &all.0[worker];
                list.lock().unwrap_or_else(PoisonError::into_inner).push((key, Arc::clone(&page)));
                page
            }
        };
        page.saw(id);
        self.near[near] = Some((key, page));
        true
    }
}

/// The place of an ID's page among those near: threads have theirs, and the next page of a thread takes the place of the last.
#[inline]
fn near(id: RequestId) -> usize {
    id.thread() as usize % NEAR
}

impl Page {
    fn new() -> Page {
        Page { seen: bits(), twice: OnceLock::new() }
    }

    #[inline]
    fn saw(&self, id: RequestId) {
        if !set(&self.seen, id) {
            self.saw_again(id);
        }
    }

    #[cold]
    fn saw_again(&self, id: RequestId) {
        set(self.twice.get_or_init(|| Box::new(bits())), id);
    }
}

fn bits() -> Bits {
    [const { AtomicU64::new(0) }; WORDS]
}

/// Sets an ID's bit, whose page has one writer. False: it was set.
#[inline]
fn set(bits: &Bits, id: RequestId) -> bool {
    let at = id.bits() % IDS;
    let (word, bit) = (&bits[(at / 64) as usize], 1 << (at % 64));
    let was = word.load(Ordering::Relaxed);
    if was & bit != 0 {
        return false;
    }
    word.store(was | bit, Ordering::Release);
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_all_workers_are_compared() {
        let all = SeenRequestIds::new(2);
        let (mut a, mut b) = (RequestIdMemory::default(), RequestIdMemory::default());
        let id = |thread, number| RequestId::new(1, thread, number);
        for number in 0..100_000 {
            assert!(a.saw(id(0, number), &all, 0) && a.saw(id(NEAR as u32, number), &all, 0));
        }
        assert_eq!(all.count(), (200_000, 0));
        assert!(b.saw(id(0, 7), &all, 1) && a.saw(id(0, 8), &all, 0) && a.saw(id(0, 8), &all, 0));
        assert_eq!(all.count(), (200_000, 2), "one came to the other worker, one to the same, twice more");
        assert!(b.saw(id(5, 7), &all, 1));
        assert_eq!(all.count(), (200_001, 2));
    }

    #[test]
    fn memory_is_bounded() {
        let all = SeenRequestIds::new(1);
        let mut memory = RequestIdMemory::default();
        let remembered =
            (0..MOST_PAGES as u64 + 10).filter(|n| memory.saw(RequestId::of_bits(n * IDS), &all, 0)).count();
        assert_eq!(remembered, MOST_PAGES);
        assert_eq!(all.count(), (MOST_PAGES as u64, 0));
        assert!(memory.saw(RequestId::of_bits(1), &all, 0), "in a page that there is");
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_set(
            seen in proptest::collection::vec((0usize..3, 0u64..3, 0u64..4, prop_oneof![0u64..4, 32_766u64..32_770]), 0..60)
        ) {
            let all = SeenRequestIds::new(3);
            let mut memories: Vec<RequestIdMemory> = (0..3).map(|_| RequestIdMemory::default()).collect();
            let (mut once, mut again) = (BTreeSet::new(), BTreeSet::new());
            for (worker, load, thread, number) in seen {
                let id = RequestId::new(load as u16, thread as u32 * 16, number);
                prop_assert!(memories[worker].saw(id, &all, worker));
                if !once.insert(id) {
                    again.insert(id);
                }
            }
            prop_assert_eq!(all.count(), (once.len() as u64, again.len() as u64));
        }
    }
}
