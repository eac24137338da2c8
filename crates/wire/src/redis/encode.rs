//! Writes requests and replies into the caller's buffer.
//!
//! Longer replies are written piece by piece: [`header`] or [`map`], then the elements.

use std::time::Duration;

use super::Version;
use crate::http1::encode::decimal;

/// The reply to a request that returns nothing.
pub const OK: &[u8] = b"+OK\r\n";

/// Appends a request: an array of strings.
#[inline]
pub fn request(out: &mut Vec<u8>, words: &[&[u8]]) {
    header(out, b'*', words.len());
    for word in words {
        bulk(out, word);
    }
}

/// The option of a SET with a time to live, and its value: whole seconds, else milliseconds.
pub fn expiry(ttl: Duration) -> (&'static [u8], String) {
    match ttl.subsec_millis() {
        0 => (b"EX", ttl.as_secs().to_string()),
        _ => (b"PX", ttl.as_millis().to_string()),
    }
}

/// Appends a line with a type (`*`: an array, `$`: a string, `~`: a set, `>`: a push) and a length, elements or bytes.
/// CR LF follow a string's bytes, too.
#[inline]
pub fn header(out: &mut Vec<u8>, kind: u8, length: usize) {
    put(out, kind, length as u64);
}

/// Appends the beginning of a map. So many keys with their values follow. In RESP2 it is an array.
pub fn map(out: &mut Vec<u8>, pairs: usize, version: Version) {
    match version {
        Version::Resp2 => header(out, b'*', 2 * pairs),
        Version::Resp3 => header(out, b'%', pairs),
    }
}

/// Appends a string of any bytes.
#[inline]
pub fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    header(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends a line of text. Line ends inside become spaces.
pub fn simple(out: &mut Vec<u8>, text: &[u8]) {
    put_line(out, b'+', text);
}

/// Appends an error; its first word is its kind, such as `ERR`. Line ends inside become spaces.
pub fn error(out: &mut Vec<u8>, text: &[u8]) {
    put_line(out, b'-', text);
}

/// Appends an integer.
#[inline]
pub fn integer(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.extend_from_slice(b":");
        put(out, b'-', number.unsigned_abs());
    } else {
        put(out, b':', number.unsigned_abs());
    }
}

/// Appends a null; in RESP2 it is a string without a length.
#[inline]
pub fn null(out: &mut Vec<u8>, version: Version) {
    out.extend_from_slice(match version {
        Version::Resp2 => b"$-1\r\n",
        Version::Resp3 => b"_\r\n",
    });
}

#[inline]
fn put(out: &mut Vec<u8>, first: u8, number: u64) {
    let (digits, start) = decimal(number);
    out.push(first);
    out.extend_from_slice(&digits[start..]);
    out.extend_from_slice(b"\r\n");
}

fn put_line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.push(kind);
    out.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
    out.extend_from_slice(b"\r\n");
}
