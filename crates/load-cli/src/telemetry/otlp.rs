//! Pushes metrics by OTLP over HTTP, as JSON (opentelemetry-proto 1.x, `ExportMetricsServiceRequest`). One thread sends every five
//! seconds and at the end. A collector that does not respond is said once, and changes nothing about the load.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

use super::family::{Attributes, Family, Kind, Series, Value};
use super::{Shared, last};
use crate::exit::wrong_value;

/// Between two pushes.
const EVERY: Duration = Duration::from_secs(5);

/// What a collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Sums and distributions count from the start of the load.
const CUMULATIVE: u8 = 2;

/// The thread that pushes.
#[derive(Debug)]
pub struct Pusher {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Pusher {
    /// Begins.
    pub fn start(url: String, shared: Shared) -> std::io::Result<Pusher> {
        let (end, ended) = channel();
        let begun = nanos();
        let push_all = move || {
            let mut failed = false;
            loop {
                let over = !matches!(ended.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout));
                let families = last(&shared);
                if !families.is_empty()
                    && let Err(error) = push(&url, &request(&families, begun, nanos()))
                    && !std::mem::replace(&mut failed, true)
                {
                    remark!("--otlp: {url}: {error}");
                }
                if over {
                    return;
                }
            }
        };
        Ok(Pusher { end, thread: std::thread::Builder::new().name("otlp".into()).spawn(push_all)? })
    }

    /// Pushes for the last time, and waits for that.
    pub fn finish(self) {
        // The thread ends when this side is gone, too.
        drop(self.end);
        let _ = self.thread.join();
    }
}

/// Where metrics go below a collector's address, as OTEL_EXPORTER_OTLP_ENDPOINT has it.
const PATH: &str = "/v1/metrics";

/// Reads the URL of a collector.
pub fn url(text: &str) -> Result<String, String> {
    let wanted = "the URL of a collector, such as http://127.0.0.1:4318";
    let uri: http::Uri = text.parse().map_err(|e| wrong_value(format!("\"{text}\": {e}"), wanted))?;
    match uri.scheme_str() {
        Some("http") if uri.host().is_some_and(|host| !host.is_empty()) => {}
        Some("https") => return Err(wrong_value("weir pushes without TLS", "http://, to a collector on this machine")),
        _ => return Err(wrong_value(format!("\"{text}\" is no such URL"), wanted)),
    }
    let base = text.trim_end_matches('/');
    Ok(if base.ends_with(PATH) { base.to_owned() } else { format!("{base}{PATH}") })
}

fn push(url: &str, body: &Json) -> Result<(), ureq::Error> {
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build();
    let agent: ureq::Agent = config.into();
    agent.post(url).header("content-type", "application/json").send(body.to_string()).map(drop)
}

fn nanos() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

/// The message. 64-bit numbers are texts in JSON, as protobuf has them.
fn request(families: &[Family], begun: u128, now: u128) -> Json {
    let metrics: Vec<Json> = families.iter().map(|family| metric(family, begun, now)).collect();
    let version = env!("CARGO_PKG_VERSION");
    let resource = vec![("service.name", "weir".to_owned()), ("service.version", version.to_owned())];
    json!({ "resourceMetrics": [{
        "resource": { "attributes": attributes(&resource) },
        "scopeMetrics": [{ "scope": { "name": "weir", "version": version }, "metrics": metrics }],
    }]})
}

fn metric(family: &Family, begun: u128, now: u128) -> Json {
    let points: Vec<Json> = family.series.iter().map(|series| point(series, begun, now)).collect();
    let (kind, data) = match family.kind {
        Kind::Gauge => ("gauge", json!({ "dataPoints": points })),
        Kind::Counter => {
            ("sum", json!({ "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points }))
        }
        Kind::Histogram => ("histogram", json!({ "aggregationTemporality": CUMULATIVE, "dataPoints": points })),
    };
    json!({ "name": family.name, "description": family.help, "unit": family.unit, kind: data })
}

fn point(series: &Series, begun: u128, now: u128) -> Json {
    let mut point = json!({
        "attributes": attributes(&series.attributes),
        "startTimeUnixNano": begun.to_string(),
        "timeUnixNano": now.to_string(),
    });
    match &series.value {
        Value::Number(value) => point["asDouble"] = json!(value),
        Value::Distribution { bounds, counts, sum } => {
            point["count"] = json!(counts.iter().sum::<u64>().to_string());
            point["sum"] = json!(sum);
            point["bucketCounts"] = counts.iter().map(u64::to_string).collect();
            point["explicitBounds"] = json!(bounds);
        }
    }
    point
}

fn attributes(all: &Attributes) -> Vec<Json> {
    all.iter().map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } })).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn urls_get_the_path_of_metrics() {
        assert_eq!(url("http://127.0.0.1:4318"), Ok("http://127.0.0.1:4318/v1/metrics".to_owned()));
        assert_eq!(url("http://a/otlp/"), Ok("http://a/otlp/v1/metrics".to_owned()));
        assert_eq!(url("http://a/v1/metrics"), Ok("http://a/v1/metrics".to_owned()));
        for wrong in ["", "127.0.0.1:4318", "https://a", "ftp://a", "/v1/metrics"] {
            assert!(url(wrong).expect_err(wrong).contains("expected: "), "{wrong}");
        }
    }

    #[test]
    fn a_collector_gets_what_was_published_last() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let collector = std::thread::spawn(move || {
            let (connection, _) = listener.accept().expect("a push");
            let mut reader = BufReader::new(&connection);
            let (mut head, mut length) = (String::new(), 0);
            while reader.read_line(&mut head).expect("a line") > 2 {
                let line = head.lines().last().unwrap_or_default().to_ascii_lowercase();
                length = line.strip_prefix("content-length: ").map_or(length, |n| n.parse().expect("a length"));
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("the body");
            (&connection).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").expect("answered");
            (head, serde_json::from_slice::<Json>(&body).expect("JSON"))
        });
        let shared = Shared::default();
        let pusher =
            Pusher::start(url(&format!("http://{address}")).expect("a URL"), shared.clone()).expect("a thread");
        *shared.lock().expect("whole") = Arc::new(super::super::load::tests::families());
        pusher.finish();
        let (head, body) = collector.join().expect("a push");
        assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
        assert!(head.to_ascii_lowercase().contains("content-type: application/json"), "{head}");
        let metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().expect("metrics");
        let duration = metrics.iter().find(|metric| metric["name"] == "http.client.request.duration").expect("latency");
        let point = &duration["histogram"]["dataPoints"][0];
        assert_eq!((duration["unit"].as_str(), point["count"].as_str()), (Some("s"), Some("20000")));
        let (counts, bounds) = (&point["bucketCounts"], &point["explicitBounds"]);
        assert_eq!(counts.as_array().map(Vec::len), bounds.as_array().map(|bounds| bounds.len() + 1));
    }
}
