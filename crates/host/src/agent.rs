//! The agent: weir on another host, spoken to over its standard input and output, and weir's side of that conversation.
//!
//! [`frame`] puts messages into frames with a checksum and a number, because transports cut streams short without saying so.
//! [`serve`] is the agent's side and [`remote`] weir's; [`process`] is `weir agent`, and [`connect`] starts it somewhere.
//! [`watchdog`] notices silence, [`clock`] reads the far clock over the same channel, [`lease`] keeps a host to one run, and [`clean`]
//! removes what killed agents left.
//! `weir agent` and the lab call this module. It does not know how the bytes travel: that is an argument vector
//! ([`crate::transport`]).

mod channel;
pub mod clean;
pub mod clock;
pub mod connect;
pub mod frame;
pub mod lease;
mod message;
pub mod process;
pub mod remote;
pub mod serve;
pub mod watchdog;

pub use message::Hello;

/// What both sides have to be.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
