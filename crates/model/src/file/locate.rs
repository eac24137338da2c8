//! Parses TOML into a tree in which every node knows its line, and finds the line of a dotted key. `suite` and
//! `product` call it first; `shape` and `errors` use the lines. The module does not know what the keys mean.

use std::collections::HashMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::InputError;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    /// 1-based line of the value's key, of the header of a table, or of a list's item.
    pub line: usize,
    /// The value.
    pub value: Value,
}

/// A TOML value.
#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    /// As written, with its prefix; `None` when it does not fit 64 bits (signed or not).
    Integer(String, Option<serde_json::Number>),
    Float(f64),
    Flag(bool),
    Time,
    List(Vec<Node>),
    /// In the order written.
    Table(Vec<(String, Node)>),
}

/// The deepest nesting accepted: deeper than any key of a file, and shallow enough for recursion.
const DEEPEST: usize = 32;

/// Reads TOML. All syntax errors that the parser can tell apart are reported.
pub(super) fn parse(source: &str, text: &str) -> Result<Node, Vec<InputError>> {
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1)).collect();
    let reader = Reader { source, starts };
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let mut errors: Vec<InputError> = errors.iter().map(|error| reader.syntax_error(error)).collect();
        errors.dedup();
        return Err(errors);
    }
    let entries = reader.table(root.get_ref(), 0).map_err(|error| vec![error])?;
    Ok(Node { line: 1, value: entries })
}

struct Reader<'a> {
    source: &'a str,
    /// Byte offset of each line's start.
    starts: Vec<usize>,
}

impl Reader<'_> {
    fn line(&self, span: Range<usize>) -> usize {
        self.starts.partition_point(|start| *start <= span.start)
    }

    fn syntax_error(&self, error: &toml::de::Error) -> InputError {
        InputError {
            source: self.source.to_owned(),
            line: error.span().map(|span| self.line(span)),
            key: None,
            found: format!("this is not TOML: {}", error.message()),
            wanted: "TOML 1.0, see https://toml.io; texts stand in quotes".to_owned(),
        }
    }

    fn table(&self, table: &DeTable<'_>, depth: usize) -> Result<Value, InputError> {
        let mut entries = Vec::with_capacity(table.len());
        for (key, value) in table {
            let line = self.line(key.span());
            entries.push((key.get_ref().to_string(), self.node(line, value.get_ref(), depth)?));
        }
        Ok(Value::Table(entries))
    }

    fn node(&self, line: usize, value: &DeValue<'_>, depth: usize) -> Result<Node, InputError> {
        if depth > DEEPEST {
            return Err(InputError {
                source: self.source.to_owned(),
                line: Some(line),
                key: None,
                found: format!("tables or lists inside each other, more than {DEEPEST} deep"),
                wanted: "the keys that the file's schema names".to_owned(),
            });
        }
        let value = match value {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => {
                let (digits, radix) = (number.as_str(), number.radix());
                let signed = i64::from_str_radix(digits, radix).ok().map(Into::into);
                let number_in_range = signed.or(u64::from_str_radix(digits, radix).ok().map(Into::into));
                Value::Integer(number.to_string(), number_in_range)
            }
            // The parser has checked the form; what is left to fail is nothing, and NaN is refused by every range.
            DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Datetime(_) => Value::Time,
            DeValue::Array(items) => Value::List(
                items
                    .iter()
                    .map(|item| self.node(self.line(item.span()), item.get_ref(), depth + 1))
                    .collect::<Result<_, _>>()?,
            ),
            DeValue::Table(table) => self.table(table, depth + 1)?,
        };
        Ok(Node { line, value })
    }
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

/// Line by dotted path.
#[derive(Debug)]
pub(super) struct Lines(HashMap<String, usize>);

impl Lines {
    /// Lines of everything below `root`.
    pub(super) fn of(root: &Node) -> Self {
        let mut lines = HashMap::new();
        collect(root, "", &mut lines);
        Lines(lines)
    }

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

fn collect(node: &Node, path: &str, lines: &mut HashMap<String, usize>) {
    if !path.is_empty() {
        lines.insert(path.to_owned(), node.line);
    }
    match &node.value {
        Value::List(items) => {
            for (index, node) in items.iter().enumerate() {
                collect(node, &item(path, index), lines);
            }
        }
        Value::Table(entries) => {
            for (key, node) in entries {
                collect(node, &child(path, key), lines);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# a comment
[suite]
title = "x"
products = [
  "direct",
  "nginx",
]

[[load]]
name = "one"

[[load]]
name = "two"
rate = { share = 0.5 }
[load.more]
deep.deeper = 1

[profile.stock.files]
"nginx.conf" = "a"
"#;

    #[test]
    fn every_key_has_its_line() {
        let lines = Lines::of(&parse("x.toml", TEXT).expect("valid TOML"));
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
