//! Differences between the suites and their documents, in sentences from `suites/published/differences.toml`. Each report has those of its suite,
//! `weir run --as-published --dry-run` lists them, and a test makes `suites/published/DIFFERENCES.md` from them. The module knows this file and no run.

use serde::Deserialize;

const FILE: &str = "differences.toml";

/// One difference between the suites and their documents.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The suites that it holds for; empty: all that repeat a document.
    #[serde(default)]
    suites: Vec<String>,
    /// Sentences, with code in backticks.
    text: String,
    /// Metrics of published conditions that the suites do not ask for, for that reason.
    #[serde(default)]
    pub conditions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    difference: Vec<Difference>,
}

impl Difference {
    /// The sentences as plain text.
    pub fn plain(&self) -> String {
        self.text.replace('`', "")
    }
}

/// The differences of a suite, in the file's order. A suite that repeats no document has only those that hold for all.
pub fn differences(suite: &str) -> Vec<Difference> {
    let all = super::figures::read_built_in(FILE).and_then(|text| parse(text).ok()).unwrap_or_default();
    all.into_iter().filter(|one| one.suites.is_empty() || one.suites.iter().any(|own| own == suite)).collect()
}

fn parse(text: &str) -> Result<Vec<Difference>, toml::de::Error> {
    toml::from_str::<File>(text).map(|file| file.difference)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::source;
    use weir_model::text::{list, wrapped};

    fn all() -> Vec<Difference> {
        parse(include_str!("../../../suites/published/differences.toml")).expect("valid")
    }

    const HEAD: &str = "# Differences between the suites and their documents

Made from `differences.toml` (`WEIR_BLESS=1 cargo test -p weir-published`). `weir run SUITE --as-published --dry-run` and the reports show
these sentences, too.

";

    /// `WEIR_BLESS=1` writes the page.
    #[test]
    fn the_page_has_every_difference() {
        let item = |one: &Difference| {
            let suites: Vec<String> = one.suites.iter().map(|suite| format!("`{suite}`")).collect();
            let head = if suites.is_empty() { String::new() } else { format!("{}: ", list(&suites)) };
            wrapped(&format!("- {head}{}", one.text), 128, 2) + "\n"
        };
        let wanted = all().iter().map(item).fold(HEAD.to_owned(), |page, item| page + &item);
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites/published/DIFFERENCES.md");
        if std::env::var_os("WEIR_BLESS").is_some() {
            std::fs::write(&path, &wanted).expect("written");
        }
        assert_eq!(std::fs::read_to_string(&path).expect("read"), wanted, "WEIR_BLESS=1 writes it");
    }

    #[test]
    fn each_is_of_suites_with_a_document_and_says_something() {
        for one in all() {
            assert!(one.suites.iter().all(|suite| source(suite).is_some()), "{one:?}");
            assert!(one.text.ends_with('.') && one.text.matches('`').count() % 2 == 0, "{one:?}");
        }
        assert!(parse("[[difference]]\nsuites = []\ntxt = \"\"").is_err());
    }

    #[test]
    fn a_suite_has_its_own_and_those_of_all() {
        let own = differences("juno");
        assert!(own.iter().any(|one| one.suites.is_empty()) && own.iter().any(|one| one.suites == ["juno"]));
        assert!(own.iter().all(|one| one.suites.is_empty() || one.suites.contains(&"juno".to_owned())));
        assert!(own.iter().all(|one| !one.plain().contains('`')));
    }
}
