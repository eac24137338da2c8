//! Replays the fuzz targets' corpus through the same oracle, with a stable toolchain and no fuzzer.

use crate::http1_oracle as oracle;
use crate::http2_oracle;
use crate::juno_oracle;
use crate::memcached_oracle;
use crate::redis_oracle;
use std::fs;
use std::path::Path;

/// Gives every file of a target's corpus to `check`.
fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut count = 0;
    for file in files {
        let path = file.expect("a folder's entry").path();
        let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        // The panic inside says what does not hold; this says of what.
        if let Err(panic) = std::panic::catch_unwind(|| check(&bytes)) {
            eprintln!("the file was {}", path.display());
            std::panic::resume_unwind(panic);
        }
        count += 1;
    }
    assert!(count >= 30, "only {count} files in {}: is the corpus whole?", folder.display());
}

#[test]
fn answers() {
    replay("http1_responses", oracle::responses);
}

#[test]
fn requests() {
    replay("http1_requests", oracle::requests);
}

#[test]
fn http2_client() {
    replay("http2_client", http2_oracle::client);
}

#[test]
fn http2_server() {
    replay("http2_server", http2_oracle::server);
}

#[test]
fn hpack() {
    replay("hpack", http2_oracle::hpack);
}

#[test]
fn redis_replies() {
    replay("redis_replies", redis_oracle::replies);
}

#[test]
fn redis_requests() {
    replay("redis_requests", redis_oracle::requests);
}

#[test]
fn juno() {
    replay("juno", juno_oracle::check);
}

#[test]
fn memcached_replies() {
    replay("memcached_replies", memcached_oracle::replies);
}

#[test]
fn memcached_requests() {
    replay("memcached_requests", memcached_oracle::requests);
}
