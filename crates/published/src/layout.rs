//! The layout of published tables and pictures, from `suites/published/layout.toml`, so that the same ones can be drawn with a run's
//! numbers and no code has to know a document. `figures` reads it. Knows the file, nothing of a run.

use serde::Deserialize;

/// The file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Layout {
    #[serde(default)]
    table: Vec<TableLayout>,
    #[serde(default)]
    picture: Vec<PictureLayout>,
    #[serde(default)]
    load: Vec<PreferredLoads>,
    #[serde(default)]
    shaped: Vec<ToolOutput>,
    #[serde(default)]
    columns: Vec<SharedColumns>,
}

/// One table of a document.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableLayout {
    suite: String,
    /// As the document calls it, or what stands above it.
    pub title: String,
    /// Where it stands.
    pub lines: String,
    /// What a row is.
    pub shape: TableShape,
    /// The cases in it; empty: all.
    #[serde(default)]
    pub cases: Vec<String>,
    /// In which order rows follow.
    #[serde(default)]
    pub order: Order,
    /// The column that names the row.
    pub first: FirstColumn,
    columns: Columns,
}

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableShape {
    /// A case of a product.
    Long,
    /// All cases of one head of a product, each column once for each tail.
    Wide,
    /// A round, with a column for each product.
    Rounds,
}

/// In which order cases and products follow each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Order {
    /// Products within a case.
    #[default]
    #[serde(rename = "case product")]
    CaseProduct,
    /// Tails of cases within a product, products within a head.
    #[serde(rename = "head product tail")]
    HeadProductTail,
}

/// The column that names the row.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstColumn {
    /// Header.
    pub name: String,
    /// A pattern, see [`fill`].
    pub text: String,
}

/// A column of numbers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnLayout {
    /// Header; a pattern where a column stands for several.
    pub name: String,
    /// What the numbers are; empty when weir does not measure them.
    #[serde(default)]
    pub metric: String,
    /// Why weir does not.
    #[serde(default)]
    pub missing: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Columns {
    Named(String),
    Own(Vec<ColumnLayout>),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedColumns {
    name: String,
    columns: Vec<ColumnLayout>,
}

/// A picture of a document, or one that it says can be drawn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PictureLayout {
    suite: String,
    /// File name in the document; empty when the document has none.
    #[serde(default)]
    pub picture: String,
    /// Instead of the picture's own.
    #[serde(default)]
    pub title: String,
    /// What is drawn.
    pub draw: Draw,
    /// The cases in it; empty: all.
    #[serde(default)]
    pub cases: Vec<String>,
    /// What is drawn of them.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// In which order bars follow.
    #[serde(default)]
    pub order: Order,
    /// A pattern: bars whose patterns come out alike stand together.
    #[serde(default)]
    pub groups: String,
    /// A pattern: what a bar is within its group.
    #[serde(default)]
    pub bars: String,
}

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Draw {
    /// A bar a case and product.
    Bars,
    /// Latency by percentile, a line a product.
    Percentiles,
    /// What each role used, second by second.
    Resources,
    /// A metric against the round, a line a product.
    Rounds,
}

/// The loads of a suite that repeat the document, best first.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct PreferredLoads {
    suite: String,
    names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolOutput {
    suite: String,
    format: Tool,
}

/// The tool whose output a document prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// wrk.
    Wrk,
    /// hey.
    Hey,
}

impl Layout {
    pub(super) fn tables(&self, suite: &str) -> Vec<TableLayout> {
        let own = self.table.iter().filter(|table| table.suite == suite);
        own.map(|table| TableLayout { columns: Columns::Own(self.columns_of(table)), ..table.clone() }).collect()
    }

    fn columns_of(&self, table: &TableLayout) -> Vec<ColumnLayout> {
        match &table.columns {
            Columns::Own(columns) => columns.clone(),
            Columns::Named(name) => {
                let shared = self.columns.iter().find(|shared| shared.name == *name);
                shared.map(|shared| shared.columns.clone()).unwrap_or_default()
            }
        }
    }

    pub(super) fn pictures(&self, suite: &str) -> Vec<PictureLayout> {
        self.picture.iter().filter(|picture| picture.suite == suite).cloned().collect()
    }

    pub(super) fn loads(&self, suite: &str) -> Vec<String> {
        let own = self.load.iter().filter(|load| load.suite == suite);
        own.flat_map(|load| load.names.iter().cloned()).collect()
    }

    pub(super) fn tool(&self, suite: &str) -> Option<Tool> {
        self.shaped.iter().find(|shaped| shaped.suite == suite).map(|shaped| shaped.format)
    }
}

impl TableLayout {
    /// The columns of numbers, from left to right.
    pub fn columns(&self) -> &[ColumnLayout] {
        match &self.columns {
            Columns::Own(columns) => columns,
            Columns::Named(_) => &[],
        }
    }

    /// Whether a case is in the table.
    pub fn holds(&self, case: &str) -> bool {
        holds(&self.cases, case)
    }
}

impl PictureLayout {
    /// Whether a case is in the picture.
    pub fn holds(&self, case: &str) -> bool {
        holds(&self.cases, case)
    }
}

/// Whether one of the patterns, in which a star stands for anything, is the case's; no pattern is all cases'.
fn holds(patterns: &[String], case: &str) -> bool {
    let fits = |pattern: &String| match pattern.split_once('*') {
        Some((before, after)) => {
            case.len() >= before.len() + after.len() && case.starts_with(before) && case.ends_with(after)
        }
        None => pattern == case,
    };
    patterns.is_empty() || patterns.iter().any(fits)
}

/// A case's name up to its first hyphen: `http` of `http-tiny`.
pub fn head(case: &str) -> &str {
    case.split_once('-').map_or(case, |(head, _)| head)
}

/// What follows the first hyphen: `tiny` of `http-tiny`.
pub fn tail(case: &str) -> &str {
    case.split_once('-').map_or(case, |(_, tail)| tail)
}

/// A pattern with what stands in braces put in: `{case}`, its `{head}`, `{tail}` (`{Tail}` with a capital) and `{last}` part
/// after a hyphen, and what `more` knows.
pub fn fill(pattern: &str, case: &str, more: &[(&str, &str)]) -> String {
    let last = case.rsplit('-').next().unwrap_or(case);
    let mut letters = tail(case).chars();
    let capital: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    let own = [("case", case), ("head", head(case)), ("tail", tail(case)), ("Tail", capital.as_str()), ("last", last)];
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern;
    // In one pass: what is put in may hold braces of its own.
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            text.push('{');
            rest = after;
            continue;
        };
        let value = own.iter().chain(more).find(|(known, _)| *known == name).map(|(_, value)| *value);
        text.push_str(value.unwrap_or_default());
        rest = behind;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_filled_once() {
        assert_eq!(
            fill("{head}-result-{cores}c-{product}-{tail}", "http-tiny", &[("cores", "4"), ("product", "{case}")]),
            "http-result-4c-{case}-tiny"
        );
        assert_eq!(fill("#{last}, {Tail}", "baseline-echo-1", &[]), "#1, Echo-1");
        assert_eq!(fill("{nothing}{", "root", &[]), "{");
        assert_eq!((head("root"), tail("root")), ("root", "root"));
    }

    #[test]
    fn stars_stand_for_anything() {
        let held = |pattern: &str, case: &str| holds(&[pattern.to_string()], case);
        assert!(held("http-*", "http-tiny") && held("*-tiny", "https-tiny") && held("root", "root"));
        assert!(!held("http-*", "https-tiny") && !held("baseline-*-index", "baseline-index") && !held("r", "root"));
        assert!(holds(&[], "anything"));
    }
}
