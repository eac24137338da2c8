//! The HTTP client of the conformance checks: blocking, one request at a time, and in control of every byte that it
//! sends. The checks, `crosstalk` and `real` use it.
//!
//! The two other clients do not fit: the load generator sends one correct request very often, and
//! [`weir_product::http`] hides the details of the protocol. The checks need those details: the exact response, the
//! interim responses before it, and how a request failed. The strict parser of `weir_wire` reads; the checks provide
//! the bytes to write.
//!
//! This module does not know what is checked, or why.

mod http1;
mod http2;
mod transport;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use weir_wire::http1::{Framing, Version};
use weir_wire::tls::{ClientConfig, ServerName};

use weir_host::stop::Stop;
use weir_product::http::TLS_NAME;

pub use http1::{FirstResponse, Http1, framing, version};
pub use http2::Http2;
pub use transport::Transport;

/// How long to wait for a response unless a check says otherwise. Every product that responds at all is faster, and a
/// product that never responds shows within seconds.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// A server's address, and how to connect to it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Address and port.
    pub addr: SocketAddr,
    /// The TLS configuration, if TLS is used.
    pub tls: Option<(ClientConfig, ServerName)>,
    /// Ends every wait.
    pub stop: Stop,
}

impl Endpoint {
    /// An endpoint without TLS.
    pub fn plain(addr: SocketAddr, stop: Stop) -> Endpoint {
        Endpoint { addr, tls: None, stop }
    }

    /// The value of `Host`. With TLS it has the name from the handshake, because a product may compare the two.
    pub fn authority(&self) -> String {
        if self.tls.is_some() { format!("{TLS_NAME}:{}", self.addr.port()) } else { self.addr.to_string() }
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Opens a connection for HTTP/1.1, including the TLS handshake if there is one.
    ///
    /// # Errors
    /// How the connection failed, within [`TIMEOUT`].
    pub fn open(&self) -> Result<Http1, Failure> {
        Ok(Http1::new(Transport::open(self, Instant::now() + TIMEOUT)?))
    }

    /// Sends one request on its own connection. `head`: the request is HEAD.
    ///
    /// # Errors
    /// How the request failed, within `timeout`.
    pub fn ask(&self, request: &[u8], head: bool, timeout: Duration) -> Result<Response, Failure> {
        self.open()?.ask(request, head, timeout)
    }

    /// Sends a GET for a target on its own connection, with [`TIMEOUT`].
    ///
    /// # Errors
    /// How the request failed.
    pub fn get(&self, target: &str) -> Result<Response, Failure> {
        self.ask(&self.request("GET", target, &[]), false, TIMEOUT)
    }

    /// The head of a request, with `Host` and these headers. The caller announces and appends a body.
    pub fn request(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Vec<u8> {
        let mut text = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n", self.authority());
        for (name, value) in headers {
            text.push_str(name);
            text.push_str(": ");
            text.push_str(value);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        text.into_bytes()
    }
}

/// A complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The interim responses before it.
    pub interim: Vec<u16>,
    /// The version in its status line; HTTP/1.1 for a response over HTTP/2.
    pub version: Version,
    /// Status.
    pub status: u16,
    /// The headers as received.
    pub headers: Vec<(String, String)>,
    /// How the body was delimited.
    pub framing: Framing,
    /// The body, without chunk framing.
    pub body: Vec<u8>,
    /// The connection can carry another request.
    pub keep_alive: bool,
    /// The time from the start of sending the last request to the end of the response.
    pub took: Duration,
}

impl Response {
    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The beginning of a text body, on one line: usually the product's own error message.
    pub fn first_words(&self) -> Option<String> {
        let text = std::str::from_utf8(&self.body).ok()?;
        let plain = without_tags(text);
        let words: Vec<&str> = plain.split_whitespace().collect();
        let mut line = words.join(" ");
        if line.chars().count() > 80 {
            line = line.chars().take(79).chain(['…']).collect();
        }
        (!line.is_empty() && !line.chars().any(char::is_control)).then_some(line)
    }
}

/// Removes tags: most products send errors as HTML.
fn without_tags(text: &str) -> String {
    let mut plain = String::new();
    let mut inside = false;
    for c in text.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => {
                inside = false;
                plain.push(' ');
            }
            c if !inside => plain.push(c),
            _ => {}
        }
    }
    plain
}

/// How a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The connection was refused.
    Refused,
    /// There is no connection, for another reason.
    Unreachable(String),
    /// The connection was closed before the response began.
    Closed,
    /// The connection was closed in the middle of the response.
    Cut,
    /// The connection was reset.
    Reset,
    /// Nothing arrived for this long.
    Silent(Duration),
    /// The received bytes are not HTTP.
    Malformed(String),
    /// TLS failed.
    Tls(String),
    /// HTTP/2 refused the stream.
    Stream(String),
    /// The run was asked to stop.
    Stopped,
}

impl Failure {
    /// In a word or two, with the product as the subject: `closes`.
    pub fn word(&self) -> &'static str {
        match self {
            Failure::Refused => "refuses",
            Failure::Unreachable(_) => "unreachable",
            Failure::Closed => "closes",
            Failure::Cut => "cuts off",
            Failure::Reset => "resets",
            Failure::Silent(_) => "hangs",
            Failure::Malformed(_) => "not HTTP",
            Failure::Tls(_) => "TLS fails",
            Failure::Stream(_) => "stream reset",
            Failure::Stopped => "stopped",
        }
    }

    /// Further details.
    pub fn detail(&self) -> Option<String> {
        match self {
            Failure::Silent(time) => Some(format!("nothing came for {}", super::cell::about(*time))),
            Failure::Unreachable(why) | Failure::Malformed(why) | Failure::Tls(why) | Failure::Stream(why) => {
                Some(why.clone())
            }
            _ => None,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.detail() {
            Some(detail) => write!(f, "{}: {detail}", self.word()),
            None => f.write_str(self.word()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_product_says_in_html_is_read() {
        let response = |body: &str| Response {
            interim: Vec::new(),
            version: Version::Http11,
            status: 502,
            headers: vec![("Server".into(), "x".into())],
            framing: Framing::None,
            body: body.into(),
            keep_alive: true,
            took: Duration::ZERO,
        };
        let page = response("<html>\r\n<h1>502 Bad\nGateway</h1>\n</html>");
        assert_eq!(page.first_words().as_deref(), Some("502 Bad Gateway"));
        assert_eq!(page.header("server"), Some("x"));
        assert_eq!(response("").first_words(), None);
        assert_eq!(response("a\u{1b}[31m").first_words(), None, "no control characters reach a terminal");
        assert_eq!(response(&"word ".repeat(40)).first_words().map(|w| w.chars().count()), Some(80));
    }
}
