//! Everything a user can get wrong has one message that says what was found and what would be right, an exit status
//! that scripts can use, and starts nothing.

mod common;

use std::path::Path;

use common::{OriginUnderTest, run, run_within, scratch, weir};

/// Runs weir, expects bad input, and expects every word in the message.
fn refused(args: &[&str], code: i32, words: &[&str]) {
    let ended = run(args);
    let said = ended.expect(code);
    for word in words {
        assert!(said.contains(word), "{args:?}: no {word:?} in:\n{said}");
    }
}

#[test]
fn unknown_names_are_refused_with_those_that_exist() {
    refused(&["run", "quik"], 2, &["quik", "did you mean \"quick\"?"]);
    refused(&["run", "quick", "--products", "direct,ngnix"], 2, &["ngnix", "did you mean \"nginx\"?"]);
    refused(&["run", "quick", "--profile", "fast"], 2, &["fast", "tuned"]);
    refused(&["run", "quick", "--only", "workload=huge"], 2, &["huge", "tiny"]);
    refused(&["run", "quick", "--only", "size=1"], 2, &["size", "workload"]);
    refused(&["products", "show", "ngnix"], 2, &["did you mean \"nginx\"?"]);
    refused(&["run", "quick", "--cpus", "proxy=999"], 2, &["may not use CPU 999", "0-"]);
    refused(&["run", "quick", "--cpus", "middle=0"], 2, &["middle", "client, proxy or origin"]);
    refused(&["run", "quick", "--blocks", "0"], 2, &["--blocks"]);
}

#[test]
fn flags_of_pods_are_for_pods_and_need_kubectl() {
    for (flag, value) in [("--image", "weir:2"), ("--namespace", "bench"), ("--context", "kind")] {
        for topology in ["local", "netns"] {
            let args = ["run", "quick", "--topology", topology, flag, value];
            refused(&args, 2, &[&format!("{flag}: {value}"), "together with --topology kubernetes"]);
        }
        assert!(run(&["run", "--help"]).stdout.contains(&format!("{flag} <")), "{flag}");
    }
    let scratch = scratch();
    let out = scratch.path().join("run");
    let mut command = weir(&["run", "quick", "--scale", "smoke", "--yes", "--topology", "kubernetes", "--out"]);
    command.arg(&out).env("PATH", scratch.path());
    let ended = run_within(&mut command, std::time::Duration::from_secs(30));
    let said = ended.expect(3);
    assert!(said.contains("no kubectl in PATH") && said.contains("reaches the cluster"), "{said}");
    assert!(!out.exists(), "nothing was started");
}

#[test]
fn a_wrong_suite_file_is_refused_with_line_and_key() {
    let scratch = scratch();
    let path = scratch.path().join("wrong.toml");
    let text = r#"[suite]
title = "Wrong"
question = "Where?"
blocks = 1
products = ["direct"]
profile = "tuned"

[[workload]]
name = "tiny"
pth = "/bytes/128"

[[load]]
name = "capacity"
kind = "closed"
connections = 1
warmup = "1 parsec"
duration = "1s"
"#;
    std::fs::write(&path, text).expect("written");
    let path = path.to_str().expect("UTF-8");
    let (key, unit) = (format!("{path}:10"), format!("{path}:16"));
    refused(&["run", path], 2, &[&key, "pth", "did you mean \"path\"?", &unit, "warmup", "parsec", "ms"]);
    refused(&["run", "no-such.toml"], 2, &["no-such.toml"]);
}

#[test]
fn a_taken_port_is_said_to_be_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = taken.local_addr().expect("bound").to_string();
    refused(&["origin", "--listen", &addr], 3, &[&addr, "in use"]);
}

#[test]
fn load_refuses_what_it_cannot_do() {
    refused(&["load", "ftp://127.0.0.1/"], 2, &["ftp://", "https://"]);
    refused(&["load", "http://127.0.0.1:1/", "-H", "nonsense"], 2, &["nonsense", "name: value"]);
    refused(&["load", "http://127.0.0.1:1/", "-d", "5"], 2, &["5", "s"]);
    refused(&["load", "http://127.0.0.1:1/", "--rate", "0"], 2, &["rate"]);
    refused(&["load", "http://127.0.0.1:1/", "-c", "0"], 2, &["0"]);
    refused(&["load", "http://127.0.0.1:1/", "--body-file", "/no/such/file"], 2, &["/no/such/file"]);
}

#[test]
fn a_target_that_refuses_connections_is_said_to() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let ended = run(&["load", &format!("http://{free}/"), "-d", "1s", "--timeout", "1s", "-q"]);
    assert!(matches!(ended.code(), Some(1 | 3)), "{ended:?}");
    assert!(format!("{}{}", ended.stdout, ended.stderr).contains("refused"), "{ended:?}");
}

#[test]
fn load_with_failed_requests_ends_with_one() {
    let origin = OriginUnderTest::start(&[]);
    let ended = run(&["load", &origin.url("/status/503"), "-n", "50", "-c", "2", "-q", "--json"]);
    ended.expect(1);
    assert_eq!(ended.json()["window"]["errors"]["bad_status"], 50);
    let ended = run(&["load", &origin.url("/status/503"), "-n", "50", "-c", "2", "-q", "--expect-status", "503"]);
    ended.expect(0);
}

#[test]
fn too_few_descriptors_are_seen_before_anything_starts() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let mut command = std::process::Command::new("prlimit");
    command.args([
        "--nofile=300:300",
        env!("CARGO_BIN_EXE_weir"),
        "run",
        "quick",
        "--scale",
        "smoke",
        "--yes",
        "--out",
    ]);
    command.arg(&out).env("WEIR_HOME", common::home());
    let ended = run_within(&mut command, std::time::Duration::from_secs(30));
    let said = ended.expect(2);
    assert!(said.contains("descriptors") && said.contains("ulimit -Hn"), "{said}");
    assert!(!out.exists(), "nothing was started");
    command = std::process::Command::new("prlimit");
    command.args([
        "--nofile=100:100",
        env!("CARGO_BIN_EXE_weir"),
        "load",
        "http://127.0.0.1:1/",
        "-c",
        "500",
        "-q",
        "--driver",
        "epoll",
    ]);
    let ended = run_within(&mut command, std::time::Duration::from_secs(30));
    assert!(ended.stderr.contains("500 connections need") && ended.stderr.contains("ulimit -Hn"), "{ended:?}");
    assert_ne!(ended.code(), Some(0));
}

#[test]
fn folders_that_cannot_be_used_are_refused() {
    let scratch = scratch();
    let full = scratch.path().join("full");
    std::fs::create_dir(&full).expect("made");
    std::fs::write(full.join("thesis.txt"), "mine").expect("written");
    let args = |out: &Path| {
        vec![
            "run".to_owned(),
            "quick".into(),
            "--scale".into(),
            "smoke".into(),
            "--yes".into(),
            "--products".into(),
            "direct".into(),
            "--out".into(),
            out.display().to_string(),
        ]
    };
    let ended = common::run_within(weir(&[]).args(args(&full)), std::time::Duration::from_secs(60));
    assert!(ended.expect(2).contains("not empty"), "{}", ended.stderr);
    assert_eq!(std::fs::read_to_string(full.join("thesis.txt")).expect("still there"), "mine");
    let ended = common::run_within(weir(&[]).args(args(Path::new("/proc/weir"))), std::time::Duration::from_secs(60));
    assert!(ended.expect(3).contains("/proc"), "{}", ended.stderr);
    let odd = scratch.path().join("50%");
    let ended = common::run_within(weir(&[]).args(args(&odd)), std::time::Duration::from_secs(60));
    assert!(ended.expect(2).contains("has '%' in it"), "{}", ended.stderr);
    assert!(!odd.exists(), "nothing was started");
    refused(&["run", "--resume", scratch.path().to_str().expect("UTF-8")], 2, &["not a run folder"]);
    refused(&["report", scratch.path().to_str().expect("UTF-8")], 2, &[scratch.path().to_str().expect("UTF-8")]);
}
