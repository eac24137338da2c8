//! A product of parts on hosts of their own, over the system's OpenSSH: a proxy, three stores and clients, each on a machine. Parts are
//! started, counted, pinned and killed where they are, and what is lost is named. That clocks differ and hosts are lost is in
//! `tests/world/tests/it/hosts.rs`.

use std::path::Path;
use std::time::Duration;

use crate::common::{measurements, number, on_a_shared_machine, run_within, until_in, wait_within};
use serde_json::Value;

use super::topologies::{clean, command, with_roles};

/// Installing may build a program.
const WITHIN: Duration = Duration::from_secs(900);

const SUITE: &str = include_str!("spread_stores/suite.toml");

const ROLES: [&str; 6] = ["client", "client", "proxy", "proxy:store-1", "proxy:store-2", "proxy:store-3"];

fn error_count(m: &Value, kind: &str) -> u64 {
    m["load"]["window"]["errors"][kind].as_u64().unwrap_or(0)
}

fn has_finding(m: &Value, check: &str) -> bool {
    m["findings"].as_array().expect("findings").iter().any(|finding| finding["check"] == check)
}

#[test]
fn stores_on_machines_of_their_own_are_counted_and_killed_there() {
    on_a_shared_machine(|folder| {
        // The machines share this machine's products, and have no way to the outside to build one.
        run_within(&mut crate::common::weir(&["products", "install", "--yes", "quorum"]), WITHIN).expect(0);
        std::fs::write(folder.join("suite.toml"), SUITE).expect("written");
        let roles: Vec<(&str, i64)> = ROLES.into_iter().zip([0, 7, 0, 5_000, -3, 0]).collect();
        let (machines, hosts) = with_roles(folder, &roles);
        let words = folder.join("words");
        let mut command = command(&machines, folder, &hosts);
        let mut run = command.stderr(std::fs::File::create(&words).expect("created")).spawn().expect("starts");
        for (machine, part) in [(2, "proxy"), (3, "store-1"), (4, "store-2"), (5, "store-3")] {
            let runs_alone = || {
                let processes = machines.get(machine).processes();
                let own: Vec<&String> =
                    processes.iter().map(|(_, argv)| argv).filter(|argv| argv.contains("quorum.toml")).collect();
                own.iter().any(|argv| argv.contains(&format!("weir-quorum {part} ")))
                    && own.iter().all(|argv| argv.contains(part))
            };
            until_in(&mut run, &words, part, Duration::from_secs(60), runs_alone);
        }
        let ended = wait_within(&mut run, Duration::from_secs(120));
        assert_eq!(ended.code(), Some(0), "{}", std::fs::read_to_string(&words).unwrap_or_default());

        let all = measurements(&folder.join("run"));
        assert_eq!(all.len(), 4);
        for (trial, m) in &all {
            assert!(m["error"].is_null(), "{}", m["error"]);
            is_counted_by_part(trial, m);
        }
        let of = |profile: &str, load: &str| {
            let is_it = |m: &&Value| m["case"]["profile"] == profile && m["case"]["load"] == load;
            all.iter().map(|(_, m)| m).find(is_it).unwrap_or_else(|| panic!("no trial of {profile} under {load}"))
        };
        // One client has no list.
        let clients = |m: &Value| m["load"]["hosts"].as_array().map_or(0, Vec::len).max(1);
        for profile in ["tuned", "as-published"] {
            let (store, every) = (of(profile, "store-killed"), of(profile, "all-killed"));
            assert_eq!((clients(store), clients(every)), (1, 2), "{profile}");
            for (m, starts) in [(store, [2.0, 4.0].as_slice()), (every, &[2.0])] {
                let faults = m["faults"].as_array().expect("faults");
                assert_eq!(faults.len(), starts.len(), "{faults:?}");
                for (fault, start) in faults.iter().zip(starts) {
                    let (began, ended) = (number(fault, "/began_s") - start, number(fault, "/ended_s") - start);
                    assert!((0.0..0.5).contains(&began) && (1.0..1.9).contains(&ended), "{fault}");
                }
            }
            assert!(error_count(every, "connect_refused") > 0, "the front is gone: {}", every["load"]["window"]);
            assert_eq!(error_count(store, "connect_refused"), 0, "the front is there: {}", store["load"]["window"]);
            // Without a log, what all had in memory is lost, and that is named.
            let without_log = profile == "as-published";
            assert_eq!(error_count(every, "lost") > 0, without_log, "{}", every["load"]["window"]);
            assert_eq!(has_finding(every, "wrong-data"), without_log, "{}", every["findings"]);
            // With one, a store of three is not missed.
            assert!(without_log || !has_finding(store, "wrong-data"), "{}", store["findings"]);
        }
        clean(&machines, ROLES.len());
        let environment: Value =
            serde_json::from_slice(&std::fs::read(folder.join("run/environment.json")).expect("there")).expect("JSON");
        let parts =
            |host: &Value| (host["name"].as_str().map(str::to_owned), host["parts"][0].as_str().map(str::to_owned));
        let named: Vec<_> = environment["hosts"].as_array().expect("hosts").iter().map(parts).collect();
        for (host, part) in [("m3", None), ("m4", Some("store-1")), ("m5", Some("store-2")), ("m6", Some("store-3"))] {
            assert!(named.contains(&(Some(host.to_owned()), part.map(str::to_owned))), "{named:?}");
        }
        let report = std::fs::read_to_string(folder.join("run/report/report.md")).expect("a report");
        assert!(report.contains("proxy:store-1") && report.contains("store-1 on m4"), "where parts ran");
    });
}

/// What the document of the stores ran, tried on seven machines: of three clients, tests 2 and 4 had two.
#[test]
fn a_document_of_stores_is_tried_on_machines_as_it_had() {
    on_a_shared_machine(|folder| {
        run_within(&mut crate::common::weir(&["products", "install", "--yes", "quorum"]), WITHIN).expect(0);
        let roles: Vec<(&str, i64)> = ROLES.into_iter().chain(["client"]).map(|role| (role, 0)).collect();
        let (machines, hosts) = with_roles(folder, &roles);
        let out = folder.join("run").display().to_string();
        let words =
            ["run", "juno", "--as-published", "--products", "quorum", "--scale", "smoke", "--yes", "--topology"];
        run_within(&mut machines.weir(&[&words[..], &[&hosts, "--out", &out]].concat()), WITHIN).expect(0);
        let all = measurements(&folder.join("run"));
        assert_eq!(all.len(), 1);
        for (trial, m) in &all {
            is_counted_by_part(trial, m);
            let points = m["points"].as_array().expect("a series");
            let rates: Vec<f64> = points.iter().map(|point| number(point, "/load/offered_rate")).collect();
            assert_eq!(rates, [1e4, 2e4, 3e4, 4.5e4, 6e4, 8e4], "{}", m["error"]);
            let clients = |point: &Value| point["load"]["hosts"].as_array().map(Vec::len);
            assert!(points.iter().all(|point| clients(point) == Some(2)), "two clients of three");
        }
        clean(&machines, roles.len());
    });
}

/// Each part has its own account, its files are back from its machine, and its numbers came over the network.
fn is_counted_by_part(trial: &Path, m: &Value) {
    let proxy =
        m["usage"].as_array().expect("usage").iter().find(|usage| usage["role"] == "proxy").expect("the product");
    let parts: Vec<&String> = proxy["parts"].as_object().expect("by part").keys().collect();
    assert_eq!(parts, ["proxy", "store-1", "store-2", "store-3"]);
    for part in parts {
        let usage = &proxy["parts"][part];
        assert!(number(usage, "/cpu_user_us") > 0.0 && number(usage, "/rss_max_bytes") > 1e6, "{part}: {usage}");
    }
    for (folder, part) in
        [("product", "proxy"), ("product-m4", "store-1"), ("product-m5", "store-2"), ("product-m6", "store-3")]
    {
        for file in ["quorum.toml".to_owned(), format!("exit-{part}.json"), format!("output-{part}.log")] {
            assert!(trial.join(folder).join(&file).is_file(), "{}/{folder}/{file}", trial.display());
        }
    }
    let told = std::fs::read_to_string(trial.join("monitor-store-2.csv")).expect("numbers of a store");
    assert!(told.lines().count() > 5, "{told}");
}
