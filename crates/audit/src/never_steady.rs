//! A product that was still changing.

use std::time::Duration;

use weir_model::record::{Finding, Severity, Warmup};

use super::{Check, Kind};

pub const CHECK: Check = Check {
    kind: Kind::Steady,
    names: &["never-steady"],
    sees: "a product that was not steady when its time to warm up was over. The result holds for the trial as a whole",
    threshold: "the decision of the warm-up: a permutation test at 99 % for changes of 5 % of the mean",
    source: "as for `drift`",
    remedy: "a longer `steady` (the time it may take at most; 20 s are little), or a quieter machine. Else the number is \
         one of a product that was still changing",
    blind: "warm-ups of fewer than 10 s, which it says",
    provoked: true,
    run: None,
};

/// A shorter warm-up cannot show whether the rate is steady.
const LEAST_S: f64 = 10.0;

/// The finding for a trial whose warm-up could take at most `most`.
pub fn check(warmup: Option<&Warmup>, most: Duration) -> Option<Finding> {
    let warmup = warmup.filter(|warmup| !warmup.steady)?;
    let seconds = warmup.seconds;
    let message = if most.as_secs_f64() < LEAST_S {
        format!("{seconds:.1} s of warming up are too few to see whether the product keeps its level")
    } else {
        format!("what the product carried each second had not come to a level after {seconds:.1} s of warming up")
    };
    CHECK.finding(Severity::Warning, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_when_the_time_was_over_first() {
        let said = |seconds: f64, steady: bool, most: u64| {
            check(Some(&Warmup { seconds, steady }), Duration::from_secs(most)).map(|found| found.message)
        };
        assert_eq!(check(None, Duration::ZERO), None, "nothing was asked for");
        assert_eq!(said(25.0, true, 30), None);
        assert!(said(30.0, false, 30).is_some_and(|message| message.contains("after 30.0 s")));
        assert!(said(6.0, false, 6).is_some_and(|message| message.contains("too few")));
    }
}
