//! What a document itself says that makes one of its figures no measure of the product. A figure that was held down explains an
//! order only where it is the worse one.

use super::super::facts::{Pair, PublishedFacts};
use super::{a_second, different_rates, of_sides, share};

/// How close to what was offered a published rate is when it is that.
const AS_OFFERED: f64 = 0.02;

/// Two windows of the same product differ by about so much on a machine of one's own: a difference between two products that
/// were measured once is none below it.
const CLOSE: f64 = 0.03;

/// A share of errors from which on a rate counts other answers than the right ones.
pub(in super::super) const MANY_ERRORS: f64 = 0.001;

/// Published closer to each other than one measurement is to the next of the same product.
pub(super) fn close(pair: &Pair) -> Vec<String> {
    let apart = (pair.published_ratio - 1.0).abs();
    if apart > CLOSE {
        return Vec::new();
    }
    vec![format!("they were published only {} apart, measured once each", share(apart))]
}

/// The published rate is the one that was asked for.
pub(super) fn offered(pair: &Pair) -> Vec<String> {
    if !pair.compared.higher_is_better {
        return Vec::new();
    }
    let side = &pair.behind;
    let words = |offered| {
        format!(
            "{} was asked for only {}: its published rate is what was offered, not what it carries",
            side.title,
            a_second(offered)
        )
    };
    was_offered(&side.published).map(words).into_iter().collect()
}

/// What was offered, where the published rate says nothing else.
pub(in super::super) fn was_offered(published: &PublishedFacts) -> Option<f64> {
    let (rate, offered) = (published.rate?, published.offered?);
    (rate >= offered * (1.0 - AS_OFFERED)).then_some(offered)
}

/// Published answers that were errors, and requests that had none.
pub(super) fn errors(pair: &Pair) -> Vec<String> {
    of_sides(pair, |side| {
        let grave = side.published.errors.iter().filter(|(_, share)| *share >= MANY_ERRORS);
        let words: Vec<String> = grave.map(|(what, of_all)| format!("{} {what}", share(*of_all))).collect();
        (!words.is_empty()).then(|| format!("of the published requests to {} {}", side.title, words.join(" and ")))
    })
}

/// A scheduling priority that the other did not have.
pub(super) fn priority(pair: &Pair) -> Vec<String> {
    let side = &pair.behind;
    let words = |nice| format!("{} was published at a lower scheduling priority (nice {nice})", side.title);
    side.published.nice.map(words).into_iter().collect()
}

/// Latencies at different rates are of different loads.
pub(super) fn rates_differ(pair: &Pair) -> Vec<String> {
    different_rates(pair, "the published loads differ", |side| side.published.offered)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const SILENT: [String; 0] = [];

    #[test]
    fn what_is_hardly_apart_is_said_to_be() {
        let mut pair = sample::silent();
        assert_eq!(close(&pair), SILENT);
        pair.published_ratio = 1.014;
        assert_eq!(close(&pair), ["they were published only 1.4 % apart, measured once each"]);
    }

    #[test]
    fn a_rate_that_was_merely_offered_is_no_capacity() {
        let mut pair = sample::silent();
        pair.behind.published.offered = Some(10_100.0);
        assert_eq!(
            offered(&pair),
            ["Birch was asked for only 10,100/s: its published rate is what was offered, not what it carries"]
        );
        pair.behind.published.offered = Some(12_000.0);
        pair.ahead.published.offered = Some(30_000.0);
        assert_eq!(offered(&pair), SILENT, "one carries more, and the other is ahead all the same");
        let mut latency = sample::of_latency();
        latency.behind.published.offered = Some(10_100.0);
        assert_eq!(offered(&latency), SILENT);
    }

    #[test]
    fn published_errors_are_named() {
        let mut pair = sample::silent();
        pair.ahead.published.errors = vec![("had status 502".to_string(), 0.107), ("timed out".to_string(), 0.0001)];
        assert_eq!(errors(&pair), ["of the published requests to Alder 11 % had status 502"]);
        pair.ahead.published.errors.remove(0);
        assert_eq!(errors(&pair), SILENT);
    }

    #[test]
    fn a_lower_priority_is_named() {
        let mut pair = sample::silent();
        pair.ahead.published.nice = Some(5.0);
        assert_eq!(priority(&pair), SILENT);
        pair.behind.published.nice = Some(5.0);
        assert_eq!(priority(&pair), ["Birch was published at a lower scheduling priority (nice 5)"]);
    }

    #[test]
    fn latencies_at_different_rates_are_of_different_loads() {
        let mut pair = sample::of_latency();
        pair.ahead.published.offered = Some(10_000.0);
        assert_eq!(rates_differ(&pair), SILENT);
        pair.behind.published.offered = Some(200_000.0);
        assert_eq!(rates_differ(&pair), ["the published loads differ: 10,000/s of Alder and 200,000/s of Birch"]);
        pair.behind.published.offered = Some(10_100.0);
        assert_eq!(rates_differ(&pair), SILENT);
    }
}
