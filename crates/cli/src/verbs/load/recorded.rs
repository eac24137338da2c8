//! The requests of a load, and when they are due, as far as files say it: `--urls` and `--replay` with lists, times, HAR files and
//! access logs. Called by `verbs::load::spec`.
//!
//! Recorded requests go to the one server that the command line names, and nowhere else: of a recording only the entries of
//! one host are taken.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use weir_load::recorded::{self, Format, LARGEST_FILE, RecordedRequest, Recording};
use weir_load::replay;
use weir_model::InputError;
use weir_model::load::{OfferedRate, RecordedDue};
use weir_model::text::{count, counted};

use super::flags::Args;
use super::urls::{self, Place, UrlLine};
use crate::exit::Failure;

/// The most different requests of one load: each is kept ready to be sent.
const MOST_KINDS: usize = 100_000;

/// What is sent, and when.
#[derive(Debug)]
pub struct Source {
    pub lines: Vec<UrlLine>,
    /// The times of `--replay`.
    pub replay: Option<OfferedRate>,
    /// What was taken of a recording, and what was left out.
    pub note: Option<String>,
}

/// Reads the URLs and the files that flags name.
///
/// # Errors
/// The mistake: file and line, or flag, what was found and what would be right.
pub fn source(args: &Args) -> Result<Source, Failure> {
    let speed = args.load.speed.map_or(1.0, |speed| speed.0);
    let times = args.load.replay.as_deref().map(|path| read("--replay", path, args.request.urls_format)).transpose()?;
    let list = args.request.urls.as_deref().map(|path| read("--urls", path, args.request.urls_format)).transpose()?;
    let replay = match times {
        Some(File { name, text, format: Some(format) }) => {
            if list.is_some() {
                let found = "a recording has its requests, and --urls has others";
                return Err(Failure::wrong("--replay", found, "one of them, or a file of times with --urls"));
            }
            return recording(args, &name, &text, format, Some(speed));
        }
        Some(File { name, text, format: None }) => {
            let due_s = replay::parse(&name, &text).map_err(Failure::input)?;
            Some(OfferedRate::Replay(due_s.into_iter().map(|at_s| at_s / speed).collect()))
        }
        None => None,
    };
    match list {
        Some(File { name, text, format: Some(format) }) => {
            Ok(Source { replay, ..recording(args, &name, &text, format, None)? })
        }
        list => Ok(Source { lines: listed(args, list)?, replay, note: None }),
    }
}

/// The URLs of a list, or of the command line.
fn listed(args: &Args, list: Option<File>) -> Result<Vec<UrlLine>, Failure> {
    let unix = args.connections.unix.is_some();
    match list {
        Some(_) if !args.url.is_empty() => {
            let wanted = "the list alone, or a HAR file or an access log with the URL of the server";
            Err(Failure::wrong("--urls", "a list of URLs, and a URL beside it", wanted))
        }
        Some(file) => urls::from_text(&file.name, &file.text, unix).map_err(Failure::input),
        None => urls::from_arguments(&args.url, &args.request.weight, unix).map_err(Failure::input),
    }
}

/// A file that a flag names; `format`: of a recording.
struct File {
    name: String,
    text: String,
    format: Option<Format>,
}

fn read(flag: &str, path: &Path, format: Option<UrlsFormat>) -> Result<File, Failure> {
    let name = path.display().to_string();
    let wrong = |found: String| Failure::wrong(flag, format!("{name}: {found}"), "a text file that can be read");
    let size = std::fs::metadata(path).map_err(|e| wrong(e.to_string()))?.len();
    if size > LARGEST_FILE {
        return Err(Failure::wrong(flag, format!("{name} has {} bytes", count(size)), "at most 1 GiB: a part of it"));
    }
    let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
    let format = match format {
        None => Format::of(&text),
        Some(UrlsFormat::List) => None,
        Some(UrlsFormat::Har) => Some(Format::Har),
        Some(UrlsFormat::Combined) => Some(Format::Combined),
        Some(UrlsFormat::Json) => Some(Format::Json),
    };
    Ok(File { name, text, format })
}

/// Formats of `--urls-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum UrlsFormat {
    /// A URL a line, or a time a line
    List,
    /// HTTP Archive
    Har,
    /// Access log of nginx or Apache, combined or common
    Combined,
    /// Access log with a JSON object a line, as of Envoy
    Json,
}

/// The requests of a recording: by their frequency, or with `speed` at their times.
fn recording(args: &Args, name: &str, text: &str, format: Format, speed: Option<f64>) -> Result<Source, Failure> {
    let server = server(args, name)?;
    let mut recording = recorded::parse(name, text, format).map_err(Failure::input)?;
    let others = of_one_host(&mut recording, args.request.urls_host.as_deref(), &server, name)?;
    let due_s = speed.map(|speed| recording.timetable(name, speed)).transpose().map_err(Failure::input)?;
    let note = note(name, &recording, &others);
    let (lines, kinds) = different(name, recording.requests, &server)?;
    let replay = due_s.map(|due_s| {
        let due = due_s.into_iter().zip(kinds).map(|(at_s, request)| RecordedDue { at_s, request });
        OfferedRate::Recorded(due.collect())
    });
    Ok(Source { lines, replay, note: Some(note) })
}

/// The URL of the server.
fn server(args: &Args, name: &str) -> Result<UrlLine, Failure> {
    let wanted = format!("the URL of one server: weir load http://127.0.0.1:8080 --urls {name}");
    if !args.request.weight.is_empty() {
        return Err(Failure::wrong("--weight", "a recording has its own frequencies", "no --weight"));
    }
    let found = match args.url.as_slice() {
        [_] => None,
        [] => Some(format!("{name} is a recording, and there is no URL to say where its requests go")),
        several => Some(format!("{name} is a recording, and there are {} URLs", several.len())),
    };
    if let Some(found) = found {
        return Err(Failure::wrong("URL", found, wanted));
    }
    let unix = args.connections.unix.is_some();
    let mut lines = urls::from_arguments(&args.url, &[], unix).map_err(Failure::input)?;
    let line = lines.remove(0);
    match line.url.path.as_str() {
        _ if line.url.protocol.is_keyvalue() => {
            let found = format!("{}:// for a recording of HTTP requests", line.url.protocol.scheme());
            Err(Failure::wrong("URL", found, "http:// or https://"))
        }
        "/" => Ok(line),
        path => Err(Failure::wrong("URL", format!("a path, {path}, and {name} has paths of its own"), wanted)),
    }
}

/// Leaves the requests of one host, or of all if the recording knows none; and says how many of which others there were.
fn of_one_host(
    recording: &mut Recording,
    wanted: Option<&str>,
    server: &UrlLine,
    name: &str,
) -> Result<BTreeMap<String, u64>, Failure> {
    let host = wanted.unwrap_or(&server.url.authority).to_ascii_lowercase();
    let mut others: BTreeMap<String, u64> = BTreeMap::new();
    let mut taken = Vec::new();
    for request in std::mem::take(&mut recording.requests) {
        match &request.host {
            Some(other) if !is_same(other, &host) => *others.entry(other.clone()).or_default() += 1,
            _ => taken.push(request),
        }
    }
    if taken.is_empty() {
        let found = format!("{name} has no request to {host}; it has {}", most(&others));
        return Err(Failure::wrong("--urls-host", found, "the host whose requests are sent, such as --urls-host HOST"));
    }
    recording.requests = taken;
    Ok(others)
}

/// Ports are compared where both have one: a recording often leaves out the one of its scheme.
fn is_same(a: &str, b: &str) -> bool {
    let split = |host: &str| match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (name.to_owned(), Some(port.to_owned()))
        }
        _ => (host.to_owned(), None),
    };
    let ((a, a_port), (b, b_port)) = (split(a), split(b));
    a == b && (a_port.is_none() || b_port.is_none() || a_port == b_port)
}

/// The hosts with the most requests.
fn most(hosts: &BTreeMap<String, u64>) -> String {
    const SHOWN: usize = 3;
    let mut hosts: Vec<(&String, &u64)> = hosts.iter().collect();
    hosts.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let shown: Vec<String> = hosts.iter().take(SHOWN).map(|(host, n)| format!("{host} ({})", count(**n))).collect();
    let more = hosts.len().saturating_sub(SHOWN);
    format!("{}{}", shown.join(", "), if more > 0 { format!(" and {more} more") } else { String::new() })
}

/// What is sent of a recording, and what is not.
fn note(name: &str, recording: &Recording, others: &BTreeMap<String, u64>) -> String {
    let mut omitted = Vec::new();
    if !others.is_empty() {
        omitted.push(format!("{} to other hosts, {}", count(others.values().sum()), most(others)));
    }
    if recording.unusable > 0 {
        omitted.push(format!("{} that cannot be sent", count(recording.unusable)));
    }
    let omitted = if omitted.is_empty() { String::new() } else { format!("; left out: {}", omitted.join("; ")) };
    format!("{name}: {}{omitted}", counted(recording.requests.len() as u64, "request"))
}

/// The different requests, the most frequent first, with how often each comes as its weight; and which one each recorded
/// request is.
fn different(
    name: &str,
    requests: Vec<RecordedRequest>,
    server: &UrlLine,
) -> Result<(Vec<UrlLine>, Vec<u32>), Failure> {
    type Sent = (String, String, Vec<(String, String)>, Option<Vec<u8>>);
    let mut known: HashMap<Sent, usize> = HashMap::new();
    let mut kinds: Vec<(usize, u32)> = Vec::new();
    let mut of: Vec<usize> = Vec::with_capacity(requests.len());
    for request in requests {
        let next = kinds.len();
        let kind = *known.entry((request.method, request.path, request.headers, request.body)).or_insert(next);
        if kind == next {
            kinds.push((request.place, 0));
        }
        kinds[kind].1 += 1;
        of.push(kind);
    }
    if kinds.len() > MOST_KINDS {
        let found = format!("{} different requests", count(kinds.len() as u64));
        return Err(Failure::input(InputError::of(name, found, "at most 100,000: a part of it")));
    }
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.sort_by_key(|kind| std::cmp::Reverse(kinds[*kind].1));
    let mut rank = vec![0u32; kinds.len()];
    (0u32..).zip(&order).for_each(|(new, old)| rank[*old] = new);
    let mut lines: Vec<Option<UrlLine>> = vec![None; kinds.len()];
    for ((method, path, headers, body), kind) in known {
        let (line, weight) = kinds[kind];
        let mut url = server.url.clone();
        url.path = path;
        let place = Place { source: name.to_owned(), line: Some(line) };
        lines[rank[kind] as usize] = Some(UrlLine { method: Some(method), url, headers, body, weight, place });
    }
    Ok((lines.into_iter().flatten().collect(), of.into_iter().map(|kind| rank[kind]).collect()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    const LOG: &str = r#"1.2.3.4 - - [23/Nov/2026:20:00:02 +0000] "GET /b HTTP/1.1" 200 5
1.2.3.4 - - [23/Nov/2026:20:00:00 +0000] "GET /a HTTP/1.1" 200 5
1.2.3.4 - - [23/Nov/2026:20:00:01 +0000] "" 400 0
1.2.3.4 - - [23/Nov/2026:20:00:04 +0000] "GET /a HTTP/1.1" 200 5
"#;

    const OBJECTS: &str = r#"{"start_time":"2026-11-23T20:00:00Z","method":"GET","path":"/a","authority":"shop.example"}
{"start_time":"2026-11-23T20:00:01Z","method":"GET","path":"/b","authority":"cdn.example:443"}
{"start_time":"2026-11-23T20:00:02Z","method":"POST","path":"/c","authority":"shop.example:8443"}
"#;

    /// FILE stands for a file with this text.
    fn read(text: &str, flags: &str) -> Result<Source, String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let path = file.path().display().to_string();
        let line = Line::try_parse_from(
            std::iter::once("load").chain(flags.replace("FILE", &path).split(' ').collect::<Vec<_>>()),
        );
        let line = line.map_err(|e| e.to_string())?;
        let shown = |text: String| text.replace(&path, "FILE");
        let source = source(&line.args).map_err(|failure| shown(failure.to_string()))?;
        Ok(Source { note: source.note.map(shown), ..source })
    }

    fn kinds(source: &Source) -> Vec<(&str, &str, u32)> {
        source.lines.iter().map(|l| (l.method.as_deref().unwrap_or_default(), &l.url.path[..], l.weight)).collect()
    }

    #[test]
    fn a_log_is_a_mix_or_a_replay() {
        let mix = read(LOG, "http://127.0.0.1:1 --urls FILE").expect("right");
        assert_eq!(kinds(&mix), [("GET", "/a", 2), ("GET", "/b", 1)]);
        assert!(mix.replay.is_none() && mix.lines.iter().all(|line| line.url.authority == "127.0.0.1:1"));
        assert_eq!(mix.note.as_deref(), Some("FILE: 3 requests; left out: 1 that cannot be sent"));
        let replay = read(LOG, "http://127.0.0.1:1 --replay FILE --speed 2x").expect("right").replay;
        let due = |at_s, request| RecordedDue { at_s, request };
        assert_eq!(replay, Some(OfferedRate::Recorded(vec![due(0.0, 0), due(1.0, 1), due(2.0, 0)])));
    }

    #[test]
    fn only_requests_of_one_host_are_taken() {
        let one = read(OBJECTS, "http://127.0.0.1:1 --urls FILE --urls-host shop.example").expect("right");
        assert_eq!(kinds(&one), [("GET", "/a", 1), ("POST", "/c", 1)]);
        assert_eq!(one.note.as_deref(), Some("FILE: 2 requests; left out: 1 to other hosts, cdn.example:443 (1)"));
        let exact = read(OBJECTS, "http://127.0.0.1:1 --urls FILE --urls-host shop.example:8443").expect("right");
        assert_eq!(kinds(&exact).len(), 2, "one has no port");
        assert!(read(OBJECTS, "http://cdn.example:8080 --urls FILE").is_err(), "another port");
        let none = read(OBJECTS, "http://127.0.0.1:1 --urls FILE").expect_err("no such host");
        assert!(none.contains("no request to 127.0.0.1:1; it has ") && none.contains("shop.example (1)"), "{none}");
    }

    #[test]
    fn times_and_lists_are_as_they_were() {
        let times = read("0\n1\n3\n", "http://127.0.0.1:1/x --replay FILE --speed 0.5").expect("right");
        assert_eq!(times.replay, Some(OfferedRate::Replay(vec![0.0, 2.0, 6.0])));
        assert_eq!((times.lines.len(), times.note), (1, None));
        let list = read("http://127.0.0.1:1/a 3\n", "--urls FILE").expect("right");
        assert_eq!(list.lines[0].weight, 3);
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (text, flags, word) in [
            (LOG, "--urls FILE", "there is no URL to say where its requests go"),
            (LOG, "http://h/ http://i/ --urls FILE", "there are 2 URLs"),
            (LOG, "http://h/x --urls FILE", "a path, /x, and FILE has paths of its own"),
            (LOG, "redis://h --urls FILE", "redis:// for a recording of HTTP requests"),
            (LOG, "http://h/ --replay FILE --urls FILE", "a recording has its requests"),
            (LOG, "http://h/ --weight 1 --replay FILE", "its own frequencies"),
            (LOG, "http://h/ --urls FILE --urls-format har", "FILE:1: it is no HAR file"),
            (LOG, "--urls FILE --urls-format list", "FILE:1: "),
            ("http://h/a\n", "http://h/ --urls FILE", "a list of URLs, and a URL beside it"),
            ("http://h/a\n", "--urls FILE --speed 2x", "--replay"),
            ("0\n", "http://h/ --replay FILE --speed 0", "--speed"),
            ("0\n", "http://h/ --replay /no/such/file", "--replay: /no/such/file: "),
        ] {
            let said = read(text, flags).expect_err(flags);
            assert!(said.contains(word), "{flags}: {said}");
        }
    }

    #[test]
    fn no_more_different_requests_than_can_be_kept() {
        let line = |n: usize| format!("h - - [23/Nov/2026:20:00:02 +0000] \"GET /{n} HTTP/1.1\" 200 5\n");
        let text: String = (0..=MOST_KINDS).map(line).collect();
        let said = read(&text, "http://h/ --urls FILE").expect_err("too many");
        assert!(said.contains("100,001 different requests"), "{said}");
    }
}
