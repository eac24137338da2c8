//! Parses the URL of a target and resolves its host name. Called by `verbs::load::urls` and `verbs::load::request`.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use weir_model::InputError;
use weir_model::protocol::Protocol;

/// Connect timeout for each address of a name.
const TRIED: Duration = Duration::from_secs(1);

/// The host part of a URL that is only a path, as it may be with a unix socket.
const LOCAL: &str = "localhost";

/// A parsed URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// It is https.
    pub tls: bool,
    /// Host without brackets.
    pub host: String,
    /// Port, the scheme's own where none is written.
    pub port: u16,
    /// Host and port as written: for `Host` and `:authority`.
    pub authority: String,
    /// Path and query.
    pub path: String,
}

/// Reads `http[s]://host[:port][/path][?query]`; without a scheme it is http. With a unix socket (`unix`) a path alone
/// is enough.
///
/// # Errors
/// What was found and what would be right; `source` and `line` say where.
pub fn parse(text: &str, source: &str, line: Option<usize>, unix: bool) -> Result<Url, InputError> {
    let wrong = |found: String, wanted: &str| wrong_at(source, line, found, wanted);
    if !text.is_ascii() || text.bytes().any(|b| b.is_ascii_control() || b == b' ') {
        return Err(wrong(format!("\"{text}\" has characters that no request line may have"), "percent-encode them"));
    }
    let (tls, rest) = match text.split_once("://").map(|(scheme, rest)| (scheme, Protocol::scheme_is_tls(scheme), rest))
    {
        Some((_, Some(tls), rest)) => (tls, rest),
        Some((scheme, None, _)) if scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            return Err(wrong(format!("weir load does not speak {scheme}://"), "http:// or https://"));
        }
        _ if unix && text.starts_with('/') => return Ok(local(text)),
        _ => (false, text),
    };
    let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    if authority.is_empty() || authority.contains('@') {
        return Err(wrong(format!("\"{text}\" has no usable host"), "http://host:port/path"));
    }
    let Some((host, port)) = host_and_port(authority) else {
        return Err(wrong(
            format!("\"{authority}\" has no usable port"),
            "a host and a port from 1 to 65535, such as 127.0.0.1:8080 or [::1]:8080",
        ));
    };
    Ok(Url {
        tls,
        host: host.to_owned(),
        port: port.unwrap_or(if tls { 443 } else { 80 }),
        authority: authority.to_owned(),
        path: clean_path(path),
    })
}

fn local(path: &str) -> Url {
    Url { tls: false, host: LOCAL.to_owned(), port: 80, authority: LOCAL.to_owned(), path: clean_path(path) }
}

/// Without the fragment, which is not sent; never empty.
fn clean_path(path: &str) -> String {
    let path = path.split('#').next().unwrap_or_default();
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

/// `host`, `host:port`, `[v6]` or `[v6]:port`.
fn host_and_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        return match after.strip_prefix(':') {
            Some(digits) => Some((host, Some(port(digits)?))),
            None => after.is_empty().then_some((host, None)),
        };
    }
    match authority.split_once(':') {
        Some((host, digits)) => Some((host, Some(port(digits)?))).filter(|(host, _)| !host.is_empty()),
        None => Some((authority, None)),
    }
}

/// Resolves a URL's host; of several addresses the first that accepts a connection is used.
///
/// # Errors
/// The resolver's error.
pub fn resolve(url: &Url, source: &str, line: Option<usize>) -> Result<SocketAddr, InputError> {
    let wrong = |found: String, wanted: &str| wrong_at(source, line, found, wanted);
    let addrs: Vec<SocketAddr> = (url.host.as_str(), url.port)
        .to_socket_addrs()
        .map_err(|e| wrong(format!("{} cannot be resolved: {e}", url.host), "a host that exists"))?
        .collect();
    choose(&addrs).ok_or_else(|| wrong(format!("{} has no address", url.host), "a host that has one"))
}

/// The first address that accepts a connection where there are several (a server may listen on only one of `localhost`'s);
/// the first of all where none does, so that the load reports why.
fn choose(addrs: &[SocketAddr]) -> Option<SocketAddr> {
    let answers = |addr: &&SocketAddr| TcpStream::connect_timeout(addr, TRIED).is_ok();
    let taken = if addrs.len() > 1 { addrs.iter().find(answers) } else { None };
    taken.or(addrs.first()).copied()
}

fn wrong_at(source: &str, line: Option<usize>, found: String, wanted: &str) -> InputError {
    InputError { source: source.to_owned(), line, key: None, found, wanted: wanted.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Url, String> {
        parse(text, "URL", None, false).map_err(|e| e.to_string())
    }

    #[test]
    fn urls_are_taken_apart() {
        let url = read("http://127.0.0.1:8080/a/b?c=d#e").expect("right");
        assert_eq!((url.port, url.authority.as_str(), url.path.as_str()), (8080, "127.0.0.1:8080", "/a/b?c=d"));
        assert_eq!(read("http://127.0.0.1").expect("right").path, "/");
        assert_eq!(read("http://127.0.0.1?x=1").expect("right").path, "/?x=1");
        assert_eq!(read("http://127.0.0.1#x").expect("right").path, "/");
        assert_eq!(read("127.0.0.1:81/x").expect("right").port, 81);
        assert_eq!(read("localhost/?to=http://x/").expect("right").path, "/?to=http://x/");
        let six = read("https://[::1]:82/").expect("right");
        assert_eq!((six.tls, six.host.as_str(), six.port), (true, "::1", 82));
        assert_eq!(read("http://[::1]/").expect("right").port, 80);
        assert_eq!(read("https://[::1]/").expect("right").port, 443);
        assert_eq!(read("http://h/{{seq}}").expect("right").path, "/{{seq}}");
    }

    #[test]
    fn with_a_unix_socket_a_path_is_enough() {
        let url = parse("/status/200?a", "URL", None, true).expect("right");
        assert_eq!((url.authority.as_str(), url.path.as_str()), ("localhost", "/status/200?a"));
        assert!(parse("/x", "URL", None, false).is_err());
    }

    #[test]
    fn names_are_resolved() {
        let url = read("http://[::1]:8080/").expect("right");
        assert_eq!(resolve(&url, "URL", None).expect("a number").to_string(), "[::1]:8080");
        let url = read("http://no-such-host.invalid/").expect("right");
        let error = resolve(&url, "urls.txt", Some(7)).expect_err("there is none").to_string();
        assert!(error.starts_with("urls.txt:7: no-such-host.invalid cannot be resolved"), "{error}");
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
        for url in [
            "ftp://x/",
            "http:///x",
            "http://a b/",
            "http://127.0.0.1:99999/",
            "http://127.0.0.1:/",
            "http://:80/",
            "http://[::1/",
            "http://[::1]x/",
            "http://u@h/",
            "http://127.0.0.1/\u{e4}",
        ] {
            let text = read(url).expect_err(url);
            assert!(text.contains("would be right"), "{text}");
        }
    }
}
