//! The table of the formats of other load generators, and the search for them in a file. A format is an entry here and a reader.
//!
//! A text is known by its marks: lines that a tool prints once in a result. A JSON document is known by the keys that it has, in
//! whatever order. Other lines, such as those of a script around the tool, are passed over. This module does not know what a
//! result means.

use serde_json::{Deserializer, Value};
use weir_model::InputError;
use weir_model::text::line_at;

use super::{ToolResult, error, readers, wanted};

/// A format.
struct Format {
    /// The tool, and how it is made to print this: for lists of what can be read.
    title: &'static str,
    marks: Marks,
    reader: Reader,
}

/// What makes it known. Any of them is enough.
enum Marks {
    /// Beginnings of lines, each once in a result. `…` stands for anything, and what follows a `|` begins the next line.
    Lines(&'static [&'static str]),
    /// Dotted keys of a JSON object; `&` joins those that belong together.
    Keys(&'static [&'static str]),
}

/// How it is read.
enum Reader {
    Read(fn(&Document<'_>) -> Result<ToolResult, InputError>),
    /// It is known and not read: why, and what is instead.
    None {
        why: &'static str,
        instead: &'static str,
    },
}

/// A result in a file.
pub struct Document<'t> {
    pub source: &'t str,
    /// The whole file.
    pub text: &'t str,
    /// The first byte of the result.
    pub start: usize,
    /// The document, of a JSON format.
    pub value: Value,
}

impl<'t> Document<'t> {
    /// Its lines and all behind, with their 1-based numbers in the file.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &'t str)> + use<'t> {
        (line_at(self.text.as_bytes(), self.start)..).zip(self.text[self.start..].lines())
    }
}

use Marks::{Keys, Lines};

const fn read_format(
    title: &'static str,
    marks: Marks,
    reader: fn(&Document<'_>) -> Result<ToolResult, InputError>,
) -> Format {
    Format { title, marks, reader: Reader::Read(reader) }
}

const fn unread_format(title: &'static str, marks: Marks, why: &'static str, instead: &'static str) -> Format {
    Format { title, marks, reader: Reader::None { why, instead } }
}

/// All. The first that fits a JSON document counts.
static FORMATS: &[Format] = &[
    read_format("weir load --json", Keys(&["window&thread_busy"]), readers::weir),
    read_format("wrk or wrk2, with --latency", Lines(&["Running … test @", "Thread Stats"]), readers::wrk),
    read_format("hey", Lines(&["Summary:|Total:", "Latency distribution:"]), readers::hey),
    read_format("oha --output-format json", Keys(&["latencyPercentiles", "summary.requestsPerSec"]), readers::oha),
    unread_format("k6 --out json", Keys(&["metric&type&data"]), "a line for each sample", K6),
    read_format("k6 --summary-export or handleSummary", Keys(&["results.metrics", "metrics"]), readers::k6),
    unread_format("weir load --find-max --json", Keys(&["probes"]), "a search, whose rate is not that of a load", WEIR),
    unread_format("oha's text", Lines(&["Summary:|Success rate:"]), "rounded", OHA),
    unread_format("oha --output-format csv", Lines(&["request-start,"]), "a row for each request", OHA),
    unread_format("k6's text", Lines(&["http_req_duration.… avg="]), "rounded", K6),
    unread_format("k6 --out csv", Lines(&["metric_name,timestamp,"]), "a row for each sample", K6),
];

const WEIR: &str = "weir load --json";
const OHA: &str = "oha --output-format json";
const K6: &str = "k6 run --summary-export FILE";

/// The formats that can be read: each tool with how it is made to print it.
pub fn readable() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().filter(|format| matches!(format.reader, Reader::Read(_))).map(|format| format.title)
}

/// A result in a file.
struct Place {
    format: &'static Format,
    /// Its first byte.
    start: usize,
    /// The document, of a JSON format.
    value: Value,
}

/// Reads the one result of a file.
///
/// # Errors
/// No result, several, or one that is damaged.
pub fn read(source: &str, text: &str) -> Result<ToolResult, InputError> {
    let mut places = texts(text);
    places.extend(documents(text, places.first()));
    places.sort_by_key(|place| place.start);
    let mut places = places.into_iter();
    let Some(Place { format, start, value }) = places.next() else { return Err(unknown(source, text)) };
    let read = match format.reader {
        Reader::Read(read) => read,
        Reader::None { why, instead } => {
            let wrong = error(source, line_at(text.as_bytes(), start), "", format!("this is {}: {why}", format.title));
            return Err(InputError { wanted: instead.to_owned(), ..wrong });
        }
    };
    if let Some(second) = places.next() {
        let wrong = error(source, line_at(text.as_bytes(), second.start), "", "a second result begins here");
        return Err(InputError { wanted: "one result a file".to_owned(), ..wrong });
    }
    read(&Document { source, text, start, value })
}

/// Why there is no result.
fn unknown(source: &str, text: &str) -> InputError {
    if !text.trim_start().starts_with(['{', '[']) {
        return InputError::of(source, "this is no result of a tool that weir knows", wanted());
    }
    match Deserializer::from_str(text).into_iter::<Value>().next() {
        Some(Err(wrong)) => readers::syntax_error(source, &wrong),
        _ => InputError::of(source, "this JSON is no result of a tool that weir knows", wanted()),
    }
}

/// The beginnings of results in the form of text: each format at its first mark, and at the first that comes again.
fn texts(text: &str) -> Vec<Place> {
    let lines = text.split_inclusive('\n').scan(0, |at, line| {
        let begin = *at;
        *at += line.len();
        Some((begin, line.trim_matches(is_blank)))
    });
    let lines: Vec<(usize, &str)> = lines.filter(|(_, line)| !line.is_empty()).collect();
    let mut places = Vec::new();
    for format in FORMATS {
        let Lines(marks) = format.marks else { continue };
        let of = |mark: &&str| {
            let (mark, next) = mark.split_once('|').unwrap_or((mark, ""));
            let follows = |index: usize| lines.get(index + 1).is_some_and(|(_, line)| line.starts_with(next));
            let is_here = |index: usize| matches_mark(lines[index].1, mark) && (next.is_empty() || follows(index));
            (0..lines.len()).filter(|index| is_here(*index)).map(|index| lines[index].0).take(2).collect()
        };
        let found: Vec<Vec<usize>> = marks.iter().map(of).collect();
        let nth = |nth: usize| found.iter().filter_map(|places| places.get(nth)).min();
        places.extend([nth(0), nth(1)].into_iter().flatten().map(|start| Place {
            format,
            start: *start,
            value: Value::Null,
        }));
    }
    places
}

/// Returns whether a line begins with a mark.
fn matches_mark(line: &str, mark: &str) -> bool {
    match mark.split_once('…') {
        None => line.starts_with(mark),
        Some((begin, rest)) => line.strip_prefix(begin).is_some_and(|line| line.contains(rest)),
    }
}

/// The first JSON documents that are results, at most two. Each begins with a line or behind another. A document that is cut off
/// behind a result is a second one.
fn documents(text: &str, other: Option<&Place>) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let mut at = 0;
    while at < text.len() && places.len() < 2 {
        at = text.len() - text[at..].trim_start_matches(is_blank).len();
        let rest = &text[at..];
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        match rest.starts_with(['{', '[']).then(|| values.next()).flatten() {
            Some(Ok(value)) => {
                let all = if let Value::Array(all) = value { all } else { vec![value] };
                let known = all.into_iter().filter_map(|value| Some((format_of(&value)?, value)));
                places.extend(known.take(2).map(|(format, value)| Place { format, start: at, value }));
                at += values.byte_offset();
            }
            Some(Err(wrong)) if wrong.is_eof() => {
                let first = places.first().or(other).map(|place| place.format);
                places.extend(first.map(|format| Place { format, start: at, value: Value::Null }));
                break;
            }
            _ => at += rest.find('\n').map_or(rest.len(), |end| end + 1),
        }
    }
    places
}

/// White space, or a byte order mark, which may stand in the middle where files were joined.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

fn format_of(value: &Value) -> Option<&'static Format> {
    let at = |key: &str| key.split('.').try_fold(value, |value, key| value.get(key));
    let has = |keys: &&str| keys.split('&').all(|key| at(key).is_some());
    FORMATS.iter().find(|format| matches!(format.marks, Keys(any) if any.iter().any(has)))
}
