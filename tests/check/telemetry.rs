//! Live metrics of a real load and a real run: scraped while it goes on, and written to a file. The numbers are
//! those of the result. `crates/load-cli/src/telemetry` tests the texts.

use crate::common;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::common::{OriginUnderTest, number, run_within, scratch, until, weir, words};
use serde_json::Value;

/// The response to a scrape: its head and its body.
fn scrape(address: &str) -> Option<(String, String)> {
    let mut connection = TcpStream::connect(address).ok()?;
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
    let mut response = String::new();
    connection.read_to_string(&mut response).ok()?;
    response.split_once("\r\n\r\n").map(|(head, body)| (head.to_owned(), body.to_owned()))
}

/// Samples by name and labels, of a whole text.
fn samples(text: &str) -> BTreeMap<String, f64> {
    assert!(text.ends_with("# EOF\n"), "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    lines.map(|(name, value)| (name.to_owned(), value.parse().expect("a number"))).collect()
}

/// The value of the only sample of this name whose labels contain `label`; with an empty one, of that without `error_type`.
fn find(samples: &BTreeMap<String, f64>, name: &str, label: &str) -> Option<f64> {
    let fits = |key: &&String| {
        let rest = key.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('{'));
        rest.is_some_and(|rest| if label.is_empty() { !rest.contains("error_type") } else { rest.contains(label) })
    };
    let found: Vec<&String> = samples.keys().filter(fits).collect();
    assert!(found.len() <= 1, "{found:?}");
    found.first().map(|key| samples[*key])
}

/// The address at which a load that has just begun serves its metrics.
fn served(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stderr.take().expect("piped")).read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("metrics: http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("no address: {line}")).to_owned();
    assert!(address.starts_with("127.0.0.1:"), "a port alone is of this machine: {address}");
    address
}

/// Three of four requests go where the response is right.
fn urls(folder: &std::path::Path, origin: &OriginUnderTest) -> String {
    let file = folder.join("urls");
    let all = ["/bytes/128", "/bytes/256", "/bytes/512", "/status/404"].map(|path| origin.url(path));
    std::fs::write(&file, all.join("\n")).expect("written");
    file.display().to_string()
}

#[test]
fn scrapes_and_the_file_lead_up_to_the_result() {
    let (origin, scratch) = (OriginUnderTest::start(&[]), scratch());
    let (urls, file) = (urls(scratch.path(), &origin), scratch.path().join("end.prom"));
    let line = "load -q --json --metrics 0 --rate 200 -d 6s --warmup 1s -c 4 --urls";
    let mut command = weir(&words(line));
    command.arg(&urls);
    command.arg("--metrics-file").arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("weir starts");
    let address = served(&mut child);
    let mut counts: Vec<f64> = Vec::new();
    until("two seconds with requests", Duration::from_secs(30), || {
        let Some((head, body)) = scrape(&address) else { return true };
        assert!(
            head.to_ascii_lowercase().contains("content-type: application/openmetrics-text; version=1.0.0"),
            "{head}"
        );
        let samples = samples(&body);
        let ended = find(&samples, "weir_client_requests_total", "").filter(|n| *n > 0.0 && counts.last() != Some(n));
        // Unknown until the first second of the window is over.
        assert!(ended.is_none() || find(&samples, "weir_client_connections", "") == Some(4.0), "{body}");
        counts.extend(ended);
        counts.len() >= 2
    });
    let ended = child.wait_with_output().expect("waited for");
    let result: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    let (right, due) = (number(&result, "/window/successful"), number(&result, "/window/due"));
    let failed = number(&result, "/window/errors/bad_status");
    assert!(right + failed == due && failed > 0.0, "{result:#}");
    assert!(counts.len() >= 2 && counts.is_sorted() && counts.iter().all(|count| *count < right), "{counts:?} {right}");
    let samples = samples(&std::fs::read_to_string(file).expect("written"));
    for (name, label, expected) in [
        ("weir_client_requests_total", "", right),
        ("weir_client_requests_total", "error_type=\"bad_status\"", failed),
        ("http_client_request_duration_seconds_count", "", due),
        ("http_client_active_requests", "", 0.0),
    ] {
        assert_eq!(find(&samples, name, label), Some(expected), "{name}: {samples:#?}");
    }
    let mean_us = find(&samples, "http_client_request_duration_seconds_sum", "").expect("a sum") / due * 1e6;
    assert!((mean_us / number(&result, "/latency/mean_us") - 1.0).abs() < 0.02, "{mean_us}");
}

#[test]
fn an_address_that_is_taken_is_bad_input() {
    let origin = OriginUnderTest::start(&[]);
    let url = origin.url("/bytes/128");
    // An address that is taken is bad input, before anything is sent.
    let taken = origin.addr.as_str();
    let ended = common::run(&["load", "-q", &url, "-n", "5", "--metrics", taken]);
    assert!(ended.expect(2).contains("expected: an address of this machine and a free port"), "{}", ended.stderr);
}

#[test]
fn a_runs_file_counts_its_trials() {
    let scratch = scratch();
    let (out, file) = (scratch.path().join("run"), scratch.path().join("end.prom"));
    let mut command = weir(&["run", "quick", "--scale", "smoke", "--products", "direct", "-q", "--json"]);
    let ended = run_within(command.arg("--out").arg(&out).arg("--metrics-file").arg(&file), Duration::from_secs(120));
    ended.expect(0);
    let samples = samples(&std::fs::read_to_string(file).expect("written"));
    let measured = common::measurements(&out);
    let trials: f64 =
        samples.iter().filter(|(name, _)| name.starts_with("weir_run_trials_total{")).map(|(_, n)| n).sum();
    assert_eq!(trials, measured.len() as f64, "{samples:#?}");
    assert_eq!(find(&samples, "weir_run_planned_trials", ""), Some(trials));
    let right: f64 = measured.iter().map(|(_, m)| number(m, "/load/total/successful")).sum();
    let ended: f64 =
        samples.iter().filter(|(name, _)| name.starts_with("weir_client_requests_total")).map(|(_, n)| n).sum();
    assert!(ended > 0.0 && ended <= right, "{ended} of {right}: {samples:#?}");
}
