//! [`CpuList`], a list of CPUs such as `0-3,8`. Flags of the command line and the reader of `/sys` use it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::{UnitError, serde_as_text};

/// CPU numbers in the kernel's list form: `0-3,8`. Never empty, sorted, each once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuList(Vec<u32>);

const WANTED: &str = "CPU numbers and ranges of them with commas between, such as \"0-3,8\"";

impl CpuList {
    /// The highest CPU number accepted: far above any kernel's limit, and small enough that `0-max` is no attack.
    pub const MAX: u32 = 65_535;

    /// Sorts `cpus` and drops repetitions; `None` when there are none.
    pub fn new(cpus: impl IntoIterator<Item = u32>) -> Option<Self> {
        let cpus: BTreeSet<u32> = cpus.into_iter().collect();
        (!cpus.is_empty()).then(|| CpuList(cpus.into_iter().collect()))
    }

    /// CPUs as flags take them, in any order: `0-2,5`; empty for none.
    pub fn text(cpus: &[u32]) -> String {
        CpuList::new(cpus.iter().copied()).map(|list| list.to_string()).unwrap_or_default()
    }

    /// The numbers, sorted, each once.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// The numbers, sorted, each once.
    pub fn into_vec(self) -> Vec<u32> {
        self.0
    }
}

impl FromStr for CpuList {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let fail = |what: String| UnitError::new(what, WANTED);
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',') {
            let part = part.trim();
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let cpu = |digits: &str| -> Result<u32, UnitError> {
                let digits = digits.trim();
                let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                if !plain {
                    return Err(fail(format!("{text:?} is not a list of CPUs")));
                }
                match digits.parse() {
                    Ok(cpu) if cpu <= Self::MAX => Ok(cpu),
                    _ => Err(fail(format!("{text:?} names CPU {digits}, beyond {}", Self::MAX))),
                }
            };
            let (first, last) = (cpu(first)?, cpu(last)?);
            if first > last {
                return Err(fail(format!("{text:?} has the range {part} that runs backwards")));
            }
            cpus.extend(first..=last);
        }
        // Every part yielded at least one CPU, and `split` yields at least one part.
        Ok(CpuList(cpus.into_iter().collect()))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for run in self.0.chunk_by(|a, b| a + 1 == *b) {
            match run {
                [first, .., last] => write!(f, "{separator}{first}-{last}")?,
                [only] => write!(f, "{separator}{only}")?,
                [] => {}
            }
            separator = ",";
        }
        Ok(())
    }
}

serde_as_text!(CpuList);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Vec<u32>, String> {
        text.parse::<CpuList>().map(CpuList::into_vec).map_err(|error| error.found)
    }

    #[test]
    fn ranges_and_numbers_are_read() {
        assert_eq!(parse("0-3,8"), Ok(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse("8, 1, 0-1\n"), Ok(vec![0, 1, 8]));
        assert_eq!(parse("5"), Ok(vec![5]));
    }

    #[test]
    fn errors_say_what_was_found() {
        for (text, found) in [
            ("", "\"\" is not a list of CPUs"),
            ("0,", "\"0,\" is not a list of CPUs"),
            ("a", "\"a\" is not a list of CPUs"),
            ("-1", "\"-1\" is not a list of CPUs"),
            ("+1", "\"+1\" is not a list of CPUs"),
            ("3-1", "\"3-1\" has the range 3-1 that runs backwards"),
            ("0-99999999999", "\"0-99999999999\" names CPU 99999999999, beyond 65535"),
        ] {
            assert_eq!(parse(text), Err(found.to_owned()));
        }
        assert_eq!(CpuList::new([]), None);
        assert_eq!([CpuList::text(&[5, 0, 2, 1]), CpuList::text(&[])], ["0-2,5", ""]);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(cpus in proptest::collection::vec(0u32..200, 1..40)) {
            let list = CpuList::new(cpus).expect("not empty");
            prop_assert_eq!(list.to_string().parse(), Ok(list));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<CpuList>();
        }
    }
}
