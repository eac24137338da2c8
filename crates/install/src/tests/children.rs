//! Programs that are asked and programs that work: their words, their ends, and what they leave.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::child::{NoResponse, OnStop, RESPONSE_BYTES, ask, run};
use crate::{InstallError, Progress};
use weir_host::stop::Stop;

fn sh(script: &str) -> Vec<String> {
    ["/bin/sh", "-c", script].map(str::to_owned).to_vec()
}

#[test]
fn both_streams_are_heard() {
    let response = ask(&sh("echo out; echo err >&2; exit 3"), Duration::from_secs(30)).unwrap();
    assert_eq!(response, "out\n\nerr\n");
}

#[test]
fn a_flood_is_cut_off_and_ended() {
    let response = ask(&sh("exec yes"), Duration::from_secs(30)).unwrap();
    assert_eq!(response.len() as u64, RESPONSE_BYTES + 1);
}

#[test]
fn what_is_too_slow_dies_with_all_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let script = format!("sleep 600 & echo $! > '{}'; wait", pid_file.display());
    let limit = Duration::from_millis(500);
    assert!(matches!(ask(&sh(&script), limit), Err(NoResponse::TooSlow(l)) if l == limit));
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    let gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        // A zombie waits for whoever adopted it, and runs no more.
        stat.is_empty() || stat.contains(") Z ")
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    while !gone() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(gone(), "the grandchild still runs");
}

#[test]
fn a_failure_shows_the_command_and_its_last_lines() {
    let mut lines = Vec::new();
    let script = "for i in $(seq 39); do echo line $i; done; printf '10 %%\\r20 %%\\rline 40\\n'; exit 7";
    let mut notify = |progress: Progress<'_>| {
        if let Progress::Line(line) = progress {
            lines.push(line.to_owned());
        }
    };
    let limit = Duration::from_secs(30);
    let error = run(&sh(script), limit, OnStop::Kill, &Stop::new(), &mut notify).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("/bin/sh -c 'for i"), "{text}");
    assert!(text.contains("exit status 7") && text.contains("    line 40"), "{text}");
    assert!(!text.contains("line 25\n") && text.contains("line 26\n"), "{text}");
    assert_eq!(lines.len(), 40);
}

#[test]
fn what_cannot_be_started_says_so() {
    let limit = Duration::from_secs(30);
    let command = ["/nonexistent/x".to_owned()];
    let error = run(&command, limit, OnStop::Kill, &Stop::new(), &mut |_| ()).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
}

#[test]
fn who_wants_to_stop_is_heard_at_once_and_nothing_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let script = format!("echo $$ > '{}'; echo up; sleep 600 & wait", pid_file.display());
    let stop = Stop::new();
    let mut notify = |progress: Progress<'_>| {
        if progress == Progress::Line("up") {
            stop.set();
        }
    };
    let began = Instant::now();
    let ended = run(&sh(&script), Duration::from_secs(600), OnStop::Kill, &stop, &mut notify);
    assert!(matches!(ended, Err(InstallError::Interrupted)), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(300));
    let pid: i32 = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    let group = Pid::from_raw(pid).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while rustix::process::test_kill_process_group(group).is_ok() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    // Zombies of a group count as there until somebody reaps them, which in a container may be nobody.
    let left = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(left.is_empty() || left.contains(") Z "), "{left}");
}

#[test]
fn what_must_not_be_cut_off_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let done = dir.path().join("done");
    let stop = Stop::new();
    stop.set();
    let script = format!("sleep 0.3; echo whole > '{}'", done.display());
    let ended = run(&sh(&script), Duration::from_secs(60), OnStop::Wait, &stop, &mut |_| ());
    assert!(matches!(ended, Err(InstallError::Interrupted)), "{ended:?}");
    assert_eq!(std::fs::read_to_string(&done).unwrap(), "whole\n");
}
