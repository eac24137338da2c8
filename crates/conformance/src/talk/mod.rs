//! The conformance run's own client: blocking, one request at a time, and in control of every byte that it sends.
//!
//! The load generator is made to send the same right request very often, the lab's [`weir_product::http`] to hide what goes on below.
//! Here what goes on below is the question: what exactly was answered, after which interim answer, and how it failed.
//! Reading is `weir_wire`'s, which is strict; writing is bytes that the checks give.
//!
//! This module does not know what is asked, or why.

mod line;
mod pipe;
mod two;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use weir_wire::http1::{Framing, Version};
use weir_wire::tls::{ClientConfig, ServerName};

use weir_host::stop::Stop;
use weir_product::http::TLS_NAME;

pub use line::{Line, Said, framing, version};
pub use pipe::Pipe;
pub use two::Two;

/// How long an answer is waited for where a check does not say otherwise. Longer than any product takes that answers at all,
/// and short enough that one which never does shows within seconds.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Where somebody listens, and how they are spoken to.
#[derive(Debug, Clone)]
pub struct Door {
    /// Address and port.
    pub addr: SocketAddr,
    /// TLS, if it is to be spoken.
    pub tls: Option<(ClientConfig, ServerName)>,
    /// Ends every wait.
    pub stop: Stop,
}

impl Door {
    /// One that speaks without TLS.
    pub fn plain(addr: SocketAddr, stop: Stop) -> Door {
        Door { addr, tls: None, stop }
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
    /// What went wrong, within [`PATIENCE`].
    pub fn open(&self) -> Result<Line, Trouble> {
        Ok(Line::new(Pipe::open(self, Instant::now() + PATIENCE)?))
    }

    /// Asks once, on a connection of its own. `head`: the request is HEAD.
    ///
    /// # Errors
    /// What came instead of an answer, within `patience`.
    pub fn ask(&self, request: &[u8], head: bool, patience: Duration) -> Result<Heard, Trouble> {
        self.open()?.ask(request, head, patience)
    }

    /// Asks for a target, on a connection of its own, with [`PATIENCE`].
    ///
    /// # Errors
    /// What came instead of an answer.
    pub fn get(&self, target: &str) -> Result<Heard, Trouble> {
        self.ask(&self.request("GET", target, &[]), false, PATIENCE)
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
pub struct Heard {
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

impl Heard {
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
pub enum Trouble {
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
    Secure(String),
    /// HTTP/2 turned the request away.
    Stream(String),
    /// Somebody asked to stop.
    Stopped,
}

impl Trouble {
    /// In a word or two, as of the product: `closes`.
    pub fn word(&self) -> &'static str {
        match self {
            Trouble::Refused => "refuses",
            Trouble::Unreachable(_) => "unreachable",
            Trouble::Closed => "closes",
            Trouble::Cut => "cuts off",
            Trouble::Reset => "resets",
            Trouble::Silent(_) => "hangs",
            Trouble::Malformed(_) => "not HTTP",
            Trouble::Secure(_) => "TLS fails",
            Trouble::Stream(_) => "stream reset",
            Trouble::Stopped => "stopped",
        }
    }

    /// What there is to say beyond that.
    pub fn detail(&self) -> Option<String> {
        match self {
            Trouble::Silent(time) => Some(format!("nothing came for {}", super::cell::about(*time))),
            Trouble::Unreachable(why) | Trouble::Malformed(why) | Trouble::Secure(why) | Trouble::Stream(why) => {
                Some(why.clone())
            }
            _ => None,
        }
    }
}

impl std::fmt::Display for Trouble {
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
        let heard = |body: &str| Heard {
            interim: Vec::new(),
            version: Version::Http11,
            status: 502,
            headers: vec![("Server".into(), "x".into())],
            framing: Framing::None,
            body: body.into(),
            keep_alive: true,
            took: Duration::ZERO,
        };
        let page = heard("<html>\r\n<h1>502 Bad\nGateway</h1>\n</html>");
        assert_eq!(page.first_words().as_deref(), Some("502 Bad Gateway"));
        assert_eq!(page.header("server"), Some("x"));
        assert_eq!(heard("").first_words(), None);
        assert_eq!(heard("a\u{1b}[31m").first_words(), None, "no control characters reach a terminal");
        assert_eq!(heard(&"word ".repeat(40)).first_words().map(|w| w.chars().count()), Some(80));
    }
}
