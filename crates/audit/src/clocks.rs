//! Clocks of hosts that disagree.

use weir_model::record::{Finding, HostClock, Severity};

use super::finding;

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
    finding("clocks", Severity::Warning, message)
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
