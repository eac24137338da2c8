//! Header compression alone, for tests and fuzzing that compare it with another implementation. Not part of the
//! interface.

use super::class::Class;
use super::fields::Fields;
use super::hpack::{self, Reader, Table};

/// Name and value.
pub type Header = (Vec<u8>, Vec<u8>);

/// A decoder that returns all headers of a block, whatever they mean.
#[derive(Debug)]
pub struct Blocks {
    table: Table,
    fields: Fields,
}

struct All(Vec<Header>);

impl Reader for All {
    fn field(&mut self, _: Class, name: &[u8], value: &[u8], _: usize) {
        self.0.push((name.to_vec(), value.to_vec()));
    }
}

impl Blocks {
    /// A new decoder with the given table size in bytes.
    pub fn new(limit: u32) -> Blocks {
        Blocks { table: Table::new(limit), fields: Fields::new(true, 1 << 20) }
    }

    /// The headers of a block, and whether it left the table unchanged. `None`: the block is invalid.
    pub fn read(&mut self, block: &[u8]) -> Option<(Vec<Header>, bool)> {
        let mut all = All(Vec::new());
        self.fields.clear();
        let pure = hpack::decode(&mut self.table, block, &mut self.fields, &mut all).ok()?.pure;
        let kept: Vec<Header> =
            self.fields.headers(0).iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        let length: usize = kept.iter().map(|(name, value)| name.len() + value.len()).sum();
        assert!(kept == all.0 || length > 1 << 19, "what is kept is what was told");
        Some((all.0, pure))
    }
}
