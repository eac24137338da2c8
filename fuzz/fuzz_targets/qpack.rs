//! Any bytes into HTTP/3's header decoder, and what it read into the encoder; what must hold is in the oracle.
#![no_main]

#[path = "../../crates/wire/tests/common/http3_oracle.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::qpack(data));
