//! Draws a table for the terminal at a given width. Called by `terminal` and `weir-compare`.

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table as Grid, presets};
use weir_model::text::wrapped;

use super::{RowKind, Table, one_line};

/// Draws `table` at most `width` characters wide: columns that can be spared are left out, then cells wrap.
pub fn draw(table: &Table, width: usize, colour: bool) -> String {
    let mut kept: Vec<usize> = (0..table.columns.len()).collect();
    loop {
        let grid = grid(table, &kept, colour);
        // Three characters between columns, none at the sides.
        let needed: usize = grid.column_max_content_widths().iter().map(|w| usize::from(*w) + 2).sum();
        let least_wanted = kept.iter().copied().max_by_key(|i| table.columns[*i].dispensable);
        match least_wanted.filter(|i| table.columns[*i].dispensable > 0) {
            Some(i) if needed > width => kept.retain(|kept| *kept != i),
            _ => return finish(table, grid, &kept, width, colour),
        }
    }
}

fn grid(table: &Table, kept: &[usize], colour: bool) -> Grid {
    let mut grid = Grid::new();
    grid.load_style(presets::NOTHING);
    if colour {
        grid.enforce_styling();
    } else {
        grid.force_no_tty();
    }
    let align = |i: usize| if table.columns[i].numeric { CellAlignment::Right } else { CellAlignment::Left };
    let header = kept.iter().map(|i| {
        let cell = Cell::new(table.columns[*i].header()).set_alignment(align(*i));
        if colour { cell.add_attribute(Attribute::Bold) } else { cell }
    });
    grid.set_header(header.collect::<Vec<_>>());
    for row in &table.rows {
        let cells = kept.iter().map(|i| {
            let words = row.cells.get(*i).map(|cell| one_line(&cell.words(table.columns[*i].details)));
            let cell = Cell::new(words.unwrap_or_default()).set_alignment(align(*i));
            match row.kind {
                RowKind::Baseline if colour => cell.add_attribute(Attribute::Dim),
                RowKind::Marked if colour => cell.fg(Color::Yellow),
                RowKind::Unranked if colour => cell.fg(Color::Red),
                _ => cell,
            }
        });
        grid.add_row(cells.collect::<Vec<_>>());
    }
    grid
}

fn finish(table: &Table, mut grid: Grid, kept: &[usize], width: usize, colour: bool) -> String {
    grid.set_content_arrangement(ContentArrangement::Dynamic);
    grid.set_width(u16::try_from(width).unwrap_or(u16::MAX).max(20));
    let (bold, plain) = if colour { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    let mut text = String::new();
    if !table.title.is_empty() {
        text = format!("{bold}{}{plain}\n", one_line(&table.title));
    }
    text.push_str(&grid.trim_fmt());
    text.push('\n');
    let skipped: Vec<String> =
        (0..table.columns.len()).filter(|i| !kept.contains(i)).map(|i| table.columns[i].name.clone()).collect();
    let narrow = (!skipped.is_empty()).then(|| format!("Not shown at this width: {}.", skipped.join(", ")));
    for note in table.notes.iter().chain(narrow.iter()) {
        for line in wrapped(&one_line(note), width.max(20) - 2, 0).lines() {
            text.push_str("  ");
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Cell, Column, TableRow};

    fn table() -> Table {
        let columns = vec![
            Column::text("Product"),
            Column::number("Rate", "requests/s"),
            Column::number("p99", "ms").dispensable(1),
        ];
        let cells =
            vec![Cell::text("a\u{1b}[31m product"), Cell::number("45,100", 45_100.0), Cell::number("1.20", 1.2)];
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
}
