//! TLS, both halves: against each other in memory, and against OpenSSL.
//!
//! What a peer may send after the handshake is tested beside the code, for it takes the peer's keys.

mod abuse;
mod agreement;
mod certificates;
mod openssl;
mod pair;
mod properties;
mod resumption;
