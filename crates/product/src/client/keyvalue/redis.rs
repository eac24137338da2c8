//! Requests and replies of Redis's protocol, for the client.

use std::time::Duration;

use weir_model::keyvalue::Operation;
use weir_wire::messages::Messages;
use weir_wire::redis::{ReplyFrame, ReplyReader, Value, encode};

use super::{Ask, KeyValueResponse, LARGEST_MESSAGE, malformed};
use crate::client::RequestError;

/// A request whose word has a length that is no number.
pub const MALFORMED: &[u8] = b"*1\r\n$x\r\nPING\r\n";

pub fn reader() -> ReplyReader {
    Messages::new(ReplyFrame::new(LARGEST_MESSAGE))
}

pub fn write(out: &mut Vec<u8>, ask: &Ask<'_>) {
    let (unit, ttl) = encode::expiry(ask.ttl);
    let mut words: Vec<&[u8]> = match ask.operation {
        Operation::Get => vec![b"GET", ask.key],
        Operation::Destroy => vec![b"DEL", ask.key],
        Operation::Create | Operation::Update | Operation::Set => vec![b"SET", ask.key, ask.value],
    };
    if ask.operation.writes() && !ask.ttl.is_zero() {
        words.extend([unit, ttl.as_bytes()]);
    }
    match ask.operation {
        Operation::Create => words.push(b"NX"),
        Operation::Update => words.push(b"XX"),
        _ => {}
    }
    encode::request(out, &words);
}

/// Asks how many replicas have what was written, at the latest after this time.
pub fn write_wait(out: &mut Vec<u8>, replicas: u32, patience: Duration) {
    let (replicas, patience) = (replicas.to_string(), patience.as_millis().to_string());
    encode::request(out, &[b"WAIT", replicas.as_bytes(), patience.as_bytes()]);
}

/// The response to a request; `None`: the message answers none.
pub fn read(bytes: &[u8], ask: Option<&Ask<'_>>) -> Result<Option<KeyValueResponse>, RequestError> {
    use Operation::{Create, Destroy, Get, Update};

    let operation = ask.map(|ask| ask.operation);
    Ok(Some(match (Value::parse(bytes).map_err(malformed)?, operation) {
        (Value::Push(_), _) => return Ok(None),
        (Value::Error(text), _) => KeyValueResponse::Error(String::from_utf8_lossy(text).into_owned()),
        (Value::Bulk(value), Some(Get)) => KeyValueResponse::Value(value.to_vec()),
        (Value::Null, Some(Get | Update)) => KeyValueResponse::Absent,
        (Value::Null, Some(Create)) => KeyValueResponse::Exists,
        (Value::Integer(_), Some(Destroy)) => KeyValueResponse::Done,
        (Value::Simple(b"OK"), Some(operation)) if operation.writes() => KeyValueResponse::Done,
        (other, _) => return Err(unexpected(&other)),
    }))
}

/// A reply that is a count.
pub fn read_count(bytes: &[u8]) -> Result<u32, RequestError> {
    match Value::parse(bytes).map_err(malformed)? {
        Value::Integer(n) => Ok(n.try_into().unwrap_or(0)),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(value: &Value<'_>) -> RequestError {
    RequestError::Unexpected(match value {
        Value::Error(text) | Value::Simple(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Bulk(value) => format!("a value of {} bytes", value.len()),
        other => format!("{other:?}"),
    })
}
