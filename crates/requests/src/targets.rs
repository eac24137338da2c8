//! Reads lists of targets as Vegeta has them, in its HTTP and its JSON format.
//!
//! The HTTP format has a line `METHOD URL` for each target, below it headers and `@FILE` with the body; the JSON format has an object
//! a line. A target names its server, so it is no recording. This module opens no files, also not those of bodies, and does not
//! take URLs apart.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use weir_model::InputError;
use weir_model::text::without_mark;

/// Headers that follow from the body.
const OF_THE_BODY: [&str; 2] = ["content-length", "transfer-encoding"];

const WANTED: &str = "METHOD URL, and below it lines with \"Name: value\" or @FILE";
const WANTED_OBJECT: &str =
    "{\"method\":\"GET\",\"url\":\"http://127.0.0.1:8080/\"}, with header and body (base64) where it has them";

/// A request, and the URL that it goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// 1-based.
    pub line: usize,
    /// As written.
    pub method: String,
    /// As written.
    pub url: String,
    /// Less those that follow from the body.
    pub headers: Vec<(String, String)>,
    /// Its body, if it has one.
    pub body: Option<Body>,
}

/// The body of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The content of the file of this name.
    File(String),
}

/// A target of the JSON format.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Object {
    method: String,
    url: String,
    #[serde(default)]
    header: BTreeMap<String, Vec<String>>,
    body: Option<String>,
}

/// Recognises such a list. Its first line is an object with nothing but a target's keys; or it is a method and a URL. In the latter case
/// another line is a header or the file of a body.
pub fn is_list(text: &str) -> bool {
    let mut lines = significant(text).map(|(_, line)| line).filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return false };
    if first.starts_with('{') {
        return serde_json::from_str::<Object>(first).is_ok();
    }
    target_line(first).is_some() && lines.any(|line| line.starts_with('@') || header(line).is_some())
}

/// Reads a list. `source` is what the file is called in errors.
///
/// # Errors
/// The first line that is neither a target nor a part of one; or a list without any.
pub fn parse(source: &str, text: &str) -> Result<Vec<Target>, InputError> {
    let mut targets: Vec<Target> = Vec::new();
    // Headers and body go to the target above them, up to an empty line.
    let mut open = false;
    for (line, written) in significant(text) {
        let wrong =
            |found: String, wanted: &str| InputError { line: Some(line), ..InputError::of(source, found, wanted) };
        if written.is_empty() {
            open = false;
        } else if written.starts_with('{') {
            targets.push(object(line, written).map_err(|found| wrong(found, WANTED_OBJECT))?);
        } else if let Some((method, url)) = target_line(written) {
            let (method, url) = (method.to_owned(), url.to_owned());
            targets.push(Target { line, method, url, headers: Vec::new(), body: None });
            open = true;
        } else {
            let target = targets.last_mut().filter(|_| open);
            match (target, written.strip_prefix('@'), header(written)) {
                (Some(target), Some(file), _) => target.body = Some(Body::File(file.trim().to_owned())),
                (Some(target), None, Some((name, value))) => target.add_header(name, value),
                _ => return Err(wrong(format!("{written:?} is neither a target nor a part of one"), WANTED)),
            }
        }
    }
    if targets.is_empty() {
        return Err(InputError::of(source, "it has no targets", WANTED));
    }
    Ok(targets)
}

impl Target {
    fn add_header(&mut self, name: &str, value: &str) {
        if !OF_THE_BODY.iter().any(|other| name.eq_ignore_ascii_case(other)) {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// The lines that are no comments, trimmed, with their numbers from 1 on.
fn significant(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = (1..).zip(without_mark(text).lines().map(str::trim));
    numbered.filter(|(_, line)| !line.starts_with('#'))
}

fn target_line(line: &str) -> Option<(&str, &str)> {
    let (method, url) = line.split_once([' ', '\t'])?;
    let is_method = !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
    let url = url.trim();
    (is_method && url.contains("://") && !url.contains([' ', '\t'])).then_some((method, url))
}

/// A header, and nothing that begins as a URL does.
fn header(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let is_token =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
    (is_token && !value.starts_with("//") && !value.contains('\0')).then(|| (name, value.trim()))
}

fn object(line: usize, text: &str) -> Result<Target, String> {
    let object: Object = serde_json::from_str(text).map_err(|error| format!("it is no target: {error}"))?;
    if object.method.is_empty() || object.url.contains(char::is_whitespace) {
        return Err(format!("{:?} {:?} is no method and URL", object.method, object.url));
    }
    let body = object.body.map(|body| STANDARD.decode(body)).transpose();
    let body = body.map_err(|error| format!("its body is no base64: {error}"))?;
    let mut target =
        Target { line, method: object.method, url: object.url, headers: Vec::new(), body: body.map(Body::Bytes) };
    for (name, values) in &object.header {
        values.iter().for_each(|value| target.add_header(name, value));
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\u{feff}# of a shop\nGET http://h/a\nX-A: 1\n\nPOST http://h/b\r\nContent-Type: application/json\nContent-Length: 9\n@ bodies/b.json\nDELETE http://h/c\n";

    #[test]
    fn targets_have_headers_and_bodies() {
        let targets = parse("list", LIST).expect("right");
        let short: Vec<_> =
            targets.iter().map(|t| (t.line, t.method.as_str(), t.url.as_str(), t.headers.len())).collect();
        assert_eq!(short, [(2, "GET", "http://h/a", 1), (5, "POST", "http://h/b", 1), (9, "DELETE", "http://h/c", 0)]);
        assert_eq!(targets[1].body, Some(Body::File("bodies/b.json".to_owned())));
        let json = "{\"method\":\"PUT\",\"url\":\"http://h/\",\"body\":\"AAE=\",\"header\":{\"X\":[\"1\",\"2\"]}}\n";
        let target = parse("list", json).expect("right").remove(0);
        assert_eq!((target.body, target.headers.len()), (Some(Body::Bytes(vec![0, 1])), 2));
    }

    #[test]
    fn a_list_is_known_by_what_only_it_has() {
        for (text, is) in [
            (LIST, true),
            ("{\"url\":\"http://h/\",\"method\":\"GET\"}", true),
            ("{\"url\":\"http://h/\",\"method\":\"GET\",\"status\":200}", false),
            ("GET http://h/ 3\nPOST http://h/b\n", false),
            ("http://h/\nhttp://i/\n", false),
            ("GET http://h/\nHEAD http://i/\n", false),
            ("", false),
        ] {
            assert_eq!(is_list(text), is, "{text}");
        }
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, shown) in [
            ("GET http://h/\n\nX-A: 1\n", "list:3: \"X-A: 1\" is neither"),
            ("GET http://h/\nnonsense\n", "list:2: \"nonsense\" is neither"),
            ("@x\n", "list:1: \"@x\" is neither"),
            ("{\"method\":\"GET\"}\n", "list:1: it is no target: missing field"),
            ("{\"method\":\"\",\"url\":\"http://h/\"}\n", "list:1: \"\" \"http://h/\" is no method and URL"),
            ("{\"method\":\"GET\",\"url\":\"http://h/\",\"body\":\"?\"}", "list:1: its body is no base64"),
            ("# nothing\n", "list: it has no targets"),
        ] {
            let error = parse("list", text).expect_err(text).to_string();
            assert!(error.starts_with(shown) && error.contains("expected: "), "{error}");
        }
    }
}
