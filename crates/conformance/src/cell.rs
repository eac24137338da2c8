//! The result of a check: a few words for the matrix, and a note for details. Checks return it, `run` collects it, and
//! `weir products test` shows it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use weir_product::client::{RequestError, Response};

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
    pub fn failure(failure: &RequestError) -> Cell {
        Cell::no(word(failure)).with(detail(failure).unwrap_or_default())
    }

    /// A response with a wrong status.
    pub fn status(response: &Response) -> Cell {
        let words = first_words(response).map(|words| format!("it returns {}: {words}", response.status));
        Cell::no(response.status.to_string()).with(words.unwrap_or_default())
    }

    /// This cell and what was found in another protocol: a note says where that differs, and what is not done in one of both
    /// is [`Verdict::Odd`].
    pub fn and_over(self, other: Cell, protocol: &str) -> Cell {
        if self.says == other.says {
            return self;
        }
        let verdict = match (self.verdict, other.verdict) {
            (Verdict::Absent, _) => return other,
            (_, Verdict::Absent) => return self,
            (one, two) if one == two => one,
            _ => Verdict::Odd,
        };
        let note = other.note.map(|note| format!(" ({note})")).unwrap_or_default();
        Cell { verdict, ..self }.with(format!("over {protocol}: {}{note}", other.says))
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

/// A failure ends a check.
impl From<RequestError> for Cell {
    fn from(failure: RequestError) -> Cell {
        Cell::failure(&failure)
    }
}

/// The cell, whether the check ended early or not.
pub fn either(result: Result<Cell, Cell>) -> Cell {
    result.unwrap_or_else(|cell| cell)
}

/// The response if it has this status, else the cell that says what came instead.
pub fn with_status(status: u16, response: Result<Response, RequestError>) -> Result<Response, Cell> {
    match response? {
        response if response.status == status => Ok(response),
        response => Err(Cell::status(&response)),
    }
}

/// The response if it is a 200 with this body, else the cell that says what came instead.
pub fn with_body(body: &[u8], response: Result<Response, RequestError>) -> Result<Response, Cell> {
    match with_status(200, response)? {
        response if response.body == body => Ok(response),
        response => {
            let sizes = format!("{} bytes; the origin's {}", response.body.len(), body.len());
            Err(Cell::no("wrong body").with(sizes))
        }
    }
}

/// A failure in a word or two, with the product as the subject: `closes`.
pub fn word(failure: &RequestError) -> &'static str {
    match failure {
        RequestError::Refused => "refuses",
        RequestError::Unreachable(_) => "unreachable",
        RequestError::Closed => "closes",
        RequestError::Cut => "cuts off",
        RequestError::Reset => "resets",
        RequestError::Silent(_) => "hangs",
        RequestError::Malformed(_) => "not HTTP",
        RequestError::Unexpected(_) => "wrong response",
        RequestError::Tls(_) => "TLS fails",
        RequestError::Stream(_) => "stream reset",
        RequestError::Stopped => "stopped",
    }
}

/// What the word leaves out.
pub fn detail(failure: &RequestError) -> Option<String> {
    match failure {
        RequestError::Silent(time) => Some(format!("nothing came for {}", about(*time))),
        RequestError::Unreachable(why)
        | RequestError::Malformed(why)
        | RequestError::Unexpected(why)
        | RequestError::Tls(why)
        | RequestError::Stream(why) => Some(why.clone()),
        _ => None,
    }
}

/// The beginning of a text body, on one line: usually the product's own error message. Most products send HTML, whose
/// tags are left out.
pub fn first_words(response: &Response) -> Option<String> {
    let text = std::str::from_utf8(&response.body).ok()?;
    // After each `<`, what stands before the next `>` is a tag's inside.
    let mut pieces = text.split('<');
    let before = pieces.next().unwrap_or_default();
    let plain = pieces.map(|piece| piece.split_once('>').map_or("", |(_, after)| after));
    let words: Vec<&str> = std::iter::once(before).chain(plain).flat_map(str::split_whitespace).collect();
    let mut line = words.join(" ");
    if line.chars().count() > 80 {
        line = line.chars().take(79).chain(['…']).collect();
    }
    (!line.is_empty() && !line.chars().any(char::is_control)).then_some(line)
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
    fn what_a_product_says_in_html_is_read() {
        let words = |body: &str| {
            let response = Response::new("HTTP/1.1", 502, [].into_iter(), weir_wire::http1::Framing::None);
            first_words(&Response { body: body.into(), ..response })
        };
        assert_eq!(words("<html>\r\n<h1>502 Bad\nGateway</h1>\n</html>").as_deref(), Some("502 Bad Gateway"));
        assert_eq!(words("1 > 0").as_deref(), Some("1 > 0"));
        assert_eq!(words(""), None);
        assert_eq!(words("a\u{1b}[31m"), None, "no control characters reach a terminal");
        assert_eq!(words(&"word ".repeat(40)).map(|w| w.chars().count()), Some(80));
    }

    #[test]
    fn notes_follow_each_other() {
        let cell = Cell::yes().with("one").with("").with("two");
        assert_eq!(cell.note.as_deref(), Some("one; two"));
        assert_eq!(Cell::yes().note, None);
    }

    #[test]
    fn what_is_found_in_two_protocols_is_one_cell() {
        let both = |one: &Cell, two: &Cell| one.clone().and_over(two.clone(), "B");
        let no = Cell::no("closes").with("at a set");
        assert_eq!(both(&Cell::yes(), &Cell::yes()), Cell::yes());
        assert_eq!(both(&Cell::yes(), &no), Cell::odd("yes").with("over B: closes (at a set)"));
        assert_eq!(both(&no, &Cell::yes()), Cell::odd("closes").with("at a set").with("over B: yes"));
        assert_eq!(both(&Cell::reading("1"), &Cell::reading("2")), Cell::reading("1").with("over B: 2"));
        assert_eq!(both(&Cell::absent(""), &no), no);
        assert_eq!(both(&no, &Cell::absent("none")), no);
    }

    #[test]
    fn a_cell_is_read_as_it_was_written() {
        for cell in [Cell::yes(), Cell::absent("no TLS"), Cell::reading("9").with("of 1,000")] {
            let text = serde_json::to_string(&cell).expect("a cell is JSON");
            assert_eq!(serde_json::from_str::<Cell>(&text).expect("and is read again"), cell);
        }
        assert_eq!(serde_json::to_string(&Cell::yes()).expect("JSON"), r#"{"verdict":"yes","says":"yes","note":null}"#);
    }
}
