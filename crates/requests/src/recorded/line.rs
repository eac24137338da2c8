//! Access logs with one line of text for each request: the grammar of each format is a regular expression in a table.
//!
//! Readers take only the time, the request line and the host: sizes, referrer and user agent are not sent. This module does not know
//! which format a file has.

use std::net::IpAddr;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::time::read_time;
use super::{Entry, Format, Found, Omission, request_line};

/// A format of lines.
struct Grammar {
    format: Format,
    /// Groups: `time`, `request`, where known `status`, and what [`Grammar::host`] reads.
    pattern: &'static str,
    /// The host of a line, where it stands outside the request.
    host: fn(&Captures<'_>) -> Option<String>,
    /// In the words of `it is no entry of ...`.
    title: &'static str,
    /// A line that would be right.
    wanted: &'static str,
}

const GRAMMARS: [Grammar; 4] = [
    Grammar {
        format: Format::Combined,
        pattern: r#"^(?P<before>.*?) \[(?P<time>[^\]"]*)\] "(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\d{3}|-) (?:\d+|-)(?:\s|$)"#,
        host: virtual_host,
        title: "a combined access log",
        wanted: "host ident user [10/Oct/2000:13:55:36 -0700] \"GET /x HTTP/1.1\" 200 128",
    },
    Grammar {
        format: Format::Haproxy,
        pattern: r#"^\S+:\d+ \[(?P<time>\d\d/\w{3}/\d{4}:[\d:.]+)\] \S+ \S+ [-+\d/]+ -?\d+ (?P<before>.*?)"(?P<request>[^"]*)"(?P<after>[^"]*)$"#,
        host: captured_host,
        title: "an HTTP log of HAProxy",
        wanted: "192.0.2.1:33317 [05/Jan/2026:10:00:00.726] frontend backend/server 0/0/1/0/2 200 168 - - ---- 6/6/0/0/0 0/0 \"GET /x HTTP/1.1\"",
    },
    Grammar {
        format: Format::Envoy,
        pattern: r#"^\[(?P<time>[^\]"]*)\] "(?P<request>[^"]*)" \d{1,3} (?P<after>.*)$"#,
        host: authority,
        title: "an access log in the default format of Envoy",
        wanted: "[2026-01-05T10:00:00.310Z] \"GET /x HTTP/1.1\" 200 - 0 5 3 1 \"-\" \"agent\" \"id\" \"shop.example\" \"192.0.2.9:80\"",
    },
    Grammar {
        format: Format::Elb,
        pattern: r#"^(?:(?:https?|h2|grpcs?|wss?) )?(?P<time>\d{4}-\d\d-\d\dT\S+Z) \S+ \S+:\d+ [^"]*"(?P<request>[^"]*)""#,
        host: |_| None,
        title: "an access log of AWS's load balancers",
        wanted: "h2 2026-01-05T10:00:00.186641Z app/x/1 192.0.2.1:2817 192.0.2.9:80 0 0.001 0 200 200 34 366 \"GET https://shop.example:443/ HTTP/2.0\"",
    },
];

static PATTERNS: LazyLock<Vec<(&'static Grammar, Regex)>> = LazyLock::new(|| {
    let compiled = |grammar: &'static Grammar| Some((grammar, Regex::new(grammar.pattern).ok()?));
    GRAMMARS.iter().filter_map(compiled).collect()
});

/// A line that would be right.
pub(super) fn wanted(format: Format) -> Option<&'static str> {
    GRAMMARS.iter().find(|grammar| grammar.format == format).map(|grammar| grammar.wanted)
}

/// Reads a line of such a format.
pub(super) fn entry(format: Format, line: &str) -> Entry {
    let known = PATTERNS.iter().find(|(grammar, _)| grammar.format == format);
    let (grammar, pattern) = known.ok_or_else(|| Omission::malformed("it is no line of a log"))?;
    let no_entry = || Omission::malformed(format!("it is no entry of {}", grammar.title));
    let groups = pattern.captures(line).ok_or_else(no_entry)?;
    let (time, request) = (&groups["time"], &groups["request"]);
    let no_time = || Omission::malformed(format!("{:?} is not a time", time.chars().take(40).collect::<String>()));
    let at = read_time(time).ok_or_else(no_time)?;
    if groups.name("status").is_some_and(|status| status.as_str() == "-") {
        return Err(Omission::unsendable("it has no status: it had no response"));
    }
    // A proxy that cuts long request lines cuts the version off first.
    let (method, target) = request_line(request, format == Format::Combined)?;
    Ok(Found { at: Some(at), host: (grammar.host)(&groups), method, target })
}

/// The host before the client's address, as in `vhost_combined`: `a.example:443 192.0.2.1 - - `. Without it there are three words,
/// of which the second is a `-`.
fn virtual_host(groups: &Captures<'_>) -> Option<String> {
    // Addresses of several proxies are a list with commas.
    let words: Vec<&str> = groups["before"].split_whitespace().skip_while(|word| word.ends_with(',')).collect();
    let first = *words.first()?;
    let is_host = has_port(first) || words.len() > 3 && words[1] != "-" && first.parse::<IpAddr>().is_err();
    is_host.then(|| first.to_owned())
}

fn has_port(word: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && (!name.contains(':') || name.starts_with('['));
    word.rsplit_once(':').is_some_and(|(name, port)| {
        is_name(name) && name != "unix" && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
    })
}

/// The first captured request header that looks like a host, or else the name that a TLS client asked for.
fn captured_host(groups: &Captures<'_>) -> Option<String> {
    let captured = groups["before"].split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    let in_headers = captured.and_then(|(headers, _)| headers.split('|').find(|value| looks_like_host(value)));
    let tls = groups["after"].split_whitespace().find_map(|word| word.split_once("/TLSv"));
    in_headers.or(tls.map(|(name, _)| name).filter(|name| looks_like_host(name))).map(str::to_owned)
}

/// Letters and a dot, in what a name may have.
fn looks_like_host(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    let has = |wanted: fn(&u8) -> bool| name.bytes().any(|b| wanted(&b));
    has(u8::is_ascii_alphabetic)
        && has(|b| *b == b'.')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_:".contains(&b))
}

/// The last quoted text but one. User agents may have quotes, so it is counted from the end.
fn authority(groups: &Captures<'_>) -> Option<String> {
    let after = &groups["after"];
    let has_all = after.matches('"').count() >= 8;
    after.rsplit('"').nth(3).filter(|_| has_all).map(str::to_owned)
}
