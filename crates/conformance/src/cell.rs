//! The result of a check: a few words for the matrix, and a note for details. Checks return it, `run` collects it, and
//! `weir products test` shows it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::client::{Failure, Response};

/// The kind of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The product does it, as HTTP requires or as a client would hope.
    Yes,
    /// The product does not do it.
    No,
    /// The product does it in a way that a reader must know about.
    Odd,
    /// A figure measured in this run.
    Reading,
    /// Not tested: the product does not speak this, or does not describe it.
    Absent,
    /// Tested without a result.
    Unknown,
}

/// The result of a check for one product in one profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The kind of the result.
    pub verdict: Verdict,
    /// The result, short enough for a column.
    pub says: String,
    /// Further details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Cell {
    /// A cell without a note.
    pub fn new(verdict: Verdict, says: impl Into<String>) -> Cell {
        Cell { verdict, says: says.into(), note: None }
    }

    /// `yes`.
    pub fn yes() -> Cell {
        Cell::new(Verdict::Yes, "yes")
    }

    /// The product does not do it.
    pub fn no(says: impl Into<String>) -> Cell {
        Cell::new(Verdict::No, says)
    }

    /// The product does it, but differently.
    pub fn odd(says: impl Into<String>) -> Cell {
        Cell::new(Verdict::Odd, says)
    }

    /// A figure.
    pub fn reading(says: impl Into<String>) -> Cell {
        Cell::new(Verdict::Reading, says)
    }

    /// Not tested, for this reason.
    pub fn absent(why: impl Into<String>) -> Cell {
        Cell::new(Verdict::Absent, "-").with(why)
    }

    /// Tested without a result, for this reason.
    pub fn unknown(why: impl Into<String>) -> Cell {
        Cell::new(Verdict::Unknown, "?").with(why)
    }

    /// There was no response where one was expected.
    pub fn failure(failure: &Failure) -> Cell {
        let cell = Cell::no(failure.word());
        match failure.detail() {
            Some(detail) => cell.with(detail),
            None => cell,
        }
    }

    /// A response with a wrong status.
    pub fn status(response: &Response) -> Cell {
        let cell = Cell::no(response.status.to_string());
        match response.first_words() {
            Some(words) => cell.with(format!("it answers {}: {words}", response.status)),
            None => cell,
        }
    }

    /// The same cell with one more note.
    pub fn with(mut self, note: impl Into<String>) -> Cell {
        let note = note.into();
        if !note.is_empty() {
            self.note = Some(match self.note {
                Some(earlier) => format!("{earlier}; {note}"),
                None => note,
            });
        }
        self
    }
}

/// A time rounded to the precision of a single reading: `<1 ms`, `12 ms`, `0.2 s`, `31 s`.
pub fn about(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    match ms {
        _ if ms < 1.0 => "<1 ms".to_owned(),
        _ if ms < 99.5 => format!("{ms:.0} ms"),
        _ if ms < 9_950.0 => format!("{:.1} s", ms / 1e3),
        _ => format!("{:.0} s", ms / 1e3),
    }
}

/// A size in two or three digits: `880 B`, `4.4 KiB`, `12 MiB`.
pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        // The unit is chosen after rounding: 1,023.9 KiB is 1 MiB.
        if value < 999.5 || unit == "GiB" {
            let decimals = usize::from(value < 9.95 && unit != "B");
            return format!("{value:.decimals$} {unit}");
        }
        value /= 1024.0;
    }
    String::new()
}

/// A failure ends a check: see [`crate::Check::run`].
impl From<Failure> for Cell {
    fn from(failure: Failure) -> Cell {
        Cell::failure(&failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_to_what_one_reading_is_worth() {
        let ms = |ms: f64| about(Duration::from_secs_f64(ms / 1e3));
        assert_eq!(
            [0.2, 1.4, 99.4, 120.0, 2_040.0, 31_200.0].map(ms),
            ["<1 ms", "1 ms", "99 ms", "0.1 s", "2.0 s", "31 s"]
        );
        assert_eq!([0, 880, 4_506, 12_582_912, 1_048_000].map(size), ["0 B", "880 B", "4.4 KiB", "12 MiB", "1.0 MiB"]);
    }

    #[test]
    fn notes_follow_each_other() {
        let cell = Cell::yes().with("one").with("").with("two");
        assert_eq!(cell.note.as_deref(), Some("one; two"));
        assert_eq!(Cell::yes().note, None);
    }

    #[test]
    fn a_cell_is_read_as_it_was_written() {
        for cell in [Cell::yes(), Cell::absent("no TLS"), Cell::reading("9").with("of 1,000")] {
            let text = serde_json::to_string(&cell).expect("a cell is JSON");
            assert_eq!(serde_json::from_str::<Cell>(&text).expect("and is read again"), cell);
        }
        assert_eq!(serde_json::to_string(&Cell::yes()).expect("JSON"), r#"{"verdict":"yes","says":"yes"}"#);
    }
}
