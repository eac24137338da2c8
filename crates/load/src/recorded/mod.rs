//! Reads requests that were recorded elsewhere, and when: HAR files ([`Format::Har`]), access logs in the combined or common
//! format of nginx and Apache ([`Format::Combined`]), and access logs with one JSON object a line, as Envoy writes them
//! ([`Format::Json`]). `weir load --urls` and `--replay` call it.
//!
//! The bytes come from outside: what is no such file is an error with its line; a well-formed entry that weir cannot send (bytes
//! that were no request, a WebSocket, a body that was not recorded as text) is left out and counted. This module does not
//! open files, and knows neither targets nor loads.

use jiff::Timestamp;
use weir_model::InputError;

mod combined;
mod har;
mod json;
#[cfg(test)]
mod tests;

/// The most requests that a recording may have.
pub const MOST_REQUESTS: usize = 1_000_000;

/// The largest file, bytes.
pub const LARGEST_FILE: u64 = 1 << 30;

/// A day: longer than any load.
const LONGEST_S: f64 = 86_400.0;

/// The format of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// HTTP Archive 1.2, as browsers and proxies export it.
    Har,
    /// `host ident user [time] "request" status bytes`, and whatever follows.
    Combined,
    /// A JSON object a line, with `method`, `path`, and where known `start_time` and `authority`.
    Json,
}

impl Format {
    /// The format of a text by its beginning; `None`: it is no recording.
    pub fn of(text: &str) -> Option<Format> {
        let text = without_mark(text);
        let line = text.lines().find(|line| !line.trim().is_empty())?;
        if let Some(inside) = text.trim_start().strip_prefix('{') {
            // A HAR file has one key, `log`, and may be one line of a hundred megabytes.
            let log = inside.trim_start().strip_prefix("\"log\"").map(str::trim_start);
            let is_har =
                log.and_then(|rest| rest.strip_prefix(':')).is_some_and(|rest| rest.trim_start().starts_with('{'));
            return Some(if is_har { Format::Har } else { Format::Json });
        }
        combined::is_entry(line).then_some(Format::Combined)
    }

    /// Whether its times are whole seconds.
    fn has_whole_seconds(self) -> bool {
        self == Format::Combined
    }
}

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    /// 1-based line of a log; of a HAR file, 1-based number of the entry.
    pub place: usize,
    /// When it was sent, or in logs that say no more, logged.
    pub at: Option<Timestamp>,
    /// Host, with the port where one is written; `None` where the recording does not say.
    pub host: Option<String>,
    /// Letters, `-` and `_`.
    pub method: String,
    /// Path and query: begins with `/`, printable ASCII without blanks.
    pub path: String,
    /// Headers, less those that follow from the connection, the body or the host.
    pub headers: Vec<(String, String)>,
    /// `None`: the recording has no bodies.
    pub body: Option<Vec<u8>>,
}

/// What a file has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// In the order of the file.
    pub requests: Vec<RecordedRequest>,
    /// Entries that cannot be sent.
    pub unusable: u64,
    format: Format,
}

/// Reads a file's text. `source` is what the file is called in errors.
///
/// # Errors
/// The first line that is not of the format, more than [`MOST_REQUESTS`] requests, or none.
pub fn parse(source: &str, text: &str, format: Format) -> Result<Recording, InputError> {
    let text = without_mark(text);
    let mut recording = Recording { requests: Vec::new(), unusable: 0, format };
    match format {
        Format::Har => har::parse(source, text, &mut recording)?,
        Format::Combined => by_line(source, text, &mut recording, combined::entry)?,
        Format::Json => by_line(source, text, &mut recording, json::entry)?,
    }
    if recording.requests.is_empty() {
        let found = match recording.unusable {
            0 => "it has no requests".to_owned(),
            n => format!("none of its {n} entries is a request that can be sent"),
        };
        return Err(InputError::of(source, found, "a HAR file or an access log with requests"));
    }
    Ok(recording)
}

/// An entry: `None` is one that cannot be sent. The errors are what was found and what would be right.
type Entry = Result<Option<RecordedRequest>, (String, &'static str)>;

fn by_line(source: &str, text: &str, to: &mut Recording, entry: fn(usize, &str) -> Entry) -> Result<(), InputError> {
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |(found, wanted): (String, &str)| InputError {
            line: Some(number),
            ..InputError::of(source, found, wanted)
        };
        to.take(entry(number, line).map_err(wrong)?).map_err(wrong)?;
    }
    Ok(())
}

impl Recording {
    fn take(&mut self, entry: Option<RecordedRequest>) -> Result<(), (String, &'static str)> {
        match entry {
            None => self.unusable += 1,
            Some(_) if self.requests.len() == MOST_REQUESTS => {
                return Err((
                    format!("more than {MOST_REQUESTS} requests"),
                    "a shorter part of it, such as by head -n",
                ));
            }
            Some(request) => self.requests.push(request),
        }
        Ok(())
    }

    /// Puts the requests in the order of their times, and returns when each is due: seconds since the first, `speed` times as fast as
    /// recorded. Where the recording has whole seconds, those of one second are spread over it evenly.
    ///
    /// # Errors
    /// The first request without a time, or that it takes more than a day.
    pub fn timetable(&mut self, source: &str, speed: f64) -> Result<Vec<f64>, InputError> {
        if let Some(untimed) = self.requests.iter().find(|request| request.at.is_none()) {
            let (line, found) = (Some(untimed.place), "a request without a time");
            return Err(InputError {
                line,
                ..InputError::of(source, found, "a start_time, such as 2026-11-23T20:00:00.123Z")
            });
        }
        self.requests.sort_by_key(|request| request.at);
        let mut since_s: Vec<f64> = Vec::with_capacity(self.requests.len());
        let first = self.requests.first().and_then(|request| request.at).unwrap_or_default();
        for together in self.requests.chunk_by(|a, b| a.at == b.at) {
            let at = together[0].at.unwrap_or_default();
            let at_s = (at.as_nanosecond() - first.as_nanosecond()) as f64 / 1e9;
            let share = if self.format.has_whole_seconds() { 1.0 / together.len() as f64 } else { 0.0 };
            since_s.extend((0..together.len()).map(|nth| (at_s + nth as f64 * share) / speed));
        }
        match since_s.last() {
            Some(last) if *last > LONGEST_S => {
                let found = format!("its requests span {:.1} hours", last / 3_600.0);
                Err(InputError::of(source, found, "at most 24 hours: a part of it, or --speed"))
            }
            _ => Ok(since_s),
        }
    }
}

/// Without the mark of byte order that some programs write first.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Host and path of a target in absolute form, or of a path alone; `None` where weir cannot send it.
fn target(text: &str) -> Option<(Option<String>, String)> {
    let scheme = ["http://", "https://"]
        .into_iter()
        .find(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let Some(scheme) = scheme else { return path(text).map(|path| (None, path)) };
    let rest = &text[scheme.len()..];
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest[..end].rsplit('@').next().filter(|host| !host.is_empty())?;
    let slash = if rest[end..].starts_with('/') { "" } else { "/" };
    path(&format!("{slash}{}", &rest[end..])).map(|path| (Some(authority.to_ascii_lowercase()), path))
}

fn path(text: &str) -> Option<String> {
    let path = text.split('#').next().unwrap_or_default();
    // Logs write with a backslash what they do not write as it was.
    let usable = path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic() && b != b'\\' && b != b'"');
    usable.then(|| path.to_owned())
}

fn method(text: &str) -> Option<String> {
    let usable = !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-' || b == b'_')
        && text != "-"
        && !text.eq_ignore_ascii_case("CONNECT");
    usable.then(|| text.to_ascii_uppercase())
}
