//! Runs that something ends in the middle of a trial, and what has to be true of what they leave.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::common::{csv_rows, measurements, nothing_left, processes_touching, run_within, until, weir};

pub const HEAD: &str = r#"title = "To be killed"
blocks = 3
products = ["direct", "nginx"]
profile = "tuned""#;

pub const LOAD: &str = r#"name = "capacity"
kind = "closed"
connections = 16
warmup = "200ms"
duration = "1s""#;

pub const TRIALS: usize = 6;

pub fn start(out: &Path, suite: &Path) -> Child {
    weir(&["run", suite.to_str().expect("UTF-8"), "--yes", "--seed", "3", "--out", out.to_str().expect("UTF-8")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("weir starts")
}

/// Finished trials: their bytes, by folder.
pub fn whole(out: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    measurements(out)
        .into_iter()
        .map(|(folder, _)| {
            let bytes = std::fs::read(folder.join("measurement.json")).expect("read");
            (folder, bytes)
        })
        .collect()
}

/// Waits until two trials are finished and a third has a product that answers.
pub fn until_in_mid_trial(out: &Path) {
    until("two trials finished and a product in the third", Duration::from_secs(60), || {
        out.join("trials").is_dir()
            && measurements(out).len() >= 2
            && processes_touching(&out.join("trials"))
                .iter()
                .any(|(_, args)| args.contains("nginx") && !args.contains("weir"))
    });
}

pub fn resume_and_check(out: &Path, before: &BTreeMap<PathBuf, Vec<u8>>) {
    for (folder, bytes) in before {
        assert!(serde_json::from_slice::<serde_json::Value>(bytes).is_ok(), "{}", folder.display());
    }
    let ended =
        run_within(&mut weir(&["run", "--resume", out.to_str().expect("UTF-8"), "--yes"]), Duration::from_secs(120));
    ended.expect(0);
    let after = whole(out);
    assert_eq!(after.len(), TRIALS);
    unchanged(before, &after);
    let rows = csv_rows(out);
    let mut trials: Vec<u32> = rows.iter().map(|row| row["trial"].parse().expect("a number")).collect();
    trials.sort_unstable();
    assert_eq!(trials, (1..=TRIALS as u32).collect::<Vec<_>>(), "each trial has one row");
    assert!(out.join("report/report.html").is_file());
    nothing_left(out, Duration::from_secs(2));
}

/// Finished trials stay as they are.
pub fn unchanged(before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>) {
    for (folder, bytes) in before {
        assert_eq!(after.get(folder), Some(bytes), "{} was rewritten", folder.display());
    }
}

pub fn suite(scratch: &Path) -> PathBuf {
    let path = scratch.join("killed.toml");
    std::fs::write(&path, crate::common::suite(HEAD, LOAD)).expect("written");
    path
}
