//! [`Count`], a number of things such as `20k`. Suites and flags use it.

use std::fmt;
use std::str::FromStr;

use super::UnitError;
use super::number::{self, Scale};

/// A whole number as people write it: `1000`, `20k`, `1.5M`, `2G`. Units are powers of 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count(pub u64);

const UNITS: [(&str, u64); 4] = [("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

const WANTED: &str = "a whole number, bare or with k, M or G (powers of 1000), such as 1000, 20k or 1.5M";

impl FromStr for Count {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (digits, unit) = number::split(text);
        let fail = |what: &str| Err(UnitError::new(format!("{text:?} {what}"), WANTED));
        let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let Some(factor) = factor.filter(|_| !digits.is_empty()) else { return fail("is no count") };
        match number::scaled(digits, factor) {
            Ok(count) => Ok(Count(count)),
            Err(Scale::NotANumber) => fail("is no count"),
            Err(Scale::Fraction) => fail("is not a whole number"),
            Err(Scale::TooLarge) => fail("is too large"),
        }
    }
}

impl fmt::Display for Count {
    /// In the largest unit that leaves no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().rev().find(|(_, unit)| self.0 != 0 && self.0.is_multiple_of(*unit));
        let (name, unit) = whole.unwrap_or(&UNITS[0]);
        write!(f, "{}{name}", self.0 / unit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_unit_is_read_and_errors_say_what_was_found() {
        let parse = |text: &str| text.parse::<Count>().map(|count| count.0).map_err(|error| error.found);
        for (text, count) in
            [("0", 0), ("64", 64), ("20k", 20_000), ("1M", 1_000_000), ("1.5M", 1_500_000), ("3 G", 3_000_000_000)]
        {
            assert_eq!(parse(text), Ok(count), "{text}");
        }
        for (text, found) in [
            ("", "\"\" is no count"),
            ("k", "\"k\" is no count"),
            ("-1", "\"-1\" is no count"),
            ("1m", "\"1m\" is no count"),
            ("20K", "\"20K\" is no count"),
            ("1e6", "\"1e6\" is no count"),
            ("1.5", "\"1.5\" is not a whole number"),
            ("99999999999G", "\"99999999999G\" is too large"),
        ] {
            assert_eq!(parse(text), Err(found.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(count: u64, zeros in 0u32..10) {
            let count = Count(count / 10u64.pow(zeros) * 10u64.pow(zeros));
            prop_assert_eq!(count.to_string().parse(), Ok(count));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Count>();
        }
    }
}
