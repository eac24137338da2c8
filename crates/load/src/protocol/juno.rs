//! JunoDB's protocol: requests are answered in any order, and matched by a number that comes back. `run` picks it as the
//! [`Protocol`] of a load.
//!
//! A connection begins with a Nop, so that a server that speaks something else is found before the load. The number of a
//! request is its stream's and how many that stream has had, so that late answers to requests that were given up are told
//! from those to later ones. The status is the server's.

use std::ops::Range;
use std::sync::Arc;

use weir_model::keyvalue::Operation;
use weir_model::load::{ErrorKind, LoadSpec};
use weir_wire::juno::{Message, MessageFrame, Meta, Opcode, Payload, Reader, Status};
use weir_wire::names::Name;

use super::{Alpn, Encoded, Event, Instance, Protocol, Refusal, Responses};
use crate::generator::Generator;
use crate::keyvalue::keys::{InFlight, Outcome};
use crate::keyvalue::{Requests, Rules, State, digits, scramble, value};

/// Namespace of all keys.
const NAMESPACE: &[u8] = b"weir";

/// How long a value lives at least where its request does not say, s: what servers are packaged with.
const LEAST_TTL: u32 = 1_800;

/// Bits of a request's number that count its stream.
const STREAM_BITS: u32 = 16;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Juno {
    requests: Requests,
    /// By kind of request.
    opcodes: Arc<[Opcode]>,
    streams: u32,
    ttl: u32,
    /// What makes request ids differ from those of other loads.
    nonce: u32,
}

/// One connection, and what the slot's next one has to know.
#[derive(Debug)]
pub(crate) struct Session {
    reader: Reader,
    state: State,
    streams: Box<[Sent]>,
    /// The connection's number among all, and requests so far.
    number: u32,
    sent: u64,
    /// It has answered the Nop.
    ready: bool,
}

/// What a stream has in flight.
#[derive(Debug, Clone, Default)]
struct Sent {
    key: Option<InFlight>,
    /// Requests that the stream has had.
    generation: u16,
}

impl Juno {
    fn reader(&self) -> Reader {
        Reader::new(MessageFrame::new(self.requests.longest_answer))
    }

    /// What a response says of a request.
    #[inline]
    fn outcome(key: &InFlight, status: Status, response: &Message<'_>) -> Result<Outcome, ErrorKind> {
        Ok(match (key.operation, status) {
            (Operation::Get, status) if status.is_success() => {
                let clear = response.payload.kind == 0;
                Outcome::Found(if clear { value::version(response.payload.data, key.number) } else { 0 })
            }
            (_, status) if status.is_success() => Outcome::Done,
            (Operation::Create, Status::DUPLICATE_KEY) => Outcome::Exists,
            (Operation::Get | Operation::Update | Operation::Destroy, Status::NO_KEY | Status::MARKED_DELETE) => {
                Outcome::NotFound
            }
            (_, Status::RECORD_LOCKED | Status::BUSY) => return Err(ErrorKind::Busy),
            _ => return Err(ErrorKind::Refused),
        })
    }

    /// A response to the request that a stream has in flight.
    #[inline]
    fn answer(
        &self,
        session: (&mut State, InFlight),
        response: &Message<'_>,
        status: Status,
        (sent, now): (u64, u64),
    ) -> Result<(), ErrorKind> {
        let (state, key) = session;
        match Juno::outcome(&key, status, response) {
            Ok(outcome) => {
                let verdict = self.requests.finish(state, &key, outcome, sent, now);
                let same = response.key == digits(key.number) && response.namespace == NAMESPACE;
                verdict.and(if same { Ok(()) } else { Err(ErrorKind::WrongValue) })
            }
            Err(kind) => {
                self.requests.fail(state, &key);
                Err(kind)
            }
        }
    }
}

impl Protocol for Juno {
    const ALPN: Alpn = Alpn::None;
    const SUCCESS: Range<u16> = 0..u16::MAX;
    const NEGOTIATING: &'static str = "before it answered a Nop of JunoDB's protocol";
    type Session = Option<Box<Session>>;
    type Error = String;

    fn new(spec: &LoadSpec, instance: Instance) -> Result<Juno, String> {
        let requests = Requests::new(spec, Rules { ttl: LEAST_TTL, extended_by_reads: true }, instance)?;
        let opcode = |operation| match operation {
            Operation::Create => Opcode::CREATE,
            Operation::Get => Opcode::GET,
            Operation::Update => Opcode::UPDATE,
            Operation::Set => Opcode::SET,
            Operation::Destroy => Opcode::DESTROY,
        };
        Ok(Juno {
            opcodes: requests.operations().map(opcode).collect(),
            streams: spec.protocol.streams(),
            ttl: requests.ttl().map_or(0, |ttl| ttl.as_secs() as u32),
            nonce: scramble(instance.nonce) as u32,
            requests,
        })
    }

    fn preloaded(&mut self, took: std::time::Duration) {
        self.requests.preloaded(took);
    }

    fn connect(&self, session: &mut Self::Session, number: u32, out: &mut Vec<u8>) -> bool {
        session.get_or_insert_with(|| {
            Box::new(Session {
                reader: self.reader(),
                state: self.requests.start(number),
                streams: vec![Sent::default(); self.streams as usize].into(),
                number,
                sent: 0,
                ready: false,
            })
        });
        // Nothing in it is too long.
        let _ = Message { opcode: Opcode::NOP, ..Message::default() }.encode(out);
        false
    }

    fn ended(&self, session: &mut Self::Session) {
        let Some(session) = session else { return };
        for stream in &mut session.streams {
            if let Some(key) = stream.key.take() {
                self.requests.fail(&mut session.state, &key);
            }
        }
        session.reader = self.reader();
        session.ready = false;
    }

    #[inline]
    fn choose(&self, session: &mut Self::Session, _target: u32, _generator: &mut Generator) -> u32 {
        session.as_mut().map_or(0, |session| self.requests.choose(&mut session.state))
    }

    #[inline]
    fn encode<'a>(
        &'a self,
        session: &mut Self::Session,
        stream: u32,
        kind: u32,
        _name: Option<Name>,
        generator: &'a mut Generator,
        out: &mut Vec<u8>,
    ) -> Result<Encoded<'a>, Refusal> {
        let Some(session) = session else { return Err(Refusal::Exhausted) };
        let mut fields = generator.next(kind);
        let next = self.requests.next(&mut session.state, kind, &mut fields);
        let data = fields.body;
        if next.length > 0 {
            self.requests.values.append(data, next.key.number, next.key.version, next.length);
        }
        session.sent += 1;
        let mut id = [0; 16];
        id[..4].copy_from_slice(&self.nonce.to_be_bytes());
        id[4..8].copy_from_slice(&session.number.to_be_bytes());
        id[8..].copy_from_slice(&session.sent.to_be_bytes());
        let place = &mut session.streams[stream as usize];
        place.key = Some(next.key);
        place.generation = place.generation.wrapping_add(1);
        let ttl = if next.key.operation == Operation::Destroy { 0 } else { self.ttl };
        let message = Message {
            opcode: self.opcodes[kind as usize],
            opaque: u32::from(place.generation) << STREAM_BITS | stream,
            meta: Meta { ttl, request_id: Some(&id), ..Meta::default() },
            namespace: NAMESPACE,
            key: &digits(next.key.number),
            payload: Payload { kind: 0, data },
            ..Message::default()
        };
        // The length of values was checked before the load.
        message.encode(out).map_err(|_| Refusal::Exhausted)?;
        Ok(Encoded::Appended)
    }

    #[inline]
    fn receive(
        &self,
        session: &mut Self::Session,
        input: &mut &[u8],
        responses: &mut Responses<'_>,
        _out: &mut Vec<u8>,
    ) -> Result<Option<Event>, String> {
        let Some(session) = session else { return Ok(None) };
        let Session { reader, state, streams, ready, .. } = &mut **session;
        loop {
            let bytes = match reader.next(input) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => {
                    // Of several streams it is not known yet whose it is.
                    if let [Sent { key: Some(_), .. }] = &**streams
                        && !reader.is_between()
                    {
                        responses.of(0).begun();
                    }
                    return Ok(None);
                }
                Err(error) => return Err(format!("not JunoDB's protocol: {error}")),
            };
            let response = Message::parse(bytes).map_err(|error| format!("not JunoDB's protocol: {error}"))?;
            let status = response.status.ok_or("a request, where only responses are due")?;
            if !*ready {
                if response.opcode != Opcode::NOP {
                    return Err("the server did not answer a Nop by a Nop".to_owned());
                }
                *ready = true;
                return Ok(Some(Event::Streams(self.streams)));
            }
            let stream = response.opaque & ((1 << STREAM_BITS) - 1);
            let sent = streams.get_mut(stream as usize).ok_or("an answer to no request")?;
            if u32::from(sent.generation) != response.opaque >> STREAM_BITS {
                // The request was given up.
                continue;
            }
            // A second answer, or one to a request that was given up and has no successor yet.
            let Some(key) = sent.key.take() else { continue };
            let now = responses.now();
            let mut partial = responses.of(stream);
            partial.whole(u16::from(status.0), response.payload.data.len() as u64);
            let times = (partial.sent(), now);
            if let Err(kind) = self.answer((state, key), &response, status, times) {
                if matches!(kind, ErrorKind::Busy | ErrorKind::Refused) {
                    partial.reason(kind, &status.text());
                }
                partial.wrong(kind);
            }
            return Ok(Some(Event::Complete { stream, reusable: true }));
        }
    }

    fn cancel(&self, session: &mut Self::Session, stream: u32, _out: &mut Vec<u8>) -> bool {
        if let Some(session) = session
            && let Some(key) = session.streams[stream as usize].key.take()
        {
            self.requests.fail(&mut session.state, &key);
        }
        true
    }
}
