//! [`Share`], a part of a whole such as `0.1 %`. Suites use it.

use std::fmt;
use std::str::FromStr;

use super::number::{self, Scale};
use super::{UnitError, serde_as_text};

/// A part of a whole as people write it: `0.1 %`. At most 100 %, exact to a thousandth of a millionth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

/// One per cent, in thousandths of millionths.
const PERCENT: u32 = 10_000_000;

/// What would be right, for errors of this unit.
pub(crate) const WANTED: &str = "a share of 0 to 100 per cent, such as \"0.1 %\"";

impl Share {
    /// 0.1 %.
    pub const THOUSANDTH: Share = Share(PERCENT / 10);

    /// In per cent.
    pub fn percent(self) -> f64 {
        f64::from(self.0) / f64::from(PERCENT)
    }
}

impl FromStr for Share {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (digits, unit) = number::split(text);
        let fail = |what: String| Err(UnitError::new(what, WANTED));
        match unit {
            "%" => {}
            "" => return fail(format!("{text:?} has no %")),
            _ => return fail(format!("{text:?} is no share")),
        }
        match number::scaled(digits, u64::from(PERCENT)).map(u32::try_from) {
            Ok(Ok(share)) if share <= 100 * PERCENT => Ok(Share(share)),
            Ok(_) | Err(Scale::TooLarge) => fail(format!("{text:?} is more than all")),
            Err(Scale::NotANumber) => fail(format!("{text:?} is no share")),
            Err(Scale::Fraction) => fail(format!("{text:?} has too many digits")),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / PERCENT, self.0 % PERCENT);
        match format!("{rest:07}").trim_end_matches('0') {
            "" => write!(f, "{whole} %"),
            digits => write!(f, "{whole}.{digits} %"),
        }
    }
}

serde_as_text!(Share);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn errors_say_what_was_found() {
        for (text, found) in [
            ("0.1", "\"0.1\" has no %"),
            ("%", "\"%\" is no share"),
            ("-1 %", "\"-1 %\" is no share"),
            ("1 ms", "\"1 ms\" is no share"),
            ("101%", "\"101%\" is more than all"),
            ("9999999999 %", "\"9999999999 %\" is more than all"),
            ("0.00000001 %", "\"0.00000001 %\" has too many digits"),
        ] {
            assert_eq!(text.parse::<Share>().map_err(|error| error.found), Err(found.to_owned()));
        }
        assert_eq!("0.1%".parse(), Ok(Share::THOUSANDTH));
        assert_eq!("100 %".parse::<Share>().map(Share::percent), Ok(100.0));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(parts in 0u32..=100 * PERCENT) {
            prop_assert_eq!(Share(parts).to_string().parse(), Ok(Share(parts)));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Share>();
        }
    }
}
