//! Servers that mean harm: the client neither crashes nor hangs nor keeps what they send, its counters balance, and no connection
//! outlives the load. One case is one way to misbehave.

use std::collections::BTreeSet;

use weir_load::LoadError;
use weir_model::load::ErrorKind::{self, *};
use weir_model::load::{LoadProtocol, LoadSpec, TlsSpec};
use weir_model::suite::LoadKind;
use weir_net::sim::World;

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

/// A case: its name, the harm on a stream, and the kinds of error that are seen.
type Case = (&'static str, When, fn(u32) -> Vec<Do>, &'static [ErrorKind]);

/// Nothing goes on for longer than this in a case: far more than the timeouts, far less than for ever.
const LONGEST: u64 = 20 * SECOND;

/// Connections that a case may make: a client that tries again and again without a pause makes thousands.
const MOST_CONNECTIONS: u64 = 400;

fn villain(world: &World, tls: Option<weir_wire::tls::ServerConfig>, when: When, harm: fn(u32) -> Vec<Do>) -> Server {
    Server::start(world, "127.0.0.1:0", tls, move |_, _| -> Reader {
        let (mut greeted, mut done) = (false, false);
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

/// Runs the cases, each as a closed and as an open load of half a second with a timeout of 0.8 s.
fn suffer(cases: &[Case], secure: bool, change: fn(&mut LoadSpec)) {
    for (name, when, harm, kinds) in cases {
        for kind in [LoadKind::Closed, constant(100.0)] {
            let name = format!("{name} ({kind:?})");
            let world = world();
            // What is not TLS from its first byte on has none.
            let server = villain(&world, (secure && *when != AtOnce).then(|| tls(&["http/1.1"])), *when, *harm);
            let spec = order(server.addr, kind);
            let mut spec = LoadSpec { connections: 3, duration_s: 0.5, timeout_s: 0.8, ..spec };
            spec.tls = secure.then(TlsSpec::default);
            if !matches!(when, AtOnce | Asked) {
                spec.protocol = LoadProtocol::Http2 { streams: 4 };
            }
            change(&mut spec);
            let seen: BTreeSet<ErrorKind> = match load(&world, &spec) {
                Ok(result) => {
                    assert_eq!(result.total.right, 0, "{name}: {:?}", result.total);
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
            assert!(
                (1..=MOST_CONNECTIONS).contains(&server.connections()),
                "{name}: {} connections",
                server.connections()
            );
            assert_eq!(server.seen().open, 0, "{name}: a connection outlives the load");
        }
    }
}

fn say(bytes: &[u8]) -> Vec<Do> {
    vec![Do::Send(bytes.to_vec())]
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
    let cases: &[Case] = &[
        (
            "headers without end",
            Asked,
            |_| flood(b"HTTP/1.1 200 OK\r\n", b"X-Filler: aaaaaaaaaaaaaaaaaaaaaa\r\n"),
            &[Protocol],
        ),
        ("a header without end", Asked, |_| flood(b"HTTP/1.1 200 OK\r\nX-Filler: ", b"a"), &[Protocol]),
        ("a status line without end", Asked, |_| flood(b"", b"H"), &[Protocol]),
        ("a head that drips", Asked, |_| drip(b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n"), &[Timeout]),
        (
            "a body that drips",
            Asked,
            |_| drip(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n", &[b'x'; 100]),
            &[Timeout],
        ),
        ("a negative length", Asked, |_| say(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), &[Protocol]),
        (
            "a length beyond all numbers",
            Asked,
            |_| say(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
            &[Protocol],
        ),
        (
            "two lengths",
            Asked,
            |_| say(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
            &[Protocol],
        ),
        (
            "a length and chunks",
            Asked,
            |_| say(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            &[Protocol],
        ),
        (
            "a chunk beyond all numbers",
            Asked,
            |_| say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
            &[Protocol],
        ),
        (
            "a chunk size without end",
            Asked,
            |_| flood(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
            &[Protocol],
        ),
        (
            "trailers without end",
            Asked,
            |_| flood(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Filler: a\r\n"),
            &[Protocol],
        ),
        (
            "informational answers without end",
            Asked,
            |_| flood(b"", &[b"HTTP/1.1 100 Continue\r\nX-Filler: ", &[b'a'; 2_000][..], b"\r\n\r\n"].concat()),
            &[Timeout],
        ),
        (
            "more body than was announced",
            Asked,
            |_| say(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc"),
            &[Protocol],
        ),
        ("noise", Asked, |_| flood(b"", b"\x00\xff\x17\x03\x03\r\n\r\n\x80"), &[Protocol]),
        ("a reset in the head", Asked, |_| and(b"HTTP/1.1 200", Do::Reset), &[Reset]),
        (
            "a reset in the body",
            Asked,
            |_| and(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", Do::Reset),
            &[Reset],
        ),
        ("a reset at once", AtOnce, |_| vec![Do::Reset], &[Reset]),
        ("an end at once", AtOnce, |_| vec![Do::Close], &[ClosedEarly]),
        ("silence", Asked, |_| vec![], &[Timeout]),
    ];
    suffer(cases, false, |_| ());
}

/// What comes to a request that was not made yet cannot be right.
#[test]
fn answers_that_nobody_asked_for_are_no_answers() {
    let world = world();
    let server = villain(&world, None, AtOnce, |_| say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    let mut spec = LoadSpec { connections: 3, duration_s: 0.5, timeout_s: 0.8, ..order(server.addr, constant(100.0)) };
    // Connections are up and idle for a while before the first request, so that the answer comes to nothing.
    spec.connect_rate = Some(20.0);
    let result = load(&world, &spec);
    assert!(matches!(result, Err(LoadError::NoConnection { kind: Protocol, .. })), "{result:?}");
}

#[test]
fn a_server_that_never_reads_does_not_fill_the_client() {
    // An open load makes its connections again, and these are given up at its end.
    for (kind, timeouts) in [(LoadKind::Closed, 3), (constant(100.0), 6)] {
        let world = world();
        let server = villain(&world, None, Asked, |_| vec![]);
        world.freeze(server.task, LONGEST);
        let mut spec = LoadSpec { connections: 3, duration_s: 0.5, timeout_s: 0.8, ..order(server.addr, kind) };
        spec.requests[0].request.method = "POST".into();
        spec.requests[0].request.body = vec![7; 16 << 20];
        let result = load(&world, &spec).unwrap();
        assert_eq!((result.total.right, errors(&result.total)), (0, vec![("timeout", timeouts)]));
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

/// An entry of 3,000 bytes, put into the table once and named 10,000 times.
fn unfolding() -> Vec<u8> {
    [OK, b"\x40\x01a\x7f\xb9\x16", &[b'v'; 3_000], &[0xbe; 10_000]].concat()
}

/// An error of a stream leaves its connection, whose other streams wait for ever.
#[test]
fn nothing_that_calls_itself_http_2_is_too_much() {
    let cases: &[Case] = &[
        ("noise", Preface, |_| say(&[0xa5; 100]), &[Protocol]),
        ("HTTP/1.1", Preface, |_| say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), &[Protocol]),
        ("settings never", Preface, |_| vec![Do::Silence], &[ConnectTimeout]),
        ("settings that cannot be", Preface, |_| say(&frame(SETTINGS, 0, 0, &[0, 4, 255, 255, 255, 255])), &[Protocol]),
        ("no stream allowed", Settings(NO_STREAM), |_| vec![], &[ConnectTimeout]),
        ("settings without end", STREAM, |_| flood(b"", &frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100])), &[Protocol]),
        ("pings without end", STREAM, |_| flood(b"", &frame(PING, 0, 0, &[0; 8])), &[Protocol]),
        (
            "empty data without end",
            STREAM,
            |s| flood(&frame(HEADERS, END_HEADERS, s, OK), &frame(DATA, 0, s, &[])),
            &[Protocol],
        ),
        (
            "continuations without end",
            STREAM,
            |s| flood(&frame(HEADERS, 0, s, OK), &frame(CONTINUATION, 0, s, &[])),
            &[Protocol],
        ),
        (
            "headers without end",
            STREAM,
            |s| flood(&frame(HEADERS, 0, s, OK), &frame(CONTINUATION, 0, s, &b"\x00\x01a\x01b".repeat(1_000))),
            &[Protocol],
        ),
        (
            "a header that unfolds a thousandfold",
            STREAM,
            |s| say(&frame(HEADERS, END_HEADERS, s, &unfolding())),
            &[Protocol, Timeout],
        ),
        (
            "a header block that cannot be read",
            STREAM,
            |s| say(&frame(HEADERS, END_HEADERS, s, &[0xff; 40])),
            &[Protocol],
        ),
        ("a push", STREAM, |s| say(&frame(PUSH_PROMISE, END_HEADERS, s, &[&[0, 0, 0, 2], OK].concat())), &[Protocol]),
        ("a frame larger than allowed", STREAM, |s| say(&frame(DATA, 0, s, &vec![0; 1 << 20])), &[Protocol]),
        ("data before headers", STREAM, |s| say(&frame(DATA, END_STREAM, s, b"x")), &[Protocol, Timeout]),
        ("data on a stream that nobody opened", STREAM, |s| say(&frame(DATA, 0, s + 1_000, b"x")), &[Protocol]),
        ("headers on a stream of the server's own", STREAM, |_| say(&frame(HEADERS, END_HEADERS, 2, OK)), &[Protocol]),
        ("headers twice", STREAM, |s| say(&frame(HEADERS, END_HEADERS, s, OK).repeat(2)), &[Protocol, Timeout]),
        (
            "windows beyond all numbers",
            STREAM,
            |_| say(&frame(WINDOW_UPDATE, 0, 0, &0x7fff_ffff_u32.to_be_bytes()).repeat(2)),
            &[Protocol],
        ),
        ("a window of nothing", STREAM, |_| say(&frame(WINDOW_UPDATE, 0, 0, &[0; 4])), &[Protocol]),
        (
            "it takes back every request",
            Streams,
            |s| say(&frame(RST_STREAM, 0, s, &7_u32.to_be_bytes())),
            &[StreamReset],
        ),
        (
            "it ends what nobody opened, without end",
            STREAM,
            |s| flood(b"", &frame(RST_STREAM, 0, s + 1_000, &[0; 4])),
            &[Protocol],
        ),
        ("it goes away at once", Settings(&[]), |_| say(&frame(GOAWAY, 0, 0, &[0; 8])), &[ClosedEarly]),
        ("it goes away before what was asked", STREAM, |_| say(&frame(GOAWAY, 0, 0, &[0; 8])), &[ClosedEarly]),
        ("half a frame, and silence", STREAM, |s| say(&frame(HEADERS, END_HEADERS, s, &[0x88; 50])[..20]), &[Timeout]),
        ("half an answer, and the end", STREAM, |s| and(&frame(HEADERS, END_HEADERS, s, OK), Do::End), &[ClosedEarly]),
        // content-length: 10, then one byte and the end.
        (
            "less body than was announced",
            STREAM,
            |s| {
                say(&[
                    frame(HEADERS, END_HEADERS, s, &[OK, b"\x0f\x0d\x0210"].concat()),
                    frame(DATA, END_STREAM, s, b"x"),
                ]
                .concat())
            },
            &[Protocol, Timeout],
        ),
    ];
    suffer(cases, false, |_| ());
}

/// A body for which there is never any room waits for its timeout, and no longer.
#[test]
fn a_window_that_never_opens_is_a_timeout() {
    suffer(&[("no window", When::Stream(NO_WINDOW), |_| vec![], &[Timeout])], false, |spec| {
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
    let cases: &[Case] = &[
        ("noise", AtOnce, |_| say(&[0x55; 64]), &[Tls]),
        ("an end at once", AtOnce, |_| vec![Do::Close], &[Tls]),
        ("silence", AtOnce, |_| vec![], &[ConnectTimeout]),
        ("an alert at once", AtOnce, |_| say(&record(21, 2, &[2, 40])), &[Tls]),
        ("a record too large", AtOnce, |_| say(&record(22, 0xffff, &vec![0; 0xffff])), &[Tls]),
        // A ServerHello that says it has 16 MiB, in one record after another.
        (
            "a handshake message without end",
            AtOnce,
            |_| flood(&record(22, 4, &[2, 0xff, 0xff, 0xff]), &record(22, 16_384, &vec![0; 16_384])),
            &[Tls],
        ),
        (
            "garbage after the handshake",
            Asked,
            |_| in_the_clear(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            &[Tls],
        ),
        ("a record that nobody sealed", Asked, |_| in_the_clear(&record(23, 200, &[0x11; 200])), &[Tls]),
        ("half a record, and silence", Asked, |_| in_the_clear(&record(23, 200, &[0x11; 50])), &[Timeout]),
        (
            "an end in the answer",
            Asked,
            |_| {
                [
                    say(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"),
                    vec![Do::Seal(|session, out| session.close(out))],
                ]
                .into_iter()
                .flatten()
                .collect()
            },
            &[ClosedEarly],
        ),
        // KeyUpdate that requests for one in return (RFC 8446 section 4.6.3).
        (
            "new keys without end",
            Asked,
            |_| vec![Do::Seal(|session, out| (0..10_000).for_each(|_| session.write_any(22, &[24, 0, 0, 1, 1], out)))],
            &[Tls],
        ),
        (
            "a new handshake",
            Asked,
            |_| vec![Do::Seal(|session, out| session.write_any(22, &[0, 0, 0, 0], out))],
            &[Tls],
        ),
        (
            "empty records without end",
            Asked,
            |_| vec![Do::Seal(|session, out| (0..10_000).for_each(|_| session.write_any(23, &[], out)))],
            &[Tls],
        ),
    ];
    suffer(cases, true, |_| ());
}
