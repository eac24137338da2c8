//! Times of a load: nanoseconds of its driver's monotonic clock ([`weir_net::Io::now`]), which every event reads anew. Used by the
//! whole crate.

/// One second.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// One millisecond.
pub(crate) const MILLI: u64 = 1_000_000;

/// A time that never comes.
pub(crate) const NEVER: u64 = u64::MAX;

/// Converts seconds to nanoseconds. Negative values and NaN become 0, values that are too large [`NEVER`].
pub(crate) fn from_secs(seconds: f64) -> u64 {
    // `as` saturates and turns NaN into 0.
    (seconds * 1e9).round() as u64
}

/// Converts nanoseconds to seconds.
pub(crate) fn to_secs(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
