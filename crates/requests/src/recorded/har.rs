//! HTTP Archive files, version 1.2, as the developer tools of browsers and recording proxies export them.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use regex::bytes::Regex;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use weir_model::InputError;
use weir_model::load::CONNECTION_HEADERS;

use super::time::read_json_time;
use super::{Found, Omission, Parts, Reason, Recording};

/// What would be right.
pub(super) const WANTED: &str = "log.entries, each with a request that has method and url";

/// Characters that archives have in URLs, and requests may not.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\');

/// All but what stays as it is in a form.
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_').remove(b' ');

#[derive(Debug, Deserialize)]
struct Har {
    log: Log,
}

#[derive(Debug, Deserialize)]
struct Log {
    entries: Vec<MaybeEntry>,
}

/// An entry, or why it is none.
#[derive(Debug)]
struct MaybeEntry(Result<HarEntry, String>);

impl<'de> Deserialize<'de> for MaybeEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MaybeEntry, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(MaybeEntry(serde_json::from_value(value).map_err(|error| error.to_string())))
    }
}

#[derive(Debug, Deserialize)]
struct HarEntry {
    #[serde(rename = "startedDateTime", default)]
    started: Value,
    request: Request,
    #[serde(default)]
    cache: Value,
    #[serde(rename = "_fromCache", default)]
    from_cache: Value,
    #[serde(rename = "_fetchType", default)]
    fetch_type: Value,
}

impl HarEntry {
    /// Whether the response came from the browser's cache. Each browser has a mark of its own.
    fn is_cached(&self) -> bool {
        let chromium = !matches!(self.from_cache, Value::Null | Value::Bool(false));
        let safari = self.fetch_type.as_str().is_some_and(|kind| kind.ends_with("Cache"));
        let before = self.cache.get("beforeRequest");
        let firefox = before.is_none() && self.cache.get("afterRequest") == Some(&Value::Null);
        chromium || safari || firefox || before.is_some_and(Value::is_object)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    post_data: Option<Post>,
    /// Below 0: not known.
    body_size: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Pair {
    name: String,
    value: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Post {
    mime_type: Option<String>,
    text: Option<String>,
    encoding: Option<String>,
    params: Vec<Param>,
}

#[derive(Debug, Deserialize)]
struct Param {
    name: String,
    value: Option<String>,
}

/// Recognises an archive by its first key, or by a log with entries.
pub(super) fn is_archive(bytes: &[u8]) -> bool {
    static LOG: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r#"(?s-u)^\s*\{(?:\s*"log"\s*:\s*\{|.*?"log"\s*:\s*\{.*?"entries"\s*:\s*\[)"#).ok()
    });
    LOG.as_ref().is_some_and(|log| log.is_match(bytes))
}

/// Reads a file.
pub(super) fn parse(source: &str, bytes: &[u8], to: &mut Recording) -> Result<(), InputError> {
    let har: Har = serde_json::from_slice(bytes).map_err(|error| InputError {
        line: Some(error.line()),
        ..InputError::of(source, format!("it is no HAR file: {error}"), WANTED)
    })?;
    for (number, MaybeEntry(entry)) in (1..).zip(har.log.entries) {
        let entry = entry.map_err(Omission::malformed).and_then(request);
        to.take(number, entry).map_err(|(found, wanted)| InputError::of(source, found, wanted))?;
    }
    Ok(())
}

fn request(entry: HarEntry) -> Result<(Found, Option<Parts>), Omission> {
    let is_cached = entry.is_cached();
    let Request { method, url, headers, post_data, body_size } = entry.request;
    if is_cached {
        return Err(Omission { reason: Reason::Cached, why: url });
    }
    let url = utf8_percent_encode(&url, ENCODED).to_string();
    if !["http://", "https://"].iter().any(|scheme| url.to_ascii_lowercase().starts_with(scheme)) {
        return Err(Omission::unsendable(format!("{} is no URL of HTTP", url.chars().take(40).collect::<String>())));
    }
    let mut headers: Vec<(String, String)> = headers
        .into_iter()
        .filter(|header| is_sent(&header.name))
        .map(|header| (header.name, header.value.trim_matches([' ', '\t']).to_owned()))
        .collect();
    let post = post_data.unwrap_or_default();
    let mime_type = post.mime_type.clone().filter(|kind| !kind.is_empty());
    let body = body(post, &method, body_size)?;
    let has_type = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if let Some(mime_type) = mime_type.filter(|_| !has_type && !body.is_empty()) {
        headers.push(("Content-Type".to_owned(), mime_type));
    }
    let found = Found { at: read_json_time(&entry.started), host: None, method, target: url };
    Ok((found, Some(Parts { headers, body })))
}

/// HTTP/2's own headers begin with a colon.
fn is_sent(name: &str) -> bool {
    !name.starts_with(':') && !CONNECTION_HEADERS.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// The body: its text, or else its fields as a form has them.
fn body(post: Post, method: &str, size: Option<f64>) -> Result<Vec<u8>, Omission> {
    let kind = post.mime_type.unwrap_or_default();
    let may_be_empty = post.text.is_some() || kind.is_empty() || size == Some(0.0) || matches!(method, "GET" | "HEAD");
    match post.text.filter(|text| !text.is_empty()) {
        Some(text) if post.encoding.as_deref() == Some("base64") => {
            STANDARD.decode(text).map_err(|error| Omission::unsendable(format!("its body is no base64: {error}")))
        }
        Some(text) => Ok(text.into_bytes()),
        None if kind.starts_with("application/x-www-form-urlencoded") && !post.params.is_empty() => {
            let encoded = |text: &str| utf8_percent_encode(text, FORM).to_string().replace(' ', "+");
            let field =
                |param: &Param| format!("{}={}", encoded(&param.name), encoded(param.value.as_deref().unwrap_or("")));
            Ok(post.params.iter().map(field).collect::<Vec<_>>().join("&").into_bytes())
        }
        None if may_be_empty && post.params.is_empty() && size.is_none_or(|size| size <= 0.0) => Ok(Vec::new()),
        None => Err(Omission::unsendable("its body was not recorded")),
    }
}
