//! What has to be known before published figures and ours are compared: what the origin saw of each product here, and what the
//! document itself says that makes a figure no measure of the product. Said whether or not an order differs. Knows no
//! product's name.

use super::causes::{MANY_ERRORS, has_room, opens, per_hundred, was_offered};
use super::compare::{Comparison, OwnFigure};
use super::data::Source;
use super::facts::{self, OwnFacts};
use super::ours::Ours;
use super::quantity::COMPARED;
use super::variant::Variant;
use super::words::{cases, list, range};
use weir_model::text::{percent, short};
use weir_report::run::BASELINE;

/// A product under a profile, on the cases in which it was asked for something that reaches the origin.
struct Seen {
    title: String,
    product: String,
    profile: String,
    /// Case and facts.
    cases: Vec<(String, OwnFacts)>,
}

/// A sentence for each product that opened connections for requests: how many, what the others did, what it does under its
/// other profiles, and how its rate stood to the best.
pub(super) fn origin(ours: &Ours<'_>, source: &Source, comparisons: &[Comparison]) -> Vec<String> {
    let seen = seen(ours, source);
    let opening = seen.iter().filter(|seen| seen.cases.iter().any(|(_, facts)| opens(facts).is_some()));
    opening.map(|seen_one| opening_sentence(seen_one, &seen, comparisons)).collect()
}

fn seen(ours: &Ours<'_>, source: &Source) -> Vec<Seen> {
    let mut all = Vec::new();
    for measured in source.products.iter().filter(|measured| measured.product != BASELINE) {
        for entry in ours.entries(&measured.product) {
            let of_case = |case: &super::ours::OwnCase<'_>| {
                let facts = facts::own(case, Variant::Whole, entry)?;
                facts.connections_per_request.is_some().then(|| (case.name.to_string(), facts))
            };
            let found: Vec<_> = ours.cases().iter().filter_map(of_case).collect();
            if !found.is_empty() {
                all.push(Seen {
                    title: ours.run.title_of(&measured.product).to_string(),
                    product: measured.product.clone(),
                    profile: entry.profile.clone(),
                    cases: found,
                });
            }
        }
    }
    all
}

fn opening_sentence(one: &Seen, all: &[Seen], comparisons: &[Comparison]) -> String {
    let often: Vec<&(String, OwnFacts)> = one.cases.iter().filter(|(_, facts)| opens(facts).is_some()).collect();
    let names: Vec<String> = often.iter().map(|(name, _)| name.clone()).collect();
    let connections = |facts: &OwnFacts| facts.connections_per_request.unwrap_or(0.0);
    let most = often.iter().map(|(_, facts)| connections(facts)).fold(0.0, f64::max);
    let least = often.iter().map(|(_, facts)| connections(facts)).fold(f64::INFINITY, f64::min);
    let how_many = if most - least < 0.005 {
        per_hundred(most)
    } else {
        format!("{} to {}", short(least * 100.0), per_hundred(most))
    };
    let mut sentence = format!(
        "{} ({}) opened a connection to the origin for {how_many} {}",
        one.title,
        one.profile,
        cases(&names, one.cases.len())
    );
    let reusing = |seen: &&Seen| {
        seen.product != one.product
            && seen.profile == one.profile
            && !seen.cases.iter().any(|(_, facts)| opens(facts).is_some())
    };
    let others: Vec<&Seen> = all.iter().filter(reusing).collect();
    if !others.is_empty() {
        let titles: Vec<&str> = others.iter().map(|seen| seen.title.as_str()).collect();
        let all_of_them = others.iter().flat_map(|seen| &seen.cases).filter(|(case, _)| names.contains(case));
        let at_most = all_of_them.map(|(_, facts)| connections(facts) * 100.0).fold(0.0, f64::max);
        sentence.push_str(&format!(", {} under the same profile for at most {}", list(&titles), short(at_most)));
    }
    sentence.push('.');
    if let Some(more) = otherwise(one, &often, all) {
        sentence.push_str(&more);
    }
    sentence.push_str(&to_the_best(one, &names, comparisons));
    sentence
}

/// What the same product does under a profile that keeps its connections.
fn otherwise(one: &Seen, often: &[&(String, OwnFacts)], all: &[Seen]) -> Option<String> {
    let same = |seen: &&Seen| seen.product == one.product && seen.profile != one.profile;
    let other = all.iter().filter(same).find(|seen| !seen.cases.iter().any(|(_, facts)| opens(facts).is_some()))?;
    let of_case = |name: &str| other.cases.iter().find(|(case, _)| case == name).map(|(_, facts)| facts);
    let shared: Vec<(&OwnFacts, &OwnFacts)> = often.iter().filter_map(|(n, own)| Some((own, of_case(n)?))).collect();
    let times: Vec<f64> = shared.iter().filter(|(own, _)| own.rate > 0.0).map(|(own, o)| o.rate / own.rate).collect();
    let at_most = shared.iter().filter_map(|(_, other)| other.connections_per_request).fold(0.0, f64::max);
    if times.is_empty() {
        return None;
    }
    let mut text = format!(
        " With {} it opens one for at most {} and carries {} times as much",
        other.profile,
        per_hundred(at_most),
        range(&times)
    );
    let costs: (Vec<f64>, Vec<f64>) =
        shared.iter().filter_map(|(own, other)| Some((own.cpu_us?, other.cpu_us?))).unzip();
    if !costs.0.is_empty() {
        text.push_str(&format!(", for {} \u{b5}s of CPU a request instead of {}", range(&costs.1), range(&costs.0)));
    }
    text.push_str("; the profiles may differ in more than that, see their configurations.");
    text.push_str(&room(often));
    Some(text)
}

/// Where CPU was left over, a rate does not show what a connection costs.
fn room(often: &[&(String, OwnFacts)]) -> String {
    let idle: Vec<&(String, OwnFacts)> = often.iter().copied().filter(|(_, facts)| has_room(facts)).collect();
    let names: Vec<&str> = idle.iter().map(|(name, _)| name.as_str()).collect();
    let busy: Vec<f64> = idle.iter().filter_map(|(_, facts)| facts.cores_busy).collect();
    let Some((_, first)) = idle.first() else { return String::new() };
    let cores = if first.cores == 1 { "1 core".to_string() } else { format!("{} cores", first.cores) };
    format!(
        " On {} it used {} of {cores} only: there the rate does not show what the connections cost, and CPU a request does.",
        list(&names),
        range(&busy)
    )
}

/// How its rate stood to the best's, as published and here.
fn to_the_best(one: &Seen, names: &[String], comparisons: &[Comparison]) -> String {
    let of_rate = comparisons.iter().filter(|c| c.compared == COMPARED[0] && names.contains(&c.case));
    let rows: Vec<_> = of_rate.filter_map(|c| c.rows.iter().find(|row| row.product == one.product)).collect();
    let published: Vec<f64> = rows.iter().filter_map(|row| row.published_ratio).collect();
    let own = |profile: &dyn Fn(&OwnFigure) -> bool| -> Vec<f64> {
        let figures = rows.iter().filter_map(|row| row.ours.iter().flatten().find(|own| profile(own)));
        figures.filter_map(|own| Some(own.ratio?.value)).collect()
    };
    let here = own(&|figure| figure.entry.profile == one.profile);
    if published.is_empty() || here.is_empty() {
        return String::new();
    }
    let mut text = format!(
        " Its published rate is {} of the best one's; here it is {} with {}",
        range(&published),
        range(&here),
        one.profile
    );
    let mut profiles: Vec<String> = Vec::new();
    for figure in rows.iter().flat_map(|row| row.ours.iter().flatten()) {
        if figure.entry.profile != one.profile && !profiles.contains(&figure.entry.profile) {
            profiles.push(figure.entry.profile.clone());
        }
    }
    for profile in profiles {
        let ratios = own(&|figure| figure.entry.profile == profile);
        if !ratios.is_empty() {
            text.push_str(&format!(", {} with {profile}", range(&ratios)));
        }
    }
    text + "."
}

/// What the document says of its own figures, product by product.
pub(super) fn document(ours: &Ours<'_>, source: &Source, comparisons: &[Comparison]) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for measured in &source.products {
        let title = ours.run.title_of(&measured.product);
        let mut as_offered: Vec<String> = Vec::new();
        let mut errors: Vec<String> = Vec::new();
        let mut nice: Option<f64> = None;
        for comparison in comparisons.iter().filter(|comparison| comparison.compared == COMPARED[0]) {
            if !comparison.rows.iter().any(|row| row.product == measured.product) {
                continue;
            }
            let facts = facts::published(source, &comparison.case, &measured.product, &comparison.variant);
            if let Some(offered) = was_offered(&facts) {
                as_offered.push(format!("{} ({}/s)", comparison.label(), short(offered)));
            }
            for (what, of_all) in facts.errors.iter().filter(|(_, of_all)| *of_all >= MANY_ERRORS) {
                errors.push(format!("{} {what} on {}", percent(*of_all), comparison.label()));
            }
            nice = nice.or(facts.nice);
        }
        if !as_offered.is_empty() {
            let rates = if as_offered.len() == 1 { "rate" } else { "rates" };
            sentences.push(format!(
                "{title}: what was asked for, and nothing of what it carries, is said by the published {rates} of {}.",
                list(&as_offered)
            ));
        }
        if !errors.is_empty() {
            sentences.push(format!("{title}: of the published requests {}.", list(&errors)));
        }
        if let Some(nice) = nice {
            sentences.push(format!("{title} was published at a lower scheduling priority (nice {nice})."));
        }
    }
    sentences.extend(remarks(comparisons));
    sentences.extend(cores(ours, source, comparisons));
    sentences
}

/// What stands beside single figures, each remark once with the figures that have it.
fn remarks(comparisons: &[Comparison]) -> Vec<String> {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for comparison in comparisons {
        for row in comparison.rows.iter().filter(|row| !row.figure.remark.is_empty()) {
            let place = format!("{} of {} on {}", comparison.compared.words, row.title, comparison.label());
            match all.iter_mut().find(|(remark, _)| *remark == row.figure.remark) {
                Some((_, places)) => places.push(place),
                None => all.push((&row.figure.remark, vec![place])),
            }
        }
    }
    all.into_iter().map(|(remark, places)| format!("The published {}: {remark}.", list(&places))).collect()
}

/// How many cores the proxy had, there and here.
fn cores(ours: &Ours<'_>, source: &Source, comparisons: &[Comparison]) -> Option<String> {
    let first = comparisons.first()?;
    let published = source.condition(&first.case, "", &first.variant, "cores")?.value;
    let own = ours.case(&first.case)?.cores()?;
    let word = if own == 1 { "core" } else { "cores" };
    Some(if published == f64::from(own) {
        format!("The proxy had {own} {word}, as in the document.")
    } else {
        format!("The proxy's machine had {published} cores in the document; here the proxy had {own} {word}.")
    })
}
