//! HTTP/2 by prior knowledge. Frames are written by hand (RFC 9113 section 4.1), as no honest half would write them.

use super::*;
use ErrorKind::{ClosedEarly, ConnectFailed, ConnectTimeout, Protocol, Reset, StreamReset, Timeout};
use weir_model::load::LoadProtocol;

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

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn setting(name: u16, value: u32) -> Vec<u8> {
    [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// Reads a frame: kind, stream.
fn hear(line: Line<'_>) -> Option<(u8, u32)> {
    let mut head = [0; 9];
    line.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    line.read_exact(&mut payload).ok()?;
    Some((head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]])))
}

/// Shakes hands as it should be, with these settings.
fn greet(line: Line<'_>, settings: &[u8]) -> Option<()> {
    let mut preface = [0; 24];
    line.read_exact(&mut preface).ok()?;
    say(line, &frame(SETTINGS, 0, 0, settings))?;
    say(line, &frame(SETTINGS, ACK, 0, &[]))
}

/// Shakes hands and waits for the first request: its stream.
fn asked(line: Line<'_>) -> Option<u32> {
    greet(line, &[])?;
    next_request(line)
}

fn next_request(line: Line<'_>) -> Option<u32> {
    loop {
        if let (HEADERS, stream) = hear(line)? {
            return Some(stream);
        }
    }
}

/// To the first request: these frames.
fn then(line: Line<'_>, make: impl FnOnce(u32) -> Vec<u8>) -> Option<()> {
    let stream = asked(line)?;
    say(line, &make(stream))?;
    until_gone(line)
}

/// To the first request: the same frame without end. What the client says is read, so that it could never block.
fn flood(line: Line<'_>, first: impl FnOnce(u32) -> Vec<u8>, again: impl Fn(u32) -> Vec<u8>) -> Option<()> {
    let stream = asked(line)?;
    let mut drain = line.try_clone().ok()?;
    std::thread::spawn(move || until_gone(&mut drain));
    say(line, &first(stream))?;
    let piece = again(stream).repeat(64);
    let end = Instant::now() + LONGEST;
    while Instant::now() < end {
        say(line, &piece)?;
    }
    None
}

fn nothing(_: u32) -> Vec<u8> {
    Vec::new()
}

#[test]
fn nothing_that_calls_itself_http_2_is_too_much() {
    let cases = [
        Case { name: "noise", harm: |line| say(line, &[0xa5; 100]).and_then(|()| until_gone(line)), kinds: &[] },
        Case {
            name: "HTTP/1.1",
            harm: |line| say(line, b"HTTP/1.1 400 Bad Request\r\n\r\n").and_then(|()| until_gone(line)),
            kinds: &[],
        },
        Case { name: "settings never", harm: until_gone, kinds: &[ConnectTimeout, ConnectFailed] },
        Case {
            name: "settings that cannot be",
            harm: |line| say(line, &frame(SETTINGS, 0, 0, &setting(4, u32::MAX))).and_then(|()| until_gone(line)),
            kinds: &[],
        },
        Case {
            name: "no stream allowed",
            harm: |line| greet(line, &setting(3, 0)).and_then(|()| until_gone(line)),
            kinds: &[Timeout, ConnectTimeout, ConnectFailed],
        },
        Case {
            name: "settings without end",
            harm: |line| flood(line, nothing, |_| frame(SETTINGS, 0, 0, &setting(3, 100))),
            kinds: &[Protocol],
        },
        Case {
            name: "pings without end",
            harm: |line| flood(line, nothing, |_| frame(PING, 0, 0, &[0; 8])),
            kinds: &[Protocol],
        },
        Case {
            name: "empty data without end",
            harm: |line| flood(line, |s| frame(HEADERS, END_HEADERS, s, OK), |s| frame(DATA, 0, s, &[])),
            kinds: &[Protocol],
        },
        Case {
            name: "continuations without end",
            harm: |line| flood(line, |s| frame(HEADERS, 0, s, OK), |s| frame(CONTINUATION, 0, s, &[])),
            kinds: &[Protocol],
        },
        Case {
            name: "headers without end",
            harm: |line| {
                flood(
                    line,
                    |s| frame(HEADERS, 0, s, OK),
                    |s| frame(CONTINUATION, 0, s, &b"\x00\x01a\x01b".repeat(1_000)),
                )
            },
            kinds: &[Protocol],
        },
        Case {
            name: "a header that unfolds a thousandfold",
            harm: |line| {
                then(line, |s| {
                    // An entry of 3,000 bytes, put into the table once and named 10,000 times.
                    let mut block = OK.to_vec();
                    block.extend(b"\x40\x01a\x7f\xb9\x16");
                    block.extend([b'v'; 3_000]);
                    block.extend([0xbe; 10_000]);
                    frame(HEADERS, END_HEADERS, s, &block)
                })
            },
            kinds: &[Protocol, StreamReset],
        },
        Case {
            name: "a header block that cannot be read",
            harm: |line| then(line, |s| frame(HEADERS, END_HEADERS, s, &[0xff; 40])),
            kinds: &[Protocol],
        },
        Case {
            name: "a push",
            harm: |line| then(line, |s| frame(PUSH_PROMISE, END_HEADERS, s, &[&[0, 0, 0, 2], OK].concat())),
            kinds: &[Protocol],
        },
        Case {
            name: "a frame larger than allowed",
            harm: |line| then(line, |s| frame(DATA, 0, s, &vec![0; 1 << 20])),
            kinds: &[Protocol],
        },
        Case {
            name: "data before headers",
            harm: |line| then(line, |s| frame(DATA, END_STREAM, s, b"x")),
            kinds: &[Protocol, StreamReset],
        },
        Case {
            name: "data on a stream that nobody opened",
            harm: |line| then(line, |s| frame(DATA, 0, s + 1_000, b"x")),
            kinds: &[Protocol],
        },
        Case {
            name: "headers on a stream of the server's own",
            harm: |line| then(line, |_| frame(HEADERS, END_HEADERS, 2, OK)),
            kinds: &[Protocol],
        },
        Case {
            name: "headers twice",
            harm: |line| then(line, |s| frame(HEADERS, END_HEADERS, s, OK).repeat(2)),
            kinds: &[Protocol, StreamReset],
        },
        Case {
            name: "windows beyond all numbers",
            harm: |line| then(line, |_| frame(WINDOW_UPDATE, 0, 0, &0x7fff_ffff_u32.to_be_bytes()).repeat(2)),
            kinds: &[Protocol],
        },
        Case {
            name: "a window of nothing",
            harm: |line| then(line, |_| frame(WINDOW_UPDATE, 0, 0, &[0; 4])),
            kinds: &[Protocol],
        },
        Case {
            name: "it takes back every request",
            harm: |line| {
                let mut stream = asked(line)?;
                loop {
                    say(line, &frame(RST_STREAM, 0, stream, &7_u32.to_be_bytes()))?;
                    stream = next_request(line)?;
                    // What is under test is the client, not how many threads this machine can wake.
                    std::thread::sleep(Duration::from_millis(1));
                }
            },
            kinds: &[StreamReset],
        },
        Case {
            name: "it ends what nobody opened, without end",
            harm: |line| flood(line, nothing, |s| frame(RST_STREAM, 0, s + 1_000, &[0; 4])),
            kinds: &[Protocol],
        },
        Case {
            name: "it goes away at once",
            harm: |line| {
                greet(line, &[])?;
                say(line, &frame(GOAWAY, 0, 0, &[0; 8]))?;
                until_gone(line)
            },
            kinds: &[ClosedEarly, StreamReset, Timeout, ConnectFailed, Reset],
        },
        Case {
            name: "it goes away before what was asked",
            harm: |line| then(line, |_| frame(GOAWAY, 0, 0, &[0; 8])),
            kinds: &[ClosedEarly, StreamReset],
        },
        Case {
            name: "half a frame, and silence",
            harm: |line| then(line, |s| frame(HEADERS, END_HEADERS, s, &[0x88; 50])[..20].to_vec()),
            kinds: &[Timeout],
        },
        Case {
            name: "half an answer, and the end",
            harm: |line| {
                let stream = asked(line)?;
                say(line, &frame(HEADERS, END_HEADERS, stream, OK))
            },
            kinds: &[ClosedEarly, Reset],
        },
        Case {
            name: "less body than was announced",
            harm: |line| {
                then(line, |s| {
                    // content-length: 10, then one byte and the end.
                    let head = frame(HEADERS, END_HEADERS, s, &[OK, b"\x0f\x0d\x0210"].concat());
                    [head, frame(DATA, END_STREAM, s, b"x")].concat()
                })
            },
            kinds: &[Protocol, StreamReset, WRONG],
        },
    ];
    suffer(&cases, |spec| spec.protocol = LoadProtocol::Http2 { streams: 4 });
}

const WRONG: ErrorKind = ErrorKind::WrongBody;

/// A body for which there is never any room waits for its timeout, and no longer.
#[test]
fn a_window_that_never_opens_is_a_timeout() {
    let case = Case {
        name: "no window",
        harm: |line| greet(line, &setting(4, 0)).and_then(|()| until_gone(line)),
        kinds: &[Timeout],
    };
    suffer(&[case], |spec| {
        spec.protocol = LoadProtocol::Http2 { streams: 4 };
        spec.requests[0].request.method = "POST".into();
        spec.requests[0].request.body = vec![7; 100_000];
    });
}
