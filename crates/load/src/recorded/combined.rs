//! A line of an access log in the combined format of nginx and Apache, or the common one, which is its beginning.
//!
//! Of a line only method, target and time are taken: status, sizes, referrer and user agent are not sent.

use jiff::Timestamp;
use jiff::fmt::strtime;

use super::{Entry, RecordedRequest, method, target};

const WANTED: &str = "host ident user [10/Oct/2000:13:55:36 -0700] \"GET /x HTTP/1.1\" 200 128";

/// Whether a line looks like an entry.
pub(super) fn is_entry(line: &str) -> bool {
    parts(line).is_some()
}

/// Reads a line.
pub(super) fn entry(number: usize, line: &str) -> Entry {
    let (time, request) = parts(line).ok_or_else(|| ("it is no entry of a combined access log".to_owned(), WANTED))?;
    let at = timestamp(time).ok_or_else(|| (format!("\"{}\" is not a time", shown(time)), WANTED))?;
    let mut words = request.split(' ');
    let (verb, aim) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // HTTP/0.9 has no version; what has more words was no request.
    let is_request = words.next().is_none_or(|version| version.starts_with("HTTP/")) && words.next().is_none();
    let (Some(method), Some((host, path)), true) = (method(verb), target(aim), is_request) else { return Ok(None) };
    Ok(Some(RecordedRequest { place: number, at: Some(at), host, method, path, headers: Vec::new(), body: None }))
}

/// The time and the request.
fn parts(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once(" [")?;
    let (time, rest) = rest.split_once("] \"")?;
    let end = quote(rest)?;
    let mut after = rest[end + 1..].split_whitespace();
    let status = after.next()?;
    let is_status = status.len() == 3 && status.bytes().all(|b| b.is_ascii_digit());
    let bytes = after.next()?;
    (is_status && (bytes == "-" || bytes.bytes().all(|b| b.is_ascii_digit()))).then(|| (time, &rest[..end]))
}

/// Where the quoted text ends. Apache writes a quote in it as `\"`, and a backslash as `\\`.
fn quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|b| {
        let ends = b == b'"' && !escaped;
        escaped = b == b'\\' && !escaped;
        ends
    })
}

fn timestamp(text: &str) -> Option<Timestamp> {
    strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).ok()?.to_timestamp().ok()
}

fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}
