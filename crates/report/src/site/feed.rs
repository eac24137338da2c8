//! What a site has for programs: the feed of its newest runs (Atom, RFC 4287), and `site.json`, the list of its runs. Times are those of
//! the runs, so that the same runs give the same files.

use std::fs;
use std::path::Path;

use askama::Template;
use serde_json::{Value, json};
use weir_model::regular;
use weir_model::text::list;

use super::SiteOptions;
use super::recorded::Recorded;
use crate::error::ReportError;
use crate::make::write as write_file;
use crate::page::FEED_FILE;
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
pub(super) fn write_feed(runs: &[Recorded], site: &Path, options: &SiteOptions<'_>) -> Result<(), ReportError> {
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

const LIST_FILE: &str = "site.json";

/// The value of `made_by` in the list of runs, which marks a folder as a site.
const MADE_BY: &str = "weir site";

/// Everything that a site has in its folder.
const OWN: [&str; 7] = ["assets", "feed.xml", "index.html", "products", "runs", LIST_FILE, "suites"];

/// Fails unless the folder is new, empty, or a site with nothing else in it.
pub(super) fn may_replace(folder: &Path) -> Result<(), ReportError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(ReportError::io(folder, "read", error)),
    };
    let mut names: Vec<String> =
        entries.filter_map(Result::ok).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let marker =
        regular::read(&folder.join(LIST_FILE)).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    if !names.is_empty() && marker.is_none_or(|marker| marker["made_by"] != MADE_BY) {
        return Err(ReportError::Occupied { path: folder.to_path_buf(), what: "site" });
    }
    match names.iter().find(|name| !OWN.contains(&name.as_str())) {
        Some(other) => Err(ReportError::Foreign { path: folder.join(other) }),
        None => Ok(()),
    }
}

/// Writes the file.
pub(super) fn write_list(runs: &[Recorded], site: &Path) -> Result<(), ReportError> {
    let of_run = |run: &Recorded| {
        json!({
            "id": run.id,
            "run": run.run.name,
            "suite": run.summary.suite,
            "machine": run.machine,
            "started": run.started(),
            "whole": run.whole,
            "page": run.page(),
            "answer": run.summary.answer,
        })
    };
    let runs: Vec<Value> = runs.iter().map(of_run).collect();
    let list = json!({ "made_by": MADE_BY, "schema": 1, "weir": env!("CARGO_PKG_VERSION"), "runs": runs });
    let text = serde_json::to_vec_pretty(&list).map_err(ReportError::draw(LIST_FILE))?;
    write_file(&site.join(LIST_FILE), &text)
}
