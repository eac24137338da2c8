//! [`HumanDuration`], a length of time such as `10ms`. Suites, products, conditions and flags use it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::number::{self, Scale};
use super::{UnitError, serde_as_text};

/// A length of time as people write it: `500us`, `10ms`, `1.5s`, `2m`, `1h`, `1m30s`, `3d`. Zero is `0s`.
///
/// Read exactly, to the nanosecond; a number without a unit is an error, because it could mean seconds or
/// milliseconds. `0` needs none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HumanDuration(pub Duration);

/// Units, largest first, in nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// What would be right, for errors of this unit.
pub(crate) const WANTED: &str =
    "numbers with a unit of ns, us, ms, s, m, h or d, the largest first, such as \"10ms\", \"1.5s\" or \"1m30s\"";

impl FromStr for HumanDuration {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let fail = |what: &str| UnitError::new(format!("{text:?} {what}"), WANTED);
        let (mut rest, mut sum, mut smallest) = (text.trim(), 0u64, u64::MAX);
        if rest == "0" {
            return Ok(HumanDuration(Duration::ZERO));
        }
        loop {
            let (digits, unit) = number::split(rest);
            let (unit, next) = unit.split_at(unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len()));
            let unit = unit.trim_end();
            if digits.is_empty() {
                return Err(fail("is not a duration"));
            }
            if unit.is_empty() {
                let alone = smallest == u64::MAX;
                return Err(if alone { fail("has no unit") } else { fail(&format!("has no unit behind {digits}")) });
            }
            // The micro sign and the Greek letter are what keyboards and copied texts have for `u`.
            let plain = unit.replace(['µ', 'μ'], "u");
            let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == plain) else {
                return Err(fail(&format!("has the unknown unit {unit:?}")));
            };
            if *nanos >= smallest {
                return Err(fail(&format!("has {unit} behind a unit that is not larger")));
            }
            let part = number::scaled(digits, *nanos).map_err(|error| match error {
                Scale::NotANumber => fail("is not a duration"),
                Scale::Fraction => fail("is not a whole number of nanoseconds"),
                Scale::TooLarge => fail("is too long"),
            })?;
            sum = sum.checked_add(part).ok_or_else(|| fail("is too long"))?;
            (rest, smallest) = (next, *nanos);
            if rest.is_empty() {
                return Ok(HumanDuration(Duration::from_nanos(sum)));
            }
        }
    }
}

impl fmt::Display for HumanDuration {
    /// In the largest unit that leaves no fraction: `1500ms`, `90s`, `2m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        if nanos == 0 {
            return f.write_str("0s");
        }
        // Hours are the largest unit that is written.
        for (name, unit) in UNITS.into_iter().skip(1) {
            let unit = u128::from(unit);
            if nanos.is_multiple_of(unit) {
                return write!(f, "{}{name}", nanos / unit);
            }
        }
        unreachable!("every number of nanoseconds is divisible by 1");
    }
}

serde_as_text!(HumanDuration);

impl From<Duration> for HumanDuration {
    fn from(duration: Duration) -> Self {
        HumanDuration(duration)
    }
}

impl From<HumanDuration> for Duration {
    fn from(duration: HumanDuration) -> Self {
        duration.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Duration, String> {
        text.parse::<HumanDuration>().map(Duration::from).map_err(|error| error.to_string())
    }

    #[test]
    fn every_unit_is_read() {
        assert_eq!(parse("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(parse("500µs"), Ok(Duration::from_micros(500)));
        assert_eq!(parse("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(parse("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(parse(" 1.5 s "), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse("1h"), Ok(Duration::from_secs(3600)));
        assert_eq!(parse("3d"), Ok(Duration::from_secs(259_200)));
        assert_eq!([parse("0s"), parse("0")], [Ok(Duration::ZERO), Ok(Duration::ZERO)]);
        assert_eq!(parse("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("1h 2m 3.5s4ms"), Ok(Duration::from_millis(3_723_504)));
    }

    #[test]
    fn errors_say_what_was_found_and_what_would_be_right() {
        let wanted = "expected: numbers with a unit of ns, us, ms, s, m, h or d, the largest first, such as \"10ms\", \"1.5s\" \
                      or \"1m30s\"";
        for (text, found) in [
            ("10", "\"10\" has no unit"),
            ("", "\"\" is not a duration"),
            ("fast", "\"fast\" is not a duration"),
            ("-1s", "\"-1s\" is not a duration"),
            ("1.2.3s", "\"1.2.3s\" is not a duration"),
            ("2 sec", "\"2 sec\" has the unknown unit \"sec\""),
            ("0.1ns", "\"0.1ns\" is not a whole number of nanoseconds"),
            ("9999999999h", "\"9999999999h\" is too long"),
            ("5000000h 9999999999m", "\"5000000h 9999999999m\" is too long"),
            ("1m30", "\"1m30\" has no unit behind 30"),
            ("30s1m", "\"30s1m\" has m behind a unit that is not larger"),
            ("1s1s", "\"1s1s\" has s behind a unit that is not larger"),
            ("1m-30s", "\"1m-30s\" has the unknown unit \"m-\""),
        ] {
            assert_eq!(parse(text), Err(format!("{found}; {wanted}")));
        }
    }

    #[test]
    fn the_largest_whole_unit_is_written() {
        for (millis, text) in [(1500, "1500ms"), (2000, "2s"), (90_000, "90s"), (120_000, "2m")] {
            assert_eq!(HumanDuration(Duration::from_millis(millis)).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(nanos: u64) {
            let duration = HumanDuration(Duration::from_nanos(nanos));
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn round_lengths_read_back(count in 0u64..100_000, unit in 0usize..UNITS.len()) {
            let duration = HumanDuration(Duration::from_nanos(count * UNITS[unit].1));
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<HumanDuration>();
        }
    }
}
