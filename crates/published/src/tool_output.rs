//! Prints each measurement in the format of the document's tool, from a trial's record and histograms.

use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use weir_model::load::LoadResult;
use weir_model::record::{Measurement, Point};
use weir_model::suite::{Entry, Series};

use crate::layout::Tool;
use crate::run_cases::{Context, RunCase};
use weir_report::charts::note_broken;
use weir_report::extra::Item;
use weir_report::formats::{self, Account};
use weir_report::run::{Broken, Run, Trial, relative};
use weir_report::series::{self, window_folders};

/// Their folder within the report's folder.
const FOLDER: &str = "shaped";

/// The file of a window's histograms.
const LOG: &str = "latency.hlog";

/// One text for each of the document's cases and each entry, with all blocks and rounds; empty when the document has no tool output.
pub(super) fn items(context: &Context<'_>, broken: &mut Vec<Broken>) -> Vec<Item> {
    let Some((tool, words)) = context.source.layout.tool() else { return Vec::new() };
    let mut texts = Vec::new();
    let run = context.cases.run;
    for case in context.source.cases().into_iter().filter_map(|name| context.cases.case(name)) {
        texts.extend(run.suite.entries.iter().filter_map(|entry| item(run, case, entry, tool, broken)));
    }
    if texts.is_empty() {
        return Vec::new();
    }
    let mut items = vec![Item::Paragraph(format!("{words} {}", context.scaled))];
    items.extend(texts);
    items
}

fn item(run: &Run, case: &RunCase<'_>, entry: &Entry, tool: Tool, broken: &mut Vec<Broken>) -> Option<Item> {
    let title = format!("{}, {}", run.label_of(entry), case.name);
    let mut text = String::new();
    for trial in case.usable_trials(entry) {
        for (name, connections, load, folder) in loads(run, trial, case) {
            match read(&folder.join(LOG)) {
                Ok([latency, service]) => {
                    let account =
                        Account { title: &title, connections, result: load, latency: &latency, service: &service };
                    let drawn = match tool {
                        Tool::Wrk => formats::wrk(account),
                        Tool::Wrk2 => formats::wrk2(account),
                        Tool::Junoload => formats::junoload(account, case.name),
                        Tool::Hey => formats::hey(account),
                    };
                    text.push_str(&format!("# {name}\n{}\n\n", drawn.trim_matches('\n')));
                }
                Err(why) => note_broken(broken, Broken { file: relative(&run.folder, &folder.join(LOG)), why }),
            }
        }
    }
    let slug = crate::charts::slug(&format!("{} {} {}", entry.product, entry.profile, case.name));
    (!text.is_empty()).then(|| Item::Text { summary: title, text, file: format!("{FOLDER}/{slug}.txt") })
}

/// The loads of a trial: name, connections, result, and the folder of its histograms.
fn loads<'a>(run: &Run, trial: &'a Trial, case: &RunCase<'_>) -> Vec<(String, u32, &'a LoadResult, PathBuf)> {
    let Measurement { block, points, load, .. } = &trial.measurement;
    let folders = window_folders(run, trial).into_iter();
    if points.is_empty() {
        let connections = case.section.connections.unwrap_or_default();
        return load
            .iter()
            .zip(folders)
            .map(|(load, folder)| (format!("block {block}"), connections, load, folder))
            .collect();
    }
    let word = if matches!(case.section.series, Series::Rounds(_)) { "round" } else { "point" };
    let of_point = |(point, folder): (&'a Point, PathBuf)| {
        (format!("block {block}, {word} {}", point.point), point.connections, &point.load, folder)
    };
    points.iter().zip(folders).map(of_point).collect()
}

/// Both histograms of a load, in nanoseconds.
fn read(file: &Path) -> Result<[Histogram<u64>; 2], String> {
    let latency = series::histogram(file, "latency")?.histogram;
    let service = series::histogram(file, "service").map_or_else(|_| latency.clone(), |read| read.histogram);
    Ok([latency, service])
}
