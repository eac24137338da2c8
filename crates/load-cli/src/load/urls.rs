//! The URLs of a load, from the command line or a file, each with a method and a weight; and the address of a URL's host.
//! Called by `verbs::load::recorded` and `verbs::load::request`.

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, TcpStream, ToSocketAddrs};
use std::time::Duration;

use http::Uri;
use percent_encoding::percent_decode_str;
use weir_model::InputError;
use weir_model::load::Login;
use weir_model::protocol::Protocol;
use weir_model::text::{counted, without_mark};

/// Connect timeout for each address of a name.
const TRIED: Duration = Duration::from_secs(1);

/// Methods that lists have behind a URL.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// One kind of request, as the user wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlLine {
    /// Its own method, upper case, where one is written.
    pub method: Option<String>,
    pub url: Url,
    /// Headers of its own.
    pub headers: Vec<(String, String)>,
    /// A body of its own.
    pub body: Option<Vec<u8>>,
    /// At least 1.
    pub weight: u32,
    pub place: Place,
}

/// Where a URL is written: the file, or what the argument is called, and the 1-based line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub source: String,
    pub line: Option<usize>,
}

impl UrlLine {
    fn new(method: Option<String>, url: Url, weight: u32, place: Place) -> UrlLine {
        UrlLine { method, url, headers: Vec::new(), body: None, weight, place }
    }
}

impl Place {
    /// The error for what was found there.
    pub fn wrong(&self, found: String, wanted: &str) -> InputError {
        InputError { line: self.line, ..InputError::of(&self.source, found, wanted) }
    }
}

/// A parsed URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// The first protocol with its scheme.
    pub protocol: Protocol,
    /// Host without brackets and zone.
    pub host: String,
    /// The network interface that an IPv6 address is of.
    pub zone: Option<u32>,
    /// Port, the scheme's own where none is written.
    pub port: u16,
    /// Host and port as written, without the zone, which is this machine's alone (RFC 6874): for `Host` and `:authority`.
    pub authority: String,
    /// Path and query; empty for key-value servers.
    pub path: String,
    pub login: Option<Login>,
}

/// URLs given as arguments, with `--weight`.
///
/// # Errors
/// What is wrong with a URL, or that there are not as many weights as URLs.
pub fn from_arguments(urls: &[String], weights: &[u32], unix: bool) -> Result<Vec<UrlLine>, InputError> {
    if !weights.is_empty() && weights.len() != urls.len() {
        let place = Place { source: "--weight".to_owned(), line: None };
        let (weights, urls) = (counted(weights.len() as u64, "weight"), counted(urls.len() as u64, "URL"));
        return Err(place.wrong(format!("{weights} for {urls}"), "one for each, in their order"));
    }
    let place = Place { source: "URL".to_owned(), line: None };
    let line =
        |(text, weight): (&String, u32)| Ok(UrlLine::new(None, parse(text, &place, unix)?, weight, place.clone()));
    urls.iter().zip(weights.iter().copied().chain(std::iter::repeat(1))).map(line).collect()
}

/// URLs of a list: `[METHOD] URL [WEIGHT]` a line; empty lines and what follows a `#` at a line's beginning or behind a
/// blank are skipped. With a `server` they are paths of its.
///
/// # Errors
/// File and line, what was found and what would be right.
pub fn from_text(source: &str, text: &str, unix: bool, server: Option<&Url>) -> Result<Vec<UrlLine>, InputError> {
    let file = Place { source: source.to_owned(), line: None };
    let numbered = (1..).zip(without_mark(text).lines().map(without_comment)).filter(|(_, text)| !text.is_empty());
    let lines: Vec<UrlLine> = numbered
        .map(|(number, text)| line(text, Place { line: Some(number), ..file.clone() }, unix, server))
        .collect::<Result<_, _>>()?;
    if lines.is_empty() {
        return Err(file.wrong("there is no URL in it".to_owned(), "lines of the form [METHOD] URL [WEIGHT]"));
    }
    Ok(lines)
}

/// A `#` inside a URL begins its fragment, which is not sent anyway.
fn without_comment(text: &str) -> &str {
    let end = match text.trim_start().starts_with('#') {
        true => 0,
        false => text.find(" #").or_else(|| text.find("\t#")).unwrap_or(text.len()),
    };
    text[..end].trim()
}

fn line(text: &str, place: Place, unix: bool, server: Option<&Url>) -> Result<UrlLine, InputError> {
    let wanted = "[METHOD] URL [WEIGHT], such as \"POST http://127.0.0.1:8080/x 3\"; or another format of weir help load request";
    let wrong = |found: String| place.wrong(found, wanted);
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let weight = match words.last() {
        Some(last) if words.len() > 1 && last.bytes().all(|b| b.is_ascii_digit()) => {
            let weight = last.parse().ok().filter(|weight| *weight > 0);
            let weight = weight.ok_or_else(|| wrong(format!("\"{last}\" is not a weight from 1 to {}", u32::MAX)))?;
            words.pop();
            weight
        }
        _ => 1,
    };
    let (method, url) = match words.as_slice() {
        [url] if is_url(url) => (None, *url),
        [method, url] if is_method(method) && is_url(url) => (Some(method.to_ascii_uppercase()), *url),
        words => return Err(wrong(misplaced(words))),
    };
    let url = match server {
        Some(server) if url.starts_with('/') => {
            let path = url.split('#').next().unwrap_or(url);
            Url { path: path.to_owned(), ..server.clone() }
        }
        Some(_) => {
            let found = format!("a list of URLs, and a URL beside it: {} names its own server", shown(url));
            return Err(place.wrong(found, "the list alone, or one of paths such as /a"));
        }
        None if url.starts_with('/') && !unix => {
            let wanted = format!("the URL of the server: weir load http://127.0.0.1:8080 --urls {}", place.source);
            return Err(place.wrong(format!("\"{url}\" is a path without a server"), &wanted));
        }
        None => parse(url, &place, unix)?,
    };
    Ok(UrlLine::new(method, url, weight, place))
}

fn is_method(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-')
}

/// Which of the words of a line does not belong there, and why.
fn misplaced(words: &[&str]) -> String {
    let Some(at) = words.iter().position(|word| is_url(word)) else {
        return format!(
            "\"{}\" is not a URL: it has neither :// nor a / at its beginning",
            words.last().unwrap_or(&"")
        );
    };
    match (&words[..at], words.get(at + 1)) {
        (_, Some(method)) if METHODS.contains(method) => format!(
            "\"{method}\" comes after the URL, as in siege's lists: a method comes before it, and -b gives the body"
        ),
        (_, Some(other)) => format!("\"{other}\" is neither a URL nor a weight"),
        ([method], None) => format!("\"{method}\" is not a method"),
        (before, None) => format!("\"{}\" is one word too many before the URL", before.last().unwrap_or(&"")),
    }
}

/// In a file a URL has its scheme, or begins with a path: a word alone is more likely a mistake.
fn is_url(word: &str) -> bool {
    word.contains("://") || word.starts_with('/')
}

/// The protocol of all URLs: the first one with their scheme.
///
/// # Errors
/// URLs of several protocols.
pub fn protocol(lines: &[UrlLine]) -> Result<Protocol, InputError> {
    let first = lines.first().map_or_else(Protocol::default, |line| line.url.protocol);
    match lines.iter().find(|line| line.url.protocol != first) {
        None => Ok(first),
        Some(other) => {
            let found = format!("some URLs are {}, and some {}", first.scheme(), other.url.protocol.scheme());
            Err(InputError::of("URL", found, "one kind for all of a load"))
        }
    }
}

/// A URL without its login, and the login as written. A key-value server has no path, so there it may have any character.
fn split_login(url: &str) -> (String, Option<&str>) {
    let (scheme, start) = url.find("://").map_or(("", 0), |at| (&url[..at], at + 3));
    let rest = &url[start..];
    let end = match Protocol::of_scheme(scheme) {
        Some(protocol) if protocol.is_keyvalue() => rest.len(),
        _ => rest.find(['/', '?', '#']).unwrap_or(rest.len()),
    };
    match rest[..end].rfind('@') {
        Some(at) => (format!("{}{}", &url[..start], &rest[at + 1..]), Some(&rest[..at])),
        None => (url.to_owned(), None),
    }
}

/// A URL as it may be printed: its password is `***`.
pub fn shown(url: &str) -> String {
    let (bare, Some(login)) = split_login(url) else { return url.to_owned() };
    let start = bare.find("://").map_or(0, |at| at + 3);
    let user = login.split_once(':').map_or(String::new(), |(user, _)| format!("{user}:"));
    format!("{}{user}***@{}", &bare[..start], &bare[start..])
}

/// A URL without the zone of its IPv6 address, and the zone: `http://[fe80::1%25eth0]/`.
fn split_zone(url: &str) -> Option<(String, String)> {
    let start = url.find("://")? + 3;
    let (inside, rest) = url[start..].strip_prefix('[')?.split_once(']')?;
    let (address, zone) = inside.split_once('%')?;
    Some((format!("{}[{address}]{rest}", &url[..start]), zone.to_owned()))
}

/// The number of a zone, which is written as a number or as an interface's name, behind `%25`.
fn zone_index(zone: &str) -> Option<u32> {
    let name = percent_decode_str(zone.strip_prefix("25")?).decode_utf8().ok()?;
    name.parse().ok().filter(|index| *index > 0).or_else(|| weir_net::interface_index(&name))
}

/// Reads `host:port`, where connections go to.
///
/// # Errors
/// What was found and what would be right.
pub fn server(text: &str) -> Result<Url, InputError> {
    let place = Place { source: text.to_owned(), line: None };
    let url = parse(&format!("http://{text}"), &place, false)?;
    let is_whole = url.authority.ends_with(&format!(":{}", url.port)) && !text.contains(['/', '?', '#']);
    is_whole.then_some(url).ok_or_else(|| place.wrong("this is no host with a port".to_owned(), "127.0.0.1:8443"))
}

/// Reads a login, `[user]:password` with percent-encoded characters.
fn login_of(protocol: Protocol, text: &str) -> Result<Login, String> {
    if !protocol.has_login() {
        return Err(format!("{} has no logins", protocol.title()));
    }
    let decoded = |text| percent_decode_str(text).decode_utf8().ok().map(String::from);
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    match (decoded(user), decoded(password)) {
        (Some(user), Some(password)) if !password.is_empty() => Ok(Login { user, password }),
        _ => Err("it has no usable password".to_owned()),
    }
}

/// Reads `http[s]://host[:port][/path][?query]`, or `scheme://[[user]:password@]host[:port]` of a key-value server; without a
/// scheme it is http. With a unix socket (`unix`) a path alone is enough.
///
/// # Errors
/// What was found and what would be right.
fn parse(text: &str, place: &Place, unix: bool) -> Result<Url, InputError> {
    let (bare, login) = split_login(text);
    let text = &shown(text);
    let is_scheme = |(scheme, _): &(&str, &str)| scheme.bytes().all(|b| b.is_ascii_alphanumeric());
    let whole = match bare.split_once("://").filter(is_scheme) {
        Some(_) => bare,
        None if unix && bare.starts_with('/') => format!("http://localhost{bare}"),
        None => format!("http://{bare}"),
    };
    let not_a_url = |why: &str| place.wrong(format!("\"{text}\" is not a URL: {why}"), "http://host:port/path");
    if !text.is_ascii() {
        return Err(not_a_url("characters other than ASCII have to be percent-encoded"));
    }
    let (whole, zone) = split_zone(&whole).map_or((whole, None), |(url, zone)| (url, Some(zone)));
    let uri: Uri = whole.parse().map_err(|error: http::uri::InvalidUri| not_a_url(&error.to_string()))?;
    let scheme = uri.scheme_str().unwrap_or_default();
    let Some(protocol) = Protocol::of_scheme(scheme) else {
        return Err(place.wrong(format!("weir load does not speak {scheme}://"), &Protocol::schemes(|_| true)));
    };
    let login = login.map(|login| login_of(protocol, login)).transpose().map_err(|why| {
        let wanted = if protocol.has_login() { "[user]:password@host:port" } else { "host:port" };
        place.wrong(format!("\"{text}\" is not a URL: {why}"), &format!("{scheme}://{wanted}"))
    })?;
    let authority = uri.authority().filter(|authority| !authority.host().is_empty());
    let authority = authority.ok_or_else(|| not_a_url("it has no usable host"))?;
    let port = match authority.port_u16() {
        None if authority.as_str() == authority.host() => protocol.default_port(),
        None | Some(0) => {
            let wanted = "a host and a port from 1 to 65535, such as 127.0.0.1:8080 or [::1]:8080";
            return Err(place.wrong(format!("\"{authority}\" has no usable port"), wanted));
        }
        Some(port) => port,
    };
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let zone = zone.map(|zone| {
        let index = zone_index(&zone).filter(|_| host.parse::<Ipv6Addr>().is_ok());
        let wanted = "a network interface of this machine behind %25, such as http://[fe80::1%25eth0]:8080/";
        index.ok_or_else(|| place.wrong(format!("\"{text}\" has no usable zone: %{zone}"), wanted))
    });
    let path = uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    if protocol.is_keyvalue() && path != "/" {
        let found = format!("\"{text}\" has a path, and {scheme}:// servers have none");
        return Err(place.wrong(found, &format!("{scheme}://host:port")));
    }
    Ok(Url {
        protocol,
        host,
        zone: zone.transpose()?,
        port,
        authority: authority.to_string(),
        path: if protocol.is_keyvalue() { String::new() } else { path },
        login,
    })
}

/// Resolves a URL's host; of several addresses the first that accepts a connection is used.
///
/// # Errors
/// The resolver's error.
pub fn resolve(url: &Url, place: &Place) -> Result<SocketAddr, InputError> {
    if let (Some(zone), Ok(ip)) = (url.zone, url.host.parse()) {
        return Ok(SocketAddrV6::new(ip, url.port, 0, zone).into());
    }
    let addrs: Vec<SocketAddr> = (url.host.as_str(), url.port)
        .to_socket_addrs()
        .map_err(|e| place.wrong(format!("{} cannot be resolved: {e}", url.host), "a host that exists"))?
        .collect();
    choose(&addrs).ok_or_else(|| place.wrong(format!("{} has no address", url.host), "a host that has one"))
}

/// The first address that accepts a connection where there are several (a server may listen on only one of `localhost`'s);
/// the first of all where none does, so that the load reports why.
fn choose(addrs: &[SocketAddr]) -> Option<SocketAddr> {
    let responses = |addr: &&SocketAddr| TcpStream::connect_timeout(addr, TRIED).is_ok();
    let taken = if addrs.len() > 1 { addrs.iter().find(responses) } else { None };
    taken.or(addrs.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGUMENT: Place = Place { source: String::new(), line: None };

    fn one(text: &str) -> Result<Url, String> {
        parse(text, &ARGUMENT, false).map_err(|e| e.to_string())
    }

    #[test]
    fn urls_are_taken_apart() {
        let url = one("http://127.0.0.1:8080/a/b?c=d#e").expect("right");
        assert_eq!((url.port, url.authority.as_str(), url.path.as_str()), (8080, "127.0.0.1:8080", "/a/b?c=d"));
        assert_eq!(one("http://127.0.0.1").expect("right").path, "/");
        assert_eq!(one("http://127.0.0.1?x=1").expect("right").path, "/?x=1");
        assert_eq!(one("http://127.0.0.1#x").expect("right").path, "/");
        assert_eq!(one("127.0.0.1:81/x").expect("right").port, 81);
        assert_eq!(one("localhost/?to=http://x/").expect("right").path, "/?to=http://x/");
        let six = one("https://[::1]:82/").expect("right");
        assert_eq!((six.protocol.is_tls(), six.host.as_str(), six.port), (true, "::1", 82));
        assert_eq!(one("http://[::1]/").expect("right").port, 80);
        assert_eq!(one("https://[::1]/").expect("right").port, 443);
        assert_eq!(one("http://h/{{seq}}").expect("right").path, "/{{seq}}");
    }

    #[test]
    fn key_value_servers_have_ports_of_their_own_and_no_path() {
        for (text, port) in [
            ("redis://h", 6379),
            ("rediss://h/", 6379),
            ("juno://h", 8080),
            ("junos://h:9", 9),
            ("memcached://h", 11211),
        ] {
            let url = one(text).expect("right");
            assert_eq!((url.port, url.path.as_str()), (port, ""), "{text}");
        }
        for wrong in ["redis://h/0", "juno://h/?x=1"] {
            assert!(one(wrong).expect_err(wrong).contains("has a path"), "{wrong}");
        }
        let both = ["redis://h", "juno://h"].map(str::to_owned);
        let error = protocol(&from_arguments(&both, &[], false).expect("right")).expect_err("two").to_string();
        assert!(error.contains("some URLs are redis, and some juno"), "{error}");
    }

    #[test]
    fn with_a_unix_socket_a_path_is_enough() {
        let url = parse("/status/200?a", &ARGUMENT, true).expect("right");
        assert_eq!((url.authority.as_str(), url.path.as_str()), ("localhost", "/status/200?a"));
        assert!(parse("/x", &ARGUMENT, false).is_err());
    }

    #[test]
    fn names_are_resolved() {
        let url = one("http://[::1]:8080/").expect("right");
        assert_eq!(resolve(&url, &ARGUMENT).expect("a number").to_string(), "[::1]:8080");
        let url = one("http://no-such-host.invalid/").expect("right");
        let error = resolve(&url, &Place { source: "urls.txt".to_owned(), line: Some(7) })
            .expect_err("there is none")
            .to_string();
        assert!(error.starts_with("urls.txt:7: no-such-host.invalid cannot be resolved"), "{error}");
    }

    #[test]
    fn an_address_of_a_zone_is_reached_by_its_interface_and_named_without_it() {
        let lo = weir_net::interface_index("lo").expect("every Linux has it");
        for zone in ["lo", &lo.to_string(), "%6co"] {
            let url = one(&format!("http://[::1%25{zone}]:8080/a?b=[%25x]")).expect("right");
            assert_eq!(
                (url.host.as_str(), url.authority.as_str(), url.path.as_str()),
                ("::1", "[::1]:8080", "/a?b=[%25x]")
            );
            assert_eq!(resolve(&url, &ARGUMENT).expect("a number").to_string(), format!("[::1%{lo}]:8080"));
        }
        for wrong in ["[::1%lo]", "[::1%25]", "[::1%250]", "[::1%25none]", "[a%25lo]", "[127.0.0.1%25lo]"] {
            let error = one(&format!("http://{wrong}/")).expect_err(wrong);
            assert!(error.contains(wrong) && error.contains("expected: "), "{error}");
        }
        assert!(one("http://[::1%lo]/").expect_err("no %25").contains("http://[fe80::1%25eth0]:8080/"));
    }

    #[test]
    fn of_several_addresses_the_one_that_listens_is_chosen() {
        let listening = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let there = listening.local_addr().expect("bound");
        // Never listens: port 1 of an address of loopback that nobody uses.
        let not_there: SocketAddr = "127.77.0.1:1".parse().expect("right");
        assert_eq!(choose(&[not_there, there]), Some(there));
        assert_eq!(choose(&[not_there]), Some(not_there));
        assert_eq!(choose(&[not_there, not_there]), Some(not_there));
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn wrong_urls_say_what_would_be_right() {
        let wrong = "ftp://x/, http:///x, http://a b/, http://127.0.0.1:99999/, http://127.0.0.1:/, http://:80/, \
            http://[::1/, http://[::1]x/, http://u@h/, http://127.0.0.1/\u{e4}";
        for url in wrong.split(", ") {
            let text = one(url).expect_err(url);
            assert!(text.contains("expected: "), "{text}");
        }
    }

    fn read(text: &str) -> Result<Vec<UrlLine>, String> {
        from_text("urls.txt", text, false, None).map_err(|e| e.to_string())
    }

    #[test]
    fn a_file_has_methods_weights_and_comments() {
        let text =
            "\u{feff}# a mix\n\nhttp://127.0.0.1/a 9\npost http://127.0.0.1/b#x # seldom\n  GET\thttp://127.0.0.1/c\n";
        let lines = read(text).expect("right");
        let short: Vec<_> =
            lines.iter().map(|l| (l.method.as_deref(), l.url.path.as_str(), l.weight, l.place.line)).collect();
        assert_eq!(
            short,
            [(None, "/a", 9, Some(3)), (Some("POST"), "/b", 1, Some(4)), (Some("GET"), "/c", 1, Some(5))]
        );
    }

    #[test]
    fn a_list_of_paths_is_of_one_server() {
        let server = one("http://127.0.0.1:81/").expect("right");
        let lines = from_text("urls.txt", "/a#x\r\nPOST /b 3\r\n", false, Some(&server)).expect("right");
        let short: Vec<_> = lines.iter().map(|l| (l.url.authority.as_str(), l.url.path.as_str(), l.weight)).collect();
        assert_eq!(short, [("127.0.0.1:81", "/a", 1), ("127.0.0.1:81", "/b", 3)]);
        let said = from_text("urls.txt", "/a\nhttp://h/b\n", false, Some(&server)).expect_err("another").to_string();
        assert!(said.starts_with("urls.txt:2: a list of URLs, and a URL beside it: http://h/b"), "{said}");
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, found) in [
            ("", "urls.txt: there is no URL in it"),
            ("# only\n\n", "urls.txt: there is no URL in it"),
            ("http://h/\n\nG=T http://h/", "urls.txt:3: \"G=T\" is not a method"),
            ("GET", "urls.txt:1: \"GET\" is not a URL"),
            ("GET h/a", "urls.txt:1: \"h/a\" is not a URL"),
            ("http://h/ x", "urls.txt:1: \"x\" is neither a URL nor a weight"),
            ("http://h/login POST user=a", "urls.txt:1: \"POST\" comes after the URL, as in siege's lists"),
            ("http://h/ 3 x 4", "urls.txt:1: \"3\" is neither a URL nor a weight"),
            ("a GET http://h/", "urls.txt:1: \"GET\" is one word too many before the URL"),
            ("/a", "urls.txt:1: \"/a\" is a path without a server"),
            ("http://h/ 0", "urls.txt:1: \"0\" is not a weight"),
            ("http://h/ 99999999999", "urls.txt:1: \"99999999999\" is not a weight"),
            ("GET http://h/ 3 4 5", "urls.txt:1: \"3\" is neither a URL nor a weight"),
            ("ftp://h/", "urls.txt:1: weir load does not speak ftp://"),
        ] {
            let said = read(text).expect_err(text);
            assert!(said.contains(found) && said.contains("expected: "), "{text:?}: {said}");
        }
    }

    #[test]
    fn weights_go_with_urls() {
        let urls = ["http://h/a".to_owned(), "http://h/b".to_owned()];
        let lines = from_arguments(&urls, &[3, 1], false).expect("right");
        assert_eq!(lines.iter().map(|l| l.weight).collect::<Vec<_>>(), [3, 1]);
        let said = from_arguments(&urls, &[3], false).expect_err("one is missing").to_string();
        assert!(said.contains("1 weight for 2 URLs"), "{said}");
    }
}
