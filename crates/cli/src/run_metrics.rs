//! The metrics of a run, from the events that its progress shows. The lab hears of each second's
//! percentiles and not of its distribution, so there is no histogram; seconds of warm-up are counted, too.

use std::collections::BTreeMap;

use weir_lab::run::{Observer, RunEvent};
use weir_load_cli::telemetry::Telemetry;
use weir_load_cli::telemetry::family::{Attributes, Family, Kind, family};
use weir_model::record::CaseId;

/// Watches a run, publishes its metrics, and passes every event on.
#[derive(Debug)]
pub struct RunMetrics<O> {
    next: O,
    telemetry: Option<Telemetry>,
    state: State,
}

#[derive(Debug, Default)]
struct State {
    planned: u64,
    /// Trials that ended in an earlier part of a run that is resumed.
    before: u64,
    finished: BTreeMap<&'static str, u64>,
    case: Option<CaseId>,
    counts: BTreeMap<CaseId, (u64, u64)>,
    /// The last second's rate (successful responses/s), p50, p99 and longest latency (seconds).
    last: [f64; 4],
    left_s: f64,
}

impl<O: Observer> RunMetrics<O> {
    /// `None` publishes nothing.
    pub fn new(telemetry: Option<Telemetry>, next: O) -> RunMetrics<O> {
        RunMetrics { next, telemetry, state: State::default() }
    }

    /// What publishes, to be finished.
    pub fn into_telemetry(self) -> Option<Telemetry> {
        self.telemetry
    }
}

impl<O: Observer> Observer for RunMetrics<O> {
    fn notify(&mut self, event: RunEvent<'_>) {
        if let Some(telemetry) = &self.telemetry
            && self.state.take(&event)
        {
            telemetry.publish(self.state.families());
        }
        self.next.notify(event);
    }
}

impl State {
    /// Takes in one event; false when it changes nothing.
    fn take(&mut self, event: &RunEvent<'_>) -> bool {
        match event {
            RunEvent::Begin { trials, finished, .. } => {
                (self.planned, self.before) = (*trials as u64, finished.len() as u64);
            }
            RunEvent::Trial { planned, left } => {
                (self.case, self.left_s, self.last) = (Some(planned.case.clone()), left.as_secs_f64(), [0.0; 4]);
            }
            RunEvent::Second(row) => {
                let Some(case) = &self.case else { return false };
                let counts = self.counts.entry(case.clone()).or_default();
                (counts.0, counts.1) = (counts.0 + row.successful, counts.1 + row.errors);
                let rate = row.successful as f64 / row.length_s.max(1e-3);
                self.last = [rate, row.p50_us / 1e6, row.p99_us / 1e6, row.max_us / 1e6];
            }
            RunEvent::Finished(measurement) => {
                *self.finished.entry(measurement.verdict.as_str()).or_default() += 1;
                // Until the next trial begins, nothing is measured.
                self.case = None;
                if self.before + self.finished.values().sum::<u64>() >= self.planned {
                    self.left_s = 0.0;
                }
            }
            _ => return false,
        }
        true
    }

    fn families(&self) -> Vec<Family> {
        let gauge = |name, unit, help| family(Kind::Gauge, name, unit, help);
        let verdicts = self.finished.iter();
        let verdicts = verdicts.map(|(verdict, n)| (vec![("weir.verdict", (*verdict).to_owned())], *n as f64));
        let requests = self.counts.iter().flat_map(|(case, (successful, wrong))| {
            let wrong_of = named(case).into_iter().chain([("error.type", "_OTHER".to_owned())]).collect();
            [(named(case), *successful as f64), (wrong_of, *wrong as f64)]
        });
        let now = self.case.iter().map(|case| (named(case), self.last[0]));
        let quantiles = self.case.iter().flat_map(|case| {
            let of = |(quantile, value): (&str, f64)| {
                (named(case).into_iter().chain([("quantile", quantile.to_owned())]).collect(), value)
            };
            [("0.5", self.last[1]), ("0.99", self.last[2]), ("1", self.last[3])].map(of)
        });
        vec![
            gauge("weir.run.planned_trials", "{trial}", "Trials of the run").one(vec![], self.planned as f64),
            family(Kind::Counter, "weir.run.trials", "{trial}", "Trials that ended, by verdict").with(verdicts),
            gauge("weir.run.remaining", "s", "Time that the run is expected to take still").one(vec![], self.left_s),
            family(Kind::Counter, "weir.client.requests", "{request}", "Requests that ended, warm-up included")
                .with(requests),
            gauge("weir.client.rate", "{request}/s", "Successful responses/s in the last second").with(now),
            gauge("weir.client.latency", "s", "Due to answered, of what ended in the last second").with(quantiles),
        ]
    }
}

fn named(case: &CaseId) -> Attributes {
    let CaseId { product, profile, workload, load } = case;
    let names = ["weir.product", "weir.profile", "weir.workload", "weir.load"];
    names.into_iter().zip([product, profile, workload, load].map(String::clone)).collect()
}

#[cfg(test)]
mod tests {
    use weir_load_cli::telemetry::exposition;
    use weir_model::load::{LoadResult, LoadSecond};
    use weir_model::record::{Measurement, Verdict};

    use super::*;

    /// The metrics of a run in its second trial.
    fn families() -> Vec<Family> {
        let case = |product: &str| CaseId {
            product: product.into(),
            profile: "tuned".into(),
            workload: "tiny".into(),
            load: "capacity".into(),
        };
        let mut state = State { planned: 72, case: Some(case("direct")), left_s: 90.0, ..State::default() };
        let row = LoadSecond {
            length_s: 1.0,
            successful: 900,
            p50_us: 100.0,
            p99_us: 2_000.0,
            max_us: 5_000.0,
            ..Default::default()
        };
        assert!(state.take(&RunEvent::Second(&row)));
        state.finished.insert("suspect", 1);
        state.case = Some(case("nginx"));
        for _ in 0..2 {
            assert!(state.take(&RunEvent::Second(&LoadSecond { errors: 3, ..row.clone() })));
        }
        assert!(!state.take(&RunEvent::Stage("measuring")));
        state.families()
    }

    #[test]
    fn a_run_that_is_over_has_neither_a_rate_nor_time_left() {
        let mut state = State { planned: 2, before: 1, left_s: 3.0, ..State::default() };
        let load = Some(LoadResult::default());
        let measurement = Measurement { verdict: Verdict::Valid, load, ..Measurement::default() };
        state.case = Some(measurement.case.clone());
        assert!(exposition::text(&state.families()).contains("weir_client_rate{"));
        assert!(state.take(&RunEvent::Finished(&measurement)));
        let text = exposition::text(&state.families());
        assert!(text.contains("weir_run_remaining_seconds{} 0.0") && !text.contains("weir_client_rate{"), "{text}");
        assert!(text.contains(r#"weir_run_trials_total{weir_verdict="valid"} 1.0"#), "{text}");
    }

    #[test]
    fn the_text_is_as_kept() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/words/metrics-run.txt");
        let text = exposition::text(&families());
        if std::env::var_os("WEIR_BLESS").is_some() {
            std::fs::write(&path, &text).expect("written");
        }
        assert_eq!(text, std::fs::read_to_string(&path).expect("kept"), "WEIR_BLESS=1 writes it anew");
    }

    #[test]
    fn every_name_of_the_dashboard_is_exported() {
        let dashboard = include_str!("../../../examples/grafana/weir.json");
        let json: serde_json::Value = serde_json::from_str(dashboard).expect("JSON");
        let panels = json["panels"].as_array().expect("panels");
        let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
        let queries: Vec<&str> = targets.filter_map(|target| target["expr"].as_str()).collect();
        let name = regex::Regex::new(r"\b(?:http|db|weir)_[a-z_]+").expect("a pattern");
        let used: Vec<&str> =
            queries.iter().flat_map(|query| name.find_iter(query)).map(|found| found.as_str()).collect();
        // The texts of the tests of both.
        let exported = [
            include_str!("../../../tests/words/metrics-load.txt"),
            include_str!("../../../tests/words/metrics-run.txt"),
        ];
        let exported = exported.concat();
        assert!(used.len() >= 8 && queries.len() >= panels.len().min(6), "{queries:?}");
        for name in used {
            // A metric's, or that of a label.
            let is_metric = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
            let is_exported = exported.lines().any(is_metric) || exported.contains(&format!("{name}=\""));
            assert!(is_exported, "{name} is not exported:\n{exported}");
        }
    }
}
