//! Header compression (RFC 7541).
//!
//! [`decode()`] with its [`Table`] reads what the peer wrote; [`Encoder`] writes, and knows what the peer's table holds.
//! Knows the form of headers, and nothing of requests and responses.

mod decode;
mod encode;
mod huffman;
mod statics;
mod table;

pub(super) use decode::{Reader, decode};
pub(super) use encode::{Encoder, Field, put_content_length, put_digits, put_name, put_path_name, put_text};
pub(super) use table::Table;

/// SETTINGS_HEADER_TABLE_SIZE before anything is said (RFC 9113 section 6.5.2); also the largest table made use of.
pub(super) const TABLE_SIZE: u32 = 4096;

#[cfg(test)]
mod tests;
