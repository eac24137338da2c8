//! Field sections without a dynamic table (RFC 9204 section 4.5): reading all that a peer may send for a table of 0 bytes,
//! and writing entries of the static table and literals.
//!
//! Both halves of a connection use it. It knows the form of headers, and nothing of requests and responses.

mod statics;

use crate::http2::class::{Class, classify, classify_again};
use crate::http2::fields::Fields;
use crate::http2::hpack::{Gap, Reader, huffman, put_integer, put_short_text};

use super::Violation;
use super::frame::Framer;

/// What every section that we write begins with: it refers to no entry of the table (section 4.5.1).
pub(super) const PREFIX: [u8; 2] = [0, 0];
/// The beginning of a literal `:authority`, `:path` and `content-length`, by the static table's name.
pub(super) const AUTHORITY: u8 = 0x50;
pub(super) const PATH: u8 = 0x51;
pub(super) const CONTENT_LENGTH: u8 = 0x54;

/// Reads a section. Headers go to `reader` and, as long as there is room, to `fields` if it keeps them. Returns the last of its
/// values that stands there as it is.
pub(super) fn decode(block: &[u8], fields: &mut Fields, reader: &mut impl Reader) -> Result<Gap, Violation> {
    let mut rest = block;
    // Required Insert Count, and the sign and distance of the Base from it.
    let count = integer(&mut rest, 8)?;
    let negative = rest.first().is_some_and(|first| first & 0x80 != 0);
    integer(&mut rest, 7)?;
    if count != 0 {
        return Err(Violation::DynamicReference);
    }
    if negative {
        return Err(Violation::Compression);
    }
    let mut gap = Gap::default();
    while let Some(&first) = rest.first() {
        if first >= 0xc0 {
            let (name, value, class) = statics::get(integer(&mut rest, 6)?).ok_or(Violation::Compression)?;
            let at = fields.push(name, value);
            reader.field(class, name, value, at);
            continue;
        }
        let start = fields.begin();
        let named = match first {
            0x40..0x80 if first & 0x10 != 0 => {
                let (name, _, class) = statics::get(integer(&mut rest, 4)?).ok_or(Violation::Compression)?;
                fields.buffer().extend_from_slice(name);
                Some(class)
            }
            0x20..0x40 => {
                string(&mut rest, 3, fields.buffer())?;
                None
            }
            // An indexed field or the name of one, of the dynamic table.
            _ => return Err(Violation::DynamicReference),
        };
        fields.name_ends();
        let as_it_is = string(&mut rest, 7, fields.buffer())?;
        let (name, value, at) = fields.last(start);
        let class = match named {
            Some(of) => classify_again(of, name, value),
            None => classify(name, value),
        };
        reader.field(class, name, value, at);
        // Whether `te` is allowed depends on its value.
        let free = class == Class::Plain && as_it_is && name != b"te";
        let length = value.len();
        let kept = fields.end(start);
        if free {
            // Sections are shorter than 2^32 bytes.
            let place = block.len() - rest.len() - length;
            gap = Gap { at: place as u32, length: length as u32, kept_at: kept.then_some(at as u32) };
        }
    }
    Ok(gap)
}

/// An integer with a prefix of the given number of bits (section 4.1.1), below 2^63.
#[inline]
fn integer(rest: &mut &[u8], prefix: u32) -> Result<u64, Violation> {
    let (&first, mut after) = rest.split_first().ok_or(Violation::Compression)?;
    let mask = 0xffu8 >> (8 - prefix);
    let mut number = u64::from(first & mask);
    if first & mask == mask {
        let mut shift = 0;
        loop {
            let (&byte, more) = after.split_first().ok_or(Violation::Compression)?;
            after = more;
            if shift > 56 {
                return Err(Violation::Compression);
            }
            number += u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = after;
    Ok(number)
}

/// Appends a string whose length has a prefix of the given number of bits (section 4.1.2). True: it is not coded.
fn string(rest: &mut &[u8], prefix: u32, out: &mut Vec<u8>) -> Result<bool, Violation> {
    let coded = rest.first().is_some_and(|first| first & (1 << prefix) != 0);
    let length = usize::try_from(integer(rest, prefix)?).map_err(|_| Violation::Compression)?;
    let (text, after) = rest.split_at_checked(length).ok_or(Violation::Compression)?;
    *rest = after;
    if !coded {
        out.extend_from_slice(text);
    } else if !huffman::decode(text, out) {
        return Err(Violation::Compression);
    }
    Ok(!coded)
}

/// Appends a header, as short as it can be without a table.
pub(super) fn put(out: &mut Vec<u8>, name: &str, value: &str) {
    match statics::find(name, value).0 {
        Some(whole) => put_integer(out, 0xc0, 6, whole),
        None => {
            put_name(out, name);
            put_short_text(out, value.as_bytes());
        }
    }
}

/// Appends the name of a literal header; its value is to follow as a string of HPACK's form.
pub(super) fn put_name(out: &mut Vec<u8>, name: &str) {
    if let (_, Some(named)) = statics::find(name, "") {
        return put_integer(out, 0x50, 4, named);
    }
    let length = huffman::encoded_len(name.as_bytes());
    if length < name.len() {
        put_integer(out, 0x28, 3, length);
        huffman::encode(name.as_bytes(), out);
    } else {
        put_integer(out, 0x20, 3, name.len());
        out.extend_from_slice(name.as_bytes());
    }
}

/// Checks the peer's encoder stream (section 4.3): where the table has no room, all that it can say is that it has none.
pub(super) fn check_encoder(input: &mut &[u8]) -> Result<(), Violation> {
    // Set Dynamic Table Capacity, 0.
    let right = input.iter().all(|&byte| byte == 0x20);
    *input = &[];
    if right { Ok(()) } else { Err(Violation::EncoderInstruction) }
}

/// Checks the peer's decoder stream (section 4.4): it may cancel streams, and has nothing to acknowledge.
pub(super) fn check_decoder(partial: &mut Framer, input: &mut &[u8]) -> Result<(), Violation> {
    while let Some((&byte, rest)) = input.split_first() {
        *input = rest;
        // Within an instruction, `partial` has what came of it.
        match (partial.held(), byte) {
            (0, 0x40..0x7f) => {}
            (0, 0x7f) | (1..9, 0x80..) => partial.hold(byte),
            (1..=9, 0..0x80) => partial.clear(),
            _ => return Err(Violation::DecoderInstruction),
        }
    }
    Ok(())
}
