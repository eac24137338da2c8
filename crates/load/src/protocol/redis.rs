//! Redis's protocol: requests are pipelined and answered in order; a stream is a place in the pipeline. `run` picks it as
//! the [`Protocol`] of a load.
//!
//! A connection begins with an AUTH, if there is a login, and a PING, so that a server that refuses it or speaks something
//! else is found before the load. A create is `SET .. NX`, an update `SET .. XX`, a destroy `DEL`. Where replicas have to
//! have a write, a WAIT follows it in the same bytes, and the request is complete with both answers. As status counts 0, 1
//! (there is no such key, or there is one already) or 2 (an error).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use weir_model::keyvalue::Operation;
use weir_model::load::{ErrorKind, LoadSpec, Login};
use weir_wire::names::Name;
use weir_wire::redis::{ErrorReply, ReplyFrame, ReplyReader, Value, encode};

use super::{Alpn, Encoded, Event, Instance, PartialResponse, Protocol, Refusal, Responses};
use crate::generator::Generator;
use crate::keyvalue::keys::{InFlight, Outcome};
use crate::keyvalue::{Requests, Rules, State, digits, value};

/// What keys begin with; the digits of their numbers follow.
const PREFIX: &str = "weir:";

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Redis {
    requests: Requests,
    kinds: Arc<[Kind]>,
    /// Requests that a connection may have in flight.
    streams: u32,
    /// Replicas that have to have a write; 0: none is asked for.
    replicas: i64,
    login: Option<Login>,
}

/// The bytes of a kind of request around its value.
#[derive(Debug)]
struct Kind {
    /// Up to the value, with its length where all have one. The key's digits are to be filled in.
    head: Vec<u8>,
    /// Where in `head` these are.
    digits_at: usize,
    /// After the value.
    tail: Vec<u8>,
}

/// One connection, and what the slot's next one has to know.
#[derive(Debug)]
pub(crate) struct Session {
    reader: ReplyReader,
    state: State,
    /// Requests in the order of sending.
    order: VecDeque<Sent>,
    /// Answers to AUTH and PING that are to come before it is ready.
    greetings: u32,
}

/// A request in flight.
#[derive(Debug)]
struct Sent {
    stream: u32,
    /// The answer of a WAIT is to come as well.
    waits: bool,
    /// The request itself was answered, and this was wrong.
    answered: Option<Result<(), ErrorKind>>,
    key: InFlight,
}

impl Redis {
    /// `length`: that of all values, if they have one; `wait`: what follows a write.
    fn kind(operation: Operation, ttl: Option<Duration>, length: Option<usize>, wait: &[u8]) -> Kind {
        let mut options: Vec<&[u8]> = Vec::new();
        let expiry = ttl.map(encode::expiry);
        if let Some((unit, time)) = expiry.as_ref().filter(|_| operation.writes()) {
            options.extend([*unit, time.as_bytes()]);
        }
        let name: &[u8] = match operation {
            Operation::Get => b"GET",
            Operation::Destroy => b"DEL",
            Operation::Create | Operation::Update | Operation::Set => b"SET",
        };
        match operation {
            Operation::Create => options.push(b"NX"),
            Operation::Update => options.push(b"XX"),
            Operation::Get | Operation::Set | Operation::Destroy => {}
        }
        let mut head = Vec::new();
        encode::header(&mut head, b'*', 2 + usize::from(operation.writes()) + options.len());
        encode::bulk(&mut head, name);
        encode::header(&mut head, b'$', PREFIX.len() + 16);
        head.extend_from_slice(PREFIX.as_bytes());
        let digits_at = head.len();
        head.extend_from_slice(&digits(0));
        head.extend_from_slice(b"\r\n");
        let mut tail = Vec::new();
        if operation.writes() {
            length.inspect(|length| encode::header(&mut head, b'$', *length));
            tail.extend_from_slice(b"\r\n");
        }
        options.iter().for_each(|option| encode::bulk(&mut tail, option));
        if operation != Operation::Get {
            tail.extend_from_slice(wait);
        }
        Kind { head, digits_at, tail }
    }

    fn reader(&self) -> ReplyReader {
        ReplyReader::new(ReplyFrame::new(self.requests.longest_answer))
    }

    /// What a reply says of a request: its status and outcome. `None`: it is no answer to it.
    #[inline]
    fn outcome(operation: Operation, number: u64, reply: &Value<'_>) -> Option<(u16, Outcome)> {
        Some(match (operation, reply) {
            (Operation::Get, Value::Bulk(read)) => (0, Outcome::Found(value::version(read, number))),
            (Operation::Get, Value::Null) => (1, Outcome::NotFound),
            (Operation::Destroy, Value::Integer(1)) => (0, Outcome::Done),
            (Operation::Destroy, Value::Integer(0)) => (1, Outcome::NotFound),
            (Operation::Create | Operation::Update | Operation::Set, Value::Simple(b"OK")) => (0, Outcome::Done),
            (Operation::Create, Value::Null) => (1, Outcome::Exists),
            (Operation::Update, Value::Null) => (1, Outcome::NotFound),
            (_, Value::Error(_)) => (2, Outcome::Failed),
            _ => return None,
        })
    }

    /// A reply to the oldest request. `true`: it is complete.
    fn answer(
        &self,
        state: &mut State,
        sent: &mut Sent,
        reply: &Value<'_>,
        responses: &mut Responses<'_>,
    ) -> Result<bool, String> {
        let now = responses.now();
        let mut response = responses.of(sent.stream);
        let verdict = match sent.answered {
            None => {
                let (status, outcome) = Redis::outcome(sent.key.operation, sent.key.number, reply)
                    .ok_or_else(|| format!("{} was answered by {}", sent.key.operation.as_str(), words(reply)))?;
                let length = if let Value::Bulk(read) = reply { read.len() as u64 } else { 0 };
                response.whole(status, length);
                let verdict = self.requests.finish(state, &sent.key, outcome, response.sent(), now);
                let verdict = if let Value::Error(text) = reply { Err(refused(&mut response, text)) } else { verdict };
                if sent.waits {
                    sent.answered = Some(verdict);
                    return Ok(false);
                }
                verdict
            }
            Some(verdict) => verdict.and(match reply {
                Value::Integer(have) if *have >= self.replicas => Ok(()),
                Value::Integer(_) => Err(ErrorKind::NotReplicated),
                Value::Error(text) if verdict.is_ok() => Err(refused(&mut response, text)),
                // The request itself failed first.
                Value::Error(_) => verdict,
                _ => return Err(format!("WAIT was answered by {}", words(reply))),
            }),
        };
        if let Err(kind) = verdict {
            response.wrong(kind);
        }
        Ok(true)
    }
}

/// A reply that is none to its request, for people.
#[cold]
fn words(reply: &Value<'_>) -> String {
    match reply {
        Value::Simple(text) | Value::Bulk(text) | Value::Error(text) => {
            format!("\"{}\"", String::from_utf8_lossy(text))
        }
        Value::Integer(number) => number.to_string(),
        Value::Null => "null".to_owned(),
        _ => "a value of another type".to_owned(),
    }
}

/// The kind of an error of the server, whose text is the reason.
#[cold]
fn refused(response: &mut PartialResponse<'_>, text: &[u8]) -> ErrorKind {
    let kind = error_kind(text);
    response.reason(kind, &String::from_utf8_lossy(text));
    kind
}

fn error_kind(text: &[u8]) -> ErrorKind {
    let word = text.split(|byte| *byte == b' ').next().unwrap_or_default();
    match ErrorReply::of(text) {
        ErrorReply::Redirected => ErrorKind::Redirected,
        _ if [b"BUSY".as_slice(), b"LOADING", b"TRYAGAIN", b"CLUSTERDOWN", b"MASTERDOWN"].contains(&word) => {
            ErrorKind::Busy
        }
        _ => ErrorKind::Refused,
    }
}

/// What a server says to AUTH, where two answers are to come, and to PING, the last one.
#[cold]
fn greeted(left: u32, reply: &Value<'_>) -> Result<(), String> {
    let asked = if left > 1 { "AUTH" } else { "PING" };
    match reply {
        Value::Simple(b"OK") if left > 1 => Ok(()),
        Value::Simple(b"PONG") if left == 1 => Ok(()),
        Value::Error(text) => Err(format!("the server answered {asked} by: {}", String::from_utf8_lossy(text))),
        _ => Err(format!("the server did not answer {asked} as Redis does")),
    }
}

impl Protocol for Redis {
    const ALPN: Alpn = Alpn::None;
    const SUCCESS: Range<u16> = 0..u16::MAX;
    const NEGOTIATING: &'static str = "before it answered a PING of Redis's protocol";
    type Session = Option<Box<Session>>;
    type Error = String;

    fn new(spec: &LoadSpec, instance: Instance) -> Result<Redis, String> {
        let requests = Requests::new(spec, Rules { ttl: u32::MAX, extended_by_reads: false }, instance)?;
        let replicas = spec.keyvalue.as_ref().map_or(0, |keyvalue| keyvalue.replicas);
        let mut wait = Vec::new();
        if replicas > 0 {
            // It gives up before the client does, so that too few replicas are told from a server that is gone.
            let timeout = ((spec.timeout_s * 500.0) as u64).max(1);
            let words = [replicas.to_string(), timeout.to_string()];
            encode::request(&mut wait, &[b"WAIT", words[0].as_bytes(), words[1].as_bytes()]);
        }
        let length = requests.length();
        let kinds =
            requests.operations().map(|operation| Redis::kind(operation, requests.ttl(), length, &wait)).collect();
        let (streams, replicas, login) = (spec.protocol.streams(), i64::from(replicas), spec.login.clone());
        Ok(Redis { kinds, streams, replicas, login, requests })
    }

    fn preloaded(&mut self, took: Duration) {
        self.requests.preloaded(took);
    }

    fn connect(&self, session: &mut Self::Session, number: u32, out: &mut Vec<u8>) -> bool {
        let session = session.get_or_insert_with(|| {
            let order = VecDeque::with_capacity(self.streams as usize);
            Box::new(Session { reader: self.reader(), state: self.requests.start(number), order, greetings: 0 })
        });
        session.greetings = 1;
        if let Some(Login { user, password }) = &self.login {
            session.greetings = 2;
            match user.as_str() {
                "" => encode::request(out, &[b"AUTH", password.as_bytes()]),
                user => encode::request(out, &[b"AUTH", user.as_bytes(), password.as_bytes()]),
            }
        }
        encode::request(out, &[b"PING"]);
        false
    }

    fn ended(&self, session: &mut Self::Session) {
        let Some(session) = session else { return };
        for sent in session.order.drain(..).filter(|sent| sent.answered.is_none()) {
            self.requests.fail(&mut session.state, &sent.key);
        }
        session.reader = self.reader();
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
        let next = self.requests.next(&mut session.state, kind, &mut generator.next(kind));
        let Kind { head, digits_at, tail } = &self.kinds[kind as usize];
        let digits_at = out.len() + digits_at;
        out.extend_from_slice(head);
        out[digits_at..digits_at + 16].copy_from_slice(&digits(next.key.number));
        if next.length > 0 {
            if self.requests.length().is_none() {
                encode::header(out, b'$', next.length);
            }
            self.requests.values.append(out, next.key.number, next.key.version, next.length);
        }
        out.extend_from_slice(tail);
        let waits = self.replicas > 0 && next.key.operation != Operation::Get;
        session.order.push_back(Sent { stream, waits, answered: None, key: next.key });
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
        let Session { reader, state, order, greetings } = &mut **session;
        loop {
            let message = match reader.next(input) {
                Ok(Some(message)) => message,
                Ok(None) => {
                    if let Some(sent) = order.front().filter(|_| !reader.is_between()) {
                        responses.of(sent.stream).begun();
                    }
                    return Ok(None);
                }
                Err(error) => return Err(format!("not Redis's protocol: {error}")),
            };
            let reply = Value::parse(message).map_err(|error| format!("not Redis's protocol: {error}"))?;
            if *greetings > 0 {
                greeted(*greetings, &reply)?;
                *greetings -= 1;
                match greetings {
                    0 => return Ok(Some(Event::Streams(self.streams))),
                    _ => continue,
                }
            }
            if matches!(reply, Value::Push(_)) {
                continue;
            }
            if let Some(next) = order.get(1) {
                self.requests.prefetch(state, &next.key);
            }
            let sent = order.front_mut().ok_or("an answer to no request")?;
            if self.answer(state, sent, &reply, responses)? {
                let stream = sent.stream;
                order.pop_front();
                return Ok(Some(Event::Complete { stream, reusable: true }));
            }
        }
    }
}
