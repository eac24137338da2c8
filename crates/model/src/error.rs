//! [`InputError`], the one error type for bad input in files and flags. The parsers of this crate return it, and the
//! verbs of the command line print it.

use std::fmt;

/// Something in a file or a flag that weir cannot accept.
///
/// Displayed as one message: where, what was found, what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// The file as the user named it, or the flag (`--products`).
    pub source: String,
    /// 1-based line in that file, where there is one.
    pub line: Option<usize>,
    /// Dotted key, such as `load[1].rate.share`, where there is one.
    pub key: Option<String>,
    /// What was found, in the words of the user's file.
    pub found: String,
    /// What would be right.
    pub wanted: String,
}

impl InputError {
    /// An error of something that has no lines: a flag, a suite as a whole.
    pub fn of(source: impl Into<String>, found: impl Into<String>, wanted: impl Into<String>) -> InputError {
        InputError { source: source.into(), line: None, key: None, found: found.into(), wanted: wanted.into() }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ": {key}")?;
        }
        write!(f, ": {}", self.found)?;
        if !self.wanted.is_empty() {
            write!(f, "\n  expected: {}", self.wanted)?;
        }
        Ok(())
    }
}

impl std::error::Error for InputError {}
