//! When requests of an open load are due: pure iterators of nanoseconds since the load's start.
//!
//! A schedule depends on the order only (rate, spacing, seed, which thread of how many), never on the clock or on
//! the answers, so it is the same in every run and can be walked twice (see the module `backlog`).

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use weir_model::suite::Arrivals;

/// Due times of one thread's share of an open load, in order, without end.
#[derive(Debug, Clone)]
pub struct Schedule(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Constant(Constant),
    Poisson(Box<Poisson>),
}

/// Thread i of n takes every n-th time of the whole load's grid, beginning with the i-th, so that all threads
/// together are evenly spaced.
#[derive(Debug, Clone)]
struct Constant {
    rate: f64,
    index: u64,
    step: u64,
}

/// Each thread is a Poisson process of its own with 1/n of the rate; the sum of independent Poisson processes is
/// the Poisson process of the whole rate.
#[derive(Debug, Clone)]
struct Poisson {
    mean_gap: f64,
    at: f64,
    random: ChaCha8Rng,
}

impl Schedule {
    /// The share of `thread` (0-based) of `threads` in a load of `rate` requests a second over all threads.
    /// `rate` must be above 0; `seed` matters to Poisson arrivals only, of which each thread has its own stream.
    pub fn new(rate: f64, arrivals: Arrivals, seed: u64, thread: u32, threads: u32) -> Schedule {
        let threads = threads.max(1);
        Schedule(match arrivals {
            Arrivals::Constant => Kind::Constant(Constant { rate, index: u64::from(thread), step: u64::from(threads) }),
            Arrivals::Poisson => {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                random.set_stream(u64::from(thread));
                Kind::Poisson(Box::new(Poisson { mean_gap: 1e9 * f64::from(threads) / rate, at: 0.0, random }))
            }
        })
    }

    /// The next due time, nanoseconds since the load's start.
    pub fn next_due(&mut self) -> u64 {
        match &mut self.0 {
            Kind::Constant(constant) => constant.next_due(),
            Kind::Poisson(poisson) => poisson.next_due(),
        }
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        Some(self.next_due())
    }
}

impl Constant {
    fn next_due(&mut self) -> u64 {
        // From the index each time, never by adding gaps: nothing accumulates. Rounded to the nearest
        // nanosecond, so that a window of whole seconds holds exactly its share also for rates that a binary
        // fraction cannot express.
        let due = (self.index as f64 * 1e9 / self.rate).round() as u64;
        self.index += self.step;
        due
    }
}

impl Poisson {
    fn next_due(&mut self) -> u64 {
        // 1 - [0, 1) is (0, 1], whose logarithm is finite.
        let uniform = 1.0 - self.random.random::<f64>();
        self.at -= uniform.ln() * self.mean_gap;
        self.at as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;
    use proptest::prelude::*;

    fn merged(rate: f64, arrivals: Arrivals, threads: u32, until: u64) -> Vec<u64> {
        let mut all: Vec<u64> = (0..threads)
            .flat_map(|thread| {
                Schedule::new(rate, arrivals, 7, thread, threads)
                    .take_while(move |due| *due < until)
                    .collect::<Vec<_>>()
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn constant_does_not_drift_over_ten_million_events() {
        let mut schedule = Schedule::new(3_333.0, Arrivals::Constant, 0, 0, 1);
        let mut last = 0;
        for _ in 0..=10_000_000 {
            last = schedule.next_due();
        }
        // 1e7 / 3333 s = 3000.300030003000300.. s
        assert_eq!(last, 3_000_300_030_003);
    }

    #[test]
    fn threads_of_a_constant_load_interleave_evenly() {
        for threads in 1..=5 {
            let all = merged(1_000.0, Arrivals::Constant, threads, SECOND);
            let expected: Vec<u64> = (0..1_000).map(|i| i * 1_000_000).collect();
            assert_eq!(all, expected, "{threads} threads");
        }
    }

    #[test]
    fn poisson_has_the_mean_and_variance_of_its_rate() {
        for threads in [1, 3] {
            let seconds = 2_000;
            let all = merged(500.0, Arrivals::Poisson, threads, seconds * SECOND);
            let mut counts = vec![0f64; seconds as usize];
            for due in &all {
                counts[(due / SECOND) as usize] += 1.0;
            }
            let n = counts.len() as f64;
            let mean = counts.iter().sum::<f64>() / n;
            let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / (n - 1.0);
            // Counts a second have mean 500 and variance 500. Over 2000 seconds the mean's standard error is
            // sqrt(500 / 2000) = 0.5 and the variance's is 500 * sqrt(2 / 1999) = 16: five of each are allowed.
            assert!((mean - 500.0).abs() < 2.5, "mean {mean}");
            assert!((variance - 500.0).abs() < 80.0, "variance {variance}");
        }
    }

    #[test]
    fn poisson_repeats_by_seed_and_differs_by_thread() {
        let take =
            |seed, thread| Schedule::new(100.0, Arrivals::Poisson, seed, thread, 2).take(100).collect::<Vec<_>>();
        assert_eq!(take(1, 0), take(1, 0));
        assert_ne!(take(1, 0), take(2, 0));
        assert_ne!(take(1, 0), take(1, 1));
    }

    proptest! {
        // Each case walks some hundred thousand events.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn constant_counts_are_exact_for_whole_windows(
            rate in 1u32..20_000,
            warmup in 0u64..5,
            window in 1u64..5,
            threads in 1u32..6,
        ) {
            let all = merged(f64::from(rate), Arrivals::Constant, threads, (warmup + window) * SECOND);
            let inside = all.iter().filter(|due| **due >= warmup * SECOND).count() as u64;
            prop_assert_eq!(inside, u64::from(rate) * window);
        }

        #[test]
        fn constant_counts_are_exact_for_rates_in_tenths(tenths in 1u64..20_000, window in 1u64..4) {
            let rate = tenths as f64 / 10.0;
            let all = merged(rate, Arrivals::Constant, 2, (10 + window * 10) * SECOND);
            let inside = all.iter().filter(|due| **due >= 10 * SECOND).count() as u64;
            prop_assert_eq!(inside, tenths * window);
        }

        #[test]
        fn due_times_never_go_back(seed: u64, rate in 1f64..1e6) {
            for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
                let all: Vec<u64> = Schedule::new(rate, arrivals, seed, 0, 1).take(1_000).collect();
                prop_assert!(all.windows(2).all(|pair| pair[0] <= pair[1]));
            }
        }
    }
}
