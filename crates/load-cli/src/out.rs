//! Writes results to standard output, as lines, JSON or columns, and everything else to standard error. Used by every verb.
//!
//! A closed pipe (`weir products list | head -1`) is not an error. A full disk under `weir ... > file` is.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

use console::{Alignment, measure_text_width, pad_str};
use serde::Serialize;
use weir_model::text::wrapped;

use crate::exit::{Exit, Failure, VerbResult};

/// Width of text that is wrapped for every terminal.
pub const WIDTH: usize = 80;

/// Writes a line of the result.
///
/// # Errors
/// When standard output cannot be written, unless its reader has closed it.
pub fn result(line: Arguments<'_>) -> Result<(), Failure> {
    write_line(&mut std::io::stdout().lock(), line)
        .map_err(|e| Failure::missing(format!("cannot write the result to standard output: {e}")))
}

/// Writes a line for the person watching. Errors are ignored: there is nowhere to report them.
pub fn remark(line: Arguments<'_>) {
    let _ = write_line(&mut std::io::stderr().lock(), line);
}

fn write_line(to: &mut impl Write, line: Arguments<'_>) -> std::io::Result<()> {
    match writeln!(to, "{line}").and_then(|()| to.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// `println!` for results: returns early with a [`Failure`] when standard output cannot be written.
#[macro_export]
macro_rules! output {
    () => { $crate::output!("") };
    ($($words:tt)*) => { $crate::out::result(format_args!($($words)*))? };
}

/// `eprintln!` that a closed standard error does not break.
#[macro_export]
macro_rules! remark {
    ($($words:tt)*) => { $crate::out::remark(format_args!($($words)*)) };
}

/// Prints a value as indented JSON, which is the whole result of a verb.
///
/// # Errors
/// When standard output cannot be written.
pub fn json(value: &impl Serialize) -> VerbResult {
    output!("{}", serde_json::to_string_pretty(value).map_err(Failure::missing)?);
    Ok(Exit::Ok)
}

/// Columns of the terminal that standard output is, or so many where it is none.
pub fn terminal_width(without_terminal: usize) -> usize {
    let terminal = console::Term::stdout();
    if terminal.is_term() { usize::from(terminal.size().1) } else { without_terminal }
}

/// Rows of cells in columns, two blanks apart, a line for each row; an empty first cell indents. `align` has a letter for each
/// column: `l` or `r`. A last cell on the left may have several lines, and wraps at `width`: all stand below its first.
pub fn columns(align: &str, width: usize, rows: &[Vec<String>]) -> String {
    let widest =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| measure_text_width(cell)).max();
    let columns: Vec<(char, usize)> =
        align.chars().enumerate().map(|(i, side)| (side, widest(i).unwrap_or(0))).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (i, (cell, (side, widest))) in row.iter().zip(&columns).enumerate() {
            let gap = if i == 0 { "" } else { "  " };
            line.push_str(gap);
            match (side, i + 1 == row.len()) {
                ('l', true) => line.push_str(&below_itself(cell, measure_text_width(&line), width)),
                ('l', false) => line.push_str(&pad_str(cell, *widest, Alignment::Left, None)),
                _ => line.push_str(&pad_str(cell, *widest, Alignment::Right, None)),
            }
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Text that begins at a column, and whose further lines begin there, too.
fn below_itself(text: &str, column: usize, width: usize) -> String {
    let room = width.saturating_sub(column).max(20);
    let lines: Vec<String> = text.lines().map(|line| wrapped(line, room, 0)).collect();
    lines.join("\n").replace('\n', &format!("\n{:column$}", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ends(ErrorKind);

    impl Write for Ends {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_left_is_no_error_and_a_full_disk_is() {
        assert!(write_line(&mut Ends(ErrorKind::BrokenPipe), format_args!("x")).is_ok());
        assert!(write_line(&mut Ends(ErrorKind::StorageFull), format_args!("x")).is_err());
        let mut text = Vec::new();
        assert!(write_line(&mut text, format_args!("{} lines", 2)).is_ok());
        assert_eq!(text, b"2 lines\n");
    }

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn columns_align_and_end_without_blanks() {
        assert_eq!(columns("lrl", 80, &rows(&[&["a", "bcd", "e"], &["abc", "b", ""]])), "a    bcd  e\nabc    b");
        assert_eq!(columns("lr", 80, &rows(&[&["", "10"], &["x", "9"]])), "   10\nx   9");
        assert_eq!(columns("ll", 80, &rows(&[&["\u{1b}[31mab\u{1b}[0m", "c"], &["a", "b"]])).lines().count(), 2);
    }

    #[test]
    fn a_last_cell_stands_below_itself() {
        let text = columns("lll", 27, &rows(&[&["", "a", "some words that are long\nand more"], &["", "bcd", "e"]]));
        assert_eq!(text, "  a    some words that are\n       long\n       and more\n  bcd  e");
    }
}
