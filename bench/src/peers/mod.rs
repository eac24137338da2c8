//! Load generators and origins run in turn, and what they cost compared.
//!
//! The client is pinned to one CPU and the server to another. Every round runs every case once, in random order. CPU
//! is what the kernel says that exactly that process used; requests are what the client says it did.
//!
//! It does not know how to install anything.

pub mod busy;
pub mod capture;
pub mod cases;
pub mod certificate;
pub mod facts;
pub mod fill;
pub mod many;
pub mod output;
pub mod process;
pub mod profile;
pub mod ratio;
pub mod record;
pub mod results;
pub mod run;
pub mod server;
pub mod targets;
pub mod tool;
