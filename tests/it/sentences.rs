//! Sentences of some pages, held to the code, the suites and the products. `tests/words/sentences.csv` has the rows: a page, a
//! phrase on it, a file, and the text in that file that makes the phrase true. A change of the text leads to the phrase.
//!
//! Each sentence with a number has a row.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const PAGES: [&str; 2] = ["docs/bias.md", "docs/suites.md"];

/// A file of the repository, with single blanks.
fn words(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    joined(&fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Page, phrase, file and text of each row.
fn rows() -> Vec<[String; 4]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/words/sentences.csv");
    let mut reader = csv::Reader::from_path(&path).expect("there");
    reader.deserialize().map(|row| row.expect("four cells")).collect()
}

/// The sentences of a page that have a number, without examples of commands.
fn with_numbers(page: &str) -> Vec<String> {
    let lines = page.lines().filter(|line| !line.starts_with("    "));
    // An item, a row or an empty line ends a paragraph.
    let mut paragraphs = vec![String::new()];
    for line in lines {
        if line.is_empty() || line.starts_with(['-', '|', '#']) {
            paragraphs.push(String::new());
        }
        let number = line.split_once(". ").filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
        let text = number.map_or(line, |(_, text)| text);
        paragraphs.last_mut().expect("one").push_str(&format!("{text} "));
    }
    let sentences = paragraphs.iter().flat_map(|paragraph| {
        paragraph.split_inclusive(['.', ':', ';', '|']).fold(vec![String::new()], |mut all, piece| {
            // A mark inside a number or a name ends nothing.
            if all.last().is_some_and(|last| last.ends_with(['.', ':', ';', '|'])) && piece.starts_with(' ') {
                all.push(String::new());
            }
            all.last_mut().expect("one").push_str(piece);
            all
        })
    });
    sentences.map(|text| joined(&text)).filter(|text| text.contains(|c: char| c.is_ascii_digit())).collect()
}

#[test]
fn each_phrase_stands_on_its_page_and_is_true() {
    let mut read: BTreeMap<String, String> = BTreeMap::new();
    for [page, phrase, file, text] in rows() {
        for (place, wanted) in [(page, &phrase), (file, &text)] {
            let found = read.entry(place.clone()).or_insert_with_key(|place| words(place)).contains(&joined(wanted));
            assert!(found, "{place} no longer has {wanted:?}; the page's phrase is {phrase:?}");
        }
    }
}

#[test]
fn each_sentence_with_a_number_has_a_row() {
    let rows = rows();
    for name in PAGES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        for sentence in with_numbers(&fs::read_to_string(path).expect("a page")) {
            let held = rows.iter().any(|[page, phrase, ..]| {
                let phrase = joined(phrase);
                page == name && (sentence.contains(&phrase) || phrase.contains(&sentence))
            });
            assert!(held, "{name}: no row of tests/words/sentences.csv for {sentence:?}");
        }
    }
}

#[test]
fn a_number_without_a_row_would_be_seen() {
    let page = "# 1\n\nA rate of 0.5 is half. None here: but 3 there.\n\n- x\n  y 7 z\n\n1. 9";
    assert_eq!(with_numbers(page), ["# 1", "A rate of 0.5 is half.", "but 3 there.", "- x y 7 z", "9"]);
}
