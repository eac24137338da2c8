//! Several runs side by side: the text as a golden file, what differs, what is refused, and the page in a real browser.

use crate::common;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::golden;
use crate::webdriver::Browser;
use serde_json::{Value, json};
use weir_model::record::Environment;
use weir_report::{ChartFiles, Made, ReportError, Run, Summary, load_run, machines, summary};

/// A run on a machine of this name, with so many CPUs, whose products were as fast as their records say times `speed`.
fn run_on(folder: &Path, host: &str, cpus: u32, change: &dyn Fn(&mut Environment)) -> PathBuf {
    let run = folder.join(format!("2026-01-02T03-04-05-{cpus}"));
    common::write_blocks(&run, 2, usize::MAX);
    let file = run.join("environment.json");
    let mut environment: Environment = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    environment.host = host.to_owned();
    environment.cpus = cpus;
    change(&mut environment);
    common::write_json(&file, &environment);
    run
}

fn read(runs: &[PathBuf]) -> Vec<(Run, Summary)> {
    let read = |folder: &PathBuf| {
        let run = load_run(folder).unwrap();
        let summary = summary(&run);
        (run, summary)
    };
    runs.iter().map(read).collect()
}

fn made(runs: &[PathBuf], folder: &Path) -> Result<Made, ReportError> {
    machines(&read(runs), folder, ChartFiles::Pictures)
}

fn two(folder: &Path) -> Vec<PathBuf> {
    let newer = |environment: &mut Environment| {
        environment.kernel = "Linux 6.18.0".to_owned();
        let alder = environment.products.iter_mut().find(|facts| facts.name == "alder").unwrap();
        alder.version = "2.5.0".to_owned();
    };
    vec![run_on(folder, "small", 4, &|_| {}), run_on(folder, "large", 16, &newer)]
}

#[test]
fn the_same_cases_stand_beside_each_other_by_machine() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("both");
    let runs = two(folder.path());
    let report = made(&runs, &out).unwrap();
    let text = fs::read_to_string(&report.markdown).unwrap();
    golden("machines.md", &text);
    assert!(text.contains("Alder ran as another version or build on some"), "{text}");
    assert!(!text.contains("Birch Proxy ran as"), "the others are the same");
    for chart in &report.charts {
        assert!(chart.is_file(), "{}", chart.display());
    }
    let rows =
        csv::Reader::from_path(&report.summary_csv).unwrap().into_records().map(Result::unwrap).collect::<Vec<_>>();
    let alder: Vec<_> =
        rows.iter().filter(|row| &row[4] == "alder" && &row[2] == "plain" && &row[3] == "max").collect();
    assert_eq!(alder.iter().map(|row| &row[1]).collect::<Vec<_>>(), ["small", "large"]);
    assert!(alder.iter().all(|row| row[6].parse::<f64>().is_ok_and(|rate| rate > 0.0)), "{alder:?}");
    // The runs are as they were, and the report can be made again.
    assert!(!runs[0].join("report").exists());
    made(&runs, &out).unwrap();
}

#[test]
fn hosts_of_one_name_have_their_runs_names_and_equal_runs_no_differences() {
    let folder = tempfile::tempdir().unwrap();
    let runs = [run_on(folder.path(), "bench", 8, &|_| {}), run_on(folder.path(), "bench", 9, &|it| it.cpus = 8)];
    let report = made(&runs, &folder.path().join("both")).unwrap();
    let text = fs::read_to_string(&report.markdown).unwrap();
    assert!(text.contains("bench (2026-01-02T03-04-05-8)") && text.contains("bench (2026-01-02T03-04-05-9)"), "{text}");
    assert!(text.contains("Nothing else that was recorded differs between the runs."), "{text}");
    assert!(!text.contains("ran as another version"), "{text}");
}

/// The message of runs that cannot stand beside each other, without the test's folder.
fn refused(runs: &[PathBuf], folder: &Path, out: &Path) -> String {
    made(runs, out).unwrap_err().to_string().replace(folder.to_str().unwrap(), "F")
}

#[test]
fn other_suites_other_questions_and_other_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let runs = two(folder);
    let out = folder.join("both");
    let same = [runs[0].clone(), runs[0].clone()];
    assert_eq!(
        refused(&same, folder, &out),
        "F/2026-01-02T03-04-05-4: it is the same run, F/2026-01-02T03-04-05-4\n  expected: each run once"
    );
    let file = runs[1].join("run.toml");
    let text = fs::read_to_string(&file).unwrap();
    let other = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} is not in {text}");
        fs::write(&file, text.replace(from, to)).unwrap();
        refused(&runs, folder, &out)
    };
    let expected =
        ", F/2026-01-02T03-04-05-4\n  expected: runs of one suite, such as `weir run NAME` on several machines";
    let name = other("name = \"trees\"", "name = \"bushes\"");
    assert_eq!(name, format!("F/2026-01-02T03-04-05-16: it is of the suite bushes, and the other of trees{expected}"));
    let asks = other("path = \"/bytes/64\"", "path = \"/bytes/65\"");
    assert_eq!(asks, format!("F/2026-01-02T03-04-05-16: its workload plain is not what it is in the other{expected}"));
    fs::write(&file, &text).unwrap();
    let occupied = refused(&runs, folder, &runs[0]);
    assert!(
        occupied.starts_with("F/2026-01-02T03-04-05-4: there are files in it, and they are no report"),
        "{occupied}"
    );
    assert!(!out.exists(), "nothing was written");
}

#[test]
#[ignore = "make check PART=browser: make test opens one page"]
fn the_page_works_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    let report = made(&two(folder.path()), &folder.path().join("both")).unwrap();
    let browser = Browser::start();
    browser.open(&report.html);
    assert_eq!(browser.run("return document.querySelectorAll('h1').length"), json!(1));
    browser.wait("a chart is fitted", "return document.querySelectorAll('.plot[data-fitted] .bar').length >= 4");
    let columns =
        "return [...document.querySelectorAll('#differences-table thead th')].map(th => th.textContent.trim())";
    let columns: Vec<String> = serde_json::from_value(browser.run(columns)).unwrap();
    assert!(columns.len() == 3 && columns[1].contains("small") && columns[2].contains("large"), "{columns:?}");
    // Every picture has a bar's label for each machine, and leads to its files.
    let both = "return [...document.querySelectorAll('figure.chart')].every(f => ['small', 'large'].every(m => \
                f.querySelector('.plot').getAttribute('aria-label').includes(m)))";
    assert_eq!(browser.run(both), Value::Bool(true));
    let toggle = "figure.chart .toggles button";
    browser.click(toggle);
    assert_eq!(browser.run(&format!("return document.querySelector('{toggle}').ariaPressed")), json!("false"));
    assert_eq!(browser.console(), Vec::<String>::new(), "the console is not silent");
}
