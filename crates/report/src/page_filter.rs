//! Draws the filter of `report.html` by product, profile, workload and load. Called by `page`.

use askama::Template;
use serde_json::json;

use crate::error::ReportError;
use crate::run::{BASELINE, Run};
use crate::summary::Summary;

/// Names with their titles.
type Names = Vec<(String, String)>;

#[derive(Template)]
#[template(path = "only.html")]
struct Only {
    /// Key in the address, heading, names.
    groups: Vec<(&'static str, &'static str, Names)>,
    /// What the page's script knows of names.
    names: String,
}

/// The choice, folded up.
///
/// # Errors
///
/// Only when the template is wrong.
pub(crate) fn draw(run: &Run, summary: &Summary) -> Result<String, ReportError> {
    let rows = || summary.sections.iter().flat_map(|section| section.all_rows());
    let mut groups: Vec<(&'static str, &'static str, Names)> =
        [("product", "Products"), ("profile", "Profiles"), ("workload", "Workloads"), ("load", "Loads")]
            .map(|(key, heading)| (key, heading, Vec::new()))
            .into();
    let add = |names: &mut Names, name: &str, title: &str| {
        if !names.iter().any(|(known, _)| known == name) {
            names.push((name.to_string(), if title.is_empty() { name } else { title }.to_string()));
        }
    };
    let mut entries = Vec::new();
    // In the suite's order, not in that of a table.
    for entry in run.suite.entries.iter().filter(|entry| rows().any(|row| row.entry == **entry)) {
        let (title, label) = (run.title_of(&entry.product), run.label_of(entry));
        let baseline = entry.product == BASELINE;
        entries.push(json!({ "product": entry.product, "profile": entry.profile, "title": title, "label": label, "baseline": baseline }));
        if !baseline {
            add(&mut groups[0].2, &entry.product, title);
            add(&mut groups[1].2, &entry.profile, "");
        }
    }
    for section in &summary.sections {
        add(&mut groups[2].2, &section.workload, &section.workload_title);
        add(&mut groups[3].2, &section.load, &section.load_title);
    }
    // A choice of one is none.
    groups.retain(|(_, _, names)| names.len() > 1);
    let names = json!({ "entries": entries }).to_string().replace('<', "\\u003c");
    if groups.is_empty() {
        return Ok(String::new());
    }
    Only { groups, names }.render().map_err(|error| ReportError::draw("the choice", error))
}
