//! Reads field sections into what they mean, and recognizes one that came before.

use super::frame::Payload;
use super::qpack;
use super::{Headers, Limits, StreamError, Violation};
use crate::http2::class::is_value;
use crate::http2::fields::Fields;
use crate::http2::hpack::Gap;
use crate::http2::message::{Kind, Message};

/// Longest section that is remembered, bytes.
const MEMO: usize = 256;

/// The last section that was read.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) fields: Fields,
    pub(super) message: Message,
    /// Its bytes, if reading them again would give what is in `fields` and `message`. Else empty.
    memo: Vec<u8>,
    /// A value in it that may be another.
    gap: Gap,
    limits: Limits,
    keep: bool,
}

impl Section {
    pub(super) fn new(keep: bool, limits: Limits) -> Section {
        Section {
            fields: Fields::new(keep, limits.header_list),
            message: Message::new(Kind::Trailers, limits),
            memo: Vec::new(),
            gap: Gap::default(),
            limits,
            keep,
        }
    }

    /// Its headers, if they are kept.
    pub(super) fn headers(&self) -> Headers<'_> {
        if self.keep { self.fields.headers(self.message.headers) } else { Headers::default() }
    }

    /// Reads a section, unless it is the last one, or differs from that in a value without a meaning, such as the ID of a request.
    #[inline]
    pub(super) fn read(&mut self, kind: Kind, payload: &Payload<'_>) -> Result<Result<(), StreamError>, Violation> {
        let block = payload.bytes();
        if kind != Kind::Trailers && self.is_remembered(block) {
            return Ok(Ok(()));
        }
        self.memo.clear();
        self.fields.clear();
        self.message = Message::new(kind, self.limits);
        self.gap = qpack::decode(block, &mut self.fields, &mut self.message)?;
        let judged = self.message.finish(&self.fields);
        if judged.is_ok() && kind != Kind::Trailers && block.len() <= MEMO {
            self.memo.extend_from_slice(block);
        }
        Ok(judged)
    }

    #[inline]
    fn is_remembered(&mut self, block: &[u8]) -> bool {
        if self.memo.is_empty() || self.memo.len() != block.len() {
            return false;
        }
        let Gap { at, length, kept_at } = self.gap;
        let (from, to) = (at as usize, (at + length) as usize);
        let value = &block[from..to];
        if self.memo[..from] != block[..from] || self.memo[to..] != block[to..] {
            return false;
        }
        if self.memo[from..to] != *value {
            if !is_value(value) {
                return false;
            }
            self.memo[from..to].copy_from_slice(value);
            if let Some(kept_at) = kept_at {
                self.fields.replace(kept_at, value);
            }
        }
        true
    }
}
