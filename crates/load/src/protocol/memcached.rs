//! Memcached's protocol, its text commands: requests are pipelined and answered in order; a stream is a place in the
//! pipeline. `run` picks it as the [`Protocol`] of a load.
//!
//! A connection begins with `version`, so that a server that speaks something else is found before the load. A create is
//! `add`, an update `replace`, a destroy `delete`. A `get` that finds its key is answered by a value and an end. As status
//! counts 0, 1 (there is no such key, or there is one already) or 2 (an error).

use std::collections::VecDeque;
use std::ops::Range;

use weir_model::keyvalue::Operation;
use weir_model::load::{ErrorKind, LoadSpec};
use weir_wire::memcached::{Command, Reply, ReplyFrame, ReplyReader, Store, Words};
use weir_wire::names::Name;

use super::{Alpn, Encoded, Event, Instance, Protocol, Refusal, Responses};
use crate::generator::Generator;
use crate::keyvalue::keys::{InFlight, Outcome};
use crate::keyvalue::{Requests, Rules, State, digits, value};

/// What keys begin with; the digits of their numbers follow.
const PREFIX: [u8; 5] = *b"weir:";

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Memcached {
    requests: Requests,
    /// Seconds to live; 0: for ever.
    ttl: i32,
    /// Requests that a connection may have in flight.
    streams: u32,
}

/// One connection, and what the slot's next one has to know.
#[derive(Debug)]
pub(crate) struct Session {
    reader: ReplyReader,
    state: State,
    /// Requests in the order of sending.
    order: VecDeque<Sent>,
    /// It has told its version.
    ready: bool,
}

/// A request in flight.
#[derive(Debug)]
struct Sent {
    stream: u32,
    /// The version of the value that came, and its length; the end is to come.
    read: Option<(u32, u64)>,
    key: InFlight,
}

impl Memcached {
    fn reader(&self) -> ReplyReader {
        ReplyReader::new(ReplyFrame::new(self.requests.longest_answer))
    }

    /// A reply to the oldest request. `true`: it is complete.
    #[inline]
    fn answer(
        &self,
        state: &mut State,
        sent: &mut Sent,
        reply: &Reply<'_>,
        responses: &mut Responses<'_>,
    ) -> Result<bool, String> {
        let InFlight { operation, number, .. } = sent.key;
        let (status, outcome) = match (operation, reply) {
            (Operation::Get, Reply::Value { key, data, .. }) if sent.read.is_none() => {
                let version = if **key == name(number) { value::version(data, number) } else { 0 };
                sent.read = Some((version, data.len() as u64));
                responses.of(sent.stream).begun();
                return Ok(false);
            }
            (Operation::Get, Reply::End) => match sent.read {
                Some((version, _)) => (0, Outcome::Found(version)),
                None => (1, Outcome::NotFound),
            },
            (Operation::Destroy, Reply::Deleted) => (0, Outcome::Done),
            (Operation::Destroy, Reply::NotFound) | (Operation::Update, Reply::NotStored) => (1, Outcome::NotFound),
            (Operation::Create | Operation::Update | Operation::Set, Reply::Stored) => (0, Outcome::Done),
            (Operation::Create, Reply::NotStored) => (1, Outcome::Exists),
            (_, Reply::Error | Reply::ClientError(_) | Reply::ServerError(_)) if sent.read.is_none() => {
                (2, Outcome::Failed)
            }
            _ => return Err(format!("{} was answered by what is no answer to it", operation.as_str())),
        };
        let mut response = responses.of(sent.stream);
        response.whole(status, sent.read.map_or(0, |(_, length)| length));
        let sent_at = response.sent();
        let verdict = self.requests.finish(state, &sent.key, outcome, sent_at, responses.now());
        let verdict = if outcome == Outcome::Failed { Err(error_kind(reply)) } else { verdict };
        if let Err(kind) = verdict {
            let mut response = responses.of(sent.stream);
            if outcome == Outcome::Failed {
                response.reason(kind, &error_text(reply));
            }
            response.wrong(kind);
        }
        Ok(true)
    }
}

/// A key, by its number.
#[inline]
fn name(number: u64) -> [u8; 21] {
    let mut name = [0; 21];
    name[..PREFIX.len()].copy_from_slice(&PREFIX);
    name[PREFIX.len()..].copy_from_slice(&digits(number));
    name
}

/// An error of the server in its own words.
#[cold]
fn error_text(reply: &Reply<'_>) -> String {
    match reply {
        Reply::ClientError(text) => format!("CLIENT_ERROR {}", String::from_utf8_lossy(text)),
        Reply::ServerError(text) => format!("SERVER_ERROR {}", String::from_utf8_lossy(text)),
        _ => "ERROR".to_owned(),
    }
}

/// What an error of the server means.
#[cold]
fn error_kind(reply: &Reply<'_>) -> ErrorKind {
    match reply {
        Reply::ServerError(text) if text.windows(4).any(|word| word.eq_ignore_ascii_case(b"busy")) => ErrorKind::Busy,
        _ => ErrorKind::Refused,
    }
}

impl Protocol for Memcached {
    const ALPN: Alpn = Alpn::None;
    const SUCCESS: Range<u16> = 0..u16::MAX;
    const NEGOTIATING: &'static str = "before it told its version in memcached's protocol";
    type Session = Option<Box<Session>>;
    type Error = String;

    fn new(spec: &LoadSpec, instance: Instance) -> Result<Memcached, String> {
        let requests = Requests::new(spec, Rules { ttl: u32::MAX, extended_by_reads: false }, instance)?;
        Ok(Memcached {
            // Longer ones, which would be dates, were refused.
            ttl: requests.ttl().map_or(0, |ttl| i32::try_from(ttl.as_secs()).unwrap_or(i32::MAX)),
            streams: spec.protocol.streams(),
            requests,
        })
    }

    fn preloaded(&mut self, took: std::time::Duration) {
        self.requests.preloaded(took);
    }

    fn connect(&self, session: &mut Self::Session, number: u32, out: &mut Vec<u8>) -> bool {
        session.get_or_insert_with(|| {
            let order = VecDeque::with_capacity(self.streams as usize);
            Box::new(Session { reader: self.reader(), state: self.requests.start(number), order, ready: false })
        });
        out.extend_from_slice(b"version\r\n");
        false
    }

    fn ended(&self, session: &mut Self::Session) {
        let Some(session) = session else { return };
        for sent in session.order.drain(..) {
            self.requests.fail(&mut session.state, &sent.key);
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
        let (key, data) = (&name(next.key.number), fields.body);
        if next.length > 0 {
            self.requests.values.append(data, next.key.number, next.key.version, next.length);
        }
        let store = |how| Command::Store { how, key, flags: 0, expiry: self.ttl, data, quiet: false };
        let command = match next.key.operation {
            Operation::Get => Command::Get { keys: Words::of(key), cas: false },
            Operation::Destroy => Command::Delete { key, quiet: false },
            Operation::Create => store(Store::Add),
            Operation::Update => store(Store::Replace),
            Operation::Set => store(Store::Set),
        };
        // Its key is right.
        command.encode(out).map_err(|_| Refusal::Exhausted)?;
        session.order.push_back(Sent { stream, read: None, key: next.key });
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
        let Session { reader, state, order, ready } = &mut **session;
        let other = |error: &dyn std::fmt::Display| format!("not memcached's protocol: {error}");
        loop {
            let Some(message) = reader.next(input).map_err(|error| other(&error))? else {
                if let Some(sent) = order.front().filter(|_| !reader.is_between()) {
                    responses.of(sent.stream).begun();
                }
                return Ok(None);
            };
            let reply = Reply::parse(message).map_err(|error| other(&error))?;
            if !*ready {
                let Reply::Version(_) = reply else {
                    let said = String::from_utf8_lossy(message);
                    return Err(format!("the server did not tell its version, but said: {}", said.trim_end()));
                };
                *ready = true;
                return Ok(Some(Event::Streams(self.streams)));
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
