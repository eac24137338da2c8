//! Reads a CSV file whose columns are fields of templates.
//!
//! The first line names the columns; a field `{{NAME}}` of a request is filled in from its row (see [`crate::template`]).
//! This module does not read the file itself.

use csv::{ErrorKind, ReaderBuilder, StringRecord};
use weir_model::InputError;
use weir_model::load::Feed;

use crate::template;

/// The most rows.
pub const MOST_ROWS: usize = 1_000_000;

const WANTED: &str = "a CSV file: a line with the names of the columns, and a line for each row";

/// Reads a file's bytes. `source` is what the file is called in errors.
///
/// # Errors
/// The first line that is wrong, a column whose name no field can have, or more than [`MOST_ROWS`] rows.
pub fn parse(source: &str, bytes: &[u8]) -> Result<Feed, InputError> {
    let wrong = |line: Option<u64>, found: String, wanted: &str| InputError {
        line: line.map(|line| line as usize),
        ..InputError::of(source, found, wanted)
    };
    let of_csv = |error: csv::Error| match error.kind() {
        ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let found = format!("{len} values where the first line has {expected_len} columns");
            wrong(pos.as_ref().map(csv::Position::line), found, WANTED)
        }
        ErrorKind::Utf8 { pos, .. } => {
            wrong(pos.as_ref().map(csv::Position::line), "it is not UTF-8".to_owned(), WANTED)
        }
        _ => wrong(None, error.to_string(), WANTED),
    };
    let mut reader = ReaderBuilder::new().from_reader(bytes);
    let heads = reader.headers().map_err(of_csv)?;
    let columns: Vec<String> = heads.iter().map(|name| name.trim_start_matches('\u{feff}').trim().to_owned()).collect();
    for (at, name) in columns.iter().enumerate() {
        if !template::can_be_column(name) {
            let wanted = "a name without braces and colons that is no field of templates, such as user";
            return Err(wrong(Some(1), format!("a column named {name:?}"), wanted));
        }
        if columns[..at].contains(name) {
            return Err(wrong(Some(1), format!("two columns named {name:?}"), "a name of its own for each"));
        }
    }
    let mut cells = Vec::new();
    let (mut rows, mut row) = (0, StringRecord::new());
    while reader.read_record(&mut row).map_err(of_csv)? {
        if rows == MOST_ROWS {
            return Err(wrong(
                row.position().map(csv::Position::line),
                "one more row than a million".to_owned(),
                "fewer rows",
            ));
        }
        rows += 1;
        cells.extend(row.iter().map(str::to_owned));
    }
    Feed::new(columns, cells).ok_or_else(|| wrong(None, "it has no rows".to_owned(), WANTED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_and_rows_are_read() {
        let feed = parse("users.csv", b"user, first name \nann,\"A, B\"\n\"b\"\"b\",\n").expect("right");
        assert_eq!(feed.columns(), ["user", "first name"]);
        assert_eq!((feed.rows(), feed.value(0, 1), feed.value(1, 0), feed.value(1, 1)), (2, "A, B", "b\"b", ""));
        assert_eq!(parse("x", "\u{feff}a\n1\n".as_bytes()).expect("right").columns(), ["a"]);
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, shown) in [
            (&b"a,b\n1,2\n3\n"[..], "users.csv:3: 1 values where the first line has 2 columns"),
            (b"a,seq\n1,2\n", "users.csv:1: a column named \"seq\""),
            (b"a,\n1,2\n", "users.csv:1: a column named \"\""),
            (b"a{{\n1\n", "users.csv:1: a column named \"a{{\""),
            (b"a:b\n1\n", "users.csv:1: a column named \"a:b\""),
            (b"a,a\n1,2\n", "users.csv:1: two columns named \"a\""),
            (b"a\n1\n\xff\n", "users.csv:3: it is not UTF-8"),
            (b"a\n", "users.csv: it has no rows"),
            (b"", "users.csv: it has no rows"),
        ] {
            let error = parse("users.csv", text).expect_err(shown).to_string();
            assert!(error.starts_with(shown) && error.contains("expected: "), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            rows in proptest::collection::vec(("\\PC{0,6}", "[a-z\",\n]{1,6}"), 1..20),
        ) {
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(["a", "b"]).unwrap();
            rows.iter().for_each(|(a, b)| writer.write_record([a, b]).unwrap());
            let feed = parse("x", &writer.into_inner().unwrap()).unwrap();
            let read: Vec<(String, String)> =
                feed.values(0).zip(feed.values(1)).map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
            prop_assert_eq!(read, rows);
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = parse("", &bytes);
        }
    }
}
