//! What our own records say that bears on an order: that it is not sure, that a product did other work, that something else
//! than the product was the limit.

use super::super::facts::{OwnFacts, Pair};
use super::{SAME_RATE, a_second, different_rates, of_sides, share, sides};
use weir_model::text::short;

/// A share of errors from which on a product did other work than answering.
const MANY_ERRORS: f64 = 0.001;

/// A proxy that keeps less than this share of its cores busy was not what limited a rate.
const BUSY: f64 = 0.8;

/// Our interval holds the published order too, or there is none.
pub(super) fn interval(pair: &Pair) -> Vec<String> {
    match pair.our_ratio {
        Some(ratio) if ratio.n < 2 => {
            vec!["one block has no interval, so the order here is what was seen once".to_string()]
        }
        Some(ratio) if ratio.low <= 1.0 && ratio.high >= 1.0 => {
            vec!["our interval does not exclude the published order".to_string()]
        }
        _ => Vec::new(),
    }
}

/// The one that is ahead here answered from a cache.
pub(super) fn answers_itself(pair: &Pair) -> Vec<String> {
    let side = &pair.behind;
    let words = || format!("{} answered requests here that it did not pass on", side.title);
    side.ours.answers_itself.then(words).into_iter().collect()
}

/// The one that falls back here carried all that it was offered: its rate is no capacity.
pub(super) fn offered(pair: &Pair) -> Vec<String> {
    let side = &pair.ahead;
    let Some(offered) = side.ours.offered.filter(|_| pair.compared.higher_is_better) else { return Vec::new() };
    if side.ours.rate < offered * (1.0 - SAME_RATE) {
        return Vec::new();
    }
    vec![format!(
        "{} carried all of the {} that it was offered here, and was asked for no more",
        side.title,
        a_second(offered)
    )]
}

/// One had wrong answers or none.
pub(super) fn errors(pair: &Pair) -> Vec<String> {
    of_sides(pair, |side| {
        let errors = side.ours.error_share;
        (errors >= MANY_ERRORS)
            .then(|| format!("{} of the requests to {} had no right answer here", share(errors), side.title))
    })
}

/// Whether a proxy left so much CPU over that something else set the pace.
pub(in super::super) fn has_room(facts: &OwnFacts) -> bool {
    facts.cores_busy.is_some_and(|busy| busy < f64::from(facts.cores) * BUSY)
}

/// The CPU of the one that falls back here was not used up: something else was the limit, and rates compare that.
pub(super) fn room(pair: &Pair) -> Vec<String> {
    if !pair.compared.higher_is_better {
        return Vec::new();
    }
    let idle = sides(pair).map(|side| {
        let busy = side.ours.cores_busy?;
        let cores = side.ours.cores;
        let word = if cores == 1 { "core" } else { "cores" };
        has_room(&side.ours).then(|| format!("{} used {} of {cores} {word}", side.title, short(busy)))
    });
    let limit = "client, origin or the number of connections set the pace, not its CPU";
    match idle {
        [Some(a), Some(b)] => vec![format!("{a}, {b}: {}", limit.replace("its", "their"))],
        [Some(one), None] => vec![format!("{one}: {limit}")],
        [None, _] => Vec::new(),
    }
}

/// A trial that a check doubts.
pub(super) fn suspect(pair: &Pair) -> Vec<String> {
    of_sides(pair, |side| {
        let checks = &side.ours.suspect;
        (!checks.is_empty()).then(|| format!("trials of {} are suspect ({})", side.title, checks.join(", ")))
    })
}

/// Latencies at different rates are of different loads.
pub(super) fn rates_differ(pair: &Pair) -> Vec<String> {
    different_rates(pair, "the loads here differ too", |side| side.ours.offered)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use weir_stats::Estimate;

    const SILENT: [String; 0] = [];

    #[test]
    fn an_order_that_is_not_sure_is_said_to_be() {
        let mut pair = sample::silent();
        let ratio = |low, high, n| Some(Estimate { value: 0.99, low, high, n, level: 0.97 });
        pair.our_ratio = ratio(0.95, 1.02, 6);
        assert_eq!(interval(&pair), ["our interval does not exclude the published order"]);
        pair.our_ratio = ratio(0.99, 0.99, 1);
        assert_eq!(interval(&pair), ["one block has no interval, so the order here is what was seen once"]);
        pair.our_ratio = ratio(0.95, 0.99, 6);
        assert_eq!(interval(&pair), SILENT);
    }

    #[test]
    fn other_work_is_named() {
        let mut pair = sample::silent();
        pair.behind.ours.answers_itself = true;
        pair.behind.ours.error_share = 0.02;
        pair.behind.ours.suspect = vec!["quiet-steal".to_string(), "steady".to_string()];
        assert_eq!(answers_itself(&pair), ["Birch answered requests here that it did not pass on"]);
        assert_eq!(errors(&pair), ["2.0 % of the requests to Birch had no right answer here"]);
        assert_eq!(suspect(&pair), ["trials of Birch are suspect (quiet-steal, steady)"]);
        pair.behind.ours.error_share = 0.0005;
        assert_eq!(errors(&pair), SILENT);
        assert_eq!(suspect(&sample::silent()), SILENT);
    }

    #[test]
    fn a_rate_that_was_merely_offered_is_no_capacity() {
        let mut pair = sample::silent();
        pair.behind.ours.offered = Some(20_000.0);
        assert_eq!(offered(&pair), SILENT, "the one that is ahead here needs no excuse");
        pair.ahead.ours.offered = Some(20_100.0);
        assert_eq!(
            offered(&pair),
            ["Alder carried all of the 20,100/s that it was offered here, and was asked for no more"]
        );
        pair.ahead.ours.offered = Some(30_000.0);
        assert_eq!(offered(&pair), SILENT);
    }

    #[test]
    fn cpu_that_was_left_over_means_another_limit() {
        let mut pair = sample::silent();
        pair.ahead.ours.cores_busy = Some(0.3);
        assert_eq!(
            room(&pair),
            ["Alder used 0.300 of 1 core: client, origin or the number of connections set the pace, not its CPU"]
        );
        pair.behind.ours.cores_busy = Some(1.5);
        pair.behind.ours.cores = 2;
        let both = room(&pair);
        assert!(both.len() == 1 && both[0].starts_with("Alder used 0.300 of 1 core, Birch used 1.50 of 2 cores: "));
        assert!(both[0].ends_with("not their CPU"));
        pair.ahead.ours.cores_busy = Some(0.9);
        assert_eq!(room(&pair), SILENT, "the one that falls back used its CPU up");
        pair.ahead.ours.cores_busy = None;
        assert_eq!(room(&pair), SILENT);
        let mut latency = sample::of_latency();
        latency.ahead.ours.cores_busy = Some(0.1);
        assert_eq!(room(&latency), SILENT, "a latency is not limited by anything");
    }

    #[test]
    fn latencies_at_different_rates_are_of_different_loads() {
        let mut pair = sample::of_latency();
        pair.ahead.ours.offered = Some(1_000.0);
        pair.behind.ours.offered = Some(1_500.0);
        assert_eq!(rates_differ(&pair), ["the loads here differ too: 1,000/s of Alder and 1,500/s of Birch"]);
        pair.behind.ours.offered = Some(1_001.0);
        assert_eq!(rates_differ(&pair), SILENT);
    }
}
