//! Parses files of times at which requests are due, for [`weir_model::load::OfferedRate::Replay`].
//!
//! Each line has one time since the load's start: seconds (`12.5`) or a number with a unit (`12500ms`). Times ascend;
//! equal ones are requests due together. Text after a `#` is ignored, and so are empty lines. This module does not read
//! the file itself.

use weir_model::InputError;
use weir_model::text::without_mark;
use weir_model::units::HumanDuration;

/// A day: longer than any load.
const LONGEST_S: f64 = 86_400.0;

const WANTED: &str = "one time a line, in seconds (12.5) or with a unit (12500ms); or a recording, of which weir help load request lists \
                      the formats";

/// The times, seconds. `source` is what the file is called in errors.
///
/// # Errors
/// The first line that is not a time or is earlier than the one before; or a file without any time.
pub fn parse(source: &str, text: &str) -> Result<Vec<f64>, InputError> {
    let error =
        |line: Option<usize>, found: String, wanted: &str| InputError { line, ..InputError::of(source, found, wanted) };
    let mut times: Vec<f64> = Vec::new();
    for (line, written) in (1..).zip(without_mark(text).lines()) {
        let written = written.split('#').next().unwrap_or_default().trim();
        if written.is_empty() {
            continue;
        }
        let time = seconds(written).ok_or_else(|| error(Some(line), format!("{written:?} is not a time"), WANTED))?;
        if time > LONGEST_S {
            return Err(error(Some(line), format!("{written:?} is after more than a day"), "at most 86400 s"));
        }
        if let Some(before) = times.last().filter(|before| **before > time) {
            return Err(error(
                Some(line),
                format!("{written:?} is before {before} s, the time above it"),
                "times that ascend",
            ));
        }
        times.push(time);
    }
    if times.is_empty() {
        return Err(error(None, "it has no times".to_owned(), WANTED));
    }
    Ok(times)
}

fn seconds(text: &str) -> Option<f64> {
    // Rust's own parser takes `inf`, `nan` and signs as well. Exponents are what programs write for small numbers.
    let plain = text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    if plain && let Ok(seconds) = text.parse::<f64>() {
        return Some(seconds);
    }
    text.parse::<HumanDuration>().ok().map(|time| time.0.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn seconds_units_and_comments_are_read() {
        let text = "# recorded on a Monday\n0\n 0.25 # two at once\n250ms\n\n1e0\r\n1500 ms\n2m\n";
        assert_eq!(parse("times", text).unwrap(), [0.0, 0.25, 0.25, 1.0, 1.5, 120.0]);
        assert_eq!(parse("times", "\u{feff}0\r\n0.1\r\n").unwrap(), [0.0, 0.1]);
    }

    #[test]
    fn errors_say_where_and_what() {
        for (text, shown) in [
            ("1\nsoon\n", "times.txt:2: \"soon\" is not a time\n  expected: one time a line"),
            ("-1\n", "times.txt:1: \"-1\" is not a time"),
            ("nan\n", "times.txt:1: \"nan\" is not a time"),
            ("1, 2\n", "times.txt:1: \"1, 2\" is not a time"),
            (
                "1\n2\n# back\n1.5\n",
                "times.txt:4: \"1.5\" is before 2 s, the time above it\n  expected: times that ascend",
            ),
            ("86401\n", "times.txt:1: \"86401\" is after more than a day"),
            ("", "times.txt: it has no times"),
            ("# nothing\n", "times.txt: it has no times"),
        ] {
            let error = parse("times.txt", text).unwrap_err().to_string();
            assert!(error.starts_with(shown), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(mut times in proptest::collection::vec(0f64..86_400.0, 1..50)) {
            times.sort_by(f64::total_cmp);
            let text: String = times.iter().map(|time| format!("{time}\n")).collect();
            prop_assert_eq!(parse("", &text).unwrap(), times);
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = parse("", &text);
        }
    }
}
