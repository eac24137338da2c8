//! Reads requests that were recorded elsewhere, and when: HAR files and access logs in the formats of [`Format`].
//!
//! The bytes come from outside. Some entries are left out and counted, by the reasons of [`Reason`] and with the first place of each.
//! If more than half of them are not of the format, that is an error. Lines may be wrapped as container engines and syslog do. This
//! module does not open files, and knows neither targets nor loads.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use regex::Regex;
use weir_model::InputError;
use weir_wire::http1::encode;

use time::Time;

mod har;
mod json;
mod line;
#[cfg(test)]
mod tests;
mod time;

/// The most requests that a recording may have.
pub const MOST_REQUESTS: usize = 1_000_000;

/// The largest file, bytes.
pub const LARGEST_FILE: u64 = 1 << 30;

/// A day: longer than any load.
const LONGEST_S: f64 = 86_400.0;

/// So many lines show the format of a log: the first ones may be cut, or of something else.
const LINES_THAT_SHOW: usize = 100;

/// The largest share of entries that may be none of the format.
const MOST_MALFORMED: f64 = 0.5;

/// The format of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// HTTP Archive 1.2, as browsers and proxies export it.
    Har,
    /// `[vhost] host ident user [time] "request" status bytes`, and whatever follows.
    Combined,
    /// The lines of HAProxy's `option httplog` and `httpslog`.
    Haproxy,
    /// `[time] "request" status flags …`: the default of Envoy and Istio.
    Envoy,
    /// The lines of AWS's load balancers.
    Elb,
    /// A JSON object a line.
    Json,
}

impl Format {
    /// Those of lines.
    const OF_LINES: [Format; 5] = [Format::Combined, Format::Haproxy, Format::Envoy, Format::Elb, Format::Json];

    /// The format of a file by its content; `None`: it is no recording.
    pub fn of(bytes: &[u8]) -> Option<Format> {
        let bytes = without_mark(bytes);
        if har::is_archive(bytes) {
            return Some(Format::Har);
        }
        let first: Vec<Cow<'_, str>> =
            lines(bytes).take(LINES_THAT_SHOW).filter_map(|(_, line)| line.ok()).map(unwrapped).collect();
        let is_entry = |format: Format, line: &str| match format.entry(line) {
            Ok(_) => true,
            Err(omission) => omission.reason != Reason::Malformed,
        };
        let entries = |format: Format| first.iter().filter(|line| is_entry(format, line)).count();
        // The last of several equal ones wins, so the list is reversed.
        let counted = Format::OF_LINES.into_iter().rev().map(|format| (entries(format), format));
        let (most, format) = counted.max_by_key(|(entries, _)| *entries)?;
        if most > 0 {
            return Some(format);
        }
        // Objects of which each lacks something are a log all the same, and the error says what is missing.
        let is_object = |(_, line): (usize, Result<&str, usize>)| line.is_ok_and(|line| line.starts_with('{'));
        lines(bytes).next().is_some_and(is_object).then_some(Format::Json)
    }

    fn entry(self, line: &str) -> Entry {
        match self {
            Format::Json => json::entry(line),
            other => line::entry(other, line),
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Format::Har => har::WANTED,
            Format::Json => json::WANTED,
            other => line::wanted(other).unwrap_or_default(),
        }
    }

    /// The thing that an entry's number counts: `line` or `entry`.
    pub fn unit(self) -> &'static str {
        if self == Format::Har { "entry" } else { "line" }
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
    /// Entries that are not among them.
    pub omitted: BTreeMap<Reason, Omitted>,
    /// It says for which host a request was. One that says so of no request but those in absolute form does not.
    pub names_hosts: bool,
    format: Format,
    /// A time was written to fractions of a second.
    has_fractions: bool,
}

/// Why an entry was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It is no entry of the format, such as a line that was cut.
    Malformed,
    /// Nothing that weir could send: no request, a WebSocket, a body that was not recorded.
    Unsendable,
    /// The browser had its response in the cache.
    Cached,
}

impl Reason {
    /// In the words of `2 ... (line 7: ...)`.
    pub fn title(self) -> &'static str {
        match self {
            Reason::Malformed => "not of the format",
            Reason::Unsendable => "that cannot be sent",
            Reason::Cached => "from the browser's cache",
        }
    }
}

/// The entries that were left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omitted {
    /// At least 1.
    pub count: u64,
    /// The place of the first, as in [`RecordedRequest::place`].
    pub place: usize,
    /// The mistake in it.
    pub why: String,
}

/// An entry that is left out.
#[derive(Debug)]
struct Omission {
    reason: Reason,
    why: String,
}

impl Omission {
    fn malformed(why: impl Into<String>) -> Omission {
        Omission { reason: Reason::Malformed, why: why.into() }
    }

    fn unsendable(why: impl Into<String>) -> Omission {
        Omission { reason: Reason::Unsendable, why: why.into() }
    }
}

/// A request as an entry has it.
#[derive(Debug)]
struct Found {
    at: Option<Time>,
    /// From a field of its own.
    host: Option<String>,
    method: String,
    /// A path, or in absolute form.
    target: String,
}

/// Parts of a request that only archives have.
#[derive(Debug)]
struct Parts {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

type Entry = Result<Found, Omission>;

/// Reads a file. `source` is what the file is called in errors.
///
/// # Errors
/// An archive that is no JSON, more than half of the entries not of the format, more than [`MOST_REQUESTS`] requests, or none.
pub fn parse(source: &str, bytes: &[u8], format: Format) -> Result<Recording, InputError> {
    let bytes = without_mark(bytes);
    let mut recording =
        Recording { requests: Vec::new(), omitted: BTreeMap::new(), names_hosts: false, format, has_fractions: false };
    match format {
        Format::Har => har::parse(source, bytes, &mut recording)?,
        _ => recording.read_lines(source, bytes)?,
    }
    recording.names_hosts |= recording.requests.iter().all(|request| request.host.is_some());
    recording.check(source)?;
    Ok(recording)
}

impl Recording {
    fn read_lines(&mut self, source: &str, bytes: &[u8]) -> Result<(), InputError> {
        for (number, line) in lines(bytes) {
            let entry = match line {
                Ok(line) => self.format.entry(&unwrapped(line)),
                Err(column) => Err(Omission::malformed(format!("it is not UTF-8 from column {column} on"))),
            };
            self.take(number, entry.map(|found| (found, None))).map_err(|(found, wanted)| InputError {
                line: Some(number),
                ..InputError::of(source, found, wanted)
            })?;
        }
        Ok(())
    }

    /// Adds an entry, or counts it. The errors are what was found and what would be right.
    fn take(
        &mut self,
        place: usize,
        entry: Result<(Found, Option<Parts>), Omission>,
    ) -> Result<(), (String, &'static str)> {
        let request = entry.and_then(|(found, parts)| {
            self.has_fractions |= found.at.is_some_and(|time| time.has_fraction);
            self.names_hosts |= found.host.as_deref().is_some_and(is_host);
            request(place, found, parts)
        });
        match request {
            Ok(_) if self.requests.len() == MOST_REQUESTS => {
                let found = format!("more than {MOST_REQUESTS} requests");
                return Err((found, "a shorter part of it, such as by head -n"));
            }
            Ok(request) => self.requests.push(request),
            Err(Omission { reason, why }) => {
                self.omitted.entry(reason).or_insert(Omitted { count: 0, place, why }).count += 1;
            }
        }
        Ok(())
    }

    /// Entries of all kinds.
    fn entries(&self) -> u64 {
        self.requests.len() as u64 + self.omitted.values().map(|omitted| omitted.count).sum::<u64>()
    }

    /// Refuses a recording without requests, and one that is mostly something else.
    fn check(&self, source: &str) -> Result<(), InputError> {
        let (entries, format) = (self.entries(), self.format);
        let at = |omitted: &Omitted, found: String, wanted: String| match format {
            Format::Har => InputError::of(source, format!("entry {}: {found}", omitted.place), wanted),
            _ => InputError { line: Some(omitted.place), ..InputError::of(source, found, wanted) },
        };
        if let Some(malformed) = self.omitted.get(&Reason::Malformed)
            && malformed.count as f64 > entries as f64 * MOST_MALFORMED
        {
            let share = match entries {
                1 => String::new(),
                _ => format!(", and so for {} of {entries}; at most half may be left out", malformed.count),
            };
            return Err(at(malformed, format!("{}{share}", malformed.why), format.wanted().to_owned()));
        }
        if !self.requests.is_empty() {
            return Ok(());
        }
        let wanted = "a HAR file or an access log with requests".to_owned();
        match self.omitted.values().next() {
            None => Err(InputError::of(source, "it has no requests", wanted)),
            Some(first) => {
                let found = format!("none of its {entries} entries is a request that can be sent: {}", first.why);
                Err(at(first, found, wanted))
            }
        }
    }

    /// The thing that an entry's number counts: `line` or `entry`.
    pub fn unit(&self) -> &'static str {
        self.format.unit()
    }

    /// Puts the requests in the order of their times, and returns when each is due: seconds since the first, `speed` times as fast as
    /// recorded. Where the recording has whole seconds, those of one second are spread over it evenly.
    ///
    /// # Errors
    /// The first request without a time, or that it takes more than a day.
    pub fn timetable(&mut self, source: &str, speed: f64) -> Result<Vec<f64>, InputError> {
        if let Some(untimed) = self.requests.iter().find(|request| request.at.is_none()) {
            let place = untimed.place;
            return Err(match self.format {
                Format::Har => InputError::of(
                    source,
                    format!("entry {place} has no time, and a replay needs one"),
                    "a startedDateTime, such as 2026-11-23T20:00:00.123Z; --urls needs no times",
                ),
                _ => InputError {
                    line: Some(place),
                    ..InputError::of(
                        source,
                        "a request without a time, and a replay needs one",
                        "a start_time, such as 2026-11-23T20:00:00.123Z; --urls needs no times",
                    )
                },
            });
        }
        self.requests.sort_by_key(|request| request.at);
        let mut since_s: Vec<f64> = Vec::with_capacity(self.requests.len());
        let first = self.requests.first().and_then(|request| request.at).unwrap_or_default();
        for together in self.requests.chunk_by(|a, b| a.at == b.at) {
            let at = together[0].at.unwrap_or_default();
            let at_s = (at.as_nanosecond() - first.as_nanosecond()) as f64 / 1e9;
            let share = if self.has_fractions { 0.0 } else { 1.0 / together.len() as f64 };
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
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// The lines that are not empty, with their numbers from 1 on; of one that is not UTF-8, the column where it ceases to be.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, Result<&str, usize>)> {
    let numbered = (1..).zip(bytes.split(|b| *b == b'\n')).map(|(number, line)| (number, line.trim_ascii_end()));
    let text = |line| std::str::from_utf8(line).map_err(|error| error.valid_up_to() + 1);
    numbered.filter(|(_, line)| !line.trim_ascii().is_empty()).map(move |(number, line)| (number, text(line)))
}

/// Prefixes that syslog, container engines and their tools put before a line.
static PREFIXES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let prefixes = [
        // RFC 5424.
        r"(?:\d+ )?<\d{1,3}>1 \S+ \S+ \S+ \S+ \S+ (?:-|\[[^\]]*\]) \u{feff}?",
        // RFC 3164, and as rsyslog writes it to files.
        r"(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT\S+) (?:\S+ )?[\w./-]+(?:\[\d+\])?: +",
        // Kubernetes' files, and lines of kubectl logs --prefix and of docker compose logs.
        r"\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr) [FP] ",
        r"\[pod/[^\]]*\] ",
        r"[\w.-]+ +\| ",
    ];
    Regex::new(&format!("^(?:{})", prefixes.join("|"))).ok()
});

/// A line of a log without what other programs wrapped it in.
fn unwrapped(line: &str) -> Cow<'_, str> {
    let prefix = |line: &str| PREFIXES.as_ref().and_then(|pattern| pattern.find(line)).map_or(0, |found| found.end());
    match json::wrapped_line(&line[prefix(line)..]) {
        Some(inner) => Cow::Owned(inner[prefix(&inner)..].to_owned()),
        None => Cow::Borrowed(&line[prefix(line)..]),
    }
}

/// Method and target of a request's first line; `bare`: without a version it is one, too.
fn request_line(text: &str, bare: bool) -> Result<(String, String), Omission> {
    let words: Vec<&str> = text.split(' ').collect();
    match words.as_slice() {
        [method, target] if bare => Ok(((*method).to_owned(), (*target).to_owned())),
        [method, target, version] if version.starts_with("HTTP/") => Ok(((*method).to_owned(), (*target).to_owned())),
        _ => Err(Omission::unsendable(format!("{:?} is no request", text.chars().take(40).collect::<String>()))),
    }
}

/// The request of an entry, if weir can send it.
fn request(place: usize, found: Found, parts: Option<Parts>) -> Result<RecordedRequest, Omission> {
    let method = method(&found.method)
        .ok_or_else(|| Omission::unsendable(format!("{:?} is not a method that can be sent", found.method)))?;
    let (absolute, path) = target(&found.target)
        .ok_or_else(|| Omission::unsendable(format!("{:?} is not a path that can be sent", found.target)))?;
    let host = absolute.or_else(|| found.host.filter(|host| is_host(host)).map(|host| host.to_ascii_lowercase()));
    let (headers, body) = match parts {
        Some(parts) => (parts.headers, Some(parts.body)),
        None => (Vec::new(), None),
    };
    let all = [("Host", host.as_deref().unwrap_or("h"))];
    let all: Vec<(&str, &str)> =
        all.into_iter().chain(headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))).collect();
    encode::request(&mut Vec::new(), &method, &path, &all, &[])
        .map_err(|error| Omission::unsendable(error.to_string()))?;
    Ok(RecordedRequest { place, at: found.at.map(|time| time.at), host, method, path, headers, body })
}

/// Servers write `_` and `-` where they have no name.
fn is_host(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    (text.starts_with('[') || !matches!(name, "" | "-" | "_"))
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b))
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
