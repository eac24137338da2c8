//! Runs whose roles have hosts of their own: namespaces that weir makes, and machines over the system's OpenSSH. The same suite,
//! the same records, and nothing left on any host, whatever goes wrong.

use crate::common;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::machines::{Machine, Machines, Setup};
use crate::common::{
    home, measurements, needs_root, nothing_left, number, on_a_shared_machine, run_within, scratch, signal, suite,
    until, until_in, wait_within, weir,
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
fn with_roles(folder: &Path, roles: &[(&str, i64)]) -> (Machines, String) {
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

fn command(machines: &Machines, folder: &Path, hosts: &str) -> Command {
    let suite = folder.join("suite.toml").display().to_string();
    command_of(&suite, "full", machines, folder, hosts)
}

/// Starts the short suite, and waits until `done` says that it has come so far.
fn begun(machines: &Machines, folder: &Path, hosts: &str, what: &str, done: impl FnMut() -> bool) -> Child {
    let words = folder.join("words");
    let file = File::create(&words).expect("created");
    let mut run = command(machines, folder, hosts).stdin(Stdio::null()).stderr(file).spawn().expect("starts");
    until_in(&mut run, &words, what, LONG, done);
    run
}

fn command_of(suite: &str, scale: &str, machines: &Machines, folder: &Path, hosts: &str) -> Command {
    let out = folder.join("run").display().to_string();
    machines.weir(&["run", suite, "--yes", "--quiet", "--scale", scale, "--topology", hosts, "--out", &out])
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
fn measured(run: &Path, trials: usize, hosts: usize) -> Vec<Value> {
    let all: Vec<Value> = measurements(run).into_iter().map(|(_, measurement)| measurement).collect();
    assert_eq!(all.len(), trials);
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

/// A product that is kept over its workloads works on a disk of its machine's: what it wrote comes back after the last of them.
#[test]
fn a_kept_product_stays_on_its_machine_and_its_files_come_back() {
    on_a_shared_machine(|folder| {
        let head = "title = \"Kept\"\nblocks = 1\nproducts = [\"nginx:as-published-monolake\"]";
        let load =
            "name = \"closed\"\nkind = \"closed\"\nconnections = 8\nkeep = true\nwarmup = \"100ms\"\nduration = \"1s\"";
        let https = "[[workload]]\nname = \"https\"\nprotocol = \"https/1.1\"\npath = \"/bytes/128\"\nexpect = { status = 200, size = 128 }\n";
        let suite = suite(head, load) + https;
        std::fs::write(folder.join("suite.toml"), suite).expect("written");
        let (machines, hosts) = with_roles(folder, &[("client", 0), ("proxy", 0), ("origin", 0)]);
        run_within(&mut command(&machines, folder, &hosts), LONG).expect(0);
        let run = folder.join("run");
        let all = measurements(&run);
        let places: Vec<_> =
            all.iter().map(|(_, m)| (m["kept"]["place"].as_u64(), m["kept"]["since"].as_u64())).collect();
        assert_eq!(places, [(Some(1), Some(1)), (Some(2), Some(1))]);
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

/// Two clients whose clocks differ by an hour and a half make one load: what each says of a second is of the same second.
#[test]
fn clients_with_other_clocks_are_on_one_time_axis() {
    on_a_shared_machine(|folder| {
        let head = "title = \"Short\"\nproducts = [\"nginx\"]\nprofile = \"tuned\"\nblocks = 1";
        let load = "name = \"open\"\nkind = \"open\"\nrate = 1000\narrivals = \"constant\"\nconnections = 8\nwarmup = \"300ms\"\n\
                duration = \"4s\"";
        std::fs::write(folder.join("suite.toml"), suite(head, load)).expect("written");
        let roles = [("client", 5_000), ("client", -3), ("proxy", 0), ("origin", 77)];
        let (machines, hosts) = with_roles(folder, &roles);
        run_within(&mut command(&machines, folder, &hosts), LONG).expect(0);
        let run = folder.join("run");
        let m = measured(&run, 1, 4).remove(0);
        for clock in m["clocks"].as_array().expect("clocks") {
            assert!(number(clock, "/error_us") + number(clock, "/drift_us") < 50_000.0, "{clock}");
        }
        let trial = measurements(&run).remove(0).0;
        let [all, one, two] = ["", "clients/m1", "clients/m2"].map(|of| csv_file(&trial.join(of).join("load.csv")));
        assert_eq!(all.len(), 4);
        for (second, (all, (one, two))) in all.iter().zip(one.iter().zip(&two)).enumerate() {
            for column in ["second", "length_s"] {
                assert_eq!((&all[column], &all[column]), (&one[column], &two[column]));
            }
            for column in ["due", "sent", "right"] {
                let [all, one, two] = [all, one, two].map(|row| row[column].parse::<u32>().expect("a number"));
                assert_eq!(all, one + two, "{column} of second {second}");
                assert!(
                    column != "due" || (one.abs_diff(500) <= 2 && two.abs_diff(500) <= 2),
                    "{one} and {two} were due"
                );
            }
        }
        // Each client says when its window began, by the clock of the machine where weir runs.
        let began =
            [trial.clone(), trial.join("clients/m1"), trial.join("clients/m2")].map(|folder| start_of_log(&folder));
        assert!(began.iter().all(|start| (start - began[0]).abs() < 0.02), "{began:?}");
        // The proxy's network says when their requests came: as many in each second. It asks nobody's clock but its own.
        let rows: Vec<_> =
            csv_file(&trial.join("resources.csv")).into_iter().filter(|row| row["who"] == "network/m3").collect();
        let column =
            |name: &str| rows.iter().map(|row| row[name].parse::<f64>().expect("a number")).collect::<Vec<_>>();
        let rates: Vec<f64> =
            column("net_in_bytes").iter().zip(column("length_s")).map(|(bytes, s)| bytes / s).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        assert!(
            rates.len() >= 4 && rates.iter().all(|rate| (rate / mean - 1.0).abs() < 0.15),
            "bytes a second: {rates:?}"
        );
        for (second, end_ms) in column("time_ms").iter().enumerate().take(4) {
            let end = began[0] + second as f64 + 1.0;
            assert!((end_ms / 1e3 - end).abs() < 0.2, "second {second} ends at {end}, and the proxy's at {end_ms} ms");
        }
        clean(&machines, 4);
    });
}

fn csv_file(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    reader.deserialize().map(|row| row.expect("a whole row")).collect()
}

/// Unix time at which an interval log begins, s.
fn start_of_log(folder: &Path) -> f64 {
    let log = std::fs::read_to_string(folder.join("latency.hlog")).expect("a log");
    let (_, rest) = log.split_once("#[StartTime: ").unwrap_or_else(|| panic!("no start in {log}"));
    rest.split_once(' ').and_then(|(seconds, _)| seconds.parse().ok()).unwrap_or_else(|| panic!("no seconds in {log}"))
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
        for m in measured(&folder.join("run"), 4, 5) {
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
                assert!((due - 1_500.0).abs() < 150.0, "the parts are together the load that was asked for: {due}");
            }
        }
        assert_eq!(namespaces(), before, "a namespace is left");
        nothing_left(folder, Duration::from_secs(10));
    });
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
    on_a_shared_machine(|folder| {
        let (machines, hosts) = three(folder);
        let nginx_runs = || machines.get(1).processes().iter().any(|(_, argv)| argv.contains("nginx"));
        let is_loaded = || nginx_runs() && client_loads(machines.get(0));
        let mut child = begun(&machines, folder, &hosts, "nginx is loaded", is_loaded);
        let transport = common::processes_touching(&machines.config());
        let ssh = transport.iter().find(|(_, argv)| argv.contains("-- m2 sh"));
        signal(ssh.unwrap_or_else(|| panic!("{transport:?}")).0, Signal::KILL);
        let status = wait_within(&mut child, LONG);
        assert_eq!(status.code(), Some(1), "one trial failed");
        let all = measurements(&folder.join("run"));
        let failed: Vec<&Value> = all.iter().map(|(_, m)| m).filter(|m| !m["error"].is_null()).collect();
        assert_eq!((all.len(), failed.len()), (4, 1), "{failed:?}");
        assert_eq!(failed[0]["error"]["stage"], "host");
        assert_eq!(failed[0]["error"]["message"], "the host m2 was lost in mid-trial");
        clean(&machines, 3);
    });
}

fn client_loads(machine: &Machine) -> bool {
    machine.processes().iter().any(|(_, argv)| argv.contains(" client "))
}

#[test]
fn ctrl_c_ends_a_run_on_every_machine() {
    let folder = scratch();
    let (machines, hosts) = three(folder.path());
    let mut child = begun(&machines, folder.path(), &hosts, "a client loads", || client_loads(machines.get(0)));
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
    let (machines, hosts) = three(folder.path());
    let mut child = begun(&machines, folder.path(), &hosts, "a client loads", || client_loads(machines.get(0)));
    let path = |name: &str| folder.path().join(name).display().to_string();
    let args =
        ["run", &path("suite.toml"), "-y", "-q", "--scale", "full", "--topology", &hosts, "--out", &path("second")];
    let refused = run_within(&mut machines.weir(&args), LONG);
    let said = refused.expect(3);
    assert!(said.contains("m1") && said.contains("in use by run run of"), "{said}");
    assert!(!folder.path().join("second").exists());
    assert_eq!(wait_within(&mut child, LONG).code(), Some(0), "the first is not disturbed");
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
    assert!(number(m, "/load/window/right") > 8_000.0);
}
