//! What must hold for any bytes in place of messages of gRPC. Used by the tests here and by the fuzz target.
//!
//! - How the bytes are cut makes no difference to the messages, nor to what is wrong.
//! - A second reader, which takes the whole body at once, reads the same.
//! - A reader leaves no bytes.

use weir_wire::grpc::{MOST_MESSAGE_BYTES, PREFIX, Parser, PrefixError, field, parse_timeout, timeout};

/// Messages of a body, and what ended it.
pub type Read = (Vec<Vec<u8>>, Option<PrefixError>);

/// Checks one body, whole and in pieces of every length up to 20.
///
/// # Panics
/// When something does not hold.
pub fn messages(input: &[u8]) {
    let wanted = read_by_the_book(input);
    for size in (1..20).chain([input.len().max(1)]) {
        assert_eq!(read(input, size), wanted, "in pieces of {size}");
    }
    assert!(input.ends_with(field(input)), "a field is the end of its message");
    if let Some(time) = parse_timeout(input) {
        assert!(parse_timeout(timeout(time).as_bytes()).is_some_and(|again| again >= time));
    }
}

/// What is read of a body that comes in pieces of this size.
pub fn read(input: &[u8], size: usize) -> Read {
    let (mut parser, mut messages) = (Parser::default(), Vec::new());
    for mut piece in input.chunks(size) {
        loop {
            match parser.next(&mut piece) {
                Ok(Some(message)) => messages.push(message.to_vec()),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
        assert!(piece.is_empty(), "None leaves no bytes");
    }
    (messages, None)
}

fn read_by_the_book(mut input: &[u8]) -> Read {
    let mut messages = Vec::new();
    while let Some(([flag, a, b, c, d], rest)) = input.split_first_chunk::<PREFIX>() {
        let length = u32::from_be_bytes([*a, *b, *c, *d]);
        match flag {
            0 if length as usize > MOST_MESSAGE_BYTES => return (messages, Some(PrefixError::TooLarge(length))),
            0 => {}
            1 => return (messages, Some(PrefixError::Compressed)),
            flag => return (messages, Some(PrefixError::Flag(*flag))),
        }
        let Some((message, rest)) = rest.split_at_checked(length as usize) else { break };
        messages.push(message.to_vec());
        input = rest;
    }
    (messages, None)
}
