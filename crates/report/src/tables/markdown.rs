//! Draws a table as GitHub markdown. Called by `markdown`, `extra` and `weir-compare`.

use std::fmt::Write as _;

use super::{Table, one_line};

/// Characters that a table may be wide, where columns can be spared: about what GitHub shows without a scroll bar.
const WIDTH: usize = 120;

/// The table without its title, then its notes as one paragraph. Columns that can be spared are left out of one that is too
/// wide, and named.
pub fn draw(table: &Table) -> String {
    let kept = fitting(table);
    let mut text = String::new();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let columns = || kept.iter().filter_map(|i| table.columns.get(*i));
    text.push_str(&line(columns().map(|column| escape(&column.header())).collect()));
    let rule = |column: &super::Column| if column.numeric { "---:" } else { "---" };
    let _ = writeln!(text, "|{}|", columns().map(rule).collect::<Vec<_>>().join("|"));
    for row in &table.rows {
        text.push_str(&line(kept.iter().map(|i| escape(&words(table, row, *i))).collect()));
    }
    let mut notes = table.notes.clone();
    if kept.len() < table.columns.len() {
        let skipped = (0..table.columns.len()).filter(|i| !kept.contains(i)).map(|i| table.columns[i].name.as_str());
        notes.push(format!("Not shown here: {}.", skipped.collect::<Vec<_>>().join(", ")));
    }
    if !notes.is_empty() {
        let _ = writeln!(text, "\n{}", escape(&notes.join(" ")));
    }
    text
}

fn words(table: &Table, row: &super::TableRow, column: usize) -> String {
    let details = table.columns.get(column).is_some_and(|column| column.details);
    row.cells.get(column).map(|cell| cell.words(details)).unwrap_or_default()
}

/// Columns that fit together, by their places: the most dispensable go first.
fn fitting(table: &Table) -> Vec<usize> {
    let width = |i: usize| {
        // Cells and headers break between words.
        let longest = |text: String| text.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
        let cells = table.rows.iter().map(|row| longest(words(table, row, i)));
        cells.max().unwrap_or(0).max(longest(table.columns[i].header())) + 3
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let mut kept: Vec<usize> = (0..table.columns.len()).collect();
    while kept.iter().map(|i| widths[*i]).sum::<usize>() > WIDTH {
        let least_wanted = kept.iter().copied().max_by_key(|i| table.columns[*i].dispensable);
        match least_wanted.filter(|i| table.columns[*i].dispensable > 0) {
            Some(i) => kept.retain(|kept| *kept != i),
            None => break,
        }
    }
    kept
}

/// Escapes text from a run, so that it is neither markup nor HTML.
pub fn escape(text: &str) -> String {
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
