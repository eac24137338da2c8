//! Four trials of real programs: nothing and nginx, under a closed and an open load.

use std::time::Duration;

use crate::common::{csv_rows, measurements, nothing_left, records, run_within, scratch, suite, weir};

/// A closed load and an open one, whose rate no machine is too slow for.
const SECOND: &str = "name = \"closed\"\nkind = \"closed\"\nconnections = 8\nwarmup = \"200ms\"\nduration = \"1s\"\n\n[[load]]\n\
    name = \"open\"\nkind = \"open\"\nrate = 200\nconnections = 8\nwarmup = \"200ms\"\nduration = \"1s\"";

#[test]
fn four_trials_of_real_programs_leave_whole_records() {
    let scratch = scratch();
    let (file, out) = (scratch.path().join("suite.toml"), scratch.path().join("run"));
    let head = "title = \"Four\"\nblocks = 1\nproducts = [\"direct\", \"nginx\"]\nprofile = \"tuned\"\nseed = 7";
    std::fs::write(&file, suite(head, SECOND)).expect("written");
    let mut run = weir(&["run", "--scale", "full", "--yes", "--json", "--verbose", "--out"]);
    let ended = run_within(run.arg(&out).arg(&file), Duration::from_secs(60));
    ended.expect(0);
    nothing_left(&out, Duration::from_secs(2));
    let measured = measurements(&out);
    assert_eq!((measured.len(), csv_rows(&out).len()), (4, 4), "{}", ended.stderr);
    let lines = ended.stderr.lines().filter(|line| line.starts_with('[') && line.contains("/4] "));
    assert_eq!(lines.count(), 4, "a line for each trial: {}", ended.stderr);
    records::are_whole(&measured);
    records::are_described(&out, &measured[0].0);
    for (_, m) in measured.iter().filter(|(_, m)| m["case"]["load"] == "open") {
        assert_eq!(m["load"]["offered_rate"], 200.0, "{m:#}");
    }
    for file in ["run.toml", "environment.json", "plan.json", "report/report.html", "report/report.md"] {
        assert!(out.join(file).metadata().is_ok_and(|f| f.len() > 0), "{file}");
    }
}
