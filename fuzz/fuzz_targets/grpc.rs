//! Any bytes into the reader of messages of gRPC; what must hold is in the oracle.
#![no_main]

#[path = "../../crates/wire/tests/common/grpc_oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::messages(data));
