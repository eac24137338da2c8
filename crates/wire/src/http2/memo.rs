//! The last header block that was read, so that one like it need not be decoded again. HTTP/3's sections use it, too. It does not know
//! tables, nor what headers mean.

use super::class::is_value;
use super::fields::Fields;
use super::hpack::Gap;

/// Longest block that is remembered, bytes.
const LONGEST: usize = 256;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    /// Empty: none is remembered.
    block: Vec<u8>,
    /// A value in it that may be another.
    gap: Gap,
}

impl Memo {
    /// The remembered block.
    pub(crate) fn block(&self) -> &[u8] {
        &self.block
    }

    pub(crate) fn clear(&mut self) {
        self.block.clear();
    }

    /// Remembers a block whose headers are in the fields, unless it is long. Returns whether it did.
    pub(crate) fn keep(&mut self, block: &[u8], gap: Gap) -> bool {
        let fits = block.len() <= LONGEST;
        if fits {
            self.block.extend_from_slice(block);
            self.gap = gap;
        }
        fits
    }

    /// Whether a block differs from the remembered one at most in a value without a meaning, such as the ID of a request, which is then
    /// in `fields`.
    #[inline]
    pub(crate) fn matches(&mut self, block: &[u8], fields: &mut Fields) -> bool {
        if self.block.is_empty() || self.block.len() != block.len() {
            return false;
        }
        let Gap { at, length, kept_at } = self.gap;
        let (from, to) = (at as usize, (at + length) as usize);
        let value = &block[from..to];
        if self.block[..from] != block[..from] || self.block[to..] != block[to..] {
            return false;
        }
        if self.block[from..to] != *value {
            if !is_value(value) {
                return false;
            }
            self.block[from..to].copy_from_slice(value);
            if let Some(kept_at) = kept_at {
                fields.replace(kept_at, value);
            }
        }
        true
    }
}
