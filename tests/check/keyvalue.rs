//! Key-value products, real ones: every answer is checked, faults are provoked, and what was lost is found.

use crate::common;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{run_suite, scratch, until};
use serde_json::Value;

/// Installing may build a program.
const WITHIN: Duration = Duration::from_secs(900);

fn run(suite: &str) -> Vec<(PathBuf, Value)> {
    run_suite(scratch().path(), suite, 0, WITHIN)
}

/// A finding of this check.
fn found<'a>(measurement: &'a Value, check: &str) -> Option<&'a Value> {
    measurement["findings"].as_array().expect("findings").iter().find(|finding| finding["check"] == check)
}

/// Products of every kind: none at all, stores, a proxy before a pool of weir's origins, and a quorum of three parts.
const EVERY_KIND: &str = r#"
[suite]
title = "Key-value products"
question = "Do they answer rightly?"
products = ["direct", "redis", "redis-replicated", "memcached", "twemproxy", "quorum"]
profile = "tuned"
blocks = 1

[[workload]]
name = "redis"
protocol = "redis"
keyvalue = { operations = "C:1,S:1,G:1,U:1,D:1", value = 2000, ttl = "30m" }
products = ["direct", "redis"]

[[workload]]
name = "tls"
protocol = "rediss"
keyvalue = { operations = "set:1,get:3", value = "100..4000", keys = "zipf:0.99", preload = 1000 }
products = ["direct", "redis"]

[[workload]]
name = "replicated"
protocol = "redis"
keyvalue = { operations = "C:10,G:30,D:5", value = 2000, replicas = 1 }
products = ["redis-replicated"]

[[workload]]
name = "pool"
protocol = "redis"
keyvalue = { operations = "set:1,get:3", value = 100, keys = "uniform", preload = 1000 }
products = ["twemproxy"]
origins = 3

[[workload]]
name = "juno"
protocol = "juno"
keyvalue = { operations = "C:1,S:1,G:1,U:1,D:1", value = 2000, ttl = "30m" }
products = ["direct", "quorum"]

[[workload]]
name = "memcached"
protocol = "memcached"
keyvalue = { operations = "C:1,S:1,G:1,U:1,D:1", value = 2000, ttl = "30m" }
products = ["direct", "memcached"]

[[workload]]
name = "memcached-tls"
protocol = "memcacheds"
keyvalue = { operations = "set:1,get:3", value = "100..4000", keys = "zipf:0.99", preload = 1000 }
products = ["direct", "memcached"]

[[workload]]
name = "memcached-pool"
protocol = "memcached"
keyvalue = { operations = "set:1,get:3", value = 100, keys = "uniform", preload = 1000 }
products = ["twemproxy"]
origins = 3

[[load]]
name = "capacity"
kind = "closed"
connections = 10
warmup = "200ms"
duration = "600ms"
"#;

#[test]
fn every_operation_is_answered_rightly_by_every_kind_of_product() {
    let measured = run(EVERY_KIND);
    assert_eq!(measured.len(), 13);
    for (folder, m) in &measured {
        let at = format!("{}: {}", folder.display(), m["case"]);
        assert!(m["error"].is_null(), "{at}: {}", m["error"]);
        let load = &m["load"];
        assert_eq!(load["total"]["errors"], serde_json::json!({}), "{at}");
        let operations = load["by_request"].as_array().expect("operations");
        assert!(operations.len() >= 2, "{at}");
        for operation in operations {
            assert!(
                operation["right"].as_u64() > Some(0) && operation["latency"]["p99_us"].as_f64() > Some(0.0),
                "{at}: {operation}"
            );
        }
        match m["case"]["product"].as_str() {
            Some("twemproxy") => {
                let addresses = m["origin"]["addresses"].as_array().expect("three addresses");
                assert!(addresses.iter().all(|one| one["requests"].as_u64() > Some(0)), "{at}: {addresses:?}");
            }
            // Nothing is behind a store.
            Some("redis" | "redis-replicated" | "memcached" | "quorum") => assert!(m["origin"].is_null(), "{at}"),
            // What client and origin counted is the same.
            _ => assert!(
                m["verdict"] != "invalid" && m["origin"]["requests"].as_u64() > Some(0),
                "{at}: {}",
                m["findings"]
            ),
        }
        if m["case"]["product"] == "quorum" {
            let parts = m["usage"].as_array().and_then(|roles| roles.iter().find(|role| role["role"] == "proxy"));
            assert_eq!(parts.expect("the product")["parts"].as_object().map(|parts| parts.len()), Some(4), "{at}");
        }
    }
}

const FAULTS: &str = r#"
[suite]
title = "Faults"
question = "What is lost?"
products = ["redis", "quorum"]
profile = "tuned"
blocks = 1

[[workload]]
name = "redis"
protocol = "redis"
keyvalue = { operations = "C:2,G:6,D:1", value = 200 }
loads = ["all-killed"]

[[workload]]
name = "juno"
protocol = "juno"
keyvalue = { operations = "C:2,G:6,D:1", value = 200, ttl = "30m" }
"#;

const LIGHT: &str = r#"
[[load]]
kind = "open"
rate = 200
connections = 10
warmup = "500ms"
duration = "8s"
timeout = "1s"
"#;

#[test]
fn a_memory_store_that_is_killed_loses_what_a_log_keeps() {
    let loads = [
        ("all-killed", r#"{ what = "kill", part = "all", at = "2s", for = "1s" }"#),
        (
            "store-killed",
            r#"{ what = "kill", part = "first", at = "2s", for = "1s" }, { what = "freeze", part = "store-2", at = "5s", for = "1s" }"#,
        ),
        ("disks-full", r#"{ what = "disk-full", part = "all", at = "2s", for = "2s", disk = "128MiB" }"#),
    ];
    let light = |(name, faults)| format!("{LIGHT}name = {name:?}\nfault = [{faults}]\n");
    let measured = run(&format!("{FAULTS}{}", loads.map(light).concat()));
    let of = |product: &str, load: &str| {
        let is = |m: &&(PathBuf, Value)| m.1["case"]["product"] == product && m.1["case"]["load"] == load;
        &measured.iter().find(is).expect("measured").1
    };
    let errors = |m: &Value, kind: &str| m["load"]["window"]["errors"][kind].as_u64().unwrap_or(0);
    assert_eq!(measured.len(), 4);
    // Redis keeps nothing on a disk here.
    let redis = of("redis", "all-killed");
    assert!(errors(redis, "lost") > 0, "{}", redis["load"]["window"]);
    assert_eq!(redis["verdict"], "invalid");
    assert_eq!(found(redis, "wrong-data").expect("found")["severity"], "fatal");
    for load in ["all-killed", "store-killed", "disks-full"] {
        let quorum = of("quorum", load);
        for kind in ["lost", "stale", "wrong_value", "resurrected"] {
            assert_eq!(errors(quorum, kind), 0, "{load}: {}", quorum["load"]["window"]);
        }
        assert!(found(quorum, "wrong-data").is_none());
        let faults = quorum["faults"].as_array().expect("faults");
        assert!(faults.iter().all(|fault| fault["ended_s"].as_f64() > fault["began_s"].as_f64()), "{faults:?}");
    }
    // One of three stores is not missed.
    assert!(errors(of("quorum", "all-killed"), "connect_refused") > 0);
    assert_eq!(errors(of("quorum", "store-killed"), "connect_refused"), 0);
    // Writes are refused as long as there is no room, and reads are not.
    let full = &of("quorum", "disks-full")["load"];
    assert!(full["window"]["errors"]["refused"].as_u64() > Some(0), "{}", full["window"]);
    for operation in full["by_request"].as_array().expect("operations") {
        let refused = operation["errors_by_kind"]["refused"].as_u64().unwrap_or(0);
        assert_eq!(refused > 0, operation["name"] != "get", "{operation}");
    }
    let seconds = full["errors_by_second"].as_object().expect("seconds");
    assert!(!seconds.contains_key("6") && !seconds.contains_key("7"), "{seconds:?}");
}

struct Redis(Child);

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_login_is_taken_from_the_url_and_its_password_is_printed_nowhere() {
    let scratch = scratch();
    let socket = scratch.path().join("redis.sock");
    let path = socket.to_str().expect("UTF-8");
    let _redis = Redis(
        Command::new("redis-server")
            .args(["--port", "0", "--unixsocket", path, "--save", "", "--requirepass", "se@cret"])
            .current_dir(scratch.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts"),
    );
    until("Redis listens", Duration::from_secs(10), || UnixStream::connect(&socket).is_ok());
    for (url, code, words) in [
        ("redis://:se%40cret@h", 0, "redis://:***@h by"),
        ("redis://default:se@cret@h", 0, "redis://default:***@h by"),
        ("redis://:secret@h", 3, "the server answered AUTH by: WRONGPASS"),
        ("redis://h", 3, "the server answered PING by: NOAUTH"),
        ("memcached://:secret@h", 2, "memcached's protocol has no logins"),
    ] {
        for output in ["-q", "--json", "--format=memtier"] {
            let args =
                ["load", url, "--unix", path, "-n", "200", "-c", "4", "--preload", "50", "--timeout", "1s", output];
            let ended = common::run(&args);
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert_eq!(ended.code(), Some(code), "{url} {output}: {said}");
            assert!(said.contains(words) || output != "-q" && code == 0, "{url} {output}: {said}");
            assert!(!said.contains("cret"), "{url} {output}: {said}");
        }
    }
}
