//! A protocol of a dozen lines that is not HTTP, under the real worker: what adding a protocol takes. Requests are lines, and
//! so are responses, which are right where they are the same line.

use std::sync::Arc;

use weir_model::load::{ErrorKind, LoadResult, LoadSpec, OfferedRate, Target, TlsSpec};
use weir_model::suite::{Arrivals, Expect, LoadKind, Request};
use weir_net::sim::{Link, World};

use super::drive;
use super::script::{Do, Server, tls};
use crate::capacity::Resources;
use crate::controller::LoadOptions;
use crate::error::SpecError;
use crate::generator::Generator;
use crate::protocol::{Encoded, Event, Instance, Protocol, Refusal, Responses};
use crate::{LoadTasks, Outputs};

/// The load's requests, by their bodies.
#[derive(Debug, Clone)]
struct Echo(Arc<[Vec<u8>]>);

/// Bytes of the response that is under way.
type Session = usize;

impl Protocol for Echo {
    type Session = Session;
    type Error = &'static str;

    fn new(spec: &LoadSpec, _: Instance) -> Result<Echo, SpecError> {
        let line = |body: &[u8]| [body, b"\n"].concat();
        Ok(Echo(spec.requests.iter().map(|request| line(&request.request.body)).collect()))
    }

    fn encode<'a>(
        &'a self,
        _session: &mut Session,
        _stream: u32,
        kind: u32,
        _id: Option<weir_wire::request_id::RequestId>,
        _generator: &'a mut Generator,
        out: &mut Vec<u8>,
    ) -> Result<Encoded<'a>, Refusal> {
        out.extend_from_slice(&self.0[kind as usize]);
        Ok(Encoded::Appended)
    }

    fn receive(
        &mut self,
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
            response.head(200, None);
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
        Ok(whole.then_some(Event::Complete { stream: 0, reusable: true }))
    }
}

/// A load on a server that answers lines with what `response` makes of them, a millisecond away.
fn load(secure: bool, kind: LoadKind<OfferedRate>, response: fn(&str) -> String) -> LoadResult {
    let world = World::new(1);
    world.set_default_link(Link { latency: 500_000, ..Link::default() });
    let server = Server::start(&world, "127.0.0.1:0", secure.then(|| tls(&[])), move |_, _| {
        Box::new(move |input, _| {
            let end = input.iter().position(|byte| *byte == b'\n')?;
            let line = String::from_utf8(input.drain(..=end).collect()).unwrap();
            Some(vec![Do::Send(response(line.trim_end()).into_bytes())])
        })
    });
    let request = Request { body: b"hello".to_vec(), ..Request::default() };
    let expect = Expect { size: Some(5), hash: Some(xxhash_rust::xxh3::xxh3_64(b"hello")), ..Expect::default() };
    let spec = LoadSpec {
        kind,
        connections: 4,
        timeout_s: 2.0,
        tls: secure.then(TlsSpec::default),
        ..LoadSpec::new(Target::tcp(server.addr, "localhost"), request, expect)
    };
    let (outputs, resources) = (Outputs::default(), Resources::unlimited());
    let options = LoadOptions {
        spec: &spec,
        outputs: &outputs,
        resources: &resources,
        gated: false,
        nonce: 1,
        preloaded: None,
        now: world.now(),
    };
    drive(&world, LoadTasks::of::<Echo>(options).unwrap()).unwrap()
}

#[test]
fn another_protocol_is_driven_with_and_without_tls() {
    for tls in [false, true] {
        let result = load(tls, LoadKind::Count { requests: 1_000 }, |line| format!("{line}\n"));
        assert_eq!((result.total.successful, result.total.connections, result.window_s), (1_000, 4, 0.25));
        assert_eq!(result.total.statuses.iter().collect::<Vec<_>>(), [(&200, &1_000)]);
        assert_eq!(result.tls.map(|tls| tls.handshakes), tls.then_some(4));
        assert!(result.total.bytes_out == 6_000 || tls, "{}", result.total.bytes_out);
        let result = load(tls, LoadKind::open(500.0, Arrivals::Constant), |line| format!("{line}\n"));
        assert_eq!((result.total.due, result.total.successful), (500, 500));
    }
}

#[test]
fn another_protocol_has_its_own_validation_and_errors() {
    for (tls, requests, response, kind) in [
        (false, 10, (|_| "hullo\n".to_owned()) as fn(&str) -> String, ErrorKind::WrongBody),
        (true, 10, |_| "x".repeat(101), ErrorKind::Protocol),
        (false, 4, |_| String::new(), ErrorKind::Timeout),
    ] {
        let result = load(tls, LoadKind::Count { requests }, response);
        assert_eq!(result.total.errors.iter().collect::<Vec<_>>(), [(&kind, &requests)]);
    }
}
