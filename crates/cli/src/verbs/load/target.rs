//! A target's URL taken apart and its name resolved.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use weir_model::InputError;

/// How long each address of a name may take to accept a connection.
const TRIED: Duration = Duration::from_secs(1);

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Address.
    pub addr: SocketAddr,
    /// For the `Host` header.
    pub authority: String,
    /// Path and query.
    pub path: String,
}

/// Reads `http://host[:port][/path][?query]`. A name is resolved once, here; of several addresses the first that
/// takes a connection counts.
///
/// # Errors
/// What was found and what would be right.
pub fn parse(url: &str) -> Result<Target, InputError> {
    let wrong = |found: String, wanted: &str| InputError {
        source: "target".to_owned(),
        line: None,
        key: None,
        found,
        wanted: wanted.to_owned(),
    };
    let rest = match url.split_once("://") {
        Some(("http", rest)) => rest,
        Some((scheme, _)) => {
            return Err(wrong(format!("weir load does not speak {scheme}:// yet"), "http://host:port/path"));
        }
        None => url,
    };
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let path = path.split('#').next().unwrap_or_default();
    if authority.is_empty() || authority.contains(['@', ' ']) {
        return Err(wrong(format!("\"{url}\" has no usable host"), "http://host:port/path"));
    }
    if !url.is_ascii() || url.bytes().any(|b| b.is_ascii_control() || b == b' ') {
        return Err(wrong(format!("\"{url}\" has characters that no request line may have"), "percent-encode them"));
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let with_port = if has_port(authority) { authority.to_owned() } else { format!("{authority}:80") };
    let addrs: Vec<SocketAddr> = with_port
        .to_socket_addrs()
        .map_err(|e| {
            wrong(format!("{authority} cannot be resolved: {e}"), "a host that exists, and a port below 65536")
        })?
        .collect();
    let addr = choose(&addrs).ok_or_else(|| wrong(format!("{authority} has no address"), "a host that has one"))?;
    Ok(Target { addr, authority: authority.to_owned(), path })
}

/// The first address that takes a connection, where a name has several (`localhost`, of which a server may serve only
/// one); the first of all where none does, so that the load itself says why.
fn choose(addrs: &[SocketAddr]) -> Option<SocketAddr> {
    let answers = |addr: &&SocketAddr| TcpStream::connect_timeout(addr, TRIED).is_ok();
    let taken = if addrs.len() > 1 { addrs.iter().find(answers) } else { None };
    taken.or(addrs.first()).copied()
}

fn has_port(authority: &str) -> bool {
    match authority.rsplit_once(':') {
        Some((host, port)) => !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) && !host.ends_with(':'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let t = parse("http://127.0.0.1:8080/a/b?c=d#e").expect("right");
        assert_eq!((t.addr.port(), t.authority.as_str(), t.path.as_str()), (8080, "127.0.0.1:8080", "/a/b?c=d"));
        assert_eq!(parse("http://127.0.0.1").expect("right").path, "/");
        assert_eq!(parse("http://127.0.0.1?x=1").expect("right").path, "/?x=1");
        assert_eq!(parse("127.0.0.1:81/x").expect("right").addr.port(), 81);
        assert_eq!(parse("http://[::1]:82/").expect("right").addr.port(), 82);
        assert_eq!(parse("http://[::1]/").expect("right").addr.port(), 80);
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
        for url in ["https://x/", "http:///x", "http://a b/", "http://127.0.0.1:99999/", "http://127.0.0.1/\u{e4}"] {
            let text = parse(url).expect_err(url).to_string();
            assert!(text.contains("would be right"), "{text}");
        }
    }
}
