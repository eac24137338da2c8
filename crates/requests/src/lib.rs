//! Sources of a load's requests: lists of targets, recordings of traffic, times, rows of a CSV file, and templates.
//!
//! Parsers take bytes, and refuse what they do not understand with the line, what was found and what is right. This crate knows
//! neither files nor flags, and does not send requests.

pub mod feed;
pub mod recorded;
pub mod replay;
pub mod targets;
pub mod template;
