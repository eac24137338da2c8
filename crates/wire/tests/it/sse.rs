//! Server-sent events, however they are split.

use proptest::prelude::*;
use weir_wire::sse::{AFTER_DATA, BEFORE_DATA, MOST_EVENT_BYTES, Parser, TooLarge};
use weir_wire::stamp::{self, Message, Stamp};

use crate::counting::ALLOCATIONS;
use crate::sse_oracle::{self, read};

fn events(text: &str) -> Vec<(String, String)> {
    sse_oracle::events(text.as_bytes());
    let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    read(text.as_bytes(), text.len().max(1)).into_iter().map(|(name, data)| (text_of(name), text_of(data))).collect()
}

#[test]
fn events_are_those_of_the_standard() {
    for (text, wanted) in [
        ("", &[][..]),
        ("data: a", &[]),
        ("data: a\n", &[]),
        ("data: a\n\n", &[("", "a")]),
        ("data:a\r\rdata: b\r\n\r\n", &[("", "a"), ("", "b")]),
        ("data: YHOO\ndata: +2\ndata: 10\n\n", &[("", "YHOO\n+2\n10")]),
        (
            ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            &[("", "first event"), ("", "second event"), ("", " third event")],
        ),
        ("data\n\ndata\ndata\n\ndata:", &[("", ""), ("", "\n")]),
        ("event: delta\ndata: {}\n\ndata: x\n\n", &[("delta", "{}"), ("", "x")]),
        ("event: lost\n\ndata: x\n\n", &[("", "x")]),
        ("\u{feff}data: a\n\n", &[("", "a")]),
        ("data: [DONE]\nretry: 10\nunknown: 1\n\n", &[("", "[DONE]")]),
    ] {
        let wanted: Vec<_> = wanted.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned())).collect();
        assert_eq!(events(text), wanted, "{text:?}");
    }
}

#[test]
fn an_event_without_an_end_is_bounded_and_the_error_stays() {
    for body in [format!("data: {}", "x".repeat(MOST_EVENT_BYTES)), format!("data: {}\n", "y".repeat(2000)).repeat(600)]
    {
        for size in [body.len(), 4096, 1001] {
            let mut parser = Parser::default();
            let mut last = Ok(None);
            for mut piece in body.as_bytes().chunks(size) {
                last = parser.next(&mut piece);
                if last.is_err() {
                    break;
                }
            }
            assert_eq!(last, Err(TooLarge), "in pieces of {size}");
            assert_eq!(parser.next(&mut &b"data: a\n\n"[..]), Err(TooLarge));
            parser.reset();
            assert!(parser.next(&mut &b"data: a\n\n"[..]).expect("a new body").is_some());
        }
    }
}

#[test]
fn a_reader_knows_whether_it_is_within_an_event() {
    let mut parser = Parser::default();
    for (piece, within) in [("", false), ("da", true), ("ta: a\n", true), ("\n", false), (": comment\n", false)] {
        let mut piece = piece.as_bytes();
        while parser.next(&mut piece).expect("small").is_some() {}
        assert_eq!(parser.is_within(), within);
    }
}

#[test]
fn reading_the_next_message_allocates_nothing() {
    let mut text = Vec::new();
    text.extend_from_slice(BEFORE_DATA);
    Stamp { stream: 1, number: 2, of: 3, due: 4, sent: 5 }.write(200, &mut text);
    text.extend_from_slice(AFTER_DATA);
    let mut parser = Parser::default();
    let mut pass = || {
        for size in [text.len(), 7] {
            for mut piece in text.chunks(size) {
                while let Some(event) = parser.next(&mut piece).expect("small") {
                    assert!(matches!(stamp::read(event.data), Message::Whole(_)));
                }
            }
        }
    };
    pass();
    let before = ALLOCATIONS.get();
    pass();
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

proptest! {
    #[test]
    fn any_body_is_read_alike_however_it_is_split(body in "((data|event|id|x)?:? ?[a-z:\u{e4}]{0,3}(\n|\r|\r\n)?){0,12}") {
        sse_oracle::events(body.as_bytes());
    }

    #[test]
    fn any_bytes_are_read_alike_however_they_are_split(body in prop::collection::vec(any::<u8>(), 0..200)) {
        sse_oracle::events(&body);
    }
}
