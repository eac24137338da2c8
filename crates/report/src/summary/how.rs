//! Writes the sentences beside a table or chart that say how its numbers were obtained. Called by `section`.

use weir_model::suite::{LoadKind, Protocol, Series};
use weir_stats::Estimate;

use super::{Metric, Section, objective_words};
use weir_model::text::{count, counted, list, percent, seconds, short};

/// What the brackets behind a number mean (`what`: "In brackets", "Whiskers are"), for estimates of so many blocks.
fn interval_words(what: &str, estimates: &[Estimate]) -> String {
    let Some(widest) = estimates.iter().max_by_key(|estimate| estimate.n) else {
        return "There is no number, so there is no interval.".to_string();
    };
    match widest.n {
        0 | 1 => "One block has no interval: it cannot say how far the next would be off.".to_string(),
        n @ 2..=7 => format!(
            "{what} the interval of the median: {} of {n} blocks. It covers the true median in {} of runs.",
            if widest.level < 0.95 { "smallest to largest" } else { "order statistics" },
            percent(widest.level)
        ),
        n => format!("{what} the {} interval of the median, bootstrapped from {n} blocks.", percent(widest.level)),
    }
}

/// How the section's numbers were obtained.
pub(super) fn how(section: &Section) -> Vec<String> {
    let mut sentences = vec![load_words(section)];
    sentences.extend(protocol_words(section));
    sentences.push(median_words(section));
    let shown: Vec<Estimate> =
        section.all_rows().filter(|row| row.rank.is_some()).filter_map(|r| r.of(section.ranked_by)).collect();
    sentences.push(interval_words("In brackets", &shown));
    if section.rows.iter().filter(|row| row.rank.is_some()).count() > 1 {
        sentences.push(match section.blocks {
            0 | 1 => "From one block the order is what was seen once, not a result.".to_string(),
            _ => "Products share a rank when their intervals overlap, or when their ratio within blocks may be 1. Ratios are \
                  medians of ratios within blocks."
                .to_string(),
        });
    }
    sentences.extend(power_words(section));
    sentences.extend(all_carried_words(section));
    sentences.extend(excluded_words(section));
    sentences
}

/// The products that carried everything offered, and may carry more.
fn all_carried_words(section: &Section) -> Option<String> {
    if !matches!(section.series, Series::Shares(_)) {
        return None;
    }
    let all = |row: &&super::Row| {
        let offered = row.points.iter().filter_map(|point| point.offered).fold(0.0, f64::max);
        row.of(Metric::Rate).is_some_and(|rate| rate.value > offered * ALL)
    };
    let names: Vec<&str> = section.rows.iter().filter(all).map(|row| row.label.as_str()).collect();
    (!names.is_empty())
        .then(|| format!("All that was offered was carried by {}: the most they can is not known.", list(&names)))
}

/// Share of a rate that counts as all of it.
const ALL: f64 = 0.99;

/// How the numbers of a picture were obtained.
pub(super) fn how_drawn(section: &Section) -> Vec<String> {
    let shown: Vec<Estimate> = section.all_rows().filter_map(|row| row.of(section.ranked_by)).collect();
    let mut sentences = vec![load_words(section)];
    sentences.extend(protocol_words(section));
    sentences.extend([blocks_words(section), interval_words("Whiskers are", &shown)]);
    sentences.extend(excluded_words(section));
    sentences
}

fn blocks_words(section: &Section) -> String {
    match section.blocks {
        1 => "Each number is that of one block.".to_string(),
        n => format!("Each number is the median of {} blocks.", count(n as u64)),
    }
}

fn load_words(section: &Section) -> String {
    let connections = match (&section.series, section.connections) {
        (Series::Connections(counts), _) => {
            let counts: Vec<String> = counts.iter().map(|n| count(u64::from(*n))).collect();
            format!(" on {} connections, one after another", counts.join(", "))
        }
        (_, Some(n)) if section.close => {
            format!(" on {} at a time, each for one request", counted(u64::from(n), "connection"))
        }
        (_, Some(n)) => format!(" on {}", counted(u64::from(n), "connection")),
        (_, None) => String::new(),
    };
    let window = seconds(section.window_s);
    let long = match &section.series {
        Series::Once => format!("for {window} a trial"),
        _ => format!("for {window} at each point"),
    };
    let mut words = match &section.kind {
        LoadKind::Search { objective } => format!(
            "A search{connections} for the highest open rate at which {}; the rate that it found was confirmed for \
             {window}, where it could be.",
            objective_words(objective)
        ),
        LoadKind::Count { requests } => {
            format!("{} requests in all{connections}: each sends when its last answer came.", count(*requests))
        }
        LoadKind::Open { .. } if matches!(section.series, Series::Shares(_)) => format!(
            "Open load{connections}: each product was offered one rate after another, whatever the answers did, {long}, and \
             was not restarted between them."
        ),
        _ => arrival_words(section, &connections, &long),
    };
    words.push_str(match &section.series {
        Series::Rounds(_) => " The same again and again: the product was not restarted between rounds.",
        Series::Connections(_) => " The product was not restarted between the points.",
        Series::Once | Series::Shares(_) => "",
    });
    if section.series.leaves_queue(section.saturating) {
        words.push_str(
            " That is meant to be more than can be carried: what counts is how much was. Latency is that of a queue which grows with \
             the window; what was never sent counts with the time it had waited by the end, and is no error.",
        );
    }
    words
}

/// Closed and open loads at one setting.
fn arrival_words(section: &Section, connections: &str, long: &str) -> String {
    match section.offered_rate {
        Some((least, most)) if most > least * 1.001 => format!(
            "Open load{connections}: {} to {} requests/s were due, whatever the answers did, {long}.",
            short(least),
            short(most)
        ),
        Some((rate, _)) => {
            format!("Open load{connections}: {} requests/s were due, whatever the answers did, {long}.", short(rate))
        }
        None => format!("Closed load{connections}: each sends when its last answer came, {long}."),
    }
}

/// The protocols on both sides, if they are not plain HTTP/1.1.
fn protocol_words(section: &Section) -> Option<String> {
    let behind = &section.origin_spoke;
    let protocol = section.protocol?;
    if protocol == Protocol::default() && (behind.is_empty() || behind == PLAIN) {
        return None;
    }
    let name = protocol.title();
    let streams = match section.streams {
        1 => String::new(),
        n => format!(", up to {n} requests at a time on each connection"),
    };
    let tls = if section.tls.is_empty() { String::new() } else { format!(" ({})", section.tls.join(", or ")) };
    let behind = if behind.is_empty() { "what products speak with the origin was not recorded" } else { behind };
    Some(format!("Clients speak {name}{tls}{streams}; {behind}."))
}

/// What products ordinarily speak with the origin.
const PLAIN: &str = "products speak plain HTTP/1.1 with the origin";

fn median_words(section: &Section) -> String {
    let by = match section.ranked_by {
        Metric::Rate => format!("Ranked by {}; a wrong answer does not count", rate_words(section)),
        _ if section.own_rates => {
            "Ranked by the 99th percentile of latency, due to answered, each product at a rate of its own".to_string()
        }
        _ => "Ranked by the 99th percentile of latency, due to answered".to_string(),
    };
    match section.blocks {
        1 => format!("{by}."),
        n => format!("{by}. Each number is the median of {} blocks.", count(n as u64)),
    }
}

/// Which rate of a trial.
fn rate_words(section: &Section) -> &'static str {
    match (&section.series, &section.kind) {
        (Series::Rounds(_), _) => {
            "the right answers a second of that round of each trial which is in the middle of their rates"
        }
        (Series::Shares(_), _) => "the most right answers a second at any of the rates offered",
        (Series::Connections(_), _) => "the most right answers a second at any number of connections",
        (Series::Once, LoadKind::Search { .. }) => "the highest rate found that meets the objective",
        (Series::Once, _) => "right answers a second",
    }
}

fn power_words(section: &Section) -> Option<String> {
    if section.blocks < 2 || section.rows.iter().filter(|row| row.rank.is_some()).count() < 2 {
        return None;
    }
    Some(match section.detectable_ratio {
        Some(ratio) => format!(
            "Between blocks a product varied by {}; in four runs of five so many blocks show a difference of {} or more, \
             and may miss a smaller one.",
            percent(section.noise.unwrap_or(0.0)),
            percent(ratio - 1.0)
        ),
        None => "So few blocks could have shown no difference, however large.".to_string(),
    })
}

fn excluded_words(section: &Section) -> Option<String> {
    let parts = [(section.invalid, "invalid trial"), (section.failed, "failed trial")].into_iter();
    let parts: Vec<String> = parts.filter(|(n, _)| *n > 0).map(|(n, what)| counted(n as u64, what)).collect();
    (!parts.is_empty()).then(|| format!("Left out of the numbers: {}.", list(&parts)))
}
