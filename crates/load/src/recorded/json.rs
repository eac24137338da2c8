//! A line of an access log with one JSON object a line: the names that Envoy's documentation and Istio use for the keys, and those
//! that nginx's variables have.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Entry, RecordedRequest, method, target};

const METHOD: [&str; 3] = ["method", ":method", "request_method"];
const PATH: [&str; 3] = ["path", ":path", "request_uri"];
const HOST: [&str; 3] = ["authority", ":authority", "host"];
const TIME: [&str; 4] = ["start_time", "timestamp", "time", "time_iso8601"];

const WANTED: &str = "an object with \"method\" and \"path\", such as {\"start_time\":\"2026-11-23T20:00:00.123Z\",\"method\":\"GET\",\"path\":\"/x\"}";

/// Reads a line.
pub(super) fn entry(number: usize, line: &str) -> Entry {
    let object: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| (format!("it is no JSON object: {error}"), WANTED))?;
    let known = |names: &[&str]| names.iter().find_map(|name| object.get(*name));
    let missing = |what: &str| (format!("it has no \"{what}\""), WANTED);
    let verb = known(&METHOD).ok_or_else(|| missing("method"))?;
    let aim = known(&PATH).ok_or_else(|| missing("path"))?;
    let at = match known(&TIME) {
        None | Some(Value::Null) => None,
        Some(time) => Some(timestamp(time).ok_or_else(|| (format!("{time} is not a time"), WANTED))?),
    };
    // Where there was no request, Envoy writes null or a dash.
    let (Some(verb), Some(aim)) = (verb.as_str(), aim.as_str()) else { return Ok(None) };
    let (Some(method), Some((host, path))) = (method(verb), target(aim)) else { return Ok(None) };
    let given = known(&HOST).and_then(Value::as_str).filter(|host| !host.is_empty() && *host != "-");
    let host = host.or_else(|| given.map(str::to_ascii_lowercase));
    Ok(Some(RecordedRequest { place: number, at, host, method, path, headers: Vec::new(), body: None }))
}

fn timestamp(time: &Value) -> Option<Timestamp> {
    time.as_str()?.parse().ok()
}
