//! Any bytes into TLS's client half: instead of a handshake, after one, sealed by a peer that misuses its keys, and changed
//! under way. What must hold is in the oracle.
#![no_main]

#[path = "../../crates/wire/tests/common/tls_oracle.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::client(data));
