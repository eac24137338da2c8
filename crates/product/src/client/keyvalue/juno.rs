//! Requests and responses of JunoDB's protocol, for the client.

use weir_model::At;
use weir_model::keyvalue::Operation;
use weir_wire::juno::{Message, MessageFrame, Meta, Opcode, Payload, Reader, Status};
use weir_wire::messages::Messages;

use super::{Ask, KeyValueResponse, LARGEST_MESSAGE, malformed as not_juno};
use crate::client::RequestError;

/// Where keys live.
const NAMESPACE: &[u8] = b"weir";

pub fn reader() -> Reader {
    Messages::new(MessageFrame::new(LARGEST_MESSAGE))
}

pub fn write(out: &mut Vec<u8>, ask: &Ask<'_>, number: u32, now: At) -> Result<(), RequestError> {
    let opcode = match ask.operation {
        Operation::Create => Opcode::CREATE,
        Operation::Get => Opcode::GET,
        Operation::Update => Opcode::UPDATE,
        Operation::Set => Opcode::SET,
        Operation::Destroy => Opcode::DESTROY,
    };
    let request_id = request_id(number, now);
    let meta = Meta { ttl: ask.ttl.as_secs() as u32, request_id: Some(&request_id), ..Meta::default() };
    let payload = Payload { kind: 0, data: ask.value };
    let message =
        Message { opcode, opaque: number, meta, namespace: NAMESPACE, key: ask.key, payload, ..Message::default() };
    message.encode(out).map_err(not_juno)
}

/// A request that does nothing, with a first byte that no message has.
pub fn malformed() -> Vec<u8> {
    let mut out = Vec::new();
    // A message without key and value is never too long.
    let _ = Message { opcode: Opcode::NOP, opaque: 1, ..Message::default() }.encode(&mut out);
    out[0] ^= 0xFF;
    out
}

/// A number that no other request has: servers tell writers apart by it.
fn request_id(number: u32, now: At) -> [u8; 16] {
    (u128::from(now.unix_ns) << 64 | u128::from(now.mono_ns as u32) << 32 | u128::from(number)).to_be_bytes()
}

/// The number of the request that a message answers, and the response. `asked` is the request of that number.
pub fn read<'a>(
    bytes: &[u8],
    asked: impl Fn(u32) -> Option<&'a Ask<'a>>,
) -> Result<(u32, KeyValueResponse), RequestError> {
    let message = Message::parse(bytes).map_err(not_juno)?;
    let (Some(status), Some(ask)) = (message.status, asked(message.opaque)) else {
        return Err(RequestError::Unexpected("a message that answers no request".to_owned()));
    };
    let response = match ask.operation {
        Operation::Get if status.is_success() => KeyValueResponse::Value(message.payload.data.to_vec()),
        _ if status.is_success() => KeyValueResponse::Done,
        Operation::Get | Operation::Update if status == Status::NO_KEY => KeyValueResponse::Absent,
        Operation::Create if status == Status::DUPLICATE_KEY => KeyValueResponse::Exists,
        _ => failed(status),
    };
    Ok((message.opaque, response))
}

/// The response to a request that was none.
pub fn error(bytes: &[u8]) -> Result<KeyValueResponse, RequestError> {
    let status = Message::parse(bytes).map_err(not_juno)?.status;
    Ok(status.map_or(
        KeyValueResponse::Done,
        |status| if status.is_success() { KeyValueResponse::Done } else { failed(status) },
    ))
}

fn failed(status: Status) -> KeyValueResponse {
    KeyValueResponse::Error(format!("status {} ({})", status.0, status.text()))
}
