//! A product that is kept over the workloads of a load: one start for all of them, several where its configuration cannot, and what is
//! said when it dies or when the run is interrupted in their midst.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::common::{
    measurements, nothing_left, on_a_shared_machine, processes_touching, run_within, signal, until, wait_within, weir,
};
use rustix::process::Signal;
use serde_json::Value;

/// Four workloads over two protocols, and a load that keeps products.
fn suite(folder: &Path, products: &str, window: &str) -> PathBuf {
    let workload = |name: &str, protocol: &str, size: u32| {
        format!(
            "[[workload]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\npath = \"/bytes/{size}\"\nexpect = {{ status = 200, size = {size} }}\n"
        )
    };
    let text = [
        format!(
            "[suite]\ntitle = \"Kept\"\nquestion = \"?\"\nblocks = 1\nprofile = \"tuned\"\nproducts = [{products}]\n"
        ),
        workload("http-tiny", "http/1.1", 128),
        workload("http-small", "http/1.1", 3269),
        workload("https-tiny", "https/1.1", 128),
        workload("https-small", "https/1.1", 3269),
        format!(
            "[[load]]\nname = \"closed\"\nkind = \"closed\"\nconnections = 16\nkeep = true\nwarmup = \"100ms\"\nduration = \"{window}\"\n"
        ),
    ];
    let path = folder.join("kept.toml");
    std::fs::write(&path, text.join("\n")).expect("written");
    path
}

fn arguments<'a>(suite: &'a Path, out: &'a Path) -> Vec<&'a str> {
    let text = |path: &'a Path| path.to_str().expect("UTF-8");
    vec!["run", text(suite), "--yes", "--seed", "3", "--out", text(out)]
}

/// Workload, trial that started its product, place and number of those that share the start; by trial.
fn kept(measured: &[(PathBuf, Value)], profile: &str) -> Vec<(String, Value)> {
    let own = measured.iter().filter(|(_, m)| m["case"]["profile"] == profile && m["case"]["product"] != "direct");
    own.map(|(_, m)| (m["case"]["workload"].as_str().expect("a name").to_owned(), m["kept"].clone())).collect()
}

#[test]
fn one_start_is_for_all_workloads_or_for_those_of_one_protocol() {
    on_a_shared_machine(|scratch| {
        let out = scratch.join("run");
        let suite = suite(scratch, r#""direct", "nginx:as-published-monolake", "nginx""#, "500ms");
        run_within(&mut weir(&arguments(&suite, &out)), Duration::from_secs(120)).expect(0);
        nothing_left(&out, Duration::from_secs(2));
        let measured = measurements(&out);
        assert_eq!(measured.len(), 12);
        let names = ["http-tiny", "http-small", "https-tiny", "https-small"];
        for (profile, of) in [("as-published-monolake", 4), ("tuned", 2)] {
            let kept = kept(&measured, profile);
            assert_eq!(kept.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names);
            let places: Vec<u64> = kept.iter().map(|(_, kept)| kept["place"].as_u64().expect("a place")).collect();
            let one: Vec<u64> = (1..=of).collect();
            assert_eq!(places, one.repeat(4 / of as usize), "{profile}");
            assert!(kept.iter().all(|(_, kept)| kept["of"] == of), "{profile}: {kept:?}");
        }
        for (folder, m) in &measured {
            assert!(m["error"].is_null(), "{}: {}", folder.display(), m["error"]);
            assert_eq!(
                m["load"]["total"]["sent"],
                m["origin"]["requests"],
                "{}: requests are conserved",
                folder.display()
            );
            let started = m["case"]["product"] != "direct" && m["kept"]["since"] == m["trial"];
            assert_eq!(folder.join("product/nginx.conf").is_file(), started, "{}", folder.display());
            assert_eq!(folder.join("product/exit.json").is_file(), started, "{}: it was ended", folder.display());
            if m["case"]["profile"] == "as-published-monolake" && started {
                let text = std::fs::read_to_string(folder.join("product/nginx.conf")).expect("read");
                assert_eq!(text.matches("listen 127.").count(), 2, "{text}");
                assert_eq!(text.matches("proxy_buffering off").count(), 1, "under TLS alone: {text}");
            }
        }
        let connections = |name: &str| {
            let of = |m: &Value| m["case"]["workload"] == name && m["case"]["profile"] == "as-published-monolake";
            let (_, m) = measured.iter().find(|(_, m)| of(m)).expect("measured");
            m["origin"]["connections_accepted"].as_u64().expect("counted")
        };
        let (first, second) = (connections("http-tiny"), connections("http-small"));
        assert!(second < first, "those of the first workload, {first}, were still open: {second}");
        let report = std::fs::read_to_string(out.join("report/report.html")).expect("a report");
        assert!(
            report.contains("this was number 2 of 4 for NGINX as-published-monolake")
                || report.contains("number 2 of 4 for nginx")
        );
        assert!(!report.contains("left behind was gone"));
    });
}

/// Starts a run of one kept product, and waits until so many of its four trials are finished and the next is under way.
fn begun(scratch: &Path, finished: usize) -> (PathBuf, std::process::Child) {
    let out = scratch.join("run");
    let suite = suite(scratch, r#""nginx:as-published-monolake""#, "2s");
    let child =
        weir(&arguments(&suite, &out)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("weir starts");
    until("a trial is finished and the next begun", Duration::from_secs(60), || {
        let trials = out.join("trials");
        trials.is_dir()
            && measurements(&out).len() >= finished
            && std::fs::read_dir(&trials).is_ok_and(|all| all.count() > finished)
    });
    (out, child)
}

#[test]
fn what_was_interrupted_goes_on_with_another_start_and_says_so() {
    on_a_shared_machine(|scratch| {
        let (out, mut child) = begun(scratch, 2);
        child.kill().expect("killed");
        wait_within(&mut child, Duration::from_secs(5));
        nothing_left(&out, Duration::from_secs(5));
        let finished = measurements(&out).len();
        assert!((2..4).contains(&finished), "{finished}");
        let out_text = out.to_str().expect("UTF-8");
        run_within(&mut weir(&["run", "--resume", out_text, "--yes"]), Duration::from_secs(60)).expect(0);
        let kept = kept(&measurements(&out), "as-published-monolake");
        let since: Vec<usize> =
            kept.iter().map(|(_, kept)| kept["since"].as_u64().expect("a number") as usize).collect();
        let expected: Vec<usize> = (1..=4).map(|trial| if trial <= finished { 1 } else { finished + 1 }).collect();
        assert_eq!(since, expected);
        assert!(kept.iter().zip(1..).all(|((_, kept), place)| kept["place"] == place && kept["of"] == 4), "{kept:?}");
        let report = std::fs::read_to_string(out.join("report/report.html")).expect("a report");
        let said = format!("left behind was gone in trial 4 (started for trial {})", finished + 1);
        assert!(report.contains(&said), "{said}");
    });
}

#[test]
fn what_dies_fails_the_rest_of_those_it_was_started_for() {
    on_a_shared_machine(|scratch| {
        let (out, mut child) = begun(scratch, 1);
        let trials = out.join("trials");
        let own = |args: &str| args.starts_with("nginx: ") || (args.contains("nginx.conf") && !args.contains("weir"));
        for (pid, args) in processes_touching(&trials) {
            if own(&args) {
                signal(pid, Signal::KILL);
            }
        }
        wait_within(&mut child, Duration::from_secs(60));
        let measured = measurements(&out);
        assert_eq!(measured.len(), 4);
        let stages: Vec<&str> = measured.iter().map(|(_, m)| m["error"]["stage"].as_str().unwrap_or("none")).collect();
        let failed = stages.iter().position(|stage| *stage != "none").expect("one failed");
        assert!(failed >= 1 && stages[failed] != "not-tried", "{stages:?}");
        assert!(stages[failed + 1..].iter().all(|stage| *stage == "not-tried") && failed < 3, "{stages:?}");
        let said = measured[3].1["error"]["message"].as_str().expect("said");
        let expected = format!("nginx was started once for 4 workloads, and trial {} (", failed + 1);
        assert!(said.starts_with(&expected), "{said}");
        nothing_left(&out, Duration::from_secs(2));
    });
}
