//! TLS 1.2 and 1.3 as a sans-IO session, client and server half: bytes of the wire in, bytes for the wire and plaintext out.
//!
//! The handshake is rustls's. When it is done its keys and counters are taken out, rustls's buffers are freed, and the
//! records are opened and sealed here, in the caller's buffers: a connection that waits holds keys and no buffers, and a
//! record costs no allocation. What comes after a handshake (tickets, key updates, alerts) is handled here as well.
//!
//! ```text
//! ClientOptions / ServerOptions ──new──▶ ClientConfig / ServerConfig   (once a load; `for_thread` once a thread)
//!                                              │
//!                     Session::client / Session::server                (once a connection)
//!                                              │
//!        start ▶ out     next(input, scratch, out) ▶ Ready, Plain(range)…, Closed      write(plain, out)
//! ```
//!
//! This module does not know sockets, files, clocks or threads: it is given PEM texts and slices.

mod alert;
mod config;
mod error;
mod handshake;
mod identity;
mod keys;
mod names;
mod options;
mod pending;
mod post_handshake;
mod records;
mod scratch;
mod session;
#[cfg(test)]
mod tests;
mod tickets;
mod verify;

pub use config::{ClientConfig, ServerConfig, ServerName};
pub use error::{TlsError, TlsErrorKind};
pub use names::{groups, suites};
pub use options::{ClientAuth, ClientOptions, Identity, KeyKind, ServerOptions, Version};
pub use scratch::Scratch;
pub use session::{Negotiated, Session, TlsEvent};
