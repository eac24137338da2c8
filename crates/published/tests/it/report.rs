//! Reports of made-up runs of published suites: what is laid beside what, which causes are named, and that the documents' tables
//! and pictures are there.

use crate::common;
use crate::run;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::common::golden;
use crate::run::{Made, Runner};
use weir_model::owners::{CpuUse, Owners, RoleCpus, RoleProcess};
use weir_model::record::{Finding, Kept, Measurement, Role, Severity, Verdict};
use weir_published::sections;
use weir_report::charts::{Arrangement, ChartKind};
use weir_report::extra::Item;
use weir_report::{Extra, Made as Report, load_run, make_of, short_answer, summary};

const fn runner(
    product: &'static str,
    title: &'static str,
    profile: &'static str,
    rate: f64,
    connections: f64,
) -> Runner {
    Runner { product, title, profile, rate, connections }
}

const EASEGRESS: Made = Made {
    suite: "easegress",
    load: "requests-90000",
    cases: &["baseline-echo-2", "scenario-2", "scenario-3", "scenario-5"],
    runners: &[
        runner("direct", "Direct", "stock", 9_500.0, 0.001),
        runner("easegress", "Easegress", "as-published-easegress", 8_800.0, 0.002),
        runner("nginx", "NGINX", "as-published-easegress", 3_000.0, 1.0),
        runner("traefik", "Traefik", "as-published-easegress", 8_300.0, 0.003),
        runner("easegress", "Easegress", "tuned", 8_700.0, 0.002),
        runner("nginx", "NGINX", "tuned", 9_300.0, 0.001),
        runner("traefik", "Traefik", "tuned", 8_200.0, 0.003),
    ],
    rounds: 0,
    blocks: 3,
};

const GATEWAYS: Made = Made {
    suite: "spring-cloud-gateway",
    load: "rounds",
    cases: &["hello"],
    runners: &[
        runner("direct", "Direct", "stock", 20_000.0, 0.001),
        runner("spring-cloud-gateway", "Spring Cloud Gateway", "stock", 5_000.0, 0.002),
        runner("zuul1", "Zuul 1", "stock", 6_000.0, 0.002),
        runner("linkerd", "Linkerd 1.x", "stock", 4_000.0, 0.002),
    ],
    rounds: 4,
    blocks: 2,
};

const LOGGLY: Made = Made {
    suite: "loggly",
    load: "published",
    cases: &["root"],
    runners: &[
        runner("direct", "Direct", "stock", 50_000.0, 0.001),
        runner("caddy", "Caddy", "as-published-loggly", 21_000.0, 0.002),
        runner("envoy", "Envoy", "as-published-loggly", 20_000.0, 0.002),
        runner("haproxy", "HAProxy", "as-published-loggly", 40_000.0, 0.002),
        runner("nginx", "NGINX", "as-published-loggly", 30_000.0, 0.002),
        runner("traefik", "Traefik", "as-published-loggly", 15_000.0, 0.002),
    ],
    rounds: 0,
    blocks: 3,
};

const MONOLAKE: Made = Made {
    suite: "monolake",
    load: "saturating",
    cases: &["http-tiny", "http-large", "https-tiny", "https-large"],
    runners: &[
        runner("monolake", "Monolake", "as-published-monolake", 50_000.0, 0.001),
        runner("nginx", "NGINX", "as-published-monolake", 55_000.0, 0.001),
        runner("traefik", "Traefik", "as-published-monolake", 18_000.0, 0.001),
        runner("envoy", "Envoy", "as-published-monolake", 14_000.0, 0.001),
    ],
    rounds: 0,
    blocks: 2,
};

const JUNO: Made = Made {
    suite: "juno",
    load: "connections",
    cases: &["connections-compaction", "rate-compaction"],
    runners: &[
        runner("quorum", "Quorum", "as-published", 10_000.0, 0.0),
        runner("quorum", "Quorum", "tuned", 12_000.0, 0.0),
        runner("junodb", "JunoDB", "as-published", 8_000.0, 0.0),
    ],
    rounds: 7,
    blocks: 2,
};

/// Makes rounds into points of two curves: over connections, a 25th of those published, and over rates, an 8th.
fn curves(measurement: &mut Measurement) {
    let over_rates = measurement.case.workload.starts_with("rate");
    measurement.points.truncate(if over_rates { 6 } else { 7 });
    for (place, point) in measurement.points.iter_mut().enumerate() {
        point.connections = if over_rates { 120 } else { [40, 400, 1000, 2000, 4000, 6000, 8000][place] };
        point.offered_rate = Some(if over_rates { [1.0, 2.0, 3.0, 4.5, 6.0, 8.0][place] * 1_250.0 } else { 1_875.0 });
        point.load.latency.p99_us = 1_000.0 * (place + 1) as f64;
    }
}

/// The folder of a made-up run with its report, written once for all tests that only read it.
fn shared(made: &Made) -> PathBuf {
    static WRITTEN: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("published").join(made.suite);
    // Whoever comes second waits until the first has written it.
    let mut written = WRITTEN.lock().unwrap();
    if written.insert(made.suite) {
        let _ = fs::remove_dir_all(&folder);
        let own: &dyn Fn(&mut Measurement) = if made.suite == JUNO.suite { &curves } else { &|_| {} };
        run::write(&folder, made, own);
        make(&folder);
    }
    folder
}

fn published_of(folder: &Path, made: &Made, spoil: &dyn Fn(&mut Measurement)) -> Extra {
    run::write(folder, made, spoil);
    published_in(folder)
}

fn published_in(folder: &Path) -> Extra {
    let run = load_run(folder).unwrap();
    assert_eq!(run.broken, []);
    let published = sections(&run, &summary(&run));
    assert_eq!(published.broken, []);
    assert!(!published.sections.is_empty());
    published
}

/// Writes the whole report, without pixels.
fn make(folder: &Path) -> Report {
    let run = load_run(folder).unwrap();
    let summary = summary(&run);
    let published = sections(&run, &summary);
    make_of(&run, summary, published, weir_report::ChartFiles::Pictures).unwrap()
}

/// The rows of a table by its id, each cell with its details; empty when there is no such table.
fn rows(published: &Extra, id: &str) -> Vec<Vec<String>> {
    let items = published.sections.iter().flat_map(|section| &section.items);
    let table = items.filter_map(|item| match item {
        Item::Table(table) | Item::Folded(table) | Item::Listed { table, .. } if table.id == id => Some(table),
        _ => None,
    });
    let rows = table.flat_map(|table| &table.rows);
    rows.map(|row| row.cells.iter().map(|cell| cell.words(true)).collect()).collect()
}

/// The row that begins with these cells.
fn row<'r>(rows: &'r [Vec<String>], begin: &[&str]) -> &'r [String] {
    rows.iter().find(|row| row.iter().zip(begin).all(|(a, b)| a == b)).unwrap_or_else(|| panic!("{begin:?}: {rows:?}"))
}

fn charts(published: &Extra) -> Vec<&str> {
    published.charts().map(|chart| chart.name.as_str()).collect()
}

/// What `report.md` says of published figures.
fn markdown_part(markdown: &str) -> &str {
    let begin = markdown.find("## Published figures and this run").expect("the report has the part");
    let end = markdown[begin..].find("\n## Products as they were run").expect("and what follows it");
    &markdown[begin..begin + end]
}

fn report_of(made: &Made) -> String {
    let report = shared(made).join("report");
    let markdown = fs::read_to_string(report.join("report.md")).unwrap();
    for link in markdown.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(report.join(link).is_file(), "{link} is linked and not there");
    }
    markdown_part(&markdown).to_string()
}

#[test]
fn the_short_answer_of_each_suite_fits_a_screen() {
    for made in [&MONOLAKE, &EASEGRESS, &JUNO, &GATEWAYS, &LOGGLY] {
        let report = format!("runs/20260102-030405-{}/report/report.html", made.suite);
        let text = short_answer(&summary(&load_run(&shared(made)).unwrap()), Path::new(&report), 80, false);
        // With a last remark of the verb's and the prompt: 24.
        assert!(text.lines().count() <= 22 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        golden(&format!("short-{}.txt", made.suite), &text);
    }
}

#[test]
fn the_markdown_of_published_figures_is_the_reviewed_one() {
    for made in [EASEGRESS, GATEWAYS, JUNO, LOGGLY, MONOLAKE] {
        golden(&format!("published-{}.md", made.suite), &report_of(&made));
    }
    let shaped = |made: &Made, file: &str| fs::read_to_string(shared(made).join("report/shaped").join(file)).unwrap();
    golden("published-shaped-wrk.txt", &shaped(&GATEWAYS, "zuul1-stock-hello.txt"));
    golden("published-shaped-hey.txt", &shaped(&LOGGLY, "haproxy-as-published-loggly-root.txt"));
}

/// The lines of `published.csv` of one metric, by their columns.
fn listed(folder: &Path, metric: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(folder.join("report/published.csv")).unwrap();
    let lines = reader.deserialize().map(|line| line.unwrap());
    lines.filter(|line: &BTreeMap<String, String>| line["metric"] == metric).collect()
}

fn cells<'l>(line: &'l BTreeMap<String, String>, names: &[&str]) -> Vec<&'l str> {
    names.iter().map(|name| line[*name].as_str()).collect()
}

#[test]
fn every_published_result_is_listed_once_for_each_profile_or_says_why_there_is_no_number() {
    let folder = shared(&EASEGRESS);
    let rates = listed(&folder, "rate");
    // 23 results, of which 7 have a case that was run and 6 of these have two profiles.
    assert_eq!(rates.len(), 23 + 9);
    let nginx: Vec<Vec<&str>> = rates
        .iter()
        .filter(|line| line["product"] == "nginx" && line["case"] == "scenario-2")
        .map(|line| cells(line, &["published", "unit", "standing", "profile", "note"]))
        .collect();
    let expected = |profile| vec!["3146", "requests/s", "beside", profile, ""];
    assert_eq!(nginx, [expected("as-published-easegress"), expected("tuned")]);
    let ratio = |line: &BTreeMap<String, String>| {
        let number = |name: &str| line[name].parse::<f64>().unwrap();
        (number("ours") / number("published") / number("ratio") - 1.0).abs()
    };
    assert!(rates.iter().filter(|line| line["standing"] == "beside").all(|line| ratio(line) < 0.02), "{rates:?}");
    let absent = rates.iter().find(|line| line["case"] == "scenario-4").unwrap();
    assert_eq!(cells(absent, &["standing", "ours", "note"]), ["not run", "", "scenario-4 was not run"]);
    let load = listed(&folder, "load-1m");
    let load = load.iter().find(|line| line["product"] == "traefik" && line["standing"] == "beside").unwrap();
    assert_eq!(cells(load, &["ours", "ratio"]), ["1.5", ""], "side by side");
    assert!(load["note"].contains("all roles may run on it"), "{load:?}");
    let sleeping = &listed(&folder, "tasks-sleeping")[0];
    assert_eq!(sleeping["standing"], "not taken");
    assert!(sleeping["note"].contains("the state of every process"), "{sleeping:?}");
    let published = published_in(&folder);
    let sentence = published.sections[0].items.iter().find_map(|item| match item {
        Item::Paragraph(text) if text.starts_with("Of 453 published results") => Some(text.as_str()),
        _ => None,
    });
    let sentence = sentence.unwrap();
    assert!(sentence.ends_with("With every product and case it could be 436."), "{sentence}");
}

#[test]
fn counts_are_compared_as_shares_and_histograms_in_the_documents_marks() {
    let folder = shared(&LOGGLY);
    let of = |metric: &str| {
        let line = listed(&folder, metric).into_iter().find(|line| line["product"] == "haproxy").unwrap();
        let number = |name: &str| line[name].parse::<f64>().unwrap();
        (number("published"), number("ours"), number("ratio"))
    };
    let (published, ours, ratio) = of("status-200");
    assert!(published == 100_000.0 && ours > 300_000.0 && (ratio - 1.0).abs() < 0.01, "{ours} {ratio}");
    let none = listed(&folder, "histogram-0.112").into_iter().find(|line| line["product"] == "envoy").unwrap();
    assert_eq!(cells(&none, &["published", "standing", "ratio"]), ["0", "beside", ""], "nothing is divided by 0");
    // All marks together hold no more than all requests, and nearly all of them: none took longer than the last.
    let all = csv::Reader::from_path(folder.join("report/published.csv")).unwrap();
    let lines = all.into_deserialize().map(|line| line.unwrap());
    let own = lines.filter(|line: &BTreeMap<String, String>| {
        line["product"] == "haproxy" && line["metric"].starts_with("histogram-")
    });
    let sum: f64 = own.map(|line| line["ours"].parse::<f64>().unwrap()).sum();
    assert!((11_900.0..=12_000.0).contains(&sum), "{sum} of the 12,000 in the histograms");
    let dial = listed(&folder, "dial-max");
    assert_eq!(cells(&dial[0], &["note"]), ["hey prints the slowest whole request in this place"]);
    let slowest = listed(&folder, "latency-max");
    assert_eq!(dial[0]["ours"], slowest[0]["ours"]);
}

#[test]
fn listings_of_top_stand_beside_the_proxys_machine_and_its_processes() {
    let folder = tempfile::tempdir().unwrap();
    let made = Made { cases: &["scenario-4"], blocks: 1, ..EASEGRESS };
    let process = |pid, used| RoleProcess {
        name: "nginx".to_string(),
        pid,
        used,
        cpu_s: 7.5,
        priority: 20,
        nice: 0,
        virtual_bytes: 50 << 20,
        resident_bytes: 8 << 20,
        shared_bytes: 4 << 20,
    };
    run::write(folder.path(), &made, &|measurement| {
        let processes = vec![process(6, 0.0), process(7, 0.5), process(8, 0.997)];
        let role = RoleCpus { role: Role::Proxy, cpus: vec![1], used: 1.5, processes, ..RoleCpus::default() };
        let cpu = CpuUse { cpu: 1, processes: Some(0.9), user: Some(0.3), nice: Some(0.0), ..CpuUse::default() };
        measurement.owners = vec![Owners { cpus: vec![cpu], roles: vec![role], ..Owners::default() }];
    });
    make(folder.path());
    let of_nginx = |metric: &str| -> Vec<(String, String, String)> {
        let lines = listed(folder.path(), metric).into_iter();
        let own = lines.filter(|line| line["product"] == "nginx" && line["profile"] != "tuned");
        own.map(|line| (line["variant"].clone(), line["ours"].clone(), line["note"].clone())).collect()
    };
    let cpu = of_nginx("cpu");
    let seen: Vec<_> = cpu.iter().map(|(variant, ours, _)| (variant.as_str(), ours.as_str())).collect();
    // The busiest first, as top lists them; two of the four have no counterpart.
    assert_eq!(seen, [("pid 33301", "99.7"), ("pid 33298", "50"), ("pid 33302", ""), ("pid 33299", "")]);
    assert_eq!(cpu[3].2, "fewer processes of the product used the CPU here");
    assert_eq!(of_nginx("resident-memory")[0].1, "8192", "KiB");
    let state = |metric: &str| of_nginx(metric).remove(0);
    assert_eq!(state("cpu0-system").1.parse::<f64>().map(f64::round), Ok(60.0));
    assert_eq!(state("cpu3-idle").2, "the proxy was given fewer CPUs here");
    assert_eq!(state("memory-used").1, "1024", "of 8 GiB 3 are free and 4 a cache");
    let other = listed(folder.path(), "cpu").into_iter().find(|line| line["variant"].contains("another")).unwrap();
    assert_eq!(cells(&other, &["standing", "note"]), ["no counterpart", "it is of another program than the product"]);
}

#[test]
fn one_picture_has_a_dot_for_each_result_that_compares() {
    let published = published_in(&shared(&LOGGLY));
    let chart = published.charts().find(|chart| chart.name == "published-distances").unwrap();
    let ChartKind::Bars(bars) = &chart.kind else { panic!("dots") };
    assert_eq!(bars.arrangement, Arrangement::Dots { rule: 1.0 });
    let names: Vec<&str> = bars.groups.iter().map(|group| group.label.as_str()).collect();
    assert_eq!(names[..3], ["Requests a second", "Time for all requests", "Bytes"]);
    assert_eq!(
        bars.series.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(),
        ["Caddy", "Envoy", "HAProxy", "NGINX", "Traefik"]
    );
    let rates = &bars.groups[0].bars;
    assert_eq!(rates.len(), 5);
    assert!((rates[2].value - 0.935).abs() < 0.005, "{rates:?}");
    assert!(rates[2].text.starts_with("0.935 times: rate root, 42,000 requests/s there, 39,3"), "{}", rates[2].text);
    let svg = weir_report::charts::draw::svg(chart).unwrap();
    let dots = bars.groups.iter().map(|group| group.bars.len()).sum::<usize>();
    assert_eq!(svg.matches("class=\"dot\"").count(), dots);
    assert_eq!(svg.matches("class=\"one\"").count(), bars.groups.len());
}

#[test]
fn a_product_that_opened_a_connection_for_each_request_is_shown_with_its_cost() {
    let published = published_in(&shared(&EASEGRESS));
    let connections = rows(&published, "published-origin-connections");
    let of_nginx = row(&connections, &["NGINX", "as-published-easegress"]);
    assert_eq!(of_nginx[2], "100");
    assert!(row(&connections, &["NGINX", "tuned"])[2].starts_with("0.0"), "{connections:?}");
    let agreement = rows(&published, "published-agreement");
    let total = |profile: &str| row(&agreement, &["Rate", "all of them", profile])[4..].to_vec();
    assert_eq!(total("as-published-easegress"), ["1.00", "9 of 9", "0 of 0"]);
    assert_eq!(total("tuned"), ["-0.333", "3 of 9", "6 of 6"]);
    // The order under `tuned` differs from the published one, and the cause is named.
    let pairs = rows(&published, "published-other-order");
    let pair = row(&pairs, &["Easegress", "NGINX", "Rate", "scenario-2", "tuned", "2.81"]);
    assert!(pair[7].starts_with("origin-connections (NGINX 100 per 100 requests and 2,980/s with"), "{pair:?}");
}

#[test]
fn pairs_in_another_order_are_on_the_page_each_with_a_cause_or_none() {
    let folder = shared(&EASEGRESS);
    let published = published_in(&folder);
    let page = fs::read_to_string(folder.join("report/report.html")).unwrap();
    let pairs = rows(&published, "published-other-order");
    for pair in &pairs {
        assert!(page.contains(&pair[7]) && !pair[7].is_empty() && !pair[7].contains("interval"), "{pair:?}");
    }
    assert!(pairs.iter().any(|pair| pair[7] == "nothing recorded explains it"));
    let open = rows(&published, "published-open-order");
    assert!(open.iter().all(|pair| pair[7].starts_with("interval")), "{open:?}");
}

#[test]
fn a_product_that_keeps_its_connections_has_no_such_table() {
    let folder = tempfile::tempdir().unwrap();
    let published = published_of(folder.path(), &EASEGRESS, &|measurement| {
        if let Some(counters) = &mut measurement.origin {
            counters.connections_used = 100;
        }
    });
    assert!(rows(&published, "published-origin-connections").is_empty());
    assert!(
        !rows(&published, "published-other-order").iter().flatten().any(|cell| cell.contains("origin-connections"))
    );
}

#[test]
fn invalid_products_are_shown_and_not_ordered() {
    let folder = tempfile::tempdir().unwrap();
    let change = |measurement: &mut Measurement| {
        if measurement.case.product == "haproxy" {
            measurement.verdict = Verdict::Invalid;
        }
        if measurement.case.product == "envoy" && measurement.block == 2 {
            measurement.verdict = Verdict::Suspect;
            measurement.findings.push(Finding {
                check: "quiet-steal".to_string(),
                severity: Severity::Warning,
                message: String::new(),
                remedy: String::new(),
            });
        }
    };
    let published = published_of(folder.path(), &LOGGLY, &change);
    // Five products, of which one may not be ranked: six pairs.
    let agreement = rows(&published, "published-agreement");
    assert!(agreement[0][5].ends_with(" of 6"), "{agreement:?}");
    let pairs = ["published-other-order", "published-open-order"].map(|id| rows(&published, id)).concat();
    assert!(!pairs.iter().flatten().any(|cell| cell == "HAProxy"));
    let envoy = row(&pairs, &["Envoy", "Caddy", "Rate"]);
    assert!(envoy[7].contains("suspect (Envoy quiet-steal)"), "{envoy:?}");
    let ratios = rows(&published, "published-rate");
    let caddy = row(&ratios, &["root", "as-published-loggly", "Caddy"]);
    assert_eq!(caddy[8], "11 % status 502; every tenth response was a 502");
    assert!(row(&ratios, &["root", "as-published-loggly", "HAProxy"])[4].contains("invalid"));
    let chart = published.charts().find(|chart| chart.name == "published-requests-per-second").unwrap();
    assert!(chart.alt.contains("HAProxy 39,300 invalid, not ranked"), "{}", chart.alt);
}

/// The connections drawn of a role, and the notes that say how they were counted.
fn connections<'p>(published: &'p Extra, role: &str) -> (Vec<f64>, &'p [String]) {
    let name = format!("published-performance-metrices-monolake-nginx-as-published-monolake-{role}");
    let chart = published.charts().find(|chart| chart.name == name).unwrap();
    let ChartKind::Lines(lines) = &chart.kind else { panic!("lines") };
    let line = lines.series.iter().find(|line| line.name == "TCP connections").unwrap();
    let mut values: Vec<f64> = line.pieces.iter().flatten().map(|(_, open)| *open).collect();
    values.dedup();
    (values, &chart.notes)
}

#[test]
fn connections_are_each_roles_own() {
    let folder = tempfile::tempdir().unwrap();
    let new = published_of(folder.path(), &MONOLAKE, &|_| {});
    for (role, open, how) in
        [("client", 64.0, "the client's own"), ("origin", 8.0, "the origin's own"), ("proxy", 72.0, "added up")]
    {
        let (values, notes) = connections(&new, role);
        assert_eq!(values, [open], "{role}");
        assert!(notes.iter().any(|note| note.contains(how)), "{notes:?}");
    }
}

/// Where the cases of a product's picture of resources begin, in seconds, and its notes.
fn rules(published: &Extra) -> (Vec<(f64, String)>, &[String]) {
    let name = "published-performance-metrices-monolake-threads-nginx-as-published-monolake-proxy";
    let chart = published.charts().find(|chart| chart.name == name).unwrap();
    let ChartKind::Lines(lines) = &chart.kind else { panic!("lines") };
    assert_eq!(lines.series[0].pieces.len(), lines.rules.len(), "a piece for each case");
    (lines.rules.clone(), &chart.notes)
}

#[test]
fn the_cases_of_a_kept_product_are_drawn_as_they_came_and_others_end_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let place = |m: &Measurement| MONOLAKE.cases.iter().position(|case| *case == m.case.workload).unwrap() as u32;
    // 20 s from one case to the next; the second block's start is another.
    let own = |m: &mut Measurement| {
        m.kept = Some(Kept { since: m.block, place: place(m) + 1, of: 4 });
        m.load.as_mut().unwrap().window_start_ms += u64::from(place(m)) * 20_000;
    };
    run::write(folder.path(), &MONOLAKE, &own);
    for trial in load_run(folder.path()).unwrap().trials {
        let file = folder.path().join(&trial.folder).join("resources.csv");
        let later = |row: &str| match row.split_once(',').map(|(time, rest)| (time.parse::<u64>(), rest)) {
            Some((Ok(time), rest)) => format!("{},{rest}\n", time + u64::from(place(&trial.measurement)) * 20_000),
            _ => format!("{row}\n"),
        };
        fs::write(&file, fs::read_to_string(&file).unwrap().lines().map(later).collect::<String>()).unwrap();
    }
    let kept = published_in(folder.path());
    let (begins, notes) = rules(&kept);
    let expected: Vec<(f64, String)> =
        (0..4).map(|n| (20.0 * f64::from(n), MONOLAKE.cases[n as usize].into())).collect();
    assert_eq!(begins, expected);
    assert!(notes.iter().any(|note| note.contains("were kept from case to case")), "{notes:?}");
    let each = published_in(&shared(&MONOLAKE));
    let (begins, notes) = rules(&each);
    assert!(begins.windows(2).all(|two| two[1].0 - two[0].0 < 15.0), "{begins:?}");
    assert!(notes.iter().any(|note| note.contains("the product was started for each")), "{notes:?}");
}

#[test]
fn every_picture_of_a_case_that_was_run_has_its_counterpart() {
    let monolake = published_in(&shared(&MONOLAKE));
    let names = charts(&monolake);
    let wanted = "all-http-tiny-latency all-http-latency all-latency-https proxies-performance \
        proxies-performance-rotated tiny-qps large-throughput";
    for name in wanted.split(' ') {
        assert!(names.contains(&format!("published-{name}").as_str()), "{name} is not among {names:?}");
    }
    let resources = names.iter().filter(|name| name.starts_with("published-performance-metrices"));
    assert_eq!(resources.count(), 60, "four products, three roles, everything together and four things alone");
    let each = names.iter().filter(|name| name.starts_with("published-latency-over-http"));
    assert_eq!(each.count(), 8, "four products, two protocols; nothing of 16 cores was run");
    assert!(!names.iter().any(|name| name.contains("small")), "that payload was not run");
    let folder = tempfile::tempdir().unwrap();
    let sixteen = published_of(folder.path(), &Made { load: "published-16c", ..MONOLAKE }, &|_| {});
    for name in ["published-latency-over-http-16-cores", "published-latency-over-https-of-each-product-16-cores-envoy"]
    {
        assert!(charts(&sixteen).contains(&name), "{name} is not among {:?}", charts(&sixteen));
    }
    let cut = monolake.charts().find(|chart| chart.name == "published-large-qps").unwrap();
    assert!(cut.notes.iter().any(|note| note.contains("begins at 7,600, this one at 0")), "{:?}", cut.notes);
    let others = [
        (&EASEGRESS, vec!["published-stress-test-rps", "published-stress-test-p99-latency"]),
        (&LOGGLY, vec!["published-requests-per-second", "published-avg-response-time", "published-latency"]),
        (&GATEWAYS, vec!["published-requests-sec-round-after-round-without-a-restart"]),
    ];
    for (made, wanted) in others {
        assert_eq!(charts(&published_in(&shared(made)))[1..], wanted, "behind the one of distances");
    }
    for chart in monolake.charts() {
        let svg = weir_report::charts::draw::svg(chart).unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}", chart.name);
        assert!(
            chart.notes.iter().any(|note| note.contains("windows of 8 s")),
            "{} does not say what was scaled",
            chart.name
        );
    }
}

/// The charts of the published curves over rates: their horizontal axes, and each point of the highest percentile.
fn over_rates(published: &Extra) -> Vec<(String, Vec<(f64, f64)>)> {
    let own = published.charts().filter(|chart| chart.name.starts_with("published-3k-fixed-conn-compact-"));
    let of = own.map(|chart| {
        let ChartKind::Lines(curves) = &chart.kind else { panic!("curves") };
        assert_eq!(curves.series.len(), 6, "three percentiles, published and here");
        let highest = |who: &str| curves.series.iter().find(|c| c.name == format!("{who} p99")).unwrap();
        let points = highest("published").points.iter().zip(&highest("here").points);
        (curves.x.title(), points.map(|(there, here)| (there.x - here.x, here.y)).collect())
    });
    of.collect()
}

#[test]
fn curves_that_went_less_far_are_laid_on_each_other_by_their_share() {
    let published = published_in(&shared(&JUNO));
    let drawn = over_rates(&published);
    assert_eq!(drawn.len(), 2, "one for each product, under the profile of the document");
    for (axis, points) in drawn {
        assert_eq!(axis, "Offered rate, share of the most, %");
        assert_eq!(points, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(|ms| (0.0, ms)));
    }
    let table = rows(&published, "published-points-15k-fixed-throughput-compact");
    assert_eq!(table.len(), 3 * 7, "every profile of every product");
    assert_eq!(table[6][1..3], ["200,000", "8,000"]);
    // 16.3 ms is 5.40 times 3.02 ms in the document.
    assert_eq!((&table[6][7], &table[6][9], &table[6][10]), (&"16.3".into(), &"5.40".into(), &"7.00".into()));
    let whole = tempfile::tempdir().unwrap();
    let full = published_of(whole.path(), &JUNO, &|measurement| {
        curves(measurement);
        measurement.points.iter_mut().for_each(|point| point.offered_rate = point.offered_rate.map(|rate| rate * 8.0));
    });
    assert_eq!(over_rates(&full)[0].0, "Offered rate, requests/s", "as far as the document: numbers, no shares");
    // A point that was not measured leaves its row without numbers, and a run without points has no such table.
    let part = published_of(whole.path(), &JUNO, &|measurement| {
        curves(measurement);
        measurement.points.remove(1);
    });
    let row = &rows(&part, "published-points-15k-fixed-throughput-compact")[1];
    assert_eq!((&row[1], &row[2], &row[8]), (&"10,000".to_string(), &"–".to_string(), &"–".to_string()));
    let without = published_of(whole.path(), &JUNO, &|measurement| {
        curves(measurement);
        if measurement.case.product == "quorum" && measurement.case.profile == "as-published" {
            measurement.points.clear();
        }
    });
    let names = charts(&without);
    assert!(names.contains(&"published-3k-fixed-conn-compact-quorum-tuned"), "the profile that has points: {names:?}");
    let none = published_of(whole.path(), &JUNO, &|measurement| {
        curves(measurement);
        if measurement.case.workload.starts_with("rate") {
            measurement.points.clear();
        }
    });
    assert_eq!(over_rates(&none), []);
    assert!(rows(&none, "published-points-3k-fixed-conn-compact").is_empty());
}

#[test]
fn a_direct_path_far_above_the_others_is_noted_and_not_drawn() {
    let folder = shared(&GATEWAYS);
    let published = published_in(&folder);
    let chart = published.charts().find(|chart| chart.name.contains("round-after-round")).unwrap();
    assert!(!chart.toggles().iter().any(|(name, _)| *name == "Direct"), "{:?}", chart.toggles());
    assert!(chart.notes.iter().any(|note| note.starts_with("Not drawn: Direct, up to ")), "{:?}", chart.notes);
    let csv = fs::read_to_string(folder.join(format!("report/charts/{}.csv", chart.name))).unwrap();
    assert!(csv.contains("Direct,"), "its numbers are kept");
}

#[test]
fn a_suite_without_published_figures_has_no_such_section() {
    let folder = tempfile::tempdir().unwrap();
    common::write_blocks(folder.path(), 1, 6);
    let run = load_run(folder.path()).unwrap();
    assert_eq!(sections(&run, &summary(&run)), Extra::default());
}

#[test]
fn hostile_text_does_not_run_in_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = "<script>window.pwned=1</script>|`*\u{1b}[31m";
    run::write(folder.path(), &EASEGRESS, &|measurement| {
        if measurement.case.product == "nginx" {
            measurement.case.profile = format!("as-published\"'>{}", hostile.replace('\u{1b}', ""));
        }
    });
    let file = folder.path().join("environment.json");
    let text = fs::read_to_string(&file).unwrap();
    let title = serde_json::to_string(&format!("Traefik{hostile}")).unwrap();
    fs::write(&file, text.replace("\"Traefik\"", &title)).unwrap();
    let made = make(folder.path());
    let page = fs::read_to_string(&made.html).unwrap();
    assert!(page.contains("Published figures and this run") && page.contains("window.pwned"));
    assert!(!page.contains("<script>window"));
    let markdown = fs::read_to_string(&made.markdown).unwrap();
    assert!(!markdown.contains("<script>") && !markdown.contains('\u{1b}'));
    for file in fs::read_dir(folder.path().join("report/shaped")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c)), "{name}");
    }
}

#[test]
fn a_histogram_that_is_broken_is_named_and_the_rest_stands() {
    let folder = tempfile::tempdir().unwrap();
    run::write(folder.path(), &LOGGLY, &|_| {});
    let trial = folder.path().join("trials/2-caddy-as-published-loggly-root-published");
    fs::write(trial.join("latency.hlog"), "nonsense").unwrap();
    let run = load_run(folder.path()).unwrap();
    let published = sections(&run, &summary(&run));
    let broken = &published.broken;
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert_eq!(broken[0].file, "trials/2-caddy-as-published-loggly-root-published/latency.hlog");
    let shaped = |text: &&str| text.starts_with("# block");
    assert_eq!(published.files().filter(|(_, text)| shaped(text)).count(), 6, "caddy's other blocks are there");
}

/// The report has a section with the differences of its suite, in plain words, and none of another's.
#[test]
fn what_differs_from_the_document_stands_in_the_report() {
    let folder = shared(&LOGGLY);
    let published = published_in(&folder);
    let section = published.sections.iter().find(|section| section.id == "published-differences").unwrap();
    let sentence = |item: &Item| match item {
        Item::Paragraph(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    let sentences: Vec<String> = section.items.iter().map(sentence).collect();
    assert_eq!(sentences[0], "Scaled here: windows of 8 s instead of 60 s; 1 core instead of 4.");
    assert!(sentences.iter().any(|text| text.ends_with("Here every response has 127 bytes.")), "{sentences:?}");
    assert!(!sentences.iter().any(|text| text.contains('`') || text.contains("JunoDB")), "{sentences:?}");
    let markdown = fs::read_to_string(folder.join("report/report.md")).unwrap();
    assert!(markdown.contains("Differences from the document"));
}
