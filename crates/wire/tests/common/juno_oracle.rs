//! What must hold for any bytes in juno's protocol. Used by the tests here and by the fuzz target. Requests and responses
//! have one format, so there is one reader and one writer for both halves.
//!
//! - All that holds for whole messages (`messages_oracle.rs`).
//! - What was read can be written, and what is written reads the same, and is written the same.
//! - Namespace, key and value are pieces of the message that they were read from.

use crate::messages::{Input, read, read_cut};
use weir_wire::juno::{Message, MessageFrame};

/// Checks an input (`messages::Input`). Options: bit 1: the two bytes of the magic and the size of a single message are put
/// before the bytes, so that a mutation hardly ever ends there.
pub fn check(data: &[u8]) {
    let Some(Input { options, limit, sizes, bytes }) = Input::of(data) else { return };
    let mut framed = Vec::new();
    let bytes = if options & 2 == 0 {
        bytes
    } else {
        let Some((head, rest)) = bytes.split_first_chunk::<2>() else { return };
        let size = bytes.len() as u32 + 6;
        framed.extend([&[0x50, 0x50][..], head, &size.to_be_bytes(), rest].concat());
        &framed
    };
    let seen = read_cut(|| MessageFrame::new(limit), limit, bytes, &sizes);
    for bytes in &seen.messages {
        let Ok(message) = Message::parse(bytes) else { continue };
        for part in [message.namespace, message.key, message.payload.data] {
            let inside = part.is_empty() || bytes.as_ptr_range().contains(&part.as_ptr());
            assert!(inside && part.len() <= bytes.len(), "borrowed from the message");
        }
        let mut out = Vec::new();
        message.encode(&mut out).expect("what was read can be written");
        let again = read(MessageFrame::new(1 << 24), 1 << 24, [&out[..]]);
        assert_eq!((again.messages.len(), again.end), (1, Ok(true)));
        assert_eq!(Message::parse(&out), Ok(message));
        let mut twice = Vec::new();
        Message::parse(&out).expect("it reads").encode(&mut twice).expect("it can be written");
        assert_eq!(twice, out);
    }
}
