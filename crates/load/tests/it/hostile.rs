//! Servers that mean harm: the client neither crashes nor hangs nor keeps what they send, its counters balance, and no connection
//! outlives the load. One case is one way to misbehave.

use std::collections::BTreeSet;
use std::rc::Rc;

use weir_load::LoadError;
use weir_model::load::ErrorKind::{self, *};
use weir_model::load::{LoadProtocol, LoadSpec, TlsSpec};
use weir_model::suite::LoadKind;
use weir_net::sim::World;
use weir_wire::tls::{ServerConfig, Session};

use crate::script::{Do, Reader, Server, tls};
use crate::world::*;

/// When a server does harm on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Before anything has come.
    AtOnce,
    /// When the head of an HTTP/1 request has come, which may be under TLS.
    Asked,
    /// After these settings of HTTP/2, when there is a request; or for each request.
    Stream(&'static [u8]),
    Streams,
    /// With HTTP/2, in place of settings; or right behind them.
    Preface,
    Settings(&'static [u8]),
}
use When::{Asked, AtOnce, Preface, Settings, Streams};

const STREAM: When = When::Stream(&[]);

/// Nothing goes on for longer than this in a case: far more than the timeouts, far less than for ever.
const LONGEST: u64 = 20 * SECOND;

/// Connections that a case may make: a client that tries again and again without a pause makes thousands.
const MOST_CONNECTIONS: u64 = 400;

fn villain(world: &World, tls: Option<ServerConfig>, when: When, harm: Rc<dyn Fn(u32) -> Vec<Do>>) -> Server {
    Server::start(world, "127.0.0.1:0", tls, move |_, _| -> Reader {
        let (harm, mut greeted, mut done) = (harm.clone(), false, false);
        Box::new(move |input, _| {
            if done && when != Streams {
                return None;
            }
            match when {
                AtOnce => {}
                Asked => drop(input.windows(4).position(|four| four == b"\r\n\r\n")?),
                When::Stream(settings) | Settings(settings) if !greeted => {
                    return greet(input, &mut greeted, &frame(SETTINGS, 0, 0, settings));
                }
                Streams if !greeted => return greet(input, &mut greeted, &frame(SETTINGS, 0, 0, &[])),
                Preface | Settings(_) => {}
                When::Stream(_) | Streams => {
                    let (mut kind, mut stream) = (u8::MAX, 0);
                    while kind != HEADERS {
                        let head: [u8; 9] = input.get(..9)?.try_into().unwrap();
                        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                        input.get(..9 + length)?;
                        input.drain(..9 + length);
                        (kind, stream) = (head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
                    }
                    done = true;
                    return Some(harm(stream));
                }
            }
            done = true;
            Some(harm(0))
        })
    })
}

/// Shakes hands of HTTP/2 as it should be, with these settings.
fn greet(input: &mut Vec<u8>, greeted: &mut bool, settings: &[u8]) -> Option<Vec<Do>> {
    input.get(..24)?;
    input.drain(..24);
    *greeted = true;
    Some(vec![Do::Send([settings, &frame(SETTINGS, ACK, 0, &[])].concat())])
}

/// When harm is done, and the kinds of error that are seen.
struct Harm(When, &'static [ErrorKind]);

impl Harm {
    fn by(&self, name: &str, harm: impl Fn(u32) -> Vec<Do> + 'static) {
        self.suffer(name, false, Rc::new(harm), |_| ());
    }

    fn by_tls(&self, name: &str, harm: impl Fn(u32) -> Vec<Do> + 'static) {
        self.suffer(name, true, Rc::new(harm), |_| ());
    }

    /// Runs a closed and an open load of half a second, changed, with a timeout of 0.8 s.
    fn suffer(&self, name: &str, secure: bool, harm: Rc<dyn Fn(u32) -> Vec<Do>>, change: fn(&mut LoadSpec)) {
        let Harm(when, kinds) = *self;
        for kind in [LoadKind::Closed, constant(100.0)] {
            let (name, world) = (format!("{name} ({kind:?})"), world());
            // What is not TLS from its first byte on has none.
            let tls = (secure && when != AtOnce).then(|| tls(&["http/1.1"]));
            let server = villain(&world, tls, when, harm.clone());
            let spec = order(server.addr, kind);
            let mut spec = LoadSpec { connections: 3, duration_s: 0.5, timeout_s: 0.8, ..spec };
            spec.tls = secure.then(TlsSpec::default);
            if !matches!(when, AtOnce | Asked) {
                spec.protocol = LoadProtocol::Http2 { streams: 4 };
            }
            change(&mut spec);
            let seen: BTreeSet<ErrorKind> = match load(&world, &spec) {
                Ok(result) => {
                    assert_eq!(result.total.successful, 0, "{name}: {:?}", result.total);
                    result.total.errors.keys().copied().collect()
                }
                Err(LoadError::NoConnection { kind, .. }) => [kind].into(),
                Err(other) => panic!("{name}: {other}"),
            };
            let expected: BTreeSet<ErrorKind> = kinds.iter().copied().collect();
            // What an open load has in flight at the end of its drain is given up.
            let given_up: BTreeSet<_> = seen.iter().copied().filter(|kind| *kind != Timeout).collect();
            assert!(seen == expected || spec.kind.is_open() && given_up == expected, "{name}: {seen:?}");
            assert!(world.now() < LONGEST, "{name}: it took {} ns", world.now());
            let connections = server.connections();
            assert!((1..=MOST_CONNECTIONS).contains(&connections), "{name}: {connections} connections");
            assert_eq!(server.seen().open, 0, "{name}: a connection outlives the load");
        }
    }
}

fn say(bytes: &[u8]) -> Vec<Do> {
    vec![Do::Send(bytes.to_vec())]
}

/// A response of HTTP/1.1.
fn response(rest: &str) -> Vec<Do> {
    say(format!("HTTP/1.1 200 OK\r\n{rest}").as_bytes())
}

/// The same piece again and again, as long as the client takes it.
fn flood(first: &[u8], piece: &[u8]) -> Vec<Do> {
    vec![Do::Send(first.to_vec()), Do::Flood(piece.repeat(4_096_usize.div_ceil(piece.len())))]
}

/// These, then one byte of those after another.
fn drip(first: &[u8], bytes: &[u8]) -> Vec<Do> {
    let drops = bytes.iter().flat_map(|byte| [Do::Send(vec![*byte]), Do::Wait(30 * MS)]);
    say(first).into_iter().chain(drops).collect()
}

/// The bytes arrive before the end.
fn and(bytes: &[u8], end: Do) -> Vec<Do> {
    vec![Do::Send(bytes.to_vec()), Do::Wait(MS), end]
}

#[test]
fn nothing_that_calls_itself_http_1_is_too_much() {
    let wrong = Harm(Asked, &[Protocol]);
    wrong.by("headers without end", |_| flood(b"HTTP/1.1 200 OK\r\n", b"X-Filler: aaaaaaaaaaaaaaaaaaaaaa\r\n"));
    wrong.by("a header without end", |_| flood(b"HTTP/1.1 200 OK\r\nX-Filler: ", b"a"));
    wrong.by("a status line without end", |_| flood(b"", b"H"));
    wrong.by("noise", |_| flood(b"", b"\x00\xff\x17\x03\x03\r\n\r\n\x80"));
    wrong.by("a negative length", |_| response("Content-Length: -1\r\n\r\n"));
    wrong.by("a length beyond all numbers", |_| response("Content-Length: 99999999999999999999999\r\n\r\n"));
    wrong.by("two lengths", |_| response("Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"));
    wrong.by("more body than was announced", |_| response("Content-Length: 1\r\n\r\nabc"));
    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    wrong.by("a length and chunks", |_| response("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
    wrong.by("a chunk beyond all numbers", |_| say(&[CHUNKED, b"fffffffffffffffff\r\n"].concat()));
    wrong.by("a chunk size without end", |_| flood(CHUNKED, b"0"));
    wrong.by("trailers without end", |_| flood(&[CHUNKED, b"0\r\n"].concat(), b"X-Filler: a\r\n"));
    let slow = Harm(Asked, &[Timeout]);
    slow.by("silence", |_| vec![]);
    slow.by("a head that drips", |_| drip(b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n"));
    slow.by("a body that drips", |_| drip(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n", &[b'x'; 100]));
    slow.by("informational responses without end", |_| {
        flood(b"", &[b"HTTP/1.1 100 Continue\r\nX-Filler: ", &[b'a'; 2_000][..], b"\r\n\r\n"].concat())
    });
    let cut = Harm(Asked, &[Truncated]);
    cut.by("a reset in the head", |_| and(b"HTTP/1.1 200", Do::Reset));
    cut.by("a reset in the body", |_| and(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", Do::Reset));
    Harm(AtOnce, &[Reset]).by("a reset at once", |_| vec![Do::Reset]);
    Harm(AtOnce, &[ClosedEarly]).by("an end at once", |_| vec![Do::Close]);
}

/// What comes to a request that was not made yet cannot be right.
#[test]
fn answers_that_nobody_asked_for_are_no_responses() {
    let world = world();
    let server = villain(&world, None, AtOnce, Rc::new(|_| response("Content-Length: 0\r\n\r\n")));
    let mut spec = LoadSpec { connections: 3, duration_s: 0.5, timeout_s: 0.8, ..order(server.addr, constant(100.0)) };
    // Connections are up and idle for a while before the first request, so that the response comes to nothing.
    spec.connect_rate = Some(20.0);
    let result = load(&world, &spec);
    assert!(matches!(result, Err(LoadError::NoConnection { kind: Protocol, .. })), "{result:?}");
}

#[test]
fn a_server_that_never_reads_does_not_fill_the_client() {
    // An open load makes its connections again, and these are given up at its end.
    for (kind, timeouts) in [(LoadKind::Closed, 3), (constant(100.0), 6)] {
        let world = world();
        let server = villain(&world, None, Asked, Rc::new(|_| vec![]));
        world.freeze(server.task, LONGEST);
        let mut spec = LoadSpec { connections: 3, duration_s: 0.5, timeout_s: 0.8, ..order(server.addr, kind) };
        spec.requests[0].request.method = "POST".into();
        spec.requests[0].request.body = vec![7; 16 << 20];
        let result = load(&world, &spec).unwrap();
        assert_eq!((result.total.successful, errors(&result.total)), (0, vec![("timeout", timeouts)]));
    }
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200`, from the static table (RFC 7541, appendix A).
const OK: &[u8] = &[0x88];

/// Settings that allow no stream, and that give streams no window.
const NO_STREAM: &[u8] = &[0, 3, 0, 0, 0, 0];
const NO_WINDOW: &[u8] = &[0, 4, 0, 0, 0, 0];

/// A frame of HTTP/2, by hand (RFC 9113 section 4.1), as no honest half would write it.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = &(payload.len() as u32).to_be_bytes()[1..];
    [length, &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The head of a response.
fn head(stream: u32, block: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, block)
}

#[test]
fn nothing_that_calls_itself_http_2_is_too_much() {
    let preface = Harm(Preface, &[Protocol]);
    preface.by("noise", |_| say(&[0xa5; 100]));
    preface.by("HTTP/1.1", |_| say(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    preface.by("settings that cannot be", |_| say(&frame(SETTINGS, 0, 0, &[0, 4, 255, 255, 255, 255])));
    Harm(Preface, &[ConnectTimeout]).by("settings never", |_| vec![Do::Silence]);
    Harm(Settings(NO_STREAM), &[ConnectTimeout]).by("no stream allowed", |_| vec![]);
    let wrong = Harm(STREAM, &[Protocol]);
    wrong.by("settings without end", |_| flood(b"", &frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100])));
    wrong.by("pings without end", |_| flood(b"", &frame(PING, 0, 0, &[0; 8])));
    wrong.by("empty data without end", |s| flood(&head(s, OK), &frame(DATA, 0, s, &[])));
    wrong.by("continuations without end", |s| flood(&frame(HEADERS, 0, s, OK), &frame(CONTINUATION, 0, s, &[])));
    let fields = b"\x00\x01a\x01b".repeat(1_000);
    wrong.by("headers without end", move |s| flood(&frame(HEADERS, 0, s, OK), &frame(CONTINUATION, 0, s, &fields)));
    wrong.by("a header block that cannot be read", |s| say(&head(s, &[0xff; 40])));
    wrong.by("a push", |s| say(&frame(PUSH_PROMISE, END_HEADERS, s, &[&[0, 0, 0, 2], OK].concat())));
    wrong.by("a frame larger than allowed", |s| say(&frame(DATA, 0, s, &vec![0; 1 << 20])));
    wrong.by("data on a stream that nobody opened", |s| say(&frame(DATA, 0, s + 1_000, b"x")));
    wrong.by("headers on a stream of the server's own", |_| say(&head(2, OK)));
    wrong.by("windows beyond all numbers", |_| say(&frame(WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255]).repeat(2)));
    wrong.by("a window of nothing", |_| say(&frame(WINDOW_UPDATE, 0, 0, &[0; 4])));
    wrong.by("it ends what nobody opened", |s| flood(b"", &frame(RST_STREAM, 0, s + 1_000, &[0; 4])));
    // An error of a stream leaves its connection, whose other streams wait for ever.
    let wrong = Harm(STREAM, &[Protocol, Timeout]);
    // An entry of 3,000 bytes, put into the table once and named 10,000 times.
    let unfolding = [OK, b"\x40\x01a\x7f\xb9\x16", &[b'v'; 3_000], &[0xbe; 10_000]].concat();
    wrong.by("a header that unfolds a thousandfold", move |s| say(&head(s, &unfolding)));
    wrong.by("data before headers", |s| say(&frame(DATA, END_STREAM, s, b"x")));
    wrong.by("headers twice", |s| say(&head(s, OK).repeat(2)));
    // content-length: 10.
    let ten = [OK, b"\x0f\x0d\x0210"].concat();
    wrong.by("less body than was announced", move |s| say(&[head(s, &ten), frame(DATA, END_STREAM, s, b"x")].concat()));
    Harm(Streams, &[StreamReset]).by("it takes back every request", |s| say(&frame(RST_STREAM, 0, s, &[0, 0, 0, 7])));
    Harm(Settings(&[]), &[ClosedEarly]).by("it goes away at once", |_| say(&frame(GOAWAY, 0, 0, &[0; 8])));
    let ends = Harm(STREAM, &[ClosedEarly]);
    ends.by("it goes away before what was asked", |_| say(&frame(GOAWAY, 0, 0, &[0; 8])));
    // Of four streams one has half a response.
    Harm(STREAM, &[ClosedEarly, Truncated]).by("half a response, and the end", |s| and(&head(s, OK), Do::End));
    Harm(STREAM, &[Timeout]).by("half a frame, and silence", |s| say(&head(s, &[0x88; 50])[..20]));
    // A body for which there is never any room waits for its timeout, and no longer.
    Harm(When::Stream(NO_WINDOW), &[Timeout]).suffer("no window", false, Rc::new(|_| vec![]), |spec| {
        spec.requests[0].request.method = "POST".into();
        spec.requests[0].request.body = vec![7; 100_000];
    });
}

/// A TLS record (RFC 8446 section 5.1).
fn record(kind: u8, length: u16, payload: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &length.to_be_bytes(), payload].concat()
}

/// These bytes, below TLS.
fn in_the_clear(bytes: &[u8]) -> Vec<Do> {
    vec![Do::Raw(bytes.to_vec())]
}

#[test]
fn nothing_that_calls_itself_tls_is_too_much() {
    let wrong = Harm(AtOnce, &[Tls]);
    wrong.by_tls("noise", |_| say(&[0x55; 64]));
    wrong.by_tls("an end at once", |_| vec![Do::Close]);
    wrong.by_tls("an alert at once", |_| say(&record(21, 2, &[2, 40])));
    wrong.by_tls("a record too large", |_| say(&record(22, 0xffff, &vec![0; 0xffff])));
    // A ServerHello that says it has 16 MiB, in one record after another.
    let piece = record(22, 16_384, &vec![0; 16_384]);
    wrong.by_tls("a message without end", move |_| flood(&record(22, 4, &[2, 0xff, 0xff, 0xff]), &piece));
    Harm(AtOnce, &[ConnectTimeout]).by_tls("silence", |_| vec![]);
    let wrong = Harm(Asked, &[Tls]);
    wrong.by_tls("no TLS after the handshake", |_| in_the_clear(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    wrong.by_tls("a record that nobody sealed", |_| in_the_clear(&record(23, 200, &[0x11; 200])));
    // KeyUpdate that requests for one in return (RFC 8446 section 4.6.3).
    wrong.by_tls("new keys without end", |_| vec![Do::Seal(|s, out| seal(s, 22, &[24, 0, 0, 1, 1], 10_000, out))]);
    wrong.by_tls("empty records without end", |_| vec![Do::Seal(|s, out| seal(s, 23, &[], 10_000, out))]);
    wrong.by_tls("a new handshake", |_| vec![Do::Seal(|s, out| seal(s, 22, &[0; 4], 1, out))]);
    Harm(Asked, &[Timeout]).by_tls("half a record", |_| in_the_clear(&record(23, 200, &[0x11; 50])));
    Harm(Asked, &[Truncated]).by_tls("an end in the response", |_| {
        response("Content-Length: 10\r\n\r\nabc").into_iter().chain([Do::Seal(|s, out| s.close(out))]).collect()
    });
}

/// So many records of a kind.
fn seal(session: &mut Session, kind: u8, content: &[u8], times: u32, out: &mut Vec<u8>) {
    (0..times).for_each(|_| session.write_any(kind, content, out));
}
