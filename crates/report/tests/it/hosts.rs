//! What a report says of a run on several hosts, and that it says nothing of them for one machine.

use crate::common;
use std::fs;
use std::path::Path;

use crate::common::golden;
use weir_model::load::{ClientOfHost, Quantiles};
use weir_model::record::{Environment, HostClock, HostRecord, Measurement, Role};
use weir_report::{ChartFiles, full_answer, load_run, make, short_answer, summary, tables};

/// The made-up run as if two clients, a proxy and an origin had been on three machines.
fn write_run_on_hosts(run: &Path) {
    common::write_blocks(run, 1, 24);
    let file = run.join("environment.json");
    let mut environment: Environment = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let host = |name: &str, role, machine: &str, k: u8, facts: &Environment| HostRecord {
        name: name.to_string(),
        roles: vec![role],
        parts: Vec::new(),
        machine: machine.to_string(),
        address: Some([10, 0, 1, k].into()),
        cpus: vec![0, 1],
        facts: facts.clone(),
    };
    let proxy = Environment { placement: Default::default(), products: Vec::new(), ..environment.clone() };
    let other =
        Environment { host: "load".to_string(), cpus: 16, cpu_model: "Another CPU".to_string(), ..proxy.clone() };
    environment.hosts = vec![
        host("proxy", Role::Proxy, "a", 1, &proxy),
        host("origin-1", Role::Origin, "b", 2, &proxy),
        host("client-1", Role::Client, "c", 3, &other),
        host("client-2", Role::Client, "c", 4, &other),
    ];
    common::write_json(&file, &environment);
    for folder in fs::read_dir(run.join("trials")).unwrap() {
        let file = folder.unwrap().path().join("measurement.json");
        let mut measurement: Measurement = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let n = f64::from(measurement.trial);
        let clock = |(k, host): (usize, &HostRecord)| HostClock {
            host: host.name.clone(),
            error_us: 80.0 + n,
            drift_us: 10.0 * k as f64,
        };
        measurement.clocks = environment.hosts.iter().enumerate().map(clock).collect();
        let client = |host: &str, lag_us: f64, busy: f64| ClientOfHost {
            host: host.to_string(),
            lag: Quantiles { count: 1_000, p99_us: lag_us, ..Quantiles::default() },
            thread_busy: vec![busy / 2.0, busy],
            sent: 1_000,
            successful: 1_000,
            connections: 32,
            ..ClientOfHost::default()
        };
        if let Some(load) = &mut measurement.load {
            load.hosts = vec![client("client-1", 50.0 + n, 0.31), client("client-2", 1_900.0 + n, 0.94)];
        }
        common::write_json(&file, &measurement);
    }
}

#[test]
fn several_hosts_stand_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("2026-01-02T03-04-05-hosts");
    write_run_on_hosts(&folder);
    let run = load_run(&folder).unwrap();
    assert_eq!(run.broken, []);
    let summary = summary(&run);
    let short = short_answer(&summary, Path::new("report/report.html"), 80, false);
    assert!(short.lines().count() <= 22 && short.lines().all(|line| line.chars().count() <= 80), "{short}");
    golden("hosts-short.txt", &short);
    golden("hosts-80.txt", &full_answer(&summary, 80, false));
    let mut text = String::new();
    let trials = summary.sections.iter().map(|section| tables::trials(&run, section));
    for table in trials.take(1).chain(tables::environment(run.environment.as_ref().unwrap())) {
        text.push_str(&format!("{}\n\n{}\n", table.title, tables::markdown::draw(&table)));
    }
    golden("hosts.md", &text);
    let made = make(&folder, ChartFiles::Pictures).unwrap();
    let (markdown, page) = (fs::read_to_string(&made.markdown).unwrap(), fs::read_to_string(&made.html).unwrap());
    for words in [
        "4 hosts on 3 machines: client on client-1 and client-2",
        "disagreed by at most",
        "Busiest thread",
        "Another CPU",
    ] {
        assert!(markdown.contains(words) && page.contains(words), "{words}");
    }
    assert!(page.contains("id=\"clients-plain-steady\"") && page.contains(">Clocks"), "tables of the page");
}

#[test]
fn one_machine_has_no_hosts() {
    let folder = tempfile::tempdir().unwrap();
    common::write_blocks(folder.path(), 1, 24);
    let run = load_run(folder.path()).unwrap();
    let summary = summary(&run);
    assert_eq!(summary.hosts, "");
    assert!(summary.sections.iter().all(|section| tables::clients(section).is_none()));
    let names: Vec<String> =
        tables::environment(run.environment.as_ref().unwrap()).into_iter().map(|table| table.title).collect();
    assert_eq!(names, ["Products as they were run", "Machine"]);
}
