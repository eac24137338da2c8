//! Requests and replies of memcached's text commands, for the client.

use weir_model::keyvalue::Operation;
use weir_wire::memcached::{Command, Reply, ReplyFrame, ReplyReader, Store, Words};
use weir_wire::messages::Messages;

use super::{Ask, KeyValueResponse, LARGEST_MESSAGE, malformed};
use crate::client::RequestError;

/// A write of a length that is no number.
pub const MALFORMED: &[u8] = b"set weir 0 0 x\r\n";

pub fn reader() -> ReplyReader {
    Messages::new(ReplyFrame::new(LARGEST_MESSAGE))
}

pub fn write(out: &mut Vec<u8>, ask: &Ask<'_>) -> Result<(), RequestError> {
    let Ask { key, value: data, .. } = *ask;
    let expiry = i32::try_from(ask.ttl.as_secs()).unwrap_or(i32::MAX);
    let store = |how| Command::Store { how, key, flags: 0, expiry, data, quiet: false };
    let command = match ask.operation {
        Operation::Get => Command::Get { keys: Words::of(key), cas: false },
        Operation::Destroy => Command::Delete { key, quiet: false },
        Operation::Create => store(Store::Add),
        Operation::Update => store(Store::Replace),
        Operation::Set => store(Store::Set),
    };
    command.encode(out).map_err(malformed)
}

/// The response to a request; `None`: it has not ended. `value` keeps what was read until then.
pub fn read(
    bytes: &[u8],
    ask: Option<&Ask<'_>>,
    value: &mut Option<Vec<u8>>,
) -> Result<Option<KeyValueResponse>, RequestError> {
    use Operation::{Create, Destroy, Get, Update};

    let operation = ask.map(|ask| ask.operation);
    let text = || String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned();
    Ok(Some(match (Reply::parse(bytes).map_err(malformed)?, operation) {
        (Reply::Error | Reply::ClientError(_) | Reply::ServerError(_), _) => KeyValueResponse::Error(text()),
        (Reply::Value { data, .. }, Some(Get)) if value.is_none() => {
            *value = Some(data.to_vec());
            return Ok(None);
        }
        (Reply::End, Some(Get)) => value.take().map_or(KeyValueResponse::Absent, KeyValueResponse::Value),
        (Reply::NotStored, Some(Create)) => KeyValueResponse::Exists,
        (Reply::NotStored, Some(Update)) => KeyValueResponse::Absent,
        (Reply::Deleted | Reply::NotFound, Some(Destroy)) => KeyValueResponse::Done,
        (Reply::Stored, Some(operation)) if operation.writes() => KeyValueResponse::Done,
        _ => return Err(RequestError::Unexpected(text())),
    }))
}
