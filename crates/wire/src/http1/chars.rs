//! Classes of bytes, and fast tests of whole lines.
//!
//! It knows the character rules of RFC 9110 section 5.6, and nothing of messages.

use super::ParseError;

/// Bytes of a token (RFC 9110 section 5.6.2).
static TOKEN: [bool; 256] = alphanumeric_and(b"!#$%&'*+-.^_`|~");

/// Bytes of a host with its port (RFC 3986 section 3.2.2), without the comma that would make it a list.
static HOST: [bool; 256] = alphanumeric_and(b"-._~%!$&'()*+;=:[]");

const fn alphanumeric_and(punctuation: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < punctuation.len() {
        table[punctuation[at] as usize] = true;
        at += 1;
    }
    table
}

/// Whether the byte is allowed in a token.
#[inline]
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    TOKEN[byte as usize]
}

/// Whether `bytes` is a token: one or more token bytes.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&b| is_token_byte(b))
}

/// Whether the byte is not allowed in a field value, a reason phrase or a chunk extension: a control byte other than
/// tab (RFC 9110 section 5.5).
#[inline]
fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}

/// The error for a byte where text should be.
pub(super) fn control_error(byte: u8) -> ParseError {
    match byte {
        0 => ParseError::Nul,
        b'\r' => ParseError::BareCr,
        b'\n' => ParseError::BareLf,
        _ => ParseError::ControlByte,
    }
}

/// Checks that `bytes` has no control bytes but tabs.
///
/// It checks eight bytes at a time, because it reads every byte of every head.
#[inline]
pub(crate) fn check_text(bytes: &[u8]) -> Result<(), ParseError> {
    let (words, rest) = bytes.as_chunks::<8>();
    let clean = words.iter().all(word_is_clean)
        && match bytes.last_chunk::<8>() {
            // The last eight bytes overlap a word already seen, which saves a loop over the rest.
            Some(last) => word_is_clean(last),
            None => rest.iter().all(|&b| !is_control(b)),
        };
    if clean { Ok(()) } else { find_control(bytes) }
}

/// False when one of eight bytes is below 0x20 or is 0x7f. May be false for a tab.
#[inline]
fn word_is_clean(word: &[u8; 8]) -> bool {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES * 0x80;
    let word = u64::from_ne_bytes(*word);
    // The usual "has a byte less than n" and "has a zero byte": a borrow may mark a byte above a marked one,
    // never one where none is.
    let below = word.wrapping_sub(ONES * 0x20) & !word;
    let delete = word ^ (ONES * 0x7f);
    let delete = delete.wrapping_sub(ONES) & !delete;
    (below | delete) & HIGH == 0
}

/// The exact and slow form of [`check_text`].
#[cold]
fn find_control(bytes: &[u8]) -> Result<(), ParseError> {
    bytes.iter().find(|&&b| is_control(b)).map_or(Ok(()), |&b| Err(control_error(b)))
}

/// Removes spaces and tabs at either end (optional white space, RFC 9110 section 5.6.3).
#[inline]
pub(crate) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// Returns a complete line (it ends in LF) without its line end.
///
/// Section 2.2 of RFC 9112 lets a recipient accept a lone LF as a line end. weir does not, in either half: it
/// examines what products send, and no product is known to need it.
#[inline]
pub(super) fn strip_line_end(line: &[u8]) -> Result<&[u8], ParseError> {
    line.strip_suffix(b"\r\n").ok_or(ParseError::BareLf)
}

/// Whether `target` has a form that weir sends and serves: origin form, absolute form or `*` (RFC 9112 section 3.2).
/// Authority form belongs to CONNECT.
pub(super) fn is_target(target: &[u8]) -> bool {
    if !target.iter().all(u8::is_ascii_graphic) {
        return false;
    }
    match target {
        [b'/', ..] | b"*" => true,
        // A scheme begins with a letter (RFC 3986 section 3.1), and the hierarchical part here with "//".
        [b'a'..=b'z' | b'A'..=b'Z', ..] => target.windows(3).position(|w| w == b"://").is_some_and(|at| {
            let scheme_ok = target[..at].iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
            scheme_ok && target.len() > at + 3
        }),
        _ => false,
    }
}

/// Whether `host` can be a `Host` value: a host with an optional port, or nothing (RFC 9110 section 7.2). It checks
/// the set of bytes and the port, not whether an address is valid.
pub(crate) fn is_host(host: &[u8]) -> bool {
    let colon = host.iter().rposition(|&b| b == b':');
    let port = match (colon, host.last()) {
        // The colons inside brackets are an address's.
        (Some(at), Some(last)) if *last != b']' => &host[at + 1..],
        _ => &[],
    };
    host.iter().all(|&b| HOST[b as usize]) && port.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_checked_at_every_place_of_every_length() {
        for len in 0..40 {
            let clean: Vec<u8> = (0..len).map(|i| b" ~\t\x80\xffaZ"[i % 7]).collect();
            assert_eq!(check_text(&clean), Ok(()));
            for at in 0..len {
                for bad in (0..=255u8).filter(|&b| is_control(b)) {
                    let mut text = clean.clone();
                    text[at] = bad;
                    assert_eq!(check_text(&text), Err(control_error(bad)), "{bad} at {at} of {len}");
                }
            }
        }
    }

    #[test]
    fn trimming_takes_spaces_and_tabs_from_both_ends_only() {
        assert_eq!(trim(b" \t a b\t "), b"a b");
        assert_eq!(trim(b" \t"), b"");
        assert_eq!(trim(b""), b"");
    }

    #[test]
    fn hosts() {
        for good in ["", "a", "a:80", "a:", "127.0.0.1:8080", "[::1]", "[::1]:80", "a_b.c"] {
            assert!(is_host(good.as_bytes()), "{good}");
        }
        for bad in ["a b", "a/b", "a,b", "u@h", "a:8x", "a?b", "a#b", "é"] {
            assert!(!is_host(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn targets() {
        for good in ["/", "/a?b=c", "*", "http://h/x", "HTTPS://h", "/a|b", "//x"] {
            assert!(is_target(good.as_bytes()), "{good}");
        }
        for bad in ["", "a", "h:80", "http://", "/a b", "/\u{e9}", "**", "ht^tp://x", "://x", "/\t"] {
            assert!(!is_target(bad.as_bytes()), "{bad}");
        }
    }
}
