//! Why two products stand in another order here than published, as far as records and documents say: each rule sees the two
//! sides of a pair, and names a cause or is silent. A rule never knows a product's name.
//!
//! To add one: a function of a [`Pair`], its line in [`RULES`], a test in which it fires and one in which it is silent.

mod connections;
mod ours;
mod published;

use super::facts::{Pair, Side};
use weir_model::text::{percent, short};

pub(super) use connections::{opens, per_hundred};
pub(super) use ours::has_room;
pub(super) use published::{MANY_ERRORS, was_offered};

/// Something that was measured or published and bears on the order of two products.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    /// Which rule found it.
    pub rule: &'static str,
    /// The rest of a sentence.
    pub words: String,
}

/// A rule: its name, and what it sees in a pair.
type Rule = (&'static str, fn(&Pair) -> Vec<String>);

/// All rules, in the order in which a reader should hear of them.
const RULES: [Rule; 13] = [
    ("interval", ours::interval),
    ("published-close", published::close),
    ("published-offered", published::offered),
    ("published-errors", published::errors),
    ("published-priority", published::priority),
    ("published-rates-differ", published::rates_differ),
    ("origin-connections", connections::origin),
    ("answers-itself", ours::answers_itself),
    ("offered", ours::offered),
    ("errors", ours::errors),
    ("room", ours::room),
    ("suspect", ours::suspect),
    ("rates-differ", ours::rates_differ),
];

/// What is known of why the order of a pair is another one here. Empty: nothing is.
pub(super) fn causes(pair: &Pair) -> Vec<Cause> {
    let of_rule = |(rule, see): &Rule| see(pair).into_iter().map(|words| Cause { rule, words }).collect::<Vec<_>>();
    RULES.iter().flat_map(of_rule).collect()
}

/// Both sides.
fn sides(pair: &Pair) -> [&Side; 2] {
    [&pair.ahead, &pair.behind]
}

/// Offered rates this near are one rate.
const SAME_RATE: f64 = 0.02;

/// Latencies at different rates are of different loads: what was offered to each side, where that differs.
fn different_rates(pair: &Pair, what: &str, offered: impl Fn(&Side) -> Option<f64>) -> Vec<String> {
    let [Some(a), Some(b)] = sides(pair).map(offered) else { return Vec::new() };
    if pair.compared.higher_is_better || (a / b - 1.0).abs() <= SAME_RATE {
        return Vec::new();
    }
    vec![format!("{what}: {} of {} and {} of {}", a_second(a), pair.ahead.title, a_second(b), pair.behind.title)]
}

/// What each side has to say, if anything.
fn of_sides(pair: &Pair, words: impl Fn(&Side) -> Option<String>) -> Vec<String> {
    sides(pair).into_iter().filter_map(words).collect()
}

/// "10,000/s".
fn a_second(rate: f64) -> String {
    format!("{}/s", short(rate))
}

/// "11 %".
fn share(share: f64) -> String {
    percent(share)
}

#[cfg(test)]
pub(super) mod sample {
    use super::super::facts::{OwnFacts, Pair, PublishedFacts, Side};
    use super::super::quantity::COMPARED;
    use weir_stats::Estimate;

    /// A pair of which nothing is known: no rule fires.
    pub fn silent() -> Pair {
        let facts = |profile: &str| OwnFacts {
            profile: profile.to_string(),
            rate: 20_000.0,
            connections_per_request: Some(0.002),
            cores_busy: Some(0.98),
            cores: 1,
            ..OwnFacts::default()
        };
        let side = |title: &str, rate: f64| Side {
            title: title.to_string(),
            published: PublishedFacts { rate: Some(rate), ..PublishedFacts::default() },
            ours: facts("tuned"),
            otherwise: vec![facts("stock")],
        };
        Pair {
            compared: COMPARED[0],
            ahead: side("Alder", 30_000.0),
            behind: side("Birch", 10_000.0),
            published_ratio: 3.0,
            our_ratio: Some(Estimate { value: 0.8, low: 0.7, high: 0.9, n: 6, level: 0.97 }),
        }
    }

    /// The same of another metric: 1 is the 99th percentile of latency.
    pub fn of_latency() -> Pair {
        Pair { compared: COMPARED[1], ..silent() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_known_is_no_cause() {
        assert_eq!(causes(&sample::silent()), []);
        assert_eq!(causes(&sample::of_latency()), []);
    }

    #[test]
    fn causes_are_named_by_their_rules() {
        let mut pair = sample::silent();
        pair.behind.published.nice = Some(5.0);
        pair.behind.ours.answers_itself = true;
        let rules: Vec<&str> = causes(&pair).iter().map(|cause| cause.rule).collect();
        assert_eq!(rules, ["published-priority", "answers-itself"]);
    }
}
