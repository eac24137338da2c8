//! Parses a request's target into the [`Plan`] of its response.
//!
//! It is pure: bytes in, value out. The origin refuses everything that it does not understand, and says what it found
//! and what is allowed. It never guesses: ignoring a mistyped `?delya=10ms` would silently falsify a measurement. For
//! targets that must differ (to get past a cache, say) there is `x`, whose value means nothing.
//!
//! Targets are compared as bytes; nothing is percent-decoded. This module does not know methods, bodies or sockets.

use std::fmt;
use std::rc::Rc;

use weir_model::coding::Coding;
use weir_model::gateway::AUTHORIZER;
use weir_model::load::{MOST_SENT, PacedMessages, RandomDuration};
use weir_model::protocol::Application;

use weir_wire::grpc::Status;
use weir_wire::websocket::is_close_code;

use crate::fault::{self, FaultKind, Faults};
use crate::stream::{self, Shape, Wrapping};
use crate::value;

/// What a target asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    /// The path's part of the response.
    pub(crate) subject: Subject,
    /// `?bytes=`: a payload of this size in place of the subject's own body.
    pub(crate) bytes: Option<usize>,
    /// Status of the response.
    pub(crate) status: u16,
    /// How long the response waits after the request is complete; `None`: as the origin's options say.
    pub(crate) delay: Option<RandomDuration>,
    /// The faults; `None`: as the origin's options say.
    pub(crate) faults: Option<Rc<Faults>>,
    /// `Transfer-Encoding: chunked` in place of `Content-Length`.
    pub(crate) chunked: bool,
    /// Close the connection after the response.
    pub(crate) close: bool,
    /// The messages of a stream.
    pub(crate) stream: Option<Shape>,
    /// The coding of a fixed body, for requests that accept it.
    pub(crate) encoding: Option<Coding>,
}

/// The body, if the query does not change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// `/`: the page that lists what there is.
    Index,
    /// `/bytes/<size>`: a payload.
    Bytes,
    /// `/text/<size>`: words, which can be compressed.
    Text(usize),
    /// `/delay/<duration>`: `ok`.
    Delay,
    /// `/echo`: the request's body.
    Echo,
    /// `/status/<code>`: the status as text.
    Status,
    /// `/headers`: the request's head.
    Headers,
    /// `/request`: the request's head and body.
    Request,
    /// `/stream`: messages, one after another.
    Stream,
    /// `/weir.Echo/...`: a call of gRPC.
    Call,
    /// `/weir.Echo/Bidi`: a call of gRPC whose messages come back, each as it comes.
    Bidi,
    /// `/ws`: an upgrade to WebSocket; the status and a text where none is asked for.
    Socket,
    /// `/v1/chat/completions`: the completion of a prompt, as a stream where the request asks for one.
    Completion,
    /// `/_weir/counters`: the counters.
    Counters,
    /// `/_weir/ready`: empty, with 204; a payload where the query asks for one.
    Ready,
    /// `/_weir/authorize` and what is behind it: 401, and 200 for requests with a key.
    Authorize,
}

/// Why a target is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Nothing is at this path: 404.
    NotFound {
        /// The path, cut short, printable.
        path: String,
    },
    /// A value or a query key is wrong: 400.
    BadValue {
        /// Where the value is: `/bytes/`, `?delay=` ...
        place: String,
        /// The value, cut short, printable.
        found: String,
        /// What is allowed.
        right: &'static str,
    },
}

/// Keys that a query may have.
const KEYS_RULE: &str = "bytes=<size>, delay=<duration>, status=<code>, fault=<fault>, chunked=1, close=1, encoding=gzip, or x=<anything> (ignored)";

/// Keys that only a stream's has.
const STREAM_KEYS_RULE: &str = "messages=<number>, first=<duration>, every=<duration>, size=<bytes> and seed=<number> for /stream and /v1/chat/completions";

/// Faults that a stream can have.
const STREAM_FAULTS_RULE: &str =
    "a fault of a stream: reset, reset=before, reset=middle, close, stall or status=<200 to 599>";

/// What a query of a socket may say.
const SOCKET_RULE: &str = "messages=<number>, after which it closes the connection, code=<1000 to 4999>, the code that it gives then, broadcast=1, or x=<anything>";

/// The keys that a query of a call with both streams may have. The client looks at what becomes of its messages.
const BIDI_RULE: &str = "requests=<number>, every=<duration> and size=<bytes>, which say what the client sends, fault=status=<code>, fault=reset, or x=<anything>";

/// The plan of such a call but for its faults.
const BIDI: Plan = Plan { subject: Subject::Bidi, chunked: true, ..Plan::PLAIN };

/// The plan of a socket but for its messages.
const SOCKET: Plan = Plan { subject: Subject::Socket, status: 426, ..Plan::PLAIN };

/// Which streams say that they failed.
const ERROR_RULE: &str =
    "error for /v1/chat/completions and calls alone: elsewhere nothing in a stream can say that it failed";

/// The longest excerpt of a target that an error contains, in bytes.
const EXCERPT: usize = 64;

impl Plan {
    /// 200 at once, connection kept, nothing special.
    pub(crate) const PLAIN: Plan = Plan {
        subject: Subject::Index,
        bytes: None,
        status: 200,
        delay: None,
        faults: None,
        chunked: false,
        close: false,
        stream: None,
        encoding: None,
    };

    /// That of a call of gRPC.
    fn call(shape: Shape) -> Plan {
        let stream = Some(Shape { wrapping: Wrapping::Call, ..shape });
        Plan { stream, chunked: true, ..Plan::of(Subject::Call) }
    }

    /// What is to become of messages, if it is a target for sockets.
    pub(crate) fn socket(&self) -> Option<Shape> {
        self.stream.filter(|_| self.subject == Subject::Socket)
    }

    /// Whether it is a call of gRPC, which nothing but HTTP/2 can carry.
    pub(crate) fn is_call(&self) -> bool {
        matches!(self.subject, Subject::Call | Subject::Bidi)
    }

    /// The plan of a path without query.
    fn of(subject: Subject) -> Plan {
        let status = match subject {
            Subject::Ready => 204,
            Subject::Authorize => 401,
            _ => 200,
        };
        Plan { subject, status, ..Plan::PLAIN }
    }
}

impl Refusal {
    /// The status of the response.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Refusal::NotFound { .. } => 404,
            Refusal::BadValue { .. } => 400,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotFound { path } => write!(f, "nothing is at `{path}`"),
            Refusal::BadValue { place, found, right } => {
                write!(f, "`{found}` in `{place}` is not understood; expected: {right}")
            }
        }
    }
}

/// Whether a target is the lab's own (`/_weir/...`), and so not counted.
pub(crate) fn is_own(target: &[u8]) -> bool {
    origin_form(target).starts_with(b"/_weir/")
}

/// Parses a target, in origin form (`/bytes/128?close=1`) or absolute form (`http://host/bytes/128`).
///
/// The query overrides the path; of a repeated key the last one counts. The lab's own paths have no query, and one is
/// ignored, but for `bytes` of `/_weir/ready`.
///
/// # Errors
/// A [`Refusal`] for an unknown path or query key, and for a value out of its bounds.
pub(crate) fn parse(target: &[u8]) -> Result<Plan, Refusal> {
    let target = origin_form(target);
    let (path, query) = match target.iter().position(|byte| *byte == b'?') {
        Some(mark) => (&target[..mark], &target[mark + 1..]),
        None => (target, &b""[..]),
    };
    let mut plan = parse_path(path)?;
    let mut pairs = query.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    if plan.subject == Subject::Ready {
        // A slow client receives it.
        if let Some(text) = pairs.find_map(|pair| pair.strip_prefix(b"bytes=")) {
            plan = Plan { bytes: Some(read("?bytes=", text, value::size, value::SIZE_RULE)?), status: 200, ..plan };
        }
    } else if !is_own(path) {
        for pair in pairs {
            parse_pair(&mut plan, pair)?;
        }
        if plan.subject == Subject::Socket && (Plan { stream: None, ..plan.clone() }) != SOCKET {
            return Err(bad("?", query, SOCKET_RULE));
        }
        let faults = plan.faults.as_deref();
        let has = |kinds: &[FaultKind]| kinds.iter().any(|kind| faults.is_some_and(|faults| faults.has(*kind)));
        if plan.subject == Subject::Bidi {
            let right = Plan { faults: None, ..plan.clone() } == BIDI
                && !has(&[FaultKind::Close, FaultKind::Stall, FaultKind::Length, FaultKind::Drip, FaultKind::Error])
                && str::from_utf8(target).ok().and_then(PacedMessages::of).is_none_or(|paced| paced.is_ok());
            return if right { Ok(plan) } else { Err(bad("?", query, BIDI_RULE)) };
        }
        match plan.stream.map(|shape| shape.wrapping) {
            Some(_) if has(&[FaultKind::Length, FaultKind::Drip]) => {
                return Err(bad("?fault=", query, STREAM_FAULTS_RULE));
            }
            None | Some(Wrapping::Events) if has(&[FaultKind::Error]) => {
                return Err(bad("?fault=", query, ERROR_RULE));
            }
            _ => {}
        }
    }
    Ok(plan)
}

fn parse_path(path: &[u8]) -> Result<Plan, Refusal> {
    Ok(match path {
        b"/" => Plan::of(Subject::Index),
        b"/echo" => Plan::of(Subject::Echo),
        b"/headers" => Plan::of(Subject::Headers),
        b"/request" => Plan::of(Subject::Request),
        // Its length is not said, as that of a live stream is not known.
        b"/stream" => Plan { stream: Some(Shape::default()), chunked: true, ..Plan::of(Subject::Stream) },
        b"/v1/chat/completions" => {
            let stream = Shape { wrapping: Wrapping::Completion, ..Shape::default() };
            Plan { stream: Some(stream), ..Plan::of(Subject::Completion) }
        }
        // The response comes when the request is complete, with however many messages.
        b"/weir.Echo/Unary" | b"/weir.Echo/ClientStream" => {
            let at_once = RandomDuration::Constant { s: 0.0 };
            Plan::call(Shape { messages: 1, first: at_once, every: at_once, ..Shape::default() })
        }
        b"/weir.Echo/Bidi" => BIDI,
        b"/weir.Echo/ServerStream" => Plan::call(Shape::default()),
        b"/ws" => {
            let stream = Shape { wrapping: Wrapping::Socket, messages: stream::MOST, code: 1000, ..Shape::default() };
            Plan { stream: Some(stream), status: 426, ..Plan::of(Subject::Socket) }
        }
        b"/_weir/counters" => Plan::of(Subject::Counters),
        b"/_weir/ready" => Plan::of(Subject::Ready),
        _ => {
            if let Some(text) = path.strip_prefix(b"/bytes/") {
                Plan { bytes: Some(read("/bytes/", text, value::size, value::SIZE_RULE)?), ..Plan::of(Subject::Bytes) }
            } else if let Some(text) = path.strip_prefix(b"/text/") {
                Plan::of(Subject::Text(read("/text/", text, value::size, value::SIZE_RULE)?))
            } else if let Some(text) = path.strip_prefix(b"/delay/") {
                Plan {
                    delay: Some(read("/delay/", text, value::delay, value::DELAY_RULE)?),
                    ..Plan::of(Subject::Delay)
                }
            } else if let Some(text) = path.strip_prefix(b"/status/") {
                Plan { status: read("/status/", text, value::status, value::STATUS_RULE)?, ..Plan::of(Subject::Status) }
            } else if let Some(rest) = path.strip_prefix(b"/r/").and_then(behind_route) {
                return parse_path(rest);
            } else if path
                .strip_prefix(AUTHORIZER.as_bytes())
                .is_some_and(|rest| rest.first().is_none_or(|b| *b == b'/'))
            {
                // A gateway may repeat the path of the request that it asks about.
                Plan::of(Subject::Authorize)
            } else if path.starts_with(b"/weir.Echo/") {
                // The service has no such method, which gRPC says by its own status.
                Plan::call(Shape { code: Status::UNIMPLEMENTED.0, ..Shape::default() })
            } else {
                return Err(Refusal::NotFound { path: excerpt(path) });
            }
        }
    })
}

/// What stands behind the number of a route: `/bytes/128` of `17/bytes/128`.
fn behind_route(text: &[u8]) -> Option<&[u8]> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.get(digits..).filter(|rest| digits > 0 && rest.starts_with(b"/") && !rest.starts_with(b"/r/"))
}

fn parse_pair(plan: &mut Plan, pair: &[u8]) -> Result<(), Refusal> {
    let (key, text) = match pair.iter().position(|byte| *byte == b'=') {
        Some(mark) => (&pair[..mark], &pair[mark + 1..]),
        None => (pair, &b""[..]),
    };
    if let Some(shape) = &mut plan.stream
        && parse_stream_pair(shape, key, text)?
    {
        return Ok(());
    }
    if plan.subject == Subject::Bidi && matches!(key, b"requests" | b"every" | b"size") {
        // Read with the rest of the target.
        return Ok(());
    }
    match key {
        b"bytes" => plan.bytes = Some(read("?bytes=", text, value::size, value::SIZE_RULE)?),
        b"delay" => plan.delay = Some(read("?delay=", text, value::delay, value::DELAY_RULE)?),
        b"status" => plan.status = read("?status=", text, value::status, value::STATUS_RULE)?,
        b"fault" => plan.faults = Some(read("?fault=", text, faults, fault::RULE)?),
        b"chunked" => plan.chunked = read("?chunked=", text, value::flag, value::FLAG_RULE)?,
        b"close" => plan.close = read("?close=", text, value::flag, value::FLAG_RULE)?,
        b"encoding" => plan.encoding = Some(read("?encoding=", text, value::coding, value::CODING_RULE)?),
        b"x" => {}
        b"messages" | b"first" | b"every" | b"size" | b"seed" => return Err(bad("?", pair, STREAM_KEYS_RULE)),
        _ => return Err(bad("?", pair, KEYS_RULE)),
    }
    Ok(())
}

/// Reads a pair that only a stream's query has. Returns whether it is one.
fn parse_stream_pair(shape: &mut Shape, key: &[u8], text: &[u8]) -> Result<bool, Refusal> {
    match key {
        b"code" if shape.wrapping == Wrapping::Socket => {
            let code = |text: &[u8]| {
                let code = stream::number(text).and_then(|code| u16::try_from(code).ok());
                code.filter(|code| is_close_code(*code))
            };
            shape.code = read("?code=", text, code, "a code of a close frame, such as 1001 or 4000")?.into();
        }
        b"broadcast" if shape.wrapping == Wrapping::Socket => {
            shape.broadcast = read("?broadcast=", text, value::flag, value::FLAG_RULE)?;
        }
        b"first" | b"every" | b"size" | b"seed" if shape.wrapping == Wrapping::Socket => return Ok(false),
        b"messages" => shape.messages = read("?messages=", text, stream::messages, stream::MESSAGES_RULE)?,
        b"first" => shape.first = read("?first=", text, stream::time, stream::TIME_RULE)?,
        b"every" => shape.every = read("?every=", text, stream::time, stream::TIME_RULE)?,
        b"size" => shape.size = read("?size=", text, stream::size, stream::SIZE_RULE)?,
        b"trailers" if shape.wrapping == Wrapping::Events => {
            shape.trailers = read("?trailers=", text, value::flag, value::FLAG_RULE)?;
        }
        b"seed" => shape.seed = read("?seed=", text, stream::number, stream::SEED_RULE)?,
        b"requests" if shape.wrapping == Wrapping::Call => {
            let count = |text: &[u8]| stream::number(text).filter(|count| (1..=MOST_SENT as u64).contains(count));
            read("?requests=", text, count, "1 to 10000: the messages that the client sends")?;
        }
        b"code" if shape.wrapping == Wrapping::Call => {
            let code = |text: &[u8]| stream::number(text).filter(|code| *code <= 16).map(|code| code as u32);
            shape.code = read("?code=", text, code, "0 to 16: the status of a call without messages")?;
        }
        b"chunked" | b"bytes" => return Err(bad("?", key, "neither chunked nor bytes: a stream has no length")),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads a value; `successful`: what is allowed.
fn read<T>(place: &str, text: &[u8], parse: fn(&[u8]) -> Option<T>, right: &'static str) -> Result<T, Refusal> {
    parse(text).ok_or_else(|| bad(place, text, right))
}

fn faults(text: &[u8]) -> Option<Rc<Faults>> {
    let faults: Faults = std::str::from_utf8(text).ok()?.parse().ok()?;
    faults.check(Application::Http1).is_ok().then(|| Rc::new(faults))
}

fn bad(place: &str, found: &[u8], right: &'static str) -> Refusal {
    Refusal::BadValue { place: place.to_owned(), found: excerpt(found), right }
}

/// Cuts scheme and authority off an absolute-form target.
fn origin_form(target: &[u8]) -> &[u8] {
    let Some(rest) = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://")) else {
        return target;
    };
    match rest.iter().position(|byte| *byte == b'/') {
        Some(slash) => &rest[slash..],
        None => b"/",
    }
}

/// The beginning of a text from outside. Everything that is not printable ASCII is escaped.
fn excerpt(text: &[u8]) -> String {
    let mut out = text[..text.len().min(EXCERPT)].escape_ascii().to_string();
    if text.len() > EXCERPT {
        out.push_str("...");
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(s: f64) -> Option<RandomDuration> {
        Some(RandomDuration::Constant { s })
    }

    fn plan(target: &str) -> Plan {
        parse(target.as_bytes()).unwrap_or_else(|refusal| panic!("{target}: {refusal}"))
    }

    #[test]
    fn a_route_leads_to_what_stands_behind_it() {
        assert_eq!(parse(b"/r/17/bytes/128?delay=1ms"), parse(b"/bytes/128?delay=1ms"));
        assert_eq!(parse(b"/r/0/echo"), parse(b"/echo"));
        for path in ["/r/17", "/r//bytes/1", "/r/x/bytes/1", "/r/1x/bytes/1", "/r/1/r/2/bytes/1"] {
            assert!(matches!(parse(path.as_bytes()), Err(Refusal::NotFound { .. })), "{path}");
        }
    }

    #[test]
    fn paths() {
        assert_eq!(plan("/"), Plan::of(Subject::Index));
        assert_eq!(plan("/echo"), Plan::of(Subject::Echo));
        assert_eq!(plan("/headers"), Plan::of(Subject::Headers));
        assert_eq!(plan("/request?delay=1s"), Plan { delay: seconds(1.0), ..Plan::of(Subject::Request) });
        assert_eq!(plan("/bytes/16KiB"), Plan { bytes: Some(16_384), ..Plan::of(Subject::Bytes) });
        assert_eq!(plan("/text/16KiB"), Plan::of(Subject::Text(16_384)));
        assert_eq!(plan("/delay/1.5s"), Plan { delay: seconds(1.5), ..Plan::of(Subject::Delay) });
        assert_eq!(plan("/status/503"), Plan { status: 503, ..Plan::of(Subject::Status) });
        assert_eq!(plan("/weir.Echo/Other").stream.map(|shape| shape.code), Some(12));
        assert_eq!(plan("/weir.Echo/Bidi?requests=3&every=1ms&size=1KiB&x=1"), BIDI);
        assert_eq!(plan("/_weir/counters").subject, Subject::Counters);
        assert_eq!(plan("/_weir/ready").status, 204);
        let payload = Plan { bytes: Some(1_024), status: 200, ..Plan::of(Subject::Ready) };
        assert_eq!((plan("/_weir/ready?x&bytes=1KiB"), plan("/_weir/ready?x=1").status), (payload, 204));
        assert_eq!(plan("/_weir/authorize").status, 401);
        assert_eq!(plan("/_weir/authorize/bytes/128?x=1").status, 401);
    }

    #[test]
    fn queries_combine_and_override_the_path() {
        let wanted = Plan {
            subject: Subject::Bytes,
            bytes: Some(7),
            status: 201,
            delay: seconds(0.01),
            faults: Some(Rc::new("reset=1%,stall:0".parse().expect("faults"))),
            chunked: true,
            close: true,
            stream: None,
            encoding: Some(Coding::Gzip),
        };
        assert_eq!(
            plan(
                "/bytes/11268?delay=10ms&bytes=7&chunked=1&close=1&status=201&fault=reset=1%,stall=0%&encoding=gzip&x=%20?&"
            ),
            wanted
        );
        assert_eq!(plan("/bytes/1?bytes=2&bytes=3").bytes, Some(3));
        assert_eq!(plan("/echo?bytes=5").bytes, Some(5));
        assert!(!plan("/?chunked=0&close=0").close);
        assert_eq!(plan("/_weir/counters?delay=never").delay, None);
    }

    #[test]
    fn a_stream_has_keys_of_its_own() {
        let wanted = Shape {
            wrapping: Wrapping::Events,
            messages: 3,
            first: RandomDuration::Constant { s: 65.0 },
            every: RandomDuration::Uniform { from_s: 0.01, to_s: 0.03 },
            size: 4096,
            code: 0,
            trailers: true,
            broadcast: false,
            seed: 9,
        };
        let found =
            plan("/stream?messages=3&first=65s&every=10ms..30ms&size=4KiB&seed=9&trailers=1&fault=close:5%&close=1");
        assert_eq!((found.stream, found.subject, found.chunked), (Some(wanted), Subject::Stream, true));
        assert_eq!(plan("/stream").stream, Some(Shape::default()));
        let found = plan("/v1/chat/completions?messages=3&fault=error:5%");
        assert_eq!(
            (found.stream, found.chunked),
            (Some(Shape { wrapping: Wrapping::Completion, messages: 3, ..Shape::default() }), false)
        );
    }

    #[test]
    fn absolute_form_is_the_same() {
        assert_eq!(plan("http://127.0.0.1:80/bytes/128?close=1"), plan("/bytes/128?close=1"));
        assert_eq!(plan("https://host"), plan("/"));
        assert!(is_own(b"/_weir/counters") && is_own(b"http://h/_weir/x") && is_own(b"/_weir/?"));
        assert!(!is_own(b"/_weird") && !is_own(b"/bytes/_weir/"));
    }

    #[test]
    fn refusals_name_the_value_and_what_is_allowed() {
        for (target, status, words) in [
            ("/nothing", 404, &["`/nothing`"][..]),
            ("*", 404, &["`*`"]),
            ("", 404, &["``"]),
            ("/bytes", 404, &["/bytes"]),
            ("/_weir/else", 404, &["/_weir/else"]),
            ("/bytes/", 400, &["/bytes/", "11268"]),
            ("/bytes/65MiB", 400, &["65MiB", "64MiB"]),
            ("/bytes/12/", 400, &["12/"]),
            ("/delay/10", 400, &["`10`", "10ms"]),
            ("/delay/61s", 400, &["61s", "60s"]),
            ("/status/101", 400, &["101", "200 to 599"]),
            ("/delay/exp:61s", 400, &["exp:61s", "exp:10ms"]),
            ("/bytes/1?fault=lose", 400, &["`lose`", "status=503:2%"]),
            ("/bytes/1?fault=rest", 400, &["`rest`", "status=503:2%"]),
            ("/bytes/1?close", 400, &["?close=", "1 or 0"]),
            ("/bytes/1?encoding=br", 400, &["`br`", "gzip"]),
            ("/bytes/1?delya=1s", 400, &["delya=1s", "delay=<duration>"]),
            ("/bytes/1?messages=3", 400, &["messages=3", "for /stream"]),
            ("/stream?messages=0", 400, &["`0`", "1 to 1000000000"]),
            ("/stream?every=20", 400, &["`20`", "20ms"]),
            ("/stream?size=10", 400, &["`10`", "85 to 64KiB"]),
            ("/stream?fault=drip=1kB/s", 400, &["drip", "reset=middle"]),
            ("/stream?chunked=0", 400, &["`chunked`", "has no length"]),
            ("/stream?fault=error", 400, &["error", "/v1/chat/completions and calls alone"]),
            ("/bytes/1?fault=error", 400, &["error", "/v1/chat/completions and calls alone"]),
            ("/weir.Echo/Unary?code=17", 400, &["`17`", "0 to 16"]),
            ("/weir.Echo/ClientStream?requests=0", 400, &["`0`", "1 to 10000"]),
            ("/stream?requests=2", 400, &["requests=2"]),
            ("/weir.Echo/Bidi?requests=0", 400, &["`requests=0`", "requests=<number>"]),
            ("/weir.Echo/Bidi?every=20ms&delay=1ms", 400, &["every=20ms&delay=1ms", "every=<duration>"]),
            ("/weir.Echo/Bidi?messages=3", 400, &["messages=3"]),
            ("/weir.Echo/Bidi?fault=stall", 400, &["fault=stall", "fault=reset"]),
            ("/stream?code=1", 400, &["code=1"]),
            ("/v1/chat/completions?trailers=1", 400, &["trailers=1"]),
            ("/ws?code=1005", 400, &["`1005`", "close frame"]),
            ("/ws?delay=1ms", 400, &["delay=1ms", "messages=<number>"]),
            ("/ws?every=1ms", 400, &["every=1ms"]),
            ("/ws?broadcast=yes", 400, &["`yes`", "1"]),
            ("/stream?broadcast=1", 400, &["broadcast=1"]),
        ] {
            let refusal = parse(target.as_bytes()).expect_err(target);
            assert_eq!(refusal.status(), status, "{target}");
            for word in words {
                assert!(refusal.to_string().contains(word), "{refusal} has no {word}");
            }
        }
    }

    #[test]
    fn excerpts_are_short_and_printable() {
        let refusal = parse(&[b"/\r\n\xff<".as_slice(), &[b'a'; 1000]].concat()).expect_err("unknown").to_string();
        assert!(refusal.len() < 120 && refusal.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{refusal}");
    }

    proptest! {
        #[test]
        fn never_panics_on_any_bytes(target in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (parse(&target), is_own(&target));
        }

        #[test]
        fn never_panics_on_almost_valid_targets(
            head in prop::sample::select(vec!["/bytes/", "/delay/", "/status/", "/echo?", "http://", "/?bytes=", "/?delay="]),
            tail in "[0-9.kKMiBmuse?&=/-]{0,30}",
        ) {
            if let Ok(plan) = parse(format!("{head}{tail}").as_bytes()) {
                let longest = plan.delay.map(|delay| value::delay_at(delay, 0.0));
                prop_assert!(longest.unwrap_or_default() <= value::MAX_DELAY);
                prop_assert!(plan.bytes.unwrap_or(0) <= crate::payload::MAX_PAYLOAD);
                prop_assert!((200..=599).contains(&plan.status));
            }
        }

        #[test]
        fn display_and_parse_agree(n in 0..=crate::payload::MAX_PAYLOAD, us in 0u64..60_000_000, status in 200u16..600) {
            let plan = parse(format!("/bytes/{n}?delay={us}us&status={status}").as_bytes()).expect("right");
            prop_assert_eq!(plan.bytes, Some(n));
            let delay = value::delay_at(plan.delay.expect("a delay"), 0.5);
            prop_assert_eq!(delay, std::time::Duration::from_micros(us));
            prop_assert_eq!(plan.status, status);
        }
    }
}
