//! Prints each measurement in the format of the document's tool, from a trial's record and histograms.
//! [`sections`](crate::sections) calls [`items`].

use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use weir_model::load::LoadResult;
use weir_model::record::{Measurement, Point};
use weir_model::suite::{Entry, Series};

use super::context::Context;
use super::layout::Tool;
use super::run_cases::RunCase;
use weir_report::charts::note_broken;
use weir_report::extra::Item;
use weir_report::formats::{self, Account};
use weir_report::hlog;
use weir_report::run::{Broken, Run, Trial, relative};
use weir_report::series::window_folders;

/// Their folder within the report's folder.
const FOLDER: &str = "shaped";

/// The file of a window's histograms.
const LOG: &str = "latency.hlog";

/// One text for each of the document's cases and each entry, with all blocks and rounds; empty when the document has no tool output.
pub(super) fn items(context: &Context<'_>, broken: &mut Vec<Broken>) -> Vec<Item> {
    let Some(tool) = context.source.layout.tool() else { return Vec::new() };
    let mut texts = Vec::new();
    let run = context.cases.run;
    for case in context.source.cases().into_iter().filter_map(|name| context.cases.case(name)) {
        texts.extend(run.suite.entries.iter().filter_map(|entry| item(run, case, entry, tool, broken)));
    }
    if texts.is_empty() {
        return Vec::new();
    }
    let mut items = vec![Item::Paragraph(format!("{} {}", explanation(tool), context.scaled))];
    items.extend(texts);
    items
}

/// What a reader must know about the text of a tool.
fn explanation(tool: Tool) -> &'static str {
    match tool {
        Tool::Wrk => {
            "As wrk prints a measurement. Req/Sec is of all threads together, divided by their number, where wrk takes each \
             thread by itself; requests/sec are answers of any kind, as wrk has it, and not right ones alone as elsewhere in \
             this report."
        }
        Tool::Wrk2 => {
            "As wrk2 prints a measurement with --latency. Req/Sec is of all threads together, divided by their number; latency counts \
             from when a request was due, as wrk2 has it; requests/sec are answers of any kind."
        }
        Tool::Junoload => {
            "As junoload prints its final table. Latency counts from when a request was due, where junoload counts from when it was \
             sent; a column of weir's own behind it has the requests that ended in a second."
        }
        Tool::Hey => {
            "As hey prints a measurement. Not measured, and 0 there: DNS-lookup (weir resolves names before it starts) and req \
             write (the writing of a request is part of resp wait). Requests/sec are requests of any outcome, as hey has it, \
             and not right answers alone as elsewhere in this report."
        }
    }
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
    let of = |tag: &str| {
        let read = hlog::read(file, tag)?;
        // The tools' formats are made from nanoseconds, which is what weir writes.
        if (read.us_per_value - 0.001).abs() < 1e-9 {
            Ok(read.histogram)
        } else {
            Err("not in nanoseconds".to_string())
        }
    };
    let latency = of("latency")?;
    let service = of("service").unwrap_or_else(|_| latency.clone());
    Ok([latency, service])
}
