//! Any bytes into the parsers of files with requests: HAR files, access logs, lists and CSV files; what must hold is in the oracle.
#![no_main]

#[path = "../../crates/requests/tests/common/request_files_oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::request_files(data));
