//! A site of several runs: what its pages say, that every link leads somewhere and nothing is loaded from elsewhere, what is refused, and
//! how large it is.

use crate::common;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Copy, copy, write_base, write_several};
use weir_model::record::Measurement;
use weir_report::extra::{Extra, ExtraSection, Item};
use weir_report::{ReportError, Run, Site, SiteOptions, Summary, site};

/// What a caller adds to the suite `trees`.
fn extra(_: &Run, summary: &Summary) -> Extra {
    let text =
        Item::Text { summary: "As published".to_owned(), text: "1,234".to_owned(), file: "published.txt".to_owned() };
    let items = vec![Item::Paragraph("Elsewhere it had 1,234 requests/s.".to_owned()), text];
    let section = ExtraSection { id: "published".to_owned(), heading: "Published figures".to_owned(), items };
    let sections = if summary.suite == "trees" { vec![section] } else { Vec::new() };
    Extra { sections, broken: Vec::new() }
}

fn made(runs: &[PathBuf], out: &Path, whole: usize) -> Result<Site, ReportError> {
    site(runs, out, &SiteOptions { extra: &extra, whole })
}

/// Every file of a folder by its path in it.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fn collect(top: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(top, &path, files);
            } else {
                files.insert(path.strip_prefix(top).unwrap().display().to_string(), fs::read(&path).unwrap());
            }
        }
    }
    let mut all = BTreeMap::new();
    collect(folder, folder, &mut all);
    all
}

fn pages(folder: &Path) -> BTreeMap<String, String> {
    let pages = files(folder).into_iter().filter(|(name, _)| name.ends_with(".html"));
    pages.map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap())).collect()
}

/// The values of an attribute in markup.
fn values<'a>(markup: &'a str, attribute: &str) -> Vec<&'a str> {
    markup.split(&format!(" {attribute}=\"")).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn it_answers_by_question_product_suite_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("public");
    let made = made(&[write_several(folder.path())], &out, 2).unwrap();
    let counts = [made.runs, made.whole, made.machines, made.questions, made.products, made.suites];
    assert_eq!(counts, [4, 2, 2, 4, 5, 2]);
    let pages = pages(&out);
    let names: Vec<&str> = pages.keys().map(String::as_str).collect();
    for name in [
        "index.html",
        "products/elm.html",
        "suites/bushes.html",
        "runs/index.html",
        "runs/20260102-030405-trees/index.html",
    ] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    // Two suites ask the same, whatever they call it: one row for each machine, from its newest run.
    let index = &pages["index.html"];
    let words = "small responses (64 bytes), plain HTTP/1.1; as much as 100 connections can carry</a>";
    assert_eq!(index.matches(words).count(), 2, "{index}");
    assert!(index.contains("href=\"runs/20260105-030405-bushes/index.html#plain-max\""), "{index}");
    // The picture has the newest result of each question with several products.
    let picture = fs::read_to_string(out.join("charts/leaders.svg")).unwrap();
    assert!(index.contains("Who comes first, by question") && picture.contains(" 100 %"), "{picture}");
    // The newest run of each suite and machine may be whole, of these the newest.
    let whole = |name: &str| {
        pages[&format!("runs/{name}/index.html")].contains("id=\"configurations\"")
            || out.join(format!("runs/{name}/charts/plain-max-rate.svg")).is_file()
    };
    let wholes = ["20260102-030405-trees", "20260103-030405-trees", "20260104-030405-trees", "20260105-030405-bushes"]
        .map(whole);
    assert_eq!(wholes, [false, false, true, true]);
    assert!(pages["runs/20260102-030405-trees/index.html"].contains("This is an older run"));
    // A product's versions; a suite's machines, and what the caller added, with its file.
    assert!(pages["products/alder.html"].contains(">2.5.0<") && pages["products/alder.html"].contains(">2.4.1<"));
    let suite = &pages["suites/trees.html"];
    assert!(suite.contains("Elsewhere it had 1,234 requests/s."));
    for beside in ["<td>Kernel</td>", "large: ", "small: ", "Bars by machine. ", "Every product on every machine"] {
        assert!(suite.contains(beside), "{beside} is not in {suite}");
    }
    assert!(!pages["suites/bushes.html"].contains("Not measured on"), "one machine has all of its cases");
    assert_eq!(fs::read_to_string(out.join("suites/trees/published.txt")).unwrap(), "1,234");
    assert!(!pages["suites/bushes.html"].contains("Elsewhere"));
}

#[test]
fn every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("public");
    made(&[write_several(folder.path())], &out, 2).unwrap();
    let mut links = 0;
    for (name, page) in pages(&out) {
        let here = out.join(&name);
        for link in values(&page, "href").into_iter().chain(values(&page, "src")) {
            links += 1;
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { here.clone() } else { here.with_file_name("").join(file) };
            assert!(target.is_file(), "{name}: {link} leads nowhere");
            if !place.is_empty() {
                assert!(fs::read_to_string(&target).unwrap().contains(&format!("id=\"{place}\"")), "{name}: {link}");
            }
        }
        // No style or script of its own: the policy would stop them.
        assert!(!page.contains("<style") && values(&page, "style").is_empty(), "{name} has a style of its own");
        let scripts = page
            .split("<script")
            .skip(1)
            .filter(|rest| !rest.starts_with(" type=\"text/") && !rest.starts_with(" type=\"application/json\""));
        assert!(scripts.into_iter().all(|rest| rest.starts_with(" src=\"")), "{name} has a script of its own");
        // Each identifier once.
        let mut ids = values(&page, "id");
        ids.sort_unstable();
        let twice: Vec<&str> = ids.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        assert!(twice.is_empty(), "{name}: {twice:?} twice");
    }
    assert!(links > 300, "{links}");
}

#[test]
fn a_run_that_asks_twice_and_ranks_nobody_once_counts_once_and_answers() {
    let folder = tempfile::tempdir().unwrap();
    let (run, out) = (write_base(folder.path()), folder.path().join("public"));
    // The same question first, of the direct path alone.
    let file = run.join("run.toml");
    let text = fs::read_to_string(&file).unwrap();
    let at = text.find("[[workload]]").unwrap();
    let end = at + 1 + text[at + 1..].find("[[workload]]").unwrap();
    let twin = text[at..end].replace("name = \"plain\"", "name = \"twin\"");
    fs::write(&file, format!("{}{twin}{}", &text[..at], &text[at..])).unwrap();
    for trial in fs::read_dir(run.join("trials")).unwrap().map(|entry| entry.unwrap().path()) {
        let bytes = fs::read(trial.join("measurement.json")).unwrap();
        let mut measurement: Measurement = serde_json::from_slice(&bytes).unwrap();
        let case = &mut measurement.case;
        if (&*case.product, &*case.workload, &*case.load) == ("direct", "plain", "max") {
            case.workload = "twin".to_owned();
            measurement.trial = 999;
            let bytes = serde_json::to_vec(&measurement).unwrap();
            let twin = run.join("trials").join(format!("999-{}", measurement.case.slug()));
            for (name, bytes) in files(&trial) {
                fs::create_dir_all(twin.join(&name).parent().unwrap()).unwrap();
                fs::write(twin.join(name), bytes).unwrap();
            }
            fs::write(twin.join("measurement.json"), bytes).unwrap();
        }
    }
    made(&[run], &out, 1).unwrap();
    let page = &pages(&out)["index.html"];
    let row = page.split("as much as 100 connections can carry</a>").nth(1).unwrap();
    let row = &row[..row.find("</tr>").unwrap()];
    assert!(row.contains("products/") && row.ends_with(">1</td>"), "{row}");
}

#[test]
fn the_same_runs_give_the_same_bytes_and_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let runs = write_several(folder.path());
    let before = files(&runs);
    let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
    made(std::slice::from_ref(&runs), &one, 1).unwrap();
    // Given one by one, in another order, and one of them twice.
    let mut each: Vec<PathBuf> = fs::read_dir(&runs).unwrap().map(|entry| entry.unwrap().path()).collect();
    each.sort();
    each.reverse();
    each.push(each[0].clone());
    made(&each, &other, 1).unwrap();
    let (a, b) = (files(&one), files(&other));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    let different: Vec<&String> = a.keys().filter(|name| a[*name] != b[*name]).collect();
    assert!(different.is_empty(), "{different:?}");
    assert!(files(&runs) == before, "the runs are as they were");
    let beside: Vec<String> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(beside.len(), 4, "nothing is left behind: {beside:?}");
}

/// The message of what is refused, without the test's folder.
fn refused(runs: &[PathBuf], folder: &Path, out: &Path) -> String {
    made(runs, out, 1).unwrap_err().to_string().replace(folder.to_str().unwrap(), "F")
}

#[test]
fn only_a_site_is_replaced_and_only_runs_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let runs = write_several(folder);
    let out = folder.join("public");
    let expected = "expected: a folder that `weir run` made";
    let missing = refused(&[folder.join("nowhere")], folder, &out);
    assert!(missing.starts_with("F/nowhere: not a run folder: there is no such folder") && missing.contains(expected));
    fs::create_dir_all(folder.join("empty")).unwrap();
    let none = refused(&[runs.clone(), folder.join("empty")], folder, &out);
    assert!(none.starts_with("F/empty: not a run folder: it is no run, and there is none in it"), "{none}");
    assert!(!out.exists(), "nothing was written");
    let occupied = refused(std::slice::from_ref(&runs), folder, &runs);
    assert!(
        occupied.starts_with("F/runs: there are files in it, and they are no site\n  expected: a new folder"),
        "{occupied}"
    );
    made(std::slice::from_ref(&runs), &out, 1).unwrap();
    fs::write(out.join("CNAME"), "example.org").unwrap();
    let foreign = refused(std::slice::from_ref(&runs), folder, &out);
    assert!(foreign.starts_with("F/public/CNAME: it is no part of a site of weir's, and would be lost"), "{foreign}");
    fs::remove_file(out.join("CNAME")).unwrap();
    // A run that turned up in a folder and cannot be read is left out, and one that was named is not.
    let broken = runs.join("20260106-030405-broken");
    fs::create_dir_all(broken.join("trials")).unwrap();
    let site = made(std::slice::from_ref(&runs), &out, 1).unwrap();
    assert_eq!((site.runs, site.skipped.len()), (4, 1));
    assert!(site.skipped[0].folder.ends_with("20260106-030405-broken"), "{:?}", site.skipped);
    assert!(refused(&[broken], folder, &out).contains("no"), "an empty run that is named is refused");
    // An older site is replaced whole.
    made(&[runs.join("20260102-030405-trees")], &out, 1).unwrap();
    assert!(!out.join("suites/bushes.html").exists());
}

#[test]
fn what_runs_say_is_text() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("hostile");
    common::write_hostile(&run);
    let out = folder.path().join("public");
    for whole in [0, 1] {
        made(std::slice::from_ref(&run), &out, whole).unwrap();
        for (name, page) in pages(&out) {
            assert!(!page.replace("<\\/script", "").contains("<script>window"), "{name}");
            assert!(!page.contains("<img"), "{name}");
        }
        let outside: Vec<String> = files(&out).into_keys().filter(|name| name.contains("..")).collect();
        assert!(outside.is_empty(), "{outside:?}");
    }
}

/// A thousand runs fit into 50 MB. How long it takes is said and not asserted, on a shared machine.
#[test]
#[ignore = "make check PART=browser: a minute of drawing"]
fn a_thousand_runs_are_small() {
    let folder = tempfile::tempdir().unwrap();
    let base = write_base(folder.path());
    let runs = folder.path().join("runs");
    for nth in 0..1_000 {
        let (month, day, hour) = (nth / 28 / 24 + 1, nth / 24 % 28 + 1, nth % 24);
        let started = format!("2026-{month:02}-{day:02}T{hour:02}:00:00Z");
        let name = format!("2026{month:02}{day:02}-{hour:02}0000-trees");
        let host = ["small", "large", "arm"][nth % 3];
        copy(&base, &runs, &Copy { name: &name, host, started: &started, version: &format!("2.{}.0", nth / 100) });
    }
    let began = std::time::Instant::now();
    let site = made(&[runs], &folder.path().join("public"), 10).unwrap();
    let bytes: usize = files(&folder.path().join("public")).into_values().map(|file| file.len()).sum();
    println!("{:.1} MB, {:.1?}", bytes as f64 / 1e6, began.elapsed());
    assert_eq!((site.runs, site.whole), (1_000, 3));
    assert!(bytes < 50_000_000, "{bytes} bytes");
    let largest = pages(&folder.path().join("public")).into_values().map(|page| page.len()).max().unwrap();
    assert!(largest < 2_000_000, "the largest page has {largest} bytes");
}
