//! Replays the corpus of the fuzz target `template` through its oracle, with a stable toolchain and no fuzzer.

#[path = "common/template_oracle.rs"]
mod oracle;

use std::fs;
use std::path::Path;

#[test]
fn the_corpus_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/template");
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut count = 0;
    for file in files {
        let path = file.expect("a folder's entry").path();
        let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        // The panic inside says what does not hold; this says of what.
        if let Err(panic) = std::panic::catch_unwind(|| oracle::template(&bytes)) {
            eprintln!("the file was {}", path.display());
            std::panic::resume_unwind(panic);
        }
        count += 1;
    }
    assert!(count >= 25, "only {count} files in {}: is the corpus whole?", folder.display());
}
