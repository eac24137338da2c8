//! Any bytes into the reader of headers of the PROXY protocol; what must hold is in the oracle.
#![no_main]

#[path = "../../crates/wire/tests/common/proxy_protocol_oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::proxy_protocol(data));
