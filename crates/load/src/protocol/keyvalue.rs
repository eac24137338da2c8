//! The sessions of key-value protocols: greetings, the requests in flight, and what each reply means for the load's keys.
//!
//! One protocol of them is a [`Dialect`], which encodes a request and interprets a reply. It knows nothing of keys that are
//! known, and this module nothing of bytes on the wire. A connection begins with a greeting, so that a server that speaks
//! something else is found before the load.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use weir_model::load::{ErrorKind, LoadSpec};
use weir_wire::messages::{Frame, Messages};
use weir_wire::request_id::RequestId;

use super::{Encoded, Event, Instance, Protocol, Refusal, Responses};
use crate::error::{SpecError, Violation};
use crate::generator::Generator;
use crate::keyvalue::keys::{InFlight, Outcome};
use crate::keyvalue::value::Values;
use crate::keyvalue::{Next, Requests, Rules, State};

/// One protocol: its requests and its replies.
pub(crate) trait Dialect: Clone + Send + fmt::Debug + 'static {
    /// Finds where a reply ends.
    type Frame: Frame<Error: fmt::Display + Send> + fmt::Debug + Send;

    /// A reply that was read.
    type Reply<'a>;

    /// The dialect's own notes on a request in flight, for its reply.
    type Note: fmt::Debug + Send;

    /// The protocol's owner, for error texts.
    const NAME: &'static str;

    /// See [`Protocol::NEGOTIATING`].
    const NEGOTIATING: &'static str;

    /// The servers' rules for times to live.
    const RULES: Rules;

    /// Replies come in the order of the requests. One request alone cannot be given up then.
    const ORDERED: bool = true;

    /// Makes the load's requests ready.
    fn new(spec: &LoadSpec, requests: &Requests, instance: Instance) -> Self;

    /// A frame that refuses replies of more bytes.
    fn frame(longest: usize) -> Self::Frame;

    /// Writes what a connection begins with. Returns how many replies that has.
    fn greet(&self, out: &mut Vec<u8>) -> u32;

    /// Checks a reply to the greeting. `left` are to come with this one; `message` is the reply as it came.
    ///
    /// # Errors
    /// It is another one than such a server sends.
    fn check_greeting(left: u32, reply: &Self::Reply<'_>, message: &[u8]) -> Result<(), Violation>;

    /// Encodes a request. `None`: it cannot be sent.
    fn encode(&self, request: Request<'_>, out: &mut Vec<u8>) -> Option<Self::Note>;

    /// Returns whether a write has a second reply, which confirms it.
    fn is_confirmed(&self, _key: &InFlight) -> bool {
        false
    }

    /// # Errors
    /// The message is not of the protocol, or no reply.
    fn parse(message: &[u8]) -> Result<Self::Reply<'_>, Violation>;

    /// Which request in flight a reply is for, as its place among them; `None`: for none, and it is ignored. `sent`: how many
    /// requests the connection has had.
    ///
    /// # Errors
    /// It is for a request that was never sent.
    fn find(
        _reply: &Self::Reply<'_>,
        _in_flight: &InFlightQueue<Self>,
        _sent: u64,
    ) -> Result<Option<usize>, Violation> {
        Ok(Some(0))
    }

    /// Interprets a reply to a request.
    ///
    /// # Errors
    /// It is no reply to such a request.
    fn interpret(&self, sent: &mut Sent<Self::Note>, reply: &Self::Reply<'_>) -> Result<Response, Violation>;
}

/// The requests of one connection in flight, in the order of sending.
pub(crate) type InFlightQueue<D> = VecDeque<Sent<<D as Dialect>::Note>>;

/// A request to encode.
pub(crate) struct Request<'a> {
    /// Its index among the load's.
    pub kind: u32,
    pub next: &'a Next,
    pub values: &'a Values,
    /// Empty, for the value.
    pub scratch: &'a mut Vec<u8>,
    /// The connection's number among all, and the request's on it, from 1.
    pub connection: u32,
    pub number: u64,
}

impl<'a> Request<'a> {
    /// The value, written to the scratch; empty where the request has none.
    #[inline]
    pub(crate) fn value(self) -> &'a [u8] {
        let Next { key, length } = self.next;
        if *length > 0 {
            self.values.append(self.scratch, key.number, key.version, *length);
        }
        self.scratch
    }
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct Sent<N> {
    stream: u32,
    /// The verdict on its first reply; the confirmation is still to come.
    unconfirmed: Option<Result<(), ErrorKind>>,
    pub key: InFlight,
    pub note: N,
}

impl<N> Sent<N> {
    /// The next reply to it confirms it, see [`Dialect::is_confirmed`].
    #[inline]
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.unconfirmed.is_some()
    }
}

/// What a reply means.
#[derive(Debug)]
pub(crate) enum Response {
    /// More of the response is to come.
    Part,
    /// The operation's end.
    Outcome { status: u16, length: u64, outcome: Outcome, failure: Option<Failure> },
    /// The second reply, see [`Dialect::is_confirmed`].
    Confirmation(Option<Failure>),
}

impl Response {
    /// An operation that the server carried out, or could not because of the key.
    #[inline]
    pub(crate) fn done(status: u16, length: u64, outcome: Outcome) -> Response {
        Response::Outcome { status, length, outcome, failure: None }
    }

    /// An operation that the server refused, in its own words.
    #[cold]
    pub(crate) fn refused(status: u16, kind: ErrorKind, reason: String) -> Response {
        let failure = Some(Failure { kind, reason: Some(reason) });
        Response::Outcome { status, length: 0, outcome: Outcome::Failed, failure }
    }
}

/// The reason why a response is an error; the keys may have another.
#[derive(Debug)]
pub(crate) struct Failure {
    pub kind: ErrorKind,
    pub reason: Option<String>,
}

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct KeyValue<D> {
    dialect: D,
    requests: Requests,
    /// Requests that a connection may have in flight.
    streams: u32,
}

/// One connection, and what the slot's next one has to know.
#[derive(Debug)]
pub(crate) struct Session<D: Dialect> {
    reader: Messages<D::Frame>,
    state: State,
    in_flight: InFlightQueue<D>,
    /// Replies to the greeting that are to come before it is ready.
    greetings: u32,
    /// The connection's number among all, and requests so far.
    number: u32,
    sent: u64,
}

impl<D: Dialect> KeyValue<D> {
    fn reader(&self) -> Messages<D::Frame> {
        Messages::new(D::frame(self.requests.longest_response))
    }
}

impl<D: Dialect> Protocol for KeyValue<D> {
    const NEGOTIATING: &'static str = D::NEGOTIATING;
    type Session = Option<Box<Session<D>>>;
    type Error = Violation;

    fn new(spec: &LoadSpec, instance: Instance) -> Result<KeyValue<D>, SpecError> {
        let requests = Requests::new(spec, D::RULES, instance)?;
        Ok(KeyValue { dialect: D::new(spec, &requests, instance), streams: spec.protocol.streams(), requests })
    }

    fn preloaded(&mut self, took: Duration) {
        self.requests.preloaded(took);
    }

    fn connect(&self, session: &mut Self::Session, number: u32, out: &mut Vec<u8>) -> bool {
        let session = session.get_or_insert_with(|| {
            Box::new(Session {
                reader: self.reader(),
                state: self.requests.start(number),
                in_flight: VecDeque::with_capacity(self.streams as usize),
                greetings: 0,
                number,
                sent: 0,
            })
        });
        session.greetings = self.dialect.greet(out);
        false
    }

    fn ended(&self, session: &mut Self::Session) {
        let Some(session) = session else { return };
        for sent in session.in_flight.drain(..).filter(|sent| sent.unconfirmed.is_none()) {
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
        _id: Option<RequestId>,
        generator: &'a mut Generator,
        out: &mut Vec<u8>,
    ) -> Result<Encoded<'a>, Refusal> {
        let Some(session) = session else { return Err(Refusal::Exhausted) };
        let mut fields = generator.next(kind);
        let next = self.requests.next(&mut session.state, kind, &mut fields);
        session.sent += 1;
        let request = Request {
            kind,
            next: &next,
            values: &self.requests.values,
            scratch: fields.body,
            connection: session.number,
            number: session.sent,
        };
        let note = self.dialect.encode(request, out).ok_or(Refusal::Exhausted)?;
        session.in_flight.push_back(Sent { stream, unconfirmed: None, key: next.key, note });
        Ok(Encoded::Appended)
    }

    #[inline]
    fn receive(
        &mut self,
        session: &mut Self::Session,
        input: &mut &[u8],
        responses: &mut Responses<'_>,
        _out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Violation> {
        let Some(session) = session else { return Ok(None) };
        let Session { reader, state, in_flight, greetings, sent: requests, .. } = &mut **session;
        loop {
            let Some(message) = reader.next(input).map_err(|error| foreign::<D>(&error))? else {
                // With several streams and replies in any order, it is not known yet to which stream it belongs.
                let oldest = in_flight.front().filter(|_| D::ORDERED || self.streams == 1);
                if let Some(sent) = oldest.filter(|_| !reader.is_between()) {
                    responses.of(sent.stream).begun();
                }
                return Ok(None);
            };
            let reply = D::parse(message).map_err(|error| foreign::<D>(&error))?;
            if *greetings > 0 {
                D::check_greeting(*greetings, &reply, message)?;
                *greetings -= 1;
                match greetings {
                    0 => return Ok(Some(Event::Streams(self.streams))),
                    _ => continue,
                }
            }
            let Some(place) = D::find(&reply, in_flight, *requests)? else { continue };
            if let Some(next) = in_flight.get(place + 1) {
                self.requests.prefetch(state, &next.key);
            }
            let sent = in_flight.get_mut(place).ok_or("a response to no request")?;
            let now = responses.now();
            let mut response = responses.of(sent.stream);
            let (verdict, failure) = match self.dialect.interpret(sent, &reply)? {
                Response::Part => {
                    response.begun();
                    continue;
                }
                Response::Outcome { status, length, outcome, failure } => {
                    response.whole(status, length);
                    (self.requests.finish(state, &sent.key, outcome, response.sent(), now), failure)
                }
                Response::Confirmation(failure) => (sent.unconfirmed.unwrap_or(Ok(())), failure),
            };
            let verdict = match (verdict, failure) {
                (Ok(()), Some(Failure { kind, reason })) => {
                    reason.inspect(|reason| response.reason(kind, reason));
                    Err(kind)
                }
                (verdict, _) => verdict,
            };
            if sent.unconfirmed.is_none() && self.dialect.is_confirmed(&sent.key) {
                sent.unconfirmed = Some(verdict);
                continue;
            }
            if let Err(kind) = verdict {
                response.wrong(kind);
            }
            let stream = sent.stream;
            match place {
                // The usual case, in which nothing has to move.
                0 => in_flight.pop_front(),
                _ => in_flight.remove(place),
            };
            return Ok(Some(Event::Complete { stream, reusable: true }));
        }
    }

    fn cancel(&self, session: &mut Self::Session, stream: u32, _out: &mut Vec<u8>) -> bool {
        if D::ORDERED {
            return false;
        }
        let Some(session) = session else { return true };
        let given_up = session.in_flight.iter().position(|sent| sent.stream == stream);
        if let Some(sent) = given_up.and_then(|place| session.in_flight.remove(place)) {
            self.requests.fail(&mut session.state, &sent.key);
        }
        true
    }
}

/// The bytes belong to another protocol.
#[cold]
fn foreign<D: Dialect>(error: &dyn fmt::Display) -> String {
    format!("not {}'s protocol: {error}", D::NAME)
}
