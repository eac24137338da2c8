//! The client half: parses responses, in the order of the requests.
//!
//! It knows which responses have no body and what ends a connection. Of the requests it knows only whether they were
//! HEAD.

use std::collections::VecDeque;

use super::chars::{check_text, strip_line_end};
use super::chunked::{Body, Step};
use super::head::{Head, StartLine, Store};
use super::headers::Fields;
use super::memo::HeadMemo;
use super::{Framing, Limits, ParseError, ResponseEvent, ResponseHead, Version};

/// Parses the responses of one connection. It takes at most 64 bytes until a response arrives in pieces.
#[derive(Debug)]
pub struct ResponseParser {
    state: State,
    limits: Limits,
    store: Store<StatusLine>,
    /// The numbers of HEAD requests in flight. Hardly ever used, so it is allocated when needed.
    #[expect(clippy::box_collection, reason = "8 bytes of each connection instead of 32")]
    heads: Option<Box<VecDeque<u32>>>,
    /// Number of the request whose response is next; wraps.
    number: u32,
    in_flight: u32,
    keep_alive: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Before or inside a head.
    Head,
    /// After a head.
    Body(Body),
    /// After the last response that the connection carries.
    Closed,
    /// After an error.
    Failed(ParseError),
}

impl ResponseParser {
    /// For a new connection.
    pub fn new(limits: Limits) -> ResponseParser {
        ResponseParser {
            state: State::Head,
            limits,
            store: Store::new(),
            heads: None,
            number: 0,
            in_flight: 0,
            keep_alive: true,
        }
    }

    /// Records that a request was sent; responses come in that order. `head`: it was a HEAD request, whose response
    /// has no body.
    pub fn request_sent(&mut self, head: bool) {
        if head {
            let number = self.number.wrapping_add(self.in_flight);
            self.heads.get_or_insert_default().push_back(number);
        }
        self.in_flight += 1;
    }

    /// Requests sent whose [`ResponseEvent::End`] has not come.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns the next event from `input`, and advances `input`. `None`: all of `input` was used; give more bytes.
    ///
    /// Call it until it returns `None`, even when `input` is empty: the last `End` needs no bytes.
    ///
    /// # Errors
    /// What the peer did wrong. The connection is unusable then, and every further call returns the same error.
    #[inline]
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Option<ResponseEvent<'s>>, ParseError> {
        self.next_with(input, None)
    }

    /// The same, with a memo of the heads that came before, on this connection or on others with the same limits.
    ///
    /// # Errors
    /// As for [`ResponseParser::next`].
    #[inline]
    pub fn next_with<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
        memo: Option<&mut HeadMemo<StatusLine>>,
    ) -> Result<Option<ResponseEvent<'s>>, ParseError> {
        match &mut self.state {
            State::Head => self.next_head(input, memo),
            State::Body(body) => match body.next(&mut self.store, input, &self.limits) {
                Ok(Step::Data(data)) => Ok(Some(ResponseEvent::Body(data))),
                Ok(Step::More) => Ok(None),
                Ok(Step::Done) => {
                    let keep_alive = self.keep_alive;
                    self.finish(if keep_alive { State::Head } else { State::Closed });
                    Ok(Some(ResponseEvent::End { keep_alive }))
                }
                Err(error) => Err(self.fail(error)),
            },
            State::Closed if input.is_empty() => Ok(None),
            State::Closed => Err(self.fail(ParseError::DataAfterClose)),
            State::Failed(error) => Err(*error),
        }
    }

    /// Bytes of a body that come next, before anything that has to be looked at; 0 outside of one, or where its length is not known.
    pub fn body_left(&self) -> u64 {
        match &self.state {
            State::Body(body) => body.data_left(),
            State::Head | State::Closed | State::Failed(_) => 0,
        }
    }

    /// So many of [`ResponseParser::body_left`] came without being looked at. Call [`ResponseParser::next`] after it.
    pub fn skip_body(&mut self, bytes: u64) {
        if let State::Body(body) = &mut self.state {
            body.skip(bytes);
        }
    }

    /// The peer has closed. `Ok(true)`: a body that lasts until the close ended properly here; its response is
    /// complete, and no `End` follows. `Ok(false)`: nothing was pending.
    ///
    /// Call [`ResponseParser::next`] with all earlier bytes first, until it returns `None`.
    ///
    /// # Errors
    /// The peer closed in the middle of a response, or with requests unanswered
    /// ([`ParseError::ClosedBeforeResponse`]; a client may then send them again: RFC 9112 section 9.3.1). Or the
    /// parser had failed before.
    pub fn on_eof(&mut self) -> Result<bool, ParseError> {
        let error = match self.state {
            State::Body(Body::UntilClose | Body::Done) => {
                self.finish(State::Closed);
                return Ok(true);
            }
            State::Body(_) => ParseError::TruncatedBody,
            State::Head if self.store.partial() => ParseError::TruncatedHead,
            State::Head | State::Closed if self.in_flight > 0 => ParseError::ClosedBeforeResponse,
            State::Head | State::Closed => {
                self.state = State::Closed;
                return Ok(false);
            }
            State::Failed(error) => error,
        };
        Err(self.fail(error))
    }

    /// Reads a head, if it is complete.
    #[inline]
    fn next_head<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
        mut memo: Option<&mut HeadMemo<StatusLine>>,
    ) -> Result<Option<ResponseEvent<'s>>, ParseError> {
        if input.is_empty() {
            return Ok(None);
        }
        if self.in_flight == 0 {
            return Err(self.fail(ParseError::Unsolicited));
        }
        let judged = match self.store.read_head(input, &self.limits, memo.as_deref_mut()) {
            Ok(None) => return Ok(None),
            Ok(Some(head)) => self.judge(&head).map(|framing| (head, framing)),
            Err(error) => Err(error),
        };
        let (Head { start, fields, place }, framing) = match judged {
            Ok(judged) => judged,
            Err(error) => return Err(self.fail(error)),
        };
        let StatusLine { version, status } = start;
        let Some(framing) = framing else {
            self.store.message_ended();
            return Ok(Some(ResponseEvent::Informational(status)));
        };
        self.keep_alive = fields.persists(version);
        self.state = State::Body(Body::new(framing));
        let (raw, marked) = self.store.head(place, memo);
        Ok(Some(ResponseEvent::Head(ResponseHead { version, status, framing, raw, marked })))
    }

    /// How the body is delimited (RFC 9112 section 6.3); `None` for an informational response.
    #[inline]
    fn judge(&self, head: &Head<'_, StatusLine>) -> Result<Option<Framing>, ParseError> {
        let StatusLine { version, status } = head.start;
        let said = Fields::framing(&head.fields, version)?;
        Ok(match status {
            101 => return Err(ParseError::SwitchingProtocols),
            100..=199 => None,
            // Whatever the headers say: they describe the response to a GET.
            204 | 304 => Some(Framing::None),
            _ if self.is_response_to_head() => Some(Framing::None),
            _ => Some(said.unwrap_or(Framing::UntilClose)),
        })
    }

    /// Whether the next response is to a HEAD request.
    fn is_response_to_head(&self) -> bool {
        self.heads.as_ref().is_some_and(|heads| heads.front() == Some(&self.number))
    }

    /// A response is complete.
    fn finish(&mut self, then: State) {
        if self.is_response_to_head()
            && let Some(heads) = &mut self.heads
        {
            heads.pop_front();
        }
        self.number = self.number.wrapping_add(1);
        self.in_flight -= 1;
        self.store.message_ended();
        self.state = then;
    }

    #[cold]
    fn fail(&mut self, error: ParseError) -> ParseError {
        self.state = State::Failed(error);
        error
    }
}

/// `HTTP/1.1 200 OK`, without the reason.
#[derive(Debug, Clone, Copy)]
pub struct StatusLine {
    version: Version,
    status: u16,
}

impl StartLine for StatusLine {
    const REQUEST: bool = false;

    /// RFC 9112 section 4. The space before an absent reason is often omitted, and not required here.
    #[inline]
    fn parse(line: &[u8]) -> Result<StatusLine, ParseError> {
        StatusLine::begin(line)?;
        let line = strip_line_end(line)?;
        let (version, rest) = line.split_at_checked(8).ok_or(ParseError::BadStartLine)?;
        let version = parse_version(version)?;
        let status = match rest {
            [b' ', a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => [a, b, c],
            [b' ', a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ', reason @ ..] => {
                check_text(reason)?;
                [a, b, c]
            }
            [b' ', ..] => return Err(ParseError::BadStatus),
            _ => return Err(ParseError::BadStartLine),
        };
        let status = status.into_iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
        if status < 100 { Err(ParseError::BadStatus) } else { Ok(StatusLine { version, status }) }
    }

    fn begin(beginning: &[u8]) -> Result<(), ParseError> {
        let fits = beginning.iter().zip(b"HTTP/").all(|(got, wanted)| got == wanted);
        if fits { Ok(()) } else { Err(ParseError::BadStartLine) }
    }
}

/// RFC 9112 section 2.3; case matters.
#[inline]
pub(super) fn parse_version(version: &[u8]) -> Result<Version, ParseError> {
    match version {
        b"HTTP/1.1" => Ok(Version::Http11),
        b"HTTP/1.0" => Ok(Version::Http10),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit() => {
            Err(ParseError::UnsupportedVersion)
        }
        _ => Err(ParseError::BadStartLine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_may_come_unseen_in_part_or_in_whole() {
        for chunked in [false, true] {
            let mut parser = ResponseParser::new(Limits::default());
            parser.request_sent(false);
            assert_eq!(parser.body_left(), 0);
            let mut input: &[u8] = match chunked {
                true => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2710\r\nabc",
                false => b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\nabc",
            };
            let mut seen = 0;
            while let Some(event) = parser.next(&mut input).unwrap() {
                if let ResponseEvent::Body(piece) = event {
                    seen += piece.len();
                }
            }
            assert_eq!((seen, parser.body_left()), (3, 9_997));
            parser.skip_body(9_000);
            assert!(matches!(parser.next(&mut &b""[..]), Ok(None)));
            assert!(matches!(parser.next(&mut &b"d"[..]), Ok(Some(ResponseEvent::Body(b"d")))));
            parser.skip_body(996);
            assert_eq!(parser.body_left(), 0);
            let mut rest: &[u8] = if chunked { b"\r\n0\r\n\r\n" } else { b"" };
            assert!(matches!(parser.next(&mut rest), Ok(Some(ResponseEvent::End { keep_alive: true }))), "{chunked}");
            parser.skip_body(5);
            assert_eq!(parser.body_left(), 0, "outside of a body nothing is skipped");
        }
    }

    #[test]
    fn an_idle_connection_costs_at_most_64_bytes() {
        assert!(size_of::<ResponseParser>() <= 64, "{} bytes", size_of::<ResponseParser>());
    }
}
