//! The values that an origin keeps: in memory, in shards that all workers share, each key with its time of expiry.
//!
//! The protocols of this folder use it. Records wrong_reply in shards by the hash of their keys; a shard is locked for
//! the time of one operation, and its lock is taken by another worker in one case of [`SHARDS`]. A value that is written
//! again uses its former memory. Expired records are dropped when they are met, and before a shard grows.
//!
//! This module does not know protocols. What they keep with a value is `M`, and what they keep in a shard is `X`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use xxhash_rust::xxh3::xxh3_64;

/// Number of shards.
const SHARDS: usize = 64;

/// The time at which a record without an expiry expires.
pub(crate) const NEVER: u64 = u64::MAX;

/// A time: nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Now(pub(crate) u64);

impl Now {
    /// Milliseconds since 1970.
    pub(crate) fn ms(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Seconds since 1970.
    pub(crate) fn s(self) -> u32 {
        (self.0 / 1_000_000_000) as u32
    }
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(crate) struct Record<M> {
    key: Box<[u8]>,
    /// The value.
    pub(crate) value: Vec<u8>,
    /// When it expires, ms since 1970, or [`NEVER`].
    pub(crate) expires: u64,
    /// What the protocol keeps with it.
    pub(crate) meta: M,
}

impl<M> Record<M> {
    /// What is said of a record that is not stored: it has no key and no value.
    pub(crate) fn new(expires: u64, meta: M) -> Record<M> {
        Record { key: Box::default(), value: Vec::new(), expires, meta }
    }

    fn is_live(&self, now: Now) -> bool {
        self.expires > now.ms()
    }
}

/// All values of an origin.
#[derive(Debug)]
pub(crate) struct Store<M, X = ()> {
    shards: Box<[Aligned<M, X>]>,
}

/// A shard with cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Aligned<M, X>(Mutex<Shard<M, X>>);

impl<M: Clone, X: Default> Store<M, X> {
    /// An empty store. `keeps_former`: it also keeps what each key held before its last write.
    pub(crate) fn new(keeps_former: bool) -> Store<M, X> {
        let shard = || Aligned(Mutex::new(Shard::new(keeps_former)));
        Store { shards: (0..SHARDS).map(|_| shard()).collect() }
    }

    /// Locks the shard of a key; also returns the hash of the key, which the shard asks for.
    #[inline]
    pub(crate) fn lock(&self, key: &[u8]) -> (MutexGuard<'_, Shard<M, X>>, u64) {
        let hash = xxh3_64(key);
        // A table uses the lowest and the highest bits.
        let shard = &self.shards[(hash >> 32) as usize % SHARDS];
        (shard.0.lock().unwrap_or_else(PoisonError::into_inner), hash)
    }

    /// Records stored. Those that have expired and were not met since are among them.
    pub(crate) fn len(&self) -> u64 {
        let len = |shard: &Aligned<M, X>| shard.0.lock().unwrap_or_else(PoisonError::into_inner).records.len() as u64;
        self.shards.iter().map(len).sum()
    }

    /// Removes everything.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            let mut shard = shard.0.lock().unwrap_or_else(PoisonError::into_inner);
            *shard = Shard::new(shard.former.is_some());
        }
    }
}

/// The records of some keys.
#[derive(Debug)]
pub(crate) struct Shard<M, X = ()> {
    records: HashTable<Record<M>>,
    /// What each key held before its last write, if that is kept.
    former: Option<HashTable<Former<M>>>,
    /// What the protocol keeps here.
    pub(crate) extra: X,
}

#[derive(Debug)]
struct Former<M> {
    key: Box<[u8]>,
    record: Option<Record<M>>,
}

impl<M: Clone, X: Default> Shard<M, X> {
    fn new(keeps_former: bool) -> Shard<M, X> {
        Shard { records: HashTable::new(), former: keeps_former.then(HashTable::new), extra: X::default() }
    }

    /// The record of a key.
    #[inline]
    pub(crate) fn get(&mut self, hash: u64, key: &[u8], now: Now) -> Option<&mut Record<M>> {
        let Ok(found) = self.records.find_entry(hash, |record| *record.key == *key) else { return None };
        if found.get().is_live(now) {
            return Some(found.into_mut());
        }
        found.remove();
        None
    }

    /// What the key held before its last write; the outer `None`: that is what it holds now, or it is not kept.
    pub(crate) fn former(&self, hash: u64, key: &[u8], now: Now) -> Option<Option<&Record<M>>> {
        let former = self.former.as_ref()?.find(hash, |former| *former.key == *key)?;
        Some(former.record.as_ref().filter(|record| record.is_live(now)))
    }

    /// Reads a key. `stale`: as before the last write, if that is known. Also returns whether the value is the former one.
    #[inline]
    pub(crate) fn read(&mut self, hash: u64, key: &[u8], now: Now, stale: bool) -> (Option<&Record<M>>, bool) {
        if stale && self.former(hash, key, now).is_some() {
            return (self.former(hash, key, now).flatten(), true);
        }
        (self.get(hash, key, now).map(|record| &*record), false)
    }

    /// Writes a record.
    #[inline]
    pub(crate) fn put(&mut self, hash: u64, key: &[u8], value: &[u8], expires: u64, meta: M, now: Now) {
        self.keep_former(hash, key, now);
        self.make_room(now);
        let hasher = |record: &Record<M>| xxh3_64(&record.key);
        match self.records.entry(hash, |record| *record.key == *key, hasher) {
            Entry::Occupied(found) => {
                let record = found.into_mut();
                record.value.clear();
                // A short value does not keep the memory of a long one.
                record.value.shrink_to(2 * value.len());
                record.value.extend_from_slice(value);
                (record.expires, record.meta) = (expires, meta);
            }
            Entry::Vacant(place) => {
                place.insert(Record { key: key.into(), value: value.to_vec(), expires, meta });
            }
        }
    }

    /// Removes a record. Returns it if it was there.
    pub(crate) fn remove(&mut self, hash: u64, key: &[u8], now: Now) -> Option<Record<M>> {
        self.keep_former(hash, key, now);
        let found = self.records.find_entry(hash, |record| *record.key == *key).ok()?;
        Some(found.remove().0).filter(|record| record.is_live(now))
    }

    /// The same; `lose`: it only seems so.
    pub(crate) fn remove_unless(&mut self, lose: bool, hash: u64, key: &[u8], now: Now) -> Option<Record<M>> {
        if lose { self.get(hash, key, now).cloned() } else { self.remove(hash, key, now) }
    }

    /// Remembers what a key holds, before it is written.
    #[inline]
    fn keep_former(&mut self, hash: u64, key: &[u8], now: Now) {
        if self.former.is_some() {
            self.remember(hash, key, now);
        }
    }

    #[cold]
    fn remember(&mut self, hash: u64, key: &[u8], now: Now) {
        let record = self.get(hash, key, now).cloned();
        let Some(former) = &mut self.former else { return };
        let hasher = |former: &Former<M>| xxh3_64(&former.key);
        match former.entry(hash, |former| *former.key == *key, hasher) {
            Entry::Occupied(found) => found.into_mut().record = record,
            Entry::Vacant(place) => {
                place.insert(Former { key: key.into(), record });
            }
        }
    }

    /// Drops what has expired rather than grow, if that gives half of the room back.
    #[inline]
    fn make_room(&mut self, now: Now) {
        if self.records.len() == self.records.capacity() {
            self.grow(now);
        }
    }

    #[cold]
    fn grow(&mut self, now: Now) {
        self.records.retain(|record| record.is_live(now));
        if self.records.len() > self.records.capacity() / 2 {
            let more = self.records.capacity().max(4);
            self.records.reserve(more, |record| xxh3_64(&record.key));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    const START: Now = Now(1_000_000_000_000_000_000);

    fn after(ms: u64) -> Now {
        Now(START.0 + ms * 1_000_000)
    }

    fn value(store: &Store<u8>, key: &[u8], now: Now) -> Option<Vec<u8>> {
        let (mut shard, hash) = store.lock(key);
        shard.get(hash, key, now).map(|record| record.value.clone())
    }

    fn put(store: &Store<u8>, key: &[u8], value: &[u8], expires: u64, now: Now) {
        let (mut shard, hash) = store.lock(key);
        shard.put(hash, key, value, expires, 0, now);
    }

    #[test]
    fn records_expire_to_the_millisecond_and_leave() {
        let store = Store::new(false);
        put(&store, b"a", b"1", START.ms() + 5, START);
        assert_eq!((value(&store, b"a", after(4)), store.len()), (Some(b"1".to_vec()), 1));
        assert_eq!((value(&store, b"a", after(5)), store.len()), (None, 0));
    }

    #[test]
    fn a_store_of_keys_that_expire_does_not_grow() {
        let store = Store::new(false);
        for n in 0..200_000_u64 {
            let now = after(n);
            put(&store, &n.to_le_bytes(), b"x", now.ms() + 1000, now);
        }
        assert!(store.len() < 20_000, "{} of 1,000 that live", store.len());
    }

    #[test]
    fn the_former_value_is_the_one_before_the_last_write() {
        let store: Store<u8> = Store::new(true);
        let former = |now| {
            let (shard, hash) = store.lock(b"k");
            shard.former(hash, b"k", now).map(|former| former.map(|record| record.value.clone()))
        };
        assert_eq!(former(START), None);
        put(&store, b"k", b"1", NEVER, START);
        assert_eq!(former(START), Some(None));
        put(&store, b"k", b"2", START.ms() + 5, START);
        assert_eq!(former(START), Some(Some(b"1".to_vec())));
        let (mut shard, hash) = store.lock(b"k");
        assert!(shard.remove(hash, b"k", START).is_some());
        drop(shard);
        assert_eq!((former(START), former(after(5))), (Some(Some(b"2".to_vec())), Some(None)));
    }

    proptest! {
        #[test]
        fn it_is_a_map_with_expiry(steps in proptest::collection::vec((0u8..4, 0u8..20, 0usize..50, 1u64..9), 0..300)) {
            let (store, mut map) = (Store::new(false), HashMap::<u8, (Vec<u8>, u64)>::new());
            for (time, (what, key, length, lives)) in steps.into_iter().enumerate() {
                let now = after(time as u64);
                map.retain(|_, (_, expires)| *expires > now.ms());
                match what {
                    0 | 1 => {
                        let (value, expires) = (vec![key; length], now.ms() + lives);
                        put(&store, &[key], &value, expires, now);
                        map.insert(key, (value, expires));
                    }
                    2 => {
                        let (mut shard, hash) = store.lock(&[key]);
                        prop_assert_eq!(shard.remove(hash, &[key], now).is_some(), map.remove(&key).is_some());
                    }
                    _ => {}
                }
                prop_assert_eq!(value(&store, &[key], now), map.get(&key).map(|(value, _)| value.clone()));
            }
        }
    }
}
