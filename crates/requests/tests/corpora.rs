//! Replays the corpora of the fuzz targets `template` and `request_files` through their oracles, with a stable toolchain and no fuzzer.

use std::fs;
use std::path::Path;

#[path = "common/request_files_oracle.rs"]
mod request_files_oracle;
#[path = "common/template_oracle.rs"]
mod template_oracle;

#[test]
fn the_corpora_hold() {
    type Oracle = fn(&[u8]);
    let targets: [(&str, usize, Oracle); 2] =
        [("template", 25, template_oracle::template), ("request_files", 30, request_files_oracle::request_files)];
    for (target, least, oracle) in targets {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let mut count = 0;
        for file in files {
            let path = file.expect("a folder's entry").path();
            // Shown where a panic says what does not hold.
            println!("{}", path.display());
            oracle(&fs::read(&path).unwrap());
            count += 1;
        }
        assert!(count >= least, "only {count} files in {}: is the corpus whole?", folder.display());
    }
}
