//! HTTP Archive files, version 1.2, as the developer tools of browsers and recording proxies export them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use weir_model::InputError;
use weir_model::load::CONNECTION_HEADERS;

use super::{RecordedRequest, Recording, method, target};

#[derive(Debug, Deserialize)]
struct Har {
    log: Log,
}

#[derive(Debug, Deserialize)]
struct Log {
    entries: Vec<HarEntry>,
}

#[derive(Debug, Deserialize)]
struct HarEntry {
    #[serde(rename = "startedDateTime")]
    started: Timestamp,
    request: Request,
}

#[derive(Debug, Deserialize)]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Header>,
    #[serde(rename = "postData")]
    post: Option<Post>,
}

#[derive(Debug, Deserialize)]
struct Header {
    name: String,
    value: String,
}

#[derive(Debug, Deserialize)]
struct Post {
    text: Option<String>,
    encoding: Option<String>,
}

/// Reads a file.
pub(super) fn parse(source: &str, text: &str, to: &mut Recording) -> Result<(), InputError> {
    let har: Har = serde_json::from_str(text).map_err(|error| InputError {
        line: Some(error.line()),
        ..InputError::of(
            source,
            format!("it is no HAR file: {error}"),
            "log.entries, each with startedDateTime and request",
        )
    })?;
    for (number, entry) in (1..).zip(har.log.entries) {
        let wrong = |(found, wanted): (String, &str)| InputError::of(source, found, wanted);
        to.take(request(number, entry)).map_err(wrong)?;
    }
    Ok(())
}

fn request(number: usize, entry: HarEntry) -> Option<RecordedRequest> {
    let method = method(&entry.request.method)?;
    let (Some(host), path) = target(&entry.request.url)? else { return None };
    let body = match entry.request.post {
        None => Vec::new(),
        Some(post) => bytes(post)?,
    };
    let headers = entry.request.headers.into_iter().map(|header| (header.name, header.value));
    let headers = headers.filter(|(name, _)| is_sent(name)).collect();
    Some(RecordedRequest {
        place: number,
        at: Some(entry.started),
        host: Some(host),
        method,
        path,
        headers,
        body: Some(body),
    })
}

/// HTTP/2's own headers begin with a colon.
fn is_sent(name: &str) -> bool {
    !name.starts_with(':') && !CONNECTION_HEADERS.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// The body; `None` where it was not recorded as text, such as that of an upload.
fn bytes(post: Post) -> Option<Vec<u8>> {
    let text = post.text?;
    match post.encoding.as_deref() {
        Some("base64") => STANDARD.decode(text).ok(),
        _ => Some(text.into_bytes()),
    }
}
