//! The kinds of load beyond one closed or open window, with real products: fixed numbers of requests, series against one
//! running product, searches, and warming up until steady. Asserts on what the records say of each other, never on a rate.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::common::{
    measurements, nothing_left, on_a_shared_machine, processes_touching, run_within, scratch, signal, until,
    wait_within, weir,
};
use rustix::process::Signal;
use serde_json::Value;

const HEAD: &str = r#"
[suite]
title = "Kinds of load"
question = "Do all kinds of load work?"
blocks = 1
products = ["direct", "nginx"]
profile = "tuned"

[[workload]]
name = "tiny"
path = "/bytes/128"
expect = { status = 200, size = 128 }
"#;

/// What need not be asked without a product, too.
const PROXIED: &str = r#"
loads = ["counted", "rounds", "curve"]

[[workload]]
name = "small"
path = "/bytes/1024"
expect = { status = 200, size = 1024 }
loads = ["limited", "wide", "best", "warmed"]
products = ["nginx"]
"#;

const LOADS: &str = r#"
[[load]]
name = "counted"
kind = "count"
requests = 500
connections = 8
warmup = "0s"
duration = "20s"

[[load]]
name = "limited"
kind = "count"
requests = 900000000
connections = 8
warmup = "0s"
duration = "1s"

[[load]]
name = "rounds"
kind = "closed"
rounds = 3
connections = 8
warmup = "200ms"
duration = "1s"

[[load]]
name = "curve"
kind = "open"
rate = { share = 1.0, of = "own", load = "rounds" }
shares = [0.1, 4.0]
connections = 8
warmup = "200ms"
duration = "1s"
timeout = "2s"

[[load]]
name = "wide"
kind = "closed"
connection_counts = [1, 6]
connections = 6
warmup = "200ms"
duration = "1s"

[[load]]
name = "best"
kind = "search"
objective = "p99<500ms, errors<1%"
connections = 8
warmup = "100ms"
duration = "500ms"

[[load]]
name = "warmed"
kind = "closed"
connections = 8
steady = "6s"
warmup = "200ms"
duration = "1s"
"#;

fn suite(scratch: &Path, loads: &str) -> PathBuf {
    let path = scratch.join("series.toml");
    std::fs::write(&path, format!("{HEAD}{loads}")).expect("written");
    path
}

#[test]
fn every_kind_of_load_leaves_records_that_agree() {
    on_a_shared_machine(|scratch| {
        let out = scratch.join("run");
        let suite = suite(scratch, &format!("{PROXIED}{LOADS}"));
        let args = ["run", text(&suite), "--yes", "--scale", "full", "--seed", "5", "--out", text(&out)];
        let ended = run_within(&mut weir(&args), Duration::from_secs(300));
        // A machine that is too busy for a search has an error row, and weir says so.
        assert!(matches!(ended.code(), Some(0 | 1)), "{}", ended.stderr);
        nothing_left(&out, Duration::from_secs(2));
        let all = measurements(&out);
        assert_eq!(all.len(), 3 * 2 + 4, "{}", ended.stderr);
        for (folder, m) in &all {
            assert!(m["case"]["load"] == "best" || m["error"].is_null(), "{}: {}", folder.display(), m["error"]);
            match m["case"]["load"].as_str().expect("a name") {
                "counted" => counted(m),
                "limited" => limited(m),
                "rounds" => drop(series(folder, m, &[8, 8, 8])),
                "curve" => curve(folder, m),
                "wide" => drop(series(folder, m, &[1, 6])),
                "best" => best(folder, m),
                "warmed" => warmed(folder, m),
                other => panic!("{other}"),
            }
        }
    });
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn finding<'m>(of: &'m Value, check: &str) -> Option<&'m Value> {
    of["findings"].as_array().expect("findings").iter().find(|finding| finding["check"] == check)
}

/// What the client sent reached the origin, all of it and nothing else, and every byte came back; but for what the client gave
/// up in flight, of which nobody knows.
fn balanced(of: &Value) {
    let total = &of["load"]["total"];
    let number = |value: &Value| value.as_u64().expect("a number");
    let answered: u64 = total["statuses"].as_object().expect("statuses").values().map(number).sum();
    let (sent, reached) = (number(&total["sent"]), number(&of["origin"]["requests"]));
    assert!((answered..=sent).contains(&reached), "requests are conserved: {answered} of {sent}, {reached}");
    if answered == sent {
        assert_eq!(total["body_bytes"], of["origin"]["body_bytes_out"], "bytes are conserved");
        assert_eq!(of["load"]["window"]["errors"], serde_json::json!({}));
    } else {
        assert!(sent - answered <= number(&of["load"]["streams"]) * number(&total["connections"]), "{total}");
    }
    assert!(number(&of["load"]["window"]["right_in_window"]) > 0);
}

fn counted(m: &Value) {
    balanced(m);
    assert_eq!(m["load"]["total"]["sent"], 500);
    assert_eq!(m["load"]["window"]["right"], 500, "none of them is warm-up");
    assert!(finding(m, "count").is_none());
    assert!(m.get("points").is_none(), "it is no series");
}

fn limited(m: &Value) {
    balanced(m);
    let found = finding(m, "count").expect("the time was over first");
    assert_eq!(found["severity"], "note");
    assert!(found["message"].as_str().expect("text").contains("of 900000000 requests"), "{found}");
}

/// Every point is whole and by itself; the last is the trial's own.
fn series(folder: &Path, m: &Value, connections: &[u64]) -> Vec<Value> {
    let points = m["points"].as_array().expect("points").clone();
    let numbered: Vec<u64> = points.iter().filter_map(|point| point["point"].as_u64()).collect();
    assert_eq!(numbered, (1..=connections.len() as u64).collect::<Vec<_>>());
    let seen: Vec<u64> = points.iter().filter_map(|point| point["connections"].as_u64()).collect();
    assert_eq!(seen, connections);
    for point in &points {
        balanced(point);
        assert_eq!(point["load"]["window"]["connections"].as_u64().or(Some(0)), Some(0), "all up before the window");
        let folder = match point["point"].as_u64() {
            Some(k) if k < connections.len() as u64 => folder.join(format!("point-{k}")),
            _ => folder.to_owned(),
        };
        for file in ["latency.hlog", "load.csv", "resources.csv", "load-order.json", "observer.json"] {
            assert!(folder.join(file).metadata().is_ok_and(|f| f.len() > 0), "{}: {file}", folder.display());
        }
    }
    let last = points.last().expect("a point");
    for key in ["load", "origin", "usage"] {
        assert_eq!(m[key], last[key], "{key} is the last point's");
    }
    assert!(!folder.join(format!("point-{}", connections.len())).exists());
    points
}

fn curve(folder: &Path, m: &Value) {
    let points = series(folder, m, &[8, 8]);
    let offered: Vec<f64> = points.iter().filter_map(|point| point["offered_rate"].as_f64()).collect();
    assert!((offered[1] / offered[0] - 40.0).abs() < 1e-6, "{offered:?}");
    let found = finding(&points[1], "offered-load").expect("four times what it carries is not carried");
    assert_eq!(found["severity"], "note", "it is what was to be seen");
    assert_eq!(finding(m, "offered-load").expect("told of the trial, too")["severity"], "note");
}

fn best(folder: &Path, m: &Value) {
    let search = &m["search"];
    let probes = search["probes"].as_array().expect("probes");
    assert_eq!(probes[0]["kind"], "guess");
    assert_eq!(search["conditions"], serde_json::json!(["p99<500ms", "errors<1%"]));
    if !m["error"].is_null() {
        assert_eq!((&m["error"]["stage"], &m["verdict"]), (&"objective".into(), &"error".into()), "{}", m["error"]);
        let evidence = m["error"]["evidence"].as_str().expect("text");
        assert_eq!(evidence.lines().count(), probes.len(), "{evidence}");
        return;
    }
    // The counters are of the confirming trial alone, and so are the files and what vitals saw.
    balanced(m);
    assert_eq!((search["confirmed"].as_bool(), &search["rate"]), (Some(true), &m["load"]["offered_rate"]));
    assert!(search["confirmation"].is_null(), "it is the trial's load");
    let confirming = probes.iter().rfind(|probe| probe["kind"] == "confirm").expect("one of full length");
    assert_eq!(confirming["offered"], search["rate"]);
    let rows = std::fs::read_to_string(folder.join("load.csv")).expect("load.csv").lines().count();
    assert_eq!(rows, 1 + m["load"]["series"].as_array().expect("rows").len());
    assert!(m["usage"].as_array().is_some_and(|usage| usage.iter().any(|role| role["role"] == "client")));
    assert!(folder.join("latency.hlog").is_file() && folder.join("resources.csv").is_file());
}

/// Six seconds cannot show a level: the trial says so, and its counters are without the warming load.
fn warmed(folder: &Path, m: &Value) {
    balanced(m);
    assert_eq!(m["warmup"]["steady"], false);
    let seconds = m["warmup"]["seconds"].as_f64().expect("seconds");
    assert!((5.9..7.0).contains(&seconds), "{seconds}");
    assert_eq!(finding(m, "never-steady").expect("said")["severity"], "warning");
    assert_ne!(m["verdict"], "valid");
    assert!(folder.join("warm-up/load.csv").metadata().is_ok_and(|f| f.len() > 0));
}

const LONG_ROUNDS: &str = r#"
[[load]]
name = "rounds"
kind = "closed"
rounds = 3
connections = 4
warmup = "100ms"
duration = "1500ms"
"#;

/// Waits until the second round of a product's trial goes on.
fn until_in_second_round(out: &Path) {
    until("a second round of nginx", Duration::from_secs(60), || {
        let Ok(trials) = std::fs::read_dir(out.join("trials")) else { return false };
        trials.flatten().any(|trial| {
            let path = trial.path();
            let finished = path.join("measurement.json").exists();
            text(&path).contains("nginx") && path.join("point-2/client.log").exists() && !finished
        })
    });
}

#[test]
fn a_product_that_dies_in_the_second_round_leaves_the_first() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let suite = suite(scratch.path(), LONG_ROUNDS);
    let args = ["run", text(&suite), "--yes", "-q", "--products", "nginx", "--out", text(&out)];
    let mut child = weir(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("weir starts");
    until_in_second_round(&out);
    for (pid, _) in processes_touching(&out).iter().filter(|(_, args)| args.contains("nginx: master")) {
        signal(*pid, Signal::KILL);
    }
    assert_eq!(wait_within(&mut child, Duration::from_secs(60)).code(), Some(1));
    nothing_left(&out, Duration::from_secs(5));
    let all = measurements(&out);
    let (_, m) = all.first().expect("a row");
    assert_eq!((&m["verdict"], &m["error"]["stage"]), (&"error".into(), &"load".into()), "{m}");
    let points = m["points"].as_array().expect("what was measured before stands");
    assert_eq!(points.len(), 1);
    balanced(&points[0]);
    assert!(m["load"].is_null());
}

#[test]
fn ctrl_c_in_a_series_forgets_its_trial_and_resume_makes_it_again() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let suite = suite(scratch.path(), LONG_ROUNDS);
    // This seed has nginx first: no trial has ended then, and there is nothing to report.
    let child = weir(&["run", text(&suite), "--yes", "-q", "--seed", "1", "--out", text(&out)])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("weir starts");
    until_in_second_round(&out);
    signal(child.id(), Signal::INT);
    let ended = child.wait_with_output().expect("waited for");
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    nothing_left(&out, Duration::from_secs(5));
    assert_eq!(measurements(&out), [], "the trial is forgotten");
    run_within(&mut weir(&["run", "--resume", text(&out), "--yes"]), Duration::from_secs(120)).expect(0);
    let after = measurements(&out);
    assert_eq!(after.len(), 2);
    for (folder, m) in &after {
        series(folder, m, &[4, 4, 4]);
    }
}
