//! HTTP/1.1.

use super::*;
use ErrorKind::{ClosedEarly, ConnectFailed, ConnectTimeout, Protocol, Reset, Timeout};

/// Waits for a request's head.
fn head(line: Line<'_>) -> Option<()> {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\n") {
        line.read_exact(&mut byte).ok()?;
        seen.push(byte[0]);
    }
    Some(())
}

/// Answers with these bytes, and stays.
fn answer(line: Line<'_>, bytes: &[u8]) -> Option<()> {
    head(line)?;
    say(line, bytes)?;
    until_gone(line)
}

/// The same piece again and again, as long as the client takes it.
fn flood(line: Line<'_>, first: &[u8], piece: &[u8]) -> Option<()> {
    head(line)?;
    say(line, first)?;
    let end = Instant::now() + LONGEST;
    while Instant::now() < end {
        say(line, piece)?;
    }
    None
}

fn drip(line: Line<'_>, bytes: &[u8]) -> Option<()> {
    head(line)?;
    for byte in bytes.iter().cycle() {
        say(line, &[*byte])?;
        std::thread::sleep(Duration::from_millis(30));
    }
    None
}

fn reset(line: Line<'_>, first: &[u8]) -> Option<()> {
    say(line, first)?;
    rustix_linger(line);
    None
}

fn rustix_linger(line: Line<'_>) {
    use std::os::fd::AsRawFd;
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = size_of::<libc::linger>() as libc::socklen_t;
    // SAFETY: the descriptor is open and the option's value is a live linger of the size given.
    let set = unsafe {
        libc::setsockopt(line.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), size)
    };
    assert_eq!(set, 0);
}

#[test]
fn nothing_that_calls_itself_http_1_is_too_much() {
    let cases = [
        Case {
            name: "headers without end",
            harm: |line| flood(line, b"HTTP/1.1 200 OK\r\n", b"X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"),
            kinds: &[Protocol],
        },
        Case {
            name: "a header without end",
            harm: |line| flood(line, b"HTTP/1.1 200 OK\r\nX-Filler: ", &[b'a'; 4096]),
            kinds: &[Protocol],
        },
        Case { name: "a status line without end", harm: |line| flood(line, b"", &[b'H'; 4096]), kinds: &[Protocol] },
        Case {
            name: "a head that drips",
            harm: |line| drip(line, b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n"),
            kinds: &[Timeout, Protocol],
        },
        Case {
            name: "a body that drips",
            harm: |line| {
                head(line)?;
                say(line, b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")?;
                for _ in 0..1_000 {
                    say(line, b"x")?;
                    std::thread::sleep(Duration::from_millis(30));
                }
                None
            },
            kinds: &[Timeout],
        },
        Case {
            name: "a negative length",
            harm: |line| answer(line, b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
            kinds: &[Protocol],
        },
        Case {
            name: "a length beyond all numbers",
            harm: |line| answer(line, b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
            kinds: &[Protocol],
        },
        Case {
            name: "two lengths",
            harm: |line| answer(line, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
            kinds: &[Protocol],
        },
        Case {
            name: "a length and chunks",
            harm: |line| {
                answer(line, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
            },
            kinds: &[Protocol],
        },
        Case {
            name: "a chunk beyond all numbers",
            harm: |line| answer(line, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
            kinds: &[Protocol],
        },
        Case {
            name: "a chunk size without end",
            harm: |line| flood(line, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &[b'0'; 4096]),
            kinds: &[Protocol],
        },
        Case {
            name: "trailers without end",
            harm: |line| flood(line, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Filler: a\r\n"),
            kinds: &[Protocol],
        },
        Case {
            name: "informational answers without end",
            harm: |line| flood(line, b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
            kinds: &[Timeout, Protocol],
        },
        Case {
            name: "more body than was announced",
            harm: |line| answer(line, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc"),
            kinds: &[Protocol],
        },
        Case { name: "noise", harm: |line| flood(line, b"", b"\x00\xff\x17\x03\x03\r\n\r\n\x80"), kinds: &[Protocol] },
        Case {
            name: "a reset in the head",
            harm: |line| head(line).and_then(|()| reset(line, b"HTTP/1.1 200")),
            kinds: &[Reset],
        },
        Case {
            name: "a reset in the body",
            harm: |line| head(line).and_then(|()| reset(line, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")),
            kinds: &[Reset],
        },
        Case { name: "a reset at once", harm: |line| reset(line, b""), kinds: &[Reset, ConnectFailed, ConnectTimeout] },
        Case { name: "an end at once", harm: |_| None, kinds: &[ClosedEarly, Reset, ConnectFailed] },
        Case { name: "silence", harm: until_gone, kinds: &[Timeout] },
    ];
    suffer(&cases, |_| ());
}

/// An answer before the request: what comes to a request that was not made yet cannot be right.
#[test]
fn answers_that_nobody_asked_for_are_no_answers() {
    let case = Case {
        name: "an answer to nothing",
        harm: |line| {
            say(line, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
            head(line)?;
            None
        },
        kinds: &[ClosedEarly, Reset, Protocol, ConnectFailed, Timeout],
    };
    for driver in DRIVERS {
        let villain = villain(case.harm);
        let mut spec = order(villain.addr, constant(100.0));
        spec.driver = driver;
        // Connections are up and idle for a while before the first request, so that the answer comes to nothing.
        spec.connect_rate = Some(20.0);
        match load(&spec) {
            // One that comes at the very moment of a request cannot be told from its answer.
            Ok(result) => assert!(result.total.right <= 3, "{:?}", result.total),
            Err(LoadError::NoConnection { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_server_that_never_reads_does_not_fill_the_client() {
    let case = Case {
        name: "it never reads",
        harm: |line| {
            std::thread::sleep(Duration::from_secs(2));
            let _ = line;
            None
        },
        kinds: &[Timeout, Reset, ClosedEarly],
    };
    suffer(&[case], |spec| {
        spec.requests[0].request.method = "POST".into();
        spec.requests[0].request.body = vec![7; 16 << 20];
    });
}
