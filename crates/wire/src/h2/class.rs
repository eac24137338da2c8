//! What a header means to HTTP/2 itself, and whether it can be one (RFC 9113 section 8.2).
//!
//! A class is found once, when a header is decoded or enters the table, and is then only looked at.

use super::Fault;
use crate::h1::chars::{check_text, is_token_byte, trim};

/// What kind of header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// One without a meaning here.
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
    /// One that no message may have.
    Bad(Fault),
}

/// The class of a header as it came.
pub(super) fn classify(name: &[u8], value: &[u8]) -> Class {
    if check_text(value).is_err() || trim(value).len() != value.len() {
        return Class::Bad(Fault::BadValue);
    }
    match name {
        b":method" => Class::Method,
        b":scheme" => Class::Scheme,
        b":authority" => Class::Authority,
        b":path" => Class::Path,
        b":status" => Class::Status,
        [b':', ..] => Class::Bad(Fault::PseudoHeader),
        b"content-length" => Class::ContentLength,
        b"host" => Class::Host,
        b"expect" => Class::Expect,
        b"te" if value != b"trailers" => Class::Bad(Fault::ConnectionHeader),
        _ if is_connection_header(name) => Class::Bad(Fault::ConnectionHeader),
        _ if is_name(name) => Class::Plain,
        _ => Class::Bad(Fault::BadName),
    }
}

/// Headers that say something about a connection of HTTP/1.1 (section 8.2.2).
pub(super) fn is_connection_header(name: &[u8]) -> bool {
    matches!(name, b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade")
}

/// A token without upper case.
pub(super) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&b| is_token_byte(b) && !b.is_ascii_uppercase())
}
