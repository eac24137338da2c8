//! The headers of responses beside those that follow from the body: the origin's own, or those that its options ask for, and those of a
//! coded body. [`crate::resolve`] prepares heads with them. This module does not know targets or connections.

use std::rc::Rc;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use weir_model::coding::Coding;
use weir_model::load::{DATE, DATE_NOW, MOST_ORIGIN_HEADERS};
use weir_net::Clock;
use weir_wire::http1::encode::{self, BodyFraming, EncodeError, Persistence};

/// The `Server` header of responses.
const SERVER: &str = "weir-origin";

/// Room for those of the options, the server's, the content type, those of a coded body and that with the name.
const ROOM: usize = MOST_ORIGIN_HEADERS + 5;

/// A header.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    name: Box<str>,
    /// The name as HTTP/2 has it.
    lower: Box<str>,
    value: Box<str>,
}

impl Header {
    fn new(name: &str, value: &str) -> Header {
        Header { name: name.into(), lower: name.to_ascii_lowercase().into(), value: value.into() }
    }
}

/// The headers of a response beside its content type and its framing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Headers(Rc<[Header]>);

/// Name and value of each header of a head, the first so many of an array.
type Listed<'a> = ([(&'a str, &'a str); ROOM], usize);

impl Default for Headers {
    /// The origin's own.
    fn default() -> Headers {
        Headers([Header::new("Server", SERVER)].into())
    }
}

impl Headers {
    /// The same, of a body in a coding.
    pub(crate) fn coded(&self, coding: Coding) -> Headers {
        self.with(&[("Content-Encoding", coding.as_str()), ("Vary", "Accept-Encoding")])
    }

    /// The same, and these.
    pub(crate) fn with(&self, more: &[(&str, &str)]) -> Headers {
        let more = more.iter().map(|(name, value)| Header::new(name, value));
        Headers(self.0.iter().cloned().chain(more).collect())
    }

    /// All of a head for a body of this type, by the names of HTTP/1.1 or HTTP/2. An empty type is left out.
    fn listed<'a>(&'a self, content_type: Option<&'a str>, name: fn(&Header) -> &str, typed: &'a str) -> Listed<'a> {
        let mut all = [("", ""); ROOM];
        let given = self.0.iter().map(|header| (name(header), &*header.value));
        let content_type = content_type.filter(|value| !value.is_empty());
        let mut count = 0;
        for (place, header) in all.iter_mut().zip(content_type.map(|value| (typed, value)).into_iter().chain(given)) {
            *place = header;
            count += 1;
        }
        (all, count)
    }

    /// Those of a head of HTTP/2.
    pub(crate) fn http2<'a>(&'a self, content_type: Option<&'a str>) -> Listed<'a> {
        self.listed(content_type, |header| &header.lower, "content-type")
    }

    /// Appends a head of HTTP/1.1.
    ///
    /// # Errors
    /// When the content type is not allowed in a head; nothing is written then.
    pub(crate) fn encode(
        &self,
        out: &mut Vec<u8>,
        status: u16,
        content_type: Option<&str>,
        framing: BodyFraming,
        persistence: Persistence,
    ) -> Result<(), EncodeError> {
        let (all, count) = self.listed(content_type, |header| &header.name, "Content-Type");
        encode::response_head(out, status, &all[..count], framing, persistence)
    }
}

/// The headers that the options ask for.
#[derive(Debug)]
pub(crate) struct GivenHeaders {
    given: Vec<(String, String)>,
    /// The second of `now`, where a date is among them.
    second: Option<u64>,
    now: Headers,
    /// The content type, if it is among them.
    pub(crate) content_type: Option<&'static str>,
}

impl GivenHeaders {
    /// `given`: what the options ask for; empty: nothing.
    pub(crate) fn new(given: &[(String, String)]) -> GivenHeaders {
        let is = |name: &'static str| move |(given, _): &&(String, String)| given.eq_ignore_ascii_case(name);
        // Once for each worker.
        let content_type = given.iter().find(is("content-type")).map(|(_, value)| &*value.clone().leak());
        let second = given.iter().any(|header| is(DATE)(&header)).then_some(0);
        let mut given: Vec<(String, String)> =
            given.iter().filter(|header| !is("content-type")(header)).cloned().collect();
        if !given.iter().any(|header| is("server")(&header)) {
            given.insert(0, ("Server".to_owned(), SERVER.to_owned()));
        }
        let mut headers = GivenHeaders { given, second, now: Headers::default(), content_type };
        headers.refresh(0);
        headers
    }

    /// They are not the same all the time.
    #[inline]
    pub(crate) fn have_date(&self) -> bool {
        self.second.is_some()
    }

    /// Brings the date up to date by this clock. Returns whether it has changed.
    pub(crate) fn update(&mut self, clock: &Clock) -> bool {
        let now = clock.unix_now() / 1_000_000_000;
        let changed = self.second.is_some_and(|second| second != now);
        if changed {
            self.second = Some(now);
            self.refresh(now);
        }
        changed
    }

    fn refresh(&mut self, now: u64) {
        let value = |name: &str, value: &str| match name.eq_ignore_ascii_case(DATE) && value == DATE_NOW {
            true => date(now),
            false => value.to_owned(),
        };
        self.now = Headers(self.given.iter().map(|(name, text)| Header::new(name, &value(name, text))).collect());
    }

    /// All of them now.
    pub(crate) fn now(&self) -> Headers {
        self.now.clone()
    }
}

/// A time as `Date` has it (RFC 9110, section 5.6.7), from seconds since 1970.
fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    // No clock shows a year of five digits.
    DateTimePrinter::new().timestamp_to_rfc9110_string(&time.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(headers: &Headers, content_type: Option<&str>) -> String {
        let mut out = Vec::new();
        headers.encode(&mut out, 200, content_type, BodyFraming::Length(1), Persistence::Implied).expect("a head");
        String::from_utf8(out).expect("text")
    }

    fn given(headers: &[(&str, &str)]) -> GivenHeaders {
        let owned: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        GivenHeaders::new(&owned)
    }

    #[test]
    fn the_origin_names_itself_unless_it_is_told_another_name() {
        let own = "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nServer: weir-origin\r\nContent-Length: 1\r\n\r\n";
        assert_eq!(head(&Headers::default(), Some("a/b")), own);
        assert_eq!(head(&given(&[]).now(), Some("a/b")), own);
        let other = given(&[("server", "x"), ("ETag", "\"1\""), ("content-TYPE", "text/html")]);
        assert_eq!(
            head(&other.now(), None),
            "HTTP/1.1 200 OK\r\nserver: x\r\nETag: \"1\"\r\nContent-Length: 1\r\n\r\n"
        );
        assert_eq!(other.content_type, Some("text/html"));
        let bare = given(&[("Server", "weir"), ("Content-Type", "")]);
        assert_eq!(
            head(&bare.now(), bare.content_type),
            "HTTP/1.1 200 OK\r\nServer: weir\r\nContent-Length: 1\r\n\r\n"
        );
        let (all, count) = other.now.http2(Some("a/b"));
        assert_eq!(all[..count], [("content-type", "a/b"), ("server", "x"), ("etag", "\"1\"")]);
    }

    #[test]
    fn a_coded_body_says_so() {
        let text = head(&Headers::default().coded(Coding::Gzip), None);
        assert!(text.contains("\r\nContent-Encoding: gzip\r\nVary: Accept-Encoding\r\n"), "{text}");
    }

    #[test]
    fn a_date_is_that_of_now() {
        assert_eq!(date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(!given(&[("server", "x")]).have_date() && given(&[("Date", "now")]).have_date());
    }
}
