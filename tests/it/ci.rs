//! Files for CI services, read as the services read them: the examples for users, and weir's own workflows, which run the commands of
//! the Makefile and nothing else. `make check` carries out the examples' steps.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// As the README has it.
const INSTALL: &str = "cargo install --locked --git https://github.com/weir-bench/weir weir";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn githubs_example_installs_compares_and_comments() {
    let workflow = yaml("examples/ci/github.yml");
    assert_eq!(workflow["on"], "pull_request");
    let steps = workflow["jobs"]["duet"]["steps"].as_array().expect("steps");
    let named = |name: &str| steps.iter().find(|step| step["name"] == name).unwrap_or_else(|| panic!("no step {name}"));
    assert_eq!(named("Install weir")["run"], INSTALL);
    assert!(named("Comment")["if"].as_str().is_some_and(|when| when.starts_with("always()")), "also when it fails");
    assert_eq!(named("Compare")["env"]["BASE"], "${{ github.event.pull_request.base.sha }}");
}

#[test]
fn gitlabs_example_installs_and_keeps_what_it_made() {
    let job = yaml("examples/ci/gitlab.yml")["weir"].clone();
    assert_eq!(job["before_script"], serde_json::json!([INSTALL]));
    assert_eq!(job["artifacts"]["when"], "always");
    assert!(job["script"].is_array() && job["after_script"].is_array(), "{job:#}");
}

/// The names of what the Makefile makes.
fn targets() -> BTreeSet<String> {
    let makefile = read("Makefile");
    let phony = makefile.lines().find_map(|line| line.strip_prefix(".PHONY: ")).expect("names");
    phony.split(' ').map(str::to_owned).collect()
}

/// The commands of a workflow's jobs, in order.
fn commands(workflow: &Value) -> Vec<String> {
    let jobs = workflow["jobs"].as_object().expect("jobs").values();
    let steps = jobs.flat_map(|job| job["steps"].as_array().expect("steps"));
    steps.filter_map(|step| step["run"].as_str().map(str::to_owned)).collect()
}

#[test]
fn workflows_run_what_the_makefile_has() {
    let [test, check] = ["test", "check"].map(|name| yaml(&format!(".github/workflows/{name}.yml")));
    assert!(test["on"]["push"].is_object() || test["on"]["push"].is_null(), "on each push: {}", test["on"]);
    assert!(test["on"].as_object().is_some_and(|on| on.contains_key("push") && on.contains_key("pull_request")));
    assert_eq!(check["on"]["push"]["branches"], serde_json::json!(["main"]), "on each merge");
    assert!(check["on"]["schedule"][0]["cron"].is_string(), "by night");
    assert_eq!(commands(&test), ["make test"]);
    assert_eq!(commands(&check), ["make check"]);
    assert!(read(".ci/run").lines().any(|line| line == "make test"));
    let targets = targets();
    for name in ["test", "check", "nightly"] {
        assert!(targets.contains(name), "the Makefile makes no {name}");
        assert!(read("CONTRIBUTING.md").contains(&format!("`make {name}`")), "CONTRIBUTING.md names no make {name}");
    }
    // Nothing of GitHub's that is not named by its version.
    for workflow in [&test, &check] {
        for job in workflow["jobs"].as_object().expect("jobs").values() {
            assert_eq!(job["container"]["options"], "--privileged", "io_uring and namespaces");
            let uses = job["steps"].as_array().expect("steps").iter().filter_map(|step| step["uses"].as_str());
            assert!(uses.into_iter().all(|used| used.contains("@v")), "{job:#}");
        }
    }
}

/// Each module of the program `check` belongs to one part of `make check`.
#[test]
fn every_module_of_check_is_in_one_part() {
    let parts: toml::Table = read("tests/parts.toml").parse().expect("TOML");
    let mut named: Vec<String> = Vec::new();
    for (name, part) in &parts {
        assert!(
            part["about"].is_str() && part["seconds"].is_integer(),
            "{name} says what it shows and how long it takes"
        );
        let words = |key: &str| part.get(key).and_then(|value| value.as_array()).cloned().unwrap_or_default();
        assert!(!words("tests").is_empty() || !words("run").is_empty(), "{name} does something");
        named.extend(words("covers").iter().map(|module| module.as_str().expect("a name").to_owned()));
        let modules = words("tests").into_iter().filter_map(|line| {
            Some(line.as_str()?.strip_prefix("cli/check ")?.strip_suffix("::").expect("a module").to_owned())
        });
        named.extend(modules);
    }
    named.sort();
    let main = read("tests/check/main.rs");
    let modules =
        main.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).filter(|name| *name != "common");
    assert_eq!(named, modules.collect::<Vec<_>>());
}
