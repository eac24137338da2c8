//! TLS, both halves: against each other in memory, against OpenSSL, and by hand.

mod abuse;
mod after;
mod agreement;
mod certificates;
mod memory;
mod openssl;
mod pair;
mod properties;
mod resumption;
