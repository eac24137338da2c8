//! What must hold for any file with requests or with values for them: recordings and feeds; shared by the fuzz target and the stable tests.

use weir_load::feed;
use weir_load::recorded::{self, Format};
use weir_load::template::Template;

/// Checks one input.
///
/// # Panics
/// When something does not hold.
pub fn request_files(input: &[u8]) {
    rows(input);
    let Ok(text) = std::str::from_utf8(input) else { return };
    let _ = Format::of(text);
    for format in [Format::Har, Format::Combined, Format::Json] {
        recording(text, format);
    }
}

fn recording(text: &str, format: Format) {
    let mut recording = match recorded::parse("file", text, format) {
        Ok(recording) => recording,
        Err(error) => {
            assert!(!error.found.is_empty() && !error.wanted.is_empty(), "an error says what is right: {error}");
            assert!(error.line.is_none_or(|line| line <= text.split('\n').count()), "a line of the file: {error}");
            return;
        }
    };
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
