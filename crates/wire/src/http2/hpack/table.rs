//! The dynamic table of a decoder (RFC 7541 section 2.3.2). `decode` keeps one for each connection.
//!
//! All names and values are in one buffer, the oldest first. The space that eviction leaves at its beginning is
//! reclaimed when it is larger than the live part. Nothing is allocated before the first insertion.

use std::collections::VecDeque;

use super::super::class::Class;
use super::statics;

/// What an entry counts in addition to its bytes (RFC 7541 section 4.1).
pub(in crate::http2) const OVERHEAD: usize = 32;

#[derive(Debug, Clone, Copy)]
struct Entry {
    at: u32,
    name: u32,
    value: u32,
    class: Class,
}

/// The table.
#[derive(Debug)]
pub(in crate::http2) struct Table {
    bytes: Vec<u8>,
    /// The newest first.
    entries: VecDeque<Entry>,
    size: u32,
    /// Largest size now.
    limit: u32,
    /// Largest size that the encoder may choose: SETTINGS_HEADER_TABLE_SIZE.
    most: u32,
}

impl Table {
    pub(in crate::http2) fn new(most: u32) -> Table {
        Table { bytes: Vec::new(), entries: VecDeque::new(), size: 0, limit: most, most }
    }

    /// Whether an index is of the dynamic table.
    #[inline]
    pub(super) fn is_dynamic(index: usize) -> bool {
        index > statics::COUNT
    }

    /// Name, value and class at an index, static or dynamic.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8], Class)> {
        if !Table::is_dynamic(index) {
            return statics::get(index);
        }
        let entry = self.entries.get(index - statics::COUNT - 1)?;
        let name = entry.at as usize;
        let value = name + entry.name as usize;
        Some((&self.bytes[name..value], &self.bytes[value..value + entry.value as usize], entry.class))
    }

    /// Adds an entry, and evicts those that no longer fit. An entry that is larger than the table empties it (section
    /// 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8], class: Class) {
        let length = name.len() + value.len();
        let size = length + OVERHEAD;
        if size > self.limit as usize {
            self.evict_to(0);
            return;
        }
        self.evict_to(self.limit - size as u32);
        self.make_room(length);
        // No entry is larger than the limit, which is 32 bits.
        let entry = Entry { at: self.bytes.len() as u32, name: name.len() as u32, value: value.len() as u32, class };
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push_front(entry);
        self.size += size as u32;
    }

    /// Handles a size update. Returns false when it is larger than allowed (section 6.3).
    pub(super) fn resize(&mut self, limit: usize) -> bool {
        if limit > self.most as usize {
            return false;
        }
        self.limit = limit as u32;
        self.evict_to(self.limit);
        true
    }

    fn evict_to(&mut self, size: u32) {
        while self.size > size
            && let Some(entry) = self.entries.pop_back()
        {
            self.size -= entry.name + entry.value + OVERHEAD as u32;
        }
        if self.entries.is_empty() {
            self.bytes.clear();
        }
    }

    /// Reclaims the space left by eviction, if the buffer would grow and most of it is dead.
    fn make_room(&mut self, length: usize) {
        let dead = self.entries.back().map_or(0, |oldest| oldest.at as usize);
        let alive = self.bytes.len() - dead;
        if self.bytes.capacity() - self.bytes.len() < length && dead >= alive {
            self.bytes.copy_within(dead.., 0);
            self.bytes.truncate(alive);
            for entry in &mut self.entries {
                entry.at -= dead as u32;
            }
        }
    }

    /// Size as section 4.1 counts it.
    #[cfg(test)]
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Bytes on the heap.
    #[cfg(test)]
    pub(super) fn heap(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()
    }
}
