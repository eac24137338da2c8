//! What is known of a pair of products in several cases: what a rule says of each of them but for its numbers is said once, with
//! the cases that it holds for. Knows rules by their names only.

use super::super::causes::Cause;
use super::super::facts::Pair;
use super::Place;
use super::spans::{cases, named};

/// So many cases are named beside a cause; of more only the number is said.
const NAMED: usize = 3;

/// What a rule says of a pair in some of its places: the same sentence, but for numbers.
pub(super) struct Topic<'a> {
    rule: &'static str,
    /// The sentence without its numbers.
    pattern: String,
    /// As it stands in the first of the places.
    words: &'a str,
    /// Other places have other numbers.
    differ: bool,
    /// By their place in the group.
    places: Vec<usize>,
}

/// Each once, in the order of its first place; without those that are said `of_all` pairs.
pub(super) fn topics<'a>(group: &[&'a Place], of_all: &[Cause]) -> Vec<Topic<'a>> {
    let mut topics: Vec<Topic<'a>> = Vec::new();
    for (number, place) in group.iter().enumerate() {
        for cause in place.causes.iter().filter(|cause| !of_all.contains(cause)) {
            let pattern = pattern(&cause.words, &place.pair);
            match topics.iter_mut().find(|topic| topic.rule == cause.rule && topic.pattern == pattern) {
                Some(topic) => {
                    topic.differ |= topic.words != cause.words;
                    topic.places.push(number);
                }
                None => topics.push(Topic {
                    rule: cause.rule,
                    pattern,
                    words: &cause.words,
                    differ: false,
                    places: vec![number],
                }),
            }
        }
    }
    topics
}

/// A sentence without its numbers, but with the digits of products' names.
fn pattern(words: &str, pair: &Pair) -> String {
    let (a, b) = (pair.ahead.title.as_str(), pair.behind.title.as_str());
    // The longer one first: it may begin like the other.
    let titles = if a.len() >= b.len() { [(a, "\u{1}"), (b, "\u{2}")] } else { [(b, "\u{2}"), (a, "\u{1}")] };
    let named = titles.iter().filter(|(title, _)| !title.is_empty());
    let words = named.fold(words.to_string(), |words, (title, mark)| words.replace(title, mark));
    words.chars().filter(|c| !c.is_ascii_digit() && !matches!(c, '.' | ',')).collect()
}

impl Topic<'_> {
    /// With the cases that it is about, where it is not about all of them.
    pub(super) fn words(&self, group: &[&Place]) -> String {
        let own: Vec<&Place> = self.places.iter().filter_map(|place| group.get(*place).copied()).collect();
        let mut remarks = Vec::new();
        if let (true, Some(first)) = (self.differ, own.first()) {
            remarks.push(format!("numbers of {}, {}", named(&[first.case()]), first.profile));
        }
        if own.len() < group.len() {
            let cases = cases(&own);
            let with_these = group.iter().filter(|place| cases.contains(&place.case())).count();
            remarks.push(if with_these == own.len() && cases.len() <= NAMED {
                format!("on {}", named(&cases))
            } else {
                format!("{} of {}", own.len(), group.len())
            });
        }
        if remarks.is_empty() { self.words.to_string() } else { format!("{} ({})", self.words, remarks.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::causes::sample;
    use super::*;

    #[test]
    fn digits_of_names_are_no_numbers() {
        let mut pair = sample::silent();
        (pair.ahead.title, pair.behind.title) = ("Elm".to_string(), "Elm 2".to_string());
        let of = |words: &str| pattern(words, &pair);
        assert_eq!(of("1.0 % of the requests to Elm 2"), of("2 % of the requests to Elm 2"));
        assert_ne!(of("1 % of the requests to Elm"), of("1 % of the requests to Elm 2"));
    }
}
