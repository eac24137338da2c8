//! Reads the URLs from the command line or a file, each with a method and a weight. Called by `verbs::load::spec`.

use std::path::Path;

use weir_model::InputError;

use super::target::{self, Url};

/// One kind of request, as the user wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlLine {
    /// Its own method, upper case, where one is written.
    pub method: Option<String>,
    pub url: Url,
    /// At least 1.
    pub weight: u32,
    /// The file, or what the argument is called.
    pub source: String,
    /// 1-based line of the file.
    pub line: Option<usize>,
}

/// URLs given as arguments, with `--weight`.
///
/// # Errors
/// What is wrong with a URL, or that there are not as many weights as URLs.
pub fn from_arguments(urls: &[String], weights: &[u32], unix: bool) -> Result<Vec<UrlLine>, InputError> {
    if !weights.is_empty() && weights.len() != urls.len() {
        return Err(InputError {
            source: "--weight".to_owned(),
            line: None,
            key: None,
            found: format!("{} for {}", counted(weights.len(), "weight"), counted(urls.len(), "URL")),
            wanted: "one for each, in their order".to_owned(),
        });
    }
    let weights = weights.iter().copied().chain(std::iter::repeat(1));
    urls.iter()
        .zip(weights)
        .map(|(text, weight)| {
            let url = target::parse(text, "URL", None, unix)?;
            Ok(UrlLine { method: None, url, weight, source: "URL".to_owned(), line: None })
        })
        .collect()
}

fn counted(n: usize, one: &str) -> String {
    weir_model::text::counted(n as u64, one)
}

/// URLs of a file: `[METHOD] URL [WEIGHT]` a line; empty lines and what follows a `#` at a line's beginning or behind a
/// blank are skipped.
///
/// # Errors
/// File and line, what was found and what would be right.
pub fn from_file(path: &Path, unix: bool) -> Result<Vec<UrlLine>, InputError> {
    let source = path.display().to_string();
    let wrong = |line: Option<usize>, found: String, wanted: &str| InputError {
        source: source.clone(),
        line,
        key: None,
        found,
        wanted: wanted.to_owned(),
    };
    let text = std::fs::read_to_string(path)
        .map_err(|e| wrong(None, format!("cannot be read: {e}"), "a text file with a URL on each line"))?;
    let mut lines = Vec::new();
    for (number, text) in (1..).zip(text.lines()) {
        let text = without_comment(text);
        if !text.is_empty() {
            lines.push(line(text, &source, number, unix)?);
        }
    }
    if lines.is_empty() {
        return Err(wrong(None, "there is no URL in it".to_owned(), "lines of the form [METHOD] URL [WEIGHT]"));
    }
    Ok(lines)
}

/// A `#` inside a URL begins its fragment, which is not sent anyway.
fn without_comment(text: &str) -> &str {
    let end = match text.trim_start().starts_with('#') {
        true => 0,
        false => text.find(" #").or_else(|| text.find("\t#")).unwrap_or(text.len()),
    };
    text[..end].trim()
}

fn line(text: &str, source: &str, number: usize, unix: bool) -> Result<UrlLine, InputError> {
    let wrong = |found: String| InputError {
        source: source.to_owned(),
        line: Some(number),
        key: None,
        found,
        wanted: "[METHOD] URL [WEIGHT], such as \"POST http://127.0.0.1:8080/x 3\"".to_owned(),
    };
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let weight = match words.last() {
        Some(last) if words.len() > 1 && last.bytes().all(|b| b.is_ascii_digit()) => {
            let weight = last.parse().ok().filter(|weight| *weight > 0);
            let weight = weight.ok_or_else(|| wrong(format!("\"{last}\" is no weight from 1 to {}", u32::MAX)))?;
            words.pop();
            weight
        }
        _ => 1,
    };
    let (method, url) = match words.as_slice() {
        [url] => (None, *url),
        [method, url] if is_method(method) => (Some(method.to_ascii_uppercase()), *url),
        [method, url] if is_url(url) => return Err(wrong(format!("\"{method}\" is no method"))),
        [_, last] => return Err(wrong(format!("\"{last}\" is no URL, and no weight"))),
        more => return Err(wrong(format!("{} where at most three belong", counted(more.len(), "word")))),
    };
    if !is_url(url) {
        return Err(wrong(format!("\"{url}\" is no URL")));
    }
    let url = target::parse(url, source, Some(number), unix)?;
    Ok(UrlLine { method, url, weight, source: source.to_owned(), line: Some(number) })
}

fn is_method(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-')
}

/// In a file a URL has its scheme, or begins with a path: a word alone is more likely a mistake.
fn is_url(word: &str) -> bool {
    word.contains("://") || word.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<UrlLine>, String> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        from_file(file.path(), false).map_err(|e| e.to_string().replace(&file.path().display().to_string(), "urls.txt"))
    }

    #[test]
    fn a_file_has_methods_weights_and_comments() {
        let text = "# a mix\n\nhttp://127.0.0.1/a 9\npost http://127.0.0.1/b#x # seldom\n  GET\thttp://127.0.0.1/c\n";
        let lines = read(text).expect("right");
        let short: Vec<_> =
            lines.iter().map(|l| (l.method.as_deref(), l.url.path.as_str(), l.weight, l.line)).collect();
        assert_eq!(
            short,
            [(None, "/a", 9, Some(3)), (Some("POST"), "/b", 1, Some(4)), (Some("GET"), "/c", 1, Some(5))]
        );
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, found) in [
            ("", "urls.txt: there is no URL in it"),
            ("# only\n\n", "urls.txt: there is no URL in it"),
            ("http://h/\n\nG=T http://h/", "urls.txt:3: \"G=T\" is no method"),
            ("GET", "urls.txt:1: \"GET\" is no URL"),
            ("http://h/ x", "urls.txt:1: \"x\" is no URL, and no weight"),
            ("http://h/ 0", "urls.txt:1: \"0\" is no weight"),
            ("http://h/ 99999999999", "urls.txt:1: \"99999999999\" is no weight"),
            ("GET http://h/ 3 4 5", "urls.txt:1: 4 words"),
            ("ftp://h/", "urls.txt:1: weir load does not speak ftp://"),
        ] {
            let said = read(text).expect_err(text);
            assert!(said.contains(found) && said.contains("would be right"), "{text:?}: {said}");
        }
        assert!(from_file(Path::new("/no/such/file"), false).is_err());
    }

    #[test]
    fn weights_go_with_urls() {
        let urls = ["http://h/a".to_owned(), "http://h/b".to_owned()];
        let lines = from_arguments(&urls, &[3, 1], false).expect("right");
        assert_eq!(lines.iter().map(|l| l.weight).collect::<Vec<_>>(), [3, 1]);
        let said = from_arguments(&urls, &[3], false).expect_err("one is missing").to_string();
        assert!(said.contains("1 weight for 2 URLs"), "{said}");
    }
}
