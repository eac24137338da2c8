//! The result of a search as text: sentences and a table of its trials. `weir load --find-max` prints it.

use weir_model::condition::{Condition, ConditionMetric};
use weir_model::load::{LoadSpec, Probe, ProbeKind, SearchEnd, SearchLimit, SearchResult};

use crate::load::describe::threads;
use crate::progress::minutes_s;
use weir_model::text::{counted, fixed_us, full_rate};

/// Above the rows of trials.
pub const HEADINGS: &str = "  kind       offered     carried  met   busy  lag p99  measured";

/// `the highest rate at which p99<5ms and errors<0.1%`.
pub fn question(conditions: &[Condition]) -> String {
    let words: Vec<String> = conditions.iter().map(Condition::to_string).collect();
    format!("the highest rate at which {}", words.join(" and "))
}

/// Over what it is searched.
pub fn with(spec: &LoadSpec) -> String {
    let most = spec.max_connections.map(|most| format!(" to {most}")).unwrap_or_default();
    format!(
        "open loads, {}{most} connections, {}, confirmed for {}",
        spec.connections,
        counted(threads(spec), "thread"),
        fixed_us(spec.duration_s * 1e6)
    )
}

/// A trial.
pub fn row(probe: &Probe) -> String {
    let met = match (probe.met, probe.kept_up) {
        (None, _) => "-",
        (Some(true), _) => "yes",
        (Some(false), true) => "no",
        (Some(false), false) => "late",
    };
    let near = if probe.near { "~" } else { " " };
    format!(
        "  {:<7} {:>10}  {:>10}  {met:<4}{near}{:>4.0} %  {:>7}  {:>6.1} s",
        probe.kind.as_str(),
        probe.offered.map_or("-".to_owned(), full_rate),
        full_rate(probe.carried),
        probe.busiest * 100.0,
        fixed_us(probe.lag_p99_us),
        probe.window_s
    )
}

/// The whole: the response first, then how it came about.
pub fn report(found: &SearchResult, spec: &LoadSpec, title: &str) -> String {
    let mut lines = vec![title.to_owned(), question(&found.conditions), with(spec), String::new()];
    let mut line = |name: &str, text: String| lines.push(format!("{name:<12}{text}"));
    line("found", answer(found));
    if let Some(interval) = interval(found) {
        line("interval", interval);
    }
    for (text, name) in limit(found).into_iter().zip(["limit", ""]) {
        line(name, text);
    }
    line("took", format!("{}, {}", minutes_s(found.seconds), counted(found.probes.len() as u64, "trial")));
    if let Some(text) = confirmed(found) {
        line("measured", text);
    }
    lines.push(format!("\n{HEADINGS}"));
    lines.extend(found.probes.iter().map(row));
    if found.probes.iter().any(|probe| probe.near) {
        lines.push("  ~ so close to a bound that noise may have decided".to_owned());
    }
    if found.probes.iter().any(|probe| probe.met == Some(false) && !probe.kept_up) {
        lines.push("  late: responses did not keep up with requests, whatever the conditions say".to_owned());
    }
    format!("{}\n", lines.join("\n"))
}

fn answer(found: &SearchResult) -> String {
    let best = found.rate.map(full_rate);
    let sure = if found.confirmed { "confirmed by a longer trial" } else { "not confirmed" };
    match (found.end, best) {
        (SearchEnd::Found, Some(best)) => format!("{best}, {sure}"),
        (SearchEnd::Ceiling, Some(best)) => format!("{best}, {sure}; nothing higher was allowed"),
        (SearchEnd::Unsteady, Some(best)) => {
            format!("{best} for a moment, {sure}: longer trials failed where short ones passed")
        }
        (SearchEnd::Budget, Some(best)) => format!("{best} so far, {sure}: --budget is used up"),
        (SearchEnd::CutShort, Some(best)) => format!("{best} so far, {sure}: interrupted"),
        (SearchEnd::NothingMet, _) => "nothing: no rate met the conditions, however low".to_owned(),
        (SearchEnd::Budget, None) => "nothing yet: --budget was used up before a rate met the conditions".to_owned(),
        (SearchEnd::CutShort, None) => "nothing yet: interrupted".to_owned(),
        (_, None) => "nothing".to_owned(),
    }
}

/// Between the highest rate that met the conditions and the lowest that did not.
fn interval(found: &SearchResult) -> Option<String> {
    match (found.met_up_to, found.failed_from) {
        (Some(low), Some(high)) => {
            let width = (high / low.max(1e-9) - 1.0) * 100.0;
            Some(format!("{} met it, {} did not ({width:.1} % apart)", full_rate(low), full_rate(high)))
        }
        (Some(low), None) => Some(format!("{} met it, and nothing failed", full_rate(low))),
        (None, Some(high)) => Some(format!("{} did not meet it, and nothing did", full_rate(high))),
        (None, None) => None,
    }
}

fn limit(found: &SearchResult) -> Vec<String> {
    match found.limit {
        None => vec!["none reached".to_owned()],
        Some(SearchLimit::Target) => vec!["the target, or the network".to_owned()],
        Some(SearchLimit::Client) => vec![
            "weir, not the target: its threads were busy, or late although connections were".to_owned(),
            "free; more threads (-t) on more CPUs would show the target's limit".to_owned(),
        ],
    }
}

/// What the conditions' values were in the confirming trial.
fn confirmed(found: &SearchResult) -> Option<String> {
    let probe = found.probes.iter().rev().find(|probe| probe.kind == ProbeKind::Confirm)?;
    let words: Vec<String> = found
        .conditions
        .iter()
        .zip(&probe.values)
        .map(|(condition, value)| format!("{} {}", condition.metric, human(condition.metric, *value)))
        .collect();
    let offered = probe.offered.map(|offered| format!(" at {}", full_rate(offered))).unwrap_or_default();
    Some(format!("{}{offered}", words.join(", ")))
}

fn human(metric: ConditionMetric, value: Option<f64>) -> String {
    value.map_or("was not measured".to_owned(), |value| metric.human(value))
}

#[cfg(test)]
mod tests {
    use weir_model::load::{SEARCH_SCHEMA, SearchOptions};

    use super::*;
    use crate::load::sample;

    fn probe(kind: ProbeKind, offered: Option<f64>, met: Option<bool>) -> Probe {
        Probe {
            kind,
            offered,
            carried: offered.unwrap_or(60_000.0).min(52_000.0),
            values: vec![Some(1_234.0), Some(0.02)],
            kept_up: met != Some(false) || kind != ProbeKind::Coarse,
            met,
            near: kind == ProbeKind::Again,
            busiest: 0.61,
            lag_p99_us: 34.0,
            client_limited: false,
            at_s: 0.0,
            window_s: 2.0,
            seconds: 3.1,
        }
    }

    fn found() -> SearchResult {
        SearchResult {
            schema: SEARCH_SCHEMA,
            conditions: Condition::list("p99<5ms, errors<0.1%").expect("conditions"),
            options: SearchOptions::default(),
            end: SearchEnd::Found,
            rate: Some(50_000.0),
            confirmed: true,
            met_up_to: Some(50_000.0),
            failed_from: Some(51_000.0),
            limit: Some(SearchLimit::Target),
            probes: vec![
                probe(ProbeKind::Guess, None, None),
                probe(ProbeKind::Coarse, Some(55_000.0), Some(false)),
                probe(ProbeKind::Fine, Some(51_000.0), Some(false)),
                probe(ProbeKind::Again, Some(51_000.0), Some(false)),
                probe(ProbeKind::Confirm, Some(50_000.0), Some(true)),
            ],
            seconds: 71.3,
            confirmation: None,
        }
    }

    #[test]
    fn a_search_is_told_as_kept() {
        let text = report(&found(), &sample::plain().spec, sample::URL);
        assert!(text.lines().all(|line| line.chars().count() <= 90), "{text}");
        sample::kept("find-max", &text);
    }

    #[test]
    fn every_end_is_reported() {
        let ends = [
            (SearchEnd::Ceiling, "nothing higher was allowed"),
            (SearchEnd::Unsteady, "longer trials failed"),
            (SearchEnd::Budget, "--budget is used up"),
            (SearchEnd::CutShort, "interrupted"),
        ];
        for (end, words) in ends {
            assert!(answer(&SearchResult { end, ..found() }).contains(words), "{end:?}");
        }
        for end in [SearchEnd::NothingMet, SearchEnd::Budget, SearchEnd::CutShort] {
            let nothing = SearchResult { end, rate: None, confirmed: false, ..found() };
            assert!(answer(&nothing).starts_with("nothing"), "{end:?}");
        }
        assert!(
            limit(&SearchResult { limit: Some(SearchLimit::Client), ..found() })[0].starts_with("weir, not the target")
        );
    }
}
