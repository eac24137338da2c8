//! The bytes of response bodies: the same for the same size, on every machine and in every version.
//!
//! All payloads are prefixes of one endless stream, so `payload(n)` is the first `n` bytes of `payload(m)` for
//! every `m >= n`. The stream is made of blocks of eight bytes. Block `k` (from 0) is the number
//! `splitmix64(k)` - the k-th output of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
//! Generators", OOPSLA 2014) seeded with 0 - of which the lowest 48 bits are cut into eight groups of six, lowest
//! first, and each group picks a character of [`ALPHABET`]. Six of eight bits are random, so a compressor can
//! save a quarter and no more: a proxy that compresses shows, and gains little by it.
//!
//! The stream is kept once a process, in a few prefixes made when first needed: 64 KiB, 1 MiB, 8 MiB and
//! [`MAX_PAYLOAD`]. That is all the memory it takes (a little over 73 MiB), whatever the number of requested sizes.
//! Making the largest takes a worker tens of milliseconds, once; a trial's VERIFY request comes before its window.
//!
//! [`crate::resolve`] calls it, and so does the client to verify bodies. This module does not know what a request is.

use std::sync::OnceLock;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::random::{GOLDEN, mix};

/// Largest body that the origin makes or echoes, bytes (64 MiB).
pub const MAX_PAYLOAD: usize = 64 << 20;

/// The characters of payloads: printable, and the same in JSON, URLs and shells.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Bytes a block.
const BLOCK: usize = 8;

/// Prefixes that are kept, smallest first; the last is [`MAX_PAYLOAD`].
const TIERS: [usize; 4] = [64 << 10, 1 << 20, 8 << 20, MAX_PAYLOAD];

/// The words of texts.
const WORDS: [&str; 64] = [
    "above", "and", "answer", "at", "bank", "behind", "below", "bridge", "by", "cold", "comes", "day", "deep", "down",
    "each", "every", "fall", "far", "field", "fish", "flows", "from", "gate", "goes", "green", "high", "house", "in",
    "is", "it", "land", "light", "long", "low", "mill", "near", "never", "night", "of", "off", "old", "on", "one",
    "over", "rain", "river", "rises", "sea", "slow", "spring", "stands", "still", "stone", "stream", "the", "to",
    "turns", "under", "until", "wall", "water", "weir", "wheel", "where",
];

/// Prefixes of an endless stream, of which each is made when it is first needed.
type Prefixes = [OnceLock<Vec<u8>>; TIERS.len()];

static PAYLOADS: Prefixes = [const { OnceLock::new() }; TIERS.len()];
static TEXTS: Prefixes = [const { OnceLock::new() }; TIERS.len()];

/// The payload of `size` bytes.
///
/// # Panics
/// When `size` is over [`MAX_PAYLOAD`]. Sizes from outside are checked when their target is parsed.
pub fn payload(size: usize) -> &'static [u8] {
    prefix(&PAYLOADS, stream, size)
}

/// The first `size` bytes of an endless text, which a compressor makes a third of: for what responses usually are.
///
/// # Panics
/// As [`payload`].
pub(crate) fn text(size: usize) -> &'static [u8] {
    prefix(&TEXTS, words, size)
}

fn prefix(prefixes: &'static Prefixes, make: fn(usize) -> Vec<u8>, size: usize) -> &'static [u8] {
    assert!(size <= MAX_PAYLOAD, "a payload has at most {MAX_PAYLOAD} bytes, not {size}");
    for (length, prefix) in TIERS.iter().zip(prefixes) {
        if size <= *length {
            return &prefix.get_or_init(|| make(*length))[..size];
        }
    }
    unreachable!("the last tier is MAX_PAYLOAD, and size is not over it")
}

/// The first `size` bytes of a text: six bits of SplitMix64 choose each word.
fn words(size: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(size + 80);
    for k in 0.. {
        if text.len() >= size {
            break;
        }
        let bits = splitmix64(k);
        for nth in 0..10 {
            text.extend_from_slice(WORDS[(bits >> (6 * nth)) as usize & 63].as_bytes());
            text.push(if nth == 9 { b'\n' } else { b' ' });
        }
    }
    text.truncate(size);
    text
}

/// XXH3-64 (seed 0) of the payload of `size` bytes. The size has no upper bound, and it needs no memory beyond that of
/// [`payload`].
pub fn payload_hash(size: usize) -> u64 {
    if size <= TIERS[0] {
        return xxh3_64(payload(size));
    }
    let mut hash = Xxh3::new();
    let mut piece = [0; 4096];
    let mut done = 0;
    while done < size {
        let length = piece.len().min(size - done);
        fill(&mut piece[..length], done / BLOCK);
        hash.update(&piece[..length]);
        done += length;
    }
    hash.digest()
}

/// The first `size` bytes of the stream.
fn stream(size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    fill(&mut bytes, 0);
    bytes
}

/// Fills `out` with the stream from block number `first` on.
fn fill(out: &mut [u8], first: usize) {
    for (k, block) in out.chunks_mut(BLOCK).enumerate() {
        let mut bits = splitmix64((first + k) as u64);
        for byte in block {
            *byte = ALPHABET[(bits & 63) as usize];
            bits >>= 6;
        }
    }
}

/// The `k`-th output (from 0) of SplitMix64 with seed 0.
fn splitmix64(k: u64) -> u64 {
    mix(k.wrapping_add(1).wrapping_mul(GOLDEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_has_its_published_outputs() {
        // Seed 0, as printed by the reference implementation.
        assert_eq!(splitmix64(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(splitmix64(1), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(splitmix64(2), 0x06C4_5D18_8009_454F);
    }

    #[test]
    fn the_stream_never_changes() {
        // Suites and records hold hashes of these bytes. If this test fails, old records are no longer valid.
        assert_eq!(payload(24), b"v2cH7lDq0XWuhqmnPVUCAiRX");
        assert_eq!(payload_hash(0), 0x2D06_8005_38D3_94C2);
    }

    #[test]
    fn payloads_are_prefixes_of_each_other() {
        for (small, large) in [(0, 1), (1, 128), (128, 11_268), (11_268, 165_854), (165_854, 3 << 20)] {
            assert_eq!(payload(small), &payload(large)[..small]);
            assert_eq!(payload(large).len(), large);
        }
        assert!(payload(100_000).iter().all(u8::is_ascii_graphic));
    }

    #[test]
    fn a_text_is_the_same_everywhere_and_becomes_a_third() {
        assert_eq!(text(40), &text(1 << 17)[..40]);
        assert!(text(70_000).iter().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b' ' | b'\n')));
        let mut coded = flate2::read::GzEncoder::new(text(65_536), flate2::Compression::default());
        let length = std::io::copy(&mut coded, &mut std::io::sink()).expect("coded");
        assert!((15_000..25_000).contains(&length), "{length}");
    }

    #[test]
    fn hashes_are_those_of_the_bytes() {
        for size in [0, 1, 7, 8, 9, 128, 4096, 4097, 11_268, 65_536, 65_537, 165_854, 1 << 20] {
            assert_eq!(payload_hash(size), xxh3_64(payload(size)), "{size}");
        }
    }

    #[test]
    #[should_panic(expected = "at most")]
    fn a_payload_is_bounded() {
        payload(MAX_PAYLOAD + 1);
    }
}
