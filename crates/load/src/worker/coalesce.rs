//! How long a worker of a closed load sleeps on when the first response has come, so that those behind it are read with it. `worker` calls
//! it at each sweep.
//!
//! With many streams on a connection, a server sends its responses one by one. A client that reads each at once pays a wake-up, a receive
//! and a send for each, and makes the server read its requests one by one, too. `bench/EXPERIMENTS.md` has what sleeping on changes: less CPU,
//! higher rates and *lower* latencies.
//!
//! Sleeping on is part of the latency that is recorded. How much it may be depends on the server. One that has requests to serve
//! meanwhile loses nothing, and serves the next ones faster, because they come together. For one that has not, sleeping on is latency
//! and nothing else. No number of the client's own tells the two apart, so a worker tries it out in the warm-up: slices with a
//! quarter of the mean latency (requests in flight over responses/s, Little 1961) and slices with a hundredth take turns. Where sleeping
//! on is only latency, a response waits for half of it in the mean: the quarter costs an eighth of the rate. It stays if the rate is
//! nearer to that of the hundredth, by a sign test over pairs of slices, which a machine's pauses do not disturb. The hundredth cannot
//! cost more than that. The trial is over as soon as one of them is two standard deviations ahead, at four of four pairs. The one
//! that won then stays for the rest of the warm-up and for the whole window, and stands in the result.
//!
//! A timer of the kernel's costs as much as what it saves where less than one more response comes meanwhile: then there is none.
//!
//! Open loads do not: there latency is what is measured, and a request's time does not follow from a response's.

/// A time to sleep on.
#[derive(Debug, Clone, Copy)]
struct Time {
    /// The mean latency is so many times as long.
    share: u64,
    /// But it is no longer than this, nanoseconds. Longer ones gather hardly more.
    most: u64,
}

impl Time {
    /// How long it is at a latency, nanoseconds.
    fn of(self, latency: u64) -> u64 {
        (latency / self.share).min(self.most)
    }
}

const SHORT: Time = Time { share: 100, most: 50_000 };
const LONG: Time = Time { share: 4, most: 500_000 };

/// The least length of a slice, nanoseconds, and how many mean latencies it has at least. Only its second half counts, when the
/// requests that the last slice sent have been answered.
const SLICE: u64 = 20_000_000;
const LATENCIES: u64 = 4;

/// Fewer pairs decide nothing.
const LEAST_PAIRS: u32 = 4;

/// The lead, in standard deviations, with which the long time has won at the end of the warm-up, and the one that ends the trial.
const WON: f64 = 1.0;
const OVER: f64 = 2.0;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Coalescing {
    swept: u64,
    ended: u64,
    /// The mean latency with the short time, nanoseconds.
    latency: u64,
    trial: Trial,
    /// The long time, if the trial is over and it has won.
    found: Option<u64>,
    /// The longest time of the window.
    longest: u64,
    /// The driver cannot.
    pub(super) cannot: bool,
}

/// The slices of a warm-up, in pairs: short and long, long and short, short and long, ...
#[derive(Debug, Clone, Copy, Default)]
struct Trial {
    /// How many are over.
    slices: u32,
    /// When the one under way began, and when its second half did, with the responses until then.
    begun: u64,
    half: Option<(u64, u64)>,
    /// Responses/s in the pair's first slice.
    first: f64,
    /// Pairs in which the long time did not cost what it would if it were only latency.
    won: u32,
}

impl Coalescing {
    /// A sweep, at which so many requests are in flight and so many have ended since the load began: how long to sleep on from now on,
    /// nanoseconds.
    pub(super) fn swept(&mut self, now: u64, in_flight: u32, ended: u64, warming_up: bool) -> u64 {
        let passed = now - std::mem::replace(&mut self.swept, now);
        let responses = ended - std::mem::replace(&mut self.ended, ended);
        if let Some(found) = self.found {
            return found;
        }
        if responses == 0 {
            return 0;
        }
        let latency = |rate: f64| (f64::from(in_flight) * 1e9 / rate) as u64;
        let latency_now = latency(responses as f64 * 1e9 / passed as f64);
        if warming_up {
            if self.trial.begun == 0 {
                (self.latency, self.trial.begun) = (latency_now, now);
            }
            if self.trial.lead().abs() < OVER {
                let was_long = self.trial.is_long();
                if let Some(rate) = self.trial.advance(now, ended, self.latency).filter(|_| !was_long) {
                    self.latency = latency(rate);
                }
                return self.time(if self.trial.is_long() { LONG } else { SHORT }, in_flight);
            }
        }
        let within = if self.trial.lead() >= WON {
            *self.found.insert(self.time(LONG, in_flight))
        } else {
            self.latency = latency_now;
            self.time(SHORT, in_flight)
        };
        self.longest = self.longest.max(within);
        within
    }

    /// The longest time of the window that the driver kept to, microseconds.
    pub(super) fn longest_us(&self) -> f64 {
        if self.cannot { 0.0 } else { self.longest as f64 / 1e3 }
    }

    /// The time at this latency, if another response is expected meanwhile.
    fn time(&self, time: Time, in_flight: u32) -> u64 {
        let within = time.of(self.latency);
        if within * u64::from(in_flight) >= self.latency { within } else { 0 }
    }
}

impl Trial {
    /// Whether the slice under way has the long time.
    fn is_long(&self) -> bool {
        (self.slices % 2 == 1) != (self.pairs() % 2 == 1)
    }

    fn pairs(&self) -> u32 {
        self.slices / 2
    }

    /// Time passes. The rate of a slice that ends.
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
        let rate = (ended - until_half) as f64 * 1e9 / (now - half) as f64;
        if self.slices.is_multiple_of(2) {
            self.first = rate;
        } else {
            let (short, long) = if self.is_long() { (self.first, rate) } else { (rate, self.first) };
            self.won += u32::from(long > short * (1.0 - LONG.of(latency) as f64 / latency as f64 / 4.0));
        }
        self.slices += 1;
        (self.begun, self.half) = (now, None);
        Some(rate)
    }

    /// How many standard deviations more pairs the long time has won than chance gives it, which is half of them.
    fn lead(&self) -> f64 {
        let pairs = f64::from(self.pairs());
        if self.pairs() < LEAST_PAIRS { 0.0 } else { (2.0 * f64::from(self.won) - pairs) / pairs.sqrt() }
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
        // Nor does one decide that is too short for four pairs.
        assert_eq!(found(16, 256, saturated), 24_975);
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
        // But no more than half a millisecond.
        assert_eq!(found(100, 256, saturated), 500_000);
        let latency = 64e9 / saturated(0);
        assert_eq!(found(100, 64, saturated), (latency / 4.0) as u64);
        assert_eq!(found(20, 64, saturated), (latency / 4.0) as u64, "four pairs");
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
        // One that loses nothing and gains nothing gathers, too: it costs less CPU.
        assert_eq!(found(100, 256, |_| 100_000.0 * noise()), 500_000);
        let gained = (0..20).filter(|_| found(100, 256, |within| saturated(within) * noise()) == 500_000).count();
        assert_eq!(gained, 20);
    }

    #[test]
    fn a_trial_that_is_decided_is_over() {
        let late = |rate: &dyn Fn(u64) -> f64| {
            let (mut times, mut sweep) = (std::collections::BTreeSet::new(), 0);
            let count = |within| {
                sweep += 1;
                if (30..=100).contains(&sweep) {
                    times.insert(within / 1_000);
                }
                rate(within)
            };
            found(100, 64, count);
            Vec::from_iter(times)
        };
        assert_eq!(late(&saturated), [160], "a quarter of 640 us from the eighth slice on");
        assert_eq!(late(&idle(64.0, 1e6)), [0]);
    }

    #[test]
    fn half_of_the_connections_end_it_unless_they_have_many_streams() {
        assert_eq!([1, 3, 8, 64].map(|connections| events(connections, 1)), [2, 2, 4, 32]);
        assert_eq!(events(8, 32), 9);
    }
}
