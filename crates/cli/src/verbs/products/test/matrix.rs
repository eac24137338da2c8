//! The matrix of a conformance test in a terminal: checks as rows, products as columns, on as many pages as the width
//! needs. `weir products test` prints it.

use weir_conformance::{CHECKS, Cell, Verdict};

use super::record::Named;

/// Blanks between columns.
const GAP: usize = 2;

/// One page for as many products as fit, one at least.
pub fn pages(tested: &[Named], width: usize) -> Vec<String> {
    let rows: Vec<usize> = asked(tested);
    let first: usize = rows.iter().map(|row| CHECKS[*row].title.chars().count()).max().unwrap_or(0);
    let columns: Vec<Vec<String>> = tested.iter().map(|named| column(named, tested, &rows)).collect();
    let widths: Vec<usize> =
        columns.iter().map(|c| c.iter().map(|cell| cell.chars().count()).max().unwrap_or(0)).collect();
    let mut pages = Vec::new();
    let mut begin = 0;
    while begin < columns.len() {
        let mut end = begin + 1;
        let mut used = first + GAP + widths[begin];
        while end < columns.len() && used + GAP + widths[end] <= width {
            used += GAP + widths[end];
            end += 1;
        }
        pages.push(page(&tested[begin..end], &columns[begin..end], &widths[begin..end], &rows, first));
        begin = end;
    }
    pages
}

/// Places, in the table, of the checks that anybody was asked.
fn asked(tested: &[Named]) -> Vec<usize> {
    let has = |name: &str| tested.iter().any(|named| named.tested.cell(name).is_some());
    (0..CHECKS.len()).filter(|at| has(CHECKS[*at].name)).collect()
}

/// Two lines of heading, then the cells.
fn column(named: &Named, all: &[Named], rows: &[usize]) -> Vec<String> {
    let several = all.iter().any(|other| other.tested.profile != named.tested.profile);
    let second = if several { named.tested.profile.clone() } else { named.version.clone() };
    let mut column = vec![named.tested.product.clone(), second];
    column.extend(rows.iter().map(|at| words(named, CHECKS[*at].name)));
    column
}

/// What stands in a cell: a star says that there is more to read.
pub fn words(named: &Named, check: &str) -> String {
    match named.tested.cell(check) {
        Some(Cell { says, note: Some(_), verdict, .. }) if *verdict != Verdict::Absent => format!("{says}*"),
        Some(cell) => cell.says.clone(),
        None if named.tested.error.is_some() => "no start".to_owned(),
        None => String::new(),
    }
}

fn page(tested: &[Named], columns: &[Vec<String>], widths: &[usize], rows: &[usize], first: usize) -> String {
    let mut lines = Vec::new();
    for line in 0..rows.len() + 2 {
        let title = line.checked_sub(2).map_or("", |row| CHECKS[rows[row]].title);
        let mut text = format!("{title:<first$}");
        for ((column, width), named) in columns.iter().zip(widths).zip(tested) {
            let verdict =
                line.checked_sub(2).and_then(|row| named.tested.cell(CHECKS[rows[row]].name)).map(|cell| cell.verdict);
            let padded = format!("{:<width$}", column[line]);
            text.push_str(&" ".repeat(GAP));
            text.push_str(&painted(&padded, verdict, line));
        }
        lines.push(text.trim_end().to_owned());
    }
    lines.join("\n")
}

fn painted(text: &str, verdict: Option<Verdict>, line: usize) -> String {
    let styled = console::style(text);
    match verdict {
        None if line == 0 => styled.bold().to_string(),
        Some(Verdict::No) => styled.red().to_string(),
        Some(Verdict::Odd | Verdict::Unknown) => styled.yellow().to_string(),
        Some(Verdict::Absent) => styled.dim().to_string(),
        _ => styled.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::example;
    use super::*;

    fn plain(width: usize) -> Vec<String> {
        pages(&example().tested, width).iter().map(|page| console::strip_ansi_codes(page).into_owned()).collect()
    }

    #[test]
    fn rows_are_checks_and_columns_products() {
        let wide = plain(200);
        assert_eq!(wide.len(), 1);
        let lines: Vec<&str> = wide[0].lines().map(str::trim_end).collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["one", "one", "two", "three"]);
        assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["tuned", "stock", "tuned", "tuned"]);
        assert_eq!(lines[2], "GET                 yes      yes      yes, closes*  no start");
        assert_eq!(lines[3], "Pipelined requests  1 of 3*  1 of 3*  yes           no start");
        assert_eq!(lines.len(), 6, "{wide:?}");
    }

    #[test]
    fn a_narrow_terminal_gets_pages_and_no_line_is_wider() {
        let narrow = plain(42);
        assert_eq!(narrow.len(), 2, "{narrow:#?}");
        assert!(narrow.iter().flat_map(|page| page.lines()).all(|line| line.chars().count() <= 42));
        assert_eq!(plain(10).len(), 4, "one product a page at least");
    }
}
