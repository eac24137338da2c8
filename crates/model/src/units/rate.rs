//! [`Rate`], a number of requests per second such as `20k/s`. Suites, conditions and flags use it.

use std::fmt;
use std::str::FromStr;

use super::{UnitError, serde_as_text};

/// Requests a second as people write them: `5000`, `5000/s`, `20k`, `20k/s`, `1.5M/s`.
///
/// More than 0 and at most [`Rate::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rate(f64);

/// What would be right, for errors of this unit.
pub(crate) const WANTED: &str =
    "requests a second, more than 0, bare or with k or M, with or without /s, such as 5000 or \"20k/s\"";

impl Rate {
    /// A thousand million a second: far beyond one machine, and short enough to write out.
    pub const MAX: f64 = 1e9;

    /// A rate of `per_second` requests a second, if that is more than 0 and at most [`Rate::MAX`].
    pub fn new(per_second: f64) -> Result<Self, UnitError> {
        Self::checked(per_second, &per_second.to_string())
    }

    /// Requests a second.
    pub fn per_second(self) -> f64 {
        self.0
    }

    fn checked(per_second: f64, text: &str) -> Result<Self, UnitError> {
        if per_second.is_nan() || per_second <= 0.0 {
            return Err(UnitError::new(format!("{text:?} is no rate"), WANTED));
        }
        if per_second > Self::MAX {
            return Err(UnitError::new(format!("{text:?} is more than 1000M/s"), WANTED));
        }
        Ok(Rate(per_second))
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        let amount = trimmed.strip_suffix("/s").unwrap_or(trimmed).trim_end();
        let (digits, factor) = match amount.as_bytes().last() {
            Some(b'k') => (&amount[..amount.len() - 1], 1e3),
            Some(b'M') => (&amount[..amount.len() - 1], 1e6),
            _ => (amount, 1.0),
        };
        let digits = digits.trim_end();
        // Rust's own parser takes `inf`, `nan`, signs and exponents; none of them is how a rate is written.
        let plain =
            digits.starts_with(|c: char| c.is_ascii_digit()) && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let number = digits.parse::<f64>().ok().filter(|_| plain);
        let Some(number) = number else {
            return Err(UnitError::new(format!("{text:?} is not a rate"), WANTED));
        };
        Rate::checked(number * factor, text)
    }
}

impl fmt::Display for Rate {
    /// `20k/s` for whole thousands, else the shortest number that reads back as the same rate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 1e3 && self.0 % 1e3 == 0.0 { write!(f, "{}k/s", self.0 / 1e3) } else { write!(f, "{}/s", self.0) }
    }
}

serde_as_text!(Rate);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<f64, String> {
        text.parse::<Rate>().map(Rate::per_second).map_err(|error| error.found)
    }

    #[test]
    fn every_form_is_read() {
        for (text, rate) in [
            ("5000", 5000.0),
            ("5000/s", 5000.0),
            ("5000 /s", 5000.0),
            ("20k", 20_000.0),
            ("20k/s", 20_000.0),
            ("1.5k/s", 1500.0),
            ("1M/s", 1_000_000.0),
            ("0.5/s", 0.5),
        ] {
            assert_eq!(parse(text), Ok(rate), "{text}");
        }
    }

    #[test]
    fn errors_say_what_was_found_and_what_would_be_right() {
        for (text, found) in [
            ("", "\"\" is not a rate"),
            ("k/s", "\"k/s\" is not a rate"),
            ("-5", "\"-5\" is not a rate"),
            ("1e4", "\"1e4\" is not a rate"),
            ("inf", "\"inf\" is not a rate"),
            ("nan", "\"nan\" is not a rate"),
            ("5000/m", "\"5000/m\" is not a rate"),
            ("0", "\"0\" is no rate"),
            ("2000M", "\"2000M\" is more than 1000M/s"),
        ] {
            assert_eq!(parse(text), Err(found.to_owned()));
        }
        assert_eq!(
            "0".parse::<Rate>().unwrap_err().to_string(),
            "\"0\" is no rate; expected: requests a second, more than 0, bare or with k or M, with or without \
             /s, such as 5000 or \"20k/s\""
        );
        assert!(Rate::new(f64::NAN).is_err());
        assert!(Rate::new(f64::INFINITY).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(rate in 1e-6f64..Rate::MAX, whole: bool) {
            let rate = Rate::new(if whole { rate.ceil() } else { rate }).expect("in range");
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn thousands_read_back(thousands in 1u32..1_000_000) {
            let rate = Rate::new(f64::from(thousands) * 1e3).expect("in range");
            prop_assert_eq!(rate.to_string(), format!("{thousands}k/s"));
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Rate>();
        }
    }
}
