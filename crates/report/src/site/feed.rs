//! The feed of a site (Atom, RFC 4287): its newest runs, what each answers, and what changed since the run before it of the same suite on
//! the same machine. Times are those of the runs, so that the same runs give the same feed.

use std::path::Path;

use askama::Template;
use weir_model::text::list;

use super::SiteOptions;
use super::recorded::Recorded;
use crate::error::ReportError;
use crate::links::FEED_FILE;
use crate::make::write as write_file;
use crate::tables::one_line;

/// Runs in the feed.
const MOST: usize = 50;

#[derive(Template)]
#[template(path = "feed.xml")]
struct Feed<'a> {
    url: &'a str,
    file: &'a str,
    /// Identifies the feed for ever.
    id: String,
    updated: &'a str,
    entries: Vec<Entry>,
}

struct Entry {
    id: String,
    title: String,
    updated: String,
    page: String,
    words: String,
}

/// Writes the feed. Runs whose time is not known are not in it.
///
/// # Errors
/// When the file cannot be written or drawn.
pub(super) fn write(runs: &[Recorded], site: &Path, options: &SiteOptions<'_>) -> Result<(), ReportError> {
    let url = options.url.as_str();
    let dated = runs.iter().enumerate().filter(|(_, run)| !run.started().is_empty());
    let entries: Vec<Entry> = dated.take(MOST).map(|(nth, run)| entry(run, &runs[nth + 1..], url)).collect();
    let updated = entries.first().map_or("1970-01-01T00:00:00Z", |entry| entry.updated.as_str()).to_owned();
    let id = identity(url, "");
    let feed = Feed { url, file: FEED_FILE, id, updated: &updated, entries };
    let text = feed.render().map_err(ReportError::draw(FEED_FILE))?;
    write_file(&site.join(FEED_FILE), text.as_bytes())
}

/// A name that stays the same: where the site's address is not known, one that nothing else should have.
fn identity(url: &str, page: &str) -> String {
    if url.is_empty() { format!("urn:weir:site:{page}") } else { format!("{url}{page}") }
}

fn entry(run: &Recorded, older: &[Recorded], url: &str) -> Entry {
    let before = older.iter().find(|other| other.suite() == run.suite() && other.machine == run.machine);
    let mut words = vec![run.summary.answer.clone()];
    words.extend(before.map(|before| changes(before, run)).unwrap_or_default());
    let page = run.page();
    Entry {
        id: identity(url, &page),
        title: one_line(&format!("{} on {}, {}", run.suite(), run.machine, run.date())),
        updated: one_line(run.started()),
        page,
        words: one_line(&words.join(" ")),
    }
}

/// What is otherwise than in the run before, one sentence each.
fn changes(before: &Recorded, run: &Recorded) -> Vec<String> {
    let mut changes = Vec::new();
    let programs = |run: &'_ Recorded| -> Vec<(String, String)> {
        let products = run.run.environment.iter().flat_map(|environment| environment.products.clone());
        products.map(|facts| (facts.title, facts.version)).collect()
    };
    let (old, new) = (programs(before), programs(run));
    for (title, version) in &new {
        match old.iter().find(|(other, _)| other == title) {
            Some((_, other)) if other == version => {}
            Some((_, other)) => changes.push(format!("{title} {version} instead of {other}.")),
            None => changes.push(format!("{title} is new.")),
        }
    }
    let gone = old.iter().filter(|(title, _)| !new.iter().any(|(other, _)| other == title));
    changes.extend(gone.map(|(title, _)| format!("{title} was not run.")));
    for section in &run.summary.sections {
        let same = |other: &&crate::summary::Section| other.workload == section.workload && other.load == section.load;
        let Some(other) = before.summary.sections.iter().find(same) else { continue };
        let (first, was) = (leaders(section), leaders(other));
        if first != was && !first.is_empty() && !was.is_empty() {
            changes.push(format!("First at {}: {}; before: {}.", section.slug_words(), list(&first), list(&was)));
        }
    }
    changes
}

/// The products that a section ranks first, by name.
fn leaders(section: &crate::summary::Section) -> Vec<&str> {
    let first = section.rows.iter().filter(|row| row.rank.is_some_and(|(best, _)| best == 1));
    let mut names: Vec<&str> = first.map(|row| row.label.as_str()).collect();
    names.sort_unstable();
    names
}
