//! Where a pair of products stands in another order, and by how much: cases that have a metric and profiles in common are said
//! together, with the least and the most of their ratios. Knows no cause.

use super::super::quantity::Compared;
use super::super::words::{list, range, with_interval};
use super::{Case, Place};
use weir_model::text::short;

/// The places of one metric on the same cases, under one profile or several.
struct Span<'a> {
    compared: Compared,
    profiles: Vec<&'a str>,
    places: Vec<&'a Place>,
}

impl Span<'_> {
    fn cases(&self) -> Vec<Case<'_>> {
        cases(&self.places)
    }

    /// "on root and tiny (tuned)".
    fn place(&self) -> String {
        format!("on {} ({})", named(&self.cases()), list(&self.profiles))
    }

    /// "rate 2.90 to 3.10 as published, 0.895 to 0.910 here".
    fn words(&self) -> String {
        format!("{} {}", self.compared.words, ratios(&self.places))
    }
}

/// The spans of a pair: those in the same place stand behind one naming of it.
pub(super) fn where_and_how_far(group: &[&Place]) -> String {
    let mut by_place: Vec<(String, Vec<String>)> = Vec::new();
    for span in spans(group) {
        match by_place.iter_mut().find(|(place, _)| *place == span.place()) {
            Some((_, words)) => words.push(span.words()),
            None => by_place.push((span.place(), vec![span.words()])),
        }
    }
    let words = by_place.iter().map(|(place, words)| format!("{place}: {}", words.join("; ")));
    words.collect::<Vec<String>>().join("; ")
}

/// "2.90 as published, 0.895 here"; of several the least and the most.
pub(super) fn ratios(places: &[&Place]) -> String {
    let published: Vec<f64> = places.iter().map(|place| place.pair.published_ratio).collect();
    let ours: Vec<_> = places.iter().filter_map(|place| place.pair.our_ratio).collect();
    let here = match ours.as_slice() {
        [] => "not known".to_string(),
        [only] if places.len() == 1 => with_interval(only, 1.0),
        several => range(&several.iter().map(|ratio| ratio.value).collect::<Vec<f64>>()),
    };
    let published = if let [only] = published.as_slice() { short(*only) } else { range(&published) };
    format!("{published} as published, {here} here")
}

fn spans<'a>(group: &[&'a Place]) -> Vec<Span<'a>> {
    let mut single: Vec<Span<'a>> = Vec::new();
    for place in group.iter().copied() {
        let compared = place.pair.compared;
        match single.iter_mut().find(|span| span.compared == compared && span.profiles == [place.profile.as_str()]) {
            Some(span) => span.places.push(place),
            None => single.push(Span { compared, profiles: vec![place.profile.as_str()], places: vec![place] }),
        }
    }
    let mut all: Vec<Span<'a>> = Vec::new();
    for span in single {
        match all.iter_mut().find(|known| known.compared == span.compared && known.cases() == span.cases()) {
            Some(known) => {
                known.profiles.extend(span.profiles);
                known.places.extend(span.places);
            }
            None => all.push(span),
        }
    }
    all
}

/// Each case once.
pub(super) fn cases<'a>(places: &[&'a Place]) -> Vec<Case<'a>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for place in places {
        if !cases.contains(&place.case()) {
            cases.push(place.case());
        }
    }
    cases
}

/// "root and tiny", "hello, round 3 and round 4", "hello (round 3 and round 4) and root".
pub(super) fn named(cases: &[Case<'_>]) -> String {
    let mut by_case: Vec<(&str, Vec<&str>)> = Vec::new();
    for (case, part) in cases {
        match by_case.iter_mut().find(|(known, _)| known == case) {
            Some((_, parts)) => parts.extend(part),
            None => by_case.push((*case, part.iter().copied().collect())),
        }
    }
    let alone = by_case.len() == 1;
    let words = |(case, parts): &(&str, Vec<&str>)| match parts.as_slice() {
        [] => case.to_string(),
        several if alone => format!("{case}, {}", list(several)),
        several => format!("{case} ({})", list(several)),
    };
    list(&by_case.iter().map(words).collect::<Vec<String>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_case_stand_together() {
        let parts = ["round 3", "round 4"].map(|part| ("hello", Some(part)));
        assert_eq!(named(&parts), "hello, round 3 and round 4");
        assert_eq!(named(&[parts[0], parts[1], ("root", None)]), "hello (round 3 and round 4) and root");
        assert_eq!(named(&parts[..1]), "hello, round 3");
        assert_eq!(named(&[("root", None), ("tiny", None)]), "root and tiny");
    }
}
