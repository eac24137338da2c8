//! Draws a table for the terminal at a given width.

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table as Grid, Width, presets,
};
use weir_model::text::wrapped;

use super::{RowKind, Table, dropped, fitting, one_line};

/// Words that are longer than this may be broken, but no numbers.
const LONGEST_WORD: usize = 24;

/// Blanks beside each column.
const PADDING: usize = 2;

/// Draws `table` at most `width` characters wide. Columns that can be spared are left out, then cells wrap between words,
/// and what is still too wide becomes several tables below each other.
pub fn draw(table: &Table, width: usize, colour: bool) -> String {
    let width = width.max(20);
    let kept = fitting(table, width, |i| widest(table, i));
    let (bold, plain) = if colour { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    let mut text = String::new();
    if !table.title.is_empty() {
        text = format!("{bold}{}{plain}\n", one_line(&table.title));
    }
    let grids: Vec<String> =
        parts(table, &kept, width).iter().map(|part| grid(table, part, width, colour).trim_fmt() + "\n").collect();
    text.push_str(&grids.join("\n"));
    let narrow = dropped(table, &kept).map(|names| format!("Not shown at this width: {names}."));
    let remarks = table.remarks.iter().map(|remark| format!("- {remark}"));
    for note in table.notes.iter().chain(&narrow).cloned().chain(remarks) {
        for line in wrapped(&one_line(&note), width - 2, 0).lines() {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

/// The width in which no cell of a column wraps.
fn widest(table: &Table, column: usize) -> usize {
    let lines = |text: String| text.lines().map(chars).max();
    texts(table, column).flat_map(lines).max().unwrap_or(0) + PADDING
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// What stands in a column: its header and its cells.
fn texts(table: &Table, column: usize) -> impl Iterator<Item = String> {
    std::iter::once(table.columns[column].header()).chain(table.rows.iter().map(move |row| words(table, row, column)))
}

fn words(table: &Table, row: &super::TableRow, column: usize) -> String {
    row.cells.get(column).map(|cell| one_line(&cell.words(table.columns[column].details))).unwrap_or_default()
}

/// The least width in which no number and no word of ordinary length is broken.
fn least(table: &Table, column: usize) -> usize {
    let longest = |text: String| text.split_whitespace().map(chars).max().unwrap_or(0);
    let header = longest(table.columns[column].header()).min(LONGEST_WORD);
    let cells = table.rows.iter().map(|row| longest(words(table, row, column))).max().unwrap_or(0);
    let cells = if table.columns[column].numeric { cells } else { cells.min(LONGEST_WORD) };
    cells.max(header) + PADDING
}

/// The columns of each of the tables that stand below each other: all begin with the columns of words that come first.
fn parts(table: &Table, kept: &[usize], width: usize) -> Vec<Vec<usize>> {
    let names = kept.iter().take_while(|i| !table.columns[**i].numeric).count();
    let (names, others) = kept.split_at(names);
    let used = |part: &[usize]| part.iter().map(|i| least(table, *i)).sum::<usize>();
    let mut parts = vec![names.to_vec()];
    for column in others {
        let last = parts.len() - 1;
        if parts[last].len() > names.len() && used(&parts[last]) + least(table, *column) > width {
            parts.push(names.to_vec());
        }
        let last = parts.len() - 1;
        parts[last].push(*column);
    }
    parts
}

fn grid(table: &Table, columns: &[usize], width: usize, colour: bool) -> Grid {
    let mut grid = Grid::new();
    grid.load_style(presets::NOTHING);
    grid.set_content_arrangement(ContentArrangement::Dynamic);
    grid.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    if colour {
        grid.enforce_styling();
    } else {
        grid.force_no_tty();
    }
    let align = |i: usize| if table.columns[i].numeric { CellAlignment::Right } else { CellAlignment::Left };
    let header = columns.iter().map(|i| {
        let cell = Cell::new(table.columns[*i].header()).set_alignment(align(*i));
        if colour { cell.add_attribute(Attribute::Bold) } else { cell }
    });
    grid.set_header(header.collect::<Vec<_>>());
    for row in &table.rows {
        let cells = columns.iter().map(|i| {
            let cell = Cell::new(words(table, row, *i)).set_alignment(align(*i));
            match row.kind {
                RowKind::Baseline if colour => cell.add_attribute(Attribute::Dim),
                RowKind::Marked if colour => cell.fg(Color::Yellow),
                RowKind::Unranked if colour => cell.fg(Color::Red),
                _ => cell,
            }
        });
        grid.add_row(cells.collect::<Vec<_>>());
    }
    let wraps = columns.iter().map(|i| widest(table, *i)).sum::<usize>() > width;
    for (place, i) in columns.iter().enumerate().filter(|(_, i)| wraps && table.columns[**i].numeric) {
        if let Some(column) = grid.column_mut(place) {
            let least = u16::try_from(least(table, *i)).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::super::{Cell, Column, TableRow};
    use super::*;

    fn table() -> Table {
        let columns = vec![
            Column::text("Product"),
            Column::number("Rate", "requests/s"),
            Column::number("p99", "ms").dispensable(1),
        ];
        let cells =
            vec![Cell::from("a\u{1b}[31m product"), Cell::number("45,100", 45_100.0), Cell::number("1.20", 1.2)];
        let rows = vec![TableRow { kind: RowKind::Plain, cells }];
        Table { title: "Rates".to_string(), columns, rows, ..Table::default() }
    }

    #[test]
    fn what_can_be_spared_goes_where_space_is_short() {
        assert!(draw(&table(), 80, false).contains("1.20"));
        let narrow = draw(&table(), 36, false);
        assert!(!narrow.contains("1.20") && narrow.contains("Not shown at this width: p99."), "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 36), "{narrow}");
    }

    #[test]
    fn escapes_from_a_run_do_not_reach_the_terminal() {
        assert!(!draw(&table(), 80, false).contains('\u{1b}'));
    }

    #[test]
    fn numbers_stay_whole_however_many_columns_there_are() {
        let number = |row: usize, product: usize| format!("{}.{:02}", 1_000 * (row + 1) + product, product);
        let names = (0..25).map(|product| format!("a-product-with-a-long-name-{product} as-published"));
        let columns = [Column::text("Workload"), Column::text("Load")].into_iter();
        let columns = columns.chain(names.map(|name| Column::number(&name, "").with_details()));
        let rows = (0..4).map(|row| {
            let numbers = (0..25).map(|product| Cell::number(number(row, product), 0.0).detail("rank 10\u{2013}12"));
            TableRow {
                kind: RowKind::Plain,
                cells: [Cell::from("http-tiny"), Cell::from("max")].into_iter().chain(numbers).collect(),
            }
        });
        let wide = Table { columns: columns.collect(), rows: rows.collect(), ..Table::default() };
        for width in [60, 80, 120, 150] {
            let text = draw(&wide, width, false);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            for (row, product) in (0..4).flat_map(|row| (0..25).map(move |product| (row, product))) {
                assert!(text.split_whitespace().any(|word| word == number(row, product)), "at {width}: {text}");
            }
        }
    }
}
