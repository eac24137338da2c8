//! Replays the corpora of the fuzz targets through the same oracles, with a stable toolchain and no fuzzer.

use crate::{
    grpc_oracle, http1_oracle, http2_oracle, http3_oracle, juno_oracle, memcached_oracle, proxy_protocol_oracle,
    redis_oracle, sse_oracle, tls_oracle, websocket_oracle,
};
use std::fs;
use std::path::Path;

/// A target, the least number of files that its corpus has, and what holds of each file.
type Target = (&'static str, usize, fn(&[u8]));

const TARGETS: [Target; 19] = [
    ("http1_responses", 30, http1_oracle::responses),
    ("http1_requests", 30, http1_oracle::requests),
    ("http2_client", 30, http2_oracle::client),
    ("http2_server", 30, http2_oracle::server),
    ("hpack", 30, http2_oracle::hpack),
    ("http3_client", 30, http3_oracle::client),
    ("http3_server", 30, http3_oracle::server),
    ("qpack", 20, http3_oracle::qpack),
    ("redis_replies", 30, redis_oracle::replies),
    ("redis_requests", 30, redis_oracle::requests),
    ("juno", 30, juno_oracle::check),
    ("memcached_replies", 30, memcached_oracle::replies),
    ("memcached_requests", 30, memcached_oracle::requests),
    ("proxy_protocol", 5, proxy_protocol_oracle::proxy_protocol),
    ("grpc", 5, grpc_oracle::messages),
    ("websocket", 5, websocket_oracle::frames),
    ("sse", 5, sse_oracle::events),
    ("tls_client", 20, tls_oracle::client),
    ("tls_server", 20, tls_oracle::server),
];

#[test]
fn every_file_of_every_corpus_holds() {
    for (target, least, check) in TARGETS {
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
        assert!(count >= least, "only {count} files in {}: is the corpus whole?", folder.display());
    }
}
