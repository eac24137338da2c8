//! Runs whose roles have hosts of their own: namespaces that weir makes, and machines over the system's OpenSSH. The same suite,
//! the same records, and nothing left on any host, whatever goes wrong.

mod common;
#[path = "common/machines.rs"]
mod machines;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{home, measurements, nothing_left, number, run_within, scratch, signal, suite, until, wait_within, weir};
use machines::{Machine, Machines, Setup};
use rustix::process::Signal;
use serde_json::Value;

const LONG: Duration = Duration::from_secs(100);

/// A suite that takes seconds: connections that are all busy, and an open load.
fn short() -> String {
    let head = "title = \"Short\"\nproducts = [\"direct\", \"nginx\"]\nprofile = \"tuned\"\nblocks = 1";
    let common = "connections = 8\nwarmup = \"300ms\"\nduration = \"1500ms\"";
    let closed = format!("name = \"closed\"\nkind = \"closed\"\n{common}");
    let open = format!("\n[[load]]\nname = \"open\"\nkind = \"open\"\nrate = 500\n{common}\n");
    suite(head, &closed) + &open
}

fn hosts_toml(machines: &Machines, roles: &[(&Machine, &str)]) -> String {
    let host = |(machine, role): &(&Machine, &str)| {
        let (name, config) = (&machine.name, machines.config().display().to_string());
        format!(
            "[[host]]\nname = \"{name}\"\nroles = [\"{role}\"]\nssh = \"{name}\"\nssh_config = \"{config}\"\naddress = \"{}\"\n\n",
            machine.address
        )
    };
    roles.iter().map(host).collect()
}

/// Three machines that have this machine's products, and the topology with a role on each.
fn three(folder: &Path) -> Option<(Machines, String)> {
    let setup = |clock_ahead_s| Setup { weir_home: Some(home()), clock_ahead_s, ..Setup::default() };
    let machines = Machines::start(&[setup(0), setup(5_000), setup(-3)])?;
    let roles = [(machines.get(0), "client"), (machines.get(1), "proxy"), (machines.get(2), "origin")];
    let hosts = folder.join("hosts.toml");
    std::fs::write(folder.join("suite.toml"), short()).expect("written");
    std::fs::write(&hosts, hosts_toml(&machines, &roles)).expect("written");
    Some((machines, hosts.display().to_string()))
}

fn command(machines: &Machines, folder: &Path, hosts: &str) -> Command {
    let (suite, out) = (folder.join("suite.toml"), folder.join("run"));
    let path = |path: &Path| path.display().to_string();
    machines.weir(&[
        "run",
        &path(&suite),
        "--yes",
        "--quiet",
        "--scale",
        "full",
        "--topology",
        hosts,
        "--out",
        &path(&out),
    ])
}

fn clean(machines: &Machines, count: usize) {
    for index in 0..count {
        let machine = machines.get(index);
        until(&format!("nothing of weir's on {}", machine.name), Duration::from_secs(30), || {
            machine.processes().is_empty()
        });
        let left = std::fs::read_dir(machine.file(Path::new("/run"))).expect("a folder").flatten();
        let left: Vec<_> =
            left.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().starts_with("weir")).collect();
        assert!(left.is_empty(), "{}: {left:?}", machine.name);
    }
}

/// A pool of four origins behind the product.
fn pool() -> String {
    short().replace("name = \"tiny\"", "name = \"tiny\"\norigins = 4")
}

/// Every trial measured, by the right number of hosts, and the same requests on both sides.
fn measured(run: &Path, hosts: usize) -> Vec<Value> {
    let all: Vec<Value> = measurements(run).into_iter().map(|(_, measurement)| measurement).collect();
    assert_eq!(all.len(), 4);
    for m in &all {
        assert!(m["error"].is_null(), "{}", m["error"]);
        assert_ne!(m["verdict"], "invalid", "{}", m["findings"]);
        let (sent, reached) = (number(m, "/load/total/right"), number(m, "/origin/requests"));
        assert!(
            sent > 300.0 && (sent - reached).abs() <= 16.0,
            "{sent} right answers, {reached} requests at the origin"
        );
        assert_eq!(m["clocks"].as_array().map_or(0, Vec::len), hosts, "{}", m["clocks"]);
        let roles = if m["case"]["product"] == "direct" { 2 } else { 3 };
        assert_eq!(m["usage"].as_array().map_or(0, Vec::len), roles, "{}", m["usage"]);
    }
    all
}

#[test]
fn the_same_suite_runs_on_machines_over_ssh_and_nothing_is_left_there() {
    let folder = scratch();
    let Some((machines, hosts)) = three(folder.path()) else { return };
    let ended = run_within(&mut command(&machines, folder.path(), &hosts), LONG);
    ended.expect(0);
    let run = folder.path().join("run");
    measured(&run, 3);
    let product = std::fs::read_dir(run.join("trials")).expect("trials").flatten();
    let of_nginx = product.map(|entry| entry.path()).filter(|path| path.display().to_string().contains("nginx"));
    for trial in of_nginx {
        for file in ["client.log", "latency.hlog", "load.csv", "origin.log", "product/nginx.conf", "resources.csv"] {
            assert!(trial.join(file).is_file(), "{} was not brought back", trial.join(file).display());
        }
    }
    clean(&machines, 3);
    let environment: Value =
        serde_json::from_slice(&std::fs::read(run.join("environment.json")).expect("there")).expect("JSON");
    assert_eq!(environment["hosts"].as_array().map_or(0, Vec::len), 3, "{}", environment["hosts"]);
    assert!(run.join("report/report.html").is_file());
}

#[test]
fn each_role_has_a_namespace_and_two_clients_make_one_load_on_a_pool_of_two_hosts() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can make network namespaces");
        return;
    }
    let folder = scratch();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("suite.toml"), pool()).expect("written");
    std::fs::write(path("hosts.toml"), "[netns]\nclients = 2\norigins = 2\n").expect("written");
    let before = namespaces();
    let args = [
        "run",
        &path("suite.toml"),
        "-y",
        "-q",
        "--scale",
        "full",
        "--topology",
        &path("hosts.toml"),
        "--out",
        &path("run"),
    ];
    run_within(&mut weir(&args), LONG).expect(0);
    for m in measured(&folder.path().join("run"), 5) {
        let hosts: Vec<&str> =
            m["load"]["hosts"].as_array().expect("hosts").iter().filter_map(|host| host["host"].as_str()).collect();
        assert_eq!(hosts, ["client-1", "client-2"]);
        let addresses = m["origin"]["addresses"].as_array().map_or(0, Vec::len);
        assert_eq!(
            addresses,
            if m["case"]["product"] == "direct" { 0 } else { 4 },
            "two addresses on each of two hosts"
        );
        if m["case"]["load"] == "open" {
            let offered = number(&m, "/load/offered_rate");
            assert_eq!(offered, 500.0);
            let due = number(&m, "/load/window/due");
            assert!((due - 750.0).abs() < 150.0, "the parts are together the load that was asked for: {due}");
        }
    }
    assert_eq!(namespaces(), before, "a namespace is left");
    nothing_left(folder.path(), Duration::from_secs(10));
}

fn namespaces() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/run/netns") else { return Vec::new() };
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.flatten().map(name).filter(|name| name.starts_with("weir-")).collect();
    names.sort();
    names
}

#[test]
fn a_host_that_is_lost_fails_one_trial_and_comes_back_for_the_next() {
    let folder = scratch();
    let Some((machines, hosts)) = three(folder.path()) else { return };
    let mut child = command(&machines, folder.path(), &hosts).stdin(Stdio::null()).spawn().expect("starts");
    let proxy = machines.get(1);
    let first = || proxy.processes().into_iter().find(|(_, argv)| argv.contains("nginx"));
    until("nginx runs", LONG, || first().is_some() && client_loads(machines.get(0)));
    let transport = common::processes_touching(&machines.config());
    let ssh = transport.iter().find(|(_, argv)| argv.contains("-- m2 sh"));
    signal(ssh.unwrap_or_else(|| panic!("{transport:?}")).0, Signal::KILL);
    let status = wait_within(&mut child, LONG);
    assert_eq!(status.code(), Some(1), "one trial failed");
    let all = measurements(&folder.path().join("run"));
    let failed: Vec<&Value> = all.iter().map(|(_, m)| m).filter(|m| !m["error"].is_null()).collect();
    assert_eq!((all.len(), failed.len()), (4, 1), "{failed:?}");
    assert_eq!(failed[0]["error"]["stage"], "host");
    assert_eq!(failed[0]["error"]["message"], "the host m2 was lost in mid-trial");
    clean(&machines, 3);
}

fn client_loads(machine: &Machine) -> bool {
    machine.processes().iter().any(|(_, argv)| argv.contains(" client "))
}

#[test]
fn ctrl_c_ends_a_run_on_every_machine() {
    let folder = scratch();
    let Some((machines, hosts)) = three(folder.path()) else { return };
    let mut child = command(&machines, folder.path(), &hosts).stdin(Stdio::null()).spawn().expect("starts");
    until("a client loads", LONG, || client_loads(machines.get(0)));
    let weir = common::processes_touching(&folder.path().join("run"));
    let own = weir.iter().find(|(_, argv)| argv.contains(" run ")).unwrap_or_else(|| panic!("{weir:?}"));
    signal(own.0, Signal::INT);
    let status = wait_within(&mut child, LONG);
    assert_eq!(status.code(), Some(130));
    clean(&machines, 3);
}

#[test]
fn a_second_run_on_a_host_is_refused_and_told_who_has_it() {
    let folder = scratch();
    let Some((machines, hosts)) = three(folder.path()) else { return };
    let mut child = command(&machines, folder.path(), &hosts).stdin(Stdio::null()).spawn().expect("starts");
    until("a client loads", LONG, || client_loads(machines.get(0)));
    let path = |name: &str| folder.path().join(name).display().to_string();
    let args =
        ["run", &path("suite.toml"), "-y", "-q", "--scale", "full", "--topology", &hosts, "--out", &path("second")];
    let refused = run_within(&mut machines.weir(&args), LONG);
    let said = refused.expect(3);
    assert!(said.contains("m1") && said.contains("in use by run run of"), "{said}");
    assert!(!folder.path().join("second").exists());
    assert_eq!(wait_within(&mut child, LONG).code(), Some(0), "the first is not disturbed");
}
