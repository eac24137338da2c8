//! `weir duet` of real products: how it ends, what it leaves on disk, and what it refuses.

use crate::common;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Ended, run_within, said, scratch, until, wait_within, weir};
use serde_json::Value;

/// Runs a duet without progress. Whatever else this machine does meanwhile does not matter here.
fn duet(out: &Path, args: &[&str]) -> Ended {
    let usual = ["--busy", "-q", "-y", "--out", text(out)];
    run_within(&mut weir(&[&["duet"], args, &usual].concat()), Duration::from_secs(240))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A library with a product like nginx that does more for each request.
fn dearer(library: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../products/nginx");
    let to = library.join("products/dearer");
    fs::create_dir_all(&to).expect("made");
    for entry in fs::read_dir(from).expect("its folder").flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
    let template = to.join("tuned.conf.j2");
    let work = "        if ($request_id ~ \"[g-z]$\") { set $slow 1; }\n".repeat(60);
    let conf = fs::read_to_string(&template).expect("read");
    let (before, after) = conf.split_once("        location /").expect("a location");
    fs::write(&template, format!("{before}{work}        location /{after}")).expect("written");
}

#[test]
fn a_short_duet_ends_by_its_budget_and_says_so() {
    let scratch = scratch();
    let out = scratch.path().join("duet");
    let ended = duet(&out, &["nginx", "nginx", "--budget", "6s", "--slice", "1s", "--fail-if", "cpu +0%"]);
    let told = ended.expect(3);
    assert!(told.contains("could not be judged"), "{told}");
    assert!(ended.stdout.contains("the budget ended") && ended.stdout.contains("[not known yet]"), "{}", ended.stdout);
    let result: Value = serde_json::from_slice(&fs::read(out.join("result.json")).expect("there")).expect("JSON");
    assert_eq!((&result["ended"], &result["error"]), (&"budget".into(), &Value::Null), "{result:#}");
    let pairs = result["pairs"].as_u64().expect("a number");
    assert!((1..6).contains(&pairs), "{result:#}");
    assert_eq!(result["changes"][0]["ratio"]["high"], Value::Null, "too few starts for a claim: {result:#}");
    // A slice of both a pair, each with its record; and both products of every start.
    let slices = common::measurements(&out);
    assert_eq!(slices.len() as u64, pairs * 2);
    for (pair, of_pair) in (1..).zip(slices.chunks(2)) {
        let of = |nth: usize| (of_pair[nth].1["block"].as_u64(), of_pair[nth].1["case"]["product"].as_str());
        let (first, second) = (of(0), of(1));
        assert_eq!((first.0, second.0), (Some(pair), Some(pair)));
        assert_ne!(first.1, second.1);
    }
    // Each had half of the time; its rate is that of this half.
    for (_, slice) in &slices {
        let load = &slice["load"];
        let number = |key: &str| load[key].as_f64().expect("a number");
        assert_eq!((&load["bursts"]["on_s"], number("window_s")), (&0.025.into(), 1.0), "{load:#}");
        let right = load["window"]["right_in_window"].as_f64().expect("a number");
        assert!((number("rate") / (2.0 * right) - 1.0).abs() < 1e-6, "{load:#}");
        let beside = slice["owners"][0]["beside"].as_array().map(Vec::len);
        assert_eq!(beside, Some(3), "the other's client, product and origin: {:#}", slice["owners"]);
    }
    assert_eq!(
        fs::read_dir(out.join("starts")).expect("starts").count() as u64,
        2 * result["starts"].as_u64().expect("n")
    );
    // It is a run like any other.
    let report = run_within(&mut weir(&["report", text(&out)]), Duration::from_secs(60));
    report.expect(0);
    assert!(report.stdout.contains("nginx (A)") && report.stdout.contains("nginx (B)"), "{}", report.stdout);
}

#[test]
fn a_product_that_costs_much_more_is_found_and_is_an_alarm() {
    let scratch = scratch();
    let (library, out) = (scratch.path().join("library"), scratch.path().join("duet"));
    dearer(&library);
    let flags = ["--library", text(&library), "--slice", "1s", "--budget", "3m", "--fail-if", "cpu +10%", "--json"];
    let ended = duet(&out, &[&["nginx", "dearer"], &flags[..]].concat());
    let told = ended.expect(1);
    assert!(told.contains("alarm: cpu +"), "{told}");
    let result = ended.json();
    assert_eq!((&result["ended"], &result["changes"][0]["metric"]), (&"sure".into(), &"cpu".into()), "{result:#}");
    assert!(result["changes"][0]["ratio"]["low"].as_f64().expect("a number") > 1.0, "{result:#}");
    assert!(result["took_s"].as_f64().expect("a number") < 170.0, "it did not wait for its budget: {result:#}");
}

#[test]
fn an_interrupted_duet_keeps_what_it_measured_and_leaves_nothing() {
    let scratch = scratch();
    let out = scratch.path().join("duet");
    let args = ["duet", "nginx", "nginx", "--slice", "500ms", "--busy", "-y", "--out", text(&out)];
    let mut child = weir(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir starts");
    let first = out.join("measurements.csv");
    until("a slice", Duration::from_secs(60), || fs::metadata(&first).is_ok_and(|file| file.len() > 1000));
    let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("asked to end");
    let clock = Instant::now();
    let status = wait_within(&mut child, Duration::from_secs(30));
    let told = said(&mut child);
    assert_eq!(status.code(), Some(130), "{told}");
    assert!(clock.elapsed() < Duration::from_secs(10) && told.contains("files go to"), "{told}");
    let result: Value = serde_json::from_slice(&fs::read(out.join("result.json")).expect("there")).expect("JSON");
    assert_eq!(result["ended"], "stopped", "{result:#}");
    assert!(!common::measurements(&out).is_empty());
}

#[test]
fn what_is_wrong_is_said_before_anything_starts() {
    let scratch = scratch();
    let out = scratch.path().join("duet");
    for (args, wanted) in [
        (&["nginx", "ngin"][..], "no product \"ngin\""),
        (&["nginx:fast", "nginx"], "no profile \"fast\""),
        (&["nginx", "nginx=/no/such"], "/no/such: cannot be used as"),
        (&["nginx", "nginx=/bin/true"], "/bin/true: cannot be used as"),
        (&["direct=/bin/true", "nginx"], "direct has no binary"),
        (&["nginx", "nginx", "--workload", "quick/huge"], "no workload \"huge\""),
        (&["nginx", "nginx", "--load", "fast"], "capacity, or requests a second"),
        (&["nginx", "nginx", "--fail-if", "p99 +5%"], "expected: cpu, capacity"),
        (&["nginx", "nginx", "--budget", "2s"], "--budget: a pair of slices takes about"),
        (&["nginx", "nginx", "--find", "3"], "per cent between 0.1% and 100%"),
        (&["nginx", "nginx", "--turn", "1ms"], "from 5ms to 30s, such as 25ms"),
        (&["nginx"], "<B>"),
    ] {
        let ended = duet(&out, args);
        let told = ended.expect(2);
        assert!(told.contains(wanted), "{args:?}: {told}");
        assert!(!out.exists(), "{args:?} left something");
    }
}
