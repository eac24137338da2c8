//! A rate that changed its level, or paused.

use weir_model::load::Stalls;
use weir_model::record::{Finding, Severity};
use weir_model::text::human_rate;
use weir_stats::{Stretch, median, other_level};

use super::{Evidence, finding, finding_with};

/// Least difference, as a share of the mean, and least effect on it.
const MATTERS: (f64, f64) = (0.05, 0.02);
/// Tenths from which on a stretch is a level, and not a pause.
const A_LEVEL: usize = 10;
/// Responses in a tenth of a second below which a tenth of half as many may be chance (of 40, Poisson: 1 in 4,000).
const FEWEST: f64 = 40.0;
/// Responses that are missing in a silence that is no chance (of 20, Poisson: 1 in 500,000,000).
const FEWEST_IN_SILENCE: f64 = 20.0;
/// Whole tenths in half a second without a response, which is always told; in one second, which makes a closed load invalid, as does this
/// share of the window.
const SILENCE: (usize, usize, f64) = (4, 9, 0.25);

pub fn check(e: &Evidence<'_>) -> Option<Finding> {
    // Streams that began together end together, and between that nothing is complete.
    if e.load.messages.is_some() {
        return None;
    }
    let tenths: Vec<f64> = e.load.tenths.iter().map(|successful| *successful as f64).collect();
    let stretch = other_level(&tenths, MATTERS);
    let is_level = |stretch: &Stretch| {
        (A_LEVEL..=tenths.len() - A_LEVEL.min(tenths.len())).contains(&(stretch.end - stretch.start))
    };
    let pauses = Pauses::of(&tenths).filter(|pauses| {
        pauses.is_silence()
            || pauses.is_long()
            || (pauses.lacking >= MATTERS.1 && !stretch.as_ref().is_some_and(is_level))
    });
    let severity = |severity| if e.warming_round { Severity::Note } else { severity };
    if let Some(pauses) = pauses {
        let closed = e.load.offered_rate.is_none();
        let found = if closed && pauses.is_long() { Severity::Fatal } else { Severity::Warning };
        let (who, remedy) = who_paused(e, pauses.lacking_s());
        return finding_with("pauses", severity(found), format!("{}: {who}", pauses.message()), remedy);
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
    finding("drift", severity(Severity::Warning), message)
}

/// Finds the process that stood still while responses stopped for so long. Returns its name, and a remedy.
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

/// Tenths of a second with less than half of the usual responses.
struct Pauses {
    tenths: usize,
    low: usize,
    /// What they lack, as a share of what all tenths would usually have.
    lacking: f64,
    /// The longest row of them without any response; 0 where that may be chance.
    silent: usize,
}

impl Pauses {
    fn of(tenths: &[f64]) -> Option<Pauses> {
        // A product that stopped for most of the window is no measure of the usual.
        let answered: Vec<f64> = tenths.iter().copied().filter(|successful| *successful > 0.0).collect();
        let usual = median(&answered)?;
        let low: Vec<f64> = tenths.iter().copied().filter(|successful| *successful < usual / 2.0).collect();
        let lacking = low.iter().map(|successful| usual - successful).sum::<f64>() / (usual * tenths.len() as f64);
        let longest = tenths.split(|successful| *successful > 0.0).map(<[f64]>::len).max().unwrap_or(0);
        Some(Pauses {
            tenths: tenths.len(),
            low: low.len(),
            lacking: if usual >= FEWEST { lacking } else { 0.0 },
            silent: if usual * longest as f64 >= FEWEST_IN_SILENCE { longest } else { 0 },
        })
    }

    fn is_silence(&self) -> bool {
        self.silent >= SILENCE.0
    }

    /// So long that most of what should have been sent was not.
    fn is_long(&self) -> bool {
        self.silent >= SILENCE.1 || self.silent as f64 >= SILENCE.2 * self.tenths as f64
    }

    fn window_s(&self) -> f64 {
        self.tenths as f64 / 10.0
    }

    fn lacking_s(&self) -> f64 {
        (self.lacking * self.window_s()).max(self.silent as f64 / 10.0)
    }

    fn message(&self) -> String {
        if self.is_silence() {
            return format!(
                "no successful response came for {:.1} of {:.1} s at a time",
                self.silent as f64 / 10.0,
                self.window_s()
            );
        }
        format!(
            "answers (nearly) stopped in {} of {} tenths of a second, which lack {:.0} % of the window",
            self.low,
            self.tenths,
            self.lacking * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Trial, good};
    use weir_model::load::Stalls;
    use weir_model::record::{Finding, Severity};

    /// So many tenths of a second that hardly differ, times what `level` says of each.
    fn trial(tenths: u64, level: impl Fn(f64) -> f64) -> Trial {
        let mut trial = good();
        let successful = |tenth: u64| ((1_000 + tenth * 7 % 11) as f64 * level(tenth as f64 / 10.0)) as u64;
        trial.load.tenths = (0..tenths).map(successful).collect();
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
    fn silence_decides_at_any_length_of_the_window() {
        let severity = |trial: &Trial| found(trial).map(|found| (found.check, found.severity));
        let (fatal, warning) = (Some(("pauses".into(), Severity::Fatal)), Some(("pauses".into(), Severity::Warning)));
        for (tenths, from) in [(10, 0.7), (20, 0.7), (20, 1.5), (120, 11.0), (600, 1.0)] {
            assert_eq!(
                severity(&trial(tenths, |at| if at < from - 0.01 { 1.0 } else { 0.0 })),
                fatal,
                "{tenths} from {from}"
            );
        }
        let for_a_second = |at: f64| if (29.99..30.95).contains(&at) { 0.0 } else { 1.0 };
        assert_eq!(severity(&trial(600, for_a_second)), fatal);
        assert_eq!(severity(&trial(600, |at| if (29.99..30.45).contains(&at) { 0.0 } else { 1.0 })), warning);
        let mut open = trial(600, for_a_second);
        open.load.offered_rate = Some(10_000.0);
        assert_eq!(severity(&open), warning, "the latencies of an open load count it");
        let message = found(&open).expect("fires").message;
        assert!(message.starts_with("no successful response came for 1.0 of 60.0 s at a time"), "{message}");
    }

    #[test]
    fn silence_between_rare_responses_is_chance() {
        let mut rare = trial(100, |at| if (5.0..5.55).contains(&at) { 0.0 } else { 1.0 });
        rare.load.tenths.iter_mut().for_each(|successful| *successful /= 500);
        assert_ne!(name(&rare).as_deref(), Some("pauses"));
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
        slow.load.tenths.iter_mut().for_each(|successful| *successful /= 30);
        assert_ne!(name(&slow).as_deref(), Some("pauses"), "few responses come by chance");
        assert_eq!(found(&good()), None, "nothing was recorded");
    }

    #[test]
    fn rounds_that_show_how_a_product_warms_up_are_only_noted() {
        let mut trial = trial(200, |at| 0.5 + at / 40.0);
        trial.warming_round = true;
        assert_eq!(found(&trial).expect("says so").severity, Severity::Note);
    }
}
