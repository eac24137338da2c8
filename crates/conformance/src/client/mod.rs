//! The conformance run's own client: blocking, one request at a time, and in control of every byte that it sends.
//!
//! The load generator is made to send the same right request very often, the lab's [`weir_product::http`] to hide what goes on below.
//! Here what goes on below is the question: what exactly was answered, after which interim answer, and how it failed.
//! Reading is `weir_wire`'s, which is strict; writing is bytes that the checks give.
//!
//! This module does not know what is asked, or why.

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

/// How long an answer is waited for where a check does not say otherwise. Longer than any product takes that answers at all,
/// and short enough that one which never does shows within seconds.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// Where somebody listens, and how they are spoken to.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Address and port.
    pub addr: SocketAddr,
    /// TLS, if it is to be spoken.
    pub tls: Option<(ClientConfig, ServerName)>,
    /// Ends every wait.
    pub stop: Stop,
}

impl Endpoint {
    /// One that speaks without TLS.
    pub fn plain(addr: SocketAddr, stop: Stop) -> Endpoint {
        Endpoint { addr, tls: None, stop }
    }

    /// What goes into `Host`. With TLS it has the name that TLS asks for: a product may compare the two.
    pub fn authority(&self) -> String {
        if self.tls.is_some() { format!("{TLS_NAME}:{}", self.addr.port()) } else { self.addr.to_string() }
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// A new connection for HTTP/1.1, after the handshake if there is TLS.
    ///
    /// # Errors
    /// What went wrong, within [`TIMEOUT`].
    pub fn open(&self) -> Result<Http1, Failure> {
        Ok(Http1::new(Transport::open(self, Instant::now() + TIMEOUT)?))
    }

    /// Asks once, on a connection of its own. `head`: the request is HEAD.
    ///
    /// # Errors
    /// What came instead of an answer, within `timeout`.
    pub fn ask(&self, request: &[u8], head: bool, timeout: Duration) -> Result<Response, Failure> {
        self.open()?.ask(request, head, timeout)
    }

    /// Asks for a target, on a connection of its own, with [`TIMEOUT`].
    ///
    /// # Errors
    /// What came instead of an answer.
    pub fn get(&self, target: &str) -> Result<Response, Failure> {
        self.ask(&self.request("GET", target, &[]), false, TIMEOUT)
    }

    /// The head of a request, with `Host` and these headers. A body is the caller's to append, and to announce.
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

/// An answer, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Interim answers before it.
    pub interim: Vec<u16>,
    /// Version of its status line; HTTP/1.1 for an answer of HTTP/2.
    pub version: Version,
    /// Status.
    pub status: u16,
    /// Headers as they came.
    pub headers: Vec<(String, String)>,
    /// How its body was delimited.
    pub framing: Framing,
    /// Its body, without chunks.
    pub body: Vec<u8>,
    /// The connection carries another request.
    pub keep_alive: bool,
    /// From the moment the last request was begun to be sent to its end.
    pub took: Duration,
}

impl Response {
    /// First header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The beginning of a body that is a text, on one line: what a product says of its own refusal.
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

/// Most products refuse in HTML; the tags say nothing.
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

/// What came instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Nobody listens.
    Refused,
    /// No connection, for another reason.
    Unreachable(String),
    /// The connection was closed before the answer began.
    Closed,
    /// The connection was closed in the middle of the answer.
    Cut,
    /// The connection was reset.
    Reset,
    /// Nothing came for so long.
    Silent(Duration),
    /// What came is not HTTP.
    Malformed(String),
    /// TLS failed.
    Tls(String),
    /// HTTP/2 turned the request away.
    Stream(String),
    /// Somebody asked to stop.
    Stopped,
}

impl Failure {
    /// In a word or two, as of the product: `closes`.
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

    /// What there is to say beyond that.
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
