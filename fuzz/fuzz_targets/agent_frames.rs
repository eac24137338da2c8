//! Any bytes as what an agent sends or receives; what must hold is in the oracle.
#![no_main]

#[path = "../../crates/host/tests/common/frames_oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::check(data));
