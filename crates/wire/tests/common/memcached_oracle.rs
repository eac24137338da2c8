//! What must hold for any bytes, for both halves of memcached's protocol. Used by the tests here and by the fuzz targets.
//!
//! - All that holds for whole messages (`messages_oracle.rs`).
//! - What was read can be written, and what is written reads the same, and is written the same.
//! - A value has the length that its line gives, and is followed by CR LF.

use crate::messages::{Input, read, read_cut};
use weir_wire::memcached::{Command, Reply, ReplyFrame, RequestFrame};

/// Checks the client half with an input (`messages::Input`; no options).
pub fn replies(data: &[u8]) {
    let Some(Input { limit, sizes, bytes, .. }) = Input::of(data) else { return };
    let seen = read_cut(|| ReplyFrame::new(limit), limit, bytes, &sizes);
    for message in &seen.messages {
        let Ok(reply) = Reply::parse(message) else { continue };
        match reply {
            Reply::Value { data, .. } => ends_in(message, data, b"VALUE", 3),
            _ => assert_eq!(lines(message), 1),
        }
        let mut out = Vec::new();
        reply.encode(&mut out).expect("what was read can be written");
        let again = read(ReplyFrame::new(1 << 24), 1 << 24, [&out[..]]);
        assert_eq!((again.messages.len(), again.end), (1, Ok(true)));
        let again = Reply::parse(&out).expect("what was written can be read");
        assert_eq!(again, reply);
        let mut twice = Vec::new();
        again.encode(&mut twice).expect("what was read can be written");
        assert_eq!(twice, out);
    }
}

/// Checks the server half with an input (`messages::Input`; no options).
pub fn requests(data: &[u8]) {
    let Some(Input { limit, sizes, bytes, .. }) = Input::of(data) else { return };
    let seen = read_cut(|| RequestFrame::new(limit), limit, bytes, &sizes);
    for message in &seen.messages {
        let Ok(command) = Command::parse(message) else { continue };
        match command {
            Command::Store { data, .. } => ends_in(message, data, b"", 4),
            _ => assert_eq!(lines(message), 1),
        }
        let mut out = Vec::new();
        command.encode(&mut out).expect("what was read can be written");
        let again = read(RequestFrame::new(1 << 24), 1 << 24, [&out[..]]);
        assert_eq!((again.messages.len(), again.end), (1, Ok(true)));
        let again = Command::parse(&out).expect("what was written can be read");
        assert_eq!(again, command);
        let mut twice = Vec::new();
        again.encode(&mut twice).expect("what was read can be written");
        assert_eq!(twice, out);
    }
}

fn lines(message: &[u8]) -> usize {
    message.iter().filter(|byte| **byte == b'\n').count()
}

/// The message begins with this name, ends in this value, and gives its length as this word; found in another way than the
/// reader's.
fn ends_in(message: &[u8], data: &[u8], name: &[u8], word: usize) {
    assert!(message.starts_with(name));
    let line = message.split(|byte| *byte == b'\n').next().expect("a line");
    let words: Vec<&[u8]> = line.split(|byte| b" \r".contains(byte)).filter(|word| !word.is_empty()).collect();
    assert_eq!(String::from_utf8_lossy(words[word]).parse(), Ok(data.len()));
    assert!(message.ends_with(&[data, b"\r\n"].concat()));
    assert_eq!(message.len(), line.len() + 1 + data.len() + 2);
}
