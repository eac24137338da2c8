//! How long a worker of a closed load sleeps on when the first response has come, so that those behind it are read with it. `worker` calls
//! it at each sweep.
//!
//! With many streams on a connection, a server sends its responses one by one. A client that reads each at once pays a wake-up, a receive
//! and a send for each, and makes the server read its requests one by one, too. `bench/EXPERIMENTS.md` has what sleeping on changes: less CPU,
//! higher rates and *lower* latencies.
//!
//! Sleeping on is part of the latency that is recorded. How much it may be depends on the server. One that has requests to serve
//! meanwhile loses nothing, and serves the next ones faster, because they come together. For one that has not, sleeping on is latency
//! and nothing else. No number of the client's own tells the two apart, so a worker tries it out in the warm-up: slices with each of
//! [`SHARES`] of the mean latency (requests in flight over responses/s, Little 1961) take turns, forth and back, so that drift
//! cancels. The longest stays whose rate is the best one's, if sleeping on has raised the rate beyond doubt. Else it is a hundredth
//! of the mean latency, which cannot cost more than that. What was found holds for the whole window and stands in the result.
//!
//! A timer of the kernel's costs as much as what it saves where less than one more response comes meanwhile: then there is none.
//!
//! Open loads do not: there latency is what is measured, and a request's time does not follow from a response's.

/// The mean latency is so many times as long as the time: without a trial, and what is tried.
const SHARES: [u64; 4] = [100, 16, 8, 4];

/// The longest time of each, nanoseconds. Longer ones gather hardly more.
const MOST: [u64; 4] = [50_000, 500_000, 500_000, 500_000];

/// The least length of a slice, nanoseconds, and how many mean latencies it has at least. Only its second half counts, when the
/// requests that the last slice sent have been answered.
const SLICE: u64 = 20_000_000;
const LATENCIES: u64 = 4;

/// Fewer turns decide nothing.
const LEAST_TURNS: u32 = 4;

/// A rate that is so much of another is as good: what a hundredth of the latency may cost.
const AS_GOOD: f64 = 0.99;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Coalescing {
    swept: u64,
    ended: u64,
    /// The mean latency, nanoseconds, of the last slice or sweep with the shortest time.
    latency: u64,
    trial: Trial,
    /// What the trial found, once it is over.
    found: Option<u64>,
    /// The longest time of the window.
    longest: u64,
    /// The driver cannot.
    pub(super) cannot: bool,
}

/// The slices of a warm-up.
#[derive(Debug, Clone, Copy, Default)]
struct Trial {
    /// How many are over.
    slices: u32,
    /// When the one under way began, and when its second half did, with the responses until then.
    begun: u64,
    half: Option<(u64, u64)>,
    /// Responses/s in the slices of this turn.
    rates: [f64; SHARES.len()],
    /// The rates of all turns over that of the shortest time in the same turn: their sum, and the sum of their squares.
    ratios: [(f64, f64); SHARES.len()],
}

impl Coalescing {
    /// A sweep, at which so many requests are in flight and so many have ended since the load began: how long to sleep on from now on,
    /// nanoseconds.
    pub(super) fn swept(&mut self, now: u64, in_flight: u32, ended: u64, warming_up: bool) -> u64 {
        let passed = now - std::mem::replace(&mut self.swept, now);
        let responses = ended - std::mem::replace(&mut self.ended, ended);
        if warming_up {
            if responses == 0 {
                return 0;
            }
            if self.trial.begun == 0 {
                self.latency = passed * u64::from(in_flight) / responses;
                self.trial.begun = now;
            }
            if let Some(rate) = self.trial.advance(now, ended, self.latency) {
                self.latency = (f64::from(in_flight) * 1e9 / rate) as u64;
            }
            return self.time(self.trial.share(), in_flight);
        }
        let share = self.trial.best();
        let within = match (share, self.found) {
            (_, Some(found)) => found,
            (0, None) if responses == 0 => 0,
            (0, None) => {
                self.latency = passed * u64::from(in_flight) / responses;
                self.time(0, in_flight)
            }
            (share, None) => *self.found.insert(self.time(share, in_flight)),
        };
        self.longest = self.longest.max(within);
        within
    }

    /// The longest time of the window that the driver kept to, microseconds.
    pub(super) fn longest_us(&self) -> f64 {
        if self.cannot { 0.0 } else { self.longest as f64 / 1e3 }
    }

    /// This share of the mean latency, if another response is expected meanwhile.
    fn time(&self, share: usize, in_flight: u32) -> u64 {
        let within = (self.latency / SHARES[share]).min(MOST[share]);
        if within * u64::from(in_flight) >= self.latency { within } else { 0 }
    }
}

impl Trial {
    /// The share whose turn it is.
    fn share(&self) -> usize {
        let nth = self.slices as usize % SHARES.len();
        if self.turns().is_multiple_of(2) { nth } else { SHARES.len() - 1 - nth }
    }

    fn turns(&self) -> u32 {
        self.slices / SHARES.len() as u32
    }

    /// Time passes. The rate of the shortest time, when a slice with it ends.
    fn advance(&mut self, now: u64, ended: u64, latency: u64) -> Option<f64> {
        let length = SLICE.max(LATENCIES * latency);
        let Some((half, until_half)) = self.half else {
            if now - self.begun >= length / 2 {
                self.half = Some((now, ended));
            }
            return None;
        };
        if now - self.begun < length || ended == until_half {
            return None;
        }
        let share = self.share();
        self.rates[share] = (ended - until_half) as f64 * 1e9 / (now - half) as f64;
        self.slices += 1;
        (self.begun, self.half) = (now, None);
        if (self.slices as usize).is_multiple_of(SHARES.len()) {
            for (sums, rate) in self.ratios.iter_mut().zip(self.rates) {
                let ratio = rate / self.rates[0];
                *sums = (sums.0 + ratio, sums.1 + ratio * ratio);
            }
        }
        (share == 0).then_some(self.rates[0])
    }

    /// The longest share whose rate is as good as the best one's; the shortest, if the best one does not surely raise the rate: by
    /// two standard errors of the mean ratio.
    fn best(&self) -> usize {
        let turns = f64::from(self.turns());
        if self.turns() < LEAST_TURNS {
            return 0;
        }
        let means = self.ratios.map(|(sum, _)| sum / turns);
        let best = (0..SHARES.len()).max_by(|a, b| means[*a].total_cmp(&means[*b])).unwrap_or(0);
        let variance = (self.ratios[best].1 / turns - means[best].powi(2)).max(0.0) / (turns - 1.0);
        if means[best] - 2.0 * variance.sqrt() <= 1.0 {
            return 0;
        }
        means.iter().rposition(|mean| *mean >= AS_GOOD * means[best]).unwrap_or(0)
    }
}

/// How many events end it earlier: those of half of the connections, because then there is much to read. With several streams a
/// connection's event says little of how much that is, and none ends it.
pub(super) fn events(connections: u32, streams: u32) -> u32 {
    if streams > 1 { connections.saturating_add(1) } else { (connections / 2).max(2) }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const SWEEP: u64 = 10_000_000;

    /// How long it sleeps on in a window after a warm-up of so many sweeps, at a server with this rate, responses/s, for a time.
    fn found(sweeps: u64, in_flight: u32, mut rate: impl FnMut(u64) -> f64) -> u64 {
        let (mut coalescing, mut ended, mut within) = (Coalescing::default(), 0.0, 0);
        for sweep in 1..=sweeps + 3 {
            ended += rate(within) * SWEEP as f64 / 1e9;
            within = coalescing.swept(sweep * SWEEP, in_flight, ended as u64, sweep <= sweeps);
        }
        assert!(coalescing.longest_us() >= within as f64 / 1e3);
        within
    }

    /// A server with so much to do that it has requests to serve meanwhile, and serves those that come together faster.
    fn saturated(within: u64) -> f64 {
        100_000.0 * (1.0 + 0.1 * (within as f64 / 100_000.0).min(1.0))
    }

    /// One whose latency does not depend on its load, with so many requests in flight.
    fn idle(in_flight: f64, latency: f64) -> impl Fn(u64) -> f64 {
        move |within| in_flight * 1e9 / (latency + within as f64 / 2.0)
    }

    #[test]
    fn without_a_warm_up_it_is_a_hundredth_of_the_mean_latency_and_not_too_long() {
        // 100,000 responses/s, 256 in flight: 2.56 ms.
        assert_eq!(found(0, 256, |_| 100_000.0), 25_600);
        assert_eq!(found(0, 10_000, |_| 100_000.0), 50_000);
        assert_eq!(found(0, 256, |_| 50_000.0), 50_000);
        // Nor does one decide that is too short for four turns.
        assert_eq!(found(32, 256, saturated), 24_975);
    }

    #[test]
    fn it_is_none_where_no_further_response_is_expected() {
        assert_eq!(found(0, 64, |_| 100_000.0), 0);
        assert_eq!(found(0, 99, |_| 50_000.0), 0);
        assert_eq!(found(0, 100, |_| 50_000.0), 20_000);
        // Nor where so few come that one takes longer than the longest time.
        assert_eq!(found(0, 1_000, |_| 10_000.0), 0);
        assert_eq!(found(0, 1_000, |_| 0.0), 0);
        assert_eq!(found(0, 0, |_| 100_000.0), 0);
    }

    #[test]
    fn it_is_a_quarter_of_the_latency_where_that_raises_the_rate() {
        // All but the first share are as good, so the longest stays: a quarter of 2.5 ms, but no more than half a millisecond.
        assert_eq!(found(100, 256, saturated), 500_000);
        let latency = 64e9 / saturated(0);
        assert_eq!(found(100, 64, saturated), (latency / 4.0) as u64);
        // A longer time that costs some of what is won does not.
        let peak = |within: u64| saturated(within) * if within > 200_000 { 0.95 } else { 1.0 };
        assert_eq!(found(100, 256, peak) / 1_000, 156);
    }

    #[test]
    fn it_stays_a_hundredth_where_it_would_only_be_latency() {
        for latency in [1e6_f64, 1e7] {
            let base = (latency / 100.0).min(50_000.0);
            let within = found(400, 1_000, idle(1_000.0, latency)) as f64;
            assert!(within > 0.98 * base && within <= 1.01 * base, "{within} of {latency}");
        }
    }

    #[test]
    fn noise_decides_nothing() {
        let mut random = ChaCha8Rng::seed_from_u64(40);
        let mut noise = move || random.random_range(0.95..1.05);
        for _ in 0..20 {
            assert!(found(100, 256, |within| idle(256.0, 1e6)(within) * noise()) <= 11_000);
        }
        let gained = (0..20).filter(|_| found(100, 256, |within| saturated(within) * noise()) > 100_000).count();
        assert!(gained >= 18, "{gained} of 20");
    }

    #[test]
    fn half_of_the_connections_end_it_unless_they_have_many_streams() {
        assert_eq!([1, 3, 8, 64].map(|connections| events(connections, 1)), [2, 2, 4, 32]);
        assert_eq!(events(8, 32), 9);
    }
}
