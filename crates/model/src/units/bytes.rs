//! [`ByteCount`], a size such as `16KiB`. Suites, flags of `weir load` and the origin use it.

use std::fmt;
use std::str::FromStr;

use super::number::{self, Scale};
use super::{UnitError, deserialize_from_text};

/// A number of bytes as people write it: `11268`, `16KiB`, `1MiB`, `1kB`.
///
/// `kB`, `MB` and `GB` are powers of 1000, `KiB`, `MiB` and `GiB` of 1024. `K` and `KB` are refused, because
/// they are used for both 1000 and 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteCount(pub u64);

const UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// What would be right, for errors of this unit.
pub(crate) const WANTED: &str = "a number of bytes, bare or with a unit of B, kB, MB, GB (powers of 1000), KiB, MiB or GiB \
                      (of 1024), such as 11268 or \"16KiB\"";

impl FromStr for ByteCount {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (digits, unit) = number::split(text);
        let fail = |what: String| Err(UnitError::new(what, WANTED));
        if digits.is_empty() {
            return fail(format!("{text:?} is not a size"));
        }
        let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return fail(format!("{text:?} has the unknown unit {unit:?}"));
        };
        match number::scaled(digits, *factor) {
            Ok(bytes) => Ok(ByteCount(bytes)),
            Err(Scale::NotANumber) => fail(format!("{text:?} is not a size")),
            Err(Scale::Fraction) => fail(format!("{text:?} is not a whole number of bytes")),
            Err(Scale::TooLarge) => fail(format!("{text:?} is too large")),
        }
    }
}

impl fmt::Display for ByteCount {
    /// In `KiB`, `MiB` or `GiB` where that leaves no fraction, else as a bare number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().rev().take(3).find(|(_, unit)| self.0 != 0 && self.0.is_multiple_of(*unit));
        match whole {
            Some((name, unit)) => write!(f, "{}{name}", self.0 / unit),
            None => write!(f, "{}", self.0),
        }
    }
}

impl serde::Serialize for ByteCount {
    /// A bare number as a number, as long as TOML can hold it; else the text.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.to_string().parse::<i64>() {
            Ok(number) => serializer.serialize_i64(number),
            Err(_) => serializer.collect_str(self),
        }
    }
}

deserialize_from_text!(ByteCount);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<u64, String> {
        text.parse::<ByteCount>().map(|size| size.0).map_err(|error| error.found)
    }

    #[test]
    fn every_unit_is_read() {
        for (text, bytes) in [
            ("0", 0),
            ("11268", 11_268),
            ("11268B", 11_268),
            ("16KiB", 16_384),
            ("1 MiB", 1 << 20),
            ("1.5KiB", 1536),
            ("1kB", 1000),
            ("2MB", 2_000_000),
            ("1GB", 1_000_000_000),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn errors_say_what_was_found_and_what_would_be_right() {
        for (text, found) in [
            ("", "\"\" is not a size"),
            ("-1", "\"-1\" is not a size"),
            ("16K", "\"16K\" has the unknown unit \"K\""),
            ("16kib", "\"16kib\" has the unknown unit \"kib\""),
            ("0.5", "\"0.5\" is not a whole number of bytes"),
            ("99999999999GiB", "\"99999999999GiB\" is too large"),
        ] {
            assert_eq!(parse(text), Err(found.to_owned()));
        }
        let error = "16K".parse::<ByteCount>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"16K\" has the unknown unit \"K\"; expected: a number of bytes, bare or with a unit of B, kB, \
             MB, GB (powers of 1000), KiB, MiB or GiB (of 1024), such as 11268 or \"16KiB\""
        );
    }

    #[test]
    fn whole_binary_units_are_written() {
        for (bytes, text) in [(0, "0"), (1000, "1000"), (16_384, "16KiB"), (3 << 20, "3MiB"), (1 << 40, "1024GiB")] {
            assert_eq!(ByteCount(bytes).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(bytes: u64, shift in 0u32..40) {
            let size = ByteCount(bytes >> shift << shift);
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<ByteCount>();
        }
    }
}
