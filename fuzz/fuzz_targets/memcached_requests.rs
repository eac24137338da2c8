//! Any bytes into the server half of memcached's protocol, whole and cut; what must hold is in the oracle.
#![no_main]

#[path = "../../crates/wire/tests/common/messages_oracle.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod messages;

#[path = "../../crates/wire/tests/common/memcached_oracle.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::requests(data));
