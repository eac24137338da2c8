//! Writes header blocks, and tracks the contents of the peer's table (RFC 7541 section 6).
//!
//! A header enters the peer's table only while no entry has to be evicted for it. So the table stops changing after the
//! first few requests. From then on the same request is the same few bytes, which are cached. A header that did not
//! fit is sent as a literal.

use std::sync::Arc;

use super::super::Prepared;
use super::table::OVERHEAD;
use super::{TABLE_SIZE, huffman, statics};
use crate::http1::encode::decimal;

/// A pre-encoded header.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    pub(crate) value: Box<str>,
    /// Index of it in the static table, or 0.
    whole: u8,
    /// Index of its name in the static table, or 0.
    named: u8,
    /// Its value as a string literal; before it its name if the static table has none.
    literal: Box<[u8]>,
}

impl Field {
    pub(in crate::http2) fn new(name: &str, value: &str) -> Field {
        let (whole, named) = statics::find(name, value);
        let mut literal = Vec::new();
        if named == 0 {
            put_short_text(&mut literal, name.as_bytes());
        }
        put_short_text(&mut literal, value.as_bytes());
        Field { name: name.into(), value: value.into(), whole, named, literal: literal.into() }
    }

    fn size(&self) -> usize {
        self.name.len() + self.value.len() + OVERHEAD
    }

    /// Writes it as a literal; the first byte and its prefix depend on the kind.
    fn put_literal(&self, out: &mut Vec<u8>, kind: u8, prefix: u32) {
        put_integer(out, kind, prefix, usize::from(self.named));
        out.extend_from_slice(&self.literal);
    }

    fn same(&self, other: &Field) -> bool {
        self.name == other.name && self.value == other.value
    }
}

/// The longest block that is cached, in bytes.
const READY: usize = 30;

/// The fixed part of one block. It is valid as long as the table does not change.
#[derive(Debug)]
struct Ready {
    of: u64,
    epoch: u32,
    split: u8,
    length: u8,
    bytes: [u8; READY],
}

/// The encoder of one connection.
#[derive(Debug)]
pub(in crate::http2) struct Encoder {
    /// The contents of the peer's table, the oldest first.
    pub(super) entries: Vec<Arc<Field>>,
    pub(super) size: u32,
    limit: u32,
    /// The smallest limit since the last block, and whether it changed at all: the peer has to be informed (section
    /// 4.2).
    lowest: u32,
    changed: bool,
    /// Rises whenever the table or its limit changes.
    epoch: u32,
    ready: Ready,
}

impl Encoder {
    pub(in crate::http2) fn new() -> Encoder {
        Encoder {
            entries: Vec::new(),
            size: 0,
            limit: TABLE_SIZE,
            lowest: TABLE_SIZE,
            changed: false,
            epoch: 0,
            ready: Ready { of: 0, epoch: 0, split: 0, length: 0, bytes: [0; READY] },
        }
    }

    /// The peer's SETTINGS_HEADER_TABLE_SIZE.
    pub(in crate::http2) fn set_peer_limit(&mut self, limit: u32) {
        let limit = limit.min(TABLE_SIZE);
        if limit == self.limit {
            return;
        }
        self.limit = limit;
        self.lowest = self.lowest.min(limit);
        self.changed = true;
        self.epoch += 1;
        while self.size > limit && !self.entries.is_empty() {
            self.size -= self.entries.remove(0).size() as u32;
        }
    }

    /// Appends the fixed part of a prepared head. `between` appends what comes between its pseudo-headers and its
    /// headers (those of its pseudo-headers that change).
    #[inline]
    pub(in crate::http2) fn head(&mut self, head: &Prepared, out: &mut Vec<u8>, between: impl FnOnce(&mut Vec<u8>)) {
        let ready = &self.ready;
        if ready.of == head.number() && ready.epoch == self.epoch {
            let (split, length) = (usize::from(ready.split), usize::from(ready.length));
            if !head.pseudo_changes() {
                // To copy all of it and to cut it costs less than to copy a few bytes.
                let end = out.len() + length;
                out.extend_from_slice(&ready.bytes);
                out.truncate(end);
                return;
            }
            out.extend_from_slice(&ready.bytes[..split]);
            between(out);
            out.extend_from_slice(&ready.bytes[split..length]);
            return;
        }
        self.begin(out);
        let epoch = self.epoch;
        let start = out.len();
        for field in head.pseudo() {
            self.put(field, out);
        }
        let middle = out.len();
        between(out);
        let rest = out.len();
        for field in head.headers() {
            self.put(field, out);
        }
        if self.epoch == epoch {
            self.keep_ready(head.number(), &out[start..middle], &out[rest..]);
        }
    }

    /// Writes a size update for a new limit, which has to begin a block. For blocks not made by [`Encoder::head`].
    pub(in crate::http2) fn begin(&mut self, out: &mut Vec<u8>) {
        if !self.changed {
            return;
        }
        if self.lowest < self.limit {
            put_integer(out, 0x20, 5, self.lowest as usize);
        }
        put_integer(out, 0x20, 5, self.limit as usize);
        self.lowest = self.limit;
        self.changed = false;
        self.epoch += 1;
    }

    fn keep_ready(&mut self, of: u64, first: &[u8], second: &[u8]) {
        let length = first.len() + second.len();
        if length <= READY {
            let ready = &mut self.ready;
            ready.bytes[..first.len()].copy_from_slice(first);
            ready.bytes[first.len()..length].copy_from_slice(second);
            (ready.of, ready.epoch) = (of, self.epoch);
            (ready.split, ready.length) = (first.len() as u8, length as u8);
        }
    }

    fn put(&mut self, field: &Arc<Field>, out: &mut Vec<u8>) {
        if field.whole != 0 {
            out.push(0x80 | field.whole);
        } else if let Some(index) = self.index_of(field) {
            put_integer(out, 0x80, 7, index);
        } else if self.size as usize + field.size() <= self.limit as usize {
            field.put_literal(out, 0x40, 6);
            self.size += field.size() as u32;
            self.entries.push(Arc::clone(field));
            self.epoch += 1;
        } else {
            field.put_literal(out, 0x00, 4);
        }
    }

    fn index_of(&self, field: &Arc<Field>) -> Option<usize> {
        let at = self
            .entries
            .iter()
            .position(|entry| Arc::ptr_eq(entry, field))
            .or_else(|| self.entries.iter().position(|entry| entry.same(field)))?;
        // The newest comes first (section 2.3.3).
        Some(statics::COUNT + self.entries.len() - at)
    }
}

/// Appends an integer behind the bits of `kind` (section 5.1).
pub(crate) fn put_integer(out: &mut Vec<u8>, kind: u8, prefix: u32, number: usize) {
    let mask = (1usize << prefix) - 1;
    if number < mask {
        out.push(kind | number as u8);
        return;
    }
    out.push(kind | mask as u8);
    let mut rest = number - mask;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends a string literal, Huffman-coded if that is shorter. For pre-encoded headers.
pub(crate) fn put_short_text(out: &mut Vec<u8>, text: &[u8]) {
    let length = huffman::encoded_len(text);
    if length < text.len() {
        put_integer(out, 0x80, 7, length);
        huffman::encode(text, out);
    } else {
        put_text(out, text);
    }
}

/// Appends a string literal without Huffman coding.
#[inline]
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_integer(out, 0x00, 7, text.len());
    out.extend_from_slice(text);
}

/// Appends the name of a literal header that does not enter the table. [`put_text`] completes it.
pub(in crate::http2) fn put_name(out: &mut Vec<u8>, name: &str) {
    match statics::find(name, "").1 {
        0 => {
            out.push(0);
            put_text(out, name.as_bytes());
        }
        named => put_integer(out, 0x00, 4, usize::from(named)),
    }
}

/// Appends the beginning of a literal `:authority` header.
#[inline]
pub(in crate::http2) fn put_authority_name(out: &mut Vec<u8>) {
    // Index 1 of the static table, in a prefix of 4 bits.
    out.push(0x01);
}

/// Appends the beginning of a literal `:path` header.
#[inline]
pub(in crate::http2) fn put_path_name(out: &mut Vec<u8>) {
    // Index 4 of the static table, in a prefix of 4 bits.
    out.push(0x04);
}

/// Appends a literal `content-length` header.
pub(in crate::http2) fn put_content_length(out: &mut Vec<u8>, length: u64) {
    // Index 28 of the static table, in a prefix of 4 bits.
    out.extend_from_slice(&[0x0f, 28 - 15]);
    put_digits(out, length);
}

/// Appends a number as a string literal.
pub(crate) fn put_digits(out: &mut Vec<u8>, number: u64) {
    let (digits, first) = decimal(number);
    put_text(out, &digits[first..]);
}
