//! The values that targets hold: sizes, durations, statuses and flags, as bytes off the wire.
//!
//! Sizes and durations are written as in weir's suite files, within the limits of an origin. This module does not know
//! where in a target a value is.

use std::time::Duration;

use weir_model::coding::Coding;
use weir_model::load::RandomDuration;
use weir_model::units::ByteCount;

use crate::payload::MAX_PAYLOAD;
use crate::stream;

/// Longest delay; of an exponential one, the longest mean.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(60);

/// What a size may be, for people.
pub(crate) const SIZE_RULE: &str =
    "0 to 64MiB: a number of bytes, alone or with a unit such as KiB or MiB (11268, 16KiB)";
/// What a duration may be, for people.
pub(crate) const DELAY_RULE: &str = "0s to 60s: a number with a unit such as us, ms or s (10ms, 1.5s), two of them (5ms..15ms, anything between them) or a mean (exp:10ms)";
/// What a status may be, for people.
pub(crate) const STATUS_RULE: &str = "three digits, 200 to 599";
/// What a flag may be, for people.
pub(crate) const FLAG_RULE: &str = "1 or 0";

/// What a content coding may be, for people.
pub(crate) const CODING_RULE: &str = "gzip";

/// Bytes of a body: `11268`, `16KiB`, `64MiB`; at most [`MAX_PAYLOAD`]. `None` breaks [`SIZE_RULE`].
pub(crate) fn size(text: &[u8]) -> Option<usize> {
    let count: ByteCount = std::str::from_utf8(text).ok()?.parse().ok()?;
    usize::try_from(count.0).ok().filter(|size| *size <= MAX_PAYLOAD)
}

/// A delay: `250us`, `10ms`, `5ms..15ms`, `exp:10ms`; at most [`MAX_DELAY`]. `None` breaks [`DELAY_RULE`].
pub(crate) fn delay(text: &[u8]) -> Option<RandomDuration> {
    duration(text, MAX_DELAY)
}

/// The same of a time that is at most so long.
pub(crate) fn duration(text: &[u8], most: Duration) -> Option<RandomDuration> {
    let delay: RandomDuration = std::str::from_utf8(text).ok()?.parse().ok()?;
    let most_s = match delay {
        RandomDuration::Constant { s } => s,
        RandomDuration::Uniform { to_s, .. } => to_s,
        RandomDuration::Exponential { mean_s } => mean_s,
    };
    (most_s <= most.as_secs_f64()).then_some(delay)
}

/// The time drawn by a number in [0, 1); to the nanosecond.
pub(crate) fn delay_at(delay: RandomDuration, uniform: f64) -> Duration {
    // No 53-bit number draws more than a thousand means.
    let seconds = delay.at(uniform).clamp(0.0, 1000.0 * stream::LONGEST.as_secs_f64());
    Duration::from_nanos((seconds * 1e9).round() as u64)
}

/// A status code, 200 to 599. `None` breaks [`STATUS_RULE`].
///
/// 1xx is not a final response, so the client would wait for one for ever.
pub(crate) fn status(text: &[u8]) -> Option<u16> {
    if text.len() != 3 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let code = text.iter().fold(0, |code, byte| code * 10 + u16::from(byte - b'0'));
    (200..=599).contains(&code).then_some(code)
}

/// A content coding. `None` breaks [`CODING_RULE`].
pub(crate) fn coding(text: &[u8]) -> Option<Coding> {
    Coding::named(text)
}

/// `1` or `0`. `None` breaks [`FLAG_RULE`].
pub(crate) fn flag(text: &[u8]) -> Option<bool> {
    match text {
        b"1" => Some(true),
        b"0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, wanted) in [
            ("0", 0),
            ("11268", 11_268),
            ("128B", 128),
            ("16KiB", 16_384),
            ("64MiB", MAX_PAYLOAD),
            ("67108864", MAX_PAYLOAD),
            ("16kB", 16_000),
            ("1.5KiB", 1536),
        ] {
            assert_eq!(size(text.as_bytes()), Some(wanted), "{text}");
        }
        for text in
            "67108865 65MiB 1GiB 16kb 16KB 0.5B -1  KiB 99999999999999999999999 18446744073709551615KiB".split(' ')
        {
            assert_eq!(size(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn delays() {
        let ns = |n| RandomDuration::Constant { s: Duration::from_nanos(n).as_secs_f64() };
        for (text, wanted) in [
            ("10ms", ns(10_000_000)),
            ("1.5s", ns(1_500_000_000)),
            ("250us", ns(250_000)),
            ("0s", ns(0)),
            ("1m", ns(60_000_000_000)),
            ("1.25us", ns(1_250)),
            ("60s", ns(60_000_000_000)),
            ("5ms..15ms", RandomDuration::Uniform { from_s: 0.005, to_s: 0.015 }),
            ("0s..60s", RandomDuration::Uniform { from_s: 0.0, to_s: 60.0 }),
            ("exp:10ms", RandomDuration::Exponential { mean_s: 0.01 }),
        ] {
            assert_eq!(delay(text.as_bytes()), Some(wanted), "{text}");
        }
        for text in
            "0.0000000019s 60.0001s 0s..61s 15ms..5ms exp:61s exp: 61s 10 ms 1.2.3s 2m -1s 99999999999999999999s"
                .split(' ')
        {
            assert_eq!(delay(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn statuses_and_flags() {
        for (text, wanted) in [("200", 200), ("599", 599)] {
            assert_eq!(status(text.as_bytes()), Some(wanted), "{text}");
        }
        for text in "100 600 20 0200 abc".split(' ') {
            assert_eq!(status(text.as_bytes()), None, "{text}");
        }
        assert_eq!((flag(b"1"), flag(b"0"), flag(b"yes"), flag(b"")), (Some(true), Some(false), None, None));
    }
}
