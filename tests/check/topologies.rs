//! Runs whose roles have hosts of their own: namespaces that weir makes, and machines over the system's OpenSSH. The same records, and
//! nothing left on any host. What hosts with other clocks measure, and what becomes of one that is lost, is in
//! `tests/world/tests/it/hosts.rs`.

use crate::common;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::machines::{Machines, Setup, namespaces};
use crate::common::{
    home, measurements, needs_root, nothing_left, number, on_a_shared_machine, run_within, scratch, signal, suite,
    text, until, until_in, wait_within, weir,
};
use rustix::process::Signal;
use serde_json::Value;

const LONG: Duration = Duration::from_secs(100);

/// A suite that takes seconds: connections that are all busy, and an open load.
/// Windows of 3 s: a host that is held up for a third of a second, as machines of CI are, spoils a tenth of them and not a quarter.
fn short() -> String {
    let head = "title = \"Short\"\nproducts = [\"direct\", \"nginx\"]\nprofile = \"tuned\"\nblocks = 1";
    let common = "connections = 8\nwarmup = \"300ms\"\nduration = \"3s\"";
    let closed = format!("name = \"closed\"\nkind = \"closed\"\n{common}");
    let open = format!("\n[[load]]\nname = \"open\"\nkind = \"open\"\nrate = 500\n{common}\n");
    suite(head, &closed) + &open
}

/// Machines that have this machine's products and clocks so many seconds ahead, and the topology with a role on each.
pub(super) fn with_roles(folder: &Path, roles: &[(&str, i64)]) -> (Machines, String) {
    let setup = |(_, clock_ahead_s): &(&str, i64)| Setup {
        weir_home: Some(home()),
        clock_ahead_s: *clock_ahead_s,
        ..Setup::default()
    };
    let machines = Machines::start(&roles.iter().map(setup).collect::<Vec<_>>());
    let toml = machines.topology(&roles.iter().map(|(role, _)| (*role, [].as_slice())).collect::<Vec<_>>());
    let hosts = folder.join("hosts.toml");
    std::fs::write(&hosts, toml).expect("written");
    (machines, hosts.display().to_string())
}

/// A machine for each role, and the short suite.
fn three(folder: &Path) -> (Machines, String) {
    std::fs::write(folder.join("suite.toml"), short()).expect("written");
    with_roles(folder, &[("client", 0), ("proxy", 5_000), ("origin", -3)])
}

pub(super) fn command(machines: &Machines, folder: &Path, hosts: &str) -> Command {
    let suite = folder.join("suite.toml").display().to_string();
    command_of(&suite, "full", machines, folder, hosts)
}

fn command_of(suite: &str, scale: &str, machines: &Machines, folder: &Path, hosts: &str) -> Command {
    let out = folder.join("run").display().to_string();
    machines.weir(&["run", suite, "--yes", "--quiet", "--scale", scale, "--topology", hosts, "--out", &out])
}

pub(super) fn clean(machines: &Machines, count: usize) {
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
fn measured(run: &Path, trials: usize, hosts: usize) -> Vec<Value> {
    let all: Vec<Value> = measurements(run).into_iter().map(|(_, measurement)| measurement).collect();
    assert_eq!(all.len(), trials);
    for m in &all {
        assert!(m["error"].is_null(), "{}", m["error"]);
        assert_ne!(m["verdict"], "invalid", "{}", m["findings"]);
        let (sent, reached) = (number(m, "/load/total/successful"), number(m, "/origin/requests"));
        assert!(
            sent > 300.0 && (sent - reached).abs() <= 16.0,
            "{sent} successful responses, {reached} requests at the origin"
        );
        let clocks = m["clocks"].as_array().expect("clocks");
        let exact = |clock: &Value| number(clock, "/error_us") + number(clock, "/drift_us") < 50_000.0;
        assert!(clocks.len() == hosts && clocks.iter().all(exact), "{clocks:?}");
        let roles = if m["case"]["product"] == "direct" { 2 } else { 3 };
        assert_eq!(m["usage"].as_array().map_or(0, Vec::len), roles, "{}", m["usage"]);
    }
    all
}

/// A published benchmark, whole: all its products are had everywhere.
#[test]
fn a_published_suite_runs_on_machines_over_ssh_and_nothing_is_left_there() {
    on_a_shared_machine(|folder| {
        let (machines, hosts) = with_roles(folder, &[("client", 0), ("proxy", 5_000), ("origin", -3)]);
        // The machines have no way to the outside, and this machine's folder of products. HAProxy and nginx are here as packages; to
        // install them by name would build newer ones.
        let install = ["products", "install", "--yes", "caddy", "envoy", "traefik"];
        run_within(&mut weir(&install), 3 * LONG).expect(0);
        run_within(&mut command_of("loggly", "smoke", &machines, folder, &hosts), LONG).expect(0);
        let run = folder.join("run");
        for m in measured(&run, 11, 3) {
            let (sent, reached) = (number(&m, "/load/total/sent"), number(&m, "/origin/requests"));
            assert_eq!((sent, reached), (1_000.0, 1_000.0), "{}", m["case"]);
        }
        let trials = std::fs::read_dir(run.join("trials")).expect("trials").flatten();
        let of_nginx: Vec<_> =
            trials.map(|entry| entry.path()).filter(|path| path.display().to_string().contains("nginx")).collect();
        assert_eq!(of_nginx.len(), 2, "two profiles");
        for trial in of_nginx {
            for file in ["client.log", "latency.hlog", "load.csv", "origin.log", "product/nginx.conf", "resources.csv"]
            {
                assert!(trial.join(file).is_file(), "{} was not brought back", trial.join(file).display());
            }
        }
        clean(&machines, 3);
        let environment: Value =
            serde_json::from_slice(&std::fs::read(run.join("environment.json")).expect("there")).expect("JSON");
        assert_eq!(environment["hosts"].as_array().map_or(0, Vec::len), 3, "{}", environment["hosts"]);
        assert!(run.join("report/report.html").is_file());
    });
}

/// A binary of the user's is chosen where products run and nowhere else, with its hash; a path that is missing there is an error.
#[test]
fn a_binary_of_ones_own_is_chosen_on_the_proxys_machine() {
    needs_root("start machines in namespaces");
    let folder = scratch();
    let machines = Machines::three();
    let hosts = folder.path().join("hosts.toml");
    std::fs::write(&hosts, machines.topology(&[("client", &[]), ("proxy", &[]), ("origin", &[])])).expect("written");
    let own = folder.path().join("nginx");
    std::fs::write(&own, "#!/bin/sh\necho nginx version: nginx/1.18.0 >&2\n").expect("written");
    std::fs::set_permissions(&own, PermissionsExt::from_mode(0o755)).expect("executable");
    let choose = |binary: &Path| {
        let args = ["products", "use", "nginx", "--json", "--binary", text(binary), "--topology", text(&hosts)];
        run_within(&mut machines.weir(&args), LONG)
    };
    let chosen = choose(&own);
    chosen.expect(0);
    let json = chosen.json();
    assert_eq!(json.as_object().map_or(0, serde_json::Map::len), 1, "{json}");
    let hash = Command::new("sha256sum").arg(&own).output().expect("sha256sum runs").stdout;
    let hash = String::from_utf8_lossy(&hash).split(' ').next().expect("a hash").to_owned();
    assert_eq!((&json["m2"]["version"], &json["m2"]["sha256"]), (&"1.18.0".into(), &hash.into()), "{json}");
    let has = [0, 1, 2].map(|machine| machines.get(machine).home.join("weir/products/nginx/use.toml").is_file());
    assert_eq!(has, [false, true, false]);
    let refused = choose(&folder.path().join("nowhere"));
    assert!(refused.expect(3).contains("there is no such file"), "{}", refused.stderr);
    // Pods and namespaces are made for one run, and would forget it.
    let made = ["products", "use", "nginx", "--binary", text(&own), "--topology", "netns"];
    let refused = run_within(&mut weir(&made), LONG);
    assert!(refused.expect(2).contains("a file of hosts"), "{}", refused.stderr);
}

/// A product that is kept over its workloads works on a disk of its machine's: what it wrote comes back after the last of them.
#[test]
fn a_kept_product_stays_on_its_machine_and_its_files_come_back() {
    on_a_shared_machine(|folder| {
        let head = "title = \"Kept\"\nblocks = 1\nproducts = [\"nginx:as-published-monolake\"]";
        let load =
            "name = \"closed\"\nkind = \"closed\"\nconnections = 8\nkeep = true\nwarmup = \"100ms\"\nduration = \"1s\"";
        let https = "[[workload]]\nname = \"https\"\nprotocol = \"https/1.1\"\npath = \"/bytes/128\"\nexpect = { status = 200, size = 128 }\n";
        // The proxy's machine has fewer CPUs, which is known once it is reached.
        let vast = format!("[[load]]\ncores = 4096\n{}", load.replace("closed\"\nkind", "vast\"\nkind"));
        let suite = suite(head, load) + https + &vast;
        std::fs::write(folder.join("suite.toml"), suite).expect("written");
        let (machines, hosts) = with_roles(folder, &[("client", 0), ("proxy", 0), ("origin", 0)]);
        run_within(&mut command(&machines, folder, &hosts), LONG).expect(0);
        let run = folder.join("run");
        let all = measurements(&run);
        let places: Vec<_> =
            all.iter().map(|(_, m)| (m["kept"]["place"].as_u64(), m["kept"]["since"].as_u64())).collect();
        assert_eq!(places, [(Some(1), Some(1)), (Some(2), Some(1))]);
        let environment = std::fs::read_to_string(run.join("environment.json")).expect("there");
        assert!(environment.contains("load vast is left out: it asks for 4096 CPUs for products"), "{environment}");
        for ((trial, m), first) in all.iter().zip([true, false]) {
            assert!(m["error"].is_null(), "{}", m["error"]);
            assert_eq!(m["load"]["total"]["sent"], m["origin"]["requests"], "{}", m["case"]);
            for file in ["product/nginx.conf", "product/exit.json"] {
                assert_eq!(trial.join(file).is_file(), first, "{}", trial.join(file).display());
            }
        }
        clean(&machines, 3);
    });
}

/// The audit says that a link was full where weir limits it, and not where it does not.
#[test]
fn a_full_link_of_a_made_network_is_seen() {
    needs_root("make network namespaces");
    let head = "title = \"Large\"\nproducts = [\"nginx\"]\nprofile = \"tuned\"\nblocks = 1";
    let load = "name = \"closed\"\nkind = \"closed\"\nconnections = 8\nwarmup = \"500ms\"\nduration = \"2s\"";
    let large = suite(head, load).replace("/bytes/128", "/bytes/65536").replace("size = 128", "size = 65536");
    for (rate, full) in [("rate = \"40Mbit/s\"\n", true), ("", false)] {
        on_a_shared_machine(|folder| {
            let path = |name: &str| folder.join(name).display().to_string();
            std::fs::write(path("suite.toml"), &large).expect("written");
            std::fs::write(path("hosts.toml"), format!("[netns]\n{rate}")).expect("written");
            let (suite, hosts, out) = (path("suite.toml"), path("hosts.toml"), path("run"));
            run_within(
                &mut weir(&["run", &suite, "-yq", "--scale", "full", "--topology", &hosts, "--out", &out]),
                LONG,
            )
            .expect(0);
            let m = measurements(Path::new(&out)).remove(0).1;
            let findings = m["findings"].as_array().expect("findings");
            let of_link: Vec<&Value> = findings.iter().filter(|finding| finding["check"] == "link").collect();
            assert_eq!(of_link.len(), usize::from(full), "{rate}: {findings:#?}");
            for finding in of_link {
                let message = finding["message"].as_str().expect("a text");
                assert!(message.ends_with(" % of what eth0 carries"), "{message}");
                assert_eq!(m["verdict"], "suspect");
            }
        });
    }
}

#[test]
fn each_role_has_a_namespace_and_two_clients_make_one_load_on_a_pool_of_two_hosts() {
    on_a_shared_machine(|folder| {
        needs_root("make network namespaces");
        let path = |name: &str| folder.join(name).display().to_string();
        std::fs::write(path("suite.toml"), pool()).expect("written");
        std::fs::write(path("hosts.toml"), "[netns]\nclients = 2\norigins = 2\n").expect("written");
        let before = namespaces();
        let (suite, topology, out) = (path("suite.toml"), path("hosts.toml"), path("run"));
        let args = ["run", &suite, "-y", "-q", "--scale", "full", "--topology", &topology, "--out", &out];
        run_within(&mut weir(&args), LONG).expect(0);
        for m in measured(&folder.join("run"), 4, 5) {
            let hosts: Vec<&str> =
                m["load"]["hosts"].as_array().expect("hosts").iter().filter_map(|host| host["host"].as_str()).collect();
            assert_eq!(hosts, ["client-1", "client-2"]);
        }
        assert_eq!(namespaces(), before, "a namespace is left");
        nothing_left(folder, Duration::from_secs(10));
    });
}

#[test]
fn ctrl_c_ends_a_run_on_every_machine() {
    let folder = scratch();
    let (machines, hosts) = three(folder.path());
    let words = folder.path().join("words");
    let mut command = command(&machines, folder.path(), &hosts);
    let mut child = command.stderr(File::create(&words).expect("created")).spawn().expect("starts");
    let client_loads = || machines.get(0).processes().iter().any(|(_, argv)| argv.contains(" client "));
    until_in(&mut child, &words, "a client loads", LONG, client_loads);
    let weir = common::processes_touching(&folder.path().join("run"));
    let own = weir.iter().find(|(_, argv)| argv.contains(" run ")).unwrap_or_else(|| panic!("{weir:?}"));
    signal(own.0, Signal::INT);
    assert_eq!(wait_within(&mut child, LONG).code(), Some(130));
    clean(&machines, 3);
}

/// Four clients, because one address has 58,061 ports for a target; and more connections than a process may have descriptors, on
/// either side.
#[test]
fn two_hundred_thousand_connections_are_held_without_other_addresses() {
    needs_root("make network namespaces");
    let folder = scratch();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let head = "title = \"Many\"\nproducts = [\"direct\"]\nprofile = \"tuned\"\nblocks = 1";
    let load =
        "name = \"held\"\nkind = \"open\"\nrate = 4000\nconnections = 200_000\nwarmup = \"1s\"\nduration = \"4s\"";
    std::fs::write(path("suite.toml"), suite(head, load)).expect("written");
    std::fs::write(path("hosts.toml"), "[netns]\nclients = 4\n").expect("written");
    let (suite, hosts, out) = (path("suite.toml"), path("hosts.toml"), path("run"));
    let args = ["run", &suite, "-y", "-q", "--scale", "full", "--topology", &hosts, "--out", &out];
    run_within(&mut weir(&args), 2 * LONG).expect(0);
    let all = measurements(&folder.path().join("run"));
    let m = &all[0].1;
    assert!(m["error"].is_null(), "{}", m["error"]);
    assert!(number(m, "/origin/max_connections_open") >= 200_000.0, "{}", m["origin"]);
    assert_eq!(number(m, "/load/total/connections"), 200_000.0, "none was made twice");
    assert_eq!(m["load"]["total"]["errors"], serde_json::json!({}));
    assert!(number(m, "/load/window/successful") > 8_000.0);
}
