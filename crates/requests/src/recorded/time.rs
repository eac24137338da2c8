//! Times as logs write them: as text in the formats of a table, or as a number since the epoch of Unix. Times without a zone are
//! taken as UTC: only differences matter.

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use serde_json::Value;

/// A time, and whether it was written to fractions of a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Time {
    pub at: Timestamp,
    pub has_fraction: bool,
}

/// In the terms of strftime; RFC 3339 is read before them.
const FORMATS: [&str; 6] = [
    "%d/%b/%Y:%H:%M:%S%.f %z",
    "%d/%b/%Y:%H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f%z",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y/%m/%d %H:%M:%S%.f",
];

/// The least number of each unit's times since the epoch, and the unit's nanoseconds: nanoseconds to seconds. Smaller numbers are
/// lengths of time.
const UNITS: [(f64, f64); 4] = [(1e17, 1.0), (1e14, 1e3), (1e11, 1e6), (1e8, SECOND_NS)];

const SECOND_NS: f64 = 1e9;

/// The time that a text is.
pub(super) fn read_time(text: &str) -> Option<Time> {
    let has_fraction = text.contains(['.', ',']);
    let at = text.parse().ok().or_else(|| FORMATS.iter().find_map(|format| formatted(format, text)));
    match at {
        Some(at) => Some(Time { at, has_fraction }),
        None => since_epoch(text.parse().ok()?, has_fraction),
    }
}

/// The time that a value of JSON is.
pub(super) fn read_json_time(value: &Value) -> Option<Time> {
    match value {
        Value::String(text) => read_time(text),
        Value::Number(number) => since_epoch(number.as_f64()?, number.is_f64()),
        _ => None,
    }
}

fn formatted(format: &str, text: &str) -> Option<Timestamp> {
    let parts = strtime::parse(format, text).ok()?;
    let in_utc = || parts.to_datetime().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    parts.to_timestamp().ok().or_else(in_utc)
}

fn since_epoch(number: f64, has_fraction: bool) -> Option<Time> {
    let (_, unit_ns) = UNITS.into_iter().find(|(least, _)| number >= *least)?;
    // To a microsecond: a float does not have more of today's seconds.
    let at = Timestamp::from_microsecond((number * unit_ns / 1e3).round() as i64).ok()?;
    Some(Time { at, has_fraction: has_fraction || unit_ns < SECOND_NS })
}
