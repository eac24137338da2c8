//! The server half: parses requests.
//!
//! It knows what a request must contain. It does not know how or when a request is answered.

use super::chars::{is_target, is_token_byte, strip_line_end};
use super::chunked::{Body, Step};
use super::head::{Head, StartLine, Store};
use super::memo::HeadMemo;
use super::response::parse_version;
use super::{Framing, Limits, ParseError, RequestEvent, RequestHead, Version};

/// Parses the requests of one connection. It takes at most 48 bytes until a request arrives in pieces.
#[derive(Debug)]
pub struct RequestParser {
    state: State,
    limits: Limits,
    store: Store<RequestLine>,
    keep_alive: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Between requests. One empty line is skipped here (RFC 9112 section 2.2).
    Between,
    /// After the CR of that empty line.
    EmptyLine,
    /// Inside a head, or after an empty line.
    Head,
    /// After a head.
    Body(Body),
    /// After the last request that the peer will send.
    Closed,
    /// After an error.
    Failed(ParseError),
}

impl RequestParser {
    /// For a new connection.
    pub fn new(limits: Limits) -> RequestParser {
        RequestParser { state: State::Between, limits, store: Store::new(), keep_alive: true }
    }

    /// Returns the next event from `input`, and advances `input`. `None`: all of `input` was used; give more bytes.
    ///
    /// Call it until it returns `None`, even when `input` is empty: the last `End` needs no bytes.
    ///
    /// # Errors
    /// What the peer did wrong; [`ParseError::status`] is the status to respond with. The connection is unusable
    /// then, and every further call returns the same error.
    #[inline]
    pub fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Option<RequestEvent<'s>>, ParseError> {
        self.next_with(input, None)
    }

    /// The same, with a memo of the heads that came before, on this connection or on others with the same limits.
    ///
    /// # Errors
    /// As for [`RequestParser::next`].
    #[inline]
    pub fn next_with<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
        memo: Option<&mut HeadMemo<RequestLine>>,
    ) -> Result<Option<RequestEvent<'s>>, ParseError> {
        match &mut self.state {
            State::Between | State::EmptyLine | State::Head => self.next_head(input, memo),
            State::Body(body) => match body.next(&mut self.store, input, &self.limits) {
                Ok(Step::Data(data)) => Ok(Some(RequestEvent::Body(data))),
                Ok(Step::More) => Ok(None),
                Ok(Step::Done) => {
                    let keep_alive = self.keep_alive;
                    self.store.message_ended();
                    self.state = if keep_alive { State::Between } else { State::Closed };
                    Ok(Some(RequestEvent::End { keep_alive }))
                }
                Err(error) => Err(self.fail(error)),
            },
            State::Closed if input.is_empty() => Ok(None),
            State::Closed => Err(self.fail(ParseError::DataAfterClose)),
            State::Failed(error) => Err(*error),
        }
    }

    /// The peer has closed or finished sending. Call [`RequestParser::next`] with all earlier bytes first, until it
    /// returns `None`.
    ///
    /// # Errors
    /// The peer did so in the middle of a request, or the parser had failed before.
    pub fn on_eof(&mut self) -> Result<(), ParseError> {
        let error = match self.state {
            _ if self.is_idle() => {
                self.state = State::Closed;
                return Ok(());
            }
            State::Body(_) => ParseError::TruncatedBody,
            State::Failed(error) => error,
            _ => ParseError::TruncatedHead,
        };
        Err(self.fail(error))
    }

    /// Whether it is between requests and nothing of a next one was read (an empty line does not count). True after
    /// the last request, too.
    pub fn is_idle(&self) -> bool {
        match self.state {
            State::Between | State::EmptyLine | State::Closed => true,
            State::Head => !self.store.partial(),
            State::Body(_) | State::Failed(_) => false,
        }
    }

    /// Reads a head, if it is complete.
    #[inline]
    fn next_head<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
        mut memo: Option<&mut HeadMemo<RequestLine>>,
    ) -> Result<Option<RequestEvent<'s>>, ParseError> {
        if let Err(error) = self.pass_empty_line(input) {
            return Err(self.fail(error));
        }
        if input.is_empty() {
            return Ok(None);
        }
        let judged = match self.store.read_head(input, &self.limits, memo.as_deref_mut()) {
            Ok(None) => return Ok(None),
            Ok(Some(head)) => judge(&head).map(|framing| (head, framing)),
            Err(error) => Err(error),
        };
        let (Head { start, fields, place }, framing) = match judged {
            Ok(judged) => judged,
            Err(error) => return Err(self.fail(error)),
        };
        let version = start.version;
        self.keep_alive = fields.persists(version);
        self.state = State::Body(Body::new(framing));
        let (raw, marked) = self.store.head(place, memo);
        let (method, target) = start.split(raw);
        let has_body = !matches!(framing, Framing::None | Framing::Length(0));
        Ok(Some(RequestEvent::Head(RequestHead {
            version,
            method,
            target,
            framing,
            // RFC 9110 section 10.1.1: it is ignored in HTTP/1.0, and pointless without a body.
            expects_continue: fields.expects_continue() && version == Version::Http11 && has_body,
            connection: fields.connection(),
            raw,
            marked,
        })))
    }

    /// Skips one empty line before a request; some old clients send one after a body.
    #[inline]
    fn pass_empty_line(&mut self, input: &mut &[u8]) -> Result<(), ParseError> {
        while let Some((&first, rest)) = input.split_first() {
            self.state = match self.state {
                State::Between if first == b'\r' => State::EmptyLine,
                State::EmptyLine if first == b'\n' => State::Head,
                State::EmptyLine => return Err(ParseError::BareCr),
                _ => {
                    self.state = State::Head;
                    return Ok(());
                }
            };
            *input = rest;
        }
        Ok(())
    }

    #[cold]
    fn fail(&mut self, error: ParseError) -> ParseError {
        self.state = State::Failed(error);
        error
    }
}

/// How the body of a request is delimited (RFC 9112 section 6.3).
#[inline]
fn judge(head: &Head<'_, RequestLine>) -> Result<Framing, ParseError> {
    let version = head.start.version;
    if version == Version::Http11 && !head.fields.has_host() {
        return Err(ParseError::MissingHost);
    }
    Ok(head.fields.framing(version)?.unwrap_or(Framing::None))
}

/// `GET / HTTP/1.1`, as positions in the head's bytes.
#[derive(Debug, Clone, Copy)]
pub struct RequestLine {
    version: Version,
    method: u32,
    target: u32,
}

impl RequestLine {
    /// Method and target; `raw` begins with the line that this was read from.
    #[inline]
    fn split(self, raw: &[u8]) -> (&[u8], &[u8]) {
        let (method, rest) = raw.split_at(self.method as usize);
        (method, &rest[1..][..self.target as usize])
    }
}

impl StartLine for RequestLine {
    const REQUEST: bool = true;

    /// RFC 9112 section 3: exactly single spaces.
    #[inline]
    fn parse(line: &[u8]) -> Result<RequestLine, ParseError> {
        RequestLine::begin(line)?;
        let line = strip_line_end(line)?;
        let space = line.iter().position(|&b| !is_token_byte(b));
        let method = space.filter(|&at| line[at] == b' ').ok_or(ParseError::BadStartLine)?;
        let rest = &line[method + 1..];
        let target = memchr::memchr(b' ', rest).ok_or(ParseError::BadStartLine)?;
        let version = parse_version(&rest[target + 1..])?;
        if &line[..method] == b"CONNECT" {
            return Err(ParseError::ConnectMethod);
        }
        if !is_target(&rest[..target]) {
            return Err(ParseError::BadTarget);
        }
        // Neither can fail: a head is within its limit, a u32.
        let place = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Ok(RequestLine { version, method: place(method), target: place(target) })
    }

    fn begin(beginning: &[u8]) -> Result<(), ParseError> {
        let fits = beginning.first().is_none_or(|&b| is_token_byte(b));
        if fits { Ok(()) } else { Err(ParseError::BadStartLine) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_costs_at_most_48_bytes() {
        assert!(size_of::<RequestParser>() <= 48, "{} bytes", size_of::<RequestParser>());
    }
}
