//! Replays the corpus of the fuzz targets `tls_client` and `tls_server` through the same oracle, with a stable toolchain.

use crate::tls_oracle as oracle;
use std::fs;
use std::path::Path;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut count = 0;
    for file in files {
        let path = file.expect("a folder's entry").path();
        let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        if let Err(panic) = std::panic::catch_unwind(|| check(&bytes)) {
            eprintln!("the file was {}", path.display());
            std::panic::resume_unwind(panic);
        }
        count += 1;
    }
    assert!(count >= 20, "only {count} files in {}: is the corpus whole?", folder.display());
}

#[test]
fn clients() {
    replay("tls_client", oracle::client);
}

#[test]
fn servers() {
    replay("tls_server", oracle::server);
}
