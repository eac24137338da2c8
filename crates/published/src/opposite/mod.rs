//! The pairs of products that stand in another order here than published: each pair once, with the cases, the ratios and what
//! is known of why; and behind that every case of every pair by itself. Knows no product's name, and no cause of its own.

mod spans;
mod topics;

use super::causes::{Cause, causes};
use super::compare::Comparison;
use super::data::Source;
use super::facts::{Pair, pair};
use super::ours::Ours;
use spans::{named, ratios, where_and_how_far};
use topics::topics;

/// What is said of all such pairs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Opposite {
    /// What is known of every one of them, a sentence; empty where that is nothing.
    pub of_all: String,
    /// Each pair, those first of which one of our intervals is sure.
    pub pairs: Vec<String>,
    /// Of how many of them one is.
    pub sure: usize,
    /// Each case of each pair, with numbers of its own; empty where `pairs` has no more than one of each.
    pub every: Vec<String>,
}

/// A pair of products in one case, by one metric, under one profile.
struct Place {
    pair: Pair,
    profile: String,
    case: String,
    /// Of a case that is measured in several parts.
    part: Option<String>,
    causes: Vec<Cause>,
}

/// A case, and which part of it.
type Case<'a> = (&'a str, Option<&'a str>);

impl Place {
    fn case(&self) -> Case<'_> {
        (&self.case, self.part.as_deref())
    }

    /// Our interval excludes the published order.
    fn sure(&self) -> bool {
        self.pair.our_ratio.is_some_and(|ratio| ratio.n > 1 && (ratio.low > 1.0 || ratio.high < 1.0))
    }

    fn over(&self) -> String {
        format!("{} over {}", self.pair.ahead.title, self.pair.behind.title)
    }
}

/// All of it, in the order of metrics, cases and profiles.
pub(super) fn opposite(ours: &Ours<'_>, source: &Source, comparisons: &[Comparison]) -> Opposite {
    said(&places(ours, source, comparisons))
}

fn places(ours: &Ours<'_>, source: &Source, comparisons: &[Comparison]) -> Vec<Place> {
    let mut all = Vec::new();
    for comparison in comparisons {
        for (number, name) in ours.profiles.iter().enumerate() {
            for rows in comparison.agreement(number).opposite {
                let found = pair(ours, source, comparison, number, rows).filter(|pair| is_of(pair, name));
                all.extend(found.map(|pair| Place {
                    causes: causes(&pair),
                    profile: profile_of(&pair, name),
                    case: comparison.case.clone(),
                    part: comparison.part().map(str::to_string),
                    pair,
                }));
            }
        }
    }
    all
}

/// Whether one of the two runs under a profile: of products that both stand in with another, that one's sentence is enough.
fn is_of(pair: &Pair, profile: &str) -> bool {
    [&pair.ahead, &pair.behind].iter().any(|side| side.ours.profile == profile)
}

/// What both run under, else the profile that one of them stands in for.
fn profile_of(pair: &Pair, compared: &str) -> String {
    let (own, other) = (&pair.ahead.ours.profile, &pair.behind.ours.profile);
    if own == other { own.clone() } else { compared.to_string() }
}

fn said(places: &[Place]) -> Opposite {
    let mut groups: Vec<Vec<&Place>> = Vec::new();
    for place in places {
        match groups.iter_mut().find(|group| group[0].over() == place.over()) {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    }
    groups.sort_by_key(|group| !group.iter().any(|place| place.sure()));
    let of_all = if groups.len() > 1 { shared(places) } else { Vec::new() };
    let words: Vec<&str> = of_all.iter().map(|cause| cause.words.as_str()).collect();
    let alone = groups.iter().all(|group| group.len() == 1);
    Opposite {
        of_all: if words.is_empty() {
            String::new()
        } else {
            format!("What is known of all of them: {}.", words.join("; "))
        },
        sure: groups.iter().filter(|group| group.iter().any(|place| place.sure())).count(),
        pairs: groups.iter().map(|group| of_pair(group, &of_all)).collect(),
        every: if alone { Vec::new() } else { places.iter().map(of_place).collect() },
    }
}

/// The causes that every place has, in the same words.
fn shared(places: &[Place]) -> Vec<Cause> {
    let Some((first, others)) = places.split_first() else { return Vec::new() };
    let everywhere = |cause: &&Cause| others.iter().all(|place| place.causes.contains(*cause));
    first.causes.iter().filter(everywhere).cloned().collect()
}

/// One case of a pair, with all its numbers.
fn of_place(place: &Place) -> String {
    let known: Vec<&str> = place.causes.iter().map(|cause| cause.words.as_str()).collect();
    format!(
        "{}, {}, {}, {}: {}. {}",
        place.over(),
        place.pair.compared.words,
        place.profile,
        named(&[place.case()]),
        ratios(&[place]),
        known_words(&known)
    )
}

fn known_words(known: &[&str]) -> String {
    match known {
        [] => "Nothing in this run's records or in the document says why.".to_string(),
        known => format!("What is known: {}.", known.join("; ")),
    }
}

/// A pair with all its cases.
fn of_pair(group: &[&Place], of_all: &[Cause]) -> String {
    let over = group.first().map(|place| place.over()).unwrap_or_default();
    let sentence = format!("{over} {}.", where_and_how_far(group));
    let topics = topics(group, of_all);
    let known: Vec<String> = topics.iter().map(|topic| topic.words(group)).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    // What is known of all pairs has been said.
    if known.is_empty() && !of_all.is_empty() {
        return sentence;
    }
    let without = group.iter().filter(|place| place.causes.is_empty()).count();
    let rest = if without == 0 || known.is_empty() {
        String::new()
    } else {
        format!(" Of {without} of the {} nothing is known.", group.len())
    };
    format!("{sentence} {}{rest}", known_words(&known))
}

#[cfg(test)]
mod tests {
    use super::super::causes::sample;
    use super::*;
    use weir_stats::Estimate;

    fn place(case: &str, profile: &str, change: impl Fn(&mut Pair)) -> Place {
        let mut pair = sample::silent();
        change(&mut pair);
        Place { causes: causes(&pair), profile: profile.to_string(), case: case.to_string(), part: None, pair }
    }

    fn ours(value: f64) -> Option<Estimate> {
        Some(Estimate { value, low: value * 0.9, high: value * 1.05, n: 5, level: 0.94 })
    }

    #[test]
    fn a_pair_stands_once_with_its_cases_and_ratios() {
        let ratios = |published: f64, value: f64| {
            move |pair: &mut Pair| {
                pair.published_ratio = published;
                pair.our_ratio = ours(value);
            }
        };
        let places = [
            place("root", "tuned", ratios(3.0, 0.8)),
            place("tiny", "tuned", ratios(2.0, 0.7)),
            place("root", "stock", ratios(3.0, 0.6)),
            place("tiny", "stock", ratios(2.0, 0.9)),
        ];
        let said = said(&places);
        assert_eq!(
            said.pairs,
            [
                "Alder over Birch on root and tiny (tuned and stock): rate 2.00 to 3.00 as published, 0.600 to 0.900 here. \
                 Nothing in this run's records or in the document says why."
            ]
        );
        assert_eq!(said.of_all, "");
        assert_eq!(said.every.len(), 4);
        assert!(
            said.every[1].starts_with("Alder over Birch, rate, tuned, tiny: 2.00 as published, 0.700 (0.630\u{2013}")
        );
    }

    #[test]
    fn profiles_with_other_cases_are_told_apart() {
        let as_it_is = |_: &mut Pair| {};
        let said = said(&[place("root", "tuned", as_it_is), place("tiny", "stock", as_it_is)]);
        assert!(said.pairs[0].starts_with("Alder over Birch on root (tuned): rate 3.00 as"), "{:?}", said.pairs);
        assert!(said.pairs[0].contains("; on tiny (stock): rate 3.00 as published, 0.800 (0.700\u{2013}0.900) here."));
    }

    #[test]
    fn causes_are_said_once_and_of_which_cases() {
        let nice = |pair: &mut Pair| pair.behind.published.nice = Some(5.0);
        let close = |published: f64| move |pair: &mut Pair| pair.published_ratio = published;
        let said = said(&[
            place("root", "tuned", nice),
            place("tiny", "tuned", close(1.01)),
            place("large", "tuned", close(1.02)),
            place("tiny", "stock", |_| {}),
        ]);
        let known = said.pairs[0].split("What is known: ").nth(1).unwrap();
        assert_eq!(
            known,
            "Birch was published at a lower scheduling priority (nice 5) (on root); they were published only 1.0 % apart, measured \
             once each (numbers of tiny, tuned; 2 of 4). Of 1 of the 4 nothing is known."
        );
        assert!(said.every[2].contains("only 2.0 % apart"), "each has its own numbers: {:?}", said.every);
    }

    #[test]
    fn what_is_known_of_all_pairs_is_said_before_them() {
        let once = |pair: &mut Pair| pair.our_ratio = pair.our_ratio.map(|ratio| Estimate { n: 1, ..ratio });
        let other = |pair: &mut Pair| {
            once(pair);
            std::mem::swap(&mut pair.ahead.title, &mut pair.behind.title);
        };
        let said = said(&[place("root", "tuned", once), place("tiny", "tuned", other)]);
        assert_eq!(
            said.of_all,
            "What is known of all of them: one block has no interval, so the order here is what was seen once."
        );
        assert_eq!(said.pairs[1], "Birch over Alder on tiny (tuned): rate 3.00 as published, 0.800 here.");
        assert!(said.every.is_empty(), "nothing more is known of them");
    }

    #[test]
    fn the_sure_ones_come_first() {
        let unsure = |pair: &mut Pair| {
            pair.our_ratio = Some(Estimate { value: 0.99, low: 0.9, high: 1.1, n: 5, level: 0.94 });
            pair.ahead.title = "Cedar".to_string();
        };
        let said = said(&[place("root", "tuned", unsure), place("root", "tuned", |_| {})]);
        assert!(said.pairs[0].starts_with("Alder over Birch"), "{:?}", said.pairs);
    }
}
