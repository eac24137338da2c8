//! A target's URL taken apart and its name resolved.

use std::net::{SocketAddr, ToSocketAddrs};

use weir_model::InputError;

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

/// Reads `http://host[:port][/path][?query]`. A name is resolved once, here; the first address counts.
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
    let addr = with_port
        .to_socket_addrs()
        .map_err(|e| {
            wrong(format!("{authority} cannot be resolved: {e}"), "a host that exists, and a port below 65536")
        })?
        .next()
        .ok_or_else(|| wrong(format!("{authority} has no address"), "a host that has one"))?;
    Ok(Target { addr, authority: authority.to_owned(), path })
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
    fn wrong_urls_say_what_would_be_right() {
        for url in ["https://x/", "http:///x", "http://a b/", "http://127.0.0.1:99999/", "http://127.0.0.1/\u{e4}"] {
            let text = parse(url).expect_err(url).to_string();
            assert!(text.contains("would be right"), "{text}");
        }
    }
}
