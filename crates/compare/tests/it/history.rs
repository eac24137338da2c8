//! Many runs in folders: which changes a history finds, which runs it keeps apart, which it skips, and its texts.

use std::fs;
use std::path::{Path, PathBuf};

use crate::golden::golden;
use crate::made::{Made, Noise, QUIET, VIRTUAL};
use tempfile::TempDir;
use weir_compare::history::{
    FailOn, History, HistoryError, Options, Order, Series, Verdict, history, text, write_page,
};
use weir_model::metric::Metric;
use weir_model::record::Environment;

/// Runs of three blocks in a folder of their own, by number; one a day.
struct Runs {
    folder: TempDir,
}

impl Runs {
    fn new() -> Runs {
        Runs { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, run: usize) -> PathBuf {
        self.folder.path().join(format!("run-{run:02}"))
    }

    fn write(&self, run: usize, made: &Made<'_>, change: impl Fn(&mut Environment)) {
        made.write(run as u64 + 1, &self.path(run), |environment| {
            environment.started = format!("2026-01-{:02}T03:04:05Z", run + 1);
            environment.host = "bench".to_owned();
            environment.weir_version = "0.1.0".to_owned();
            change(environment);
        });
    }

    /// So many, with a speed of the first product for each.
    fn with(count: usize, noise: Noise, speed: impl Fn(usize) -> f64) -> Runs {
        let runs = Runs::new();
        for run in 0..count {
            runs.write(run, &made(noise, speed(run)), |_| {});
        }
        runs
    }

    fn history(&self, options: &Options) -> History {
        history(&[self.folder.path().to_owned()], options).expect("a history")
    }
}

fn made(noise: Noise, speed: f64) -> Made<'static> {
    Made { blocks: 3, noise, speed, ..Made::default() }
}

/// Slower by 7 % from this run on.
fn slower(from: usize) -> impl Fn(usize) -> f64 {
    move |run| if run < from { 1.0 } else { 0.93 }
}

fn only(metrics: &[Metric]) -> Options {
    Options { metrics: metrics.to_vec(), ..Options::default() }
}

fn series(history: &History, product: &str, metric: Metric) -> Series {
    let mut all = history.series.iter().filter(|one| one.case.product == product && one.metric == metric);
    all.next().expect("a series").clone()
}

#[test]
fn a_step_is_found_from_its_run_on_and_alarms_while_it_is_new() {
    let runs = Runs::with(28, VIRTUAL, |run| if run < 18 { 1.0 } else { 0.9 });
    let options = only(&[Metric::Rate, Metric::Cpu]);
    let found = runs.history(&options);
    for metric in [Metric::Rate, Metric::Cpu] {
        let series = series(&found, "alder", metric);
        let [change] = series.changes.as_slice() else { panic!("{metric:?}: {:?}", series.changes) };
        assert!((17..=19).contains(&change.at), "{change:?}");
        assert_eq!((change.worse, change.newest, change.verdict), (true, change.at >= 18, Verdict::Changed));
        let size = (change.after / change.before).ln().abs();
        assert!((0.06..0.16).contains(&size), "{change:?}");
        assert!(change.ratio.low < change.ratio.high && change.p <= 0.025, "{change:?}");
        assert!(series.divided && series.points.len() == 28);
    }
    assert!(!found.alarms.is_empty() && found.alarms[0].starts_with("Alder tuned, plain, capacity:"), "{found:?}");
    assert!(found.answer.contains("from run-1"), "{}", found.answer);
    let alarms = |options: Options| runs.history(&options).alarms.len();
    assert_eq!(alarms(Options { fail_on: FailOn::Never, ..options.clone() }), 0);
    assert_eq!(alarms(Options { newest: 5, ..options }), 0, "it is no longer new");
}

#[test]
fn a_step_for_the_better_alarms_only_where_any_change_does() {
    let runs = Runs::with(24, QUIET, |run| if run < 18 { 1.0 } else { 1.1 });
    let options = only(&[Metric::Rate]);
    let found = runs.history(&options);
    assert!(!series(&found, "alder", Metric::Rate).changes[0].worse);
    assert_eq!(found.alarms, [] as [&str; 0]);
    assert_eq!(runs.history(&Options { fail_on: FailOn::Any, ..options }).alarms.len(), 1);
}

#[test]
fn nothing_is_found_where_nothing_changed() {
    let runs = Runs::with(28, VIRTUAL, |_| 1.0);
    let found = runs.history(&Options::default());
    assert_eq!(found.claims.claims, 5);
    assert_eq!(found.answer, "No change found in 5 numbers.");
    assert!(found.alarms.is_empty() && found.changes().iter().all(|(series, _)| series.of_machine));
    // As measured, the machine's drift is in them, and that is said.
    let absolute = runs.history(&Options { absolute: true, ..Options::default() });
    assert!(
        absolute.remarks.iter().any(|remark| remark.contains("as measured (--absolute)")),
        "{:?}",
        absolute.remarks
    );
    assert!(series(&absolute, "alder", Metric::Rate).noise > series(&found, "alder", Metric::Rate).noise);
}

#[test]
fn a_product_that_stays_the_same_shows_the_machine() {
    let runs = Runs::new();
    for run in 0..28 {
        let two = Made { products: &["alder", "birch"], no_direct: true, ..made(VIRTUAL, slower(18)(run)) };
        runs.write(run, &two, |_| {});
    }
    let options = Options { reference: "birch".to_owned(), ..only(&[Metric::Cpu, Metric::Rss]) };
    let found = runs.history(&options);
    assert_eq!(
        (found.claims.claims, &found.options.reference[..]),
        (2, "birch"),
        "nothing is claimed of the reference"
    );
    let [cpu, memory] = [Metric::Cpu, Metric::Rss].map(|metric| series(&found, "alder", metric));
    assert!(cpu.divided && memory.divided && (17..=19).contains(&cpu.changes[0].at), "{:?}", cpu.changes);
    assert!(series(&found, "birch", Metric::Cpu).of_machine);
    assert!(
        found.remarks.iter().any(|remark| remark.contains("those of birch in the same block")),
        "{:?}",
        found.remarks
    );
    let without = runs.history(&only(&[Metric::Cpu, Metric::Rss]));
    assert!(!series(&without, "alder", Metric::Cpu).divided && without.claims.claims == 4);
    assert!(series(&without, "alder", Metric::Cpu).noise > cpu.noise, "the machine's drift is in it");
}

#[test]
fn machines_are_never_compared() {
    let runs = Runs::new();
    for run in 0..24 {
        let (host, speed) = if run < 12 { ("small", 1.0) } else { ("large", 1.5) };
        runs.write(run, &made(QUIET, speed), |environment| environment.host = host.to_owned());
    }
    let options = only(&[Metric::Rate]);
    let found = runs.history(&options);
    let machines: Vec<(&str, usize)> = found.machines.iter().map(|one| (one.label.as_str(), one.runs.len())).collect();
    assert_eq!(machines, [("small", 12), ("large", 12)]);
    assert!(found.changes().is_empty(), "{}", found.answer);
    assert!(
        found.remarks[0].contains("not compared with each other: small: 12 runs; large: 12 runs"),
        "{:?}",
        found.remarks
    );
    // Taken for one, what they differ in is a change.
    let one = runs.history(&Options { any_host: true, ..options });
    assert_eq!((one.machines.len(), one.changes().len()), (1, 1));
    assert!(one.remarks[0].contains("--any-host"), "{:?}", one.remarks);
}

#[test]
fn machines_of_one_name_say_in_what_they_differ() {
    let runs = Runs::new();
    for run in 0..4 {
        runs.write(run, &made(QUIET, 1.0), |environment| {
            environment.cpus = if run < 2 { 8 } else { 16 };
            environment.placement.proxy = vec![1];
            environment.memory_bytes = 8 << 30;
            // What a kernel keeps for itself, and the kernel, make no other machine.
            environment.memory_bytes -= run as u64 * 1_000_000;
            environment.kernel = format!("Linux 6.{run}");
        });
    }
    let found = runs.history(&Options::default());
    let labels: Vec<&str> = found.machines.iter().map(|machine| machine.label.as_str()).collect();
    assert_eq!(labels, ["bench (CPUs online 8)", "bench (CPUs online 16)"]);
    assert!(found.answer.starts_with("Nothing can be claimed"), "{}", found.answer);
}

#[test]
fn a_case_that_asks_something_else_is_another_series() {
    let runs = Runs::with(20, QUIET, slower(10));
    for run in 10..20 {
        let file = runs.path(run).join("run.toml");
        let toml = fs::read_to_string(&file).expect("read");
        assert!(toml.contains("/bytes/64"));
        fs::write(&file, toml.replace("/bytes/64", "/bytes/65")).expect("written");
    }
    let found = runs.history(&only(&[Metric::Rate]));
    let all: Vec<(usize, bool)> = found
        .series
        .iter()
        .filter(|series| series.case.product == "alder")
        .map(|series| (series.points.len(), series.apart.is_some()))
        .collect();
    assert_eq!(all, [(10, false), (10, true)]);
    assert!(found.changes().is_empty());
    let words =
        "Alder tuned, plain, capacity is apart from run-10 on: the workload plain is another one in each run: its path";
    assert!(found.remarks.iter().any(|remark| remark.starts_with(words)), "{:?}", found.remarks);
}

#[test]
fn runs_are_ordered_by_version_and_what_else_changed_is_said() {
    let runs = Runs::new();
    // Both versions in turn, the newer one slower.
    for run in 0..24 {
        let new = run % 2 == 1;
        runs.write(run, &made(QUIET, if new { 0.9 } else { 1.0 }), |environment| {
            environment.products[1].version = if new { "2.10.0" } else { "2.9.0" }.to_owned();
        });
    }
    let options = only(&[Metric::Rate]);
    assert!(runs.history(&options).changes().is_empty(), "by date there is no step");
    let found = runs.history(&Options { by: Order::Version, ..options });
    let series = series(&found, "alder", Metric::Rate);
    let change = &series.changes[0];
    assert_eq!((change.at, series.points[change.at].key.as_str(), change.run.as_str()), (12, "2.10.0", "run-01"));
    let difference = &change.differences[0];
    assert_eq!((difference.what.as_str(), difference.after.as_str()), ("alder's version", "2.10.0"));
}

#[test]
fn a_faster_direct_path_makes_no_time_change() {
    let runs = Runs::with(24, QUIET, |_| 1.0);
    for run in 12..24 {
        for trial in fs::read_dir(runs.path(run).join("trials")).expect("trials") {
            let file = trial.expect("a trial").path().join("measurement.json");
            let mut value: serde_json::Value = serde_json::from_slice(&fs::read(&file).expect("read")).expect("JSON");
            if value["case"]["product"] == "direct" {
                let p50 = value["load"]["latency"]["p50_us"].as_f64().expect("a time");
                value["load"]["latency"]["p50_us"] = (p50 * 0.8).into();
                fs::write(&file, value.to_string()).expect("written");
            }
        }
    }
    let found = runs.history(&only(&[Metric::P50]));
    let verdicts: Vec<(&str, Verdict)> =
        found.changes().iter().map(|(series, change)| (series.case.product.as_str(), change.verdict)).collect();
    assert_eq!(verdicts, [("alder", Verdict::Unclear), ("direct", Verdict::Machine)]);
    assert!(found.alarms.is_empty());
    assert!(found.remarks.iter().any(|remark| remark.ends_with("unclear.")), "{:?}", found.remarks);
}

#[test]
fn runs_that_cannot_be_used_are_skipped_with_the_reason() {
    let runs = Runs::with(6, QUIET, |_| 1.0);
    fs::write(runs.path(1).join("environment.json"), "{").expect("written");
    fs::write(runs.path(2).join("run.toml"), "no suite").expect("written");
    let change_all = |run: usize, change: &dyn Fn(String) -> String| {
        for trial in fs::read_dir(runs.path(run).join("trials")).expect("trials") {
            let file = trial.expect("a trial").path().join("measurement.json");
            let text = fs::read_to_string(&file).expect("read");
            fs::write(&file, change(text)).expect("written");
        }
    };
    change_all(3, &|text| text.replacen("\"schema\":1", "\"schema\":4", 1));
    change_all(4, &|_| "nonsense".to_owned());
    change_all(5, &|text| text.replacen("\"verdict\":\"valid\"", "\"verdict\":\"invalid\"", 1));
    fs::create_dir_all(runs.folder.path().join("run-06/trials")).expect("made");
    fs::create_dir_all(runs.folder.path().join("no-run")).expect("made");
    // One of them twice.
    let found = history(&[runs.folder.path().to_owned(), runs.path(0)], &Options::default()).expect("a history");
    let why = |run: &str| {
        let skipped = found.skipped.iter().find(|one| one.folder.ends_with(run));
        skipped.map(|one| one.why.clone()).unwrap_or_default()
    };
    for (run, words) in [
        ("run-01", "environment.json: EOF"),
        ("run-02", "run.toml: "),
        ("run-03", "trials/1/measurement.json: another weir wrote it: it has schema 4, and this weir knows 1"),
        ("run-04", "trials/1/measurement.json: expected"),
        ("run-06", "none of its trials has ended"),
    ] {
        assert!(why(run).starts_with(words), "{run}: {:?}", why(run));
    }
    assert_eq!(found.skipped.len(), 5, "{:?}", found.skipped);
    assert_eq!(found.machines[0].runs.len(), 2);
    assert!(
        found.remarks.last().is_some_and(|remark| remark.starts_with("Skipped: run-01 (environment.json")),
        "{:?}",
        found.remarks
    );
    let alder = series(&found, "alder", Metric::Rate);
    assert_eq!((alder.points.len(), alder.without[0].run.as_str()), (1, "run-05"));
    assert_eq!(alder.without[0].why, "all 3 trials were invalid");
}

#[test]
fn bad_input_is_refused() {
    let runs = Runs::with(2, QUIET, |_| 1.0);
    let refused = |folder: &Path, options: &Options| match history(&[folder.to_owned()], options) {
        Err(HistoryError::Input(error)) => error.to_string(),
        Err(HistoryError::Run(error)) => error.to_string(),
        Ok(found) => panic!("{}", found.answer),
    };
    let empty = tempfile::tempdir().expect("a folder");
    assert!(refused(empty.path(), &Options::default()).contains("there is none in it"));
    assert!(refused(&empty.path().join("x"), &Options::default()).contains("there is no such folder"));
    let mut options = Options::default();
    options.selection.products = vec!["aldr".to_owned()];
    assert!(refused(runs.folder.path(), &options).contains("no run has a product \"aldr\"; did you mean \"alder\"?"));
    let no_reference = Options { reference: "aldr".to_owned(), ..Options::default() };
    let said = refused(runs.folder.path(), &no_reference);
    assert!(said.contains("--reference: no run has a product \"aldr\"; did you mean \"alder\"?"), "{said}");
    for run in 0..2 {
        fs::write(runs.path(run).join("environment.json"), "{").expect("written");
    }
    assert!(
        refused(runs.folder.path(), &Options::default())
            .contains("no run can be used: run-00 and run-01 (environment.json")
    );
}

#[test]
fn the_texts_are_as_kept() {
    let runs = Runs::with(24, QUIET, slower(16));
    runs.write(16, &made(QUIET, 0.93), |environment| environment.products[1].version = "2.5.0".to_owned());
    let found = runs.history(&Options::default());
    golden("history-80.txt", &text(&found, 80, false));
    golden("history-140.txt", &text(&found, 140, false));
    assert!(text(&found, 80, true).contains("\u{1b}[1m"));
    assert!(text(&found, 80, false).lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn the_page_has_every_number_with_its_data() {
    let runs = Runs::with(20, QUIET, slower(12));
    fs::create_dir_all(runs.folder.path().join("broken/trials")).expect("made");
    let found = runs.history(&Options::default());
    let out = tempfile::tempdir().expect("a folder");
    let page = out.path().join("history/history.html");
    let files = write_page(&found, &page, "weir history runs/ --html <history>").expect("written");
    let html = fs::read_to_string(&page).expect("read");
    for word in
        ["Alder tuned, plain, capacity", "does not begin at 0", "broken", "weir history runs/ --html &#60;history&#62;"]
    {
        assert!(html.contains(word), "{word}");
    }
    // Nothing is fetched, and everything that is linked to is there.
    assert!(!html.contains("src=") && !html.contains("href=\"http"));
    for link in html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(link.starts_with('#') || page.with_file_name(link).is_file(), "{link}");
    }
    let of_alder = |one: &Series| one.case.product == "alder" && one.metric == Metric::Rate;
    let number = found.series.iter().position(of_alder).expect("a series") + 1;
    let rows = files.iter().find(|file| file.ends_with(format!("history-{number}-runs.csv"))).expect("data");
    let rows = fs::read_to_string(rows).expect("read");
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!(lines.len(), 21, "{rows}");
    assert!(
        lines[13].starts_with("13,\"run-12\",\"2026-01-13T03:04:05Z\",\"\",") && lines[13].ends_with(",3,change"),
        "{rows}"
    );
}
