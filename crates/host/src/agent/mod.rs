//! The agent: weir on another host, spoken to over its standard input and output, and weir's side of that conversation.
//!
//! [`frame`] puts messages into frames with a checksum and a number, because transports cut streams short without saying so.
//! [`clock`] reads the far clock over the same channel, [`watchdog`] notices silence, and [`lease`] keeps a host to one run.
//! `weir agent` and the lab call this module. It does not know how the bytes travel: that is an argument vector
//! ([`crate::transport`]).

pub mod clock;
pub mod frame;
pub mod lease;
pub mod watchdog;
