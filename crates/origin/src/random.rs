//! Random numbers for delays and faults: SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
//! Generators", OOPSLA 2014), which is small, quick, and the same on every machine for the same seed.
//!
//! Faults and delays draw from it; payloads are made of the same numbers. This module does not know what is drawn.

/// A sequence of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a worker of an origin with this seed.
    pub(crate) fn new(seed: u64, worker: usize) -> Random {
        // Sequences that begin at mixed states do not overlap.
        let mut mixed = Random { state: seed ^ (worker as u64).wrapping_mul(0xD134_2543_DE82_EF95) };
        Random { state: mixed.bits() }
    }

    /// The next number in [0, 1), one of 2^53.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }
}

/// By how much the state of SplitMix64 grows from one number to the next.
pub(crate) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The number that a state of SplitMix64 becomes.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_and_repeatable() {
        let mut random = Random::new(1, 0);
        let n = 100_000;
        let mean = (0..n).map(|_| random.unit()).sum::<f64>() / f64::from(n);
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        let first = |seed, worker| Random::new(seed, worker).unit();
        assert_eq!(first(7, 1), first(7, 1));
        assert_ne!(first(7, 1), first(7, 2));
        assert_ne!(first(7, 1), first(8, 1));
    }
}
