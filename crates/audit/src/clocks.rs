//! Clocks of hosts that disagree.

use weir_model::record::{Finding, HostClock, Severity};

use super::{Check, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Noise,
    names: &["clocks"],
    sees: "hosts whose clocks were known too badly for several clients to have measured the same window. The lab judges \
         it at a trial's end, when it has read the clocks again",
    threshold: "1 % of the shortest window, or 50 ms",
    source: "clients begin and end by their own clocks, and while only some make their load, less is carried than \
         planned. A hundredth of the window moves its rate by as much at most, which is less than blocks differ; 50 \
         ms is a twentieth of a second's row",
    remedy: "see in `clocks` of measurement.json which host is slow to ask or drifts; a longer `duration` makes it \
         matter less",
    blind: "a single client, whose clock is the only one. Its use of CPU and memory may be off by the ends of a window, \
         which matters little",
    provoked: true,
    run: None,
};

const SHARE: f64 = 0.01;
const MOST_MS: f64 = 50.0;

/// `window_s`: the shortest window, seconds.
pub fn check(clocks: &[HostClock], clients: usize, window_s: f64) -> Option<Finding> {
    let (disagree_us, first, second) = HostClock::furthest(clocks)?;
    let disagree_ms = disagree_us / 1e3;
    if clients < 2 || disagree_ms <= MOST_MS.min(window_s * 1e3 * SHARE) {
        return None;
    }
    let message = format!(
        "the clocks of {first} and {second} may disagree by {disagree_ms:.1} ms, so that clients may not have measured the same \
         {window_s:.1} s"
    );
    CHECK.finding(Severity::Warning, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(of: &[(f64, f64)]) -> Vec<HostClock> {
        let clock = |(n, (error_us, drift_us)): (usize, &(f64, f64))| HostClock {
            host: format!("m{n}"),
            error_us: *error_us,
            drift_us: *drift_us,
        };
        of.iter().enumerate().map(clock).collect()
    }

    #[test]
    fn fires_beyond_a_hundredth_of_the_window_or_50_ms_and_only_with_several_clients() {
        let wrong = clocks(&[(100.0, 50.0), (4_000.0, 1_000.0), (5_000.0, 100.0)]);
        assert_eq!(check(&wrong, 2, 2.0), None, "10.1 ms of 20");
        let text = check(&wrong, 2, 1.0).expect("10.1 ms of 10").message;
        assert!(text.starts_with("the clocks of m2 and m1 may disagree by 10.1 ms"), "{text}");
        assert_eq!(check(&wrong, 1, 1.0), None, "one client");
        let worse = clocks(&[(30_000.0, 0.0), (0.0, 21_000.0)]);
        assert!(check(&worse, 2, 3_600.0).is_some(), "51 ms of an hour");
        assert_eq!(check(&clocks(&[(90_000.0, 0.0)]), 2, 1.0), None, "one clock has nothing to disagree with");
    }
}
