//! Live metrics of real loads and runs: scraped while they go on, written to a file, and pushed to a collector. The numbers are those
//! of the result.

use crate::common;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{OriginUnderTest, number, run_within, scratch, until, wait_within, weir};
use serde_json::Value;

/// The answer to a scrape: its head and its body.
fn scrape(address: &str) -> Option<(String, String)> {
    let mut connection = TcpStream::connect(address).ok()?;
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(head, body)| (head.to_owned(), body.to_owned()))
}

/// Samples by name and labels. Asserts what OpenMetrics 1.0 asks of the whole text: each family's lines are together, after its type;
/// units are in names; a sample's name is its family's, with the suffix of its type; buckets grow and end with the count; the text
/// ends with `# EOF`.
fn samples(text: &str) -> BTreeMap<String, f64> {
    assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
    let (mut kinds, mut samples) = (BTreeMap::new(), BTreeMap::new());
    let (mut family, mut kind) = ("", "");
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# ") {
            let words: Vec<&str> = rest.splitn(3, ' ').collect();
            match words[0] {
                "HELP" | "TYPE" | "UNIT" if words[1] != family => {
                    family = words[1];
                    assert!(kinds.insert(family, "unknown").is_none(), "{family} twice:\n{text}");
                }
                "HELP" | "TYPE" | "UNIT" => {}
                other => panic!("{other} in {line}"),
            }
            match words[0] {
                "TYPE" => {
                    kind = words[2];
                    kinds.insert(family, kind);
                }
                "UNIT" => assert!(family.ends_with(&format!("_{}", words[2])), "{line}"),
                _ => {}
            }
            continue;
        }
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        let bare = name.split('{').next().unwrap_or_default();
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_count", "_sum"],
            other => panic!("type {other} of {line}"),
        };
        assert!(suffixes.iter().any(|suffix| bare == format!("{family}{suffix}")), "{line} in {family}, a {kind}");
        let value: f64 = value.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(samples.insert(name.to_owned(), value).is_none(), "{name} twice");
    }
    for (family, _) in kinds.iter().filter(|(_, kind)| **kind == "histogram") {
        // As written: a map would sort them by their text.
        let prefix = format!("{family}_bucket{{");
        let buckets: Vec<&str> = text.lines().filter(|line| line.starts_with(&prefix)).collect();
        let counts: Vec<f64> =
            buckets.iter().map(|line| line.rsplit_once(' ').expect("a value").1.parse().expect("a number")).collect();
        assert!(counts.is_sorted() && buckets.last().is_some_and(|last| last.contains("le=\"+Inf\"")), "{text}");
        assert_eq!(counts.last(), find(&samples, &format!("{family}_count"), "").as_ref(), "{text}");
    }
    samples
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

/// A load in the background, whose metrics are served.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(args: &[&str]) -> Served {
        let args = [&["load", "-q", "--json", "--metrics", "0"], args].concat();
        let mut child = weir(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir starts");
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        stderr.read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("metrics: http://").and_then(|rest| rest.strip_suffix("/metrics"));
        let address = address.unwrap_or_else(|| panic!("no address: {line}")).to_owned();
        assert!(address.starts_with("127.0.0.1:"), "a port alone is of this machine: {address}");
        Served { child, address }
    }

    fn result(mut self) -> Value {
        let mut stdout = self.child.stdout.take().expect("piped");
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        });
        wait_within(&mut self.child, Duration::from_secs(60));
        let text = reader.join().expect("read").expect("UTF-8");
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }
}

/// Three of four requests go where the answer is right.
fn urls(folder: &std::path::Path, origin: &OriginUnderTest) -> String {
    let file = folder.join("urls");
    let all = ["/bytes/128", "/bytes/256", "/bytes/512", "/status/404"].map(|path| origin.url(path));
    std::fs::write(&file, all.join("\n")).expect("written");
    file.display().to_string()
}

#[test]
fn scrapes_during_a_load_lead_up_to_its_result() {
    let origin = OriginUnderTest::start(&[]);
    let scratch = scratch();
    let (urls, file) = (urls(scratch.path(), &origin), scratch.path().join("end.prom"));
    let more = ["--metrics-file", file.to_str().expect("UTF-8")];
    let load = Served::start(
        &[&["--urls", &urls, "--rate", "200", "-d", "4s", "--warmup", "1s", "-c", "4"][..], &more].concat(),
    );
    let mut counts: Vec<f64> = Vec::new();
    until("three seconds with requests", Duration::from_secs(30), || {
        let Some((head, body)) = scrape(&load.address) else { return true };
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200 ok"), "{head}");
        assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"), "{head}");
        let samples = samples(&body);
        let ended = find(&samples, "weir_client_requests_total", "");
        counts.extend(ended.filter(|n| *n > 0.0 && counts.last() != Some(n)));
        // Unknown until the first second of the window is over.
        if ended > Some(0.0) {
            assert_eq!(find(&samples, "weir_client_connections", ""), Some(4.0), "{body}");
        }
        counts.len() >= 3
    });
    assert!(counts.len() >= 3 && counts.is_sorted(), "once a second: {counts:?}");
    let result = load.result();
    let samples = samples(&std::fs::read_to_string(file).expect("written"));
    let (right, due) = (number(&result, "/window/right"), number(&result, "/window/due"));
    assert!(counts.iter().all(|count| *count < right), "{counts:?} before {right}");
    assert_eq!(find(&samples, "weir_client_requests_total", ""), Some(right), "{samples:#?}");
    let failed = number(&result, "/window/errors/bad_status");
    assert_eq!(find(&samples, "weir_client_requests_total", "error_type=\"bad_status\""), Some(failed), "{samples:#?}");
    assert_eq!(find(&samples, "http_client_request_duration_seconds_count", ""), Some(due), "{samples:#?}");
    assert!(right + failed == due && failed > 0.0, "{result:#}");
    let sum = find(&samples, "http_client_request_duration_seconds_sum", "").expect("a sum");
    let mean_us = number(&result, "/latency/mean_us");
    assert!((sum / due * 1e6 / mean_us - 1.0).abs() < 0.02, "{sum} s of {due} requests, and a mean of {mean_us} us");
    assert_eq!(find(&samples, "http_client_active_requests", ""), Some(0.0));
}

/// Takes what is pushed, and keeps the requests' heads and bodies.
struct Collector {
    url: String,
    got: Arc<Mutex<Vec<(String, Value)>>>,
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

fn take(mut connection: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    while reader.read_line(&mut head).ok()? > 2 {}
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").ok()?;
    Some((head, serde_json::from_slice(&body).ok()?))
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
fn a_collector_gets_pushes_that_end_with_the_result() {
    let origin = OriginUnderTest::start(&[]);
    let collector = Collector::start();
    let url = origin.url("/bytes/128");
    // The first push is after five seconds.
    let result = common::all_right(&[&url, "--rate", "100", "-d", "6s", "-c", "2", "--otlp", &collector.url]);
    let got = collector.got.lock().expect("whole").clone();
    assert!(got.len() >= 2, "one after five seconds and one at the end: {got:#?}");
    let total = |pushed: &Value| points(pushed, "weir.client.requests")[0]["asDouble"].as_f64().expect("a number");
    let count = |pushed: &Value| {
        let text = points(pushed, "http.client.request.duration")[0]["count"].as_str().expect("64 bits are a text");
        text.parse::<f64>().expect("a number")
    };
    for (head, pushed) in &got {
        assert!(
            head.starts_with("post /v1/metrics http/1.1\r\n") && head.contains("content-type: application/json"),
            "{head}"
        );
        let resource = pushed["resourceMetrics"][0]["resource"]["attributes"].as_array().expect("attributes");
        assert!(resource.iter().any(|one| one["key"] == "service.name" && one["value"]["stringValue"] == "weir"));
        let point = points(pushed, "http.client.request.duration")[0];
        let nanos = |key: &str| point[key].as_str().and_then(|text| text.parse::<u128>().ok()).expect("nanoseconds");
        assert!(nanos("startTimeUnixNano") < nanos("timeUnixNano"), "{point}");
        let start = &points(&got[0].1, "http.client.request.duration")[0]["startTimeUnixNano"];
        assert_eq!(&point["startTimeUnixNano"], start, "cumulative: all count from one time");
    }
    assert!(got.iter().map(|(_, pushed)| total(pushed)).is_sorted());
    let last = &got.last().expect("asserted").1;
    assert_eq!((total(last), count(last)), (number(&result, "/window/right"), number(&result, "/window/due")));
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
    assert_eq!(ended.json()["window"]["due"], ended.json()["window"]["right"]);
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
    let right: f64 = measured.iter().map(|(_, m)| number(m, "/load/total/right")).sum();
    let ended: f64 =
        samples.iter().filter(|(name, _)| name.starts_with("weir_client_requests_total")).map(|(_, n)| n).sum();
    assert!(ended > 0.0 && ended <= right, "{ended} of {right}: {samples:#?}");
}
