//! Writes metrics in the OpenMetrics text format, which Prometheus scrapes. Called by `serve` and for `--metrics-file`.
//! Dots of OpenTelemetry's names become underscores and units become words, by its rules for Prometheus.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::family::{Family, Kind, Value};

/// What the answer to a scrape is called.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The text of all families.
pub fn text(families: &[Family]) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families.to_vec())));
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = text::encode(&mut out, &registry);
    out
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for family in &self.0 {
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let (name, unit) = (underscored(family.name), unit(family));
            let mut metric = encoder.encode_descriptor(&name, family.help, unit.as_ref(), kind)?;
            for series in &family.series {
                let labels = series.attributes.iter();
                let labels: Vec<_> = labels.map(|(name, value)| (underscored(name), escaped(value))).collect();
                let mut one = metric.encode_family(&labels)?;
                match (&series.value, family.kind) {
                    (Value::Number(value), Kind::Counter) => one.encode_counter::<NoLabelSet, f64, f64>(value, None)?,
                    (Value::Number(value), _) => one.encode_gauge(value)?,
                    (Value::Distribution { bounds, counts, sum }, _) => {
                        // The encoder writes the largest number as +Inf.
                        let bounds = bounds.iter().copied().chain([f64::MAX]);
                        let buckets: Vec<(f64, u64)> = bounds.zip(counts.iter().copied()).collect();
                        one.encode_histogram::<NoLabelSet>(*sum, counts.iter().sum(), &buckets, None)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn underscored(name: &str) -> String {
    name.replace('.', "_")
}

/// A label's value as the format wants it between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The unit that goes into the name. What is counted in braces has none.
fn unit(family: &Family) -> Option<Unit> {
    match family.unit {
        "s" => Some(Unit::Seconds),
        "By" => Some(Unit::Bytes),
        _ => None,
    }
}
