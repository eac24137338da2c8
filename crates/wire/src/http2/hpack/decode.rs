//! Reads header blocks (RFC 7541 section 6).

use super::super::class::{Class, classify, classify_again};
use super::super::fields::Fields;
use super::huffman;
use super::table::Table;

/// A block that cannot be decoded. The decoder is out of sync with its peer, and unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http2) struct Garbled;

/// Receives each header of a block.
pub(crate) trait Reader {
    /// A header. `at` is where its value begins in [`Fields`], if fields are kept.
    fn field(&mut self, class: Class, name: &[u8], value: &[u8], at: usize);
}

/// Looks at none.
impl Reader for () {
    fn field(&mut self, _: Class, _: &[u8], _: &[u8], _: usize) {}
}

/// What a block was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http2) struct Decoded {
    /// It left the table unchanged, so the same bytes mean the same until a block changes it.
    pub(in crate::http2) pure: bool,
    /// It refers to no entry of the table, and does not resize it: the same bytes always mean the same, and insert the same.
    pub(in crate::http2) alone: bool,
    /// The last of its values that stands there as it is.
    pub(in crate::http2) gap: Gap,
}

/// A value in a block that stands there as it is, of a header without a meaning here: another value of that length there changes
/// nothing else. Empty: there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Gap {
    /// Where in the block.
    pub(crate) at: u32,
    pub(crate) length: u32,
    /// Where in [`Fields`], if that keeps it.
    pub(crate) kept_at: Option<u32>,
}

/// Reads a block. Headers go to `reader` and, as long as there is room, to `fields` if it keeps them.
pub(in crate::http2) fn decode(
    table: &mut Table,
    block: &[u8],
    fields: &mut Fields,
    reader: &mut impl Reader,
) -> Result<Decoded, Garbled> {
    let mut rest = block;
    let mut gap = Gap::default();
    let (mut pure, mut alone) = (true, true);
    let mut begun = false;
    while let Some(&first) = rest.first() {
        match first {
            0x80.. => {
                let index = integer(&mut rest, 7)?;
                alone &= !Table::is_dynamic(index);
                let (name, value, class) = table.get(index).ok_or(Garbled)?;
                let at = fields.push(name, value);
                reader.field(class, name, value, at);
            }
            0x20..0x40 => {
                // Only at the beginning of a block (section 4.2).
                if begun || !table.resize(integer(&mut rest, 5)?) {
                    return Err(Garbled);
                }
                (pure, alone) = (false, false);
                continue;
            }
            _ => {
                let inserted = first & 0x40 != 0;
                let start = fields.begin();
                let Literal { named, dynamic, as_it_is } =
                    literal(&mut rest, if inserted { 6 } else { 4 }, table, fields)?;
                alone &= !dynamic;
                let (name, value, at) = fields.last(start);
                let class = match named {
                    Some(of) => classify_again(of, name, value),
                    None => classify(name, value),
                };
                if inserted {
                    table.insert(name, value, class);
                    pure = false;
                }
                reader.field(class, name, value, at);
                // Whether `te` is allowed depends on its value.
                let free = class == Class::Plain && as_it_is && !inserted && name != b"te";
                let length = value.len();
                let kept = fields.end(start);
                if free {
                    // Blocks are shorter than 2^32 bytes.
                    let place = block.len() - rest.len() - length;
                    gap = Gap { at: place as u32, length: length as u32, kept_at: kept.then_some(at as u32) };
                }
            }
        }
        begun = true;
    }
    Ok(Decoded { pure, alone, gap })
}

/// How a literal header stands in its block.
struct Literal {
    /// The class of the entry from which its name came, if it came from one.
    named: Option<Class>,
    /// That was an entry of the dynamic table.
    dynamic: bool,
    /// Its value is not coded.
    as_it_is: bool,
}

/// Reads a literal header to the end of `fields`.
#[inline]
fn literal(rest: &mut &[u8], prefix: u32, table: &Table, fields: &mut Fields) -> Result<Literal, Garbled> {
    let index = integer(rest, prefix)?;
    let named = match index {
        0 => {
            string(rest, fields.buffer())?;
            None
        }
        index => {
            let (name, _, class) = table.get(index).ok_or(Garbled)?;
            fields.buffer().extend_from_slice(name);
            Some(class)
        }
    };
    fields.name_ends();
    let as_it_is = string(rest, fields.buffer())?;
    Ok(Literal { named, dynamic: Table::is_dynamic(index), as_it_is })
}

/// An integer with a prefix of the given number of bits (section 5.1). More than 2^28 is rejected: nothing here is so
/// large.
#[inline]
fn integer(rest: &mut &[u8], prefix: u32) -> Result<usize, Garbled> {
    let (&first, mut after) = rest.split_first().ok_or(Garbled)?;
    let mask = (1u8 << prefix) - 1;
    let mut number = usize::from(first & mask);
    if first & mask == mask {
        let mut shift = 0;
        loop {
            let (&byte, more) = after.split_first().ok_or(Garbled)?;
            after = more;
            if shift > 21 {
                return Err(Garbled);
            }
            number += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = after;
    Ok(number)
}

/// Appends a string (section 5.2). True: it is not coded.
fn string(rest: &mut &[u8], out: &mut Vec<u8>) -> Result<bool, Garbled> {
    let huffman = rest.first().ok_or(Garbled)? & 0x80 != 0;
    let length = integer(rest, 7)?;
    let (text, after) = rest.split_at_checked(length).ok_or(Garbled)?;
    *rest = after;
    if !huffman {
        out.extend_from_slice(text);
    } else if !huffman::decode(text, out) {
        return Err(Garbled);
    }
    Ok(!huffman)
}
