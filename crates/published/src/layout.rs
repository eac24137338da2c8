//! The layout of published tables and pictures, from `suites/published/layout.toml`. With it they are drawn with a
//! run's numbers, and no code has to know a document. `figures` reads it; `document_tables`, `charts` and `tool_output`
//! use it. It knows this file and no run.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The file, or what it has of one suite.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Its tables.
    #[serde(default, rename = "table")]
    pub tables: Vec<TableLayout>,
    /// Its pictures.
    #[serde(default, rename = "picture")]
    pub pictures: Vec<PictureLayout>,
    #[serde(default, rename = "suite")]
    suites: Vec<SuiteLayout>,
    /// The remark under the output of each tool.
    tools: BTreeMap<Tool, String>,
    /// Columns that several tables have, by a name of their own.
    #[serde(default)]
    columns: BTreeMap<String, Vec<ColumnLayout>>,
}

/// One table of a document.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableLayout {
    suite: String,
    /// The document's name of the table, or the heading above it.
    pub title: String,
    /// Its position in the document.
    pub lines: String,
    /// What one row contains.
    pub shape: TableShape,
    /// The cases in it; empty means all.
    #[serde(default)]
    pub cases: Vec<String>,
    /// The order of the rows.
    #[serde(default)]
    pub order: Order,
    /// The column that names the row.
    pub first: FirstColumn,
    columns: Columns,
}

/// What one row contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableShape {
    /// A case of a product.
    Long,
    /// All cases of one head of a product, with each column repeated for each tail.
    Wide,
    /// A round, with a column for each product.
    Rounds,
}

/// The order of cases and products.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Order {
    /// The products within each case.
    #[default]
    #[serde(rename = "case product")]
    CaseProduct,
    /// The tails of cases within each product, and the products within each head.
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
    /// The header; a pattern where the column is repeated.
    pub name: String,
    /// The metric of the numbers.
    pub metric: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Columns {
    Named(String),
    Own(Vec<ColumnLayout>),
}

/// A picture of a document, or one that the document says can be drawn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PictureLayout {
    suite: String,
    /// File name in the document; empty when the document has none.
    #[serde(default)]
    pub picture: String,
    /// A title instead of the picture's own.
    #[serde(default)]
    pub title: String,
    /// What is drawn.
    pub draw: Draw,
    /// The load under which its cases were run, where it is another than those that repeat the document.
    pub load: Option<String>,
    /// The cases in it; empty means all.
    #[serde(default)]
    pub cases: Vec<String>,
    /// The metrics drawn.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// The order of the bars.
    #[serde(default)]
    pub order: Order,
    /// A pattern: bars with the same result stand together.
    #[serde(default)]
    pub groups: String,
    /// A pattern: the name of a bar within its group.
    #[serde(default)]
    pub bars: String,
}

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Draw {
    /// A bar for each case and product.
    Bars,
    /// Latency by percentile, one line for each product.
    Percentiles,
    /// Latency by percentile, a picture for each product, with one line for each case.
    #[serde(rename = "percentiles of each product")]
    ProductPercentiles,
    /// What each role used, second by second.
    Resources,
    /// A metric by round, one line for each product.
    Rounds,
    /// Percentiles over connections or rates, one chart for each product that was run, with the published curves.
    Points,
}

/// The layout that all documents of a suite share.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteLayout {
    name: String,
    /// Its loads that repeat the document, best first.
    #[serde(default)]
    loads: Vec<String>,
    tool: Tool,
}

/// The tool whose output a document contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// wrk.
    Wrk,
    /// wrk2.
    Wrk2,
    /// junoload.
    Junoload,
    /// hey.
    Hey,
}

impl Layout {
    /// What the file has of a suite.
    pub(super) fn parse(suite: &str, text: &str) -> Result<Layout, String> {
        let mut layout: Layout = toml::from_str(text).map_err(|error| format!("layout.toml: {error}"))?;
        layout.tables.retain(|table| table.suite == suite);
        layout.pictures.retain(|picture| picture.suite == suite);
        layout.suites.retain(|one| one.name == suite);
        Ok(layout)
    }

    /// The columns of numbers of a table, from left to right.
    pub fn columns<'a>(&'a self, table: &'a TableLayout) -> &'a [ColumnLayout] {
        match &table.columns {
            Columns::Own(columns) => columns,
            Columns::Named(name) => self.columns.get(name).map(Vec::as_slice).unwrap_or_default(),
        }
    }

    /// The names of the suite's loads that repeat the document, best first. Empty: each case has a load of its own.
    pub fn loads(&self) -> Vec<&str> {
        self.suites.iter().flat_map(|suite| suite.loads.iter().map(String::as_str)).collect()
    }

    /// The tool whose output the document contains, and what a reader must know of it.
    pub fn tool(&self) -> Option<(Tool, &str)> {
        let tool = self.suites.first()?.tool;
        Some((tool, self.tools.get(&tool)?))
    }
}

/// True when one of the patterns matches the case; a star matches anything. An empty list matches every case.
pub fn holds(patterns: &[String], case: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, case))
}

/// True when a name is that of a pattern, in which a star matches anything.
pub fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((before, after)) => {
            name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
        }
        None => pattern == name,
    }
}

/// A case's name up to its first hyphen: `http` of `http-tiny`.
pub fn head(case: &str) -> &str {
    case.split_once('-').map_or(case, |(head, _)| head)
}

/// What follows the first hyphen: `tiny` of `http-tiny`.
pub fn tail(case: &str) -> &str {
    case.split_once('-').map_or(case, |(_, tail)| tail)
}

/// Replaces the names in braces in a pattern: `{case}`, its `{head}`, `{tail}` (`{Tail}` with a capital) and `{last}`
/// part after a hyphen, and those in `more`.
pub fn fill(pattern: &str, case: &str, more: &[(&str, &str)]) -> String {
    let last = case.rsplit('-').next().unwrap_or(case);
    let mut letters = tail(case).chars();
    let capital: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    let own = [("case", case), ("head", head(case)), ("tail", tail(case)), ("Tail", capital.as_str()), ("last", last)];
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern;
    // In one pass, because an inserted text may contain braces.
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
