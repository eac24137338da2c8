//! The Huffman code of HPACK (RFC 7541 section 5.2 and appendix B). `encode` and `decode` use it.
//!
//! The code is canonical: within a length, codes rise with the symbol, and a longer code begins where the shorter
//! ones ended. So the lengths determine everything, and the tables are computed from them at compile time.

/// Length of each byte's code, in bits (RFC 7541 appendix B). End-of-string has 30 bits, all ones.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
     6, 10, 10, 12, 13,  6,  8, 11, 10, 10,  8, 11,  8,  6,  6,  6,
     5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8, 15,  6, 12, 10,
    13,  6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,
     7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8, 13, 19, 13, 14,  6,
    15,  5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,
     6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// Longest code, bits.
const LONGEST: usize = 30;
/// Codes up to this length are decoded by one table lookup.
const SHORT: u32 = 9;

struct Tables {
    /// Each byte's code, right-aligned.
    codes: [u32; 256],
    /// By the next [`SHORT`] bits: symbol and length of the code they begin with; length 0 if it is longer.
    short: [(u8, u8); 1 << SHORT],
    /// For each length, the first 32-bit window (left-aligned) that begins with no code so short.
    limit: [u64; LONGEST + 1],
    /// For each length, its first code, left-aligned.
    first: [u32; LONGEST + 1],
    /// For each length, where its symbols begin in `sorted`.
    base: [u16; LONGEST + 1],
    /// Symbols in the order of their codes.
    sorted: [u8; 256],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut t = Tables {
        codes: [0; 256],
        short: [(0, 0); 1 << SHORT],
        limit: [0; LONGEST + 1],
        first: [0; LONGEST + 1],
        base: [0; LONGEST + 1],
        sorted: [0; 256],
    };
    // The next code, left-aligned in 32 bits.
    let mut next: u64 = 0;
    let mut sorted = 0;
    let mut length = 1;
    while length <= LONGEST {
        let step = 1 << (32 - length);
        t.first[length] = next as u32;
        t.base[length] = sorted as u16;
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTHS[symbol] as usize == length {
                t.codes[symbol] = (next >> (32 - length)) as u32;
                t.sorted[sorted] = symbol as u8;
                sorted += 1;
                if length <= SHORT as usize {
                    let mut at = (next >> (32 - SHORT)) as usize;
                    let end = at + (1 << (SHORT as usize - length));
                    while at < end {
                        t.short[at] = (symbol as u8, length as u8);
                        at += 1;
                    }
                }
                next += step;
            }
            symbol += 1;
        }
        t.limit[length] = next;
        length += 1;
    }
    // What is left is the code of end-of-string.
    assert!(sorted == 256 && next == (1 << 32) - (1 << (32 - LONGEST)));
    t
}

/// Symbols that are decoded without checking how many bits are left: a refill brings at least 56.
const BATCH: usize = 56 / SHORT as usize;

/// Appends the decoded `input`. Returns false if it is not a Huffman code, or badly padded (RFC 7541 section 5.2).
pub(crate) fn decode(input: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    // No code is shorter than 5 bits. A batch may write beyond.
    out.resize(start + input.len() * 8 / 5 + BATCH, 0);
    let symbols = decode_into(input, &mut out[start..]);
    out.truncate(start + symbols.unwrap_or(0));
    symbols.is_some()
}

/// The same into a slice that is long enough. Returns the number of symbols.
fn decode_into(input: &[u8], out: &mut [u8]) -> Option<usize> {
    // The next bits, left-aligned; `bits` of them are counted in, and those behind them are either 0 or right.
    let mut window: u64 = 0;
    let mut bits: u32 = 0;
    let mut next = 0;
    // Bits of the input that are not decoded. An endless run of ones follows them, as if the padding continued.
    let mut left = input.len() * 8;
    let mut at = 0;
    loop {
        let word = match input.get(next..next + 8) {
            Some(word) => word.try_into().ok()?,
            None => padded(input.get(next..).unwrap_or_default()),
        };
        window |= u64::from_be_bytes(word) >> bits;
        let taken = (63 - bits) / 8;
        next += taken as usize;
        bits += taken * 8;
        if left >= 56 {
            let batch: &mut [u8; BATCH] = out.get_mut(at..at + BATCH)?.try_into().ok()?;
            let before = bits;
            for place in batch {
                let (symbol, length) = TABLES.short[(window >> (64 - SHORT)) as usize];
                if length == 0 {
                    break;
                }
                *place = symbol;
                at += 1;
                window <<= length;
                bits -= u32::from(length);
            }
            left -= (before - bits) as usize;
        }
        while bits >= LONGEST as u32 {
            if left < 8 && window.leading_ones() as usize >= left {
                // No code is all ones but end-of-string, so this is padding.
                return Some(at);
            }
            let (symbol, length) = match TABLES.short[(window >> (64 - SHORT)) as usize] {
                (symbol, length @ 1..) => (symbol, u32::from(length)),
                _ => long(window)?,
            };
            left = left.checked_sub(length as usize)?;
            *out.get_mut(at)? = symbol;
            at += 1;
            window <<= length;
            bits -= length;
        }
    }
}

/// The last bytes, and ones.
#[inline]
fn padded(rest: &[u8]) -> [u8; 8] {
    let mut word = [0xff; 8];
    for (place, byte) in word.iter_mut().zip(rest) {
        *place = *byte;
    }
    word
}

/// The symbol of a code longer than [`SHORT`] and its length; `None` for end-of-string.
#[cold]
fn long(window: u64) -> Option<(u8, u32)> {
    let window = window >> 32;
    let length = (SHORT as usize + 1..=LONGEST).find(|&length| window < TABLES.limit[length])?;
    let place = (window as u32 - TABLES.first[length]) >> (32 - length);
    Some((TABLES.sorted[TABLES.base[length] as usize + place as usize], length as u32))
}

/// Bytes that [`encode`] appends.
pub(crate) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&b| usize::from(LENGTHS[usize::from(b)])).sum();
    bits.div_ceil(8)
}

/// Appends `text`, encoded and padded.
pub(crate) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let mut window: u64 = 0;
    let mut bits = 0;
    for &byte in text {
        let length = u32::from(LENGTHS[usize::from(byte)]);
        window = (window << length) | u64::from(TABLES.codes[usize::from(byte)]);
        bits += length;
        while bits >= 8 {
            bits -= 8;
            out.push((window >> bits) as u8);
        }
    }
    if bits > 0 {
        out.push(((window << (8 - bits)) as u8) | (0xff >> bits));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(input: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        decode(input, &mut out).then_some(out)
    }

    #[test]
    fn every_byte_survives_alone_and_among_others() {
        for byte in 0..=255u8 {
            for text in [vec![byte], vec![b'a', byte, b'e'], vec![byte; 33]] {
                let mut code = Vec::new();
                encode(&text, &mut code);
                assert_eq!(code.len(), encoded_len(&text));
                assert_eq!(decoded(&code), Some(text));
            }
        }
    }

    #[test]
    fn texts_of_the_rfc() {
        // RFC 7541 appendix C.4.
        let code = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(decoded(&code).as_deref(), Some(&b"www.example.com"[..]));
        let mut out = Vec::new();
        encode(b"www.example.com", &mut out);
        assert_eq!(out, code);
    }

    #[test]
    fn padding_is_ones_and_shorter_than_a_byte() {
        assert_eq!(decoded(b"").as_deref(), Some(&b""[..]));
        // '0' is 00000.
        assert_eq!(decoded(&[0b0000_0111]).as_deref(), Some(&b"0"[..]));
        assert_eq!(decoded(&[0b0000_0110]), None, "a zero in the padding");
        assert_eq!(decoded(&[0xff]), None, "eight bits of padding");
        assert_eq!(decoded(&[0b0000_0111, 0xff]), None, "more than seven bits of padding");
        assert_eq!(decoded(&[0xff; 4]), None, "end-of-string");
        assert_eq!(decoded(&[0xff; 20]), None, "end-of-string and more");
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xfc, 0, 0, 0, 0, 0, 0]), None, "end-of-string inside");
    }
}
