//! TLS 1.2 and 1.3 as a sans-IO session, client and server half. It takes and writes bytes of the wire, and returns
//! plaintext.
//!
//! rustls does the handshake. When it is done, its keys and counters are extracted and its buffers are freed. Records
//! are then opened and sealed here, in the caller's buffers: a waiting connection holds keys and no buffers, and a
//! record costs no allocation. Messages after a handshake (tickets, key updates, alerts) are handled here as well.
//!
//! ```text
//! ClientOptions / ServerOptions ──new──▶ ClientConfig / ServerConfig   (once a load; `for_thread` once a thread)
//!                                              │
//!                     Session::client / Session::server                (once a connection)
//!                                              │
//!        start ▶ out     next(input, scratch, out) ▶ Ready, Plain(range)…, Closed      write(plain, out)
//! ```
//!
//! It does not know sockets, files, clocks or threads: it gets PEM texts and slices.

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
mod quic;
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
pub use options::{ClientAuth, ClientIdentity, ClientOptions, Identity, KeyKind, ServerOptions, Version};
pub use quic::{quic_alert, quic_error, quic_initial_suite, quic_negotiated};
pub use scratch::Scratch;
pub use session::{Negotiated, Session, TlsEvent};
