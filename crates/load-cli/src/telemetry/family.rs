//! Metrics as all encodings see them. Names, units and attributes follow OpenTelemetry's semantic conventions; `exposition` makes
//! Prometheus' names of them.

/// Several series of one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// OpenTelemetry's name: `http.client.request.duration`.
    pub name: &'static str,
    /// Unit in UCUM: `s`, `{request}`.
    pub unit: &'static str,
    /// One sentence without its point.
    pub help: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// Its series.
    pub series: Vec<Series>,
}

/// What the values of a family are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A sum that only grows.
    Counter,
    /// A value now.
    Gauge,
    /// A distribution.
    Histogram,
}

/// One series.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Attributes by OpenTelemetry's names: `server.address`.
    pub attributes: Attributes,
    /// Its value.
    pub value: Value,
}

/// Names and values.
pub type Attributes = Vec<(&'static str, String)>;

/// The value of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of a counter or a gauge.
    Number(f64),
    /// Of a histogram.
    Distribution {
        /// Upper ends of its buckets, ascending, in the family's unit.
        bounds: &'static [f64],
        /// Samples in each bucket, and one more for those above all.
        counts: Vec<u64>,
        /// The sum of all samples.
        sum: f64,
    },
}

impl Family {
    /// One series without a distribution.
    pub fn one(self, attributes: Attributes, value: f64) -> Family {
        self.with([(attributes, value)])
    }

    /// Several such series.
    pub fn with(mut self, series: impl IntoIterator<Item = (Attributes, f64)>) -> Family {
        let series = series.into_iter().map(|(attributes, value)| Series { attributes, value: Value::Number(value) });
        self.series.extend(series);
        self
    }
}

/// A family without series.
pub fn family(kind: Kind, name: &'static str, unit: &'static str, help: &'static str) -> Family {
    Family { name, unit, help, kind, series: Vec::new() }
}
