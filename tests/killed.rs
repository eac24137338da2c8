//! weir killed in the middle of a trial: nothing stays behind, finished trials are whole, `--resume` does the rest.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use common::{
    csv_rows, measurements, nothing_left, processes_touching, run_within, scratch, signal, until, wait_within, weir,
};
use rustix::process::Signal;

const HEAD: &str = r#"title = "To be killed"
blocks = 2
products = ["direct", "nginx", "haproxy"]
profile = "tuned""#;

const LOAD: &str = r#"name = "capacity"
kind = "closed"
connections = 16
warmup = "200ms"
duration = "1s""#;

const TRIALS: usize = 6;

fn start(out: &Path, suite: &Path) -> std::process::Child {
    weir(&["run", suite.to_str().expect("UTF-8"), "--yes", "--seed", "3", "--out", out.to_str().expect("UTF-8")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("weir starts")
}

/// Finished trials: their bytes, by folder.
fn whole(out: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    measurements(out)
        .into_iter()
        .map(|(folder, _)| {
            let bytes = std::fs::read(folder.join("measurement.json")).expect("read");
            (folder, bytes)
        })
        .collect()
}

/// Waits until two trials are finished and a third has a product that answers.
fn until_in_mid_trial(out: &Path) {
    until("two trials finished and a product in the third", Duration::from_secs(60), || {
        out.join("trials").is_dir()
            && measurements(out).len() >= 2
            && processes_touching(&out.join("trials"))
                .iter()
                .any(|(_, args)| (args.contains("nginx") || args.contains("haproxy")) && !args.contains("weir"))
    });
}

fn resume_and_check(out: &Path, before: &BTreeMap<PathBuf, Vec<u8>>) {
    for (folder, bytes) in before {
        assert!(serde_json::from_slice::<serde_json::Value>(bytes).is_ok(), "{}", folder.display());
    }
    let ended =
        run_within(&mut weir(&["run", "--resume", out.to_str().expect("UTF-8"), "--yes"]), Duration::from_secs(120));
    ended.expect(0);
    let after = whole(out);
    assert_eq!(after.len(), TRIALS);
    for (folder, bytes) in before {
        assert_eq!(after.get(folder), Some(bytes), "{} was rewritten", folder.display());
    }
    let rows = csv_rows(out);
    let mut trials: Vec<u32> = rows.iter().map(|row| row["trial"].parse().expect("a number")).collect();
    trials.sort_unstable();
    assert_eq!(trials, (1..=TRIALS as u32).collect::<Vec<_>>(), "each trial has one row");
    assert!(out.join("report/report.html").is_file());
    nothing_left(out, Duration::from_secs(2));
}

fn suite(scratch: &Path) -> PathBuf {
    let path = scratch.join("killed.toml");
    std::fs::write(&path, common::suite(HEAD, LOAD)).expect("written");
    path
}

#[test]
fn sigkill_leaves_nothing_and_resume_completes() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let mut child = start(&out, &suite(scratch.path()));
    until_in_mid_trial(&out);
    signal(child.id(), Signal::KILL);
    wait_within(&mut child, Duration::from_secs(5));
    nothing_left(&out, Duration::from_secs(5));
    let before = whole(&out);
    assert!((2..TRIALS).contains(&before.len()), "{} trials were finished", before.len());
    resume_and_check(&out, &before);
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_says_how_to_go_on() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let mut command =
        weir(&["run", suite(scratch.path()).to_str().expect("UTF-8"), "--yes", "--out", out.to_str().expect("UTF-8")]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir starts");
    until_in_mid_trial(&out);
    signal(child.id(), Signal::INT);
    let ended = child.wait_with_output().expect("waited for");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("weir run --resume"), "{said}");
    nothing_left(&out, Duration::from_secs(2));
    assert!(out.join("report/report.md").is_file(), "the report of what there is");
    let before = whole(&out);
    resume_and_check(&out, &before);
}

/// A supervisor that is killed itself takes its product with it, and the run goes on with an error row.
#[test]
fn a_killed_supervisor_takes_its_product_with_it() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let mut child = start(&out, &suite(scratch.path()));
    until_in_mid_trial(&out);
    let supervisor = processes_touching(&out.join("trials"))
        .into_iter()
        .find(|(_, args)| args.trim_end().ends_with("weir supervise"))
        .expect("a product in the middle of a trial has a supervisor");
    signal(supervisor.0, Signal::KILL);
    let status = wait_within(&mut child, Duration::from_secs(60));
    assert_eq!(status.code(), Some(1), "the run goes on and says that something failed");
    nothing_left(&out, Duration::from_secs(5));
    let errors: Vec<_> = measurements(&out).into_iter().filter(|(_, m)| m["verdict"] == "error").collect();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert_eq!(measurements(&out).len(), TRIALS);
}

/// A finished run is not run again, and one that is not what it was is not gone on with.
#[test]
fn resume_of_a_finished_run_reports_again_and_of_a_changed_one_is_refused() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let folder = out.to_str().expect("UTF-8");
    let only = ["--only", "workload=tiny", "--only", "load=capacity"];
    let args =
        [&["run", "quick", "--scale", "smoke", "--products", "direct", "--yes", "-q", "--out", folder][..], &only]
            .concat();
    run_within(&mut weir(&args), Duration::from_secs(60)).expect(0);
    let before = whole(&out);
    std::fs::remove_file(out.join("report/report.html")).expect("removed");
    let resume = || run_within(&mut weir(&["run", "--resume", folder, "--yes"]), Duration::from_secs(60));
    let ended = resume();
    let said = ended.expect(0);
    assert!(said.contains("of this run are finished; making its report again"), "{said}");
    assert!(out.join("report/report.html").is_file());
    assert_eq!(whole(&out), before);

    let suite = out.join("run.toml");
    let text = std::fs::read_to_string(&suite).expect("read");
    std::fs::write(&suite, text.replace("connections = ", "connections = 1")).expect("edited");
    let ended = resume();
    let said = ended.expect(2);
    assert!(said.contains("not as it was when the run began") && said.contains("undo the change"), "{said}");
    std::fs::write(&suite, text).expect("undone");
    resume().expect(0);
}
