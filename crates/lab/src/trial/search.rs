//! A search for the highest open rate that meets an objective. The client's process searches with many loads. Its trials of full
//! length are measured as any load is, with vitals and the origin's counters. The series of a trial calls it.
//!
//! This module does not know how the search chooses its rates; the client does.

use std::time::Duration;

use weir_model::Condition;
use weir_model::counters::OriginCounters;
use weir_model::load::{Probe, ProbeKind, SearchEnd, SearchLimit, SearchOptions, SearchResult};
use weir_model::record::TrialError;
use weir_model::suite::Load;
use weir_model::text::human_rate;
use weir_vitals::Window;

use super::measure::{Measured, follow};
use super::points::Part;
use super::running_load::RunningLoad;
use crate::progress::{Observer, RunEvent};
use weir_host::role::{ClientCommand, ClientReport, SearchSpec};
use weir_product::failure::Failure;

/// The search for the client, with its time budget.
pub fn search_spec(load: &Load, objective: &[Condition]) -> SearchSpec {
    SearchSpec { objective: objective.to_vec(), options: SearchOptions::for_windows(load.warmup, load.duration) }
}

/// The longest time the client can take: the last trial may end after the budget, by less than two trials of full length.
pub fn longest(search: &SearchSpec, one: Duration) -> Duration {
    Duration::from_secs_f64(search.options.budget_s).saturating_add(one.saturating_mul(2))
}

/// The result of a search.
#[derive(Debug)]
pub struct SearchOutput {
    /// What was done and found, without its confirming trial if that confirms the rate.
    pub result: SearchResult,
    /// The confirming trial, or why there is none.
    pub confirmed: Result<Measured, TrialError>,
}

/// What was measured around a trial of full length.
#[derive(Debug, Default)]
struct Confirming {
    before: Option<OriginCounters>,
    window: Option<Window>,
    counters: Option<OriginCounters>,
}

/// Follows a search to its end.
pub fn run_search(mut running_load: RunningLoad<'_>, observer: &mut dyn Observer) -> Result<SearchOutput, Failure> {
    let mut last = None;
    let mut now: Option<Confirming> = None;
    let result = loop {
        let Some(report) = running_load.receive()? else { continue };
        match report {
            ClientReport::Trial { number, kind, rate } => {
                last = completed(&running_load, now.take())?.or(last);
                observer.notify(RunEvent::Part(Part::Probe { number, kind, rate }));
                if kind == ProbeKind::Confirm {
                    now = Some(Confirming { before: running_load.quiet_counters()?, ..Confirming::default() });
                }
                running_load.send(ClientCommand::Continue)?;
            }
            ClientReport::Found(result) => break *result,
            ClientReport::Failed(why) => return Err(running_load.failed(why)),
            report => match &mut now {
                Some(now) => now.window = follow(&mut running_load, &report, observer)?.or(now.window.take()),
                None => forward_row(&report, observer),
            },
        }
    };
    last = completed(&running_load, now)?.or(last);
    running_load.end()?;
    Ok(output(result, last))
}

/// Forwards the seconds of a trial that only narrows the search; nothing of it is measured.
fn forward_row(report: &ClientReport, observer: &mut dyn Observer) {
    if let ClientReport::Warmup(row) | ClientReport::Second(row) = report {
        observer.notify(RunEvent::Second(row));
    }
}

/// Completes a finished trial of full length with the difference of the origin's counters.
fn completed(running_load: &RunningLoad<'_>, confirming: Option<Confirming>) -> Result<Option<Confirming>, Failure> {
    let Some(confirming) = confirming else { return Ok(None) };
    let after = running_load.quiet_counters()?;
    let counters = confirming.before.as_ref().zip(after).map(|(before, after)| after.since(before));
    Ok(Some(Confirming { counters, ..confirming }))
}

fn output(mut result: SearchResult, last: Option<Confirming>) -> SearchOutput {
    let right = result.confirmed
        && result.confirmation.as_ref().is_some_and(|load| result.rate.is_some() && load.offered_rate == result.rate);
    let window = last.and_then(|last| Some((last.window?, last.counters)));
    let confirmed = match (right.then(|| result.confirmation.take()).flatten(), window) {
        (Some(load), Some((window, counters))) => {
            Ok(Measured { load: *load, window, counters, access_log: None, faults: Vec::new(), changes: None })
        }
        _ => Err(unmet(&result)),
    };
    SearchOutput { result, confirmed }
}

/// Why there is no rate.
fn unmet(result: &SearchResult) -> TrialError {
    let objective: Vec<String> = result.conditions.iter().map(ToString::to_string).collect();
    let found = match (result.rate, result.confirmed) {
        (Some(rate), false) => format!("{} met it for short, and was not confirmed at full length", human_rate(rate)),
        _ => "no rate was found that meets it".to_owned(),
    };
    let remedy = match result.end {
        _ if result.limit == Some(SearchLimit::Client) => {
            "give client and origin more CPUs (`--cpus`), or run them on another host"
        }
        SearchEnd::NothingMet => "a weaker objective, or fewer connections",
        SearchEnd::Budget => "a longer `warmup` or `duration`: the search may take ten times both",
        SearchEnd::Found | SearchEnd::Ceiling | SearchEnd::Unsteady | SearchEnd::CutShort => {
            "a quieter machine, a longer `duration`, or a weaker objective"
        }
    };
    let message = format!("{}: {found}; {}", objective.join(", "), result.sentence());
    let seen: Vec<String> = result.probes.iter().map(|probe| seen(probe, &result.conditions)).collect();
    TrialError::new("objective", message, seen.join("\n"), remedy)
}

/// `fine 12.3k/s for 4.0 s: p99 6.2 ms, errors 0 %: not met`.
fn seen(probe: &Probe, conditions: &[Condition]) -> String {
    let values: Vec<String> = conditions
        .iter()
        .zip(&probe.values)
        .map(|(condition, value)| {
            let value = value.map_or("not measured".to_owned(), |value| condition.metric.human(value));
            format!("{} {value}", condition.metric)
        })
        .collect();
    let became = match probe.met {
        None => "",
        Some(true) => ": met",
        Some(false) if !probe.kept_up => ": not carried",
        Some(false) => ": not met",
    };
    let rate = human_rate(probe.offered.unwrap_or(probe.carried));
    format!("{} {rate} for {:.1} s: {}{became}", probe.kind.as_str(), probe.window_s, values.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::load_result;
    use weir_model::load::{LoadResult, SEARCH_SCHEMA};

    fn probe(kind: ProbeKind, offered: f64, met: bool) -> Probe {
        Probe {
            kind,
            offered: Some(offered),
            carried: offered,
            values: vec![Some(6_200.0), None],
            kept_up: true,
            met: Some(met),
            near: false,
            busiest: 0.5,
            lag_p99_us: 5.0,
            client_limited: false,
            at_s: 0.0,
            window_s: 2.0,
            seconds: 2.5,
        }
    }

    /// A search that ended like this, whose last trial of full length was at 9,000/s.
    fn result(end: SearchEnd, rate: Option<f64>, confirmed: bool) -> SearchResult {
        SearchResult {
            schema: SEARCH_SCHEMA,
            conditions: Condition::list("p99<5ms, errors<0.1%").expect("conditions"),
            options: SearchOptions::default(),
            end,
            rate,
            confirmed,
            met_up_to: rate,
            failed_from: Some(9_100.0),
            limit: Some(SearchLimit::Target),
            probes: vec![probe(ProbeKind::Coarse, 9_100.0, false), probe(ProbeKind::Confirm, 9_000.0, confirmed)],
            seconds: 9.0,
            confirmation: Some(Box::new(LoadResult { offered_rate: Some(9_000.0), ..load_result(9_000.0) })),
        }
    }

    fn seen_last() -> Option<Confirming> {
        let window = Window { length_s: 1.0, ..Window::default() };
        Some(Confirming { window: Some(window), ..Confirming::default() })
    }

    #[test]
    fn a_confirmed_rate_is_the_trials_load() {
        let output = output(result(SearchEnd::Found, Some(9_000.0), true), seen_last());
        let measured = output.confirmed.expect("confirmed");
        assert_eq!((measured.load.offered_rate, measured.counters), (Some(9_000.0), None));
        assert!(output.result.confirmation.is_none(), "it is the trial's load, and not kept twice");
    }

    #[test]
    fn an_unconfirmed_rate_is_an_error_with_the_probes_as_evidence() {
        let of = |result: SearchResult| output(result, seen_last()).confirmed.expect_err("no rate");
        let error = of(result(SearchEnd::NothingMet, None, false));
        assert_eq!(error.stage, "objective");
        assert_eq!(
            error.message,
            "p99<5ms, errors<0.1%: no rate was found that meets it; no rate met the conditions, however low"
        );
        assert_eq!(
            error.evidence,
            "coarse 9.1k/s for 2.0 s: p99 6.2 ms, errors not measured: not met\n\
             confirm 9k/s for 2.0 s: p99 6.2 ms, errors not measured: not met"
        );
        let error = of(result(SearchEnd::Budget, Some(8_000.0), false));
        assert!(error.message.contains("8k/s met it for short, and was not confirmed"), "{}", error.message);
        assert!(error.remedy.contains("ten times"), "{}", error.remedy);
        // Confirmed, and another rate found since: its load was never measured at full length.
        assert_eq!(of(result(SearchEnd::Budget, Some(8_000.0), true)).stage, "objective");
        assert!(
            output(result(SearchEnd::Found, Some(9_000.0), true), None).confirmed.is_err(),
            "its window was not observed"
        );
    }
}
