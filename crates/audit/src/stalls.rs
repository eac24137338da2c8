//! Whether client and origin stood still.

use weir_model::load::Stalls;
use weir_model::record::{Finding, Severity};
use weir_model::text::human_us;

use super::{Check, Evidence, Kind, percent};

pub const CHECK: Check = Check {
    kind: Kind::Headroom,
    names: &["stalls"],
    sees: "a client or an origin that stood still for at least 20 ms without work of its own. Something stopped it or \
         took its CPU. The rate of a closed load is too low by as much, and latencies do not show it",
    threshold: "1 % of the window makes the trial suspect; 5 % and a tenth of a second make it invalid",
    source: "stalls of 1 % of the window begin to shape the 99th percentile; products are compared to a few per cent. \
         Less than a tenth of a second may be a single hiccup in a short window",
    remedy: "see what took the CPU (`other-processes`, `steal`, `weir doctor`), and run again",
    blind: "stalls below 20 ms; a single thread of several origin threads",
    provoked: false,
    run: Some(check),
};

const SUSPECT: f64 = 1.0;
const INVALID: f64 = 5.0;
const LEAST_US: u64 = 100_000;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let threads = e.load.threads.max(1) as f64;
    let client = share(&e.load.stalls, e.load.window_s * threads);
    let none = Stalls::default();
    let of_origin = e.origin.map_or(&none, |origin| &origin.stalls);
    let origin = share(of_origin, e.load.window_s);
    let worst = client.max(origin);
    let longer_us = e.load.stalls.total_us.max(of_origin.total_us);
    let severity = match worst {
        share if share >= INVALID && longer_us >= LEAST_US => Severity::Fatal,
        share if share >= SUSPECT => Severity::Warning,
        _ => return None,
    };
    let said = |who: &str, stalls: &Stalls| {
        let times = if stalls.count == 1 { "once".to_owned() } else { format!("{} times", stalls.count) };
        let (total, longest) = (human_us(stalls.total_us as f64), human_us(stalls.longest_us as f64));
        format!("{who} stood still {times}, for {total} in all and {longest} at most")
    };
    let both = client.min(origin) >= SUSPECT;
    let message = match (both, client >= origin) {
        (true, _) => format!(
            "{}, and {}: the machine had no CPU for them, or stood still itself",
            said("the client", &e.load.stalls),
            said("the origin", of_origin)
        ),
        (false, true) => said("the client", &e.load.stalls),
        (false, false) => said("the origin", of_origin),
    };
    CHECK.finding(severity, message)
}

/// Per cent of a time in seconds.
fn share(stalls: &Stalls, seconds: f64) -> f64 {
    percent(stalls.total_us as f64 / 1e6, seconds)
}

#[cfg(test)]
mod tests {
    use weir_model::load::Stalls;
    use weir_model::record::Severity;

    use crate::fixture::good;

    fn stalls(count: u64, ms: u64) -> Stalls {
        Stalls { count, total_us: count * ms * 1_000, longest_us: ms * 1_000 }
    }

    #[test]
    fn who_stood_still_is_named() {
        let mut trial = good();
        assert_eq!(trial.check(super::check), None);
        trial.load.stalls = stalls(1, 200);
        let found = trial.check(super::check).expect("fires");
        assert_eq!((found.severity, found.check.as_str()), (Severity::Fatal, "stalls"));
        assert!(found.message.starts_with("the client stood still once, for 200 ms"), "{}", found.message);
        trial.load.stalls = stalls(1, 0);
        trial.origin.stalls = stalls(1, 20);
        let found = trial.check(super::check).expect("fires");
        assert!(found.severity == Severity::Warning && found.message.starts_with("the origin"), "{found:?}");
        trial.load.stalls = stalls(2, 30);
        assert!(trial.check(super::check).expect("fires").message.contains("the machine"));
    }

    #[test]
    fn a_hiccup_does_not_make_a_short_window_invalid() {
        let mut trial = good();
        trial.load.window_s = 0.5;
        trial.load.stalls = stalls(1, 40);
        assert_eq!(trial.check(super::check).expect("fires").severity, Severity::Warning);
    }

    #[test]
    fn a_short_one_in_a_long_window_is_none() {
        let mut trial = good();
        trial.load.window_s = 10.0;
        trial.load.stalls = stalls(2, 25);
        assert_eq!(trial.check(super::check), None);
    }
}
