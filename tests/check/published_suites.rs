//! The suites that repeat published benchmarks, each carried out with what a machine has.

use std::path::Path;
use std::time::Duration;

use weir_model::suite::{LoadKind, Scale, Series};

use crate::common::{
    catalogue, made_up, measurements, nothing_left, on_a_shared_machine, run, run_within, scratch, suite, weir,
};

/// Those of proxies. The one of key-value stores, juno, has no product that every machine has.
const SUITES: [&str; 4] = ["monolake", "easegress", "spring-cloud-gateway", "loggly"];

/// Products that are had everywhere: from the system's packages and from wheels.
const HAD: [&str; 6] = ["direct", "nginx", "haproxy", "caddy", "envoy", "traefik"];

/// Each suite in seconds, with the products that are had everywhere. What is not had is left out and said.
#[test]
fn each_suite_can_be_carried_out() {
    for name in SUITES.into_iter().chain(["curves"]) {
        on_a_shared_machine(|folder| can_be_carried_out(name, &folder.join("run")));
    }
}

fn can_be_carried_out(name: &str, out: &Path) {
    let suite = catalogue().suite(name).expect("valid");
    let products: Vec<&str> =
        HAD.into_iter().filter(|had| suite.entries.iter().any(|entry| entry.product == *had)).collect();
    let only = format!("product={}", products.join(","));
    let mut args = vec!["run", name, "--scale", "smoke", "--yes", "--quiet", "--json", "--only", &only];
    // Every workload and load once: the profiles differ in what the products do, and not in what weir does.
    let profile = format!("as-published-{name}");
    if name != "curves" {
        args.extend(["--profile", &profile]);
    }
    args.extend(["--out", out.to_str().expect("UTF-8")]);
    let ended = match products.as_slice() {
        // The gateways are none of these, so that no product has the published profile.
        ["direct"] => {
            run(&args.iter().copied().filter(|arg| *arg != "--profile" && *arg != profile).collect::<Vec<_>>())
        }
        _ => run_within(&mut weir(&args), Duration::from_secs(180)),
    };
    nothing_left(out, Duration::from_secs(2));
    let (scaled, _) = suite.at_scale(Scale::Smoke);
    ended.expect(0);
    let measured = measurements(out);
    assert!(!measured.is_empty(), "{name}");
    for (folder, m) in &measured {
        assert!(m["error"].is_null(), "{}: {}", folder.display(), m["error"]);
        let load = scaled.load(m["case"]["load"].as_str().expect("a name")).expect("of the suite");
        let points = m["points"].as_array().map_or(0, Vec::len);
        let expected = if load.series == Series::Once { 0 } else { load.series.points() as usize };
        assert_eq!(points, expected, "{}", folder.display());
        if let LoadKind::Count { requests } = load.kind {
            assert_eq!(m["load"]["total"]["sent"], requests, "{}", folder.display());
        }
    }
}

/// A suite whose product nobody can get runs its others, and says so; asked to be strict, or for that product by name, it
/// runs nothing.
#[test]
fn what_a_machine_lacks_of_a_suite_is_skipped_and_said() {
    let scratch = scratch();
    let (library, out) = (scratch.path().join("library"), scratch.path().join("run"));
    std::fs::create_dir_all(library.join("products/lacking")).expect("made");
    std::fs::create_dir_all(library.join("suites")).expect("made");
    let own = "[[install]]\nmethod = \"own\"\nwhere = \"https://example.com/\"\nabout = \"x\"\n";
    std::fs::write(library.join("products/lacking/product.toml"), made_up("Lacking", "tuned", own)).expect("written");
    let head = "title = \"t\"\nblocks = 1\nproducts = [\"direct\", \"nginx\", \"lacking\"]\nprofile = \"tuned\"";
    let load = "name = \"capacity\"\nkind = \"closed\"\nconnections = 2\nwarmup = \"100ms\"\nduration = \"200ms\"";
    std::fs::write(library.join("suites/small.toml"), suite(head, load)).expect("written");
    let (library, out_text) = (library.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
    let with = |more: &[&str]| run(&[&["run", "small", "--library", library, "--out", out_text], more].concat());
    run(&["products", "show", "lacking", "--library", library, "--yes"]).expect(0);
    for more in [["--strict", "--quiet"], ["--products", "direct,lacking"]] {
        let ended = with(&more);
        assert!(ended.expect(3).contains("lacking is not installed"), "{}", ended.stderr);
        assert!(!out.exists(), "nothing was started");
    }
    let ended = with(&[]);
    assert!(ended.expect(0).contains("left out: lacking is not installed"), "{}", ended.stderr);
    assert_eq!(measurements(&out).len(), 2);
    // With nothing but the baseline left there is nothing to say.
    let alone = run(&["run", "small", "--library", library, "--only", "product=direct,lacking", "--dry-run"]);
    assert!(alone.expect(3).contains("there is no product to measure"), "{}", alone.stderr);
    let shown = run(&["suites", "show", "small", "--library", library]);
    shown.expect(0);
    assert!(shown.stdout.contains("# left out: lacking is not installed"), "{}", shown.stdout);
}
