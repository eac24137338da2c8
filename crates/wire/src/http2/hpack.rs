//! Header compression (RFC 7541).
//!
//! [`decode()`] with its [`Table`] reads the peer's blocks; [`Encoder`] writes blocks, and tracks the peer's table.
//! Both halves of a connection use them. This module knows the form of headers, and nothing of requests and
//! responses.

mod decode;
mod encode;
pub(crate) mod huffman;
mod statics;
mod table;

pub(super) use decode::{Decoded, decode};
pub(crate) use decode::{Gap, Reader};
pub(super) use encode::{Encoder, put_authority_name, put_content_length, put_name, put_path_name};
pub(crate) use encode::{Field, put_digits, put_integer, put_short_text, put_text};
pub(super) use table::{OVERHEAD, Table};

/// SETTINGS_HEADER_TABLE_SIZE before SETTINGS (RFC 9113 section 6.5.2); also the largest table used.
pub(super) const TABLE_SIZE: u32 = 4096;

#[cfg(test)]
mod tests;
