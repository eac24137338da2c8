//! Draws a table as GitHub markdown.

use super::{Column, REMARKS, Table, TableRow, dropped, fitting, one_line};

/// Characters that a table may be wide, where columns can be spared: about what GitHub shows without a scroll bar.
const WIDTH: usize = 120;

/// The table without its title, then its notes as one paragraph. Columns that can be spared are left out of one that is too
/// wide, and named.
pub fn draw(table: &Table) -> String {
    let kept = fitting(table, WIDTH, |i| longest_word(table, i) + 3);
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let columns = || kept.iter().map(|i| &table.columns[*i]);
    let mut text = line(columns().map(|column| escape(&column.header())).collect());
    let rule = |column: &Column| if column.numeric { "---:" } else { "---" };
    text.push_str(&format!("|{}|\n", columns().map(rule).collect::<Vec<_>>().join("|")));
    for row in &table.rows {
        text.push_str(&line(kept.iter().map(|i| escape(&words(table, row, *i))).collect()));
    }
    let narrow = dropped(table, &kept).map(|names| format!("Not shown here: {names}."));
    let notes: Vec<&str> = table.notes.iter().chain(&narrow).map(String::as_str).collect();
    if !notes.is_empty() {
        text.push_str(&format!("\n{}\n", escape(&notes.join(" "))));
    }
    let (shown, folded) = table.remarks.split_at(table.remarks.len().min(REMARKS));
    let item = |remark: &String| format!("- {}\n", escape(remark));
    if !shown.is_empty() {
        text.push_str(&format!("\n{}", shown.iter().map(item).collect::<String>()));
    }
    if !folded.is_empty() {
        let (n, items) = (folded.len(), folded.iter().map(item).collect::<String>());
        text.push_str(&format!("\n<details><summary>{n} more remarks</summary>\n\n{items}\n</details>\n"));
    }
    text
}

fn words(table: &Table, row: &TableRow, column: usize) -> String {
    row.cells.get(column).map(|cell| cell.words(table.columns[column].details)).unwrap_or_default()
}

/// Cells and headers break between words.
fn longest_word(table: &Table, column: usize) -> usize {
    let longest = |text: String| text.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
    let cells = table.rows.iter().map(|row| longest(words(table, row, column)));
    cells.max().unwrap_or(0).max(longest(table.columns[column].header()))
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
