//! Writes metrics in the OpenMetrics text format, which Prometheus scrapes. Called by `serve` and for `--metrics-file`.
//! Dots of OpenTelemetry's names become underscores and units become words, by its rules for Prometheus.

use std::fmt::Write as _;

use super::family::{Family, Kind, Value};

/// Content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The text of all families.
pub fn text(families: &[Family]) -> String {
    let mut out = String::new();
    for family in families {
        // Writing to a string does not fail.
        let _ = write_family(&mut out, family);
    }
    out + "# EOF\n"
}

fn write_family(out: &mut String, family: &Family) -> std::fmt::Result {
    // Units in braces, which are counts of things, are not part of the name.
    let unit = match family.unit {
        "s" => "seconds",
        "By" => "bytes",
        _ => "",
    };
    let (kind, end) = match family.kind {
        Kind::Counter => ("counter", "_total"),
        Kind::Gauge => ("gauge", ""),
        Kind::Histogram => ("histogram", ""),
    };
    let name = [family.name, unit].join(".").trim_end_matches('.').replace('.', "_");
    writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", family.help)?;
    if !unit.is_empty() {
        writeln!(out, "# UNIT {name} {unit}")?;
    }
    for series in &family.series {
        let labels = series.attributes.iter();
        let labels = labels.map(|(label, value)| format!("{}=\"{}\"", label.replace('.', "_"), escaped(value)));
        let labels = labels.collect::<Vec<_>>().join(",");
        match &series.value {
            Value::Number(value) => writeln!(out, "{name}{end}{{{labels}}} {}", number(*value))?,
            Value::Distribution { bounds, counts, sum } => {
                let count: u64 = counts.iter().sum();
                writeln!(out, "{name}_sum{{{labels}}} {}\n{name}_count{{{labels}}} {count}", number(*sum))?;
                let comma = if labels.is_empty() { "" } else { "," };
                let mut below = 0;
                for (bound, n) in bounds.iter().map(|bound| number(*bound)).chain(["+Inf".to_owned()]).zip(counts) {
                    below += n;
                    writeln!(out, "{name}_bucket{{le=\"{bound}\"{comma}{labels}}} {below}")?;
                }
            }
        }
    }
    Ok(())
}

/// A number that a reader of the format knows for a floating one: whole numbers end in `.0`.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.1}") } else { value.to_string() }
}

/// A label's value as the format wants it between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
