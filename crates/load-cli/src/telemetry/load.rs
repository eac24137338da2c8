//! The metrics of one load, from the reports that the live view gets. Published by `verbs::load`.
//! Latency counts from when a request was due.

use weir_load::{BUCKETS_S, Buckets, Progress, buckets};
use weir_model::load::{Endpoint, LoadSpec};
use weir_model::protocol::Application;

use super::Telemetry;
use super::family::{Attributes, Family, Kind, Series, Value, family};

/// What is known of a load so far.
#[derive(Debug)]
pub struct LoadMetrics {
    /// Of the histogram: the operation's name and what OpenTelemetry wants with it.
    name: &'static str,
    attributes: Attributes,
    successful: u64,
    errors: Vec<(&'static str, u64)>,
    latency: Buckets,
    /// Open connections and requests in flight; unknown until the window's first second is over.
    now: Option<(u32, u64)>,
}

impl LoadMetrics {
    /// Of a load that has not begun.
    pub fn new(spec: &LoadSpec) -> LoadMetrics {
        let (name, attributes) = named(spec);
        let (successful, errors, latency) = (0, Vec::new(), Buckets::default());
        LoadMetrics { name, attributes, successful, errors, latency, now: None }
    }

    /// Takes in one report, and publishes what it changed.
    pub fn update(&mut self, progress: &Progress, telemetry: &Telemetry) {
        match progress {
            Progress::WindowStart { .. } => {}
            Progress::Second(row) => {
                self.successful += row.successful;
                // A detail follows.
                return;
            }
            Progress::Detail(detail) => {
                self.errors = detail.errors.iter().map(|(kind, n)| (kind.as_str(), *n)).collect();
                self.latency = detail.buckets.clone();
                self.now = Some((detail.open, detail.in_flight));
            }
            Progress::Distributions(all) => {
                self.latency = buckets(&all.latency);
                self.now = Some((0, 0));
            }
            _ => return,
        }
        telemetry.publish(self.families());
    }

    fn families(&self) -> Vec<Family> {
        let with =
            |more: Option<(&'static str, String)>| self.attributes.iter().cloned().chain(more).collect::<Attributes>();
        let Buckets { counts, sum_s } = &self.latency;
        let value = Value::Distribution { bounds: &BUCKETS_S, counts: counts.to_vec(), sum: *sum_s };
        let mut duration =
            family(Kind::Histogram, self.name, "s", "Due to answered, of requests due in the window that have ended");
        duration.series.push(Series { attributes: with(None), value });
        let failed = self.errors.iter().map(|(kind, n)| (with(Some(("error.type", (*kind).to_owned()))), *n as f64));
        let ended = [(with(None), self.successful as f64)].into_iter().chain(failed);
        let gauge = |name, unit, help, value: Option<f64>| {
            family(Kind::Gauge, name, unit, help).with(value.map(|value| (with(None), value)))
        };
        let (open, in_flight) = (self.now.map(|now| f64::from(now.0)), self.now.map(|now| now.1 as f64));
        let mut families = vec![
            duration,
            family(Kind::Counter, "weir.client.requests", "{request}", "Requests that ended in the window").with(ended),
            gauge("http.client.active_requests", "{request}", "Requests due that have not ended", in_flight),
            gauge("weir.client.connections", "{connection}", "Open connections", open),
        ];
        families.retain(|family| !family.series.is_empty());
        families
    }
}

/// OpenTelemetry's name of the operation, and the attributes that it wants.
fn named(spec: &LoadSpec) -> (&'static str, Attributes) {
    let mut attributes: Attributes = Vec::new();
    let application = spec.protocol.application();
    let database = application.is_keyvalue().then(|| application.id());
    match database {
        Some(name) => attributes.push(("db.system.name", name.to_owned())),
        None => {
            let mut methods: Vec<&str> = spec.requests.iter().map(|one| one.request.method.as_str()).collect();
            methods.dedup();
            let method = if let [method] = methods[..] { method } else { "_OTHER" };
            let version = match application {
                Application::Http2 => "2",
                Application::Http3 => "3",
                _ => "1.1",
            };
            attributes.push(("http.request.method", method.to_owned()));
            attributes.push(("network.protocol.version", version.to_owned()));
        }
    }
    if let [target] = spec.targets.as_slice() {
        match &target.address {
            Endpoint::Tcp(address) => {
                attributes.push(("server.address", address.ip().to_string()));
                attributes.push(("server.port", address.port().to_string()));
            }
            other => attributes.push(("server.address", other.to_string())),
        }
    }
    (if database.is_some() { "db.client.operation.duration" } else { "http.client.request.duration" }, attributes)
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use weir_load::Detail;
    use weir_model::load::LoadSecond;

    use super::*;
    use crate::load::sample;
    use crate::telemetry::{Shared, exposition};

    /// The metrics of the sample load after its last second.
    pub fn families() -> Vec<Family> {
        let sample = sample::failing();
        let telemetry = Telemetry { last: Shared::default(), file: None };
        let mut metrics = LoadMetrics::new(&sample.spec);
        for row in &sample.result.series {
            metrics.update(&Progress::Second(row.clone()), &telemetry);
        }
        let detail = Detail {
            errors: sample.result.window.errors.clone(),
            buckets: buckets(&sample.distributions.latency),
            open: 8,
            in_flight: 31,
            ..Detail::default()
        };
        metrics.update(&Progress::Detail(Box::new(detail)), &telemetry);
        crate::telemetry::last(&telemetry.last).to_vec()
    }

    #[test]
    fn the_text_is_as_kept() {
        sample::kept("metrics-load", &exposition::text(&families()));
    }

    /// The samples of an exposition, by name and labels.
    pub fn samples(text: &str) -> BTreeMap<&str, f64> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.rsplit_once(' ')).map(|(name, n)| (name, n.parse().expect("a number"))).collect()
    }

    #[test]
    fn buckets_are_cumulative_and_end_with_all() {
        let text = exposition::text(&families());
        let counts: Vec<f64> = text
            .lines()
            .filter(|line| line.starts_with("http_client_request_duration_seconds_bucket"))
            .filter_map(|line| line.rsplit_once(' ')?.1.parse().ok())
            .collect();
        assert_eq!(counts.len(), BUCKETS_S.len() + 1);
        assert!(counts.is_sorted() && counts.last() == Some(&20_000.0), "{text}");
        let samples = samples(&text);
        let successful = samples
            .iter()
            .find(|(name, _)| name.starts_with("weir_client_requests_total") && !name.contains("error_type"));
        assert_eq!(successful.map(|(_, n)| *n), Some(19_100.0), "{text}");
        assert!(
            text.contains("error_type=\"connect_refused\"") && text.contains("http_request_method=\"GET\""),
            "{text}"
        );
    }

    #[test]
    fn a_load_of_keys_has_the_names_of_databases() {
        let metrics = LoadMetrics::new(&sample::keyvalue().spec);
        let text = exposition::text(&metrics.families());
        assert!(text.contains("db_client_operation_duration_seconds_count{db_system_name=\"juno\""), "{text}");
    }

    #[test]
    fn what_a_label_holds_does_not_break_the_text() {
        let odd = family(Kind::Gauge, "weir.odd", "", "Odd").one(vec![("a.b", "q\"b\\c\nd".to_owned())], 1.0);
        assert!(exposition::text(&[odd]).contains(r#"weir_odd{a_b="q\"b\\c\nd"} 1.0"#));
    }

    #[test]
    fn warm_up_is_not_counted() {
        let sample = sample::plain();
        let telemetry = Telemetry { last: Shared::default(), file: None };
        let mut metrics = LoadMetrics::new(&sample.spec);
        let row = LoadSecond { successful: 5, ..LoadSecond::default() };
        metrics.update(&Progress::Warmup { second: 0, row }, &telemetry);
        assert_eq!(metrics.successful, 0);
    }
}
