//! Redis's protocol: requests are pipelined, and replies come in order; a stream is a place in the pipeline.
//!
//! A connection begins with an AUTH, if there is a login, and a PING. A create is `SET .. NX`, an update `SET .. XX`, a
//! destroy `DEL`. If replicas have to have a write, a WAIT follows it in the same bytes, and the request is complete with
//! both replies. As status counts 0, 1 (there is no such key, or there is one already) or 2 (an error).

use std::sync::Arc;
use std::time::Duration;

use weir_model::keyvalue::Operation;
use weir_model::load::{ErrorKind, LoadSpec, Login};
use weir_wire::redis::{ReplyFrame, Value, encode};

use super::Instance;
use super::keyvalue::{Dialect, Failure, InFlightQueue, Request, Response, Sent};
use crate::error::Violation;
use crate::keyvalue::keys::{InFlight, Outcome};
use crate::keyvalue::{Requests, Rules, digits, value};

/// What keys begin with; the digits of their numbers follow.
const PREFIX: &str = "weir:";

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Redis {
    kinds: Arc<[Kind]>,
    /// Values differ in length.
    lengths_vary: bool,
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

impl Kind {
    /// `length`: that of all values, if they have one; `wait`: what follows a write.
    fn new(operation: Operation, ttl: Option<Duration>, length: Option<usize>, wait: &[u8]) -> Kind {
        let mut options: Vec<&[u8]> = Vec::new();
        let expiry = ttl.map(encode::expiry);
        if let Some((unit, time)) = expiry.as_ref().filter(|_| operation.writes()) {
            options.extend([*unit, time.as_bytes()]);
        }
        let (name, condition): (&[u8], Option<&[u8]>) = match operation {
            Operation::Get => (b"GET", None),
            Operation::Destroy => (b"DEL", None),
            Operation::Set => (b"SET", None),
            Operation::Create => (b"SET", Some(b"NX")),
            Operation::Update => (b"SET", Some(b"XX")),
        };
        options.extend(condition);
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

/// Interprets an error of the server by its first word.
fn error_kind(text: &[u8]) -> ErrorKind {
    match text.split(|byte| *byte == b' ').next().unwrap_or_default() {
        b"MOVED" | b"ASK" => ErrorKind::Redirected,
        b"BUSY" | b"LOADING" | b"TRYAGAIN" | b"CLUSTERDOWN" | b"MASTERDOWN" => ErrorKind::Busy,
        _ => ErrorKind::Refused,
    }
}

impl Dialect for Redis {
    type Frame = ReplyFrame;
    type Reply<'a> = Value<'a>;
    type Note = ();

    const NAME: &'static str = "Redis";
    const NEGOTIATING: &'static str = "before it answered a PING of Redis's protocol";
    const RULES: Rules = Rules { ttl: u32::MAX, extended_by_reads: false };

    fn new(spec: &LoadSpec, requests: &Requests, _: Instance) -> Redis {
        let replicas = spec.keyvalue.as_ref().map_or(0, |keyvalue| keyvalue.replicas);
        let mut wait = Vec::new();
        if replicas > 0 {
            // It gives up before the client does, so that too few replicas are told from a server that is gone.
            let timeout = ((spec.timeout_s * 500.0) as u64).max(1);
            let words = [replicas.to_string(), timeout.to_string()];
            encode::request(&mut wait, &[b"WAIT", words[0].as_bytes(), words[1].as_bytes()]);
        }
        let length = requests.length();
        let kind = |operation| Kind::new(operation, requests.ttl(), length, &wait);
        let kinds = requests.operations().map(kind).collect();
        Redis { kinds, lengths_vary: length.is_none(), replicas: replicas.into(), login: spec.login.clone() }
    }

    fn frame(longest: usize) -> ReplyFrame {
        ReplyFrame::new(longest)
    }

    fn greet(&self, out: &mut Vec<u8>) -> u32 {
        if let Some(Login { user, password }) = &self.login {
            match user.as_str() {
                "" => encode::request(out, &[b"AUTH", password.as_bytes()]),
                user => encode::request(out, &[b"AUTH", user.as_bytes(), password.as_bytes()]),
            }
        }
        encode::request(out, &[b"PING"]);
        1 + u32::from(self.login.is_some())
    }

    /// Two replies are left for AUTH, one for PING.
    fn check_greeting(left: u32, reply: &Value<'_>, _: &[u8]) -> Result<(), Violation> {
        let asked = if left > 1 { "AUTH" } else { "PING" };
        match reply {
            Value::Simple(b"OK") if left > 1 => Ok(()),
            Value::Simple(b"PONG") if left == 1 => Ok(()),
            Value::Error(text) => {
                Err(format!("the server answered {asked} by: {}", String::from_utf8_lossy(text)).into())
            }
            _ => Err(format!("the server did not answer {asked} as Redis does").into()),
        }
    }

    #[inline]
    fn encode(&self, request: Request<'_>, out: &mut Vec<u8>) -> Option<()> {
        let (key, length) = (&request.next.key, request.next.length);
        let Kind { head, digits_at, tail } = &self.kinds[request.kind as usize];
        let digits_at = out.len() + digits_at;
        out.extend_from_slice(head);
        out[digits_at..digits_at + 16].copy_from_slice(&digits(key.number));
        if length > 0 {
            if self.lengths_vary {
                encode::header(out, b'$', length);
            }
            request.values.append(out, key.number, key.version, length);
        }
        out.extend_from_slice(tail);
        Some(())
    }

    #[inline]
    fn is_confirmed(&self, key: &InFlight) -> bool {
        self.replicas > 0 && key.operation != Operation::Get
    }

    #[inline]
    fn parse(message: &[u8]) -> Result<Value<'_>, Violation> {
        Value::parse(message).map_err(|error| error.to_string().into())
    }

    #[inline]
    fn find(reply: &Value<'_>, _: &InFlightQueue<Redis>, _: u64) -> Result<Option<usize>, Violation> {
        Ok((!matches!(reply, Value::Push(_))).then_some(0))
    }

    #[inline]
    fn interpret(&self, sent: &mut Sent<()>, reply: &Value<'_>) -> Result<Response, Violation> {
        if sent.is_unconfirmed() {
            let failure = match reply {
                Value::Integer(have) if *have >= self.replicas => None,
                Value::Integer(_) => Some(Failure { kind: ErrorKind::NotReplicated, reason: None }),
                Value::Error(text) => {
                    let reason = Some(String::from_utf8_lossy(text).into_owned());
                    Some(Failure { kind: error_kind(text), reason })
                }
                _ => return Err(format!("WAIT was answered by {}", words(reply)).into()),
            };
            return Ok(Response::Confirmation(failure));
        }
        let InFlight { operation, number, .. } = sent.key;
        Ok(match (operation, reply) {
            (Operation::Get, Value::Bulk(read)) => {
                Response::done(0, read.len() as u64, Outcome::Found(value::version(read, number)))
            }
            (Operation::Destroy, Value::Integer(1)) => Response::done(0, 0, Outcome::Done),
            (Operation::Create | Operation::Update | Operation::Set, Value::Simple(b"OK")) => {
                Response::done(0, 0, Outcome::Done)
            }
            (Operation::Get | Operation::Update, Value::Null) | (Operation::Destroy, Value::Integer(0)) => {
                Response::done(1, 0, Outcome::NotFound)
            }
            (Operation::Create, Value::Null) => Response::done(1, 0, Outcome::Exists),
            (_, Value::Error(text)) => {
                Response::refused(2, error_kind(text), String::from_utf8_lossy(text).into_owned())
            }
            _ => return Err(format!("{} was answered by {}", operation.as_str(), words(reply)).into()),
        })
    }
}
