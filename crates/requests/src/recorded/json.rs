//! Access logs with one JSON object a line. Proxies differ in the names of the keys, which are lists here, the best first; a name
//! with dots also stands for objects in objects.

use serde_json::{Map, Value};

use super::time::read_json_time;
use super::{Entry, Found, Omission, request_line};

type Object = Map<String, Value>;

const METHOD: &str = "\
    method :method request_method RequestMethod requestMethod http_method httpMethod verb request.method \
    http.request.method httpRequest.requestMethod";
const TARGET: &str = "\
    path :path request_uri RequestPath request_path uri url requestUrl request.uri request.url url.original \
    url.full url.path httpRequest.requestUrl";
/// The query, where the target has none.
const QUERY: &str = "args query_string query url.query";
/// The whole first line of a request.
const REQUEST: &str = "request request_line requestLine http_request";
const HOST: &str = "\
    authority :authority host http_host request_host RequestHost vhost domain request.host request.headers.host \
    url.domain server_name";
/// The keys with fractions of a second come first.
const TIME: &str = "\
    StartUTC start_time msec started_at @timestamp timestamp ts time time_iso8601 time_local requestTime datetime \
    date";
/// A line of another log.
const WRAPPED: &str = "log message MESSAGE";

/// An object that would be right.
pub(super) const WANTED: &str = "an object with \"method\" and \"path\", such as {\"start_time\":\"2026-11-23T20:00:00.123Z\",\"method\":\"GET\",\"path\":\"/x\"}";

/// Reads a line: an object, or one behind a time and other words in columns.
pub(super) fn entry(line: &str) -> Entry {
    let (columns, text) = match line.find("\t{") {
        Some(at) if !line.starts_with('{') => (line[..at].split('\t').next(), &line[at + 1..]),
        _ => (None, line),
    };
    let no_object = |error: serde_json::Error| Omission::malformed(format!("it is no JSON object: {error}"));
    let object: Object = serde_json::from_str(text).map_err(no_object)?;
    let (method, target) = request(&object)?;
    let times: Vec<&Value> =
        TIME.split_whitespace().filter_map(|key| value(&object, key)).filter(|time| !time.is_null()).collect();
    let at = times.iter().find_map(|time| read_json_time(time));
    let at = match (at, times.first()) {
        (None, Some(time)) => return Err(Omission::malformed(format!("{time} is not a time"))),
        (None, None) => columns.and_then(super::time::read_time),
        (at, _) => at,
    };
    let host = first_text(&object, HOST).map(str::to_owned);
    Ok(Found { at, host, method, target })
}

/// Method and target.
fn request(object: &Object) -> Result<(String, String), Omission> {
    // An object with such a key is not the value, but may have it.
    let known =
        |keys: &str| keys.split_whitespace().filter_map(|key| value(object, key)).find(|value| !value.is_object());
    let missing = |key: &str| Omission::malformed(format!("it has no \"{key}\""));
    let (verb, aim) = match (known(METHOD), known(TARGET), known(REQUEST)) {
        (Some(verb), Some(aim), _) => (verb, aim),
        (_, _, Some(whole)) => return request_line(whole.as_str().unwrap_or_default(), true),
        (None, ..) => return Err(missing("method")),
        (_, None, _) => return Err(missing("path")),
    };
    // Logs have null or a dash for a missing request.
    let (Some(verb), Some(aim)) = (verb.as_str(), aim.as_str()) else {
        return Err(Omission::unsendable("it has no request"));
    };
    let query = first_text(object, QUERY).map(|query| query.trim_start_matches('?'));
    let target = match query.filter(|query| !query.is_empty() && !aim.contains('?')) {
        Some(query) => format!("{aim}?{query}"),
        None => aim.to_owned(),
    };
    Ok((verb.to_owned(), target))
}

/// The line of another log that an object wraps, as container engines write it.
pub(super) fn wrapped_line(line: &str) -> Option<String> {
    let may_wrap = |key: &str| line.contains(&format!("\"{key}\""));
    if !line.starts_with('{') || !WRAPPED.split_whitespace().any(may_wrap) {
        return None;
    }
    let object: Object = serde_json::from_str(line).ok()?;
    let is_entry = METHOD.split_whitespace().chain(REQUEST.split_whitespace()).any(|key| value(&object, key).is_some());
    if is_entry { None } else { first_text(&object, WRAPPED).map(|text| text.trim().to_owned()) }
}

/// The first of these that is a text, neither empty nor a dash.
fn first_text<'a>(object: &'a Object, keys: &str) -> Option<&'a str> {
    let texts = keys.split_whitespace().filter_map(|key| value(object, key)?.as_str());
    texts.map(str::trim).find(|text| !text.is_empty() && *text != "-")
}

/// The value of a key, as written, or else by its path.
fn value<'a>(object: &'a Object, key: &str) -> Option<&'a Value> {
    let by_path = || {
        let (first, rest) = key.split_once('.')?;
        value(object.get(first)?.as_object()?, rest)
    };
    object.get(key).or_else(by_path)
}
