//! Holds the pages to what a program can know of plain prose: short sentences, no relative clause as an opening, short table cells.
//! It knows neither grammar nor facts.

use std::fs;
use std::path::{Path, PathBuf};

/// Most words of a sentence, without code.
const WORDS: usize = 25;

/// Most characters of a table's cell, as a reader sees it.
const CELL: usize = 80;

const OPENINGS: [&str; 9] = ["What", "Of", "Where", "Who", "Whoever", "That", "Those", "Whose", "Whether"];

/// Pages that are not held to it, and why.
const EXCEPTIONS: [(&str, &str); 1] =
    [("docs/products.md", "`weir products test` writes it, with the products' own words")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<String> {
    let docs = fs::read_dir(root().join("docs")).expect("docs").map(|entry| entry.expect("an entry").file_name());
    let docs = docs.map(|name| format!("docs/{}", name.to_str().expect("UTF-8"))).filter(|name| name.ends_with(".md"));
    let top = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"].map(str::to_owned);
    top.into_iter().chain(docs).filter(|page| EXCEPTIONS.iter().all(|(exception, _)| page != exception)).collect()
}

/// Links without their targets.
fn without_targets(text: &str) -> String {
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest))
}

/// Text with its code as one word, which begins like a sentence's first.
fn without_code(text: &str) -> String {
    text.split('`').enumerate().map(|(place, part)| if place % 2 == 0 { part } else { "`" }).collect()
}

fn sentences(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let words: Vec<&str> = text.split_whitespace().collect();
    for (place, word) in words.iter().enumerate() {
        let sentence = sentences.last_mut().expect("one");
        sentence.push_str(word);
        sentence.push(' ');
        let mark = word.trim_end_matches(['*', ')', '"']).chars().last();
        let begins =
            |next: &&str| next.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || "`(*\"".contains(c));
        let ends = match mark {
            Some('.' | '?' | '!') => true,
            Some(':' | ';') => words.get(place + 1).is_some_and(begins),
            _ => false,
        };
        if ends {
            sentences.push(String::new());
        }
    }
    sentences
}

/// Faults of a piece of text that is no code.
fn faults(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for sentence in sentences(&without_code(&without_targets(text))) {
        let words: Vec<&str> = sentence.split_whitespace().filter(|word| word.contains(char::is_alphabetic)).collect();
        let first = words.first().map_or("", |word| word.trim_start_matches(['*', '(']));
        if words.len() > WORDS {
            found.push(format!("{} words: {sentence}", words.len()));
        }
        if OPENINGS.contains(&first) && words.len() > 3 && !sentence.trim_end().ends_with('?') {
            found.push(format!("opens with {first}: {sentence}"));
        }
    }
    found
}

/// Faults of a page.
fn faults_of_page(page: &str) -> Vec<String> {
    let (mut found, mut paragraph, mut is_code) = (Vec::new(), String::new(), false);
    for line in page.lines().chain([""]) {
        let text = line.trim_start();
        let item = text
            .strip_prefix("- ")
            .or_else(|| text.split_once(". ").filter(|(n, _)| n.parse::<u8>().is_ok()).map(|(_, rest)| rest));
        let is_fence = text.starts_with("```");
        is_code ^= is_fence;
        let is_row = text.starts_with('|');
        if is_code || is_fence || is_row || item.is_some() || text.is_empty() || text.starts_with('#') {
            found.extend(faults(&std::mem::take(&mut paragraph)));
        }
        if is_code || is_fence || text.is_empty() || (line.starts_with("    ") && paragraph.is_empty()) {
            continue;
        }
        if is_row {
            for cell in text.trim_matches('|').split('|').map(str::trim) {
                let length = without_targets(cell).chars().count();
                if length > CELL {
                    found.push(format!("a cell of {length} characters: {cell}"));
                }
                found.extend(faults(cell));
            }
        } else {
            paragraph.push_str(item.unwrap_or(text).trim_start_matches('#'));
            paragraph.push(' ');
        }
    }
    found
}

#[test]
fn pages_have_short_sentences_and_cells_and_plain_openings() {
    let mut found = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).expect("a page");
        found.extend(faults_of_page(&text).into_iter().map(|fault| format!("{page}: {fault}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn faults_of_prose_are_seen_and_plain_prose_has_none() {
    let long = "word ".repeat(26);
    let cell = "x".repeat(81);
    for wrong in [
        format!("{long}."),
        format!("- A. {long}.\n  more"),
        "Of the two the first is meant.".to_owned(),
        "It works. Where it does not, look.".to_owned(),
        format!("| a | {cell} |"),
        "# What it does not protect".to_owned(),
    ] {
        assert_eq!(faults_of_page(&wrong).len(), 1, "{wrong}");
    }
    let words = "word ".repeat(24);
    let plain = format!(
        "# Title\n\n{words}. `code` {words}: A [link](of/a/very/long/target/that/nobody/reads) too.\n\n```\n{long}\n```\n\n    {long}\n\n| What is it? | a |\n"
    );
    assert_eq!(faults_of_page(&plain), Vec::<String>::new());
}
