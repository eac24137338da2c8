//! Any bytes into the reader of server-sent events; what must hold is in the oracle.
#![no_main]

#[path = "../../crates/wire/tests/common/sse_oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::events(data));
