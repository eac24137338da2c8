//! Collects all errors of one file, and offers the phrases that their messages share.
//! The readers of suites and products use it. Other crates use [`suggestion`] and [`listed`] for errors in flags.

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
        self.found.push(InputError {
            source: self.source.to_owned(),
            line: None,
            key: None,
            found: found.into(),
            wanted: wanted.into(),
        });
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

/// `; did you mean "nginx"?` when one of `names` is near `wrong`, else nothing.
pub fn suggestion<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    // A third of the letters may be wrong: "ngnix" is near "nginx", "foo" is near nothing.
    let bound = (wrong.chars().count() / 3).max(1);
    let nearest = names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&wrong.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= bound)
        .min();
    match nearest {
        Some((_, name)) => format!("; did you mean {name:?}?"),
        None => String::new(),
    }
}

/// `one of a, b, c`, or `"a"` when there is only one, or `nothing` when there is none.
pub fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.as_slice() {
        [] => "nothing: there are none".to_owned(),
        [only] => (*only).to_owned(),
        names => format!("one of {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let names = ["nginx", "haproxy", "h2o"];
        assert_eq!(suggestion("ngnix", names), "; did you mean \"nginx\"?");
        assert_eq!(suggestion("HAproxy", names), "; did you mean \"haproxy\"?");
        assert_eq!(suggestion("h2", names), "; did you mean \"h2o\"?");
        assert_eq!(suggestion("varnish", names), "");
    }
}
