//! The tests of a case outside its windows. One shows how long a store keeps keys with a time to live; the other, the control, whether
//! requests in disguise cost the product more than weir's own. [`super::run`] makes them in the first trial of a case, and its later
//! trials repeat the result.
//!
//! A control is a short load right behind the last window, against the same product, over as many connections and at the same rate.
//! If it differs, both kinds of requests are sent in turn, so that drift, short windows and fresh connections are no difference.
//! This module does not judge the results: the audit does.

use std::sync::PoisonError;

use weir_audit as audit;
use weir_host::role::ClientSpec;
use weir_model::case_tests::{CaseTests, Control, ControlLoad, ControlRound};
use weir_model::load::{LoadResult, LoadSpec, TENTH_S};
use weir_model::product::ProductKind;
use weir_model::record::{CaseId, Finding, Measurement, Point, Role, RoleUsage, Severity, Verdict};
use weir_model::suite::{Arrivals, LoadKind};
use weir_product::expiry::TestKey;
use weir_product::failure::Failure;
use weir_product::requester::Server;

use super::measure::{longest, measure};
use super::points::PointSpec;
use super::running_load::Schedule;
use super::series::{RunningTrial, measure_points, quiet_counters};
use super::spec::load_spec;
use super::{TrialContext, TrialSpec, request_timeout};
use crate::progress::{Observer, RunEvent};

/// Name of the folder, in the trial's, with the files of the control's clients.
const FOLDER: &str = "control";

/// A control takes this share of the window.
const SHARE: f64 = 0.1;

/// Its shortest and longest window, seconds.
const LENGTHS: (f64, f64) = (0.2, 1.0);

/// A shorter window is of a run that only shows that everything works.
const LEAST_WINDOW_S: f64 = 1.0;

/// Time before it, seconds: connections are new.
const WARMUP_S: f64 = 0.1;

/// Rounds where each differs.
const MOST_ROUNDS: usize = 3;

/// Measures the points of a trial, and makes the tests of its case where no earlier trial has.
pub fn measure_case(
    running_trial: &mut RunningTrial<'_>,
    observer: &mut dyn Observer,
    measurement: &mut Measurement,
) -> Result<(), Failure> {
    let TrialSpec { planned, .. } = *running_trial.trial.spec;
    measurement.tests = running_trial.trial.context.tests_of(&planned.case);
    if measurement.tests.is_some() {
        return measure_points(running_trial, observer, measurement);
    }
    let keys = running_trial.test_keys(running_trial.new_keys(), observer)?;
    measure_points(running_trial, observer, measurement)?;
    let keys = running_trial.test_keys(keys, observer)?;
    let expiry: Vec<_> = keys.into_iter().map(|key| key.expiry).collect();
    let control = running_trial.control(measurement.points.last(), observer)?;
    let has_any = !expiry.is_empty() || control.is_some();
    measurement.tests = has_any.then_some(CaseTests { trial: planned.trial, expiry, control });
    Ok(())
}

/// The findings of a trial's tests.
pub fn findings(trial: &TrialSpec<'_>, measurement: &Measurement) -> Vec<Finding> {
    let tests = measurement.tests.clone().unwrap_or_default();
    let switched_off = (trial.load.control == Some(false)).then(audit::control_switched_off).flatten();
    let expiry = audit::expiry(&tests, measurement.protocol.application());
    expiry.into_iter().chain(tests.control.as_ref().and_then(audit::control)).chain(switched_off).collect()
}

impl RunningTrial<'_> {
    /// The keys with a time to live of the case; none where its values have none, or where stores are emptied between its windows.
    fn new_keys(&self) -> Vec<TestKey> {
        let workload = self.trial.spec.workload;
        if self.trial.spec.load.restart {
            return Vec::new();
        }
        let ttl = workload.keyvalue.as_ref().and_then(|keyvalue| keyvalue.ttl);
        ttl.map_or_else(Vec::new, |ttl| TestKey::of_workload(workload.protocol.application(), ttl))
    }

    fn test_keys(&self, keys: Vec<TestKey>, observer: &mut dyn Observer) -> Result<Vec<TestKey>, Failure> {
        if keys.is_empty() {
            return Ok(keys);
        }
        observer.notify(RunEvent::Stage("testing expiry"));
        let (addr, protocol) = (self.target, self.trial.spec.workload.protocol);
        let server = Server { addr, protocol, timeout: request_timeout(self.trial.spec.load) };
        self.started.requester.expiry(keys, server).map_err(|error| {
            let found = format!("a key with a time to live: {error}");
            Failure::at("expiry", found, "", "see what the product says in its log")
        })
    }

    /// True when a control follows a point.
    fn has_control(&self, point: &Point) -> bool {
        let TrialSpec { load, workload, .. } = *self.trial.spec;
        let is_measured = point.load.window_s >= LEAST_WINDOW_S && point.load.rate > 0.0;
        let is_invalid = point.findings.iter().any(|finding| finding.severity == Severity::Fatal);
        load.control != Some(false)
            && load.faults.is_empty()
            && load.change_every.is_none()
            && self.trial.product.kind != ProductKind::Direct
            && !workload.protocol.is_keyvalue()
            // How long a stream takes is its sender's.
            && workload.stream.is_none()
            && is_measured
            && !is_invalid
    }

    fn control(&mut self, point: Option<&Point>, observer: &mut dyn Observer) -> Result<Option<Control>, Failure> {
        let Some(point) = point.filter(|point| self.has_control(point)) else { return Ok(None) };
        observer.notify(RunEvent::Stage("control"));
        let length_s = (point.load.window_s * SHARE).clamp(LENGTHS.0, LENGTHS.1);
        let usual = self.short_spec(point, length_s)?;
        // Only weir's own origin takes any query, and a cache would have to be filled anew.
        let keeps_path =
            self.trial.context.origin.is_some() || self.trial.spec.workload.by_product || self.trial.product.caches;
        let random = self.trial.context.hosts.proxy.random();
        let (disguised, changed) = disguise(usual.clone(), keeps_path, random);
        let mut control = Control { changed, spread: spread(&point.load.tenths, length_s), rounds: Vec::new() };
        let mut measured = control_load(&point.load, &point.usage);
        // Rounds with the same arrivals would agree on what chance did.
        let of_round =
            |spec: &LoadSpec, nth: usize| LoadSpec { seed: spec.seed.wrapping_add(nth as u64), ..spec.clone() };
        loop {
            let nth = control.rounds.len() + 1;
            let disguised = self.short_load(of_round(&disguised, nth), &format!("disguised-{nth}"))?;
            control.rounds.push(ControlRound { usual: measured, disguised });
            if nth == MOST_ROUNDS || audit::control(&control).is_none() {
                break;
            }
            measured = self.short_load(of_round(&usual, nth + 1), &format!("usual-{}", nth + 1))?;
        }
        // Nothing of it may be in the counters of the next load.
        quiet_counters(&self.started.origin, self.trial.context.hosts.clock().as_ref())?;
        Ok(Some(control))
    }

    /// The load of a point, for so many seconds.
    fn short_spec(&self, point: &Point, length_s: f64) -> Result<LoadSpec, Failure> {
        let rate = point.offered_rate;
        let plain = PointSpec { point: point.point, of: point.point, rate, connections: point.connections };
        let spec = load_spec(&self.trial, &plain, self.target, &self.expect)?;
        let kind = match (spec.kind, rate) {
            (kind @ LoadKind::Open { .. }, _) => kind,
            // The result of a search.
            (_, Some(rate)) => LoadKind::open(rate, Arrivals::default()),
            _ => LoadKind::Closed,
        };
        Ok(LoadSpec { kind, warmup_s: WARMUP_S, duration_s: length_s, ..spec })
    }

    fn short_load(&mut self, spec: LoadSpec, name: &str) -> Result<ControlLoad, Failure> {
        let folder = self.make_folder(self.trial.spec.folder.join(FOLDER).join(name))?;
        let client = ClientSpec::from(spec);
        let schedule = Schedule::measured(&client.spec);
        let running = self.start_load(&client, &folder, longest(&client.spec), schedule)?.watch(&[])?;
        let measured = measure(running, &mut ())?;
        Ok(control_load(&measured.load, &measured.window.usage))
    }
}

fn control_load(load: &LoadResult, usage: &[RoleUsage]) -> ControlLoad {
    let responses = load.window.successful_in_window as f64;
    let product = usage.iter().find(|usage| usage.role == Role::Proxy);
    let cpu_us = product.map(|usage| (usage.cpu_user_us + usage.cpu_system_us) as f64 / responses);
    ControlLoad { window_s: load.window_s, rate: load.rate, cpu_us: cpu_us.filter(|us| us.is_finite() && *us > 0.0) }
}

/// Relative standard deviation of a window's rate in slices of this length; of fewer than two slices nothing is known.
fn spread(tenths: &[u64], length_s: f64) -> f64 {
    let slices: Vec<f64> = tenths
        .chunks_exact((length_s / TENTH_S).round().max(1.0) as usize)
        .map(|slice| slice.iter().sum::<u64>() as f64)
        .collect();
    let n = slices.len() as f64;
    let mean = slices.iter().sum::<f64>() / n;
    let squares: f64 = slices.iter().map(|slice| (slice - mean).powi(2)).sum();
    let spread = (squares / (n - 1.0)).sqrt() / mean;
    if spread.is_finite() { spread } else { 0.0 }
}

/// The same requests without what tells them from those of other clients, and the list of changes. The workload's own headers stay:
/// a product may route or cache by them.
fn disguise(mut spec: LoadSpec, keeps_path: bool, random: u64) -> (LoadSpec, Vec<String>) {
    let mut changed = Vec::new();
    for request in spec.requests.iter_mut().map(|request| &mut request.request) {
        changed.clear();
        let mut headers = Vec::new();
        for (name, value) in [("User-Agent", "curl/8.14.1"), ("Accept", "*/*")] {
            if request.header(name).is_none() {
                headers.push((name.to_owned(), value.to_owned()));
                changed.push(name.to_owned());
            }
        }
        if let Some(names) = &spec.request_ids {
            headers.push((unknown_header(random, names.header.len()), format!("{random:016x}")));
            changed.push("the header of the request ID".to_owned());
        }
        headers.append(&mut request.headers);
        request.headers = headers;
        if !keeps_path {
            let mark = if request.path.contains('?') { '&' } else { '?' };
            request.path.push_str(&format!("{mark}x={:08x}", random as u32));
            changed.push("the query".to_owned());
        }
    }
    // Other arrivals, too.
    let seed = spec.seed ^ random;
    (LoadSpec { request_ids: None, seed, ..spec }, changed)
}

/// A header's name of this length that no product can know.
fn unknown_header(random: u64, length: usize) -> String {
    let letter = |place: usize| char::from(b'a' + (random >> (5 * (place % 12)) & 15) as u8);
    "x-".chars().chain((0..length.saturating_sub(2).max(1)).map(letter)).collect()
}

impl TrialContext {
    /// The tests of a case that an earlier trial has made.
    fn tests_of(&self, case: &CaseId) -> Option<CaseTests> {
        let tests = self.tests.lock().unwrap_or_else(PoisonError::into_inner);
        tests.get(case).cloned()
    }

    /// Keeps the tests of a trial for the later ones of its case. An invalid trial does not count: the next one makes its own.
    pub fn add_tests(&self, measurement: &Measurement) {
        if let (Some(tests), Verdict::Valid | Verdict::Suspect) = (&measurement.tests, measurement.verdict) {
            let mut all = self.tests.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(measurement.case.clone()).or_insert_with(|| tests.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_model::load::{RequestIds, Target};
    use weir_model::suite::{Expect, Request};

    use super::*;

    #[test]
    fn a_control_load_costs_what_the_proxy_used() {
        let usage =
            |role, cpu_user_us, cpu_system_us| RoleUsage { role, cpu_user_us, cpu_system_us, ..Default::default() };
        let mut load = LoadResult { rate: 50.0, ..LoadResult::default() };
        load.window.successful_in_window = 100;
        let roles = [usage(Role::Client, 7, 7), usage(Role::Proxy, 3_000, 1_000), usage(Role::Origin, 9, 9)];
        let control = control_load(&load, &roles);
        assert_eq!((control.rate, control.cpu_us), (50.0, Some(40.0)));
        assert_eq!(control_load(&load, &roles[..1]).cpu_us, None);
    }

    fn spec(path: &str, headers: &[(&str, &str)]) -> LoadSpec {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let target = Target::tcp(std::net::SocketAddr::from(([127, 0, 0, 1], 9)), "a");
        let ids = Some(RequestIds::new("x-weir-id".to_owned(), 1, true));
        LoadSpec {
            request_ids: ids,
            ..LoadSpec::new(target, Request { headers, ..Request::get(path) }, Expect::default())
        }
    }

    fn in_disguise(spec: LoadSpec, keeps_path: bool) -> (String, Vec<(String, String)>, Vec<String>) {
        let (spec, changed) = disguise(spec, keeps_path, 0x0123_4567_89ab_cdef);
        assert_eq!(spec.request_ids, None);
        let request = spec.requests[0].request.clone();
        (request.path, request.headers, changed)
    }

    #[test]
    fn nothing_of_weirs_own_is_left_and_all_that_the_workload_says() {
        let (path, headers, changed) = in_disguise(spec("/bytes/128", &[("X-Tenant", "a")]), false);
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((path.as_str(), names.len()), ("/bytes/128?x=89abcdef", 4));
        assert_eq!((names[0], names[1], names[3]), ("User-Agent", "Accept", "X-Tenant"));
        assert_eq!(names[2].len(), "x-weir-id".len());
        assert!(!names[2].contains("weir"), "{names:?}");
        assert_eq!(changed, ["User-Agent", "Accept", "the header of the request ID", "the query"]);
    }

    #[test]
    fn a_user_agent_of_the_workload_and_the_key_of_a_cache_stay() {
        let (path, headers, changed) = in_disguise(spec("/bytes/128?delay=1ms", &[("user-agent", "me")]), true);
        assert_eq!(path, "/bytes/128?delay=1ms");
        assert_eq!(headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("user-agent")).count(), 1);
        assert_eq!(changed, ["Accept", "the header of the request ID"]);
        let (path, _, changed) =
            in_disguise(LoadSpec { request_ids: None, ..spec("/bytes/128?delay=1ms", &[]) }, false);
        assert_eq!(path, "/bytes/128?delay=1ms&x=89abcdef");
        assert_eq!(changed, ["User-Agent", "Accept", "the query"], "requests without an ID have a control, too");
    }

    #[test]
    fn the_spread_is_that_of_slices_as_long_as_the_control() {
        assert_eq!(spread(&[], 0.2), 0.0);
        assert_eq!(spread(&[5, 5], 0.2), 0.0, "one slice says nothing");
        assert_eq!(spread(&[90, 110, 110, 90], 0.2), 0.0);
        assert!((spread(&[90, 90, 110, 110], 0.2) - 0.141_42).abs() < 1e-4);
    }
}
