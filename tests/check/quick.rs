//! A shortened `quick` with real products: one from the machine's packages by each of two ways, one from a wheel.

use crate::common;
use std::time::Duration;

use crate::common::{
    csv_rows, measurements, nothing_left, on_a_shared_machine, records, run_within, text, weir, words,
};

#[test]
fn a_shortened_quick_measures_real_products() {
    on_a_shared_machine(|scratch| {
        let out = scratch.join("run");
        let products = ["direct", "nginx", "haproxy", "caddy"];
        let line =
            format!("run quick --scale smoke --blocks 2 --yes --json --seed 7 --products {}", products.join(","));
        let ended = run_within(weir(&words(&line)).arg("--out").arg(&out), Duration::from_secs(400));
        ended.expect(0);
        nothing_left(&out, Duration::from_secs(2));

        let measured = measurements(&out);
        let expected = products.len() * 2 /* workloads */ * 2 /* loads */ * 2 /* blocks */;
        assert_eq!(measured.len(), expected, "{}", ended.stderr);
        assert_eq!(csv_rows(&out).len(), expected);
        records::are_whole(&measured);
        latency_is_offered_alike(&measured);
        progress_is_a_line_for_each_block(&ended.stderr, expected);
        files_are_complete(&out);
        records::are_described(&out, &measured[0].0);
    });
}

/// Without a terminal and without --verbose.
fn progress_is_a_line_for_each_block(said: &str, trials: usize) {
    let lines: Vec<&str> = said.lines().filter(|line| line.contains(&format!(" of {trials} trials, "))).collect();
    // Two blocks under each of two loads, and the last one's end is the run's.
    for (line, ended) in lines.iter().zip([8, 16, 24]) {
        assert!(line.starts_with(&format!("{ended} of ")) && line.contains(" left, now "), "{said}");
        assert!(line.contains("; Provisional: "), "{said}");
        assert!(["nginx", "haproxy", "caddy"].iter().all(|name| line.contains(&format!("{name} "))), "{said}");
    }
    assert_eq!(lines.len(), 3, "{said}");
    assert!(!said.contains(&format!("/{trials}]")), "a line for each trial: {said}");
}

/// The open load's rate is one for all, and was carried.
fn latency_is_offered_alike(measured: &[(std::path::PathBuf, serde_json::Value)]) {
    for workload in ["tiny", "medium"] {
        let rates: Vec<f64> = measured
            .iter()
            .filter(|(_, m)| m["case"]["load"] == "latency" && m["case"]["workload"] == workload)
            .map(|(_, m)| m["load"]["offered_rate"].as_f64().expect("an open load has one"))
            .collect();
        assert!(!rates.is_empty());
        assert!(rates.iter().all(|rate| *rate == rates[0]), "{workload}: {rates:?}");
    }
}

fn files_are_complete(out: &std::path::Path) {
    for file in
        ["run.toml", "environment.json", "plan.json", "rates-latency.json", "report/report.html", "report/report.md"]
    {
        assert!(out.join(file).metadata().is_ok_and(|f| f.len() > 0), "{file}");
    }
    let environment: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("environment.json")).expect("read")).expect("JSON");
    assert_eq!(environment["products"].as_array().map(Vec::len), Some(3));
    for product in environment["products"].as_array().expect("products") {
        assert_eq!(product["sha256"].as_str().map(str::len), Some(64), "{product}");
        assert!(product["version"].as_str().is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit())), "{product}");
    }
}

/// As somebody sees it who sits before a terminal of 80 x 24.
#[test]
fn a_terminal_shows_the_order_so_far_and_then_the_response() {
    on_a_shared_machine(|scratch| {
        let out = scratch.join("run");
        let weir_run = weir(&words("run quick --products direct,nginx,haproxy --scale smoke --yes --out"));
        let line = std::iter::once(weir_run.get_program()).chain(weir_run.get_args()).chain([out.as_os_str()]);
        let line: Vec<String> = line.map(|word| format!("'{}'", word.to_str().expect("UTF-8"))).collect();
        let mut terminal = std::process::Command::new("script");
        terminal.args(["-qec", &format!("stty cols 80 rows 24; {}", line.join(" ")), "/dev/null"]);
        terminal.env("WEIR_HOME", common::home()).env("TERM", "xterm-256color").stdin(std::process::Stdio::null());
        let ended = run_within(&mut terminal, Duration::from_secs(120));
        ended.expect(0);
        nothing_left(&out, Duration::from_secs(2));

        let mut screen = vt100::Parser::new(24, 80, 0);
        let (mut bar, mut order) = (false, false);
        for bytes in ended.stdout.as_bytes().chunks(16) {
            screen.process(bytes);
            let lines: Vec<String> = screen.screen().rows(0, 80).collect();
            bar |= lines.iter().any(|line| line.contains("/12 · ") && line.contains(" left · "));
            order |= lines.iter().any(|line| line.starts_with("Provisional") && line.contains("nginx "));
        }
        let last = screen.screen().contents();
        assert!(bar && order, "a bar: {bar}, an order: {order}:\n{}", ended.stdout);
        assert!(!last.contains("Provisional"), "it vanishes:\n{last}");
        let response = common::run(&["report", text(&out)]);
        response.expect(0);
        let mut rest = last.as_str();
        for line in response.stdout.lines() {
            let found = rest.split_once(line.trim_end());
            rest = found.unwrap_or_else(|| panic!("no {line:?} on the last screen:\n{last}")).1;
        }
        assert!(!ended.stdout.contains("[ 1/12]"), "no line for each trial:\n{}", ended.stdout);
    });
}

#[test]
fn run_toml_runs_again_in_the_same_order() {
    on_a_shared_machine(|scratch| {
        let first = scratch.join("first");
        let again = scratch.join("again");
        let mut run = weir(&words("run quick --scale smoke --only load=capacity --yes -q --out"));
        run_within(run.arg(&first), Duration::from_secs(120)).expect(0);
        let mut run = weir(&["run", text(&first.join("run.toml")), "--yes", "-q", "--out", text(&again)]);
        run_within(&mut run, Duration::from_secs(120)).expect(0);
        let plan = |p: &std::path::Path| std::fs::read_to_string(p.join("plan.json")).expect("plan.json");
        assert_eq!(plan(&first), plan(&again));
    });
}
