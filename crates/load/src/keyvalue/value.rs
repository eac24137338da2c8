//! Values that can be checked: whose they are, which version, and that no byte was changed.
//!
//! A value holds its key's number, its version, and a hash of both and of all that follows. What follows cannot be
//! compressed: it is a piece of random bytes that were made once. The protocols of key-value servers call this module.

use std::sync::Arc;

use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_model::keyvalue::LEAST_VALUE;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Random bytes beyond the longest value, so that values of one length differ.
const SPREAD: usize = 64 * 1024;

/// Hash, number and version.
const HEAD: usize = LEAST_VALUE as usize;

/// Makes values.
#[derive(Clone)]
pub(crate) struct Values {
    random: Arc<[u8]>,
}

impl std::fmt::Debug for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Values of {} random bytes", self.random.len())
    }
}

impl Values {
    /// For values of up to `longest` bytes.
    pub(crate) fn new(longest: usize, seed: u64) -> Values {
        let mut random = vec![0; longest + SPREAD];
        ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut random);
        Values { random: random.into() }
    }

    /// Appends a value of this length, at least [`LEAST_VALUE`] and at most the longest.
    #[inline]
    pub(crate) fn append(&self, out: &mut Vec<u8>, number: u64, version: u32, length: usize) {
        let start = out.len();
        let offset = (number ^ u64::from(version).rotate_left(8)) as usize % SPREAD;
        out.extend_from_slice(&self.random[offset..offset + length]);
        let value = &mut out[start..];
        value[8..16].copy_from_slice(&number.to_le_bytes());
        value[16..HEAD].copy_from_slice(&version.to_le_bytes());
        let hash = xxh3_64_with_seed(&value[8..], length as u64);
        value[..8].copy_from_slice(&hash.to_le_bytes());
    }
}

/// The version of a value that belongs to this key and is whole; 0: it is not what was written.
#[inline]
pub(crate) fn version(value: &[u8], number: u64) -> u32 {
    let Some((hash, rest)) = value.split_first_chunk() else { return 0 };
    let Some((owner, after)) = rest.split_first_chunk() else { return 0 };
    let Some((version, _)) = after.split_first_chunk() else { return 0 };
    let whole = u64::from_le_bytes(*hash) == xxh3_64_with_seed(rest, value.len() as u64);
    if whole && u64::from_le_bytes(*owner) == number { u32::from_le_bytes(*version) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_of_its_key_and_whole_or_nothing() {
        let values = Values::new(100, 1);
        let mut out = vec![1, 2, 3];
        values.append(&mut out, 7, 9, 50);
        assert_eq!(out.len(), 53);
        assert_eq!((version(&out[3..], 7), version(&out[3..], 8)), (9, 0));
        for at in 3..53 {
            let mut bad = out.clone();
            bad[at] ^= 1;
            assert_eq!(version(&bad[3..], 7), 0, "byte {at}");
        }
        for wrong in [&out[3..52], &out[3..20], &[]] {
            assert_eq!(version(wrong, 7), 0);
        }
    }

    #[test]
    fn values_of_two_versions_differ_in_their_bytes() {
        let values = Values::new(2_000, 1);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        values.append(&mut first, 7, 1, 2_000);
        values.append(&mut second, 7, 2, 2_000);
        let same = first.iter().zip(&second).filter(|(a, b)| a == b).count();
        assert!(same < 100, "{same}");
        values.append(&mut first, u64::MAX, u32::MAX, 20);
        assert_eq!(version(&first[2_000..], u64::MAX), u32::MAX);
    }
}
