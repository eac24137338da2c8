//! Any bytes as a result of another load generator; what must hold is in the oracle.
#![no_main]

#[path = "../../crates/compare/tests/common/outside_oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::check(data));
