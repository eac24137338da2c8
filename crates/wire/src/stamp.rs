//! Messages of a stream, whatever carries them: what the sender writes into each, so that the receiver can tell how long it took, and
//! what became of it on the way.
//!
//! A message is a text of a given size: the stamp, then filler, then a hash of all before it. Number, due time and time of sending are
//! the sender's. Example, of 96 bytes:
//! `0000000000000001-00000003-00000040-0000000012a05f20-0000000012a06cd8-weir-weir--0123456789abcdef`.
//!
//! This module does not know what a message is wrapped in, nor whose clock the times are of.

use xxhash_rust::xxh3::xxh3_64;

use crate::request_id::{digits8, digits16, number8, number16};

/// The least size of a message, bytes: without filler.
pub const LEAST_SIZE: usize = HEAD + HASH;

/// Stream, number, number of all, due time, time of sending; each with a dash behind it.
const HEAD: usize = 17 + 9 + 9 + 17 + 17;
const HASH: usize = 16;

/// What is between the stamp and the hash, repeated.
const FILLER: &[u8] = b"weir-";

/// What a sender says of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Which stream it is of.
    pub stream: u64,
    /// Its number in the stream, from 0.
    pub number: u32,
    /// How many messages the stream has.
    pub of: u32,
    /// When it was due, nanoseconds of the sender's clock.
    pub due: u64,
    /// When it was given to the connection, nanoseconds of the same clock.
    pub sent: u64,
}

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// It is as it was sent.
    Whole(Stamp),
    /// It has a stamp, and is not as it was sent.
    Altered,
    /// It has no stamp: another sender's, or altered beyond recognition.
    Unstamped,
}

impl Stamp {
    /// Appends a message of so many bytes, at least [`LEAST_SIZE`].
    pub fn write(self, size: usize, out: &mut Vec<u8>) {
        let begin = out.len();
        let mut head = [b'-'; HEAD];
        head[..16].copy_from_slice(&digits16(self.stream));
        head[17..25].copy_from_slice(&digits8(self.number));
        head[26..34].copy_from_slice(&digits8(self.of));
        head[35..51].copy_from_slice(&digits16(self.due));
        head[52..68].copy_from_slice(&digits16(self.sent));
        out.extend_from_slice(&head);
        out.extend(FILLER.iter().cycle().take(size.saturating_sub(LEAST_SIZE)));
        let hash = xxh3_64(&out[begin..]);
        out.extend_from_slice(&digits16(hash));
    }

    fn read(text: &[u8]) -> Option<(Stamp, &[u8])> {
        let (stream, text) = text.split_first_chunk()?;
        let (number, text) = text.strip_prefix(b"-")?.split_first_chunk()?;
        let (of, text) = text.strip_prefix(b"-")?.split_first_chunk()?;
        let (due, text) = text.strip_prefix(b"-")?.split_first_chunk()?;
        let (sent, text) = text.strip_prefix(b"-")?.split_first_chunk()?;
        let stamp = Stamp {
            stream: number16(*stream)?,
            number: number8(*number)?,
            of: number8(*of)?,
            due: number16(*due)?,
            sent: number16(*sent)?,
        };
        Some((stamp, text.strip_prefix(b"-")?))
    }
}

/// Reads a message.
#[inline]
pub fn read(text: &[u8]) -> Message {
    let Some((stamp, _)) = Stamp::read(text) else { return Message::Unstamped };
    match text.split_last_chunk::<HASH>() {
        Some((hashed, hash)) if number16(*hash) == Some(xxh3_64(hashed)) => Message::Whole(stamp),
        _ => Message::Altered,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAMP: Stamp =
        Stamp { stream: 0x1234_5678_9abc_def0, number: 63, of: 64, due: 5_000_000_000, sent: 5_000_000_123 };

    #[test]
    fn a_message_has_the_size_asked_for_and_is_read_as_written() {
        for size in [LEAST_SIZE, LEAST_SIZE + 1, 200, 20_000] {
            let mut out = b"before".to_vec();
            STAMP.write(size, &mut out);
            assert_eq!(out.len(), 6 + size);
            assert_eq!(read(&out[6..]), Message::Whole(STAMP), "{size}");
            assert!(out.is_ascii() && !out.contains(&b'\n'));
        }
    }

    #[test]
    fn another_senders_message_has_no_stamp() {
        for text in ["", "[DONE]", r#"{"choices":[]}"#, "0000000000000001-00000003-00000040-", "weir-weir-weir"] {
            assert_eq!(read(text.as_bytes()), Message::Unstamped, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_altered_message_is_taken_for_a_whole_one(
            stream: u64, number: u32, of: u32, due: u64, sent: u64, size in LEAST_SIZE..300, at: prop::sample::Index, to: u8,
        ) {
            let stamp = Stamp { stream, number, of, due, sent };
            let mut text = Vec::new();
            stamp.write(size, &mut text);
            prop_assert_eq!(read(&text), Message::Whole(stamp));
            prop_assert!(!matches!(read(&text[..at.index(text.len())]), Message::Whole(_)), "cut short");
            let at = at.index(text.len());
            let was = std::mem::replace(&mut text[at], to);
            prop_assert_eq!(matches!(read(&text), Message::Whole(_)), was == to);
        }
    }
}
