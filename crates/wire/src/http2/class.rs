//! Classifies a header by what it means to HTTP/2 itself, and whether it is allowed (RFC 9113 section 8.2). The HPACK
//! tables and [`super::message`] use it.
//!
//! A header is classified once, when it is decoded or enters the table.

use super::StreamError;
use crate::http1::chars::{check_text, is_token_byte};

/// The class of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// A header without a meaning here.
    Plain,
    /// `:method`
    Method,
    /// `:scheme`
    Scheme,
    /// `:authority`
    Authority,
    /// `:path`
    Path,
    /// `:status`
    Status,
    /// `content-length`
    ContentLength,
    /// `host`
    Host,
    /// `expect`
    Expect,
    /// A header that is not allowed in a message.
    Bad(StreamError),
}

/// Classifies a header.
pub(crate) fn classify(name: &[u8], value: &[u8]) -> Class {
    if !is_value(value) {
        return Class::Bad(StreamError::BadValue);
    }
    match name {
        b":method" => Class::Method,
        b":scheme" => Class::Scheme,
        b":authority" => Class::Authority,
        b":path" => Class::Path,
        b":status" => Class::Status,
        [b':', ..] => Class::Bad(StreamError::PseudoHeader),
        b"content-length" => Class::ContentLength,
        b"host" => Class::Host,
        b"expect" => Class::Expect,
        b"te" if value != b"trailers" => Class::Bad(StreamError::ConnectionHeader),
        _ if is_connection_header(name) => Class::Bad(StreamError::ConnectionHeader),
        _ if is_name(name) => Class::Plain,
        _ => Class::Bad(StreamError::BadName),
    }
}

/// The class of a header whose name comes from one with the class `of`.
#[inline]
pub(crate) fn classify_again(of: Class, name: &[u8], value: &[u8]) -> Class {
    match of {
        // The value may have been the problem; and whether `te` is allowed depends on its value.
        Class::Bad(_) => classify(name, value),
        Class::Plain if name == b"te" => classify(name, value),
        _ if is_value(value) => of,
        _ => Class::Bad(StreamError::BadValue),
    }
}

/// Whether a value is allowed: no control bytes, no white space at an end.
#[inline]
pub(crate) fn is_value(value: &[u8]) -> bool {
    let padded = matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']);
    !padded && check_text(value).is_ok()
}

/// Headers that belong to a connection of HTTP/1.1 (section 8.2.2).
pub(super) fn is_connection_header(name: &[u8]) -> bool {
    matches!(name, b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade")
}

/// A token without upper case.
#[inline]
pub(super) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&b| NAME[usize::from(b)])
}

/// Bytes that are allowed in a name.
static NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = is_token_byte(b) && !b.is_ascii_uppercase();
        byte += 1;
    }
    table
};
