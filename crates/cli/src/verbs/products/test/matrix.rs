//! The matrix of a conformance test in a terminal: checks as rows, products as columns, on as many pages as the width
//! needs. Each kind of protocols has its own. `weir products test` prints it.

use console::{measure_text_width, style};
use weir_conformance::{CHECKS, Cell, Check, Kind, Verdict};

use super::record::Named;
use crate::out;

/// One page for as many products as fit, one at least.
pub fn pages(tested: &[Named], width: usize) -> Vec<String> {
    Kind::ALL.into_iter().flat_map(|kind| pages_of(kind, &of(kind, tested), width)).collect()
}

/// Those that speak protocols of a kind.
pub fn of<'a>(kind: Kind, tested: impl IntoIterator<Item = &'a Named>) -> Vec<&'a Named> {
    tested.into_iter().filter(|named| named.tested.kinds.contains(&kind)).collect()
}

/// The checks of a kind that were made.
pub fn checks(kind: Kind, tested: &[&Named]) -> Vec<&'static Check> {
    let is_asked = |check: &&Check| tested.iter().any(|named| named.tested.cell(&check.name).is_some());
    CHECKS.iter().filter(|check| kind.has(check)).filter(is_asked).collect()
}

fn pages_of(kind: Kind, tested: &[&Named], width: usize) -> Vec<String> {
    let checks = checks(kind, tested);
    let several = tested.iter().any(|named| named.tested.profile != tested[0].tested.profile);
    // Two lines of heading, then the cells.
    let titles: Vec<String> =
        ["", ""].into_iter().chain(checks.iter().map(|check| check.title.as_str())).map(str::to_owned).collect();
    let column = |named: &&Named| -> Vec<String> {
        let second = if several { &named.tested.profile } else { &named.version };
        let head = [style(&named.tested.product).bold().to_string(), second.clone()];
        head.into_iter().chain(checks.iter().map(|check| painted(named, &check.name))).collect()
    };
    let widest = |column: &[String]| column.iter().map(|cell| measure_text_width(cell)).max().unwrap_or(0);
    let mut pages: Vec<Vec<Vec<String>>> = Vec::new();
    let mut room = 0;
    for column in tested.iter().map(column) {
        let needed = widest(&column) + 2;
        match pages.last_mut() {
            Some(page) if needed <= room => {
                page.push(column);
                room -= needed;
            }
            _ => {
                room = width.saturating_sub(widest(&titles) + needed);
                pages.push(vec![titles.clone(), column]);
            }
        }
    }
    let page = |columns: &Vec<Vec<String>>| {
        let row = |row: usize| columns.iter().map(|column| column[row].clone()).collect();
        out::columns(&"l".repeat(columns.len()), usize::MAX, &(0..titles.len()).map(row).collect::<Vec<_>>())
    };
    pages.iter().map(page).collect()
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

fn painted(named: &Named, check: &str) -> String {
    let words = style(words(named, check));
    match named.tested.cell(check).map(|cell| cell.verdict) {
        Some(Verdict::No) => words.red(),
        Some(Verdict::Odd | Verdict::Unknown) => words.yellow(),
        Some(Verdict::Absent) => words.dim(),
        _ => words,
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::super::record::{example, store};
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
    fn each_kind_of_protocols_has_its_own_matrix() {
        let mut record = example();
        record.tested.push(store());
        let both: Vec<String> =
            pages(&record.tested, 200).iter().map(|page| console::strip_ansi_codes(page).into_owned()).collect();
        assert_eq!(both.len(), 2);
        assert!(both[0].contains("three") && !both[0].contains("five"), "{both:?}");
        let rows: Vec<Vec<&str>> = both[1].lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows, [&["five"][..], &["1.2.3"], &["Set", "and", "get", "yes"], &["Origins", "gone", "-"]]);
    }

    #[test]
    fn a_narrow_terminal_gets_pages_and_no_line_is_wider() {
        let narrow = plain(42);
        assert_eq!(narrow.len(), 2, "{narrow:#?}");
        assert!(narrow.iter().flat_map(|page| page.lines()).all(|line| line.chars().count() <= 42));
        assert_eq!(plain(10).len(), 4, "one product a page at least");
    }
}
