//! Chat completions in OpenAI's format, as far as a load and a mock need them: what an event of a stream brings, whether a request asks for a
//! stream, and what a mock sends.
//!
//! Keys are looked for by their bytes. A quote within a text is escaped in JSON, so no text looks like a key. The first key with a name counts, at
//! any depth: that is right for one choice, which is what a load asks for. This module does not know HTTP, nor what a token is.

use memchr::memmem::find;

/// What one event of a stream brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// A piece of content, which is not empty, with its escapes.
    Content(&'a [u8]),
    /// No content: the role, the reason of the end, `[DONE]`, what was used.
    Nothing,
    /// The sender failed after it had begun.
    Failure,
}

/// Reads the data of an event.
#[inline]
pub fn read(data: &[u8]) -> Delta<'_> {
    match value(data, b"\"delta\"").and_then(|delta| value(delta, b"\"content\"")?.strip_prefix(b"\"")) {
        Some(text) => match &text[..end_of_text(text)] {
            [] => Delta::Nothing,
            content => Delta::Content(content),
        },
        None if value(data, b"\"error\"").is_some_and(|error| !error.starts_with(b"null")) => Delta::Failure,
        None => Delta::Nothing,
    }
}

/// Whether the body of a request asks for a stream.
pub fn asks_for_stream(body: &[u8]) -> bool {
    value(body, b"\"stream\"").is_some_and(|value| value.starts_with(b"true"))
}

/// What stands behind a key, which comes with its quotes.
fn value<'a>(mut text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    loop {
        text = &text[find(text, key)? + key.len()..];
        if let Some(value) = text.trim_ascii_start().strip_prefix(b":") {
            return Some(value.trim_ascii_start());
        }
    }
}

/// Where a text ends, which began before: its quote, or where it is cut off.
fn end_of_text(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(next) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        at += next;
        if text[at] == b'"' {
            return at;
        }
        at = (at + 2).min(text.len());
    }
    text.len()
}

macro_rules! chunk {
    ($delta:literal, $reason:literal) => {
        concat!(
            r#"{"id":"chatcmpl-weir","object":"chat.completion.chunk","created":0,"model":"mock","choices":[{"index":0,"delta":"#,
            $delta,
            r#","finish_reason":"#,
            $reason,
            "}]}"
        )
        .as_bytes()
    };
}

/// The data of a stream's first event, which has the role and no content.
pub const ROLE: &[u8] = chunk!(r#"{"role":"assistant","content":""}"#, "null");
/// What stands before and behind the content of an event.
pub const BEFORE_CONTENT: &[u8] =
    br#"{"id":"chatcmpl-weir","object":"chat.completion.chunk","created":0,"model":"mock","choices":[{"index":0,"delta":{"content":""#;
/// See [`BEFORE_CONTENT`].
pub const AFTER_CONTENT: &[u8] = br#""},"finish_reason":null}]}"#;
/// The data of the event behind the content.
pub const FINISH: &[u8] = chunk!("{}", r#""stop""#);
/// The data of a stream's last event.
pub const DONE: &[u8] = b"[DONE]";
/// The data of an event that says that the sender failed.
pub const FAILURE: &[u8] = br#"{"error":{"message":"failed on purpose","type":"server_error","code":500}}"#;

/// The response that is no stream, with this content, which needs no escapes.
pub fn completion(content: &str) -> String {
    format!(
        r#"{{"id":"chatcmpl-weir","object":"chat.completion","created":0,"model":"mock","choices":[{{"index":0,"message":{{"role":"assistant","content":"{content}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_brings_content_or_not() {
        let whole = [BEFORE_CONTENT, b"a\\\"b \\\\", AFTER_CONTENT].concat();
        assert_eq!(read(&whole), Delta::Content(b"a\\\"b \\\\"));
        // Another program writes the same otherwise.
        assert_eq!(read(br#"{ "choices": [ { "delta" : { "content" : "x" } } ] }"#), Delta::Content(b"x"));
        assert_eq!(
            read(br#"{"model":"delta","choices":[{"delta":{"content":"y"}}],"error":null}"#),
            Delta::Content(b"y")
        );
        for nothing in [
            ROLE,
            FINISH,
            DONE,
            b"",
            br#"{"choices":[],"error":null,"usage":{}}"#,
            br#"{"choices":[{"delta":{"content":null}}]}"#,
        ] {
            assert_eq!(read(nothing), Delta::Nothing, "{}", String::from_utf8_lossy(nothing));
        }
        assert_eq!((read(FAILURE), read(br#"{"error" : "overloaded"}"#)), (Delta::Failure, Delta::Failure));
        // What a text says is not what an event says.
        assert_eq!(read(br#"{"choices":[{"delta":{"role":"\"delta\":{\"content\":\"z\"}"}}]}"#), Delta::Nothing);
    }

    #[test]
    fn what_is_cut_off_is_read_as_far_as_it_came() {
        let whole = [BEFORE_CONTENT, b"abc\\", AFTER_CONTENT].concat();
        for cut in 0..whole.len() {
            let _ = read(&whole[..cut]);
        }
        assert_eq!(read(&[BEFORE_CONTENT, b"abc\\"].concat()), Delta::Content(b"abc\\"));
    }

    #[test]
    fn a_request_asks_for_a_stream_or_not() {
        assert!(asks_for_stream(br#"{"model":"m","stream": true}"#));
        for body in [&b""[..], b"{}", br#"{"stream":false}"#, br#"{"messages":[{"content":"\"stream\":true"}]}"#] {
            assert!(!asks_for_stream(body), "{}", String::from_utf8_lossy(body));
        }
    }
}
