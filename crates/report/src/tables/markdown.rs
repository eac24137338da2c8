//! Draws a table as GitHub's markdown. Knows tables, nothing of runs.

use std::fmt::Write as _;

use super::{Table, one_line};

/// The table without its title, then its notes as one paragraph.
pub fn draw(table: &Table) -> String {
    let mut text = String::new();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    text.push_str(&line(table.columns.iter().map(|column| escape(&column.header())).collect()));
    let rule = |column: &super::Column| if column.numeric { "---:" } else { "---" };
    let _ = writeln!(text, "|{}|", table.columns.iter().map(rule).collect::<Vec<_>>().join("|"));
    for row in &table.rows {
        let cell = |(cell, column): (&super::Cell, &super::Column)| escape(&cell.words(column.details));
        text.push_str(&line(row.cells.iter().zip(&table.columns).map(cell).collect()));
    }
    if !table.notes.is_empty() {
        let _ = writeln!(text, "\n{}", escape(&table.notes.join(" ")));
    }
    text
}

/// What a run says is text: no markup of its, and no HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                escaped.push('\\');
                escaped.push(c);
            }
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn markup_in_a_run_stays_text() {
        assert_eq!(escape("<script>|a*b_c\n[x](y)"), "&lt;script&gt;\\|a\\*b\\_c \\[x\\](y)");
    }
}
