//! `weir duet` of real products: how one ends, what vitals see of both, and what it refuses. What a duet decides is in
//! `tests/world/tests/it/duet.rs`.

use crate::common;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::common::{Ended, run_within, scratch, text, weir};
use serde_json::Value;

/// Runs a duet without progress. Whatever else this machine does meanwhile does not matter here.
fn duet(out: &Path, args: &[&str]) -> Ended {
    let usual = ["--busy", "-q", "-y", "--out", text(out)];
    run_within(&mut weir(&[&["duet"], args, &usual].concat()), Duration::from_secs(240))
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
    let slices = common::measurements(&out);
    assert_eq!(slices.len() as u64, result["pairs"].as_u64().expect("a number") * 2);
    for (_, slice) in &slices {
        let beside = slice["owners"][0]["beside"].as_array().map(Vec::len);
        assert_eq!(beside, Some(3), "the other's client, product and origin: {:#}", slice["owners"]);
    }
    // It is a run like any other.
    let report = run_within(&mut weir(&["report", text(&out)]), Duration::from_secs(60));
    report.expect(0);
    assert!(report.stdout.contains("nginx (A)") && report.stdout.contains("nginx (B)"), "{}", report.stdout);
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
