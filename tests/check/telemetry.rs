//! Live metrics of a real load and a real run: scraped while it goes on, written to a file, and pushed to a collector. The numbers are
//! those of the result. `crates/load-cli/src/telemetry` tests the texts.

use crate::common;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
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

/// Takes what is pushed, and keeps the requests' bodies.
struct Collector {
    url: String,
    got: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    /// Ends with the process.
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let got = Arc::new(Mutex::new(Vec::new()));
        let keep = got.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                keep.lock().expect("whole").extend(take(&connection));
            }
        });
        Collector { url, got }
    }
}

fn take(mut connection: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    while reader.read_line(&mut head).ok()? > 2 {}
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").ok()?;
    serde_json::from_slice(&body).ok()
}

/// The data points of a metric in what was pushed.
fn points<'v>(pushed: &'v Value, name: &str) -> Vec<&'v Value> {
    let metrics = pushed["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().expect("metrics");
    let metric =
        metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("no {name}: {pushed:#}"));
    let data = ["sum", "gauge", "histogram"].iter().find_map(|kind| metric[*kind]["dataPoints"].as_array());
    data.expect("points").iter().collect()
}

#[test]
fn scrapes_pushes_and_the_file_lead_up_to_the_result() {
    let (origin, scratch, collector) = (OriginUnderTest::start(&[]), scratch(), Collector::start());
    let (urls, file) = (urls(scratch.path(), &origin), scratch.path().join("end.prom"));
    let line = "load -q --json --metrics 0 --rate 200 -d 6s --warmup 1s -c 4 --urls";
    let mut command = weir(&words(line));
    command.arg(&urls);
    command.args(["--otlp", &collector.url, "--metrics-file"]).arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
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
    // The first push is after five seconds; all count from one time.
    let got = collector.got.lock().expect("whole").clone();
    let point = |pushed: &Value| points(pushed, "http.client.request.duration")[0].clone();
    assert!(got.len() >= 2, "one after five seconds and one at the end: {got:#?}");
    assert!(got.iter().all(|pushed| point(pushed)["startTimeUnixNano"] == point(&got[0])["startTimeUnixNano"]));
    let last = got.last().expect("asserted");
    assert_eq!(points(last, "weir.client.requests")[0]["asDouble"].as_f64(), Some(right));
    assert_eq!(point(last)["count"].as_str(), Some(due.to_string().as_str()), "64 bits are a text");
}

#[test]
fn a_collector_that_is_not_there_is_said_once_and_changes_nothing() {
    let origin = OriginUnderTest::start(&[]);
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let otlp = format!("http://{free}");
    let url = origin.url("/bytes/128");
    let args = ["load", "-q", "--json", &url, "--rate", "50", "-d", "6s", "--otlp", &otlp];
    let ended = run_within(&mut weir(&args), Duration::from_secs(60));
    let said = ended.expect(0);
    assert_eq!(said.matches("--otlp: ").count(), 1, "{said}");
    assert_eq!(ended.json()["window"]["due"], ended.json()["window"]["successful"]);
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
