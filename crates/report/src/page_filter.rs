//! The filter of `report.html` by product, profile, workload and load. `page` draws it.

use serde_json::json;

use crate::run::Run;
use crate::summary::Summary;

/// What a reader can choose from.
#[derive(Default)]
pub(crate) struct Filter {
    /// What more than one thing can be chosen of.
    pub groups: Vec<Group>,
    /// What the page's script knows of names.
    pub names: String,
}

/// Names to choose from.
pub(crate) struct Group {
    /// Its key in the address.
    pub key: &'static str,
    pub heading: &'static str,
    /// Each with its title.
    pub names: Vec<(String, String)>,
}

impl Filter {
    /// Everything in the summary, in the suite's order and not in that of a table.
    pub fn of(run: &Run, summary: &Summary) -> Filter {
        let group = |key, heading| Group { key, heading, names: Vec::new() };
        let (mut products, mut profiles) = (group("product", "Products"), group("profile", "Profiles"));
        let (mut workloads, mut loads) = (group("workload", "Workloads"), group("load", "Loads"));
        let mut entries = Vec::new();
        for entry in &run.suite.entries {
            let mut rows = summary.sections.iter().flat_map(|section| section.all_rows());
            let Some(row) = rows.find(|row| row.entry == *entry) else { continue };
            entries.push(json!({
                "product": entry.product, "profile": entry.profile, "title": row.title, "label": row.label,
                "baseline": row.is_baseline(),
            }));
            if !row.is_baseline() {
                products.add(&entry.product, &row.title);
                profiles.add(&entry.profile, "");
            }
        }
        for section in &summary.sections {
            workloads.add(&section.workload, &section.workload_title);
            loads.add(&section.load, &section.load_title);
        }
        let mut groups = vec![products, profiles, workloads, loads];
        // A choice of one is none.
        groups.retain(|group| group.names.len() > 1);
        Filter { groups, names: json!({ "entries": entries }).to_string().replace('<', "\\u003c") }
    }
}

impl Group {
    fn add(&mut self, name: &str, title: &str) {
        if !self.names.iter().any(|(known, _)| known == name) {
            let title = if title.is_empty() { name } else { title };
            self.names.push((name.to_string(), title.to_string()));
        }
    }
}
