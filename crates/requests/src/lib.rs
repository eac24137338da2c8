//! Sources of a load's requests: recordings of traffic, times, rows of a CSV file, and templates.
//!
//! Parsers take bytes, and refuse what they do not understand with the line, what was found and what is right. This crate
//! does not know files or flags, and sends no requests.

pub mod feed;
pub mod recorded;
pub mod replay;
pub mod template;
