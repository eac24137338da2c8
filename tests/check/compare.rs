//! `weir compare` of two runs that were measured just now.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::common::{self, Ended, run, run_within, scratch, weir};

/// Two runs of the same.
fn runs(folder: &Path) -> [PathBuf; 2] {
    ["first", "second"].map(|name| {
        let out = folder.join(name);
        let args = ["run", "quick", "--scale", "smoke", "--products", "direct,nginx", "--blocks", "3", "--yes", "-q"];
        let only = ["--only", "workload=tiny", "--only", "load=capacity", "--out", text(&out)];
        run_within(&mut weir(&[args.as_slice(), &only].concat()), Duration::from_secs(300)).expect(0);
        out
    })
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn compare(before: &Path, after: &Path, more: &[&str]) -> Ended {
    run(&[&["compare", text(before), text(after)], more].concat())
}

/// A copy of the run's records, with each measurement passed through `change`.
fn copy(from: &Path, to: &Path, change: impl Fn(&mut Value)) {
    fs::create_dir_all(to.join("trials")).expect("made");
    for file in ["run.toml", "environment.json"] {
        fs::copy(from.join(file), to.join(file)).expect("copied");
    }
    for (folder, mut measurement) in common::measurements(from) {
        change(&mut measurement);
        let own = to.join("trials").join(folder.file_name().expect("a name"));
        fs::create_dir_all(&own).expect("made");
        fs::write(own.join("measurement.json"), measurement.to_string()).expect("written");
    }
}

/// As on a machine of one's own: nothing spoilt a trial, nothing else used a CPU.
fn undisturbed(measurement: &mut Value) {
    measurement["verdict"] = "valid".into();
    measurement["findings"] = serde_json::json!([]);
}

#[test]
fn two_real_runs_are_compared() {
    let scratch = scratch();
    let runs = runs(scratch.path());
    let [before, after] = ["before", "after"].map(|name| scratch.path().join(name));
    copy(&runs[0], &before, undisturbed);
    copy(&runs[1], &after, undisturbed);
    let ended = compare(&before, &after, &["--json"]);
    ended.expect(0);
    let json = ended.json();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["level"], 0.95);
    let cases = json["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 2, "{json:#}");
    let nginx = cases.iter().find(|case| case["product"] == "nginx").expect("nginx");
    let metrics: Vec<&str> =
        nginx["changes"].as_array().expect("changes").iter().filter_map(|change| change["metric"].as_str()).collect();
    assert_eq!(metrics, ["capacity", "p50", "p99", "cpu", "memory"]);
    let capacity = &nginx["changes"][0];
    assert_eq!((&capacity["divided"], &capacity["ratio"]["n"]), (&Value::Bool(true), &3.into()), "{capacity:#}");
    let ratio = |key: &str| capacity["ratio"][key].as_f64().expect("a number");
    assert!(ratio("low") <= ratio("value") && ratio("value") <= ratio("high"), "{capacity:#}");
    // The same weir, nginx and machine: nothing of that is said to differ.
    for one in json["differences"].as_array().expect("differences") {
        assert_eq!(one["what"], "the doctor's findings", "{one}");
    }
    let shown = compare(&before, &after, &[]);
    shown.expect(0);
    assert!(shown.stdout.contains("nginx tuned") && shown.stdout.contains("capacity"), "{}", shown.stdout);
    assert!(!shown.stdout.contains('\u{1b}'), "colour, and no terminal");
    let page = compare(&before, &after, &["--markdown"]).stdout;
    assert!(page.starts_with("### ") && page.contains("| nginx tuned | tiny |"), "{page}");
}
