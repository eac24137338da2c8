//! Made-up runs that several modules read and none writes to.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::common;

/// A made-up run, written once for all tests, which only read it. In the target folder: a static is never dropped.
fn written(name: &str, write: fn(&Path)) -> PathBuf {
    let run = Path::new(env!("CARGO_TARGET_TMPDIR")).join("made").join(name);
    let _ = fs::remove_dir_all(&run);
    write(&run);
    run
}

pub static RUN: LazyLock<PathBuf> = LazyLock::new(|| written("2026-01-02T03-04-05-trees", common::write_run));

/// A run of series, a search and a fixed number of requests.
pub static CURVES: LazyLock<PathBuf> = LazyLock::new(|| written("2026-01-02T03-04-05-curves", common::write_curves));
