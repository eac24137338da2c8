//! `weir hosts check` and `weir hosts clean`: what they say of namespaces with slow links and of machines over the system's OpenSSH,
//! one of which does not answer, and what is removed there.

use crate::common;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::machines::{Machine, Machines, Setup, namespaces};
use crate::common::{Ended, needs_root, number, run_within, scratch, signal, until, wait_within, weir};
use rustix::process::Signal;
use serde_json::Value;
use weir_host::agent::connect::{Agents, Connect};
use weir_host::netns::{Links, Network};
use weir_host::transport::Binary;
use weir_model::topology::Topology;

const LONG: Duration = Duration::from_secs(100);

fn hosts(verb: &str, args: &[&str]) -> Ended {
    run_within(&mut weir(&[&["hosts", verb], args].concat()), LONG)
}

fn check(topology: &str) -> Value {
    let ended = hosts("check", &["--topology", topology, "--json"]);
    checked(ended.code());
    ended.json()
}

/// All was done. What the doctor thinks of this machine is not asked here.
fn checked(code: Option<i32>) {
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
}

/// The checks that found something, and what they say.
fn findings(checked: &Value) -> Vec<String> {
    let findings = checked["findings"].as_array().expect("a list");
    let said =
        |finding: &Value| format!("{}: {}", finding["check"].as_str().unwrap(), finding["message"].as_str().unwrap());
    findings.iter().map(said).collect()
}

fn pairs(checked: &Value) -> Vec<(String, String)> {
    let pairs = checked["pairs"].as_array().expect("a list");
    let end = |pair: &Value, key: &str| pair[key].as_str().expect("a name").to_owned();
    pairs.iter().map(|pair| (end(pair, "from"), end(pair, "to"))).collect()
}

fn write(folder: &Path, text: &str) -> String {
    let path = folder.join("hosts.toml");
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

#[test]
fn this_machine_is_one_host_and_one_pair() {
    let ended = hosts("check", &[]);
    checked(ended.code());
    for word in ["this machine", "client, proxy, origin", "products on local: ", "received", "bit/s"] {
        assert!(ended.stdout.contains(word), "no {word}:\n{}", ended.stdout);
    }
    let local = ended.stdout.lines().filter(|line| line.starts_with("local  local")).count();
    assert_eq!(local, 1, "{}", ended.stdout);
}

#[test]
fn bad_input_starts_nothing() {
    let said = hosts("check", &["--topology", "nowhere.toml"]);
    assert!(said.expect(2).contains("nowhere.toml"), "{}", said.stderr);
    let said = hosts("clean", &["--image", "weir:1"]);
    assert!(said.expect(2).contains("--image"), "{}", said.stderr);
}

#[test]
fn a_slow_link_is_seen_and_nothing_is_left() {
    needs_root("make network namespaces");
    let folder = scratch();
    let before = namespaces();
    let slow = check(&write(folder.path(), "[netns]\nrate = \"100Mbit/s\"\n"));
    assert_eq!(slow["pairs"].as_array().map_or(0, Vec::len), 3, "{slow}");
    for pair in slow["pairs"].as_array().expect("pairs") {
        for way in ["/sent_bits_per_s", "/received_bits_per_s"] {
            let bits = number(pair, way);
            assert!((60e6..=101e6).contains(&bits), "{way}: {bits} of a link of 100 Mbit/s");
        }
        let (p50, p99) = (number(pair, "/p50_us"), number(pair, "/p99_us"));
        assert!(p50 > 5.0 && p50 <= p99, "{p50} {p99}");
    }
    assert_eq!(namespaces(), before, "a namespace is left");
    let said = findings(&slow);
    assert!(said.iter().any(|one| one.starts_with("one-machine: client-1, proxy and origin-1 are one")), "{said:?}");
    assert!(!said.iter().any(|one| one.starts_with("asymmetric")), "{said:?}");
    for host in slow["hosts"].as_array().expect("hosts") {
        assert!(number(host, "/clock_error_us") > 0.0 && host["facts"]["kernel"].is_string(), "{host}");
    }
}

#[test]
fn a_link_that_is_slow_one_way_is_said() {
    needs_root("make network namespaces");
    let network =
        Network::create(["m1", "m2", "m3"], &Links { rate: Some(200_000_000), ..Links::default() }).expect("made");
    let slow = ["-n", &network.hosts()[0].name, "qdisc", "replace", "dev", "eth0", "root", "tbf"];
    let rate = ["rate", "50mbit", "burst", "128kb", "latency", "50ms"];
    assert!(Command::new("tc").args(slow).args(rate).status().expect("tc runs").success());
    let host = |(host, role): (&weir_host::netns::Namespace, &str)| {
        let (name, namespace, address) = (&host.host, &host.name, host.address);
        format!(
            "[[host]]\nname = \"{name}\"\nroles = [\"{role}\"]\nnamespace = \"{namespace}\"\naddress = \"{address}\"\n"
        )
    };
    let text: String = network.hosts().iter().zip(["client", "proxy", "origin"]).map(host).collect();
    let folder = scratch();
    let said = findings(&check(&write(folder.path(), &text)));
    assert!(said.iter().any(|one| one.starts_with("asymmetric: m1 sends m2 ")), "{said:?}");
}

#[test]
fn ctrl_c_ends_it_and_leaves_nothing() {
    needs_root("make network namespaces");
    let before = namespaces();
    let mut child = weir(&["hosts", "check", "--topology", "netns"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let clients = || common::processes_touching(Path::new("weir-hosts-")).len();
    until("a pair is measured", LONG, || clients() > 0);
    signal(child.id(), Signal::INT);
    assert_eq!(wait_within(&mut child, Duration::from_secs(30)).code(), Some(130));
    until("the end of all", Duration::from_secs(20), || clients() == 0);
    assert_eq!(namespaces(), before, "a namespace is left");
}

/// The copies of weir on a machine.
fn copies(machine: &Machine) -> usize {
    std::fs::read_dir(machine.home.join("weir/bin")).map_or(0, Iterator::count)
}

#[test]
fn a_machine_that_does_not_answer_is_told_and_the_others_are_checked_and_cleaned() {
    let machines = Machines::three();
    let all = [machines.get(0), machines.get(1), machines.get(2)];
    let folder = scratch();
    let roles: [(&str, &[u32]); 3] = [("client", &[]), ("proxy", &[]), ("origin", &[])];
    let topology = write(folder.path(), &machines.topology(&roles));
    let hosts =
        |args: &[&str]| run_within(&mut machines.weir(&[&["hosts"], args, &["--topology", &topology]].concat()), LONG);
    machines.link(all[2], "down");
    let ended = hosts(&["check", "--json"]);
    ended.expect(3);
    let checked = ended.json();
    assert_eq!(pairs(&checked), [("m1".to_owned(), "m2".to_owned())]);
    let not_measured = ["m2 to m3: not both are reached", "m1 to m3: not both are reached"];
    assert_eq!(checked["not_measured"], serde_json::json!(not_measured));
    let [m1, m2, m3] = checked["hosts"].as_array().expect("hosts").as_slice() else { panic!("{checked}") };
    for (host, products) in [(m1, false), (m2, true)] {
        assert!(host["error"].is_null() && number(host, "/facts/memory_bytes") > 0.0, "{host}");
        assert_eq!(host["products"].is_object(), products, "{host}");
    }
    assert!(m3["error"].as_str().expect("an error").starts_with("the host m3 was not reached: "), "{m3}");
    let text = hosts(&["check"]);
    text.expect(3);
    assert!(text.stdout.contains("not reached") && text.stdout.contains("to fix it: "), "{}", text.stdout);
    assert_eq!(all.map(copies), [1, 1, 0]);

    // What a killed run left in another namespace of m1.
    let run = all[0].file(Path::new("/run"));
    std::fs::create_dir(run.join("weir-work-99")).expect("made");
    let left = r#"{"run":"r","who":"u@h","agent":99,"since_unix_s":0,"work":"/run/weir-work-99"}"#;
    std::fs::write(run.join("weir-lease-99"), left).expect("written");
    let ended = hosts(&["clean"]);
    assert!(ended.expect(3).contains("the host m3 was not reached: "), "{}", ended.stderr);
    assert_eq!(all.map(copies), [0, 0, 0]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0] == "removed /run/weir-work-99 on m1" && lines.len() == 3, "{lines:?}");
    assert!(lines[1].contains("/weir/bin/weir-") && lines[1].ends_with(" on m1"), "{lines:?}");
    assert!(!run.join("weir-work-99").exists() && !run.join("weir-lease-99").exists());

    machines.link(all[2], "up");
    let again = hosts(&["clean"]);
    again.expect(0);
    assert_eq!(again.stdout, "nothing was left\n", "what is brought to clean up is no leftover");
    assert_eq!(all.map(copies), [0, 0, 0]);
}

#[test]
fn a_host_in_use_stays_as_it_is() {
    let machines = Machines::start(&[Setup::default()]);
    let machine = machines.get(0);
    let text = machines.topology(&[("client", &[])]).replace("[\"client\"]", "[\"client\", \"proxy\", \"origin\"]");
    let folder = scratch();
    let topology = write(folder.path(), &text);
    let weir = Binary::of(Path::new(env!("CARGO_BIN_EXE_weir"))).expect("a program");
    let agents = Agents { weir, run: "a".into(), who: "tester@control".into(), lease: true };
    let spec = Topology::parse("hosts.toml", &text).expect("read").hosts()[0].clone();
    let held = machines.inside(|| agents.connect(&spec, &[])).expect("reached");
    let clean = || run_within(&mut machines.weir(&["hosts", "clean", "--topology", &topology]), LONG);
    let refused = clean();
    assert!(
        refused.expect(3).contains("the host m1 is in use by run a of tester@control since "),
        "{}",
        refused.stderr
    );
    assert_eq!(copies(machine), 1);
    drop(held);
    let cleaned = clean();
    cleaned.expect(0);
    assert!(cleaned.stdout.ends_with(" on m1\n"), "{}", cleaned.stdout);
    assert_eq!(copies(machine), 0);
}

#[test]
fn namespaces_of_nobody_are_removed() {
    needs_root("make network namespaces");
    let name = "weir-0badcafe-client";
    assert!(Command::new("ip").args(["netns", "add", name]).status().expect("ip runs").success());
    let kept = Network::create(["m1"], &Links::default()).expect("made");
    // Making one removes leftovers, too.
    assert!(!namespaces().contains(&name.to_owned()));
    assert!(Command::new("ip").args(["netns", "add", name]).status().expect("ip runs").success());
    let ended = hosts("clean", &["--topology", "netns"]);
    ended.expect(0);
    assert!(ended.stdout.contains(&format!("removed namespace {name}\n")), "{}", ended.stdout);
    assert!(!namespaces().contains(&name.to_owned()));
    assert!(namespaces().contains(&kept.hosts()[0].name), "one in use stays");
}

#[test]
fn another_weir_is_copied_there_where_one_is_given() {
    let folder = scratch();
    let other = folder.path().join("weir");
    let mut bytes = std::fs::read(env!("CARGO_BIN_EXE_weir")).expect("read");
    bytes.push(0);
    std::fs::write(&other, bytes).expect("written");
    let given = other.display().to_string();
    let refused = hosts("check", &["--weir", &given]);
    assert!(refused.expect(2).contains("weir is not copied to local"), "{}", refused.stderr);
    let machines = Machines::start(&[Setup::default()]);
    let text = machines.topology(&[("client", &[])]).replace("[\"client\"]", "[\"client\", \"proxy\", \"origin\"]");
    let topology = write(folder.path(), &text);
    let check =
        |weir: &str| run_within(&mut machines.weir(&["hosts", "check", "--topology", &topology, "--weir", weir]), LONG);
    assert!(check("/etc/passwd").expect(2).contains("it is no Linux program"), "its file is read first");
    assert_eq!(copies(machines.get(0)), 0);
    checked(check(&given).code());
    let copy = format!("weir/bin/weir-{}", Binary::of(&other).expect("a program").sha256);
    assert!(machines.get(0).home.join(copy).is_file());
}
