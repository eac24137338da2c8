//! Properties of juno's protocol over generated input: messages however they are cut, what is written reads back, and any
//! bytes at all.

use crate::juno_oracle as oracle;
use crate::messages;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use weir_wire::juno::{Message, MessageFrame, Meta, Opcode, Payload, Status};

const LIMIT: usize = 1 << 20;

/// A message that owns what it refers to.
#[derive(Debug, Clone)]
struct Owned {
    header: (u8, Option<u8>, u8, u32),
    numbers: ([u32; 5], u64),
    ids: [Option<[u8; 16]>; 2],
    namespace: Vec<u8>,
    key: Vec<u8>,
    payload: (u8, Vec<u8>),
}

impl Owned {
    fn message(&self) -> Message<'_> {
        let (opcode, status, flags, opaque) = self.header;
        let ([ttl, version, created, expires, handling], modified) = self.numbers;
        Message {
            opcode: Opcode(opcode),
            status: status.map(Status),
            flags,
            opaque,
            meta: Meta {
                ttl,
                version,
                created,
                expires,
                modified,
                handling,
                request_id: self.ids[0].as_ref(),
                originator: self.ids[1].as_ref(),
            },
            namespace: &self.namespace,
            key: &self.key,
            payload: Payload { kind: self.payload.0, data: &self.payload.1 },
        }
    }
}

fn message() -> impl Strategy<Value = Owned> {
    let number = || prop_oneof![Just(0), any::<u32>()];
    let header = (any::<u8>(), any::<Option<u8>>(), any::<u8>(), any::<u32>());
    let numbers = ([number(), number(), number(), number(), number()], prop_oneof![Just(0), any::<u64>()]);
    let record = (vec(any::<u8>(), 0..=255), vec(any::<u8>(), 0..300), (0..4u8, vec(any::<u8>(), 0..300)));
    (header, numbers, any::<[Option<[u8; 16]>; 2]>(), record).prop_map(
        |(header, numbers, ids, (namespace, key, payload))| Owned { header, numbers, ids, namespace, key, payload },
    )
}

fn write(all: &[Owned]) -> Vec<u8> {
    let mut out = Vec::new();
    all.iter().for_each(|owned| owned.message().encode(&mut out).unwrap());
    out
}

fn control() -> impl Strategy<Value = String> {
    "[0-3][0-Z]"
}

proptest! {
    #[test]
    fn messages_read_as_meant_however_they_are_cut(
        all in vec(message(), 1..5),
        sizes in vec(1usize..200, 1..20),
        control in control(),
    ) {
        let stream = write(&all);
        let seen = messages::read_cut(|| MessageFrame::new(LIMIT), LIMIT, &stream, &sizes);
        prop_assert_eq!(seen.end, Ok(true));
        prop_assert_eq!(seen.messages.len(), all.len());
        for (message, owned) in seen.messages.iter().zip(&all) {
            prop_assert_eq!(Message::parse(message), Ok(owned.message()));
        }
        oracle::check(&[control.as_bytes(), &stream].concat());
    }

    #[test]
    fn the_oracle_holds_for_any_bytes(data in vec(any::<u8>(), 0..300)) {
        oracle::check(&data);
    }

    /// Bytes at random are hardly ever components; pieces of them are.
    #[test]
    fn the_oracle_holds_for_pieces_of_messages(control in control(), pieces in vec(select(FRAGMENTS), 0..12)) {
        oracle::check(&[control.as_bytes(), &pieces.concat()].concat());
        let head = b"\x01\x40\0\0\0\x07\x02\0\0\0";
        oracle::check(&[&b"2"[..], &control.as_bytes()[1..], head, &pieces.concat()].concat());
    }

    #[test]
    fn the_oracle_holds_for_messages_with_a_changed_byte(
        control in control(),
        all in vec(message(), 1..4),
        at in any::<Index>(),
        to in prop_oneof![any::<u8>(), 0..9u8],
    ) {
        let mut stream = write(&all);
        let place = at.index(stream.len());
        stream[place] = to;
        oracle::check(&[control.as_bytes(), &stream].concat());
    }
}

const FRAGMENTS: &[&[u8]] = &[
    b"\x50\x50\x01\x40\0\0\0\x28\0\0\0\x05\0\0\0\0",
    b"\0\0\0\x08\x02\0\0\0",
    b"\0\0\0\x10\x01\0\0\0\0\0\0\0\0\0\0\0",
    b"\0\0\0\x18\x01\x02\0\x01\0\0\0\x03nsk\0vv\0\0\0\0\0\0",
    b"\0\0\0\x10\x02\x02\x21\x22\0\0\0\x09\0\0\0\x08",
    b"\0\0\0\x18\x02\x01\x65\x00",
    b"\0\0\0\x10\x02\x01\x09\0\x04\x02ab\0\0\0\0",
    b"\0\0\0\x18\x02\x01\x06\0\x0c\x04\x1f\x90\x7f\0\0\x01weir\0\0\0\0",
    b"\0\0\0\x08\x09\0\0\0",
    b"\0\0\0\0\0\0\0\0",
    b"\x10\x11\x12\x13\x14\x15\x16\x17",
    b"\xff\xff\xff\xff",
    b"\x50\x50",
];
