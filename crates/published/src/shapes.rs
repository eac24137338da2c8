//! Each measurement in the shape in which the document printed one: what the tool it used would have said. Knows trials and
//! their histograms.

use std::path::Path;

use hdrhistogram::Histogram;
use weir_model::load::LoadResult;
use weir_model::suite::Entry;

use super::data::Source;
use super::document::places;
use super::layout::{Order, Shape};
use super::ours::{Ours, OwnCase};
use weir_report::extra::Item;
use weir_report::hlog;
use weir_report::run::{Broken, Trial};
use weir_report::shaped::{self, Account};

/// Where the files stand in the report's folder.
const FOLDER: &str = "shaped";

/// One text a case and entry, all blocks and rounds in it; empty when the document printed none.
pub(super) fn items(ours: &Ours<'_>, source: &Source, scaled: &str, broken: &mut Vec<Broken>) -> Vec<Item> {
    let Some(shape) = source.shape else { return Vec::new() };
    let mut texts = Vec::new();
    for (case, entry) in places(ours, source, Order::CaseProduct, &|_| true) {
        texts.extend(item(ours, case, entry, shape, broken));
    }
    if texts.is_empty() {
        return Vec::new();
    }
    let mut items = vec![Item::Paragraph(format!("{} {scaled}", words(shape)))];
    items.extend(texts);
    items
}

/// What a reader of such a text must know.
fn words(shape: Shape) -> &'static str {
    match shape {
        Shape::Wrk => {
            "As wrk prints a measurement. Req/Sec is by the second, where wrk counts tenths of it; requests/sec are answers of \
             any kind, as wrk has it, and not right ones alone as elsewhere in this report."
        }
        Shape::Hey => {
            "As hey prints a measurement. Not measured, and 0 there: DNS-lookup (weir resolves names before it starts) and req \
             write (the writing of a request is part of resp wait). Requests/sec are requests of any outcome, as hey has it, \
             and not right answers alone as elsewhere in this report."
        }
    }
}

fn item(ours: &Ours<'_>, case: &OwnCase<'_>, entry: &Entry, shape: Shape, broken: &mut Vec<Broken>) -> Option<Item> {
    let title = format!("{}, {}", ours.run.label_of(entry), case.name);
    let mut text = String::new();
    for trial in case.shown(entry) {
        let folder = ours.run.folder.join(&trial.folder);
        for (name, connections, load, file) in loads(trial, case) {
            match read(&folder, &file) {
                Ok([latency, service]) => {
                    let account =
                        Account { title: &title, connections, result: load, latency: &latency, service: &service };
                    let drawn = match shape {
                        Shape::Wrk => shaped::wrk(account),
                        Shape::Hey => shaped::hey(account),
                    };
                    text.push_str(&format!("# {name}\n{}\n\n", drawn.trim_matches('\n')));
                }
                Err(why) => weir_report::charts::note_broken(broken, format!("{}/{file}", trial.folder), why),
            }
        }
    }
    let slug = crate::charts::slug(&format!("{} {} {}", entry.product, entry.profile, case.name));
    (!text.is_empty()).then(|| Item::Text { summary: title, text, file: format!("{FOLDER}/{slug}.txt") })
}

/// The loads of a trial: what each is called, its connections, its account and its histograms' file.
fn loads<'a>(trial: &'a Trial, case: &OwnCase<'_>) -> Vec<(String, u32, &'a LoadResult, String)> {
    let measurement = &trial.measurement;
    let block = format!("block {}", measurement.block);
    if measurement.points.is_empty() {
        let connections = case.section.connections.unwrap_or_default();
        let once = |load| (block.clone(), connections, load, "latency.hlog".to_string());
        return measurement.load.iter().map(once).collect();
    }
    let points = measurement.points.iter();
    let of_point = |point: &'a weir_model::record::Point| {
        // The last point's files are the trial's own.
        let last = point.point as usize == measurement.points.len();
        let file = if last { "latency.hlog".to_string() } else { format!("point-{}/latency.hlog", point.point) };
        (format!("{block}, round {}", point.point), point.connections, &point.load, file)
    };
    points.map(of_point).collect()
}

/// Both histograms of a load, in nanoseconds.
fn read(folder: &Path, file: &str) -> Result<[Histogram<u64>; 2], String> {
    let of = |tag: &str| {
        let read = hlog::read(&folder.join(file), tag)?;
        // The shapes are drawn from nanoseconds, which is what weir writes.
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
