//! A protocol of a dozen lines that is not HTTP, under the real worker: what adding a protocol takes. Requests are lines, and
//! so are responses, which are right where they are the same line.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::Arc;

use weir_model::load::TlsSpec;
use weir_wire::tls::{Identity, KeyKind, Scratch, ServerConfig, ServerOptions, Session as TlsSession, TlsEvent};

use super::*;
use crate::generator::Generator;
use crate::protocol::{Alpn, Encoded, Event, Instance, Protocol, Refusal, Responses};

/// The load's requests, by their bodies.
#[derive(Debug, Clone)]
struct Echo(Arc<[Vec<u8>]>);

/// Bytes of the response that is under way.
type Session = usize;

impl Protocol for Echo {
    const ALPN: Alpn = Alpn::None;
    const SUCCESS: Range<u16> = 0..1;
    type Session = Session;
    type Error = &'static str;

    fn new(spec: &LoadSpec, _: Instance) -> Result<Echo, String> {
        let line = |body: &[u8]| [body, b"\n"].concat();
        Ok(Echo(spec.requests.iter().map(|request| line(&request.request.body)).collect()))
    }

    fn encode<'a>(
        &'a self,
        _session: &mut Session,
        _stream: u32,
        kind: u32,
        _name: Option<weir_wire::names::Name>,
        _generator: &'a mut Generator,
        out: &mut Vec<u8>,
    ) -> Result<Encoded<'a>, Refusal> {
        out.extend_from_slice(&self.0[kind as usize]);
        Ok(Encoded::Appended)
    }

    fn receive(
        &self,
        session: &mut Session,
        input: &mut &[u8],
        responses: &mut Responses<'_>,
        _out: &mut Vec<u8>,
    ) -> Result<Option<Event>, &'static str> {
        if input.is_empty() {
            return Ok(None);
        }
        let end = input.iter().position(|byte| *byte == b'\n');
        let (line, rest) = input.split_at(end.unwrap_or(input.len()));
        let mut response = responses.of(0);
        if *session == 0 {
            response.head(0, None);
        }
        response.body(line);
        *session += line.len();
        *input = rest.get(1..).unwrap_or_default();
        if *session > 100 {
            return Err("a line of more than 100 bytes");
        }
        let whole = end.is_some();
        if whole {
            *session = 0;
        }
        Ok(Some(if whole { Event::Complete { stream: 0, reusable: true } } else { Event::Progress }))
    }
}

/// Answers lines with what `answer` makes of them.
fn server(tls: bool, answer: fn(&str) -> String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let identities = vec![Identity::generated(KeyKind::P256).unwrap()];
    let config = ServerConfig::new(&ServerOptions { identities, ..ServerOptions::default() }).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = config.clone();
            let _ = stream.set_nodelay(true);
            std::thread::spawn(move || if tls { serve_tls(stream, &config, answer) } else { serve(stream, answer) });
        }
    });
    addr
}

fn serve(stream: TcpStream, answer: fn(&str) -> String) -> Option<()> {
    let mut out = stream.try_clone().ok()?;
    for line in BufReader::new(stream).lines() {
        out.write_all(answer(&line.ok()?).as_bytes()).ok()?;
    }
    None
}

fn serve_tls(mut stream: TcpStream, config: &ServerConfig, answer: fn(&str) -> String) -> Option<()> {
    let mut session = TlsSession::server(config).ok()?;
    let (mut scratch, mut out, mut bytes, mut line) = (Scratch::new(), Vec::new(), [0; 4096], String::new());
    loop {
        let count = stream.read(&mut bytes).ok().filter(|n| *n > 0)?;
        let mut input = &bytes[..count];
        while let Some(event) = session.next(&mut input, &mut scratch, &mut out).ok()? {
            if let TlsEvent::Plaintext(range) = event {
                line.push_str(std::str::from_utf8(&scratch[range]).ok()?);
                while let Some(end) = line.find('\n') {
                    let rest = line.split_off(end + 1);
                    session.write(&[answer(line.trim_end()).as_bytes()], &mut out).ok()?;
                    line = rest;
                }
            }
        }
        stream.write_all(&out).ok()?;
        out.clear();
    }
}

fn load(addr: SocketAddr, tls: bool, kind: LoadKind<OfferedRate>) -> LoadResult {
    let request = Request { method: String::new(), path: String::new(), headers: vec![], body: b"hello".to_vec() };
    let expect =
        Expect { status: None, size: Some(5), hash: Some(xxhash_rust::xxh3::xxh3_64(b"hello")), ..Expect::default() };
    let spec = LoadSpec {
        kind,
        connections: 4,
        timeout_s: 2.0,
        tls: tls.then(TlsSpec::default),
        ..LoadSpec::new(Target::tcp(addr, "localhost"), request, expect)
    };
    let resources = &crate::capacity::Resources::of_host(spec.driver).unwrap();
    let result = {
        let job = crate::run::Job {
            spec: &spec,
            outputs: &Outputs::default(),
            gate: None,
            stop: &StopFlag::new(),
            resources,
        };
        crate::threads::run::<Echo>(&job, None, &mut |_| {}).unwrap()
    };
    balanced(&result);
    result
}

#[test]
fn another_protocol_is_driven_with_and_without_tls() {
    at_once(&[false, true], |tls| {
        let addr = server(tls, |line| format!("{line}\n"));
        let result = load(addr, tls, LoadKind::Count { requests: 1_000 });
        assert_eq!((result.total.right, result.total.connections), (1_000, 4), "{:?}", result.total);
        assert_eq!(result.total.statuses.into_iter().collect::<Vec<_>>(), [(0, 1_000)]);
        assert_eq!(result.tls.map(|tls| tls.handshakes), tls.then_some(4));
        assert!(result.total.bytes_out == 6_000 || tls, "{}", result.total.bytes_out);
        let result = load(addr, tls, constant(500.0));
        assert_eq!((result.total.right, result.total.unsent), (result.total.due, 0));
    });
}

#[test]
fn another_protocol_has_its_own_validation_and_errors() {
    let wrong = load(server(false, |_| "hullo\n".to_owned()), false, LoadKind::Count { requests: 10 });
    assert_eq!(errors(&wrong.total), [("wrong_body", 10)]);
    let broken = load(server(true, |_| "x".repeat(101)), true, LoadKind::Count { requests: 10 });
    assert_eq!(errors(&broken.total), [("protocol", 10)]);
    let silent = load(server(false, |_| String::new()), false, LoadKind::Count { requests: 4 });
    assert_eq!(errors(&silent.total), [("timeout", 4)]);
}
