//! JunoDB's protocol, as a store speaks it to clients ([`client`]) and to a proxy ([`store`]). The proxy prepares a write
//! at several stores and commits it there; a client of a single store does both at once.

mod client;
mod store;

use hashbrown::HashTable;
use weir_model::protocol::Application;
use weir_wire::juno::{Message, MessageFrame, Meta, Opcode, ParseError, Payload, Status};

use super::store::{Now, Record, Store};
use super::{Answered, Asks, Context, Dialect, WrongReply};

/// The longest value, bytes, and the longest time to live, s.
const LONGEST_VALUE: usize = 204_800;
const LONGEST_TTL: u32 = 259_200;
/// The time to live of records for which no client asks for one, s.
const DEFAULT_TTL: u32 = 1800;
/// The longest message, bytes: a value and what is around it.
const LONGEST: usize = 1 << 20;
/// The longest namespace and key, bytes.
const LONGEST_NAMESPACE: usize = 64;
const LONGEST_KEY: usize = 256;
/// How long a server says that it had a request, ms: the least that can be said.
const HANDLING: u32 = 1;

/// The number of a request.
pub(crate) type Id = [u8; 16];
type Shard = super::store::Shard<About, Locks>;
pub(crate) type Locks = HashTable<store::Lock>;

/// Opcodes and what they are counted as; the last name is for all others. Those behind [`OF_KEYS`] are of no key.
const OPCODES: [(Opcode, &str); 17] = [
    (Opcode::CREATE, "create"),
    (Opcode::GET, "get"),
    (Opcode::UPDATE, "update"),
    (Opcode::SET, "set"),
    (Opcode::DESTROY, "destroy"),
    (Opcode::PREPARE_CREATE, "prepare_create"),
    (Opcode::READ, "read"),
    (Opcode::PREPARE_UPDATE, "prepare_update"),
    (Opcode::PREPARE_SET, "prepare_set"),
    (Opcode::PREPARE_DELETE, "prepare_delete"),
    (Opcode::DELETE, "delete"),
    (Opcode::COMMIT, "commit"),
    (Opcode::ABORT, "abort"),
    (Opcode::REPAIR, "repair"),
    (Opcode::MARK_DELETE, "mark_delete"),
    (Opcode::NOP, "nop"),
    (HANDSHAKE, "handshake"),
];
const OF_KEYS: usize = 15;
const UNKNOWN: usize = OPCODES.len();

/// What a proxy asks a store first.
const HANDSHAKE: Opcode = Opcode(0xE2);

const OPERATIONS: [&str; UNKNOWN + 1] = {
    let mut names = ["unknown"; UNKNOWN + 1];
    let mut index = 0;
    while index < UNKNOWN {
        names[index] = OPCODES[index].1;
        index += 1;
    }
    names
};

/// What is kept with a value.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    /// s since 1970.
    created: u32,
    version: u32,
    /// ns since 1970.
    modified: u64,
    /// The request that wrote it last, and the one that wrote it first.
    request: Id,
    originator: Id,
    /// How the value is encoded.
    kind: u8,
    /// A proxy has marked it as deleted.
    deleted: bool,
}

/// Nothing is kept for a connection.
#[derive(Debug, Default)]
pub(crate) struct Juno;

/// A request: its message, and the index of its operation.
pub(crate) type Request<'a> = (Message<'a>, usize);

impl Dialect for Juno {
    type Frame = MessageFrame;
    type Store = Store<About, Locks>;
    type Request<'a> = Request<'a>;

    const APPLICATION: Application = Application::Juno;
    const OPERATIONS: &'static [&'static str] = &OPERATIONS;
    const ORDERED: bool = false;

    fn frame() -> MessageFrame {
        MessageFrame::new(LONGEST)
    }

    fn store(keeps_former: bool) -> Store<About, Locks> {
        Store::new(keeps_former)
    }

    fn keys(store: &Store<About, Locks>) -> u64 {
        store.len()
    }

    #[inline]
    fn read<'a>(&self, message: &'a [u8]) -> Result<Option<Request<'a>>, String> {
        match Message::parse(message) {
            Ok(message) if message.status.is_none() => {
                let known = OPCODES.iter().position(|(opcode, _)| *opcode == message.opcode);
                Ok(Some((message, known.unwrap_or(UNKNOWN))))
            }
            // Responses, and messages between proxies and administrators.
            Ok(_) | Err(ParseError::NotAnOperation) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    #[inline]
    fn asks((_, operation): &Request<'_>) -> Asks {
        Asks { operation: *operation, of_keys: *operation < OF_KEYS }
    }

    #[inline]
    fn respond(&mut self, (request, _): Request<'_>, context: Context<'_, Juno>, out: &mut Vec<u8>) -> Answered {
        let answered = match request.opcode {
            Opcode::NOP | HANDSHAKE => {
                write_response(&request, Status::OK, Meta::default(), Payload::default(), out);
                Answered::default()
            }
            opcode if opcode.0 < 0x80 => client::respond(&request, context, out),
            _ => store::respond(&request, context, out),
        };
        Answered { value_in: request.payload.data.len(), ..answered }
    }

    fn busy(&self, (request, _): Request<'_>, out: &mut Vec<u8>) {
        refuse(&request, Status::BUSY, out);
    }

    fn malformed(&self, _: &str, _: &mut Vec<u8>) {}
}

/// One request and what it needs.
struct One<'a> {
    request: &'a Message<'a>,
    id: &'a Id,
    shard: &'a mut Shard,
    hash: u64,
    key: &'a [u8],
    now: Now,
    wrong_reply: Option<WrongReply>,
}

impl One<'_> {
    /// Returns whether it only claims to write.
    fn loses(&self) -> bool {
        self.wrong_reply == Some(WrongReply::Lose)
    }
}

/// Appends a response. Namespace and key come back, and the value only if `payload` has it.
fn write_response(request: &Message<'_>, status: Status, meta: Meta<'_>, payload: Payload<'_>, out: &mut Vec<u8>) {
    let response = Message {
        opcode: request.opcode,
        status: Some(status),
        opaque: request.opaque,
        meta,
        namespace: request.namespace,
        key: request.key,
        payload,
        ..Message::default()
    };
    // What was read can be written: no name in it is longer than it was, and no value longer than a request.
    let _ = response.encode(out);
}

/// Appends a response that says no more than the status.
fn refuse(request: &Message<'_>, status: Status, out: &mut Vec<u8>) -> Answered {
    let meta = Meta { request_id: request.meta.request_id, ..Meta::default() };
    write_response(request, status, meta, Payload::default(), out);
    Answered::default()
}

/// Puts namespace and key together, so that no two pairs are alike.
fn stored_key<'a>(request: &Message<'_>, key: &'a mut Vec<u8>) -> &'a [u8] {
    key.clear();
    key.push(request.namespace.len() as u8);
    key.extend_from_slice(request.namespace);
    key.extend_from_slice(request.key);
    key
}

/// Whether a request can be carried out: who asks for which key, with what.
fn is_valid(request: &Message<'_>) -> bool {
    request.meta.request_id.is_some()
        && (1..=LONGEST_NAMESPACE).contains(&request.namespace.len())
        && (1..=LONGEST_KEY).contains(&request.key.len())
        && request.meta.ttl <= LONGEST_TTL
        && request.payload.data.len() <= LONGEST_VALUE
}

/// When something expires that lives so long, ms since 1970.
fn after(now: Now, ttl: u32) -> u64 {
    (u64::from(now.s()) + u64::from(ttl)) * 1000
}

/// A record's expiry in the metadata, s since 1970.
fn expires_s(expires: u64) -> u32 {
    u32::try_from(expires / 1000).unwrap_or(u32::MAX)
}

/// How long a record lives from now, s.
fn ttl(expires: u64, now: Now) -> u32 {
    expires_s(expires).saturating_sub(now.s())
}

fn payload(record: &Record<About>) -> Payload<'_> {
    Payload { kind: record.meta.kind, data: &record.value }
}
