//! Parses TOML, and finds the line of a dotted key. `mod` calls it first; `errors` uses the lines. The module does not know
//! what the keys mean.

use std::collections::HashMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::InputError;

/// The deepest nesting accepted: deeper than any key of a file, and shallow enough for recursion.
const DEEPEST: usize = 32;

/// Reads TOML. All syntax errors that the parser can tell apart are reported.
pub(super) fn parse<'t>(source: &str, text: &'t str) -> Result<(DeValue<'t>, Lines), Vec<InputError>> {
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1)).collect();
    let line = |span: Range<usize>| starts.partition_point(|start| *start <= span.start);
    let error =
        |line: Option<usize>, found: String, wanted: &str| InputError { line, ..InputError::of(source, found, wanted) };
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let syntax = |e: &toml::de::Error| {
            let found = format!("this is not TOML: {}", e.message());
            error(e.span().map(line), found, "TOML 1.0, see https://toml.io; texts stand in quotes")
        };
        let mut errors: Vec<InputError> = errors.iter().map(syntax).collect();
        errors.dedup();
        return Err(errors);
    }
    let root = DeValue::Table(root.into_inner());
    let mut lines = HashMap::new();
    collect(&root, "", &line, 0, &mut lines).map_err(|line| {
        let found = format!("tables or lists inside each other, more than {DEEPEST} deep");
        vec![error(Some(line), found, "the keys that the file's schema names")]
    })?;
    Ok((root, Lines(lines)))
}

/// Line by dotted path: that of a value's key, of the header of a table, or of a list's item.
#[derive(Debug)]
pub(super) struct Lines(HashMap<String, usize>);

impl Lines {
    /// The line of `path`, or of the nearest table or list around it that the file has.
    pub(super) fn line(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(line) = self.0.get(path) {
                return Some(*line);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }
}

/// Fills in the lines of everything below a value. The error is the line at which it is nested too deeply.
fn collect(
    value: &DeValue<'_>,
    path: &str,
    line: &dyn Fn(Range<usize>) -> usize,
    depth: usize,
    lines: &mut HashMap<String, usize>,
) -> Result<(), usize> {
    let below: Vec<(String, usize, &DeValue<'_>)> = match value {
        DeValue::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(index, value)| (item(path, index), line(value.span()), value.get_ref())).collect()
        }
        DeValue::Table(table) => {
            table.iter().map(|(key, value)| (child(path, key.get_ref()), line(key.span()), value.get_ref())).collect()
        }
        _ => return Ok(()),
    };
    for (path, at, value) in below {
        if depth > DEEPEST {
            return Err(at);
        }
        collect(value, &path, line, depth + 1, lines)?;
        lines.insert(path, at);
    }
    Ok(())
}

/// The dotted path of `key` in the table at `path`.
pub(super) fn child(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let key = if bare { key.to_owned() } else { format!("{key:?}") };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// The path of the item at 0-based `index` of the list at `path`.
pub(super) fn item(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("../../tests/lines.toml");

    #[test]
    fn every_key_has_its_line() {
        let (_, lines) = parse("x.toml", TEXT).expect("valid TOML");
        for (path, line) in [
            ("suite", 2),
            ("suite.title", 3),
            ("suite.products", 4),
            ("suite.products[1]", 6),
            ("load[0]", 9),
            ("load[0].name", 10),
            ("load[1]", 12),
            ("load[1].rate.share", 14),
            ("load[1].more", 15),
            ("load[1].more.deep.deeper", 16),
            ("profile.stock.files", 18),
            ("profile.stock.files.\"nginx.conf\"", 19),
            // What is not there has the line of what is around it.
            ("load[1].missing.key", 12),
            ("suite.products[7]", 4),
        ] {
            assert_eq!(lines.line(path), Some(line), "{path}");
        }
        assert_eq!(lines.line("nowhere"), None);
    }

    #[test]
    fn text_nested_beyond_reason_is_an_error_and_no_crash() {
        for text in [
            format!("{} = 1", vec!["a"; 5_000].join(".")),
            format!("[{}]", vec!["a"; 5_000].join(".")),
            format!("a = {}1{}", "[".repeat(5_000), "]".repeat(5_000)),
        ] {
            assert!(parse("x.toml", &text).is_err());
        }
    }
}
