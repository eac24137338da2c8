//! What a report says of streams: it ranks by the delay of messages, and never by a rate or a duration, which are the sender's.

use std::fs;
use std::path::Path;

use crate::common::{self, PRODUCTS, golden};
use weir_model::load::{Cancellation, MessageCounts, MessageResult, Quantiles};
use weir_model::record::Measurement;
use weir_report::{ChartFiles, load_run, make, summary};

/// Of each product the median delay of a message, µs, and how many messages it passes on together.
const DELAYS: [(f64, u64); 6] = [(90.0, 1), (210.0, 1), (160_000.0, 16), (106_000.0, 9), (230.0, 1), (390.0, 1)];

/// The made-up run as if its responses had been streams. By their rates the products would stand in another order.
fn write_run_of_streams(run: &Path) {
    common::write_blocks(run, 3, usize::MAX);
    let suite = fs::read_to_string(run.join("run.toml")).unwrap();
    fs::write(run.join("run.toml"), suite.replace("[workload.expect]", "stream = \"sse\"\n\n[workload.expect]"))
        .unwrap();
    for folder in fs::read_dir(run.join("trials")).unwrap() {
        let file = folder.unwrap().path().join("measurement.json");
        let mut measurement: Measurement = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let place = PRODUCTS.iter().position(|(name, ..)| *name == measurement.case.product).unwrap();
        let (delay, together) = DELAYS[place];
        let block = 1.0 + 0.02 * f64::from(measurement.block);
        if let Some(load) = &mut measurement.load {
            let counts = MessageCounts {
                received: 6_400,
                bytes: 1_280_000,
                gathered: 6_400 - 6_400 / together,
                begun: 100,
                whole: 100,
                first_reads: 100 * if together == 16 { 16 } else { 1 },
                ..MessageCounts::default()
            };
            let times = |us: f64| Quantiles { count: 6_400, p50_us: us, p99_us: 2.0 * us, ..Quantiles::default() };
            load.messages = Some(MessageResult {
                delay: times(delay * block),
                gap: times(20_000.0),
                per_message: times(20_000.0),
                head: times(300.0 + delay),
                first_message: times(200_000.0 + delay),
                window: counts,
                total: counts,
                cancellation: Some(Cancellation {
                    cancelled: 50,
                    seen: 50,
                    in_time: if together == 16 { 20 } else { 50 },
                    p50_us: 300.0,
                    p99_us: if together == 16 { 1_300_000.0 } else { 900.0 },
                    max_us: 1_400_000.0,
                }),
                ..MessageResult::default()
            });
        }
        common::write_json(&file, &measurement);
    }
}

#[test]
fn streams_are_ranked_by_the_delay_of_their_messages() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("2026-01-02T03-04-05-streams");
    write_run_of_streams(&folder);
    let run = load_run(&folder).unwrap();
    assert_eq!(run.broken, []);
    let summary = summary(&run);
    assert!(summary.overall.is_none(), "no product leads by a rate that is the sender's");
    let ranks = |load: &str| {
        let section = summary.sections.iter().find(|section| section.load == load && section.workload == "json");
        let rows = section.unwrap().rows.iter();
        rows.map(|row| (row.entry.product.clone(), row.rank.map(|rank| rank.0))).collect::<Vec<_>>()
    };
    let order = ["alder", "dogwood", "elm", "cedar", "birch"];
    let expected: Vec<_> = (1..).zip(order).map(|(rank, name)| (name.to_owned(), Some(rank))).collect();
    assert_eq!((ranks("steady"), ranks("max")), (expected.clone(), expected), "under open and closed loads");
    let made = make(&folder, ChartFiles::Pictures).unwrap();
    golden("streams.md", &fs::read_to_string(&made.markdown).unwrap());
    let charts = fs::read_dir(folder.join("report/charts")).unwrap().map(|file| file.unwrap().file_name());
    let charts: Vec<String> = charts.map(|name| name.into_string().unwrap()).collect();
    assert!(charts.iter().any(|name| name == "plain-max-delay.svg"), "{charts:?}");
    assert!(!charts.iter().any(|name| name.contains("-rate") || name.contains("latency")), "{charts:?}");
}
