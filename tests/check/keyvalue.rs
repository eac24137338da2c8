//! Key-value products with a disk, and logins: a quorum of three stores that keep a log loses nothing, whatever is done to it. That every
//! operation is answered rightly, and that what a memory store forgets is found, is in `tests/world/tests/it/stores.rs`.

use crate::common;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Running, run_suite, scratch, until};
use serde_json::Value;

/// Installing may build a program.
const WITHIN: Duration = Duration::from_secs(900);

#[test]
fn a_log_keeps_what_is_killed_frozen_and_out_of_room() {
    let suite = include_str!("keyvalue/faults.toml");
    let measured: Vec<(PathBuf, Value)> = run_suite(scratch().path(), suite, 0, WITHIN);
    assert_eq!(measured.len(), 3);
    let of = |load: &str| &measured.iter().find(|(_, m)| m["case"]["load"] == load).expect("measured").1;
    let errors = |m: &Value, kind: &str| m["load"]["window"]["errors"][kind].as_u64().unwrap_or(0);
    for load in ["all-killed", "store-killed", "disks-full"] {
        let quorum = of(load);
        for kind in ["lost", "stale", "wrong_value", "resurrected"] {
            assert_eq!(errors(quorum, kind), 0, "{load}: {}", quorum["load"]["window"]);
        }
        let findings = quorum["findings"].as_array().expect("findings");
        assert!(findings.iter().all(|finding| finding["check"] != "wrong-data"), "{findings:?}");
        let faults = quorum["faults"].as_array().expect("faults");
        assert!(faults.iter().all(|fault| fault["ended_s"].as_f64() > fault["began_s"].as_f64()), "{faults:?}");
        let parts = quorum["usage"].as_array().and_then(|roles| roles.iter().find(|role| role["role"] == "proxy"));
        assert_eq!(parts.expect("the product")["parts"].as_object().map(|parts| parts.len()), Some(4), "{load}");
    }
    // One of three stores is not missed.
    assert!(errors(of("all-killed"), "connect_refused") > 0);
    assert_eq!(errors(of("store-killed"), "connect_refused"), 0);
    // Writes are refused as long as there is no room, and reads are not.
    let full = &of("disks-full")["load"];
    assert!(full["window"]["errors"]["refused"].as_u64() > Some(0), "{}", full["window"]);
    for operation in full["by_request"].as_array().expect("operations") {
        let refused = operation["errors_by_kind"]["refused"].as_u64().unwrap_or(0);
        assert_eq!(refused > 0, operation["name"] != "get", "{operation}");
    }
    let seconds = full["errors_by_second"].as_object().expect("seconds");
    assert!(!seconds.contains_key("6") && !seconds.contains_key("7"), "{seconds:?}");
}

#[test]
fn a_login_is_taken_from_the_url_and_its_password_is_printed_nowhere() {
    let scratch = scratch();
    let socket = scratch.path().join("redis.sock");
    let path = socket.to_str().expect("UTF-8");
    let _redis = Running(
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
        for output in ["-q", "--json", "--format=junoload"] {
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
