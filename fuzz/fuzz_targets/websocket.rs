//! Any bytes into the reader of frames of WebSocket; what must hold is in the oracle.
#![no_main]

#[path = "../../crates/wire/tests/common/websocket_oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::frames(data));
