//! TLS: what comes below the handshake, in it, and instead of it.

use super::*;
use ErrorKind::{ClosedEarly, ConnectFailed, ConnectTimeout, Reset, Timeout, Tls};
use weir_model::load::TlsSpec;
use weir_wire::tls::{Identity, KeyKind, Scratch, ServerConfig, ServerOptions, Session, TlsEvent};

/// A record (RFC 8446 section 5.1).
fn record(kind: u8, length: u16, payload: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &length.to_be_bytes(), payload].concat()
}

/// Shakes hands rightly; the session when the first request has come.
fn agreed(line: Line<'_>) -> Option<Session> {
    let options = ServerOptions {
        identities: vec![Identity::generated(KeyKind::P256).ok()?],
        alpn: vec!["http/1.1".into()],
        ..ServerOptions::default()
    };
    let mut session = Session::server(&ServerConfig::new(&options).ok()?).ok()?;
    let (mut scratch, mut out, mut bytes) = (Scratch::new(), Vec::new(), [0; 4096]);
    loop {
        let count = line.read(&mut bytes).ok().filter(|count| *count > 0)?;
        let mut input = &bytes[..count];
        while let Some(event) = session.next(&mut input, &mut scratch, &mut out).ok()? {
            say(line, &out)?;
            out.clear();
            if matches!(event, TlsEvent::Plaintext(_)) {
                return Some(session);
            }
        }
        say(line, &out)?;
        out.clear();
    }
}

/// Agrees, and answers the first request with these bytes in the clear.
fn in_the_clear(line: Line<'_>, bytes: &[u8]) -> Option<()> {
    agreed(line)?;
    say(line, bytes)?;
    until_gone(line)
}

/// Agrees, and answers with these records, rightly encrypted.
fn encrypted(line: Line<'_>, fill: impl FnOnce(&mut Session, &mut Vec<u8>)) -> Option<()> {
    let mut session = agreed(line)?;
    let mut out = Vec::new();
    fill(&mut session, &mut out);
    say(line, &out)?;
    until_gone(line)
}

#[test]
fn nothing_that_calls_itself_tls_is_too_much() {
    let cases = [
        Case { name: "noise", harm: |line| say(line, &[0x55; 64]).and_then(|()| until_gone(line)), kinds: &[Tls] },
        Case { name: "an end at once", harm: |_| None, kinds: &[Tls, ClosedEarly, Reset, ConnectFailed] },
        Case { name: "silence", harm: until_gone, kinds: &[Tls, ConnectTimeout, ConnectFailed] },
        Case {
            name: "an alert at once",
            harm: |line| say(line, &record(21, 2, &[2, 40])).and_then(|()| until_gone(line)),
            kinds: &[Tls],
        },
        Case {
            name: "a record too large",
            harm: |line| say(line, &record(22, 0xffff, &vec![0; 0xffff])).and_then(|()| until_gone(line)),
            kinds: &[Tls],
        },
        Case {
            name: "a handshake message without end",
            harm: |line| {
                // A ServerHello that says it has 16 MiB, in one record after another.
                say(line, &record(22, 4, &[2, 0xff, 0xff, 0xff]))?;
                let piece = record(22, 16_384, &vec![0; 16_384]);
                let end = Instant::now() + LONGEST;
                while Instant::now() < end {
                    say(line, &piece)?;
                }
                None
            },
            kinds: &[Tls],
        },
        Case {
            name: "garbage after the handshake",
            harm: |line| in_the_clear(line, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            kinds: &[Tls],
        },
        Case {
            name: "a record that nobody sealed",
            harm: |line| in_the_clear(line, &record(23, 200, &[0x11; 200])),
            kinds: &[Tls],
        },
        Case {
            name: "half a record, and silence",
            harm: |line| in_the_clear(line, &record(23, 200, &[0x11; 50])),
            kinds: &[Timeout],
        },
        Case {
            name: "an end in the answer",
            harm: |line| {
                encrypted(line, |session, out| {
                    let _ = session.write(&[b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"], out);
                    session.close(out);
                })
            },
            kinds: &[ClosedEarly],
        },
        Case {
            name: "new keys without end",
            harm: |line| {
                encrypted(line, |session, out| {
                    // KeyUpdate that requests for one in return (RFC 8446 section 4.6.3).
                    (0..10_000).for_each(|_| session.write_any(22, &[24, 0, 0, 1, 1], out));
                })
            },
            kinds: &[Tls, Timeout, ClosedEarly, Reset],
        },
        Case {
            name: "a new handshake",
            harm: |line| encrypted(line, |session, out| session.write_any(22, &[0, 0, 0, 0], out)),
            kinds: &[Tls],
        },
        Case {
            name: "empty records without end",
            harm: |line| encrypted(line, |session, out| (0..10_000).for_each(|_| session.write_any(23, &[], out))),
            kinds: &[Tls, Timeout],
        },
    ];
    suffer(&cases, |spec| spec.tls = Some(TlsSpec::default()));
}
