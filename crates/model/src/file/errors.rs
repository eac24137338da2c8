//! Collects all errors of one file. The readers of suites and products use it.

use super::locate::Lines;
use crate::InputError;

/// The errors found so far in one file.
pub(super) struct Errors<'a> {
    source: &'a str,
    lines: &'a Lines,
    found: Vec<InputError>,
}

impl<'a> Errors<'a> {
    pub(super) fn new(source: &'a str, lines: &'a Lines) -> Self {
        Errors { source, lines, found: Vec::new() }
    }

    /// Adds an error at the dotted key `path`.
    pub(super) fn add(&mut self, path: &str, found: impl Into<String>, wanted: impl Into<String>) {
        self.found.push(InputError {
            source: self.source.to_owned(),
            line: self.lines.line(path),
            key: Some(path.to_owned()),
            found: found.into(),
            wanted: wanted.into(),
        });
    }

    /// Adds an error that has no place in the file.
    pub(super) fn add_about_file(&mut self, found: impl Into<String>, wanted: impl Into<String>) {
        self.found.push(InputError::of(self.source, found, wanted));
    }

    /// Returns `value` if there are no errors, else all errors in the order of their lines.
    pub(super) fn into_result<T>(mut self, value: Option<T>) -> Result<T, Vec<InputError>> {
        self.found.sort_by_key(|error| error.line);
        match value {
            Some(value) if self.found.is_empty() => Ok(value),
            _ => Err(self.found),
        }
    }

    /// The number of errors so far.
    pub(super) fn count(&self) -> usize {
        self.found.len()
    }
}
