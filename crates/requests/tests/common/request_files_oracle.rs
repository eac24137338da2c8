//! Properties of the readers of files with requests: recordings, lists of times, and feeds. The fuzz target and the
//! stable tests share them.

use weir_requests::recorded::{self, Format};
use weir_requests::template::Template;
use weir_requests::{feed, replay};

/// Checks one input.
///
/// # Panics
/// When something does not hold.
pub fn request_files(input: &[u8]) {
    rows(input);
    let _ = Format::of(input);
    for format in [Format::Har, Format::Combined, Format::Haproxy, Format::Envoy, Format::Elb, Format::Json] {
        recording(input, format);
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Err(error) = replay::parse("file", text) {
        check_error(&error.found, &error.wanted, error.line, input);
    }
}

/// An error says what is right, and its line is one of the file.
fn check_error(found: &str, wanted: &str, line: Option<usize>, input: &[u8]) {
    assert!(!found.is_empty() && !wanted.is_empty(), "{found:?}, {wanted:?}");
    let lines = input.split(|b| *b == b'\n').count();
    assert!(line.is_none_or(|line| line <= lines), "line {line:?} of {lines}: {found}");
}

fn recording(input: &[u8], format: Format) {
    let mut recording = match recorded::parse("file", input, format) {
        Ok(recording) => recording,
        Err(error) => return check_error(&error.found, &error.wanted, error.line, input),
    };
    assert!(
        recording.omitted.values().all(|omitted| omitted.count > 0 && omitted.place > 0 && !omitted.why.is_empty())
    );
    assert!(!recording.requests.is_empty());
    for request in &recording.requests {
        assert!(request.path.starts_with('/') && request.path.bytes().all(|b| b.is_ascii_graphic()), "{request:?}");
        assert!(request.method.bytes().all(|b| b.is_ascii_uppercase() || b"-_".contains(&b)), "{request:?}");
        assert!(request.host.as_deref() != Some(""), "{request:?}");
    }
    let requests = recording.requests.len();
    if let Ok(due_s) = recording.timetable("file", 2.0) {
        assert_eq!((due_s.len(), due_s[0]), (requests, 0.0));
        assert!(due_s.windows(2).all(|pair| pair[0] <= pair[1]) && due_s.iter().all(|due| *due <= 86_400.0));
    }
}

fn rows(bytes: &[u8]) {
    let feed = match feed::parse("file", bytes) {
        Ok(feed) => feed,
        Err(error) => {
            assert!(!error.found.is_empty() && !error.wanted.is_empty(), "an error says what is right: {error}");
            return;
        }
    };
    for (column, name) in feed.columns().iter().enumerate() {
        assert_eq!(feed.values(column).count(), feed.rows());
        let template = Template::parse_with(format!("{{{{{name}}}}}").as_bytes(), Some(&feed));
        assert!(template.is_ok_and(|template| !template.is_text()), "a column is a field: {name:?}");
    }
}
