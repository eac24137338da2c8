//! The sentences of a summary: the answer, the remarks beside it, how the numbers of a section were obtained, which hosts and protocols
//! were used, and which versions are old. They are made from the numbers, and no number is computed here.

use std::fmt;

use serde::{Serialize, Serializer};
use weir_model::load::ClientOfHost;
use weir_model::product::is_levelled;
use weir_model::record::{HostClock, HostRecord, Role};
use weir_model::suite::{Entry, LoadKind, Protocol, Series};
use weir_model::text::{Unit, count, counted, extremes, grouped, list, percent, seconds, short, unique};
use weir_stats::Estimate;

use super::{FailedTrial, Metric, Overall, OverallRow, Section, Summary, objective_words, range_words};
use crate::run::{BASELINE, Run, Trial, displayed};

/// Most products that share the lead and are named, each with its number.
const MOST_LEADERS: usize = 5;

/// Two sentences: which products are fastest, and which have the lowest p99 at the rate that all were offered.
pub(super) fn answer(summary: &Summary) -> String {
    let Some(overall) = &summary.overall else { return nothing(summary) };
    let place = match overall.workloads.len() {
        0 | 1 => String::new(),
        n => format!("Over {n} workloads (geometric means), "),
    };
    let first = format!("{place}{}.", first(overall));
    // The names of products are written as their makers do: only other words begin with a capital.
    let first = match first.strip_prefix("seen once") {
        Some(rest) => format!("Seen once{rest}"),
        None => first,
    };
    [Some(first), lowest_p99(overall)].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Says that no product is ranked, and names the first failure, which is likely to be the cause.
fn nothing(summary: &Summary) -> String {
    let none = "No product has a measurement that may be ranked";
    let Some(FailedTrial { label, workload, load, stage, message, .. }) = summary.errors.first() else {
        return format!("{none}.");
    };
    format!("{none}; {label} on {workload} under {load} failed at {stage}: {message}.")
}

/// Which product leads by the ranked metric.
fn first(overall: &Overall) -> String {
    let ranked: Vec<&OverallRow> = overall.rows.iter().filter(|row| row.rank.is_some()).collect();
    let leaders: Vec<&OverallRow> =
        ranked.iter().copied().filter(|row| row.rank.is_some_and(|(low, _)| low == 1)).collect();
    let metric = overall.ranked_by;
    match leaders.as_slice() {
        [] => "no product has a measurement that may be ranked".to_string(),
        [only] if ranked.len() == 1 => format!("{} {}", only.label, does(only, metric)),
        [best, ..] if overall.blocks < 2 => {
            format!("seen once, {} {} {}", best.label, superlative(metric), quantity(best, metric))
        }
        [best] => {
            let by = ranked.get(1).and_then(|next| Some(versus(next, next.ratio_to_best?.value, metric)));
            format!("{} {} {}{}", best.label, superlative(metric), quantity(best, metric), by.unwrap_or_default())
        }
        many if many.len() == ranked.len() => share(many, metric, "cannot be told apart by this run"),
        many => {
            let are = match metric {
                Metric::Rate => "are fastest",
                _ => "have the lowest 99th percentile of latency",
            };
            format!("{}; this run cannot tell them apart", share(many, metric, are))
        }
    }
}

/// "HAProxy (72,300 requests/s) and nginx (59,200) are fastest": the first number has the unit of all.
fn share(leaders: &[&OverallRow], metric: Metric, are: &str) -> String {
    if leaders.len() > MOST_LEADERS {
        return format!("{} products {are} ({})", leaders.len(), range(leaders, metric));
    }
    let (_, _, unit) = extremes_of(leaders, metric);
    let mut unit_name = format!(" {}", unit.name);
    let each: Vec<String> = leaders
        .iter()
        .map(|row| {
            let value = row.of(metric).map_or_else(|| "-".to_owned(), |estimate| short(estimate.value / unit.size));
            format!("{} ({value}{})", row.label, std::mem::take(&mut unit_name))
        })
        .collect();
    format!("{} {are}", list(&each.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// "At equal load, HAProxy has the lowest p99: 0.61 ms." Products whose intervals overlap with the lowest one share the place.
fn lowest_p99(overall: &Overall) -> Option<String> {
    let ranked = overall.rows.iter().filter(|row| row.rank.is_some());
    let mut rows: Vec<(&OverallRow, Estimate)> = ranked.filter_map(|row| Some((row, row.of(Metric::P99)?))).collect();
    rows.sort_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let whose = |row: &OverallRow| match overall.rows.iter().filter(|row| row.rank.is_some()).count() {
        1 => "Its".to_owned(),
        _ => format!("{}'s", row.label),
    };
    let (least, estimate) = rows.first().filter(|_| overall.ranked_by == Metric::Rate && overall.same_rate)?;
    let alike: Vec<&OverallRow> =
        rows.iter().filter(|(_, other)| other.low <= estimate.high).map(|(row, _)| *row).collect();
    Some(match alike.as_slice() {
        _ if rows.len() < 2 => format!("{} p99 at a given rate is {}.", whose(least), quantity(least, Metric::P99)),
        [only] => format!("At equal load, {} has the lowest p99: {}.", only.label, quantity(only, Metric::P99)),
        many => format!("At equal load, {} have the lowest p99 ({}).", names(many, 4), range(many, Metric::P99)),
    })
}

/// Further remarks beside the answer.
pub(super) fn remarks(summary: &Summary) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(first) = summary.broken.first() {
        let files = counted(summary.broken.len() as u64, "file");
        remarks
            .push(format!("{files} of the run cannot be read or not trusted, such as {}: {}.", first.file, first.why));
    }
    if !summary.hosts.is_empty() {
        remarks.push(format!("{}.", summary.hosts));
    }
    if !summary.shown.is_empty() {
        remarks.push(format!("A part of the run: {}.", summary.shown));
    }
    if let Some(planned) = summary.trials_planned.filter(|planned| summary.trials < *planned) {
        let (trials, planned) = (count(summary.trials as u64), count(planned as u64));
        remarks.push(match summary.broken.is_empty() {
            true => format!("The run is not finished: {trials} of {planned} trials have ended."),
            false => format!("{trials} of {planned} trials are shown."),
        });
    }
    if let Some(overall) = summary.overall.as_ref().filter(|overall| !overall.without.is_empty()) {
        remarks.push(format!(
            "The means leave out {}, in which fewer than half of the products have a number.",
            some(&overall.without)
        ));
    }
    let unranked = summary.overall.iter().flat_map(|overall| &overall.rows).filter(|row| !row.missing.is_empty());
    for (missing, labels) in grouped(unranked.map(|row| (some(&row.missing), row.label.clone()))) {
        let are = if labels.len() == 1 { "is not ranked: it has" } else { "are not ranked: they have" };
        remarks.push(format!("{} {are} no number that counts in {missing}.", list(&labels)));
    }
    remarks.extend(summary.skipped.iter().map(|sentence| format!("{sentence}.")));
    remarks.extend(caches(summary));
    remarks.extend(not_comparable(summary));
    remarks.extend(summary.outdated_words());
    for (n, what) in [
        (summary.suspect(), "suspect: ranked, marked with *, and explained under the table"),
        (summary.invalid(), "invalid: shown, not ranked"),
    ] {
        if n > 0 {
            remarks.push(format!("{} {} {what}.", counted(n as u64, "trial"), if n == 1 { "is" } else { "are" }));
        }
    }
    if !summary.errors.is_empty() {
        let failed = counted(summary.errors.len() as u64, "trial");
        remarks.push(format!("{failed} failed: no number, listed under errors."));
    }
    remarks
}

impl Section {
    /// "plain under max", for sentences.
    pub fn slug_words(&self) -> String {
        format!("{} under {}", self.workload, self.load)
    }
}

fn superlative(metric: Metric) -> &'static str {
    match metric {
        Metric::Rate => "is fastest:",
        _ => "has the lowest 99th percentile of latency:",
    }
}

fn does(row: &OverallRow, metric: Metric) -> String {
    match metric {
        Metric::Rate => format!("carries {}", quantity(row, metric)),
        _ => format!("answers 99 % of requests within {}", quantity(row, metric)),
    }
}

/// "45,100 requests/s (44,200-46,000)".
fn quantity(row: &OverallRow, metric: Metric) -> String {
    let Some(estimate) = row.of(metric) else { return "nothing".to_string() };
    let unit = metric.entry().quantity.unit(estimate.value);
    let value = short(estimate.value / unit.size);
    if estimate.n < 2 {
        return format!("{value} {}", unit.name);
    }
    format!("{value} {} ({}\u{2013}{})", unit.name, short(estimate.low / unit.size), short(estimate.high / unit.size))
}

fn versus(next: &OverallRow, ratio_of_next: f64, metric: Metric) -> String {
    let times = short(if metric.higher_is_better() { 1.0 / ratio_of_next } else { ratio_of_next });
    match metric {
        Metric::Rate => format!(", {times} times the next, {}", next.label),
        _ => format!("; the next, {}, has {times} times that", next.label),
    }
}

/// The products, or how many when they are more than `most`.
fn names(rows: &[&OverallRow], most: usize) -> String {
    let names: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
    if rows.len() > most { format!("{} products", rows.len()) } else { list(&names) }
}

/// "928 to 1,020 ms".
fn range(rows: &[&OverallRow], metric: Metric) -> String {
    let (least, most, unit) = extremes_of(rows, metric);
    format!("{} to {} {}", short(least / unit.size), short(most / unit.size), unit.name)
}

/// The smallest and the largest value of these products, and the unit that shows both.
fn extremes_of(rows: &[&OverallRow], metric: Metric) -> (f64, f64, Unit) {
    let values = rows.iter().filter_map(|row| row.of(metric)).map(|estimate| estimate.value);
    let (least, most) = extremes(values).unwrap_or_default();
    (least, most, metric.entry().quantity.unit(least))
}

/// The first few, and how many more.
fn some(names: &[String]) -> String {
    match names {
        [a, b, c, _, rest @ ..] => format!("{a}, {b}, {c} and {} more", rest.len() + 1),
        few => list(few),
    }
}

/// Products that did other work than those that are ranked, by what it was.
fn not_comparable(summary: &Summary) -> Vec<String> {
    let rows = summary.sections.iter().flat_map(|section| &section.rows);
    let by_reason = grouped(rows.filter_map(|row| Some((row.not_comparable?, row.label.as_str()))));
    let sentence = |(why, names): (&str, Vec<&str>)| {
        format!("{} {why}: shown, not ranked with them.", list(&unique(names.into_iter())))
    };
    by_reason.into_iter().map(sentence).collect()
}

/// Products that answered requests which they did not pass on.
fn caches(summary: &Summary) -> Option<String> {
    let rows = summary.sections.iter().flat_map(Section::all_rows).filter(|row| row.responds_itself);
    let names = unique(rows.map(|row| row.label.as_str()));
    (!names.is_empty()).then(|| {
        format!("{} answered from a cache: shown, not ranked with products that pass every request on.", list(&names))
    })
}

/// Explains the brackets behind a number (`what`: "In brackets", "Whiskers are"), for estimates of so many blocks.
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
            format!("{} requests in all{connections}: each sends when its last response came.", count(*requests))
        }
        LoadKind::Open { .. } if matches!(section.series, Series::Shares(_)) => format!(
            "Open load{connections}: each product was offered one rate after another, whatever the responses did, {long}, and \
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
        Some(range) => {
            let due = range_words(range);
            format!("Open load{connections}: {due} requests/s were due, whatever the responses did, {long}.")
        }
        None => format!("Closed load{connections}: each sends when its last response came, {long}."),
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
        Metric::Rate => format!("Ranked by {}; a wrong response does not count", rate_words(section)),
        Metric::MessageDelay => {
            "Ranked by the 99th percentile of the delay of messages, sent to arrived: the rate of streams and \
             the time that each takes are their sender's"
                .to_string()
        }
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
            "the successful responses/s of that round of each trial which is in the middle of their rates"
        }
        (Series::Shares(_), _) => "the most successful responses/s at any of the rates offered",
        (Series::Connections(_), _) => "the most successful responses/s at any number of connections",
        (Series::Once, LoadKind::Search { .. }) => "the highest rate found that meets the objective",
        (Series::Once, _) => "successful responses/s",
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

/// The rest of a sentence, such as `products speak plain HTTP/1.1 with the origin`; empty when no trial has counters.
pub(super) fn spoken(run: &Run, trials: &[&Trial]) -> String {
    let counted = trials.iter().filter(|trial| trial.counts() && trial.measurement.case.product != BASELINE);
    let mut seen: Vec<(String, String)> =
        counted.flat_map(|trial| of_trial(trial).into_iter().map(|way| (way, run.label_of(&trial.entry())))).collect();
    seen.sort();
    seen.dedup();
    let everybody = unique(seen.iter().map(|(_, label)| label)).len();
    // The protocols, and the products that spoke them.
    let ways = grouped(seen.iter().map(|(way, label)| (way, label)));
    let Some((most, by_most)) = ways.iter().max_by_key(|(_, labels)| labels.len()) else { return String::new() };
    if ways.len() == 1 {
        return format!("products speak {most} with the origin");
    }
    let others = ways.iter().filter(|(way, _)| way != most);
    let others: Vec<String> = others.map(|(way, labels)| format!("{} {way}", speakers(labels, everybody))).collect();
    format!("with the origin, by its counters, {}; {} {most}", list(&others), speakers(by_most, everybody))
}

/// "a and b speak", or "all speak".
fn speakers(labels: &[&String], all: usize) -> String {
    if labels.len() == all {
        return "all speak".to_string();
    }
    let verb = if labels.len() == 1 { "speaks" } else { "speak" };
    format!("{} {verb}", list(labels))
}

/// `plain HTTP/1.1`, `HTTP/2 over TLS`: one for each version that a thousandth of the requests came in, since a probe of a
/// product's own is no way of speaking.
fn of_trial(trial: &Trial) -> Vec<String> {
    let Some(counters) = &trial.measurement.origin else { return Vec::new() };
    let secret = counters.tls.handshakes > 0 || !counters.tls.versions.is_empty();
    let all: u64 = counters.versions.values().sum();
    let spoken = counters.versions.iter().filter(|(_, n)| **n * 1_000 >= all);
    let way = |version: &String| if secret { format!("{version} over TLS") } else { format!("plain {version}") };
    spoken.map(|(version, _)| way(version)).collect()
}

/// Sentences for a section's trials; none where nothing was kept.
pub(super) fn kept_words(run: &Run, trials: &[&Trial]) -> Vec<String> {
    let kept = || trials.iter().filter_map(|trial| Some((*trial, trial.measurement.kept?)));
    let entries = kept().filter_map(|(trial, kept)| {
        let entry = run.suite.entries.iter().find(|entry| trial.is_of(entry))?;
        Some(((kept.place, kept.of), run.label_of(entry)))
    });
    let places = grouped(entries);
    let place = |(place, of): (u32, u32)| format!("number {place} of {of}");
    let which = match places.as_slice() {
        [] => return Vec::new(),
        [(alike, _)] => place(*alike),
        several => list(
            &several.iter().map(|(own, labels)| format!("{} for {}", place(*own), each(labels))).collect::<Vec<_>>(),
        ),
    };
    let mut sentences = vec![format!(
        "Product and origin were started once for several workloads and kept from one to the next, with all that a workload left \
         behind, such as idle connections; this was {which}."
    )];
    let anew = kept().filter(|(trial, kept)| kept.is_anew(trial.measurement.trial));
    let anew: Vec<String> = anew
        .map(|(trial, kept)| format!("trial {} (started for trial {})", trial.measurement.trial, kept.since))
        .collect();
    if !anew.is_empty() {
        sentences.push(format!(
            "What earlier workloads left behind was gone in {}: the run was interrupted, or the product was not tried before.",
            list(&anew)
        ));
    }
    sentences
}

/// Labels, each once.
fn each(labels: &[String]) -> String {
    list(&weir_model::text::unique(labels.iter().cloned()))
}

/// More hosts of a role than this are counted.
const NAMED: usize = 4;

/// `4 hosts: client on client-1, proxy on proxy, origin on origin-1, store-1 on m4`; empty without hosts. It names the number of
/// machines where hosts share one, because they share its CPUs.
pub fn host_words(hosts: &[HostRecord]) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    let on = |role: Role| {
        let has_whole = |host: &&HostRecord| host.has(role) && (role != Role::Proxy || host.parts.is_empty());
        let names: Vec<&str> = hosts.iter().filter(has_whole).map(|host| host.name.as_str()).collect();
        let named = if names.len() > NAMED { format!("{} hosts", names.len()) } else { list(&names) };
        (!names.is_empty()).then(|| format!("{} on {named}", role.as_str()))
    };
    let roles = [Role::Client, Role::Proxy, Role::Origin].into_iter().filter_map(on);
    let with_parts = hosts.iter().filter(|host| !host.parts.is_empty());
    let parts = with_parts.map(|host| format!("{} on {}", list(&host.parts), host.name));
    let places: Vec<String> = roles.chain(parts).collect();
    let machines = unique(hosts.iter().map(|host| host.machine.as_str())).len();
    let shared = match machines {
        1 => " on one machine".to_string(),
        n if n < hosts.len() => format!(" on {n} machines"),
        _ => String::new(),
    };
    format!("{} hosts{shared}: {}", hosts.len(), places.join(", "))
}

/// The same of a run.
pub(super) fn run_hosts(run: &Run) -> String {
    run.environment.as_ref().map(|environment| host_words(&environment.hosts)).unwrap_or_default()
}

/// By how much clocks of two hosts may have disagreed, in the trial where it was most; `None` for one machine.
pub(super) fn clock_words(run: &Run) -> Option<String> {
    let most = run.trials.iter().filter_map(|trial| HostClock::furthest(&trial.measurement.clocks));
    let (us, a, b) = most.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(format!("The hosts' clocks disagreed by at most {} ms in any trial ({a} and {b}).", short(us / 1e3)))
}

/// How one of several clients did with a product. It has the worst of all trials and points, because a client that was late or
/// busy once spoils that trial.
#[derive(Debug, Clone, Serialize)]
pub struct ClientSummary {
    /// Product and profile.
    #[serde(flatten)]
    pub entry: Entry,
    /// Its host's name.
    pub host: String,
    /// The longest 99th percentile from due to sent, µs; `None` for a closed load.
    pub lag_p99_us: Option<f64>,
    /// Share of the window that the busiest thread worked on a CPU, 0 to 1.
    pub busiest_thread: Option<f64>,
}

/// The clients of each product; none where one client made the load.
pub(super) fn clients(run: &Run, section: &Section) -> Vec<ClientSummary> {
    let mut all = Vec::new();
    for row in section.all_rows() {
        let trials = displayed(section.trials(run).filter(|trial| trial.is_of(&row.entry)));
        let windows = trials.iter().flat_map(|trial| trial.measurement.windows());
        let clients: Vec<&ClientOfHost> = windows.flat_map(|load| &load.hosts).collect();
        for host in unique(clients.iter().map(|client| client.host.as_str())) {
            let own = || clients.iter().filter(|client| client.host == host);
            let lag = extremes(own().map(|client| client.lag.p99_us)).filter(|_| section.open);
            all.push(ClientSummary {
                entry: row.entry.clone(),
                host: host.to_string(),
                lag_p99_us: lag.map(|(_, most)| most),
                busiest_thread: extremes(own().flat_map(|client| client.thread_busy.clone())).map(|(_, most)| most),
            });
        }
    }
    all
}

/// A product whose version is more than a year behind the newest that weir knows. In `--json` a phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outdated {
    /// As a reader knows the product.
    pub title: String,
    /// Its version.
    pub version: String,
    /// When that was released.
    released: String,
    newest: String,
    newest_released: String,
}

impl fmt::Display for Outdated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outdated { title, version, released, newest, newest_released } = self;
        write!(f, "{title} {version} of {released} ({newest} is of {newest_released})")
    }
}

impl Serialize for Outdated {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The ranked products that are old, but for those that run as published, where the version of that time is meant.
pub(super) fn outdated(run: &Run, summary: &Summary) -> Vec<Outdated> {
    let rows = summary.sections.iter().flat_map(|section| &section.rows).filter(|row| row.rank.is_some());
    let ranked = unique(
        rows.filter(|row| is_levelled(&row.entry.profile) || row.entry.profile == "stock")
            .map(|row| row.entry.product.clone()),
    );
    let facts = run.environment.iter().flat_map(|environment| &environment.products);
    let old = facts.filter(|facts| ranked.contains(&facts.name)).filter_map(|facts| {
        let age = facts.age.as_ref().filter(|age| age.is_old())?;
        Some(Outdated {
            title: facts.title.clone(),
            version: facts.version.clone(),
            released: age.released.clone().unwrap_or_default(),
            newest: age.newest.clone(),
            newest_released: age.newest_released.clone(),
        })
    });
    old.collect()
}
