//! How long a worker of a closed load sleeps on when the first response has come, so that those behind it are read with it. `worker` calls
//! it at each sweep.
//!
//! With many streams on a connection, a server sends its responses one by one. A client that reads each at once pays a wake-up, a receive
//! and a send for each, and makes the server read its requests one by one, too. `bench/EXPERIMENTS.md` has what sleeping on changes: less CPU,
//! higher rates and *lower* latencies.
//!
//! Sleeping on is part of the latency that is recorded, so it must be little: a hundredth of the mean latency, which is requests in
//! flight over responses/s (Little 1961). It cannot cost more of the rate than that. A timer of the kernel's costs as much as what
//! it saves where less than one more response comes meanwhile: with fewer than a hundred requests in flight a worker never sleeps on.
//!
//! Open loads do not: there latency is what is measured, and a request's time does not follow from a response's.

/// The mean latency is at least so many times as long as the time.
const SHARE: u64 = 100;

/// The longest time, nanoseconds. Longer ones gather hardly more.
const MOST: u64 = 50_000;

/// What a worker knew at its last sweep.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Coalescing {
    swept: u64,
    ended: u64,
}

impl Coalescing {
    /// A sweep, at which so many requests are in flight and so many have ended since the load began: how long to sleep on from now on,
    /// nanoseconds.
    pub(super) fn swept(&mut self, now: u64, in_flight: u32, ended: u64) -> u64 {
        let passed = now - std::mem::replace(&mut self.swept, now);
        let responses = ended - std::mem::replace(&mut self.ended, ended);
        if responses == 0 {
            return 0;
        }
        let between = passed / responses;
        let within = (between * u64::from(in_flight) / SHARE).min(MOST);
        if within >= between { within } else { 0 }
    }
}

/// How many events end it earlier: those of half of the connections, because then there is much to read.
pub(super) fn events(connections: u32) -> u32 {
    (connections / 2).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWEEP: u64 = 10_000_000;

    fn within(in_flight: u32, responses: u64) -> u64 {
        Coalescing { swept: SWEEP, ended: 7 }.swept(2 * SWEEP, in_flight, 7 + responses)
    }

    #[test]
    fn it_is_a_hundredth_of_the_mean_latency_and_not_too_long() {
        // 100,000 responses/s, 256 in flight: 2.56 ms.
        assert_eq!(within(256, 1_000), 25_600);
        assert_eq!(within(10_000, 1_000), MOST);
        assert_eq!(within(256, 500), MOST);
    }

    #[test]
    fn it_is_none_where_no_further_response_is_expected() {
        assert_eq!(within(64, 1_000), 0);
        assert_eq!(within(99, 500), 0);
        assert_eq!(within(100, 500), 20_000);
        // Nor where so few come that one takes longer than the longest time.
        assert_eq!(within(1_000, 100), 0);
        assert_eq!(within(1_000, 0), 0);
        assert_eq!(within(0, 1_000), 0);
    }

    #[test]
    fn half_of_the_connections_end_it() {
        assert_eq!([1, 3, 8, 64].map(events), [2, 2, 4, 32]);
    }
}
