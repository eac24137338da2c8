//! What must hold for any bytes whatever, for both halves. Used by the tests here and by the fuzz targets.
//!
//! - How the bytes are cut makes no difference to the events, to the error, or to what the end of input means.
//! - A reader never gives up without an error: `None` means that it used all it was given.
//! - Every event but `End` uses bytes, and no two events in a row use none.
//! - An error stays.
//! - A body has the length that its head announced.
//! - A memo of the heads that came before makes no difference.
//! - A header that is looked for where the last head had it is found where it is, and what is read as a name is written so.
//! - What a reader accepts, another parser (httparse) accepts and reads alike, and [`encode`] can write, and what it
//!   writes reads the same.

use std::fmt;

use weir_wire::http1::encode::{self, BodyFraming, Persistence};
use weir_wire::http1::{
    Framing, HeadMemo, Limits, ParseError, RequestEvent, RequestLine, RequestParser, ResponseEvent, ResponseParser,
    StatusLine, Version, headers,
};

use weir_wire::request_id::{HeaderFinder, RequestId, ResponseKey, ResponseTag};

/// An event that owns its bytes. Displayed in one word or two, for tables of tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A 1xx response.
    Informational(u16),
    /// The head of a response.
    Response { version: Version, status: u16, framing: Framing, raw: Vec<u8> },
    /// The head of a request.
    Request {
        version: Version,
        method: Vec<u8>,
        target: Vec<u8>,
        framing: Framing,
        expects_continue: bool,
        raw: Vec<u8>,
    },
    /// All pieces of a body that came in a row.
    Body(Vec<u8>),
    /// A message's end.
    End { keep_alive: bool },
    /// What the reader refused.
    Error(ParseError),
    /// What the end of input meant: true when it ended a body.
    Eof(Result<bool, ParseError>),
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = |version: &Version| {
            if *version == Version::Http10 { "1.0 " } else { "" }
        };
        match self {
            Seen::Informational(status) => write!(f, "info {status}"),
            Seen::Response { version: v, status, framing, .. } => {
                write!(f, "{}{status} {framing:?}", version(v))
            }
            Seen::Request { version: v, method, target, framing, expects_continue, .. } => {
                let expects = if *expects_continue { " expects" } else { "" };
                let (method, target) = (method.escape_ascii(), target.escape_ascii());
                write!(f, "{}{method} {target} {framing:?}{expects}", version(v))
            }
            Seen::Body(body) => write!(f, "\"{}\"", body.escape_ascii()),
            Seen::End { keep_alive: true } => f.write_str("keep"),
            Seen::End { keep_alive: false } => f.write_str("close"),
            Seen::Error(error) => write!(f, "{error:?}"),
            Seen::Eof(Ok(ended)) => f.write_str(if *ended { "ended" } else { "idle" }),
            Seen::Eof(Err(error)) => write!(f, "eof {error:?}"),
        }
    }
}

/// Events as one line.
pub fn line(seen: &[Seen]) -> String {
    seen.iter().map(Seen::to_string).collect::<Vec<_>>().join(" | ")
}

/// The events of `bytes` as one line, the same however they are cut: whole, byte by byte, and in two in every place.
#[track_caller]
pub fn line_however_cut<H: Half>(new: impl Fn() -> H, bytes: &str) -> String {
    let bytes = bytes.as_bytes();
    let whole = read(&mut new(), [bytes]);
    assert_eq!(read(&mut new(), bytes.chunks(1)), whole, "byte by byte");
    for at in 0..bytes.len() {
        let (first, second) = bytes.split_at(at);
        assert_eq!(read(&mut new(), [first, &[], second]), whole, "cut at {at}");
    }
    line(&whole)
}

/// The same for bytes too many to be cut in every place.
#[track_caller]
pub fn line_in_pieces<H: Half>(new: impl Fn() -> H, bytes: &str) -> String {
    let bytes = bytes.as_bytes();
    let whole = read(&mut new(), [bytes]);
    for size in [1, 2, 3, 7, 64] {
        assert_eq!(read(&mut new(), bytes.chunks(size)), whole, "in pieces of {size}");
    }
    line(&whole)
}

/// What both halves have in common.
pub trait Half {
    /// The next event.
    fn next(&mut self, input: &mut &[u8]) -> Result<Option<Seen>, ParseError>;
    /// What the end of input means.
    fn eof(&mut self) -> Result<bool, ParseError>;
}

/// A header whose value is another in each head.
const CHANGING: &str = "x-weir-id";

/// A parser of responses with a memo of the heads that came before.
type Responses = (ResponseParser, HeadMemo<StatusLine>);

/// The same of requests.
type Requests = (RequestParser, HeadMemo<RequestLine>);

impl Half for ResponseParser {
    fn next(&mut self, input: &mut &[u8]) -> Result<Option<Seen>, ParseError> {
        next_of_response(self, None, input)
    }

    fn eof(&mut self) -> Result<bool, ParseError> {
        let in_flight = self.in_flight();
        let end = self.on_eof();
        assert_eq!(self.in_flight(), in_flight - u32::from(end == Ok(true)));
        end
    }
}

impl Half for Responses {
    fn next(&mut self, input: &mut &[u8]) -> Result<Option<Seen>, ParseError> {
        next_of_response(&mut self.0, Some(&mut self.1), input)
    }

    fn eof(&mut self) -> Result<bool, ParseError> {
        Half::eof(&mut self.0)
    }
}

impl Half for Requests {
    fn next(&mut self, input: &mut &[u8]) -> Result<Option<Seen>, ParseError> {
        next_of_request(&mut self.0, Some(&mut self.1), input)
    }

    fn eof(&mut self) -> Result<bool, ParseError> {
        Half::eof(&mut self.0)
    }
}

fn next_of_response(
    parser: &mut ResponseParser,
    memo: Option<&mut HeadMemo<StatusLine>>,
    input: &mut &[u8],
) -> Result<Option<Seen>, ParseError> {
    let in_flight = parser.in_flight();
    let seen = parser.next_with(input, memo)?.map(|event| match event {
        ResponseEvent::Informational(status) => Seen::Informational(status),
        ResponseEvent::Head(head) => {
            Seen::Response { version: head.version, status: head.status, framing: head.framing, raw: head.raw.to_vec() }
        }
        ResponseEvent::Body(data) => Seen::Body(data.to_vec()),
        ResponseEvent::End { keep_alive } => Seen::End { keep_alive },
    });
    let ended = u32::from(matches!(seen, Some(Seen::End { .. })));
    assert_eq!(parser.in_flight(), in_flight - ended, "requests in flight");
    Ok(seen)
}

fn next_of_request(
    parser: &mut RequestParser,
    memo: Option<&mut HeadMemo<RequestLine>>,
    input: &mut &[u8],
) -> Result<Option<Seen>, ParseError> {
    let seen = parser.next_with(input, memo)?.map(|event| match event {
        RequestEvent::Head(head) => Seen::Request {
            version: head.version,
            method: head.method.to_vec(),
            target: head.target.to_vec(),
            framing: head.framing,
            expects_continue: head.expects_continue,
            raw: head.raw.to_vec(),
        },
        RequestEvent::Body(data) => Seen::Body(data.to_vec()),
        RequestEvent::End { keep_alive } => Seen::End { keep_alive },
    });
    match seen {
        Some(Seen::End { .. }) => assert!(parser.is_idle()),
        Some(_) => assert!(!parser.is_idle()),
        None => {}
    }
    Ok(seen)
}

impl Half for RequestParser {
    fn next(&mut self, input: &mut &[u8]) -> Result<Option<Seen>, ParseError> {
        next_of_request(self, None, input)
    }

    fn eof(&mut self) -> Result<bool, ParseError> {
        let idle = self.is_idle();
        let end = self.on_eof();
        assert_eq!(end.is_ok(), idle);
        end.map(|()| false)
    }
}

/// Passes the pieces to a parser, one after the other, and checks its promises.
pub fn read<'i>(half: &mut impl Half, pieces: impl IntoIterator<Item = &'i [u8]>) -> Vec<Seen> {
    let mut seen = Vec::new();
    for piece in pieces {
        let mut input = piece;
        let mut still = false;
        loop {
            let before = input;
            let event = half.next(&mut input);
            let used = before.len().checked_sub(input.len()).expect("no more bytes than before");
            assert_eq!(input.as_ptr_range(), before[used..].as_ptr_range(), "bytes are used in order");
            match event {
                Ok(Some(event)) => {
                    let bytes_needed = !matches!(event, Seen::End { .. });
                    assert!(used > 0 || !(bytes_needed || still), "{event} used no bytes");
                    still = used == 0;
                    match (&event, seen.last_mut()) {
                        (Seen::Body(more), Some(Seen::Body(body))) => body.extend_from_slice(more),
                        _ => seen.push(event),
                    }
                }
                Ok(None) => {
                    assert!(input.is_empty(), "None leaves no bytes");
                    break;
                }
                Err(error) => {
                    seen.push(Seen::Error(error));
                    let left = input;
                    assert_eq!(half.next(&mut input), Err(error), "an error stays");
                    assert_eq!(input, left, "no bytes are used after an error");
                    assert_eq!(half.eof(), Err(error), "an error stays");
                    return seen;
                }
            }
        }
    }
    seen.push(Seen::Eof(half.eof()));
    seen
}

/// Cuts `bytes` into pieces of 0 to 8 bytes, or of single ones for seed 0; short ones, since what is interesting is
/// short.
pub fn cut(bytes: &[u8], seed: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    let mut state = u32::from(seed);
    std::iter::from_fn(move || {
        // A linear congruential generator, of which the high bits are good enough.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let size = if seed == 0 { 1 } else { (state >> 24) as usize % (2 + usize::from(seed % 8)) };
        let (piece, after) = rest.split_at(size.min(rest.len()));
        rest = after;
        (!piece.is_empty() || !rest.is_empty()).then_some(piece)
    })
}

/// Limits that short inputs can reach.
pub const TIGHT: Limits = Limits { head_bytes: 64, headers: 3, chunk_line_bytes: 8, trailer_bytes: 16 };

/// The parts of an input: three bytes that say how to read, and what to read. The three are counted from `0`, so that
/// `000` is a plain reading, and a corpus of text files reads well.
///
/// - First: which of the first eight requests were HEAD, a bit each.
/// - Second: bit 0 for [`TIGHT`] limits; bits 1 and 2 for requests in flight: 64, 1, 2 or none.
/// - Third: how to cut ([`cut`]).
fn parts(data: &[u8]) -> Option<(u8, u8, u8, &[u8])> {
    let (&[heads, options, seed], bytes) = data.split_first_chunk()?;
    Some((heads ^ b'0', options ^ b'0', seed ^ b'0', bytes))
}

fn limits(options: u8) -> Limits {
    if options & 1 == 1 { TIGHT } else { Limits::default() }
}

/// Checks the client half with an input.
pub fn responses(data: &[u8]) {
    let Some((heads, options, seed, bytes)) = parts(data) else { return };
    let in_flight = [64, 1, 2, 0][usize::from(options >> 1 & 3)];
    let is_head = |n: u32| n < 8 && heads >> n & 1 == 1;
    let new = || {
        let mut parser = ResponseParser::new(limits(options));
        (0..in_flight).for_each(|n| parser.request_sent(is_head(n)));
        parser
    };
    let whole = read(&mut new(), [bytes]);
    let pieces = read(&mut new(), cut(bytes, seed));
    assert_eq!(line(&whole), line(&pieces), "cut or not");
    assert_eq!(whole, pieces, "cut or not");
    for known in [Some(CHANGING), Some("Host"), None] {
        let mut remembering = (new(), HeadMemo::new(known));
        assert_eq!(read(&mut remembering, [bytes]), whole, "with a memo");
        assert_eq!(read(&mut (new(), remembering.1), [bytes]), whole, "with a memo of the same heads");
    }
    check_bodies(&whole);
    names(&whole);
    let mut number = 0;
    for (at, event) in whole.iter().enumerate() {
        match event {
            Seen::Response { version, status, framing, raw } => {
                agrees_on_response(*version, *status, raw);
                write_response(*status, *framing, raw, body_after(&whole, at), is_head(number));
            }
            Seen::End { .. } => number += 1,
            _ => {}
        }
    }
}

/// Checks the server half with an input.
pub fn requests(data: &[u8]) {
    let Some((_, options, seed, bytes)) = parts(data) else { return };
    let new = || RequestParser::new(limits(options));
    let whole = read(&mut new(), [bytes]);
    let pieces = read(&mut new(), cut(bytes, seed));
    assert_eq!(line(&whole), line(&pieces), "cut or not");
    assert_eq!(whole, pieces, "cut or not");
    for known in [Some(CHANGING), Some("Host"), None] {
        let mut remembering = (new(), HeadMemo::new(known));
        assert_eq!(read(&mut remembering, [bytes]), whole, "with a memo");
        assert_eq!(read(&mut (new(), remembering.1), [bytes]), whole, "with a memo of the same heads");
    }
    check_bodies(&whole);
    names(&whole);
    for (at, event) in whole.iter().enumerate() {
        if let Seen::Request { version, method, target, raw, .. } = event {
            agrees_on_request(*version, method, target, raw);
            if *version == Version::Http11 {
                write_request(method, target, raw, body_after(&whole, at));
            }
        }
    }
}

/// Looks for headers in all heads, one after the other.
fn names(seen: &[Seen]) {
    for name in ["host", "server", "x-weir-id", "x-weir-origin"] {
        let mut finder = HeaderFinder::new(name);
        for event in seen {
            let (Seen::Response { raw, .. } | Seen::Request { raw, .. }) = event else { continue };
            let found = finder.find(raw);
            let all: Vec<&[u8]> =
                headers(raw).filter(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value).collect();
            assert_eq!(found.is_none(), all.is_empty(), "{name}");
            let Some(value) = found else { continue };
            assert!(all.contains(&value), "{name}");
            assert!(RequestId::parse(value).is_none_or(|name| name.text() == value));
            let key = ResponseKey::default();
            assert!(ResponseTag::parse(value, key).is_none_or(|answered| answered.text(key) == value));
        }
    }
}

/// The body of the head at `at`, as far as it came.
fn body_after(seen: &[Seen], at: usize) -> &[u8] {
    match seen.get(at + 1) {
        Some(Seen::Body(body)) => body,
        _ => &[],
    }
}

/// Heads, bodies and ends come in this order, and bodies have their announced length.
fn check_bodies(seen: &[Seen]) {
    let mut open: Option<Framing> = None;
    let mut length = 0;
    let mut closed = false;
    for event in seen {
        assert!(!closed || matches!(event, Seen::Error(ParseError::DataAfterClose) | Seen::Eof(_)), "{event}");
        match event {
            Seen::Informational(_) => assert_eq!(open, None),
            Seen::Response { framing, .. } | Seen::Request { framing, .. } => {
                assert_eq!(open.replace(*framing), None);
                length = 0;
            }
            Seen::Body(body) => {
                assert!(!matches!(open, None | Some(Framing::None)), "a body without a head");
                length = body.len() as u64;
            }
            Seen::End { keep_alive } => {
                match open.take().expect("an end without a head") {
                    Framing::Length(announced) => assert_eq!(length, announced),
                    Framing::None => assert_eq!(length, 0),
                    Framing::Chunked => {}
                    Framing::UntilClose => panic!("only the close ends this body"),
                }
                closed = !keep_alive;
            }
            Seen::Eof(Ok(ended)) => {
                assert_eq!(*ended, open == Some(Framing::UntilClose));
                assert_eq!(*ended, open.is_some(), "the end of input ends no other body well");
            }
            Seen::Eof(Err(_)) | Seen::Error(_) => {}
        }
    }
}

/// More than any accepted head has.
const MANY: usize = 128;

fn minor(version: Version) -> u8 {
    u8::from(version == Version::Http11)
}

fn same_headers(raw: &[u8], other: &[httparse::Header<'_>]) {
    let ours: Vec<_> = headers(raw).collect();
    let theirs: Vec<_> = other.iter().map(|h| (h.name.as_bytes(), h.value.trim_ascii())).collect();
    assert_eq!(ours, theirs);
}

fn agrees_on_response(version: Version, status: u16, raw: &[u8]) {
    let mut fields = [httparse::EMPTY_HEADER; MANY];
    let mut response = httparse::Response::new(&mut fields);
    assert_eq!(response.parse(raw), Ok(httparse::Status::Complete(raw.len())));
    assert_eq!((response.version, response.code), (Some(minor(version)), Some(status)));
    same_headers(raw, response.headers);
}

fn agrees_on_request(version: Version, method: &[u8], target: &[u8], raw: &[u8]) {
    let mut fields = [httparse::EMPTY_HEADER; MANY];
    let mut request = httparse::Request::new(&mut fields);
    assert_eq!(request.parse(raw), Ok(httparse::Status::Complete(raw.len())));
    assert_eq!(request.version, Some(minor(version)));
    assert_eq!(request.method.map(str::as_bytes), Some(method));
    assert_eq!(request.path.map(str::as_bytes), Some(target));
    same_headers(raw, request.headers);
}

/// The headers that [`encode`] takes: those that do not frame, where all are text.
fn given(raw: &[u8]) -> Option<Vec<(&str, &str)>> {
    headers(raw)
        .map(|(name, value)| Some((std::str::from_utf8(name).ok()?, std::str::from_utf8(value).ok()?)))
        .filter(|header| {
            header.is_none_or(|(name, _)| {
                !name.eq_ignore_ascii_case("content-length") && !name.eq_ignore_ascii_case("transfer-encoding")
            })
        })
        .collect()
}

fn write_request(method: &[u8], target: &[u8], raw: &[u8], body: &[u8]) {
    let Some(fields) = given(raw) else { return };
    let text = |bytes| std::str::from_utf8(bytes).expect("methods and targets are ASCII");
    let mut out = Vec::new();
    encode::request(&mut out, text(method), text(target), &fields, body).expect("what was read can be written");
    let again = read(&mut RequestParser::new(Limits { headers: MANY as u32 + 1, ..wide() }), [&out[..]]);
    let Some(Seen::Request { method: m, target: t, raw, .. }) = again.first() else { panic!("{}", line(&again)) };
    assert_eq!((m.as_slice(), t.as_slice()), (method, target));
    assert_eq!(given(raw).as_ref(), Some(&fields));
    assert_eq!(body_after(&again, 0), body);
}

fn write_response(status: u16, framing: Framing, raw: &[u8], body: &[u8], head: bool) {
    let Some(fields) = given(raw) else { return };
    let as_given = match framing {
        Framing::Length(_) => BodyFraming::Length(body.len() as u64),
        Framing::Chunked => BodyFraming::Chunked,
        Framing::None | Framing::UntilClose => BodyFraming::None,
    };
    let mut out = Vec::new();
    encode::response_head(&mut out, status, &fields, as_given, Persistence::Implied)
        .expect("what was read can be written");
    if as_given == BodyFraming::Chunked {
        body.chunks(7).for_each(|piece| encode::chunk(&mut out, piece));
        out.extend_from_slice(encode::LAST_CHUNK);
    } else {
        out.extend_from_slice(body);
    }
    let mut parser = ResponseParser::new(Limits { headers: MANY as u32 + 1, ..wide() });
    parser.request_sent(head);
    let again = read(&mut parser, [&out[..]]);
    let Some(Seen::Response { status: s, raw, .. }) = again.first() else { panic!("{}", line(&again)) };
    assert_eq!(*s, status);
    assert_eq!(given(raw).as_ref(), Some(&fields));
    assert_eq!(body_after(&again, 0), body);
}

/// Writing may make a head a little longer than the one read.
fn wide() -> Limits {
    Limits { head_bytes: 1 << 20, ..Limits::default() }
}
