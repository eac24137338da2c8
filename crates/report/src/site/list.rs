//! The list of a site's runs for programs, `site.json`, which also marks a folder as a site that may be replaced.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use weir_model::regular;

use super::recorded::Recorded;
use crate::error::ReportError;
use crate::make::write as write_file;

const LIST_FILE: &str = "site.json";

/// The value of `made_by` in the list of runs, which marks a folder as a site.
const MADE_BY: &str = "weir site";

/// Everything that a site has in its folder.
const OWN: [&str; 7] = ["assets", "charts", "index.html", "products", "runs", LIST_FILE, "suites"];

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
        return Err(ReportError::Occupied { path: folder.to_path_buf() });
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
