//! A rate that changed its level, or paused.

use weir_model::load::Stalls;
use weir_model::record::{Finding, Severity};
use weir_model::text::human_rate;
use weir_stats::{Stretch, median, other_level};

use super::{Check, Evidence, Kind, finding};

pub const CHECK: Check = Check {
    kind: Kind::Steady,
    names: &["drift", "pauses"],
    sees: "a window in which the rate of right answers changed its level, by a step anywhere, a ramp, a dip or a peak, so that the \
           result is the mean of two states (`drift`); and one in which answers (nearly) stopped for tenths of a second at a time, \
           once or again and again (`pauses`). In rounds without a warm-up, which show how a product warms up, the earlier rounds are \
           only noted",
    threshold: "`drift`: a stretch of tenths of a second whose level differs by 5 % of the mean, moves the mean by 2 %, and stands out \
                of the noise of neighbouring tenths, with at most 2 % of false alarms, 3 % where tenths \
                resemble their neighbours much (`other_level` in `crates/stats`). `pauses`: what \
                tenths below half the median lack is 2 % of the whole",
    source: "blocks of one run differ by more than 2 %. By simulation on recorded noise of 5 % a tenth, steps of 50 % are found at every \
             position from 2 s on (92 to 100 %), of 20 % from 12 s on (86 to 100 %), of 10 % in the middle half of 12 s (70 to 89 %), \
             ramps of 20 % in 95 % of windows of 12 s. With 20 % of noise, steps of 50 % need 12 s",
    remedy: "a longer `warmup`, or `steady`; else see in load.csv what happened when",
    blind: "windows below 1.8 s; steps of 10 % within 2 s; changes that come and go all the time without a pause; pauses where the rate \
            is below 400/s",
    provoked: true,
    run: Some(check),
};

/// Least difference, as a share of the mean, and least effect on it.
const MATTERS: (f64, f64) = (0.05, 0.02);
/// Tenths from which on a stretch is a level, and not a pause.
const A_LEVEL: usize = 10;
/// Answers in a tenth of a second below which a tenth of half as many may be chance (of 40, Poisson: 1 in 4,000).
const FEWEST: f64 = 40.0;

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    let tenths: Vec<f64> = e.load.tenths.iter().map(|right| *right as f64).collect();
    let severity = if e.warming_round { Severity::Note } else { Severity::Warning };
    let stretch = other_level(&tenths, MATTERS);
    let is_level = |stretch: &Stretch| {
        (A_LEVEL..=tenths.len() - A_LEVEL.min(tenths.len())).contains(&(stretch.end - stretch.start))
    };
    let pauses = pauses(&tenths).filter(|_| !stretch.as_ref().is_some_and(is_level));
    if let Some((message, lacking_s)) = pauses {
        let (who, remedy) = who_paused(e, lacking_s);
        return finding(CHECK.names[1], severity, format!("{message}: {who}"), remedy);
    }
    let Stretch { start, end, inside, outside, .. } = stretch?;
    let at = |tenth: usize| tenth as f64 / 10.0;
    let message = format!(
        "the level changed within the window: {} from {:.1} to {:.1} s of it, and {} in the rest",
        human_rate(inside * 10.0),
        at(start),
        at(end),
        human_rate(outside * 10.0)
    );
    CHECK.finding(severity, message)
}

/// Who stood still while answers stopped for so long, and what to do about it.
fn who_paused(e: &Evidence<'_>, lacking_s: f64) -> (&'static str, &'static str) {
    let explains = |stalls: &Stalls| stalls.total_us as f64 / 1e6 >= lacking_s / 2.0;
    let (client, origin) = (explains(&e.load.stalls), e.origin.is_some_and(|origin| explains(&origin.stalls)));
    let machine = "see what took the CPU (`stalls`, `other-processes`, `steal`), and run again";
    match (client, origin) {
        (true, true) => ("client and origin stood still, and so the machine did, or had no CPU for them", machine),
        (true, false) => ("the client stood still", machine),
        (false, true) => ("the origin stood still", machine),
        (false, false) => (
            "neither client nor origin stood still, so the product did, or lost its CPU",
            "see `other-processes` and `steal` of this trial; without them the product itself paused (garbage collection, a lock, a \
             write to disk)",
        ),
    }
}

/// Of tenths that lack more than half of the median, how many, and what they lack; that also in seconds.
fn pauses(tenths: &[f64]) -> Option<(String, f64)> {
    let usual = median(tenths).filter(|usual| *usual >= FEWEST)?;
    let low = || tenths.iter().filter(|right| **right < usual / 2.0);
    let lack = low().map(|right| usual - right).sum::<f64>() / (usual * tenths.len() as f64);
    let seconds = lack * tenths.len() as f64 / 10.0;
    let message = || {
        format!(
            "answers (nearly) stopped in {} of {} tenths of a second, which lack {:.0} % of the window",
            low().count(),
            tenths.len(),
            lack * 100.0
        )
    };
    (lack >= MATTERS.1).then(|| (message(), seconds))
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Trial, good};
    use weir_model::load::Stalls;
    use weir_model::record::{Finding, Severity};

    /// So many tenths of a second that hardly differ, times what `level` says of each.
    fn trial(tenths: u64, level: impl Fn(f64) -> f64) -> Trial {
        let mut trial = good();
        let right = |tenth: u64| ((1_000 + tenth * 7 % 11) as f64 * level(tenth as f64 / 10.0)) as u64;
        trial.load.tenths = (0..tenths).map(right).collect();
        trial
    }

    fn found(trial: &Trial) -> Option<Finding> {
        trial.check(super::check)
    }

    fn name(trial: &Trial) -> Option<String> {
        found(trial).map(|found| found.check)
    }

    #[test]
    fn a_change_of_level_is_seen_wherever_it_is() {
        assert_eq!(found(&trial(120, |_| 1.0)), None);
        for second in [1.0, 4.0, 6.0, 8.0, 11.0] {
            for (before, after) in [(60.0, 17.0), (17.0, 60.0)] {
                let found = found(&trial(120, |at| if at < second { before } else { after })).expect("fires");
                assert_eq!((found.check.as_str(), found.severity), ("drift", Severity::Warning), "{second}");
            }
        }
        assert_eq!(name(&trial(120, |at| 0.5 + at / 12.0)).as_deref(), Some("drift"));
        assert_eq!(name(&trial(20, |at| if at < 0.8 { 0.7 } else { 1.0 })).as_deref(), Some("drift"), "2 s");
        assert_eq!(name(&trial(100, |at| if (3.0..4.0).contains(&at) { 0.4 } else { 1.0 })).as_deref(), Some("drift"));
    }

    #[test]
    fn pauses_are_seen_with_and_without_what_makes_up_for_them() {
        // 200 ms of each second.
        let stalled = trial(50, |at| if at.fract() < 0.15 { 0.0 } else { 1.0 });
        let message = found(&stalled).expect("fires").message;
        assert!(message.contains("in 10 of 50 tenths of a second, which lack 20 %"), "{message}");
        let made_up = |at: f64| match (at.fract() * 10.0).round() as u32 {
            0 | 1 => 0.0,
            2 => 3.0,
            _ => 1.0,
        };
        assert_eq!(name(&trial(50, made_up)).as_deref(), Some("pauses"));
        assert_eq!(name(&trial(20, |at| if (1.0..1.15).contains(&at) { 0.0 } else { 1.0 })).as_deref(), Some("pauses"));
    }

    #[test]
    fn who_stood_still_is_named() {
        let second = Stalls { count: 5, total_us: 1_000_000, longest_us: 200_000 };
        let said = |client: Stalls, origin: Stalls| {
            let mut trial = trial(50, |at| if at.fract() < 0.15 { 0.0 } else { 1.0 });
            (trial.load.stalls, trial.origin.stalls) = (client, origin);
            found(&trial).expect("fires").message
        };
        let (none, short) = (Stalls::default(), Stalls { total_us: 100_000, ..second });
        assert!(said(second, none).ends_with("the client stood still"));
        assert!(said(none, second).ends_with("the origin stood still"));
        assert!(said(second, second).contains("the machine"));
        assert!(said(none, short).contains("so the product did"));
    }

    #[test]
    fn what_is_short_or_small_is_forgiven() {
        assert_eq!(found(&trial(100, |at| if (5.0..5.1).contains(&at) { 0.0 } else { 1.0 })), None, "1 %");
        assert_eq!(found(&trial(200, |at| if at < 10.0 { 0.97 } else { 1.0 })), None);
        assert_eq!(found(&trial(17, |at| if at < 0.8 { 0.7 } else { 1.0 })), None, "too short to judge");
        let mut slow = trial(50, |at| if at.fract() < 0.15 { 0.0 } else { 1.0 });
        slow.load.tenths.iter_mut().for_each(|right| *right /= 30);
        assert_ne!(name(&slow).as_deref(), Some("pauses"), "few answers come by chance");
        assert_eq!(found(&good()), None, "an older record");
    }

    #[test]
    fn rounds_that_show_how_a_product_warms_up_are_only_noted() {
        let mut trial = trial(200, |at| 0.5 + at / 40.0);
        trial.warming_round = true;
        assert_eq!(found(&trial).expect("says so").severity, Severity::Note);
    }
}
