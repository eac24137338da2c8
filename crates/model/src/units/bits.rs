//! [`BitRate`], the capacity of a link, such as `10Gbit/s`. Topologies use it.

use std::fmt;
use std::str::FromStr;

use super::number::{self, Scale};
use super::{UnitError, serde_as_text};

/// Bits a second as people write them of links: `100Mbit/s`, `2.5Gbit`. Units are powers of 1000. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

const UNITS: [(&str, u64); 4] = [("bit", 1), ("kbit", 1_000), ("Mbit", 1_000_000), ("Gbit", 1_000_000_000)];

/// What would be right, for errors of this unit.
pub(crate) const WANTED: &str =
    "bits a second, more than 0, with a unit of bit, kbit, Mbit or Gbit, such as \"100Mbit/s\" or \"2.5Gbit/s\"";

impl BitRate {
    /// Bits a second.
    pub fn per_second(self) -> u64 {
        self.0
    }
}

impl FromStr for BitRate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (digits, unit) = number::split(text);
        let unit = unit.strip_suffix("/s").unwrap_or(unit).trim_end();
        let fail = |what: String| Err(UnitError::new(what, WANTED));
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            let why = if unit.is_empty() { "has no unit".to_owned() } else { format!("has the unknown unit {unit:?}") };
            return fail(format!("{text:?} {why}"));
        };
        match number::scaled(digits, *factor) {
            Ok(0) => fail(format!("{text:?} is no capacity")),
            Ok(bits) => Ok(BitRate(bits)),
            Err(Scale::NotANumber) => fail(format!("{text:?} is not a number of bits")),
            Err(Scale::Fraction) => fail(format!("{text:?} is not a whole number of bits")),
            Err(Scale::TooLarge) => fail(format!("{text:?} is too large")),
        }
    }
}

impl fmt::Display for BitRate {
    /// In the largest unit that leaves no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().rev().find(|(_, unit)| self.0.is_multiple_of(*unit));
        let (name, unit) = whole.unwrap_or(&UNITS[0]);
        write!(f, "{}{name}/s", self.0 / unit)
    }
}

serde_as_text!(BitRate);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<u64, String> {
        text.parse::<BitRate>().map(BitRate::per_second).map_err(|error| error.found)
    }

    #[test]
    fn every_unit_is_read() {
        for (text, bits) in [("1bit", 1), ("64 kbit/s", 64_000), ("100Mbit", 100_000_000), ("2.5Gbit/s", 2_500_000_000)]
        {
            assert_eq!(parse(text), Ok(bits), "{text}");
        }
    }

    #[test]
    fn errors_say_what_was_found() {
        for (text, found) in [
            ("", "\"\" has no unit"),
            ("100", "\"100\" has no unit"),
            ("100MB/s", "\"100MB/s\" has the unknown unit \"MB\""),
            ("Mbit", "\"Mbit\" is not a number of bits"),
            ("0Gbit", "\"0Gbit\" is no capacity"),
            ("0.5bit", "\"0.5bit\" is not a whole number of bits"),
            ("99999999999Gbit", "\"99999999999Gbit\" is too large"),
        ] {
            assert_eq!(parse(text), Err(found.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(bits in 1u64.., zeros in 0u32..10) {
            let rate = BitRate((bits / 10u64.pow(zeros)).max(1).saturating_mul(10u64.pow(zeros)));
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<BitRate>();
        }
    }
}
