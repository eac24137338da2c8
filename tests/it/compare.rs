//! `weir compare` of recorded runs: what a program reads of it, with which status it ends, and what it refuses.

use crate::common;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::common::{Ended, recorded, run, scratch, text};
use serde_json::Value;

/// Two runs of the same, in the target folder: a static is never dropped.
static RUNS: LazyLock<[PathBuf; 2]> = LazyLock::new(|| {
    ["before", "after"].map(|name| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compare").join(name);
        let _ = fs::remove_dir_all(&out);
        recorded::write(&out, 3);
        out
    })
});

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

/// Rates that no machine's mood is in: 10,000, about one per cent apart by block, times `speed` for all but the direct path.
fn steady(measurement: &mut Value, speed: f64) {
    undisturbed(measurement);
    let block = measurement["block"].as_f64().expect("a block");
    let speed = if measurement["case"]["product"] == "direct" { 2.0 } else { speed };
    measurement["load"]["rate"] = (10_000.0 * speed * (1.0 + 0.01 * ((block * 7.0) % 3.0))).into();
    common::balance(measurement);
}

#[test]
fn two_runs_are_compared() {
    let scratch = scratch();
    let [before, after] = ["before", "after"].map(|name| scratch.path().join(name));
    copy(&RUNS[0], &before, undisturbed);
    copy(&RUNS[1], &after, undisturbed);
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

#[test]
fn a_run_compared_with_itself_has_no_alarm() {
    let [run, _] = &*RUNS;
    let all = ["capacity -0%", "p50 +0%", "p99 +0%", "cpu +0%", "memory +0%"];
    let flags: Vec<&str> = all.iter().flat_map(|condition| ["--fail-if", condition]).collect();
    let ended = compare(run, run, &[&flags[..], &["--json", "--busy"]].concat());
    ended.expect(0);
    assert_eq!(ended.json()["differences"], serde_json::json!([]));
    assert!(ended.json()["remarks"][0].as_str().is_some_and(|remark| remark.contains("the same run")));
}

#[test]
fn a_run_with_less_capacity_is_an_alarm() {
    let scratch = scratch();
    let (before, after) = (scratch.path().join("before"), scratch.path().join("after"));
    copy(&RUNS[0], &before, |measurement| steady(measurement, 1.0));
    copy(&RUNS[1], &after, |measurement| steady(measurement, 0.8));
    let ended = compare(&before, &after, &["--fail-if", "capacity -5%", "--json"]);
    let said = ended.expect(1);
    assert!(said.contains("nginx tuned, tiny, capacity: 20 % slower [") && said.contains("capacity -5%"), "{said}");
    let judged = &ended.json()["conditions"][0];
    assert_eq!((&judged["condition"], &judged["alarms"][0]["product"]), (&"capacity -5%".into(), &"nginx".into()));
    // So bad, and no worse; so better, and no alarm; and what is not asked about is none.
    compare(&before, &after, &["--fail-if", "capacity -30%"]).expect(0);
    compare(&after, &before, &["--fail-if", "capacity -5%"]).expect(0);
    compare(&before, &after, &[]).expect(0);
    let shown = compare(&before, &after, &["--fail-if", "capacity -5%"]);
    shown.expect(1);
    assert!(shown.stdout.contains("ALARM (capacity -5%): nginx tuned, tiny, capacity"), "{}", shown.stdout);
    // From one block nothing can be claimed, and that is no success.
    let one = scratch.path().join("one");
    copy(&after, &one, |_| ());
    for (folder, measurement) in common::measurements(&one) {
        if measurement["block"] != 1 {
            fs::remove_dir_all(folder).expect("removed");
        }
    }
    let ended = compare(&before, &one, &["--fail-if", "capacity -5%"]);
    assert!(ended.expect(3).contains("could not be judged"), "{}", ended.stderr);
    assert!(ended.stdout.contains("Nothing can be claimed"), "{}", ended.stdout);
}

#[test]
fn another_workload_by_the_same_name_is_refused_with_the_reason() {
    let scratch = scratch();
    let other = scratch.path().join("other");
    copy(&RUNS[1], &other, |_| ());
    let toml = fs::read_to_string(other.join("run.toml")).expect("read");
    fs::write(other.join("run.toml"), toml.replace("/bytes/128", "/bytes/129").replace("= 128", "= 129"))
        .expect("written");
    let ended = compare(&RUNS[0], &other, &[]);
    ended.expect(0);
    let words = "the workload tiny is another one in each run: its path";
    assert!(ended.stdout.replace('\n', " ").contains(words), "{}", ended.stdout);
    compare(&RUNS[0], &other, &["--fail-if", "capacity -5%"]).expect(3);
}

#[test]
fn bad_input_is_refused_with_what_would_be_right() {
    let scratch = scratch();
    let empty = scratch.path().join("empty");
    fs::create_dir(&empty).expect("made");
    let [run, other] = &*RUNS;
    let refused = |before: &Path, after: &Path, more: &[&str], words: &[&str]| {
        let ended = compare(before, after, more);
        let said = ended.expect(2);
        assert!(words.iter().all(|word| said.contains(word)), "{more:?}: not all of {words:?} in:\n{said}");
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
    };
    refused(&empty, run, &[], &["not a run folder", "expected: a folder that"]);
    refused(run, &scratch.path().join("nothing"), &[], &["there is no such folder"]);
    // Flags are wrong whatever the runs are.
    refused(&empty, &empty, &["--fail-if", "capcity -5%"], &["--fail-if", "did you mean \"capacity\"?"]);
    refused(run, other, &["--fail-if", "capacity +5%"], &["gets better", "expected: capacity -5%"]);
    refused(run, other, &["--fail-if", "capacity"], &["no change with a sign", "'capacity -5%'"]);
    refused(run, other, &["--level", "95"], &["--level", "0.95"]);
    refused(run, other, &["--only", "workload=huge"], &["neither run has a workload \"huge\"", "expected: tiny"]);
    refused(run, other, &["--json", "--markdown"], &["cannot be used with"]);
    let renamed = scratch.path().join("renamed");
    copy(run, &renamed, |measurement| measurement["case"]["workload"] = "other".into());
    refused(run, &renamed, &[], &["no case in common", "nginx tuned: tiny capacity", "nginx tuned: other capacity"]);
}

/// Results of wrk and hey as recorded from those tools, beside one of weir's own.
#[test]
fn files_of_other_tools_stand_beside_weirs() {
    let origin = common::OriginUnderTest::start(&[]);
    let scratch = scratch();
    let url = origin.url("/bytes/128");
    let load = |name: &str, more: &[&str]| {
        let ended = run(&[&["load", "-q", &url, "-c", "4"], more].concat());
        ended.expect(0);
        let file = scratch.path().join(name);
        fs::write(&file, &ended.stdout).expect("written");
        file
    };
    let own = load("weir.json", &["-n", "400", "--json"]);
    let recorded = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/words/peers").join(name);
    for (name, tool, lack) in
        [("wrk.txt", "wrk", "coordinated omission"), ("hey.txt", "hey", "whole tenths of a millisecond")]
    {
        let ended = compare(&recorded(name), &own, &[]);
        ended.expect(0);
        let said = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [tool, "weir", "rate", "p99", "Nothing here is sure", lack] {
            assert!(said.contains(words), "{name}: no {words:?} in:\n{}", ended.stdout);
        }
        let ended = compare(&recorded(name), &own, &["--json"]);
        ended.expect(0);
        let json = ended.json();
        assert_eq!(
            (&json["claimable"], &json["before"]["tool"], &json["after"]["tool"]),
            (&false.into(), &tool.into(), &"weir".into())
        );
        assert!(json["numbers"].as_array().is_some_and(|numbers| numbers.len() >= 3), "{json:#}");
    }
    assert!(compare(&recorded("wrk.txt"), &own, &["--markdown"]).stdout.contains("| "));
    // One sample each: what cannot be judged is no success.
    let ended = compare(&recorded("wrk.txt"), &own, &["--fail-if", "p99 +10%"]);
    assert!(ended.expect(3).contains("could not be judged"), "{}", ended.stderr);
    // What weir writes as another tool, it reads as that tool's.
    for format in ["wrk", "hey", "k6", "wrk2"] {
        let amount: &[&str] = if format == "wrk2" { &["-d", "1s", "--rate", "200"] } else { &["-n", "400"] };
        let file = load(&format!("{format}.out"), &[&["--format", format], amount].concat());
        let ended = compare(&file, &own, &["--json"]);
        ended.expect(0);
        assert_eq!(ended.json()["before"]["tool"], format, "{}", ended.stdout);
    }
    let refused = |before: &Path, after: &Path, words: &[&str]| {
        let ended = compare(before, after, &[]);
        let said = ended.expect(2);
        assert!(words.iter().all(|word| said.contains(word)), "not all of {words:?} in:\n{said}");
    };
    let damaged = scratch.path().join("damaged.txt");
    let text = fs::read_to_string(recorded("wrk.txt")).expect("read");
    fs::write(&damaged, text.replace("Requests/sec: ", "Requests/sec: about ")).expect("written");
    refused(&damaged, &own, &["damaged.txt:", "Requests/sec: about", "expected: a number"]);
    refused(&own, scratch.path(), &["weir.json is a file", "is not", "two files with a result each"]);
}
