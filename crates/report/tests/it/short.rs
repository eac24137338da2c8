//! What `weir run` shows of a run on one screen: the response at its end, and the order of products while it goes on.

use crate::common;
use std::path::Path;

use crate::common::golden;
use crate::made::{CURVES, RUN};
use weir_model::metric::Metric;
use weir_report::summary::{Provisional, provisional};
use weir_report::{Part, Run, Summary, load_run, short_answer, summary};

fn run() -> Run {
    load_run(&RUN).unwrap()
}

/// The short answer at 80 columns without colour, which must fit 24 lines with a remark of the verb's and the prompt.
fn on_a_screen(run: &Run) -> String {
    let text = short_answer(&summary(run), Path::new("runs/20260102-030405-trees/report/report.html"), 80, false);
    assert!(text.lines().count() <= 22, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text
}

#[test]
fn the_short_answer_fits_a_screen() {
    golden("short.txt", &on_a_screen(&run()));
    golden("short-curves.txt", &on_a_screen(&load_run(&CURVES).unwrap()));
    let shown = Part { products: vec!["alder".to_string()], ..Part::default() };
    golden("short-one-product.txt", &on_a_screen(&shown.of(run()).unwrap()));
}

#[test]
fn the_short_answer_names_the_first_of_many_products() {
    let folder = tempfile::tempdir().unwrap();
    let size = |products, workloads| common::Size { products, workloads, blocks: 2 };
    for (name, size) in [("40-products", size(40, 1)), ("20-products", size(20, 2)), ("20-workloads", size(6, 20))] {
        let folder = folder.path().join(name);
        common::write_large(&folder, size);
        golden(&format!("short-{name}.txt"), &on_a_screen(&load_run(&folder).unwrap()));
    }
}

/// Whatever the run is cut off after, and however its products are called.
#[test]
fn the_short_answer_fits_a_screen_at_any_time() {
    let long = |run: &mut Run| {
        for facts in run.environment.iter_mut().flat_map(|environment| &mut environment.products) {
            facts.title = format!("{} with a very long name that nobody would shorten", facts.title);
        }
    };
    let (all, curves) = (run(), load_run(&CURVES).unwrap());
    for run in [&all, &curves] {
        for trials in 1..=run.trials.len() {
            let mut part = run.clone();
            part.trials.truncate(trials);
            on_a_screen(&part);
            long(&mut part);
            on_a_screen(&part);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    common::write_hostile(folder.path());
    on_a_screen(&load_run(folder.path()).unwrap());
}

#[test]
fn doubts_are_one_line_that_counts_what_it_has_no_room_for() {
    let whole = summary(&run());
    let doubts = |summary: &Summary, width| {
        let text = short_answer(summary, Path::new("r"), width, false);
        let found: Vec<&str> = text.lines().filter(|line| line.starts_with("Doubts: ")).collect();
        assert!(found.len() == 1 && found[0].chars().count() <= width, "{text}");
        found[0].to_owned()
    };
    assert_eq!(
        doubts(&whole, 150),
        "Doubts: 1 of 72 trials failed (Dogwood at ready); 3 invalid (conservation-requests); 1 suspect (quiet-steal); \
         1 old version (Cedar 2.4.1)."
    );
    assert_eq!(doubts(&whole, 60), "Doubts: 1 of 72 trials failed; 3 invalid; 1 suspect; 1 more.");
    let mut clean = whole;
    clean.errors.clear();
    clean.outdated.clear();
    clean.findings.clear();
    for section in &mut clean.sections {
        section.invalid = 0;
        section.rows.iter_mut().for_each(|row| row.verdicts.suspect = 0);
    }
    assert_eq!(doubts(&clean, 80), "Doubts: none.");
}

#[test]
fn a_p99_that_one_product_alone_has_is_not_said_of_another() {
    let mut all = run();
    all.trials.retain(|trial| trial.measurement.case.load != "steady" || trial.measurement.case.product == "birch");
    let answer = summary(&all).answer;
    assert!(answer.contains("Birch Proxy's p99 at a given rate is 1.05 ms") && !answer.contains("Its"), "{answer}");
}

#[test]
fn the_short_answer_of_a_run_without_numbers_says_why() {
    let folder = tempfile::tempdir().unwrap();
    common::write_blocks(folder.path(), 1, 12);
    common::fail_all(folder.path());
    golden("short-all-failed.txt", &on_a_screen(&load_run(folder.path()).unwrap()));
    let folder = tempfile::tempdir().unwrap();
    common::write_hostile(folder.path());
    let hostile = short_answer(&summary(&load_run(folder.path()).unwrap()), Path::new("a\u{1b}[31m"), 80, false);
    assert!(!hostile.chars().any(|c| c.is_control() && c != '\n'));
}

/// The order that a run shows while it goes on, with what stands beside it.
fn so_far(trials: usize) -> Option<Provisional> {
    let all = run();
    provisional(&all.suite, &all.trials[..trials.min(all.trials.len())])
}

#[test]
fn the_order_so_far_compares_products_over_the_same_workloads() {
    let names = |so_far: &Provisional| -> Vec<String> {
        so_far.products.iter().map(|(entry, _)| entry.product.clone()).collect()
    };
    // Direct and one product: nothing to compare.
    assert_eq!(so_far(2), None);
    let two = so_far(3).unwrap();
    assert_eq!((names(&two), two.without, two.excluded), (vec!["alder".to_owned(), "birch".to_owned()], 3, 0));
    // All of the first workload, of which elm's trial is invalid; the load at a given rate says nothing of the rate.
    let first = so_far(12).unwrap();
    assert_eq!(names(&first), ["alder", "birch", "cedar", "dogwood"]);
    assert_eq!((first.metric, first.workloads, first.of, first.without, first.excluded), (Metric::Rate, 1, 2, 0, 1));
    // One product more in the second workload changes nothing, until all have been measured in it.
    assert_eq!(so_far(14), Some(first));
    let end = so_far(usize::MAX).unwrap();
    assert_eq!((end.workloads, end.of, end.without, end.excluded), (2, 2, 0, 1));
    let report = summary(&run()).overall.unwrap();
    for (entry, value) in &end.products {
        let row = report.rows.iter().find(|row| row.entry == *entry).unwrap();
        let ratio = value / row.of(Metric::Rate).unwrap().value;
        assert!(row.rank.is_some() && (ratio - 1.0).abs() < 0.02, "{entry:?}: {ratio}");
    }
    assert_eq!(end.products.len(), report.rows.iter().filter(|row| row.rank.is_some()).count());
}

#[test]
fn the_order_so_far_goes_by_latency_where_no_load_asks_for_a_rate() {
    let mut run = run();
    run.suite.loads.retain(|load| load.name == "steady");
    let so_far = provisional(&run.suite, &run.trials).unwrap();
    assert_eq!(so_far.metric, Metric::P99);
    assert!(so_far.products.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{:?}", so_far.products);
}
