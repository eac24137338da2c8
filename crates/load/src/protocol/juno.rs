//! JunoDB's protocol: responses come in any order, and have the numbers of their requests.
//!
//! A connection begins with a Nop. The number of a request counts those of its connection, so a late response to a request
//! that was given up matches no other request. The status is the server's.

use std::sync::Arc;

use weir_model::keyvalue::Operation;
use weir_model::load::{ErrorKind, LoadSpec};
use weir_wire::juno::{Message, MessageFrame, Meta, Opcode, Payload, Status};

use super::Instance;
use super::keyvalue::{Dialect, Failure, InFlightQueue, Request, Response, Sent};
use crate::error::Violation;
use crate::keyvalue::keys::Outcome;
use crate::keyvalue::{Requests, Rules, digits, scramble, value};

/// Namespace of all keys.
const NAMESPACE: &[u8] = b"weir";

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Juno {
    /// By kind of request.
    opcodes: Arc<[Opcode]>,
    ttl: u32,
    /// What makes request ids differ from those of other loads.
    nonce: u32,
}

impl Dialect for Juno {
    type Frame = MessageFrame;
    type Reply<'a> = (Status, Message<'a>);
    /// The number that comes back.
    type Note = u32;

    const NAME: &'static str = "JunoDB";
    const NEGOTIATING: &'static str = "before it answered a Nop of JunoDB's protocol";
    /// A value lives half an hour where its request does not say: what servers are packaged with.
    const RULES: Rules = Rules { ttl: 1_800, extended_by_reads: true };
    const ORDERED: bool = false;

    fn new(_: &LoadSpec, requests: &Requests, instance: Instance) -> Juno {
        let opcode = |operation| match operation {
            Operation::Create => Opcode::CREATE,
            Operation::Get => Opcode::GET,
            Operation::Update => Opcode::UPDATE,
            Operation::Set => Opcode::SET,
            Operation::Destroy => Opcode::DESTROY,
        };
        Juno {
            opcodes: requests.operations().map(opcode).collect(),
            ttl: requests.ttl().map_or(0, |ttl| ttl.as_secs() as u32),
            nonce: scramble(instance.nonce) as u32,
        }
    }

    fn frame(longest: usize) -> MessageFrame {
        MessageFrame::new(longest)
    }

    fn greet(&self, out: &mut Vec<u8>) -> u32 {
        // Nothing in it is too long.
        let _ = Message { opcode: Opcode::NOP, ..Message::default() }.encode(out);
        1
    }

    fn check_greeting(_: u32, (_, response): &Self::Reply<'_>, _: &[u8]) -> Result<(), Violation> {
        match response.opcode {
            Opcode::NOP => Ok(()),
            _ => Err("the server did not answer a Nop by a Nop".into()),
        }
    }

    #[inline]
    fn encode(&self, request: Request<'_>, out: &mut Vec<u8>) -> Option<u32> {
        let Request { kind, next, connection, number, .. } = request;
        let mut id = [0; 16];
        id[..4].copy_from_slice(&self.nonce.to_be_bytes());
        id[4..8].copy_from_slice(&connection.to_be_bytes());
        id[8..].copy_from_slice(&number.to_be_bytes());
        let ttl = if next.key.operation == Operation::Destroy { 0 } else { self.ttl };
        let message = Message {
            opcode: self.opcodes[kind as usize],
            opaque: number as u32,
            meta: Meta { ttl, request_id: Some(&id), ..Meta::default() },
            namespace: NAMESPACE,
            key: &digits(next.key.number),
            payload: Payload { kind: 0, data: request.value() },
            ..Message::default()
        };
        // The length of values was checked before the load.
        message.encode(out).ok().map(|()| message.opaque)
    }

    #[inline]
    fn parse(message: &[u8]) -> Result<Self::Reply<'_>, Violation> {
        let response = Message::parse(message).map_err(|error| error.to_string())?;
        let status = response.status.ok_or("a request, where only responses are due")?;
        Ok((status, response))
    }

    #[inline]
    fn find(
        (_, response): &Self::Reply<'_>,
        in_flight: &InFlightQueue<Juno>,
        sent: u64,
    ) -> Result<Option<usize>, Violation> {
        if u64::from(response.opaque) > sent {
            return Err("a response to no request".into());
        }
        // It may match none: the request was given up, or had its response before.
        Ok(in_flight.iter().position(|sent| sent.note == response.opaque))
    }

    #[inline]
    fn interpret(&self, sent: &mut Sent<u32>, (status, response): &Self::Reply<'_>) -> Result<Response, Violation> {
        let (key, status, data) = (&sent.key, *status, response.payload.data);
        let refused = |kind| Ok(Response::refused(u16::from(status.0), kind, status.text().to_owned()));
        let outcome = match (key.operation, status) {
            (Operation::Get, status) if status.is_success() => {
                let clear = response.payload.kind == 0;
                Outcome::Found(if clear { value::version(data, key.number) } else { 0 })
            }
            (_, status) if status.is_success() => Outcome::Done,
            (Operation::Create, Status::DUPLICATE_KEY) => Outcome::Exists,
            (Operation::Get | Operation::Update | Operation::Destroy, Status::NO_KEY | Status::MARKED_DELETE) => {
                Outcome::NotFound
            }
            (_, Status::RECORD_LOCKED | Status::BUSY) => return refused(ErrorKind::Busy),
            _ => return refused(ErrorKind::Refused),
        };
        let same = response.key == digits(key.number) && response.namespace == NAMESPACE;
        let failure = (!same).then_some(Failure { kind: ErrorKind::WrongValue, reason: None });
        Ok(Response::Outcome { status: u16::from(status.0), length: data.len() as u64, outcome, failure })
    }
}
