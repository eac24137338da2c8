//! A test that makes `docs/audit.md` from the checks. It runs with this crate's tests; nothing else uses it.

use std::collections::BTreeMap;

const HEAD: &str = "# The audit

After each trial checks compare what client, origin and kernel counted. A finding comes with its remedy. It is a note (the trial stays
*valid*), a warning (*suspect*: ranked with a mark) or fatal (*invalid*: shown, never ranked). Consequences of faults that a suite provokes
are only noted. This page is made from `crates/audit/src` (`WEIR_BLESS=1 cargo test -p weir-audit`).
";

const KINDS: [(&str, &str); 7] = [
    ("load", "Did the client send the load?"),
    ("responses", "Were the responses correct?"),
    ("conservation", "Do the counters of client and origin agree?"),
    ("fairness", "Did the product do the same work as the others, with what it was given?"),
    ("headroom", "Did weir have room, or did it measure itself?"),
    ("steady", "Did the rate keep its level?"),
    ("noise", "Were machine and network quiet?"),
];

/// All of a check's entry in `checks.toml`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kind: String,
    names: Vec<String>,
    sees: String,
    #[serde(default)]
    threshold: String,
    #[serde(default)]
    source: String,
    #[serde(rename = "remedy")]
    _remedy: String,
    #[serde(default)]
    blind: String,
    #[serde(default, rename = "provoked")]
    _provoked: bool,
}

#[test]
fn the_page_has_every_check() {
    let file: BTreeMap<String, Vec<Entry>> = toml::from_str(include_str!("checks.toml")).expect("checks");
    let mut page = HEAD.to_owned();
    let mut shown = 0;
    for (kind, title) in KINDS {
        page.push_str(&format!("\n## {title}\n\n"));
        for check in file["check"].iter().filter(|check| check.kind == kind) {
            shown += 1;
            let names: Vec<String> = check.names.iter().map(|name| format!("`{name}`")).collect();
            page.push_str(&format!("- **{}** sees {}.\n", names.join(", "), check.sees));
            let lines = [("Threshold", &check.threshold), ("Reason", &check.source), ("Blind spot", &check.blind)];
            for (title, text) in lines.iter().filter(|(_, text)| !text.is_empty()) {
                page.push_str(&format!("  - {title}: {text}.\n"));
            }
        }
    }
    assert_eq!(shown, file["check"].len(), "each kind has a title");
    same(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit.md"), &page);
}

/// Compares with a kept file; `WEIR_BLESS=1` writes it instead.
pub fn same(path: &str, text: &str) {
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(path, text).expect("the kept file is written");
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(text, kept, "{path} differs; WEIR_BLESS=1 writes it anew");
}
