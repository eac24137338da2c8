//! Memcached's protocol, its text commands: requests are pipelined and answered in order; a stream is a place in the
//! pipeline.
//!
//! A connection begins with `version`. A create is `add`, an update `replace`, a destroy `delete`. A `get` that finds its key
//! has a value and an end as its reply. As status counts 0, 1 (there is no such key, or there is one already) or 2 (an error).

use weir_model::keyvalue::Operation;
use weir_model::load::{ErrorKind, LoadSpec};
use weir_wire::memcached::{Command, Reply, ReplyFrame, Store, Words};

use super::Instance;
use super::keyvalue::{Dialect, Request, Response, Sent};
use crate::error::Violation;
use crate::keyvalue::keys::{InFlight, Outcome};
use crate::keyvalue::{Requests, Rules, digits, value};

/// What keys begin with; the digits of their numbers follow.
const PREFIX: [u8; 5] = *b"weir:";

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Memcached {
    /// Seconds to live; 0: for ever.
    ttl: i32,
}

/// A key, by its number.
#[inline]
fn name(number: u64) -> [u8; 21] {
    let mut name = [0; 21];
    name[..PREFIX.len()].copy_from_slice(&PREFIX);
    name[PREFIX.len()..].copy_from_slice(&digits(number));
    name
}

impl Dialect for Memcached {
    type Frame = ReplyFrame;
    type Reply<'a> = Reply<'a>;
    /// The version of the value that came, and its length; the end is to come.
    type Note = Option<(u32, u64)>;

    const NAME: &'static str = "memcached";
    const NEGOTIATING: &'static str = "before it told its version in memcached's protocol";
    const RULES: Rules = Rules { ttl: u32::MAX, extended_by_reads: false };

    fn new(_: &LoadSpec, requests: &Requests, _: Instance) -> Memcached {
        // Longer ones, which would be dates, were refused.
        Memcached { ttl: requests.ttl().map_or(0, |ttl| i32::try_from(ttl.as_secs()).unwrap_or(i32::MAX)) }
    }

    fn frame(longest: usize) -> ReplyFrame {
        ReplyFrame::new(longest)
    }

    fn greet(&self, out: &mut Vec<u8>) -> u32 {
        out.extend_from_slice(b"version\r\n");
        1
    }

    fn check_greeting(_: u32, reply: &Reply<'_>, message: &[u8]) -> Result<(), Violation> {
        let said = || String::from_utf8_lossy(message).trim_end().to_owned();
        match reply {
            Reply::Version(_) => Ok(()),
            _ => Err(format!("the server did not tell its version, but said: {}", said()).into()),
        }
    }

    #[inline]
    fn encode(&self, request: Request<'_>, out: &mut Vec<u8>) -> Option<Self::Note> {
        let InFlight { operation, number, .. } = request.next.key;
        let (key, data) = (&name(number), request.value());
        let store = |how| Command::Store { how, key, flags: 0, expiry: self.ttl, data, quiet: false };
        let command = match operation {
            Operation::Get => Command::Get { keys: Words::of(key), cas: false },
            Operation::Destroy => Command::Delete { key, quiet: false },
            Operation::Create => store(Store::Add),
            Operation::Update => store(Store::Replace),
            Operation::Set => store(Store::Set),
        };
        // Its key is right.
        command.encode(out).ok().map(|()| None)
    }

    #[inline]
    fn parse(message: &[u8]) -> Result<Reply<'_>, Violation> {
        Reply::parse(message).map_err(|error| error.to_string().into())
    }

    #[inline]
    fn interpret(&self, sent: &mut Sent<Self::Note>, reply: &Reply<'_>) -> Result<Response, Violation> {
        let InFlight { operation, number, .. } = sent.key;
        let (status, outcome) = match (operation, reply) {
            (Operation::Get, Reply::Value { key, data, .. }) if sent.note.is_none() => {
                let version = if **key == name(number) { value::version(data, number) } else { 0 };
                sent.note = Some((version, data.len() as u64));
                return Ok(Response::Part);
            }
            (Operation::Get, Reply::End) => match sent.note {
                Some((version, _)) => (0, Outcome::Found(version)),
                None => (1, Outcome::NotFound),
            },
            (Operation::Destroy, Reply::Deleted) => (0, Outcome::Done),
            (Operation::Destroy, Reply::NotFound) | (Operation::Update, Reply::NotStored) => (1, Outcome::NotFound),
            (Operation::Create | Operation::Update | Operation::Set, Reply::Stored) => (0, Outcome::Done),
            (Operation::Create, Reply::NotStored) => (1, Outcome::Exists),
            (_, Reply::Error | Reply::ClientError(_) | Reply::ServerError(_)) if sent.note.is_none() => {
                return Ok(refusal(reply));
            }
            _ => return Err(format!("{} was answered by what is no response to it", operation.as_str()).into()),
        };
        Ok(Response::done(status, sent.note.map_or(0, |(_, length)| length), outcome))
    }
}

/// Interprets an error of the server, with its own words.
#[cold]
fn refusal(reply: &Reply<'_>) -> Response {
    let (name, text) = match reply {
        Reply::ClientError(text) => ("CLIENT_ERROR ", *text),
        Reply::ServerError(text) => ("SERVER_ERROR ", *text),
        _ => ("ERROR", &b""[..]),
    };
    let is_busy = name.starts_with("SERVER") && text.windows(4).any(|word| word.eq_ignore_ascii_case(b"busy"));
    let kind = if is_busy { ErrorKind::Busy } else { ErrorKind::Refused };
    Response::refused(2, kind, format!("{name}{}", String::from_utf8_lossy(text)))
}
