//! The requests of a load, and when they are due, as far as files say it: `--urls` and `--replay` with lists, times, HAR files and
//! access logs. Called by `verbs::load::spec`.
//!
//! Recorded requests go to the one server that the command line names, and nowhere else: of a recording only the entries of
//! one host are taken, and they are sent with that host.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use weir_model::InputError;
use weir_model::load::{OfferedRate, RecordedDue};
use weir_model::text::{count, counted, line_at};
use weir_requests::recorded::{self, Format, LARGEST_FILE, RecordedRequest, Recording};
use weir_requests::replay;

use super::flags::Args;
use super::urls::{self, Place, UrlLine};
use crate::exit::Failure;

/// The most different requests of one load: each is kept ready to be sent.
const MOST_KINDS: usize = 100_000;

/// Characters of why an entry was left out.
const LONGEST_WHY: usize = 80;

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
    let times = args.load.replay.as_deref().map(|path| File::read("--replay", path, args)).transpose()?;
    let list = args.request.urls.as_deref().map(|path| File::read("--urls", path, args)).transpose()?;
    let is_recording = |file: &Option<File>| file.as_ref().is_some_and(|file| matches!(file.kind, Kind::Recording(_)));
    if args.request.urls_host.is_some() && !is_recording(&times) && !is_recording(&list) {
        let found = "there is no recording, and URLs name their hosts";
        return Err(Failure::wrong("--urls-host", found, "--replay or --urls with a HAR file or an access log"));
    }
    let replay = match times {
        Some(file) => match file.kind {
            Kind::Recording(format) => {
                if list.is_some() {
                    let found = "a recording has its requests, and --urls has others";
                    return Err(Failure::wrong("--replay", found, "one of them, or a file of times with --urls"));
                }
                return recording(args, &file, format, Some(speed));
            }
            Kind::List => {
                let due_s = replay::parse(&file.name, file.text()?).map_err(Failure::input)?;
                Some(OfferedRate::Replay(due_s.into_iter().map(|at_s| at_s / speed).collect()))
            }
        },
        None => None,
    };
    match list.as_ref().map(|file| (file, file.kind)) {
        Some((file, Kind::Recording(format))) => Ok(Source { replay, ..recording(args, file, format, None)? }),
        Some((file, _)) => Ok(Source { lines: listed(args, file)?, replay, note: None }),
        None => {
            let unix = args.connections.unix.is_some();
            let lines = urls::from_arguments(&args.url, &args.request.weight, unix).map_err(Failure::input)?;
            Ok(Source { lines, replay, note: None })
        }
    }
}

/// The URLs of a list.
fn listed(args: &Args, file: &File) -> Result<Vec<UrlLine>, Failure> {
    let (name, text, unix) = (file.name.as_str(), file.text()?, args.connections.unix.is_some());
    let lines = match args.url.as_slice() {
        [] => urls::from_text(name, text, unix, None),
        [_] => urls::from_text(name, text, unix, Some(&server(args, name)?.url)),
        _ => {
            let wanted = "the list alone; a list of paths, a HAR file or an access log with the URL of the server";
            return Err(Failure::wrong("--urls", "a list of URLs, and a URL beside it", wanted));
        }
    };
    lines.map_err(Failure::input)
}

/// A file that a flag names.
struct File {
    name: String,
    bytes: Vec<u8>,
    kind: Kind,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Recording(Format),
    /// Of URLs or times.
    List,
}

impl File {
    fn read(flag: &str, path: &Path, args: &Args) -> Result<File, Failure> {
        let name = path.display().to_string();
        let wrong = |found: String| Failure::wrong(flag, format!("{name}: {found}"), "a text file that can be read");
        let size = std::fs::metadata(path).map_err(|e| wrong(e.to_string()))?.len();
        if size > LARGEST_FILE {
            let found = format!("{name} has {} bytes", count(size));
            return Err(Failure::wrong(flag, found, "at most 1 GiB: a part of it"));
        }
        let bytes = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
        let kind = args.request.urls_format.unwrap_or_else(|| Kind::of(&bytes));
        Ok(File { name, bytes, kind })
    }

    /// Its text, where it has to be one.
    fn text(&self) -> Result<&str, Failure> {
        std::str::from_utf8(&self.bytes).map_err(|error| {
            let line = line_at(&self.bytes, error.valid_up_to());
            let error = InputError::of(&self.name, "it is not UTF-8", "a list in UTF-8, or a recording");
            Failure::input(InputError { line: Some(line), ..error })
        })
    }
}

impl Kind {
    fn of(bytes: &[u8]) -> Kind {
        Format::of(bytes).map_or(Kind::List, Kind::Recording)
    }
}

/// Formats of `--urls-format`.
pub const URLS_FORMATS: [(&str, &str, Kind); 7] = [
    ("list", "A URL a line, as siege and h2load have them, or a time a line", Kind::List),
    ("har", "HTTP Archive", Kind::Recording(Format::Har)),
    (
        "combined",
        "Access log of nginx, Apache or Traefik: common or combined, also with virtual hosts",
        Kind::Recording(Format::Combined),
    ),
    ("haproxy", "HAProxy's HTTP log", Kind::Recording(Format::Haproxy)),
    ("envoy", "Access log of Envoy or Istio in its default format", Kind::Recording(Format::Envoy)),
    ("elb", "Access log of AWS's load balancers", Kind::Recording(Format::Elb)),
    (
        "json",
        "Access log with a JSON object a line, as of Caddy, Traefik, Envoy and nginx",
        Kind::Recording(Format::Json),
    ),
];

/// The requests of a recording: by their frequency, or with `speed` at their times.
fn recording(args: &Args, file: &File, format: Format, speed: Option<f64>) -> Result<Source, Failure> {
    let name = file.name.as_str();
    let mut server = server(args, name)?;
    let mut recording = recorded::parse(name, &file.bytes, format).map_err(Failure::input)?;
    let chosen = Chosen::new(&mut recording, args.request.urls_host.as_deref(), &server, name)?;
    let due_s = speed.map(|speed| recording.timetable(name, speed)).transpose().map_err(Failure::input)?;
    let note = note(name, &recording, &chosen);
    // The address stays the server's.
    server.url.authority = chosen.host.unwrap_or(server.url.authority);
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

/// The host whose requests are sent, and what is not sent because of that.
struct Chosen {
    /// For `Host`; `None` is the URL's.
    host: Option<String>,
    /// Requests to other hosts.
    others: BTreeMap<String, u64>,
    /// Requests of which a recording with hosts does not say where they went.
    unknown: u64,
}

impl Chosen {
    /// Leaves the requests of one host in a recording: the one that is wanted, or else the URL's, or else the only one that there is.
    fn new(recording: &mut Recording, wanted: Option<&str>, server: &UrlLine, name: &str) -> Result<Chosen, Failure> {
        let mut others: BTreeMap<String, u64> = BTreeMap::new();
        for host in recording.requests.iter().filter_map(|request| request.host.as_ref()) {
            *others.entry(host.clone()).or_default() += 1;
        }
        let url_host = server.url.authority.to_ascii_lowercase();
        let names_url = others.keys().any(|host| is_same(host, &url_host));
        let host = match wanted {
            Some(wanted) => Some(wanted.to_ascii_lowercase()),
            None if names_url || !recording.names_hosts => None,
            None => Some(only(&others).ok_or_else(|| {
                let found = format!("{name} has requests to {}", most(&others));
                Failure::wrong("--urls-host", found, "the host whose requests are sent, such as --urls-host HOST")
            })?),
        };
        let taken = host.as_deref().unwrap_or(&url_host);
        let before = recording.requests.len();
        let names_hosts = recording.names_hosts;
        recording.requests.retain(|request| match &request.host {
            Some(host) => is_same(host, taken),
            None => !names_hosts,
        });
        if recording.requests.is_empty() {
            let found = format!("{name} has no request to {taken}; it has {}", most(&others));
            let wanted = "the host whose requests are sent, such as --urls-host HOST";
            return Err(Failure::wrong("--urls-host", found, wanted));
        }
        others.retain(|host, _| !is_same(host, taken));
        let unknown = (before - recording.requests.len()) as u64 - others.values().sum::<u64>();
        Ok(Chosen { host, others, unknown })
    }
}

/// A host in its parts: name, and port where there is one.
fn parts(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => (name, Some(port)),
        _ => (host, None),
    }
}

/// Ports are compared where both have one: a recording often leaves out the one of its scheme.
fn is_same(a: &str, b: &str) -> bool {
    let ((a, a_port), (b, b_port)) = (parts(a), parts(b));
    a == b && (a_port.is_none() || b_port.is_none() || a_port == b_port)
}

/// The only host of some that may have it with and without its port.
fn only(hosts: &BTreeMap<String, u64>) -> Option<String> {
    let names: BTreeSet<&str> = hosts.keys().map(|host| parts(host).0).collect();
    let ports: BTreeSet<&str> = hosts.keys().filter_map(|host| parts(host).1).collect();
    let one = names.len() == 1 && ports.len() <= 1;
    hosts.keys().next().filter(|_| one).cloned()
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
fn note(name: &str, recording: &Recording, chosen: &Chosen) -> String {
    let mut omitted = Vec::new();
    if !chosen.others.is_empty() {
        let others = chosen.others.values().sum();
        omitted.push(format!("{} to other hosts, {}", count(others), most(&chosen.others)));
    }
    if chosen.unknown > 0 {
        omitted.push(format!("{} whose host it does not say", count(chosen.unknown)));
    }
    for (reason, omission) in &recording.omitted {
        let (first, why) = (omission.place, console::truncate_str(&omission.why, LONGEST_WHY, "…"));
        omitted.push(format!("{} {} ({} {first}: {why})", count(omission.count), reason.title(), recording.unit()));
    }
    let omitted = if omitted.is_empty() { String::new() } else { format!("; left out: {}", omitted.join("; ")) };
    let host = chosen.host.as_ref().map_or(String::new(), |host| format!(" to {host}"));
    format!("{name}: {}{host}{omitted}", counted(recording.requests.len() as u64, "request"))
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
        assert_eq!(
            mix.note.as_deref(),
            Some("FILE: 3 requests; left out: 1 that cannot be sent (line 3: \"\" is no request)")
        );
        let replay = read(LOG, "http://127.0.0.1:1 --replay FILE --speed 2x").expect("right").replay;
        let due = |at_s, request| RecordedDue { at_s, request };
        assert_eq!(replay, Some(OfferedRate::Recorded(vec![due(0.0, 0), due(1.0, 1), due(2.0, 0)])));
    }

    #[test]
    fn only_requests_of_one_host_are_taken() {
        let one = read(OBJECTS, "http://127.0.0.1:1 --urls FILE --urls-host shop.example").expect("right");
        assert_eq!(kinds(&one), [("GET", "/a", 1), ("POST", "/c", 1)]);
        assert_eq!(
            one.note.as_deref(),
            Some("FILE: 2 requests to shop.example; left out: 1 to other hosts, cdn.example:443 (1)")
        );
        let exact = read(OBJECTS, "http://127.0.0.1:1 --urls FILE --urls-host shop.example:8443").expect("right");
        assert_eq!(kinds(&exact).len(), 2, "one has no port");
        assert!(read(OBJECTS, "http://cdn.example:8080 --urls FILE").is_err(), "another port");
        let none = read(OBJECTS, "http://127.0.0.1:1 --urls FILE --urls-host x.example").expect_err("no such host");
        assert!(none.contains("no request to x.example; it has ") && none.contains("shop.example (1)"), "{none}");
        let several = read(OBJECTS, "http://127.0.0.1:1 --urls FILE").expect_err("which one");
        assert!(several.contains("FILE has requests to cdn.example:443 (1), shop.example (1)"), "{several}");
    }

    /// A file that practitioners have, also of the fuzz target's corpus.
    fn kept(name: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/request_files").join(name);
        String::from_utf8(std::fs::read(path).expect(name)).expect("UTF-8")
    }

    /// Each request, with its address and its `Host`.
    fn sent(source: &Source) -> Vec<String> {
        let line = |line: &UrlLine| {
            let (method, url) = (line.method.as_deref().unwrap_or_default(), &line.url);
            format!("{method} {} to {}:{} as {}", url.path, url.host, url.port, url.authority)
        };
        source.lines.iter().map(line).collect()
    }

    #[test]
    fn what_was_meant_for_another_host_is_never_sent() {
        let vhosts = kept("vhost_combined.log");
        let har = r#"{"log":{"entries":[{"request":{"method":"GET","url":"https://a.example/x"}},
            {"request":{"method":"POST","url":"https://b.example/y"}}]}}"#;
        // The log names the hosts of all requests but one.
        let unknown =
            vhosts.replace("b.example:443 192.0.2.1 - - [05/Jan/2026:10:00:01", "192.0.2.1 - - [05/Jan/2026:10:00:01");
        // Scanners send such requests to see whether a server is an open proxy.
        let absolute =
            format!("{LOG}1.2.3.4 - - [23/Nov/2026:20:00:04 +0000] \"GET http://b.example/z HTTP/1.1\" 200 5\n");
        let flags = "http://127.0.0.1:1 --urls FILE";
        for (text, host, expected, omission) in [
            (
                vhosts.as_str(),
                " --urls-host a.example",
                "GET /only-on-a to 127.0.0.1:1 as a.example",
                "2 to other hosts, b.example:443 (2)",
            ),
            (har, " --urls-host A.example", "GET /x to 127.0.0.1:1 as a.example", "1 to other hosts, b.example (1)"),
            (
                &unknown,
                " --urls-host a.example",
                "GET /only-on-a to 127.0.0.1:1 as a.example",
                "1 to other hosts, b.example:443 (1); 1 whose host it does not say",
            ),
            (
                &absolute,
                "",
                "GET /a to 127.0.0.1:1 as 127.0.0.1:1|GET /b to 127.0.0.1:1 as 127.0.0.1:1",
                "1 to other hosts, b.example (1)",
            ),
        ] {
            let source = read(text, &format!("{flags}{host}")).expect(expected);
            assert_eq!(sent(&source).join("|"), expected);
            assert!(
                source.note.as_ref().is_some_and(|note| note.contains(&format!("left out: {omission}"))),
                "{:?}",
                source.note
            );
        }
        for (text, host, word) in [
            (
                vhosts.as_str(),
                " --urls-host c.example",
                "no request to c.example; it has b.example:443 (2), a.example:443 (1)",
            ),
            (&vhosts, " --urls-host a.example:80", "no request to a.example:80; it has"),
            (&vhosts, "", "FILE has requests to b.example:443 (2), a.example:443 (1)"),
            (har, "", "FILE has requests to a.example (1), b.example (1)"),
        ] {
            let said = read(text, &format!("{flags}{host}")).expect_err(word);
            assert!(said.contains(word) && said.contains("--urls-host"), "{said}");
        }
    }

    #[test]
    fn the_only_host_needs_no_flag_and_is_the_host_of_what_is_sent() {
        for (name, expected) in [
            (
                "haproxy-httplog.log",
                "GET /a.js to 127.0.0.1:1 as shop.example|GET /index.html to 127.0.0.1:1 as shop.example",
            ),
            (
                "envoy-default.log",
                "POST /api/v1/x to 127.0.0.1:1 as shop.example|GET /x to 127.0.0.1:1 as shop.example",
            ),
            ("caddy.log", "GET /a?x=1 to 127.0.0.1:1 as shop.example"),
            ("traefik-json.log", "GET /ping to 127.0.0.1:1 as shop.example"),
            ("key-order.har", "GET / to 127.0.0.1:1 as shop.example"),
        ] {
            for flag in ["--urls", "--replay"] {
                let source = read(&kept(name), &format!("http://127.0.0.1:1 {flag} FILE")).expect(name);
                assert_eq!(
                    (sent(&source).join("|").as_str(), source.replay.is_some()),
                    (expected, flag == "--replay"),
                    "{name}"
                );
            }
        }
        // A log that knows no hosts has the one of the flag, or of the URL.
        for (flag, host) in [("", "127.0.0.1:1"), (" --urls-host shop.example", "shop.example")] {
            let source = read(LOG, &format!("http://127.0.0.1:1 --urls FILE{flag}")).expect("right");
            assert!(
                source.lines.iter().all(|line| line.url.authority == host && line.url.host == "127.0.0.1"),
                "{flag}"
            );
        }
    }

    #[test]
    fn what_is_left_out_is_counted_with_the_first_place() {
        for (name, expected) in [
            (
                "truncated-last-line.log",
                "1 request; left out: 1 not of the format (line 2: it is no entry of a combined access log)",
            ),
            (
                "traefik-clf-dash-status.log",
                "1 request; left out: 1 that cannot be sent (line 2: it has no status: it had no response)",
            ),
            (
                "from-cache.har",
                "1 request to shop.example; left out: 2 from the browser's cache (entry 2: https://shop.example/logo.png)",
            ),
        ] {
            let note = read(&kept(name), "http://127.0.0.1:1 --urls FILE").expect(name).note;
            assert_eq!(note, Some(format!("FILE: {expected}")));
        }
    }

    #[test]
    fn lists_of_other_tools_are_read_or_named() {
        let (times, urls) = (kept("times-bom.txt"), kept("urls-bom.txt"));
        let replay = read(&times, "http://127.0.0.1:1/x --replay FILE").expect("a mark of byte order").replay;
        assert_eq!(replay, Some(OfferedRate::Replay(vec![0.0, 0.1])));
        assert_eq!(sent(&read(&urls, "--urls FILE").expect("a mark")), [" /ok to 127.0.0.1:18081 as 127.0.0.1:18081"]);
        let siege = read(&kept("urls-three-words.txt"), "--urls FILE").expect_err("a body");
        assert!(siege.starts_with("FILE:1: \"POST\" comes after the URL, as in siege's lists"), "{siege}");
        let paths = read("/a\n/b 3\n", "http://127.0.0.1:1 --urls FILE").expect("paths");
        assert_eq!(kinds(&paths), [("", "/a", 1), ("", "/b", 3)]);
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
            ("http://h/a\n", "--urls FILE --urls-host h", "--urls-host: there is no recording"),
            ("/a\n", "http://h/x --urls FILE", "a path, /x, and FILE has paths of its own"),
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
