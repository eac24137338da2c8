//! Any bytes into the parser of templates, and what it accepts through the renderer; what must hold is in the oracle.
#![no_main]

#[path = "../../crates/requests/tests/common/template_oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::template(data));
