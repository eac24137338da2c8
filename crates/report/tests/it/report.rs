//! The report of a made-up run: what is in it, what is left out, and that nothing in a run can break it.

use crate::common;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::golden;
use crate::made::{CURVES, RUN};
use weir_model::coding::Coding;
use weir_model::load::CodedResponses;
use weir_model::metric::Metric;
use weir_model::record::{COMPRESSES, Finding, Measurement, Role, RoleUsage, Severity};
use weir_model::row;
use weir_model::seal::{self, Seal};
use weir_report::formats::{self, Better};
use weir_report::{ChartFiles, ReportError, Run, full_answer, load_run, make, short_answer, summary, tables};

fn run() -> Run {
    load_run(&RUN).unwrap()
}

#[test]
fn the_fixture_survives_its_own_file() {
    assert_eq!(common::parsed(&RUN), common::suite());
    let run = run();
    assert_eq!(run.broken, []);
    assert_eq!(run.suite.question, common::suite().question);
}

#[test]
fn texts_are_the_reviewed_ones() {
    let run = run();
    let summary = summary(&run);
    golden("terminal-120.txt", &full_answer(&summary, 120, false));
    golden("terminal-80.txt", &full_answer(&summary, 80, false));
    golden("ranking.html", &tables::html::draw(&tables::ranking(&summary.sections[0])).unwrap());
    golden("overall.html", &tables::html::draw(&tables::overall(&summary).unwrap()).unwrap());
    golden("matrix.html", &tables::html::draw(&tables::matrix(&summary)).unwrap());
    golden("findings.html", &tables::html::draw(&tables::findings(&summary.findings)).unwrap());
    let json = serde_json::to_string_pretty(&summary.sections[0].rows[0]).unwrap();
    golden("row.json", &format!("{json}\n"));
}

/// Whoever adds an entry to the table of metrics finds it wherever the entry says that it is shown.
#[test]
fn formats_for_ci_are_the_reviewed_ones_and_can_be_read() {
    let summary = summary(&run());
    for (name, better) in [("github-bigger.json", Better::Bigger), ("github-smaller.json", Better::Smaller)] {
        let text = formats::github_of_run(&summary, better);
        let benches: Vec<serde_json::Value> = serde_json::from_str(&text).expect("a list");
        assert!(!benches.is_empty() && benches.iter().all(|one| one["value"].is_f64() && one["unit"].is_string()));
        golden(name, &text);
    }
    let xml = formats::junit_of_run(&summary);
    let read = roxmltree::Document::parse(&xml).expect("XML");
    let cases = read.descendants().filter(|node| node.has_tag_name("testcase")).count();
    let rows = summary.sections.iter().map(|section| section.baseline.len() + section.rows.len()).sum::<usize>();
    assert_eq!(cases, rows);
    golden("junit.xml", &xml);
}

#[test]
fn every_metric_of_the_table_is_shown_where_its_entry_says() {
    let run = run();
    let summary = summary(&run);
    let section = &summary.sections[0];
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("2026-01-02T03-04-05-trees");
    common::write_run(&copy);
    let csv =
        fs::read_to_string(make(&copy, ChartFiles::Pictures).unwrap().markdown.with_file_name("summary.csv")).unwrap();
    let csv: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let json = serde_json::to_value(&section.rows[0]).unwrap();
    let overall = serde_json::to_value(&summary.overall.as_ref().unwrap().rows[0]).unwrap();
    let has = |table: &tables::Table, title: &str| table.columns.iter().any(|column| column.name.ends_with(title));
    for metric in Metric::ALL {
        let (key, entry) = (metric.key(), metric.entry());
        assert_eq!(json.get(key).is_some(), entry.columns.json, "{key}");
        assert_eq!(overall.get(key).is_some(), entry.columns.overall.is_some(), "{key}");
        assert!(entry.columns.overall.is_none() || has(&tables::overall(&summary).unwrap(), entry.title), "{key}");
        assert!(entry.columns.ranking.is_none() || has(&tables::ranking(section), entry.title), "{key}");
        assert!(entry.columns.cost.is_none() || has(&tables::cost(section).unwrap(), entry.title), "{key}");
        assert!(!entry.columns.points || has(&tables::points(section), entry.title), "{key}");
        assert!(entry.columns.csv.is_none_or(|column| csv.contains(&column)), "{key}");
    }
}

/// Tables, charts and comparisons ask the table of metrics for the numbers of a record.
#[test]
fn numbers_of_a_record_are_read_in_the_table_of_metrics_alone() {
    // Other tools print everything that they know, and their files have keys of the same names.
    let formats = ["report/src/formats", "compare/src/outside/formats.rs"];
    // Memory is measured in two ways, one of which a whole row must share; and an operation is a part of a window, which has no metrics of
    // its own.
    let excepted = [("report/src/summary/rows.rs", "rss_max_bytes"), ("report/src/tables/trials.rs", "latency.p")];
    let readings =
        ["latency.p", "latency.m", "latency.stdev", "cpu_user_us", "cpu_system_us", "rss_max_bytes", "bytes_in"];
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders: Vec<PathBuf> = ["report", "compare", "published"].map(|name| crates.join(name).join("src")).into();
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            folders.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if !formats.iter().any(|one| path.strip_prefix(crates).unwrap().starts_with(one)) {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let may = |reading: &str| excepted.iter().any(|(file, own)| path.ends_with(file) && *own == reading);
            let found = readings.iter().find(|reading| code.contains(**reading) && !may(reading));
            assert_eq!(found, None, "{} reads it", path.display());
        }
    }
}

#[test]
fn the_markdown_is_the_reviewed_one() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("2026-01-02T03-04-05-trees");
    common::write_run(&run);
    let made = make(&run, ChartFiles::Pictures).unwrap();
    let markdown = fs::read_to_string(&made.markdown).unwrap();
    golden("report.md", &markdown);
    for link in markdown.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(made.markdown.with_file_name("").join(link).is_file(), "{link} is linked and not there");
    }
    // Made again, it is the same; and nothing but the report was touched.
    let before: Vec<_> = names(&run);
    let again = make(&run, ChartFiles::Pictures).unwrap();
    assert_eq!(fs::read_to_string(&again.markdown).unwrap(), markdown);
    assert_eq!(names(&run), before);
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn series_and_searches_read_as_reviewed() {
    let run = load_run(&CURVES).unwrap();
    assert_eq!(run.broken, []);
    let summary = summary(&run);
    golden("curves-120.txt", &full_answer(&summary, 120, false));
    let section = |load: &str| summary.sections.iter().find(|section| section.load == load).unwrap();
    let mut text = String::new();
    for load in ["rates", "connections", "rounds"] {
        for table in tables::side_by_side(section(load)) {
            text.push_str(&format!("{}\n\n{}\n", table.title, tables::markdown::draw(&table)));
        }
    }
    for table in [tables::cost(section("rates")).unwrap(), tables::cost(section("capacity")).unwrap()] {
        text.push_str(&format!("{}\n\n{}\n", table.title, tables::markdown::draw(&table)));
    }
    golden("curves.md", &text);
}

#[test]
fn a_series_is_not_its_last_window() {
    let summary = summary(&load_run(&CURVES).unwrap());
    let row = |load: &str, product: &str, profile: &str| {
        let section = summary.sections.iter().find(|section| section.load == load).unwrap();
        section.rows.iter().find(|row| row.entry.product == product && row.entry.profile == profile).unwrap()
    };
    // Past saturation p99 is seconds; what is ranked is the most that was carried.
    let cedar = row("rates", "cedar", "tuned");
    assert_eq!(cedar.of(Metric::Rate).unwrap().value, 20_000.0);
    assert!(cedar.points.last().unwrap().of(Metric::P99).unwrap().value > 1_000_000.0);
    assert_eq!(cedar.knee.map(|knee| cedar.points[knee].offered.unwrap()), Some(15_000.0));
    // Connections: the best of them, and the knee where more bring little.
    let alder = row("connections", "alder", "tuned");
    assert_eq!(alder.points.len(), common::CONNECTIONS.len());
    assert!((alder.of(Metric::Rate).unwrap().value / (30_000.0 * 1_024.0 / 1_036.0) - 1.0).abs() < 1e-9);
    assert_eq!(alder.points[alder.knee.unwrap()].connections, 64);
    // Rounds: the one in the middle, neither the cold one nor the last.
    let rounds = row("rounds", "alder", "tuned");
    let rate = |place: usize| rounds.points[place].of(Metric::Rate).unwrap().value;
    assert!(rounds.of(Metric::Rate).unwrap().value > rate(0) && rounds.of(Metric::Rate).unwrap().value < rate(5));
    // A search has the rate that it found, and says how often that was confirmed.
    let search = row("under-5ms", "cedar", "tuned");
    assert_eq!(search.of(Metric::Rate).unwrap().value, 18_000.0);
    let searched = search.search.as_ref().unwrap();
    assert_eq!((searched.confirmed, searched.of, searched.limits["product"]), (2, 3, 3));
    // A fixed number of requests takes a time; a product that never kept its level says so.
    assert!((row("fixed", "cedar", "tuned").of(Metric::Total).unwrap().value - 0.5).abs() < 0.005);
    let warmup = row("capacity", "cedar", "tuned").warmup.unwrap();
    assert_eq!((warmup.never, warmup.of), (2, 3));
    assert!(row("rates", "cedar", "tuned").memory.unwrap().proportional);
    assert!(!row("capacity", "cedar", "tuned").memory.unwrap().proportional);
}

#[test]
fn what_products_speak_with_the_origin_comes_from_its_counters() {
    let summary = summary(&load_run(&CURVES).unwrap());
    let how = summary.sections[0].how.join(" ");
    assert!(how.contains("with the origin, by its counters, Cedar tuned speaks plain HTTP/2; "), "{how}");
    assert!(how.contains("Alder as-published-trees and Alder tuned speak plain HTTP/1.1."), "{how}");
}

#[test]
fn a_part_of_a_run_says_so_and_has_its_own_ranks() {
    let shown = |products: &[&str], only: &[&str]| weir_report::Part {
        products: products.iter().map(|name| (*name).to_string()).collect(),
        profiles: Vec::new(),
        only: only.iter().map(|text| weir_model::filter::Filter::parse(text).unwrap()).collect(),
    };
    let part = shown(&["cedar", "dogwood"], &["workload=json"]).of(run()).unwrap();
    let summary = summary(&part);
    assert_eq!(summary.remarks[0], "A part of the run: products cedar, dogwood; workload json.");
    assert_eq!(summary.sections.len(), 2);
    assert!(summary.answer.starts_with("Cedar is fastest"), "{}", summary.answer);
    let section = &summary.sections[0];
    assert_eq!(section.rows.iter().map(|row| row.rank.unwrap()).collect::<Vec<_>>(), [(1, 1), (2, 2)]);
    assert_eq!(section.baseline.len(), 1, "the direct path stays, to compare with");
    assert_eq!((summary.trials, summary.trials_planned), (18, Some(18)));
    let refused = |shown: weir_report::Part| shown.of(run()).unwrap_err().to_string();
    let error = refused(shown(&["ceder"], &[]));
    assert_eq!(
        error,
        "--products: this run has no product \"ceder\"; did you mean \"cedar\"?\n  expected: one of direct, alder, birch, \
         cedar, dogwood, elm"
    );
    let error = refused(shown(&[], &["load=fast"]));
    assert_eq!(error, "--only: this run has no load \"fast\"\n  expected: one of max, steady");
}

#[test]
fn trials_beyond_the_thousandth_stand_in_order() {
    let folder = tempfile::tempdir().unwrap();
    common::write_blocks(folder.path(), 1, 3);
    for (n, name) in [("2", "1000"), ("3", "999")] {
        let trials = fs::read_dir(folder.path().join("trials")).unwrap().map(|entry| entry.unwrap().path());
        let found = trials.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(n)).unwrap();
        let rest = found.file_name().unwrap().to_str().unwrap().split_once('-').unwrap().1.to_string();
        fs::write(found.join("measurement.json"), "no").unwrap();
        fs::rename(&found, found.with_file_name(format!("{name}-{rest}"))).unwrap();
    }
    let broken: Vec<String> = load_run(folder.path()).unwrap().broken.into_iter().map(|broken| broken.file).collect();
    assert!(broken[0].starts_with("trials/999-") && broken[1].starts_with("trials/1000-"), "{broken:?}");
}

#[test]
fn a_page_of_many_sections_is_built_as_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let size = common::Size { products: 6, workloads: 8, blocks: 2 };
    common::write_large(folder.path(), size);
    let made = make(folder.path(), ChartFiles::Pictures).unwrap();
    let page = fs::read_to_string(&made.html).unwrap();
    // What a browser builds at once: everything outside of script elements.
    let mut at_once = String::new();
    for (i, part) in page.split("<script").enumerate() {
        at_once.push_str(if i == 0 { part } else { part.split_once("</script>").map_or("", |(_, rest)| rest) });
    }
    let tags = at_once.matches('<').count();
    // A row of every trial alone would be ten cells each, opened and closed.
    assert!(tags < 6_000 && size.trials() == 224, "{tags} tags for {} trials", size.trials());
    assert!(page.contains("data-workload=\"work-8\""), "every section is there");
}

/// As many products, workloads, loads and blocks as the suite `quick`, with windows four times as long.
#[test]
fn the_page_of_a_quick_run_is_small() {
    let made = make(&RUN, ChartFiles::Pictures).unwrap();
    let kilobytes = fs::metadata(&made.html).unwrap().len() / 1_000;
    assert!(kilobytes <= 700, "report.html has {kilobytes} KB");
}

#[test]
fn verdicts_decide_what_is_ranked() {
    let summary = summary(&run());
    let section = &summary.sections[0];
    assert_eq!((section.workload.as_str(), section.load.as_str(), section.open), ("plain", "max", false));
    assert_eq!(section.baseline.len(), 1);
    assert!(section.baseline[0].rank.is_none() && section.baseline[0].of(Metric::Rate).is_some());
    let row = |name: &str| section.rows.iter().find(|row| row.entry.product == name).unwrap();
    // A suspect trial counts and is marked; an invalid one is shown and not ranked.
    assert!(row("birch").suspect() && row("birch").rank.is_some());
    assert_eq!(row("birch").of(Metric::Rate).unwrap().n, 3);
    assert!(row("elm").rank.is_none() && row("elm").of(Metric::Rate).is_some());
    assert_eq!(section.rows.last().unwrap().entry.product, "elm");
    // A failed trial leaves two blocks.
    let json = summary.sections.iter().find(|s| s.workload == "json" && s.load == "max").unwrap();
    let dogwood = json.rows.iter().find(|row| row.entry.product == "dogwood").unwrap();
    assert_eq!((dogwood.of(Metric::Rate).unwrap().n, dogwood.verdicts.error), (2, 1));
    assert_eq!(summary.errors.len(), 1);
    assert_eq!(summary.errors[0].stage, "ready");
    // Cost is CPU of the proxy over responses: the fixture's own figure comes back.
    assert!((row("alder").of(Metric::Cpu).unwrap().value - 28.0).abs() < 0.1);
    assert!(section.baseline[0].of(Metric::Cpu).is_none());
    // Loads with a given rate rank by latency.
    let steady = summary.sections.iter().find(|s| s.load == "steady").unwrap();
    assert!(
        steady.open
            && steady
                .rows
                .windows(2)
                .all(|w| w[0].of(Metric::P99).unwrap().value <= w[1].of(Metric::P99).unwrap().value)
    );
}

#[test]
fn products_that_compress_are_ranked_only_with_each_other() {
    let compresses = |names: &[&str]| {
        let mut run = run();
        for trial in run.trials.iter_mut().filter(|trial| names.contains(&trial.measurement.case.product.as_str())) {
            trial.measurement.findings.push(Finding {
                check: COMPRESSES.to_owned(),
                severity: Severity::Note,
                message: "it did".to_owned(),
                remedy: "none".to_owned(),
            });
        }
        summary(&run)
    };
    let ranked = |summary: &weir_report::Summary| -> Vec<String> {
        let rows = summary.sections[0].rows.iter().filter(|row| row.rank.is_some());
        rows.map(|row| row.entry.product.clone()).collect()
    };
    let all = ranked(&compresses(&[]));
    assert!(all.len() > 2 && all.contains(&"birch".to_owned()), "{all:?}");
    let one = compresses(&["birch"]);
    let others: Vec<String> = all.iter().filter(|name| *name != "birch").cloned().collect();
    assert_eq!(ranked(&one), others);
    let said =
        |summary: &weir_report::Summary| summary.remarks.iter().any(|remark| remark.contains("compressed responses"));
    assert!(said(&one), "{:?}", one.remarks);
    let run = run();
    let names: Vec<&str> = run.suite.entries.iter().map(|entry| entry.product.as_str()).collect();
    let every = compresses(&names);
    assert_eq!((ranked(&every), said(&every)), (all.clone(), false));
}

#[test]
fn products_without_the_coding_of_the_origin_are_not_ranked_with_the_others() {
    let mut run = run();
    for trial in run.trials.iter_mut().filter(|trial| trial.measurement.case.product != "birch") {
        if let Some(load) = &mut trial.measurement.load {
            load.codings =
                Some([(Coding::Gzip, CodedResponses { responses: 9, bytes: 96, decoded_bytes: 128 })].into());
        }
    }
    let summary = summary(&run);
    let birch = summary.sections[0].rows.iter().find(|row| row.entry.product == "birch").unwrap();
    assert_eq!(birch.rank, None);
    assert!(birch.causes.iter().any(|cause| cause.to_string().starts_with("not ranked: it got responses uncoded")));
    assert!(summary.sections[0].rows.iter().any(|row| row.rank.is_some()));
    let remarks: Vec<&String> = summary.remarks.iter().filter(|remark| remark.contains("uncoded")).collect();
    assert!(remarks.len() == 1 && remarks[0].ends_with("shown, not ranked with them."), "{:?}", summary.remarks);
}

#[test]
fn pictures_are_whole_and_not_blank() {
    let folder = tempfile::tempdir().unwrap();
    common::write_blocks(folder.path(), 1, 12);
    let made = make(folder.path(), ChartFiles::Raster).unwrap();
    assert!(made.charts.len() > 30, "{:?}", made.charts);
    for file in &made.charts {
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("svg") => {
                let text = fs::read_to_string(file).unwrap();
                let tree = roxmltree::Document::parse(&text).unwrap();
                assert!(tree.descendants().filter(|node| node.is_text()).count() > 5, "{}", file.display());
                assert!(!text.contains("NaN") && !text.contains("inf"), "{}", file.display());
            }
            Some("png") => assert!(colours(file) > 20, "{} is blank", file.display()),
            _ => assert!(fs::read_to_string(file).unwrap().lines().count() > 1, "{}", file.display()),
        }
    }
}

/// Different colours in a picture: text alone has dozens, its edges being smoothed.
fn colours(file: &Path) -> usize {
    let mut reader = png::Decoder::new(std::io::BufReader::new(fs::File::open(file).unwrap())).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert!(info.width > 1_000 && info.height > 300);
    let unique: std::collections::BTreeSet<&[u8]> = pixels.chunks(4).collect();
    unique.len()
}

#[test]
fn a_run_under_way_has_a_report_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    common::write_blocks(folder.path(), 1, 7);
    // The trial under way has a folder and no measurement yet.
    fs::create_dir(folder.path().join("trials/8-alder-tuned-plain-steady")).unwrap();
    let summary = summary(&load_run(folder.path()).unwrap());
    assert!(summary.remarks[0].starts_with("The run is not finished: 7 of 72 trials"), "{:?}", summary.remarks);
    assert!(summary.answer.contains("Seen once"), "{}", summary.answer);
    assert!(summary.sections[0].how.iter().any(|how| how.contains("One block has no interval")));
    let table = tables::ranking(&summary.sections[0]);
    assert!(table.rows.iter().all(|row| row.cells[3].detail.is_empty()), "one block has no interval to show");
    make(folder.path(), ChartFiles::Pictures).unwrap();
}

#[test]
fn a_folder_that_is_no_run_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let error = make(folder.path(), ChartFiles::Pictures).unwrap_err();
    assert!(matches!(error, ReportError::NotARun { .. }) && error.to_string().contains("expected"), "{error}");
    common::write_blocks(folder.path(), 1, 0);
    let error = make(folder.path(), ChartFiles::Pictures).unwrap_err();
    assert!(matches!(error, ReportError::Empty { .. }) && error.to_string().contains("--resume"), "{error}");
    assert!(matches!(load_run(&folder.path().join("nowhere")), Err(ReportError::NotARun { .. })));
    assert!(!folder.path().join("report").exists());
}

#[test]
fn broken_files_are_rows_and_the_rest_stands() {
    let folder = tempfile::tempdir().unwrap();
    common::write_blocks(folder.path(), 1, 6);
    let trial = |n: &str| {
        let mut found = fs::read_dir(folder.path().join("trials")).unwrap().map(|entry| entry.unwrap().path());
        found.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(n)).unwrap()
    };
    fs::write(trial("2-").join("measurement.json"), "{ \"schema\": 1, ").unwrap();
    let log = fs::read(trial("3-").join("latency.hlog")).unwrap();
    fs::write(trial("3-").join("latency.hlog"), &log[..log.len() / 2]).unwrap();
    fs::remove_file(trial("4-").join("resources.csv")).unwrap();
    fs::write(folder.path().join("environment.json"), "nonsense").unwrap();
    fs::write(folder.path().join("run.toml"), "[suite]\ntitle = 3").unwrap();
    let made = make(folder.path(), ChartFiles::Pictures).unwrap();
    let page = fs::read_to_string(&made.html).unwrap();
    for file in ["/measurement.json", "/latency.hlog", "/resources.csv", "environment.json", "run.toml"] {
        assert!(page.contains(&format!("{file}</td>")), "{file} is not named");
    }
    let summary = summary(&load_run(folder.path()).unwrap());
    assert_eq!(summary.sections[0].rows.iter().filter(|row| row.rank.is_some()).count(), 3);
}

/// A product of parts: what each costs is a table, and what each told of itself that changed is a chart.
#[test]
fn parts_of_a_product_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    common::write_blocks(folder.path(), 1, 6);
    let whole = make(folder.path(), ChartFiles::Pictures).unwrap();
    let page = fs::read_to_string(&whole.html).unwrap();
    assert!(!page.contains("CPU by part") && !page.contains("told about themselves"), "nobody has parts");
    let mut trials = fs::read_dir(folder.path().join("trials")).unwrap().map(|entry| entry.unwrap().path());
    let alder = trials.find(|path| path.to_string_lossy().contains("-alder-")).unwrap();
    let file = alder.join("measurement.json");
    let mut measurement: Measurement = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let usage = measurement.usage.iter_mut().find(|usage| usage.role == Role::Proxy).unwrap();
    for (part, share) in [("front", 0.25), ("store", 0.75)] {
        let of = |us: u64| (us as f64 * share) as u64;
        let (user, system) = (of(usage.cpu_user_us), of(usage.cpu_system_us));
        let part_usage = RoleUsage { cpu_user_us: user, cpu_system_us: system, cores_busy: share, ..usage.clone() };
        usage.parts.insert(part.to_owned(), part_usage);
    }
    let start = measurement.load.as_ref().unwrap().window_start_ms;
    fs::write(&file, serde_json::to_vec(&measurement).unwrap()).unwrap();
    let mut told = "time_ms,name,value\n".to_owned();
    for (second, size) in [(0, 9), (1, 1), (2, 2), (3, 2)] {
        // The first is before the window.
        let at = start + second * 1_000 - 500;
        told.push_str(&format!("{at},size_bytes,{}\n{at},keys,7\n", size << 20));
    }
    fs::write(alder.join("monitor-store.csv"), told).unwrap();
    let made = make(folder.path(), ChartFiles::Pictures).unwrap();
    let markdown = fs::read_to_string(&made.markdown).unwrap();
    let row = |part: &str| markdown.lines().find(|line| line.starts_with(&format!("| Alder | {part} |"))).unwrap();
    assert!(row("front").contains("| 7.00 | 25 % | 0.250 |"), "{}", row("front"));
    assert!(row("store").contains("| 21.0 | 75 % | 0.750 |"), "{}", row("store"));
    let page = fs::read_to_string(&made.html).unwrap();
    assert!(page.contains("CPU by part") && page.contains("told about themselves"));
    let monitors: Vec<&PathBuf> =
        made.charts.iter().filter(|path| path.to_string_lossy().contains("-monitor-")).collect();
    assert!(monitors.iter().all(|path| path.to_string_lossy().contains("-monitor-size-bytes.")), "{monitors:?}");
    let csv = monitors.iter().find(|path| path.extension().is_some_and(|ending| ending == "csv")).unwrap();
    let values: Vec<String> = fs::read_to_string(csv).unwrap().lines().skip(1).map(str::to_owned).collect();
    assert_eq!(values.len(), 3, "{values:?}");
    assert!(values[0].contains("Alder") && values[0].contains("0.5,1"), "{values:?}");
    fs::write(alder.join("monitor-store.csv"), "nonsense\n1\n").unwrap();
    let broken = fs::read_to_string(make(folder.path(), ChartFiles::Pictures).unwrap().html).unwrap();
    assert!(broken.contains("/monitor-store.csv</td>"), "a file that cannot be read is named");
}

#[test]
fn nothing_in_a_run_becomes_markup() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("run");
    common::write_hostile(&folder);
    let made = make(&folder, ChartFiles::Pictures).unwrap();
    assert_eq!(names(outer.path()), ["run"], "nothing is written outside");
    assert!(made.charts.iter().all(|file| file.parent() == Some(&folder.join("report/charts")) && file.is_file()));
    let page = fs::read_to_string(&made.html).unwrap();
    assert!(page.contains("window.pwned"), "the hostile text is shown");
    for markup in ["<script>window", "<img src=x", "</pre><script"] {
        assert!(!page.contains(markup), "{markup} came through");
    }
    let markdown = fs::read_to_string(&made.markdown).unwrap();
    assert!(!markdown.contains("<script>") && !markdown.contains("<img") && !markdown.contains('\u{1b}'));
    for svg in made.charts.iter().filter(|file| file.extension().is_some_and(|ending| ending == "svg")) {
        let text = fs::read_to_string(svg).unwrap();
        roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", svg.display()));
        assert!(!text.contains("<script>"), "{}", svg.display());
    }
    let terminal = full_answer(&summary(&load_run(&folder).unwrap()), 100, false);
    assert!(!terminal.chars().any(|c| c.is_control() && c != '\n'));
}

#[test]
fn the_page_needs_no_network() {
    let folder = tempfile::tempdir().unwrap();
    common::write_blocks(folder.path(), 1, 6);
    let made = make(folder.path(), ChartFiles::Pictures).unwrap();
    let page = fs::read_to_string(&made.html).unwrap();
    for attribute in ["src=\"http", "href=\"http", "src=\"//", "href=\"//", "url(http", "@import"] {
        assert!(!page.contains(attribute), "{attribute}");
    }
    assert!(page.contains("default-src 'none'"));
}

/// A run as weir leaves it: each trial sealed, and the run's own files.
fn seal(run: &Path) {
    let write = |folder: &Path| {
        let sums = Seal::of_folder(folder, &|name| name.contains('/') && folder == run).unwrap().to_text();
        fs::write(folder.join(seal::FILE), sums).unwrap();
    };
    fs::read_dir(run.join("trials")).unwrap().for_each(|trial| write(&trial.unwrap().path()));
    write(run);
}

/// Other programs read `measurements.csv`, so that an edit there has to be seen as well.
#[test]
fn a_row_that_its_trial_does_not_have_is_named() {
    let folder = tempfile::tempdir().unwrap();
    common::write_blocks(folder.path(), 1, 6);
    let whole = load_run(folder.path()).unwrap();
    let file = folder.path().join(row::FILE);
    let header: Vec<&str> = row::COLUMNS.iter().map(|(name, _)| *name).collect();
    let lines = whole.trials.iter().map(|trial| row::row(&trial.measurement).collect::<Vec<_>>().join(","));
    let rows: Vec<String> = std::iter::once(header.join(",")).chain(lines).collect();
    let broken = |rows: &[String]| {
        fs::write(&file, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
        load_run(folder.path()).unwrap().broken
    };
    assert_eq!(broken(&rows), [], "as weir writes them");
    let mut cut_off = rows.clone();
    cut_off.pop();
    assert_eq!(broken(&cut_off), [], "weir was killed between a trial and its row");

    let rate = header.iter().position(|name| *name == "rate").unwrap();
    let mut edited = rows.clone();
    let mut cells: Vec<&str> = edited[3].split(',').collect();
    let was = cells[rate].to_owned();
    cells[rate] = "912345";
    edited[3] = cells.join(",");
    let found = broken(&edited);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].file, "measurements.csv");
    let wanted = format!("line 4: rate is \"912345\", and \"{was}\" in trials/");
    assert!(found[0].why.starts_with(&wanted), "{} and not {wanted}", found[0].why);

    let older: Vec<String> = edited.iter().map(|row| row.replacen("schema,", "", 1)).collect();
    assert_eq!(broken(&older), [], "of another version of weir");
}

#[test]
fn a_file_that_is_not_as_weir_wrote_it_is_named_and_its_trial_is_no_number() {
    let folder = tempfile::tempdir().unwrap();
    common::write_blocks(folder.path(), 1, 6);
    seal(folder.path());
    let whole = load_run(folder.path()).unwrap();
    assert_eq!((whole.broken.as_slice(), whole.trials.len()), (&[][..], 6));
    let trials: Vec<PathBuf> = whole.trials.iter().map(|trial| folder.path().join(&trial.folder)).collect();
    let edit = |file: &Path, from: &str, to: &str| {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(from), "{}", file.display());
        fs::write(file, text.replacen(from, to, 1)).unwrap();
    };
    edit(&trials[0].join("measurement.json"), "\"rate\":", "\"rate\": 9");
    edit(&trials[1].join("latency.hlog"), "Tag=", "tag=");
    fs::remove_file(trials[2].join("load.csv")).unwrap();
    fs::remove_file(trials[3].join(seal::FILE)).unwrap();
    edit(&folder.path().join("run.toml"), "title", "title ");
    let run = load_run(folder.path()).unwrap();
    let named: Vec<(&str, bool)> = run
        .broken
        .iter()
        .map(|broken| (broken.file.rsplit('/').next().unwrap(), broken.why.contains("missing")))
        .collect();
    assert_eq!(
        named,
        [
            ("run.toml", false),
            ("measurement.json", false),
            ("latency.hlog", false),
            ("load.csv", true),
            (seal::FILE, true)
        ]
    );
    assert_eq!(run.trials.len(), 2, "what is intact is shown");
    assert!(run.suite.title.is_empty(), "the changed run.toml is not believed");
    let made = make(folder.path(), ChartFiles::Pictures).unwrap();
    let page = fs::read_to_string(&made.html).unwrap();
    assert!(
        page.contains("5 files of the run cannot be read or not trusted, such as run.toml: it is not as weir wrote it"),
        "{page}"
    );
    assert!(!page.contains("The run is not finished"), "{page}");
    let short = short_answer(&summary(&run), &made.html, 80, false);
    assert!(short.contains("Doubts: 5 files damaged or changed"), "{short}");
}

/// Without seals, as an older weir left its runs, numbers that no weir writes are still refused, by file and key.
#[test]
fn a_number_that_cannot_have_been_measured_is_refused_by_its_key() {
    for (from, to, why) in [
        ("\"schema\": 1", "\"schema\": 99", "another weir wrote it: it has schema 99, and this weir knows 1"),
        ("\"schema\": 1", "\"schema\": 0", "schema 0"),
        ("\"took_s\": ", "\"took_s\": -", "took_s: -"),
        ("\"p50_us\": ", "\"p50_us\": 1e300, \"was\": ", "load.latency.p50_us: 1e300 cannot have been measured"),
        ("\"rate\": ", "\"rate\": 912345, \"was\": ", "load.rate: 912345 a second, where "),
        ("\"window_start_ms\": ", "\"window_start_ms\": -5, \"was\": ", "invalid value"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        common::write_blocks(folder.path(), 1, 2);
        let trial = folder.path().join(&load_run(folder.path()).unwrap().trials[0].folder).join("measurement.json");
        let text = fs::read_to_string(&trial).unwrap();
        assert!(text.contains(from), "{from}: {text}");
        fs::write(&trial, text.replacen(from, to, 1)).unwrap();
        let run = load_run(folder.path()).unwrap();
        let [broken] = run.broken.as_slice() else { panic!("{to}: {:?}", run.broken) };
        assert!(broken.file.ends_with("measurement.json") && broken.why.contains(why), "{to}: {}", broken.why);
        assert_eq!(run.trials.len(), 1);
    }
}
