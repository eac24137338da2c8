//! Replays the corpus of the fuzz target `request_files` through its oracle, with a stable toolchain and no fuzzer.

#[path = "common/request_files_oracle.rs"]
mod oracle;

use std::fs;
use std::path::Path;

#[test]
fn the_corpus_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/request_files");
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut count = 0;
    for file in files {
        let path = file.expect("a folder's entry").path();
        let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        eprintln!("{}", path.display());
        oracle::request_files(&bytes);
        count += 1;
    }
    assert!(count >= 6, "only {count} files in {}: is the corpus whole?", folder.display());
}
