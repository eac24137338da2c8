//! `weir history` of copies of a recorded run: what a program reads of it, with which status it ends, and what it refuses.
//! `scripts/history-real` makes many real runs.

use crate::common;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::common::{Ended, recorded, run, scratch};
use serde_json::Value;

/// A run, in the target folder: a static is never dropped.
static RUN: LazyLock<PathBuf> = LazyLock::new(|| {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("history");
    let _ = fs::remove_dir_all(&out);
    recorded::write(&out, 1);
    out
});

/// So many copies, one a day: nginx with a rate that is `speed` of what it was, and about one per cent off from run to run.
fn copies(folder: &Path, count: usize, speed: impl Fn(usize) -> f64) {
    for day in 0..count {
        let own = folder.join(format!("day-{day:02}"));
        fs::create_dir_all(own.join("trials")).expect("made");
        fs::copy(RUN.join("run.toml"), own.join("run.toml")).expect("copied");
        let text = fs::read_to_string(RUN.join("environment.json")).expect("read");
        let mut environment: Value = serde_json::from_str(&text).expect("JSON");
        environment["started"] = format!("2026-03-{:02}T01:00:00Z", day + 1).into();
        fs::write(own.join("environment.json"), environment.to_string()).expect("written");
        for (trial, mut measurement) in common::measurements(&RUN) {
            let nginx = measurement["case"]["product"] == "nginx";
            let noise = 1.0 + 0.01 * (((day * 5) % 7) as f64 / 3.0 - 1.0);
            measurement["load"]["rate"] = if nginx { 10_000.0 * speed(day) * noise } else { 20_000.0 }.into();
            common::balance(&mut measurement);
            measurement["verdict"] = "valid".into();
            let own = own.join("trials").join(trial.file_name().expect("a name"));
            fs::create_dir_all(&own).expect("made");
            fs::write(own.join("measurement.json"), measurement.to_string()).expect("written");
        }
    }
}

fn history(folder: &Path, more: &[&str]) -> Ended {
    run(&[&["history", folder.to_str().expect("UTF-8"), "--numbers", "capacity", "--busy"], more].concat())
}

#[test]
fn a_loss_in_the_newest_runs_fails_and_says_from_which_run_on() {
    let scratch = scratch();
    copies(scratch.path(), 20, |day| if day < 14 { 1.0 } else { 0.95 });
    let ended = history(scratch.path(), &[]);
    ended.expect(1);
    let said = ended.stdout.replace('\n', " ");
    assert!(said.contains("nginx tuned, tiny, capacity: 4.8 %") && said.contains("slower from day-14 on"), "{said}");
    assert!(!said.contains('\u{1b}'), "colour, and no terminal");
    let ended = history(scratch.path(), &["--json"]);
    assert!(ended.expect(1).contains("alarm: nginx tuned"), "{}", ended.stderr);
    let json = ended.json();
    let nginx = json["series"].as_array().expect("series").iter().find(|one| one["product"] == "nginx").expect("nginx");
    assert_eq!(
        (&json["schema"], &nginx["metric"], &nginx["changes"][0]["at"]),
        (&1.into(), &"capacity".into(), &14.into())
    );
    // Known for long, not asked about, too small to count, or better when read backwards: no failure.
    history(scratch.path(), &["--newest", "5"]).expect(0);
    history(scratch.path(), &["--fail-on", "never"]).expect(0);
    history(scratch.path(), &["--least", "10%"]).expect(0);
}

#[test]
fn a_gain_and_no_change_are_no_failure() {
    let scratch = scratch();
    let (gain, level) = (scratch.path().join("gain"), scratch.path().join("level"));
    copies(&gain, 20, |day| if day < 14 { 1.0 } else { 1.06 });
    copies(&level, 20, |_| 1.0);
    let ended = history(&gain, &[]);
    ended.expect(0);
    assert!(ended.stdout.contains("better"), "{}", ended.stdout);
    history(&gain, &["--fail-on", "any"]).expect(1);
    let ended = history(&level, &["--fail-on", "any"]);
    ended.expect(0);
    assert!(ended.stdout.contains("No change found in 1 number."), "{}", ended.stdout);
    let page = scratch.path().join("pages/history.html");
    let ended = history(&gain, &["--html", page.to_str().expect("UTF-8")]);
    ended.expect(0);
    assert!(ended.stdout.contains("Page: ") && page.is_file(), "{}", ended.stdout);
    assert!(page.with_file_name("charts").join("history-1-runs.csv").is_file());
}

#[test]
fn bad_input_is_refused_with_what_would_be_right() {
    let scratch = scratch();
    copies(scratch.path(), 1, |_| 1.0);
    let empty = scratch.path().join("empty");
    fs::create_dir(&empty).expect("made");
    let refused = |folder: &Path, more: &[&str], words: &[&str]| {
        let ended = history(folder, more);
        let said = ended.expect(2);
        assert!(words.iter().all(|word| said.contains(word)), "{more:?}: not all of {words:?} in:\n{said}");
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
    };
    refused(&empty, &[], &["it is no run, and there is none in it", "expected: a folder that `weir run` made"]);
    refused(&empty.join("x"), &[], &["there is no such folder"]);
    refused(scratch.path(), &["--by", "commit"], &["--by", "kernel"]);
    refused(scratch.path(), &["--numbers", "capcity"], &["did you mean \"capacity\"?"]);
    refused(scratch.path(), &["--least", "lots"], &["such as 2"]);
    refused(scratch.path(), &["--newest", "0"], &["--newest"]);
    refused(scratch.path(), &["--products", "ngnix"], &["did you mean \"nginx\"?"]);
    // A single run is no error: there is nothing to say of it yet.
    let ended = history(scratch.path(), &[]);
    ended.expect(0);
    assert!(ended.stdout.contains("Nothing can be claimed"), "{}", ended.stdout);
}
